/* openapi.c - /openapi/v3 and /openapi/v2: find the requested document and its form, and tell how long a
 * client may cache it. core/openapi makes the documents.
 *
 * The index gives the URL of each document with a hash of its contents. A client that requests this hash may
 * cache the answer forever; a request with an old hash is redirected to the new one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "discovery/discovery.h"
#include "openapi/document.h"
#include "server/reply.h"
#include "server/rest.h"
#include "show/answer.h"
#include "schema/schema.h"
#include "schema/status.h"

#define V2_PROTOBUF "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
#define V3_PROTOBUF "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"

/* ------------------------------------------------------------------ discovery */

static void refuse_method(kl_httpd_request *http)
{
    kl_err err = KL_ERR_INIT;
    kl__fail_method(&err);
    kl__reply_error(http, NULL, &err);
    kl_err_fini(&err);
}

static void reply_page(kl_httpd_request *http, const kl_value *page, kl_show_media media, const char *version)
{
    kl_buf body = KL_BUF_INIT;
    const char *plain = kl_show_media_type(kl_show_value(page, media, &body), false);
    char *type = version
        ? kl_sprintf("%s;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList", plain, version)
        : kl_strdup(plain);
    if (media == KL_MEDIA_JSON)
        kl__finish_json(http, &body);
    if (version)
        kl__reply_tagged(http, type, "Vary: Accept\r\nCache-Control: public\r\n", &body);
    else
        kl__reply_take(http, 200, type, NULL, &body);
    kl_free(type);
    kl_buf_fini(&body);
}

static bool version_page(kl_httpd_request *http)
{
    kl_err err = KL_ERR_INIT;
    kl_show_media media;
    if (strcmp(kl_httpd_method(http), "GET"))
        refuse_method(http);
    else if (kl_show_negotiate_page(KL_ROUTE_JSON, kl_httpd_header(http, "Accept"), &media, &err))
        kl__reply_error(http, NULL, &err);
    else
        kl_httpd_reply(
            http, 200, "application/json", NULL, kl_discovery_version, strlen(kl_discovery_version));
    kl_err_fini(&err);
    return true;
}

bool kl__discovery(kl_server *s, const char *path, kl_httpd_request *http)
{
    if (kl_discovery_is(path, "/version"))
        return version_page(http);
    if (strncmp(path, "/api", 4) != 0)
        return false;
    const kl_discovery d = {.kinds = s->world.kinds,
        .services = kl__store_bucket(s->world.store, "apiregistration.k8s.io", "apiservices"),
        .address = kl_httpd_address(s->httpd)};
    const char *accept = kl_httpd_header(http, "Accept");
    kl_show_media media;
    kl_err err = KL_ERR_INIT;
    kl_discovery_answer a;
    bool root = kl_discovery_is(path, "/api") || !strcmp(path, "/apis");
    const char *version = root ? kl_show_aggregated(accept, &media) : NULL;
    if (!kl_discovery_page(&d, path, version, &a))
        return false;
    /* groups are served by any method */
    bool groups = !strncmp(path, "/apis", 5) && !strchr(path + 5 + strspn(path + 5, "/"), '/');
    if (strcmp(kl_httpd_method(http), "GET") && !groups)
        refuse_method(http);
    else if (a.text)
        kl_httpd_reply(http, a.code, "text/plain; charset=utf-8", NULL, a.text, strlen(a.text));
    else if (!version
        && kl_show_negotiate_page(a.routed ? KL_ROUTE_ALL : KL_ROUTE_NONE, accept, &media, &err))
        kl__reply_error(http, NULL, &err);
    else
        reply_page(http, a.page, media, version);
    kl_value_unref(a.page);
    kl_err_fini(&err);
    return true;
}

/* ------------------------------------------------------------------ OpenAPI */

static void index_page(kl_server *s, kl_httpd_request *http)
{
    kl_buf body = KL_BUF_INIT;
    kl_openapi_index(s->world.kinds, &body);
    kl__reply_take(http, 200, "text/plain; charset=utf-8", NULL, &body);
    kl_buf_fini(&body);
}

/* Clients accept "...spec.v3@v1.0+protobuf" and get "...spec.v3.v1.0+protobuf". */
#define V2_ASKED "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
#define V3_ASKED "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"

/* The place of the type that the client prefers among "application/json" and those in `protobuf`
 * (NULL-terminated): 0 is JSON, -1: it accepts none of them. */
static int preferred(kl_httpd_request *http, const char *const *protobuf)
{
    const char *types[4] = {"application/json"};
    for (size_t i = 0; protobuf[i]; i++)
        types[i + 1] = protobuf[i];
    return kl_show_prefers(kl_httpd_header(http, "Accept"), types);
}

static void not_acceptable(kl_httpd_request *http, const char *headers)
{
    kl_httpd_reply(http, 406, NULL, headers, "", 0);
}

/* Answers with one document of v3, requested with a hash or without. False: there is no such document. */
static bool v3(kl_server *s, const char *name, const char *path, kl_httpd_request *http)
{
    static const char *const types[] = {V3_ASKED, V3_PROTOBUF, NULL};
    const char *asked = kl_httpd_query(http, "hash"), *known = kl_httpd_header(http, "If-None-Match");
    uint64_t is;
    char hash[17], quoted[20];
    if (!kl_openapi_v3_hash(s->world.kinds, name, &is))
        return false;
    snprintf(hash, sizeof hash, "%016" PRIX64, is);
    snprintf(quoted, sizeof quoted, "\"%s\"", hash);
    int choice = preferred(http, types);
    bool same = asked && !strcmp(asked, hash), protobuf = choice > 0;
    const char *type = protobuf ? V3_PROTOBUF : "application/json";
    char *headers = same
        ? kl_sprintf("ETag: %s\r\nCache-Control: public, immutable, max-age=31536000\r\n"
                     "Vary: Accept\r\n",
            quoted)
        : kl_sprintf("ETag: %s\r\nCache-Control: no-cache, private\r\nVary: Accept\r\n", quoted);
    if (choice < 0)
        not_acceptable(http, "Vary: Accept\r\n");
    else if (asked && *asked && !same) {
        char *moved = kl_sprintf("%sLocation: %s?hash=%s\r\n", headers, path, hash);
        kl_httpd_reply(http, 301, type, moved, "", 0);
        kl_free(moved);
    } else if (known && !strcmp(known, quoted))
        kl_httpd_reply(http, 304, type, headers, "", 0);
    else {
        kl_buf body = KL_BUF_INIT;
        kl_openapi_v3(s->world.kinds, name, protobuf, &body);
        kl_httpd_reply_take(http, 200, type, headers, &body);
        kl_buf_fini(&body);
    }
    kl_free(headers);
    return true;
}

static void v2(kl_server *s, kl_httpd_request *http)
{
    static const char *const types[] = {V2_ASKED, V2_PROTOBUF, NULL};
    static const char vary[] = "Vary: Accept-Encoding\r\nVary: Accept\r\n";
    int choice = preferred(http, types);
    kl_buf body = KL_BUF_INIT;
    if (choice < 0) {
        not_acceptable(http, vary);
        return;
    }
    if (choice)
        kl_openapi_v2_protobuf(s->world.kinds, &body);
    else
        kl_openapi_v2(s->world.kinds, &body);
    kl__reply_tagged(http, choice ? V2_PROTOBUF : "application/json", vary, &body);
    kl_buf_fini(&body);
}

bool kl__openapi(kl_server *s, const char *path, kl_httpd_request *http)
{
    static const char below[] = "/openapi/v3/";
    if (!strcmp(path, "/openapi/v2")) {
        v2(s, http);
        return true;
    }
    if (!strcmp(path, "/openapi/v3")) {
        index_page(s, http);
        return true;
    }
    if (strncmp(path, below, sizeof below - 1) != 0)
        return false;
    if (!v3(s, path + sizeof below - 1, path, http))
        kl_httpd_reply(http, 404, NULL, NULL, "", 0);
    return true;
}
