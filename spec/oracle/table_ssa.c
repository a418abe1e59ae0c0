/* table_ssa.c - ssa: applies and updates by several managers, one after the other, on one object. */
#include <string.h>

#include "base/mem.h"
#include "model/time.h"
#include "oracle.h"
#include "schema/last_applied.h"
#include "schema/managed.h"
#include "schema/typed_check.h"

/* A schema with those that it refers to in their places. */
static void build_whole(kl_builder *b, const kl_value *schemas, const kl_value *node)
{
    static const char prefix[] = "#/components/schemas/";
    const kl_value *all = kl_value_get(node, "allOf");
    const char *ref = kl_value_str(
        kl_value_get(kl_value_len(all) == 1 ? kl_value_item(all, 0) : node, "$ref"));
    size_t i;

    if (kl_value_type(node) == KL_ARRAY) {
        kl_build_array(b);
        for (i = 0; i < kl_value_len(node); i++)
            build_whole(b, schemas, kl_value_item(node, i));
        kl_build_end(b);
        return;
    }
    if (kl_value_type(node) != KL_OBJECT) {
        kl_build_value(b, node);
        return;
    }
    kl_build_object(b);
    for (i = 0; i < kl_value_len(node); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(node, i, &key, &n);
        if (ref && (!strcmp(key, "allOf") || !strcmp(key, "$ref")))
            continue;
        kl_build_keyn(b, key, n);
        build_whole(b, schemas, v);
    }
    if (ref) {
        const kl_value *to = kl_value_get(schemas, ref + sizeof prefix - 1);
        for (i = 0; i < kl_value_len(to); i++) {
            const char *key;
            size_t n;
            const kl_value *v = kl_value_member(to, i, &key, &n);
            if (kl_value_getn(node, key, n))
                continue;
            kl_build_keyn(b, key, n);
            build_whole(b, schemas, v);
        }
    }
    kl_build_end(b);
}

/* Also of built-in kinds as of custom resources: the table was made without Go's structs. */
static kl_status schema_of(const char *kind, const kl__schema **s, kl_err *err)
{
    static struct {
        const char *kind;
        kl__types *types;
    } known[] = {{"Widget", NULL}, {"ConfigMap", NULL}, {"Service", NULL}, {"Deployment", NULL}};
    static kl__types *builtin;
    const kl_value *file = NULL;
    kl_status st = oracle_schemas("ssa_schemas.json", &file, err);
    size_t i = 0;

    if (!builtin)
        builtin = kl__types_builtin();
    while (i < 4 && strcmp(known[i].kind, kind))
        i++;
    if (!st && i == 4)
        st = kl_fail(err, ORACLE_BAD_CASE, "nobody knows the kind %s", kind);
    if (!st && !known[i].types) {
        const kl_value *schemas = kl_value_get(file, "schemas");
        kl_builder *b = kl_builder_new();
        build_whole(b, schemas, kl_value_get(schemas, kl_value_str_at(file, "roots", kind, NULL)));
        const kl_value *whole = kl_builder_done(b);
        st = kl__types_of_crd(whole, builtin, &known[i].types, err);
        kl_value_unref(whole);
    }
    if (!st)
        *s = kl__types_root(known[i].types);
    return st;
}

/* The object without managedFields; those without times; the times apart. */
static void build_live(kl_builder *b, const kl_value *live)
{
    const kl_value *entries = kl_value_at(live, "metadata", "managedFields", NULL),
                   *bare = kl_value_with_at(live, NULL, "metadata", "managedFields", NULL);
    size_t i;

    kl_build_kvalue(b, "obj", bare);
    kl_build_key(b, "managedFields");
    kl_build_array(b);
    for (i = 0; i < kl_value_len(entries); i++) {
        const kl_value *e = kl_value_with(kl_value_item(entries, i), "time", NULL);
        kl_build_value(b, e);
        kl_value_unref(e);
    }
    kl_build_end(b);
    kl_build_key(b, "managedFieldsTimes");
    kl_build_array(b);
    for (i = 0; i < kl_value_len(entries); i++) {
        const char *text = kl_value_str(kl_value_get(kl_value_item(entries, i), "time"));
        int64_t sec;
        int32_t nsec;
        if (text && !kl_time_parse(text, &sec, &nsec, NULL))
            kl_build_int(b, sec);
        else
            kl_build_null(b);
    }
    kl_build_end(b);
    kl_value_unref(bare);
}

/* {conflicts: [{field, message}]} or {err: true}; the message of an error is for people. */
static void build_failure(kl_builder *b, const kl_err *err)
{
    const kl_value *details = NULL, *causes;
    size_t i;

    if (!err->details || kl_value_decode(err->details, strlen(err->details), &details, NULL)) {
        kl_build_key(b, "err");
        kl_build_bool(b, true);
        return;
    }
    causes = kl_value_get(details, "causes");
    kl_build_key(b, "conflicts");
    kl_build_array(b);
    for (i = 0; i < kl_value_len(causes); i++) {
        kl_build_object(b);
        kl_build_kvalue(b, "field", kl_value_get(kl_value_item(causes, i), "field"));
        kl_build_kvalue(b, "message", kl_value_get(kl_value_item(causes, i), "message"));
        kl_build_end(b);
    }
    kl_build_end(b);
    kl_value_unref(details);
}

static kl_status take(const kl__schema *s, const char *api_version, const kl_value *step, bool resets,
    const kl_value **live, kl_err *err)
{
    char now[KL_TIME_MAX];
    int64_t t = 0;
    const char *sub = kl_value_str(kl_value_get(step, "subresource"));
    bool status = sub && !strcmp(sub, "status");
    const char *manager = kl_value_str_at(step, "manager", NULL);
    const kl_value *out = NULL;
    kl_status st = KL_OK;

    kl_value_int(kl_value_get(step, "t"), &t);
    kl_time_format(t, now);
    kl__writer w = {.manager = *manager ? manager : "unknown",
        .api_version = api_version,
        .sub = sub && *sub ? sub : NULL,
        .now = now,
        .only_status = resets && status,
        .no_status = resets && !status};
    if (!strcmp(kl_value_str_at(step, "op", NULL), "apply")) {
        char *problem = kl__typed_problem(s, kl_value_get(step, "obj"));
        if (problem || kl_value_at(step, "obj", "metadata", "managedFields", NULL))
            st = kl_fail(err, KL_EREJECTED, "%s", problem ? problem : "metadata.managedFields must be nil");
        kl_free(problem);
        if (st)
            return st;
        st = kl__managed_apply(s, &w, kl_value_bool(kl_value_get(step, "force"), false), *live,
            kl_value_get(step, "obj"), &out, err);
        if (!st)
            kl__last_applied_update(w.manager, kl_value_get(step, "obj"), &out);
    } else {
        out = kl_value_ref(kl_value_get(step, "obj"));
        kl__managed_update(s, &w, *live, &out);
    }
    if (!st) {
        kl_value_unref(*live);
        *live = out;
    }
    return st;
}

static kl_status sequence(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const char *kind, *api_version;
    const kl__schema *s = NULL;
    const kl_value *steps = kl_value_get(c->in, "steps"), *live = NULL;
    kl_status st = oracle_str(c->in, "kind", &kind, err);

    if (!st)
        st = oracle_str(c->in, "apiVersion", &api_version, err);
    if (!st)
        st = schema_of(kind, &s, err);
    if (st)
        return st;
    kl_build_key(b, "results");
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(steps); i++) {
        kl_err why = KL_ERR_INIT;
        kl_build_object(b);
        if (take(s, api_version, kl_value_item(steps, i), strcmp(kind, "ConfigMap") != 0, &live, &why))
            build_failure(b, &why);
        else
            build_live(b, live);
        kl_build_end(b);
        kl_err_fini(&why);
    }
    kl_build_end(b);
    kl_value_unref(live);
    return KL_OK;
}

/* What an error says is not compared. */
static bool same(const oracle_case *c, const kl_value *got)
{
    const kl_value *want = kl_value_get(c->want, "results"), *have = kl_value_get(got, "results");

    for (size_t i = 0; i < kl_value_len(want); i++) {
        const kl_value *x = kl_value_with(kl_value_item(want, i), "errmsg", NULL);
        bool equal = kl_value_equal(x, kl_value_item(have, i));
        kl_value_unref(x);
        if (!equal)
            return false;
    }
    return kl_value_len(want) == kl_value_len(have);
}

static const oracle_op ops[] = {{"sequence", sequence, same}, {0}};
ORACLE_TABLE("ssa", ops)
