/* json.h - values in C tests: JSON with ' in place of ". */
#ifndef KL_SPEC_JSON_H
#define KL_SPEC_JSON_H

#include "support/test.h"

#include "base/mem.h"
#include "value/value.h"

/* A new reference. */
static inline const kl_value *json(const char *text)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    char *t = kl_strdup(text);
    for (char *c = t; *c; c++)
        if (*c == '\'')
            *c = '"';
    assert_ok(kl_value_decode(t, strlen(t), &v, &err), &err);
    kl_free(t);
    return v;
}

static inline void assert_json(const kl_value *v, const char *want)
{
    const kl_value *w = json(want);
    char *got = kl_value_to_json(v);
    if (!kl_value_equal(v, w))
        fail_msg("got %s, wanted %s", got, want);
    kl_free(got);
    kl_value_unref(w);
}

#endif
