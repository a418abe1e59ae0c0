/* table_crd_schema.c - crd_schema: custom resources defaulted, pruned and held against their schemas; schemas
 * held against what is structural. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "oracle.h"
#include "schema/normalize.h"
#include "schema/structural.h"
#include "schema/validate.h"

static const kl__types *builtin(void)
{
    static kl__types *types;

    if (!types)
        types = kl__types_builtin();
    return types;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* A sorted set of {path, type}. */
static void build_errors(kl_builder *b, const kl__causes *causes, const char *root)
{
    char **lines = kl_new_array(char *, causes->len + 1);
    size_t i, skip = strlen(root);

    for (i = 0; i < causes->len; i++) {
        const char *field = causes->v[i].field;
        field += !strncmp(field, root, skip) ? skip + (field[skip] == '.' && skip) : 0;
        lines[i] = kl_sprintf("%s\n%s", field, causes->v[i].reason);
    }
    qsort(lines, causes->len, sizeof *lines, by_text);
    kl_build_key(b, "errors");
    kl_build_array(b);
    for (i = 0; i < causes->len; i++) {
        if (!i || strcmp(lines[i], lines[i - 1])) {
            char *type = strchr(lines[i], '\n');
            char *path = kl_strndup(lines[i], (size_t)(type - lines[i]));
            kl_build_object(b);
            kl_build_kstr(b, "path", path);
            kl_build_kstr(b, "type", type + 1);
            kl_build_end(b);
            kl_free(path);
        }
    }
    kl_build_end(b);
    for (i = 0; i < causes->len; i++)
        kl_free(lines[i]);
    kl_free(lines);
}

/* unknown field "a.b", unknown field "c" */
static void build_unknown(kl_builder *b, const kl__unknown *u)
{
    kl_build_key(b, "unknownFields");
    kl_build_array(b);
    for (size_t i = 0; i < u->count; i++)
        kl_build_str(b, u->paths[i]);
    kl_build_end(b);
}

/* u.apiVersion: Invalid value: ... */
static kl_status build_coerce(kl_builder *b, kl_err *err)
{
    const char *message = kl_err_message(err);
    char *path = kl_strndup(message, strcspn(message, ":"));

    kl_build_key(b, "coerceError");
    kl_build_object(b);
    kl_build_kstr(b, "path", path);
    kl_build_kstr(b, "type", "FieldValueInvalid");
    kl_build_end(b);
    kl_free(path);
    return KL_OK;
}

static kl_status process_with(const kl_value *schema, const oracle_case *c, kl_builder *b, kl_err *err)
{
    kl__types *types = NULL;
    kl__unknown unknown = {0};
    kl__causes causes = {0};
    const kl_value *out = NULL;
    kl_status st = kl__types_of_crd(schema, builtin(), &types, err);

    if (!st)
        st = kl__normalize(kl__types_root(types), kl_value_get(c->in, "object"), true, &unknown, &out, err);
    /* The library leaves an object's own metadata to others; ours is decoded in the same walk. */
    if (!st && unknown.count && !strncmp(unknown.paths[0], "metadata.", 9)) /* they come first */
        st = ORACLE_ON_PURPOSE;
    else if (st && kl_err_message(err) && strstr(kl_err_message(err), ": Invalid value: "))
        st = build_coerce(b, err);
    else if (!st) {
        kl__validate_custom(kl__types_root(types), out, false, &causes);
        build_errors(b, &causes, "");
        build_unknown(b, &unknown);
        kl_build_kvalue(b, "object", out);
    }
    kl_value_unref(out);
    kl__causes_fini(&causes);
    kl__unknown_fini(&unknown);
    kl__types_free(types);
    return st;
}

static kl_status process(const oracle_case *c, kl_builder *b, kl_err *err)
{
    return process_with(kl_value_get(c->in, "schema"), c, b, err);
}

static kl_status process_crd(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *crds = NULL;
    const char *crd, *version;
    kl_status st = oracle_str(c->in, "crd", &crd, err);

    if (!st)
        st = oracle_str(c->in, "version", &version, err);
    if (!st)
        st = oracle_schemas("koordinator_crds.json", &crds, err);
    return st ? st : process_with(kl_value_at(crds, crd, "versions", version, "schema", NULL), c, b, err);
}

static kl_status structural(const oracle_case *c, kl_builder *b, kl_err *err)
{
    kl__causes causes = {0};
    kl_status st = KL_OK;

    if (!kl__structural_shape("x", kl_value_get(c->in, "schema"), &causes))
        st = kl_fail(err, KL_EREJECTED, "it says what structural schemas have no word for");
    build_errors(b, &causes, "x");
    kl__causes_fini(&causes);
    return st;
}

static const oracle_op ops[] = {
    {"process", process, NULL}, {"process_crd", process_crd, NULL}, {"structural", structural, NULL}, {0}};
ORACLE_TABLE("crd_schema", ops)
