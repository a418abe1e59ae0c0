/* simulate.c - a script and its modules from the binary, in the form of a ConfigMap's texts. */
#include "script/simulate.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "script/program.h"
#include "state/lkl.h"

size_t lkl_simulate_names(const char *names[LKL_SIMULATE_MOST])
{
    size_t n = 0;
    for (const lkl_embedded_source *s = lkl_simulated; s->name && n < LKL_SIMULATE_MOST; s++)
        if (!strchr(s->name, '.')) /* a name with a dot is a module of theirs: "lib.placement" */
            names[n++] = s->name;
    return n;
}

static kl_status unknown(const char *word, const char *const *known, size_t n, kl_err *err)
{
    const char *near = kl_suggest(word, known, n);
    kl_buf all = KL_BUF_INIT;
    for (size_t i = 0; i < n; i++)
        kl_buf_printf(&all, "%s%s", i ? ", " : "", known[i]);
    kl_status st = near
        ? kl_fail(err, KL_EINVAL, "there is no stand-in \"%s\"; did you mean \"%s\"?", word, near)
        : kl_fail(
            err, KL_EINVAL, "there is no stand-in \"%s\"; the stand-ins are %s", word, kl_buf_str(&all));
    kl_buf_fini(&all);
    return st;
}

kl_status lkl_simulate_chosen(const char *words, const char *names[LKL_SIMULATE_MOST], size_t *n, kl_err *err)
{
    const char *known[LKL_SIMULATE_MOST];
    size_t of = lkl_simulate_names(known);
    bool wanted[LKL_SIMULATE_MOST] = {0};
    kl_status st = KL_OK;
    for (const char *at = words; *at && !st;) {
        size_t len = strcspn(at, ","), i = 0;
        while (i < of && (strlen(known[i]) != len || strncmp(known[i], at, len)))
            i++;
        if (i < of) {
            wanted[i] = true;
        } else {
            char *word = kl_strndup(at, len);
            st = unknown(word, known, of, err);
            kl_free(word);
        }
        at += len + (at[len] == ',');
    }
    if (st)
        return st;
    *n = 0;
    for (size_t i = 0; i < of; i++)
        if (!*words || wanted[i])
            names[(*n)++] = known[i];
    return KL_OK;
}

kl_status lkl_simulate_load(const char *name, kl_program **out, kl_err *err)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (const lkl_embedded_source *s = lkl_simulated; s->name; s++) {
        char *file = kl_sprintf("%s.lua", s->name);
        kl_build_key(b, file);
        kl_build_strn(b, s->text, s->len);
        kl_free(file);
    }
    kl_build_end(b);
    const kl_value *texts = kl_builder_done(b);
    char *main = kl_sprintf("%s.lua", name);
    kl_status st = lkl_program_load_texts("simulate", texts, main, out, err);
    kl_free(main);
    kl_value_unref(texts);
    return st;
}
