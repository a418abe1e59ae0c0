/* document.c - puts documents together: paths, the definitions of built-in kinds that they need, and those of
 * CRDs. The definitions of built-in kinds are copied as text in v3, and change their form one by one in v2: a
 * complete document never exists as values. */
#include <string.h>

#include "base/mem.h"
#include "openapi/document.h"
#include "openapi/parts.h"

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

void kl_openapi_v3(const kl__kinds *kinds, const char *group, const char *version, kl_buf *out)
{
    kl__definitions d;
    kl_builder *b = kl_builder_new();
    bool first = true;
    kl__definitions_open(&d);
    want(&d, kinds, group, version);
    kl_build_object(b);
    head(b, "openapi", "3.0.0");
    kl__openapi_paths(b, kinds, &d, group, version, KL_OPENAPI_V3);
    kl_build_end(b);
    open_object(out, b);
    kl_buf_puts(out, ",\"components\":{\"schemas\":{");
    for (size_t i = 0; i < kl__kinds_len(kinds); i++) {
        const kl__kind *k = kl__kinds_at(kinds, i);
        if (!chosen(k, group, version) || !k->custom)
            continue;
        char *name = kl__openapi_name(&d, k, false), *list = kl__openapi_name(&d, k, true);
        value_entry(out, &first, name, kl__openapi_custom(k));
        value_entry(out, &first, list, kl__openapi_custom_list(k));
        kl_free(name);
        kl_free(list);
    }
    for (size_t i = 0; i < d.len; i++)
        if (d.v[i].wanted)
            entry(out, &first, d.v[i].name, d.v[i].json, d.v[i].json_len);
    kl_buf_puts(out,
        "},\"securitySchemes\":{\"BearerToken\":{\"type\":\"apiKey\",\"description\":"
        "\"Bearer Token authentication\",\"name\":\"authorization\",\"in\":\"header\"}}}}");
    kl__definitions_close(&d);
}

/* ------------------------------------------------------------------ v2 */

typedef void take(kl_buf *out, const char *name, const kl_value *schema);

static void as_json(kl_buf *out, const char *name, const kl_value *schema)
{
    bool first = !out->len;
    value_entry(out, &first, name, kl_value_ref(schema));
}

/* Each definition in v2's form. */
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
static kl_builder *rest_v2(const kl__kinds *kinds, const kl__definitions *d)
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
    each_v2(kinds, &d, kl__gnostic_definition, &definitions);
    kl__gnostic_document(out, rest, &definitions);
    kl_value_unref(rest);
    kl_buf_fini(&definitions);
    kl__definitions_close(&d);
}
