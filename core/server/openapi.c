/* openapi.c - /openapi/v3 and /openapi/v2: which document is asked for, in which form, and how long a client
 * may keep it. The documents are made in core/openapi.
 *
 * The index names each document with a hash, under which it never changes: who asks with that hash may keep
 * the answer for ever, and who asks with an old one is sent to the new. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "discovery/discovery.h"
#include "openapi/document.h"
#include "server/rest.h"
#include "schema/schema.h"
#include "schema/status.h"

#define V2_PROTOBUF "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

/* ------------------------------------------------------------------ discovery */

void kl__reply_tagged(kl_httpd_request *http, const char *type, kl_buf *body)
{
    char etag[32], header[64];
    const char *known = kl_httpd_header(http, "If-None-Match");
    snprintf(etag, sizeof etag, "\"%016" PRIX64 "\"", kl_hash(body->data, body->len));
    snprintf(header, sizeof header, "ETag: %s\r\n", etag);
    if (known && !strcmp(known, etag))
        kl_httpd_reply(http, 304, type, header, "", 0);
    else
        kl__reply_take(http, 200, type, header, body);
}

bool kl__discovery(kl_server *s, const char *path, kl_httpd_request *http)
{
    const kl_discovery d = {
        s->world.kinds, kl__store_bucket(s->world.store, "apiregistration.k8s.io", "apiservices")};
    kl_discovery_answer a;
    if (strcmp(kl_httpd_method(http), "GET")
        || !kl_discovery_page(&d, path, kl_httpd_header(http, "Accept"), &a))
        return false;
    if (a.type && !a.lines && !strncmp(a.type, "application/json", sizeof "application/json" - 1))
        kl__finish_json(http, &a.body);
    if (a.tagged)
        kl__reply_tagged(http, a.type, &a.body);
    else
        kl__reply_take(http, a.code, a.type, NULL, &a.body);
    kl_discovery_answer_fini(&a);
    return true;
}

/* ------------------------------------------------------------------ OpenAPI */

/* Another one whenever the kinds of the group version, or the schemas of custom ones, are others. */
static uint64_t hash_of(kl_server *s, const kl__kind *of)
{
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < kl__kinds_len(s->world.kinds); i++) {
        const kl__kind *k = kl__kinds_at(s->world.kinds, i);
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
    for (size_t i = 0; i < kl__kinds_len(s->world.kinds); i++) {
        const kl__kind *k = kl__kinds_at(s->world.kinds, i);
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
    const kl_value *v = kl_builder_done(b);
    kl_buf body = KL_BUF_INIT;
    kl_value_encode(v, &body);
    kl_value_unref(v);
    kl__reply_tagged(http, "application/json", &body);
    kl_buf_fini(&body);
}

/* Whether the client takes JSON; without an Accept it does. */
static bool accepts_json(kl_httpd_request *http)
{
    const char *accept = kl_httpd_header(http, "Accept");
    return !accept || strstr(accept, "application/json") || strstr(accept, "*/*")
        || strstr(accept, "application/*");
}

static void not_acceptable(kl_httpd_request *http)
{
    kl_httpd_reply(http, 406, "text/plain; charset=utf-8", "Vary: Accept\r\n", "", 0);
}

/* One document of v3, under the hash that the client knows of it or none. */
static void v3(kl_server *s, const kl__kind *of, const char *path, kl_httpd_request *http)
{
    const char *asked = kl_httpd_query(http, "hash"), *known = kl_httpd_header(http, "If-None-Match");
    char hash[17], quoted[20];
    snprintf(hash, sizeof hash, "%016" PRIX64, hash_of(s, of));
    snprintf(quoted, sizeof quoted, "\"%s\"", hash);
    bool same = asked && !strcmp(asked, hash);
    char *headers = same
        ? kl_sprintf("ETag: %s\r\nCache-Control: public, immutable, max-age=31536000\r\n"
                     "Vary: Accept\r\n",
            quoted)
        : kl_sprintf("ETag: %s\r\nCache-Control: no-cache, private\r\nVary: Accept\r\n", quoted);
    if (!accepts_json(http))
        not_acceptable(http);
    else if (asked && *asked && !same) {
        char *moved = kl_sprintf("%sLocation: %s?hash=%s\r\n", headers, path, hash);
        kl_httpd_reply(http, 301, "application/json", moved, "", 0);
        kl_free(moved);
    } else if (known && !strcmp(known, quoted))
        kl_httpd_reply(http, 304, "application/json", headers, "", 0);
    else {
        kl_buf body = KL_BUF_INIT;
        kl_openapi_v3(s->world.kinds, of->group, of->version, &body);
        kl_httpd_reply_take(http, 200, "application/json", headers, &body);
        kl_buf_fini(&body);
    }
    kl_free(headers);
}

/* "...spec.v2@v1.0+protobuf" is what clients ask for, and "...spec.v2.v1.0+protobuf" what is answered. */
static void v2(kl_server *s, kl_httpd_request *http)
{
    const char *accept = kl_httpd_header(http, "Accept");
    bool protobuf = accept && strstr(accept, "application/com.github.proto-openapi.spec.v2");
    kl_buf body = KL_BUF_INIT;
    if (protobuf)
        kl_openapi_v2_protobuf(s->world.kinds, &body);
    else if (accepts_json(http))
        kl_openapi_v2(s->world.kinds, &body);
    if (body.len)
        kl__reply_tagged(http, protobuf ? V2_PROTOBUF : "application/json", &body);
    else
        not_acceptable(http);
    kl_buf_fini(&body);
}

/* The first kind of a group version, or NULL. */
static const kl__kind *first_of(const kl_server *s, const char *group, const char *version)
{
    for (size_t i = 0; i < kl__kinds_len(s->world.kinds); i++) {
        const kl__kind *k = kl__kinds_at(s->world.kinds, i);
        if (!strcmp(k->group, group) && !strcmp(k->version, version))
            return k;
    }
    return NULL;
}

/* "api/v1" or "apis/GROUP/VERSION"; NULL when that is not served. */
static const kl__kind *named_by(const kl_server *s, const char *rest)
{
    if (!strncmp(rest, "api/", 4))
        return first_of(s, "", rest + 4);
    const char *group = strncmp(rest, "apis/", 5) ? NULL : rest + 5,
               *slash = group ? strchr(group, '/') : NULL;
    if (!slash)
        return NULL;
    char *name = kl_strndup(group, (size_t)(slash - group));
    const kl__kind *k = *name ? first_of(s, name, slash + 1) : NULL;
    kl_free(name);
    return k;
}

bool kl__openapi(kl_server *s, const char *path, kl_httpd_request *http)
{
    static const char below[] = "/openapi/v3/";
    if (!strcmp(path, "/openapi/v2")) {
        v2(s, http);
        return true;
    }
    if (!strcmp(path, "/openapi/v3") || !strcmp(path, below)) {
        index_page(s, http);
        return true;
    }
    const kl__kind *of = strncmp(path, below, sizeof below - 1) ? NULL : named_by(s, path + sizeof below - 1);
    if (of)
        v3(s, of, path, http);
    return of != NULL;
}
