/* table_smp.c - strategic merge patch: applied, and computed. */
#include <string.h>
#include "oracle.h"
#include "schema/smp.h"

static const kl__schema *schema_of(const char *kind)
{
    static const struct {
        const char *kind, *type;
    } names[] = {
        {"Pod", "core.v1.Pod"},
        {"Deployment", "apps.v1.Deployment"},
        {"Node", "core.v1.Node"},
        {"Service", "core.v1.Service"},
        {"ConfigMap", "core.v1.ConfigMap"},
    };
    static kl__types *types;

    if (!types)
        types = kl__types_builtin();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].kind, kind))
            return kl__types_get(types, names[i].type);
    return NULL;
}

/* The schema of in.kind and the object in.KEY, borrowed. */
static kl_status read(
    const oracle_case *c, const char *key, const kl__schema **s, const kl_value **v, kl_err *err)
{
    const char *kind;
    kl_status st = oracle_str(c->in, "kind", &kind, err);

    if (st)
        return st;
    *s = schema_of(kind);
    *v = kl_value_get(c->in, key);
    return *s && *v ? KL_OK
                    : kl_fail(err, ORACLE_BAD_CASE,
                        "this case makes no sense: there is no in.%s, or nobody knows in.kind %s", key, kind);
}

static kl_status apply(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl__schema *s;
    const kl_value *doc, *patch, *out = NULL;
    kl_status st = read(c, "doc", &s, &doc, err);

    if (!st)
        st = read(c, "patch", &s, &patch, err);
    if (!st)
        st = kl__smp_apply(s, doc, patch, &out, err);
    if (!st)
        kl_build_kvalue(b, "doc", out);
    kl_value_unref(out);
    return st;
}

/* The patch, and what it makes of the object it was made for. */
static kl_status answer(
    const kl__schema *s, const kl_value *on, const kl_value *patch, kl_builder *b, kl_err *err)
{
    const kl_value *out = NULL;
    kl_status st = kl__smp_apply(s, on, patch, &out, err);

    if (!st) {
        kl_build_kvalue(b, "patch", patch);
        kl_build_kvalue(b, "applied", out);
    }
    kl_value_unref(out);
    return st;
}

static kl_status two_way(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl__schema *s;
    const kl_value *from, *to, *patch = NULL;
    kl_status st = read(c, "from", &s, &from, err);

    if (!st)
        st = read(c, "to", &s, &to, err);
    if (!st)
        st = kl__smp_diff(s, from, to, &patch, err);
    if (!st)
        st = answer(s, from, patch, b, err);
    kl_value_unref(patch);
    return st;
}

static kl_status three_way(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl__schema *s;
    const kl_value *original, *modified, *current, *patch = NULL;
    kl_status st = read(c, "original", &s, &original, err);

    if (!st)
        st = read(c, "modified", &s, &modified, err);
    if (!st)
        st = read(c, "current", &s, &current, err);
    if (!st)
        st = kl__smp_three_way(s, original, modified, current,
            kl_value_bool(kl_value_get(c->in, "overwrite"), false), &patch, err);
    if (!st)
        st = answer(s, current, patch, b, err);
    kl_value_unref(patch);
    return st;
}

static const oracle_op ops[] = {
    {"apply", apply, NULL}, {"two_way", two_way, NULL}, {"three_way", three_way, NULL}, {0}};
ORACLE_TABLE("strategic_merge_patch", ops)
