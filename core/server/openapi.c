/* openapi.c - /openapi/v3: enough for clients to learn that the server validates fields itself, and what
 * fields there are.
 *
 * kubectl reads the document of a group version before it applies or creates: a PATCH operation with a
 * fieldValidation parameter means that it can leave validation to us. `kubectl explain` reads the schemas. */
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "server/rest.h"
#include "schema/schema.h"
#include "schema/status.h"

static void send_tagged(kl_httpd_request *http, kl_builder *b)
{
    const kl_value *v = kl_builder_done(b);
    kl_buf body = KL_BUF_INIT;
    kl_value_encode(v, &body);
    kl_value_unref(v);
    kl__reply_tagged(http, "application/json", &body);
    kl_buf_fini(&body);
}

static void gvk(kl_builder *b, const kl__kind *k)
{
    kl_build_object(b);
    kl_build_kstr(b, "group", k->group);
    kl_build_kstr(b, "version", k->version);
    kl_build_kstr(b, "kind", k->kind);
    kl_build_end(b);
}

static void parameter(kl_builder *b, const char *name, const char *type)
{
    kl_build_object(b);
    kl_build_kstr(b, "name", name);
    kl_build_kstr(b, "in", "query");
    kl_build_key(b, "schema");
    kl_build_object(b);
    kl_build_kstr(b, "type", type);
    kl_build_end(b);
    kl_build_end(b);
}

/* "io.k8s.api.core.v1.Pod" or "com.example.v1.CronTab": the component's name. */
static char *component(const kl__kind *k)
{
    return kl_sprintf("%s.%s.%s", *k->group ? k->group : "core", k->version, k->kind);
}

static void operation(kl_builder *b, const char *method, const char *action, const kl__kind *k, bool writes)
{
    char *ref, *name = component(k), *id;
    ref = kl_sprintf("#/components/schemas/%s", name);
    id = kl_sprintf("%s%s%s", action, k->namespaced ? "Namespaced" : "", k->kind);
    kl_build_key(b, method);
    kl_build_object(b);
    kl_build_kstr(b, "operationId", id);
    if (writes) {
        kl_build_key(b, "parameters");
        kl_build_array(b);
        parameter(b, "dryRun", "string");
        parameter(b, "fieldManager", "string");
        parameter(b, "fieldValidation", "string");
        parameter(b, "force", "boolean");
        kl_build_end(b);
    }
    kl_build_key(b, "responses");
    kl_build_object(b);
    kl_build_key(b, "200");
    kl_build_object(b);
    kl_build_kstr(b, "description", "OK");
    kl_build_key(b, "content");
    kl_build_object(b);
    kl_build_key(b, "application/json");
    kl_build_object(b);
    kl_build_key(b, "schema");
    kl_build_object(b);
    kl_build_kstr(b, "$ref", ref);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_kstr(b, "x-kubernetes-action", action);
    kl_build_key(b, "x-kubernetes-group-version-kind");
    gvk(b, k);
    kl_build_end(b);
    kl_free(name);
    kl_free(ref);
    kl_free(id);
}

/* ------------------------------------------------------------------ schemas */

struct queue {
    const kl__schema **v;
    size_t len, cap;
};

static void want(struct queue *q, const kl__schema *s)
{
    for (size_t i = 0; i < q->len; i++)
        if (q->v[i] == s)
            return;
    if (q->len == q->cap) {
        q->cap = q->cap ? q->cap * 2 : 64;
        q->v = kl_realloc(q->v, q->cap * sizeof *q->v);
    }
    q->v[q->len++] = s;
}

static void strings(kl_builder *b, const char *key, char *const *list)
{
    kl_build_key(b, key);
    kl_build_array(b);
    for (; *list; list++)
        kl_build_str(b, *list);
    kl_build_end(b);
}

static void either(kl_builder *b, const char *one, const char *other)
{
    kl_build_key(b, "oneOf");
    kl_build_array(b);
    for (int i = 0; i < 2; i++) {
        kl_build_object(b);
        kl_build_kstr(b, "type", i ? other : one);
        kl_build_end(b);
    }
    kl_build_end(b);
}

static void fields(kl_builder *b, const kl__schema *s, struct queue *q);

/* A built-in type: the members of its JSON schema. */
static void schema(kl_builder *b, const kl__schema *s, struct queue *q)
{
    static const char *const words[] = {NULL, "object", "object", "array", "string", "integer", "number",
        "boolean", NULL, "string", "string", "string", NULL};
    kl_build_object(b);
    if (s->type == KL_S_STRUCT && s->name) {
        char *ref = kl_sprintf("#/components/schemas/%s", s->name);
        want(q, s);
        kl_build_key(b, "allOf");
        kl_build_array(b);
        kl_build_object(b);
        kl_build_kstr(b, "$ref", ref);
        kl_build_end(b);
        kl_build_end(b);
        kl_free(ref);
    } else {
        kl_build_kstr(b, "type", words[s->type]);
        if (s->type == KL_S_QUANTITY)
            either(b, "string", "number");
        if (s->type == KL_S_INT_OR_STRING)
            either(b, "integer", "string");
        if (s->type == KL_S_TIME || s->type == KL_S_MICROTIME)
            kl_build_kstr(b, "format", "date-time");
        if (s->type == KL_S_BYTES)
            kl_build_kstr(b, "format", "byte");
        if (s->type == KL_S_INT_OR_STRING)
            kl_build_kstr(b, "format", "int-or-string");
        if (s->items) {
            kl_build_key(b, s->type == KL_S_LIST ? "items" : "additionalProperties");
            schema(b, s->items, q);
        }
        if (s->type == KL_S_LIST) {
            kl_build_kstr(b, "x-kubernetes-list-type",
                s->list == KL_S_SET         ? "set"
                    : s->list == KL_S_KEYED ? "map"
                                            : "atomic");
            if (s->keys)
                strings(b, "x-kubernetes-list-map-keys", s->keys);
            kl_build_kstr(b, "x-kubernetes-patch-strategy", s->patch_merge ? "merge" : NULL);
            kl_build_kstr(b, "x-kubernetes-patch-merge-key", s->patch_key);
        }
    }
    kl_build_end(b);
}

static void fields(kl_builder *b, const kl__schema *s, struct queue *q)
{
    kl_build_kstr(b, "type", "object");
    kl_build_key(b, "properties");
    kl_build_object(b);
    for (size_t i = 0; i < s->nfields; i++) {
        kl_build_key(b, s->fields[i].name);
        schema(b, s->fields[i].schema, q);
    }
    kl_build_end(b);
}

/* What a CRD says, and what every object has: that is said by us, whatever the CRD says of it. */
static void custom_fields(kl_builder *b, const kl__kind *k, struct queue *q)
{
    static const char *const common[] = {"apiVersion", "kind", "metadata"};
    const kl_value *json = k->schema->json, *properties = kl_value_get(json, "properties");
    for (size_t i = 0; i < kl_value_len(json); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(json, i, &key, &n);
        if (strcmp(key, "properties"))
            kl_build_kvalue(b, key, v);
    }
    kl_build_key(b, "properties");
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(properties); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(properties, i, &key, &n);
        kl_build_kvalue(b, key, v);
    }
    for (int i = 0; i < 3; i++) {
        const kl__field *f = kl__schema_field(k->schema, common[i], strlen(common[i]));
        kl_build_key(b, common[i]);
        schema(b, f->schema, q);
    }
    kl_build_end(b);
}

static void kind_schema(kl_builder *b, const kl__kind *k, struct queue *q)
{
    char *name = component(k);
    kl_build_key(b, name);
    kl_build_object(b);
    if (k->custom && k->schema && k->schema->json)
        custom_fields(b, k, q);
    else if (k->schema)
        fields(b, k->schema, q);
    kl_build_key(b, "x-kubernetes-group-version-kind");
    kl_build_array(b);
    gvk(b, k);
    kl_build_end(b);
    kl_build_end(b);
    kl_free(name);
}

/* ------------------------------------------------------------------ documents */

static void document(kl_server *s, const char *group, const char *version, kl_httpd_request *http)
{
    kl_builder *b = kl_builder_new();
    struct queue q = {0};
    kl_build_object(b);
    kl_build_kstr(b, "openapi", "3.0.0");
    kl_build_key(b, "info");
    kl_build_object(b);
    kl_build_kstr(b, "title", "kubelua");
    kl_build_kstr(b, "version", "v1.34.3");
    kl_build_end(b);
    kl_build_key(b, "paths");
    kl_build_object(b);
    for (size_t i = 0; i < kl__kinds_len(s->kinds); i++) {
        const kl__kind *k = kl__kinds_at(s->kinds, i);
        if (strcmp(k->group, group) || strcmp(k->version, version) || !kl__kind_has_verb(k, "get"))
            continue;
        char *gv = kl__kind_api_version(k),
             *path = kl_sprintf("/%s/%s/%s%s/{name}", *group ? "apis" : "api", gv,
                 k->namespaced ? "namespaces/{namespace}/" : "", k->plural);
        kl_build_key(b, path);
        kl_build_object(b);
        operation(b, "get", "get", k, false);
        operation(b, "put", "put", k, true);
        operation(b, "patch", "patch", k, true);
        kl_build_end(b);
        kl_free(gv);
        kl_free(path);
    }
    kl_build_end(b);
    kl_build_key(b, "components");
    kl_build_object(b);
    kl_build_key(b, "schemas");
    kl_build_object(b);
    for (size_t i = 0; i < kl__kinds_len(s->kinds); i++) {
        const kl__kind *k = kl__kinds_at(s->kinds, i);
        if (!strcmp(k->group, group) && !strcmp(k->version, version))
            kind_schema(b, k, &q);
    }
    for (size_t i = 0; i < q.len; i++) {
        kl_build_key(b, q.v[i]->name);
        kl_build_object(b);
        fields(b, q.v[i], &q);
        kl_build_end(b);
    }
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    kl_free(q.v);
    send_tagged(http, b);
}

/* Another one whenever the kinds of the group version, or the schemas of custom ones, are others. */
static uint64_t hash_of(kl_server *s, const kl__kind *of)
{
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < kl__kinds_len(s->kinds); i++) {
        const kl__kind *k = kl__kinds_at(s->kinds, i);
        if (strcmp(k->group, of->group) || strcmp(k->version, of->version))
            continue;
        kl_buf_printf(&text, "%s\n", k->kind);
        if (k->custom && k->schema && k->schema->json)
            kl_value_encode(k->schema->json, &text);
    }
    uint64_t hash = kl_hash(kl_buf_str(&text), text.len);
    kl_buf_fini(&text);
    return hash;
}

static void index_page(kl_server *s, kl_httpd_request *http)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_key(b, "paths");
    kl_build_object(b);
    for (size_t i = 0; i < kl__kinds_len(s->kinds); i++) {
        const kl__kind *k = kl__kinds_at(s->kinds, i);
        char *gv = kl__kind_api_version(k), *path = kl_sprintf("%s/%s", *k->group ? "apis" : "api", gv),
             *url = kl_sprintf("/openapi/v3/%s?hash=%016" PRIX64, path, hash_of(s, k));
        kl_build_key(b, path);
        kl_build_object(b);
        kl_build_kstr(b, "serverRelativeURL", url);
        kl_build_end(b);
        kl_free(gv);
        kl_free(path);
        kl_free(url);
    }
    kl_build_end(b);
    kl_build_end(b);
    send_tagged(http, b);
}

bool kl__openapi(kl_server *s, const char *path, kl_httpd_request *http)
{
    if (!strcmp(path, "/openapi/v3") || !strcmp(path, "/openapi/v3/")) {
        index_page(s, http);
        return true;
    }
    if (!strcmp(path, "/openapi/v3/api/v1")) {
        document(s, "", "v1", http);
        return true;
    }
    static const char below[] = "/openapi/v3/apis/";
    if (strncmp(path, below, sizeof below - 1))
        return false;
    const char *group = path + sizeof below - 1, *slash = strchr(group, '/');
    char *name = slash ? kl_strndup(group, (size_t)(slash - group)) : NULL;
    bool ours = name && kl__kinds_has_group(s->kinds, name, slash + 1);
    if (ours)
        document(s, name, slash + 1, http);
    kl_free(name);
    return ours;
}
