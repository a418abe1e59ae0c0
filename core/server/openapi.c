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

bool kl__discovery(kl_server *s, const char *path, kl_httpd_request *http)
{
    const kl_discovery d = {.kinds = s->world.kinds,
        .services = kl__store_bucket(s->world.store, "apiregistration.k8s.io", "apiservices"),
        .address = kl_httpd_address(s->httpd)};
    kl_discovery_answer a;
    if (!kl_discovery_page(&d, path, kl_httpd_header(http, "Accept"), &a))
        return false;
    /* groups are served by any method */
    bool groups = !strncmp(path, "/apis", 5) && !strchr(path + 5 + strspn(path + 5, "/"), '/');
    if (strcmp(kl_httpd_method(http), "GET") && !groups) {
        kl_discovery_answer_fini(&a);
        refuse_method(http);
        return true;
    }
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

static void index_page(kl_server *s, kl_httpd_request *http)
{
    kl_buf body = KL_BUF_INIT;
    kl_openapi_index(s->world.kinds, &body);
    kl__reply_take(http, 200, "text/plain; charset=utf-8", NULL, &body);
    kl_buf_fini(&body);
}

/* Clients accept "...spec.v3@v1.0+protobuf" and get "...spec.v3.v1.0+protobuf"; the first available type
 * counts. */
static bool prefers_protobuf(const char *accept)
{
    const char *protobuf = accept ? strstr(accept, "application/com.github.proto-openapi.spec.v3") : NULL,
               *json = accept ? strstr(accept, "application/json") : NULL;
    return protobuf && (!json || protobuf < json);
}

/* Whether the client accepts JSON, as it does without an Accept header. */
static bool accepts_json(kl_httpd_request *http)
{
    const char *accept = kl_httpd_header(http, "Accept");
    return !accept || strstr(accept, "application/json") || strstr(accept, "*/*")
        || strstr(accept, "application/*");
}

static void not_acceptable(kl_httpd_request *http)
{
    kl_httpd_reply(http, 406, NULL, "Vary: Accept\r\n", "", 0);
}

/* Answers with one document of v3, requested with a hash or without. False: there is no such document. */
static bool v3(kl_server *s, const char *name, const char *path, kl_httpd_request *http)
{
    const char *asked = kl_httpd_query(http, "hash"), *known = kl_httpd_header(http, "If-None-Match"),
               *accept = kl_httpd_header(http, "Accept");
    uint64_t is;
    char hash[17], quoted[20];
    if (!kl_openapi_v3_hash(s->world.kinds, name, &is))
        return false;
    snprintf(hash, sizeof hash, "%016" PRIX64, is);
    snprintf(quoted, sizeof quoted, "\"%s\"", hash);
    bool same = asked && !strcmp(asked, hash), protobuf = prefers_protobuf(accept);
    const char *type = protobuf ? V3_PROTOBUF : "application/json";
    char *headers = same
        ? kl_sprintf("ETag: %s\r\nCache-Control: public, immutable, max-age=31536000\r\n"
                     "Vary: Accept\r\n",
            quoted)
        : kl_sprintf("ETag: %s\r\nCache-Control: no-cache, private\r\nVary: Accept\r\n", quoted);
    if (!protobuf && !accepts_json(http))
        not_acceptable(http);
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

/* Clients accept "...spec.v2@v1.0+protobuf" and get "...spec.v2.v1.0+protobuf". */
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

bool kl__openapi(kl_server *s, const char *path, kl_httpd_request *http)
{
    static const char below[] = "/openapi/v3/";
    if (!strcmp(path, "/openapi/v2")) {
        v2(s, http);
        return true;
    }
    if (!strncmp(path, below, sizeof below - 1)
        && !path[strspn(path + sizeof below - 1, "/") + sizeof below - 1]) {
        kl_httpd_reply(http, 404, NULL, NULL, "", 0);
        return true;
    }
    if (!strcmp(path, "/openapi/v3")) {
        index_page(s, http);
        return true;
    }
    return !strncmp(path, below, sizeof below - 1) && v3(s, path + sizeof below - 1, path, http);
}
