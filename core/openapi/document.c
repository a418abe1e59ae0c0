/* document.c - puts documents together: paths, the definitions of built-in kinds that they need, and those of
 * CRDs. The definitions of built-in kinds are copied as text in v3, and change their form one by one in v2: a
 * complete document never exists as values. */
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "openapi/document.h"
#include "openapi/parts.h"
#include "schema/schema.h"

static bool chosen(const kl__kind *k, const char *group, const char *version)
{
    return !group || (!strcmp(k->group, group) && !strcmp(k->version, version));
}

/* Marks what the kinds of a group version need; `group` NULL: all of them. */
static void want(kl__definitions *d, const kl__kinds *kinds, const char *group, const char *version)
{
    for (size_t i = 0; i < kl__kinds_len(kinds); i++) {
        const kl__kind *k = kl__kinds_at(kinds, i);
        if (chosen(k, group, version))
            kl__openapi_want_kind(d, k);
    }
}

static void head(kl_builder *b, const char *format, const char *version)
{
    kl_build_kstr(b, format, version);
    kl_build_key(b, "info");
    kl_build_object(b);
    kl_build_kstr(b, "title", "Kubernetes");
    kl_build_kstr(b, "version", "1.34");
    kl_build_end(b);
    kl_build_key(b, "paths");
}

static void entry(kl_buf *out, bool *first, const char *name, const char *json, size_t n)
{
    kl_buf_printf(out, "%s\"%s\":", *first ? "" : ",", name);
    kl_buf_add(out, json, n);
    *first = false;
}

/* Takes the value. */
static void value_entry(kl_buf *out, bool *first, const char *name, const kl_value *v)
{
    char *json = kl_value_to_json(v);
    entry(out, first, name, json, strlen(json));
    kl_free(json);
    kl_value_unref(v);
}

/* An encoded object without its last brace, so that a member can follow. Takes the builder. */
static void open_object(kl_buf *out, kl_builder *b)
{
    const kl_value *v = kl_builder_done(b);
    char *json = kl_value_to_json(v);
    kl_buf_add(out, json, strlen(json) - 1);
    kl_free(json);
    kl_value_unref(v);
}

/* ------------------------------------------------------------------ which documents there are */

/* A document of v3: of a group version, whose first kind is `of`, or of a root. */
typedef struct page {
    const kl__kind *of;
    kl__root root;
    char *group; /* of KL_OPENAPI_GROUP; owned */
} page;

/* A kind of the group; version NULL: a built-in one of any version. */
static const kl__kind *kind_of(const kl__kinds *kinds, const char *group, const char *version)
{
    for (size_t i = 0; i < kl__kinds_len(kinds); i++) {
        const kl__kind *k = kl__kinds_at(kinds, i);
        if (!strcmp(k->group, group) && (version ? !strcmp(k->version, version) : !k->custom))
            return k;
    }
    return NULL;
}

/* Groups of CRDs have no document of their own. */
static bool find(const kl__kinds *kinds, const char *path, page *out)
{
    static const char *const roots[] = {
        [KL_OPENAPI_API] = "api",
        [KL_OPENAPI_APIS] = "apis",
        [KL_OPENAPI_ISSUER] = ".well-known/openid-configuration",
        [KL_OPENAPI_KEYS] = "openid/v1/jwks",
        [KL_OPENAPI_VERSION] = "version",
    };
    *out = (page){0};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (roots[i] && !strcmp(path, roots[i])) {
            out->root = (kl__root)i;
            return true;
        }
    if (!strncmp(path, "api/", 4))
        return (out->of = kind_of(kinds, "", path + 4));
    if (strncmp(path, "apis/", 5) || !path[5] || path[5] == '/')
        return false;
    const char *slash = strchr(path + 5, '/');
    char *group = kl_strndup(path + 5, slash ? (size_t)(slash - path - 5) : strlen(path + 5));
    const kl__kind *k = kind_of(kinds, group, slash ? slash + 1 : NULL);
    if (slash || !k) {
        kl_free(group);
        return (out->of = k);
    }
    out->root = KL_OPENAPI_GROUP;
    out->group = group;
    return true;
}

/* A hash that changes with the kinds of the group version, and with the schemas and subresources of custom
 * ones. */
static uint64_t hash_of(const kl__kinds *kinds, const page *p, const char *path)
{
    kl_buf text = KL_BUF_INIT;
    kl_buf_puts(&text, path);
    for (size_t i = 0; p->of && i < kl__kinds_len(kinds); i++) {
        const kl__kind *k = kl__kinds_at(kinds, i);
        if (!chosen(k, p->of->group, p->of->version))
            continue;
        kl_buf_printf(&text, "%s\n", k->kind);
        if (k->custom && k->schema && k->schema->json)
            kl_value_encode(k->schema->json, &text);
        for (size_t s = 0; k->custom && s < k->nsubs; s++)
            kl_buf_printf(&text, "/%s\n", k->subs[s].name);
    }
    uint64_t hash = kl_hash(kl_buf_str(&text), text.len);
    kl_buf_fini(&text);
    return hash;
}

bool kl_openapi_v3_hash(const kl__kinds *kinds, const char *path, uint64_t *hash)
{
    page p;
    bool found = find(kinds, path, &p);
    if (found)
        *hash = hash_of(kinds, &p, path);
    kl_free(p.group);
    return found;
}

static void index_entry(kl_builder *b, const kl__kinds *kinds, const char *path)
{
    uint64_t hash = 0;
    if (!kl_openapi_v3_hash(kinds, path, &hash))
        return;
    char *url = kl_sprintf("/openapi/v3/%s?hash=%016" PRIX64, path, hash);
    kl_build_key(b, path);
    kl_build_object(b);
    kl_build_kstr(b, "serverRelativeURL", url);
    kl_build_end(b);
    kl_free(url);
}

void kl_openapi_index(const kl__kinds *kinds, kl_buf *out)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_key(b, "paths");
    kl_build_object(b);
    index_entry(b, kinds, ".well-known/openid-configuration");
    index_entry(b, kinds, "api");
    index_entry(b, kinds, "apis");
    for (size_t i = 0; i < kl__kinds_len(kinds); i++) {
        const kl__kind *k = kl__kinds_at(kinds, i);
        char *gv = kl__kind_api_version(k), *path = kl_sprintf("%s/%s", *k->group ? "apis" : "api", gv),
             *group = kl_sprintf("apis/%s", k->group);
        if (*k->group && kl__openapi_begins(kinds, i, true))
            index_entry(b, kinds, group);
        if (kl__openapi_begins(kinds, i, false))
            index_entry(b, kinds, path);
        kl_free(gv);
        kl_free(path);
        kl_free(group);
    }
    index_entry(b, kinds, "openid/v1/jwks");
    index_entry(b, kinds, "version");
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    kl_value_encode(v, out);
    kl_value_unref(v);
}

/* ------------------------------------------------------------------ v3 */

typedef void take(kl_buf *out, const char *name, const kl_value *schema);

static void as_json(kl_buf *out, const char *name, const kl_value *schema)
{
    bool first = !out->len;
    value_entry(out, &first, name, kl_value_ref(schema));
}

/* Gives the definitions of CRDs' kinds in a group version, and of their lists. */
static void each_custom(
    const kl__kinds *kinds, const kl__definitions *d, const page *p, take *give, kl_buf *out)
{
    for (size_t i = 0; i < 2 * kl__kinds_len(kinds); i++) {
        const kl__kind *k = kl__kinds_at(kinds, i / 2);
        if (!p->of || !k->custom || !chosen(k, p->of->group, p->of->version))
            continue;
        char *name = kl__openapi_name(d, k, i % 2);
        const kl_value *v = i % 2 ? kl__openapi_custom_list(k) : kl__openapi_custom(k);
        give(out, name, v);
        kl_value_unref(v);
        kl_free(name);
    }
}

/* Head and paths: an open builder. */
static kl_builder *rest_v3(const kl__kinds *kinds, kl__definitions *d, const page *p)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    head(b, "openapi", "3.0.0");
    if (p->of) {
        want(d, kinds, p->of->group, p->of->version);
        kl__openapi_paths(b, kinds, d, p->of->group, p->of->version, KL_OPENAPI_V3);
    } else {
        kl_build_object(b);
        kl__openapi_root(b, d, KL_OPENAPI_V3, p->root, p->group ? p->group : "");
        kl_build_end(b);
    }
    kl_build_end(b);
    return b;
}

#define SECURITY_SCHEMES                                                                                     \
    "{\"BearerToken\":{\"type\":\"apiKey\",\"description\":\"Bearer Token authentication\","                 \
    "\"name\":\"authorization\",\"in\":\"header\"}}"

/* Documents of CRDs have no security schemes. */
static bool has_security(const page *p) { return !p->of || !p->of->custom; }

static void v3_json(const kl__kinds *kinds, kl__definitions *d, const page *p, kl_buf *out)
{
    kl_buf schemas = KL_BUF_INIT;
    open_object(out, rest_v3(kinds, d, p));
    each_custom(kinds, d, p, as_json, &schemas);
    bool first = !schemas.len;
    for (size_t i = 0; i < d->len; i++)
        if (d->v[i].wanted)
            entry(&schemas, &first, d->v[i].name, d->v[i].json, d->v[i].json_len);
    kl_buf_puts(out, ",\"components\":{\"schemas\":{");
    kl_buf_add(out, schemas.data, schemas.len);
    kl_buf_puts(out, "}");
    if (has_security(p))
        kl_buf_puts(out, ",\"securitySchemes\":" SECURITY_SCHEMES);
    kl_buf_puts(out, "}}");
    kl_buf_fini(&schemas);
}

static void v3_protobuf(const kl__kinds *kinds, kl__definitions *d, const page *p, kl_buf *out)
{
    kl_buf schemas = KL_BUF_INIT;
    const kl_value *rest = kl_builder_done(rest_v3(kinds, d, p)), *security = NULL, *v = NULL;
    each_custom(kinds, d, p, kl__gnostic_v3_definition, &schemas);
    for (size_t i = 0; i < d->len; i++) {
        if (!d->v[i].wanted || kl_value_decode(d->v[i].json, d->v[i].json_len, &v, NULL))
            continue;
        kl__gnostic_v3_definition(&schemas, d->v[i].name, v);
        kl_value_unref(v);
    }
    if (!has_security(p) || !kl_value_decode(SECURITY_SCHEMES, sizeof SECURITY_SCHEMES - 1, &security, NULL))
        kl__gnostic_v3(out, rest, &schemas, security);
    kl_value_unref(security);
    kl_value_unref(rest);
    kl_buf_fini(&schemas);
}

void kl_openapi_v3(const kl__kinds *kinds, const char *path, bool protobuf, kl_buf *out)
{
    kl__definitions d;
    page p;
    if (find(kinds, path, &p)) {
        kl__definitions_open(&d);
        (protobuf ? v3_protobuf : v3_json)(kinds, &d, &p, out);
        kl__definitions_close(&d);
    }
    kl_free(p.group);
}

/* ------------------------------------------------------------------ v2 */

/* Gives each definition in v2's form. */
static void each_v2(const kl__kinds *kinds, const kl__definitions *d, take *give, kl_buf *out)
{
    for (size_t i = 0; i < d->len; i++) {
        const kl_value *v3 = NULL, *v2;
        if (!d->v[i].wanted || kl_value_decode(d->v[i].json, d->v[i].json_len, &v3, NULL))
            continue;
        v2 = kl__openapi_to_v2(v3);
        give(out, d->v[i].name, v2);
        kl_value_unref(v2);
        kl_value_unref(v3);
    }
    for (size_t i = 0; i < 2 * kl__kinds_len(kinds); i++) {
        const kl__kind *k = kl__kinds_at(kinds, i / 2);
        if (!k->custom)
            continue;
        char *name = kl__openapi_name(d, k, i % 2);
        const kl_value *v3 = i % 2 ? kl__openapi_custom_list(k) : kl__openapi_custom(k);
        const kl_value *v2 = kl__openapi_to_v2(v3);
        give(out, name, v2);
        kl_value_unref(v2);
        kl_value_unref(v3);
        kl_free(name);
    }
}

/* The document without its definitions: an open builder. */
static kl_builder *rest_v2(const kl__kinds *kinds, kl__definitions *d)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    head(b, "swagger", "2.0");
    kl__openapi_paths(b, kinds, d, NULL, NULL, KL_OPENAPI_V2);
    kl_build_end(b);
    return b;
}

void kl_openapi_v2(const kl__kinds *kinds, kl_buf *out)
{
    kl__definitions d;
    kl_buf definitions = KL_BUF_INIT;
    kl__definitions_open(&d);
    want(&d, kinds, NULL, NULL);
    open_object(out, rest_v2(kinds, &d));
    each_v2(kinds, &d, as_json, &definitions);
    kl_buf_puts(out, ",\"definitions\":{");
    kl_buf_add(out, definitions.data, definitions.len);
    kl_buf_puts(out,
        "},\"securityDefinitions\":{\"BearerToken\":{\"description\":\"Bearer Token authentication\","
        "\"type\":\"apiKey\",\"name\":\"authorization\",\"in\":\"header\"}},"
        "\"security\":[{\"BearerToken\":[]}]}");
    kl_buf_fini(&definitions);
    kl__definitions_close(&d);
}

void kl_openapi_v2_protobuf(const kl__kinds *kinds, kl_buf *out)
{
    kl__definitions d;
    kl_buf definitions = KL_BUF_INIT;
    kl__definitions_open(&d);
    want(&d, kinds, NULL, NULL);
    const kl_value *rest = kl_builder_done(rest_v2(kinds, &d));
    each_v2(kinds, &d, kl__gnostic_v2_definition, &definitions);
    kl__gnostic_v2(out, rest, &definitions);
    kl_value_unref(rest);
    kl_buf_fini(&definitions);
    kl__definitions_close(&d);
}
