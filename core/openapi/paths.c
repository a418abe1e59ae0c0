/* paths.c - names of definitions, and the paths of kinds: the operations on collections and on objects, with
 * the parameters that clients look for. */
#include <string.h>

#include "base/mem.h"
#include "openapi/parts.h"

static const char *const PATCHES[] = {"application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml", NULL};
/* built-in kinds are answered in each of these, custom ones in the first two */
static const char *const ANSWERS[] = {
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", NULL};

#define META "io.k8s.apimachinery.pkg.apis.meta.v1."

/* ------------------------------------------------------------------ names */

/* "com.example." of "example.com". */
static void reversed(kl_buf *out, const char *group)
{
    for (const char *end = group + strlen(group), *p = end; p >= group; p--) {
        if (p > group && p[-1] != '.')
            continue;
        kl_buf_add(out, p, (size_t)(end - p));
        kl_buf_putc(out, '.');
        end = p - 1;
    }
}

char *kl__openapi_name(const kl__definitions *d, const kl__kind *k, bool list)
{
    kl_buf name = KL_BUF_INIT;
    const kl__definition *of = k->custom || !k->schema || !k->schema->name
        ? NULL
        : kl__definitions_ending(d, k->schema->name);
    if (of)
        kl_buf_add(&name, of->name, strlen(of->name) - strlen(k->kind));
    else {
        reversed(&name, k->group);
        kl_buf_printf(&name, "%s.", k->version);
    }
    kl_buf_puts(&name, list ? k->list_kind : k->kind);
    char *out = kl_strdup(kl_buf_str(&name));
    kl_buf_fini(&name);
    return out;
}

/* "autoscaling.v1.Scale": the last part of a name is made of the first word of the group. */
static void want_sub(kl__definitions *d, const kl__sub *sub)
{
    const char *group = *sub->group ? sub->group : "core";
    char *end = kl_sprintf("%.*s.%s.%s", (int)strcspn(group, "."), group, sub->version, sub->kind);
    if (*sub->version)
        kl__definitions_want_one(d, kl__definitions_ending(d, end));
    kl_free(end);
}

static void want_named(kl__definitions *d, const char *const *names)
{
    for (; *names; names++)
        kl__definitions_want_one(d, kl__definitions_get(d, *names));
}

void kl__openapi_want_kind(kl__definitions *d, const kl__kind *k)
{
    static const char *const all[] = {
        META "DeleteOptions", META "ListMeta", META "ObjectMeta", META "Patch", META "Status", NULL};
    static const char *const builtin[] = {META "APIResourceList", META "WatchEvent", NULL};
    want_named(d, all);
    if (!k->custom)
        want_named(d, builtin);
    for (int list = 0; list < 2; list++) {
        char *name = kl__openapi_name(d, k, list);
        kl__definitions_want_one(d, kl__definitions_get(d, name));
        kl_free(name);
    }
    for (size_t i = 0; i < k->nsubs; i++)
        want_sub(d, &k->subs[i]);
}

/* ------------------------------------------------------------------ pieces of paths */

/* What the functions below share: the kind, and the definition that they speak of. */
typedef struct about {
    kl_builder *b;
    const kl__kind *kind;
    char *name, *list;
    bool v2;
} about;

typedef struct option {
    const char *name, *type;
} option;

static const option WRITES[] = {
    {"dryRun", "string"}, {"fieldManager", "string"}, {"fieldValidation", "string"}, {NULL, NULL}};
static const option APPLIES[] = {{"dryRun", "string"}, {"fieldManager", "string"},
    {"fieldValidation", "string"}, {"force", "boolean"}, {NULL, NULL}};
static const option DELETES[] = {{"dryRun", "string"}, {"gracePeriodSeconds", "integer"},
    {"orphanDependents", "boolean"}, {"propagationPolicy", "string"}, {NULL, NULL}};
static const option LISTS[] = {{"allowWatchBookmarks", "boolean"}, {"continue", "string"},
    {"fieldSelector", "string"}, {"labelSelector", "string"}, {"limit", "integer"},
    {"resourceVersion", "string"}, {"resourceVersionMatch", "string"}, {"sendInitialEvents", "boolean"},
    {"timeoutSeconds", "integer"}, {"watch", "boolean"}, {NULL, NULL}};
static const option NOTHING[] = {{NULL, NULL}};

static void gvk(const about *a)
{
    kl_build_key(a->b, "x-kubernetes-group-version-kind");
    kl_build_object(a->b);
    kl_build_kstr(a->b, "group", a->kind->group);
    kl_build_kstr(a->b, "kind", a->kind->kind);
    kl_build_kstr(a->b, "version", a->kind->version);
    kl_build_end(a->b);
}

static void schema_of(const about *a, const char *name)
{
    char *ref = kl_sprintf("#/%s/%s", a->v2 ? "definitions" : "components/schemas", name);
    kl_build_key(a->b, "schema");
    kl_build_object(a->b);
    kl_build_kstr(a->b, "$ref", ref);
    kl_build_end(a->b);
    kl_free(ref);
}

static void flag(kl_builder *b, const char *key)
{
    kl_build_key(b, key);
    kl_build_bool(b, true);
}

static void type_of(const about *a, const char *type)
{
    if (!a->v2) {
        kl_build_key(a->b, "schema");
        kl_build_object(a->b);
    }
    kl_build_kstr(a->b, "type", type);
    flag(a->b, "uniqueItems");
    if (!a->v2)
        kl_build_end(a->b);
}

static void parameter(const about *a, const char *name, const char *in, const char *type)
{
    kl_build_object(a->b);
    kl_build_kstr(a->b, "name", name);
    kl_build_kstr(a->b, "in", in);
    if (!strcmp(in, "path"))
        flag(a->b, "required");
    type_of(a, type);
    kl_build_end(a->b);
}

static bool strategic(const char *type) { return strstr(type, "strategic") != NULL; }

static void words(const about *a, const char *key, const char *const *list)
{
    kl_build_key(a->b, key);
    kl_build_array(a->b);
    for (; *list; list++)
        if (!a->kind->custom || (!strategic(*list) && !strstr(*list, "protobuf")))
            kl_build_str(a->b, *list);
    kl_build_end(a->b);
}

/* v3: what a body is, by content type. */
static void content(const about *a, const char *name, const char *const *types)
{
    kl_build_key(a->b, "content");
    kl_build_object(a->b);
    for (; *types; types++) {
        if (a->kind->custom && (strategic(*types) || strstr(*types, "protobuf")))
            continue;
        kl_build_key(a->b, *types);
        kl_build_object(a->b);
        schema_of(a, name);
        kl_build_end(a->b);
    }
    kl_build_end(a->b);
}

static void response(const about *a, const char *name)
{
    kl_build_key(a->b, "responses");
    kl_build_object(a->b);
    kl_build_key(a->b, "200");
    kl_build_object(a->b);
    kl_build_kstr(a->b, "description", "OK");
    if (a->v2)
        schema_of(a, name);
    else
        content(a, name, ANSWERS);
    kl_build_end(a->b);
    kl_build_key(a->b, "401");
    kl_build_object(a->b);
    kl_build_kstr(a->b, "description", "Unauthorized");
    kl_build_end(a->b);
    kl_build_end(a->b);
}

static const char *const ANY_BODY[] = {"*/*", NULL};

/* v2: a parameter; v3: a member of its own. */
static void body_v2(const about *a, const char *name)
{
    kl_build_object(a->b);
    kl_build_kstr(a->b, "name", "body");
    kl_build_kstr(a->b, "in", "body");
    flag(a->b, "required");
    schema_of(a, name);
    kl_build_end(a->b);
}

static void body_v3(const about *a, const char *name, const char *const *types)
{
    kl_build_key(a->b, "requestBody");
    kl_build_object(a->b);
    content(a, name, types);
    flag(a->b, "required");
    kl_build_end(a->b);
}

typedef struct operation {
    const char *method, *verb, *action, *id; /* verb: of the kind's */
    const option *options;
    const char *sends, *answers; /* "" the kind, "list" its list, or a name; NULL nothing */
} operation;

static const operation ON_COLLECTION[] = {
    {"get", "list", "list", "list", LISTS, NULL, "list"},
    {"post", "create", "post", "create", WRITES, "", ""},
    {"delete", "deletecollection", "deletecollection", "deleteCollection", LISTS, META "DeleteOptions",
        META "Status"},
    {NULL},
};
static const operation ON_OBJECT[] = {
    {"get", "get", "get", "read", NOTHING, NULL, ""},
    {"put", "update", "put", "replace", WRITES, "", ""},
    {"delete", "delete", "delete", "delete", DELETES, META "DeleteOptions", META "Status"},
    {"patch", "patch", "patch", "patch", APPLIES, META "Patch", ""},
    {NULL},
};

static const char *resolve(const about *a, const char *name)
{
    return !name || *name ? (name && !strcmp(name, "list") ? a->list : name) : a->name;
}

static void one_operation(const about *a, const operation *o)
{
    bool patches = !strcmp(o->method, "patch");
    const char *sends = resolve(a, o->sends);
    char *id = kl_sprintf("%s%s%s", o->id, a->kind->namespaced ? "Namespaced" : "", a->kind->kind);
    kl_build_key(a->b, o->method);
    kl_build_object(a->b);
    kl_build_kstr(a->b, "operationId", id);
    if (a->v2) {
        words(a, "consumes", patches ? PATCHES : ANY_BODY);
        words(a, "produces", ANSWERS);
    }
    kl_build_key(a->b, "parameters");
    kl_build_array(a->b);
    if (a->v2 && sends)
        body_v2(a, sends);
    for (const option *p = o->options; p->name; p++)
        parameter(a, p->name, "query", p->type);
    kl_build_end(a->b);
    if (!a->v2 && sends)
        body_v3(a, sends, patches ? PATCHES : ANY_BODY);
    response(a, resolve(a, o->answers));
    kl_build_kstr(a->b, "x-kubernetes-action", o->action);
    gvk(a);
    kl_build_end(a->b);
    kl_free(id);
}

static void one_path(const about *a, bool object, const operation *operations)
{
    const kl__kind *k = a->kind;
    char *gv = kl__kind_api_version(k),
         *path = kl_sprintf("/%s/%s/%s%s%s", *k->group ? "apis" : "api", gv,
             k->namespaced ? "namespaces/{namespace}/" : "", k->plural, object ? "/{name}" : "");
    bool any = false;
    for (const operation *o = operations; o->method; o++)
        any = any || kl__kind_has_verb(k, o->verb);
    if (any) {
        kl_build_key(a->b, path);
        kl_build_object(a->b);
        for (const operation *o = operations; o->method; o++)
            if (kl__kind_has_verb(k, o->verb))
                one_operation(a, o);
        kl_build_key(a->b, "parameters");
        kl_build_array(a->b);
        if (object)
            parameter(a, "name", "path", "string");
        if (k->namespaced)
            parameter(a, "namespace", "path", "string");
        parameter(a, "pretty", "query", "string");
        kl_build_end(a->b);
        kl_build_end(a->b);
    }
    kl_free(gv);
    kl_free(path);
}

void kl__openapi_paths(kl_builder *b, const kl__kinds *kinds, const kl__definitions *d, const char *group,
    const char *version, kl__dialect dialect)
{
    kl_build_object(b);
    for (size_t i = 0; i < kl__kinds_len(kinds); i++) {
        const kl__kind *k = kl__kinds_at(kinds, i);
        if (group && (strcmp(k->group, group) || strcmp(k->version, version)))
            continue;
        about a = {
            .b = b,
            .kind = k,
            .name = kl__openapi_name(d, k, false),
            .list = kl__openapi_name(d, k, true),
            .v2 = dialect == KL_OPENAPI_V2,
        };
        one_path(&a, false, ON_COLLECTION);
        one_path(&a, true, ON_OBJECT);
        kl_free(a.name);
        kl_free(a.list);
    }
    kl_build_end(b);
}
