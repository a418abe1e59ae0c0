/* health.c - what a probe, a scraper and a verifier of tokens ask: /healthz, /livez, /readyz, /metrics, and
 * the OpenID paths. Whoever gets an answer reaches a server that has started, so no check fails. */
#include "server/rest.h"

#include <string.h>

#include "base/mem.h"
#include "rbac/tokens.h"

#define TEXT "text/plain; charset=utf-8"
#define NOSNIFF "X-Content-Type-Options: nosniff\r\n"

/* kube-apiserver's names of what this server has, too. The last ones are of /readyz alone. */
static const char *const checks[] = {"ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown"};
#define CHECKS_OF_ALL 3
#define CHECKS_OF_READYZ (sizeof checks / sizeof *checks)

typedef struct excluding {
    size_t n; /* of the checks */
    bool check[CHECKS_OF_READYZ];
    kl_buf unknown;
} excluding;

static void exclude(void *arg, const char *value)
{
    excluding *e = arg;
    bool found = false;
    for (size_t i = 0; i < e->n; i++)
        if (!strcmp(checks[i], value))
            found = e->check[i] = true;
    if (!found)
        kl_buf_printf(&e->unknown, "%s\"%s\"", e->unknown.len ? "," : "", value);
}

static void reply_checks(const char *name, size_t n, kl_httpd_request *http)
{
    excluding e = {.n = n, .unknown = KL_BUF_INIT};
    kl_buf text = KL_BUF_INIT;
    kl_httpd_query_each(http, "exclude", exclude, &e);
    if (kl_httpd_query(http, "verbose")) {
        for (size_t i = 0; i < n; i++)
            kl_buf_printf(&text, "[+]%s %sok\n", checks[i], e.check[i] ? "excluded: " : "");
        if (e.unknown.len)
            kl_buf_printf(&text, "warn: some health checks cannot be excluded: no matches for %s\n",
                kl_buf_str(&e.unknown));
        kl_buf_printf(&text, "%s check passed\n", name);
    } else
        kl_buf_puts(&text, "ok");
    kl__reply_buf(http, 200, TEXT, NOSNIFF, &text);
    kl_buf_fini(&e.unknown);
}

static bool health(const char *path, kl_httpd_request *http)
{
    static const char *const names[] = {"healthz", "livez", "readyz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]), known = i == 2 ? CHECKS_OF_READYZ : CHECKS_OF_ALL;
        if (strncmp(path + 1, names[i], n) != 0)
            continue;
        const char *rest = path + 1 + n;
        if (!*rest) {
            reply_checks(names[i], known, http);
            return true;
        }
        for (size_t j = 0; *rest == '/' && j < known; j++)
            if (!strcmp(rest + 1, checks[j])) {
                kl_httpd_reply(http, 200, TEXT, NULL, "ok", 2);
                return true;
            }
    }
    return false;
}

static void reply_metrics(const kl__world *w, kl_httpd_request *http)
{
    kl__bucket *const *all;
    size_t n = kl__store_buckets(w->store, &all);
    kl_buf text = KL_BUF_INIT;
    kl_buf_puts(&text,
        "# HELP apiserver_resource_objects [ALPHA] Number of stored objects split by kind.\n"
        "# TYPE apiserver_resource_objects gauge\n");
    for (size_t i = 0; i < n; i++)
        kl_buf_printf(&text, "apiserver_resource_objects{group=\"%s\",resource=\"%s\"} %zu\n", all[i]->group,
            all[i]->plural, all[i]->len);
    kl__reply_buf(http, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, &text);
}

static void reply_openid(const char *url, kl_httpd_request *http)
{
    char *text = kl_sprintf(
        "{\"issuer\":\"" KL_AUDIENCE "\",\"jwks_uri\":\"%s/openid/v1/jwks\","
        "\"response_types_supported\":[\"id_token\"],\"subject_types_supported\":[\"public\"],"
        "\"id_token_signing_alg_values_supported\":[\"RS256\"]}",
        url);
    kl_httpd_reply(http, 200, "application/json", NULL, text, strlen(text));
    kl_free(text);
}

static void reply_keys(kl__issuer *issuer, kl_httpd_request *http)
{
    kl_buf text = KL_BUF_INIT;
    kl__issuer_keys(issuer, &text);
    kl__reply_buf(http, 200, "application/jwk-set+json", NULL, &text);
}

bool kl__health(kl_server *s, const char *path, kl_httpd_request *http)
{
    if (strcmp(kl_httpd_method(http), "GET") != 0)
        return false;
    if (health(path, http))
        return true;
    if (!strcmp(path, "/metrics"))
        reply_metrics(&s->world, http);
    else if (!strcmp(path, "/.well-known/openid-configuration"))
        reply_openid(s->url, http);
    else if (!strcmp(path, "/openid/v1/jwks"))
        reply_keys(s->world.issuer, http);
    else
        return false;
    return true;
}
