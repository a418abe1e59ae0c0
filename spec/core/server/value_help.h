/* value_help.h - values from text in tests of the server. JSON with ' for ". */
#ifndef KL_SPEC_VALUE_HELP_H
#define KL_SPEC_VALUE_HELP_H

#include "support/test.h"

#include "base/mem.h"
#include "value/value.h"

/* A new reference. */
static inline const kl_value *v(const char *text)
{
    char *json = kl_strdup(text);
    for (char *p = json; *p; p++)
        if (*p == '\'')
            *p = '"';
    const kl_value *out = NULL;
    kl_err err = KL_ERR_INIT;
    if (kl_value_decode(json, strlen(json), &out, &err))
        fail_msg("%s: %s", text, kl_err_message(&err));
    kl_free(json);
    return out;
}

/* `got` (borrowed) is what the text says. */
static inline void assert_value(const kl_value *got, const char *text)
{
    const kl_value *want = v(text);
    bool same = got && kl_value_equal(got, want);
    kl_value_unref(want);
    if (!same) {
        char *shown = got ? kl_value_to_json(got) : kl_strdup("nothing");
        fail_msg("got %s, wanted %s", shown, text);
    }
}

#endif
