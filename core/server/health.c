/* health.c - the paths for probes, scrapers and verifiers of tokens: /healthz, /livez, /readyz, /metrics,
 * /metrics/slis, and the OpenID paths. A server that answers has started, so only one check can fail: while
 * objects are loaded, it is not in sync. There are no profiles: /debug/pprof is not found, as with
 * --profiling=false. */
#include "server/rest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rbac/tokens.h"
#include "server/reply.h"

#define TEXT "text/plain; charset=utf-8"
#define NOSNIFF "X-Content-Type-Options: nosniff\r\n"

/* kube-apiserver's checks, in its order. When this server answers, the work that they name is done. Some are
 * only in /readyz. */
static const struct check {
    const char *name;
    bool ready;
} checks[] = {
    {"ping", false},
    {"log", false},
    {"etcd", false},
    {"etcd-readiness", true},
    {"informer-sync", true},
    {"poststarthook/start-apiserver-admission-initializer", false},
    {"poststarthook/generic-apiserver-start-informers", false},
    {"poststarthook/max-in-flight-filter", false},
    {"poststarthook/storage-object-count-tracker-hook", false},
    {"poststarthook/start-apiextensions-informers", false},
    {"poststarthook/start-apiextensions-controllers", false},
    {"poststarthook/crd-informer-synced", false},
    {"poststarthook/start-system-namespaces-controller", false},
    {"poststarthook/start-cluster-authentication-info-controller", false},
    {"poststarthook/start-kube-apiserver-identity-lease-controller", false},
    {"poststarthook/start-kube-apiserver-identity-lease-garbage-collector", false},
    {"poststarthook/start-legacy-token-tracking-controller", false},
    {"poststarthook/start-service-ip-repair-controllers", false},
    {"poststarthook/rbac/bootstrap-roles", false},
    {"poststarthook/scheduling/bootstrap-system-priority-classes", false},
    {"poststarthook/priority-and-fairness-config-producer", false},
    {"poststarthook/bootstrap-controller", false},
    {"poststarthook/start-kubernetes-service-cidr-controller", false},
    {"poststarthook/start-kube-aggregator-informers", false},
    {"poststarthook/apiservice-status-local-available-controller", false},
    {"poststarthook/apiservice-status-remote-available-controller", false},
    {"poststarthook/apiservice-registration-controller", false},
    {"poststarthook/apiservice-discovery-controller", false},
    {"poststarthook/kube-apiserver-autoregistration", false},
    {"autoregister-completion", false},
    {"poststarthook/apiservice-openapi-controller", false},
    {"poststarthook/apiservice-openapiv3-controller", false},
    {"shutdown", true},
};
#define CHECKS (sizeof checks / sizeof *checks)

static const struct endpoint {
    const char *name;
    bool ready;
} endpoints[] = {{"healthz", false}, {"livez", false}, {"readyz", true}};
#define ENDPOINTS (sizeof endpoints / sizeof *endpoints)

/* How often each check of each endpoint ran. A check that a request names does not count, as in
 * kube-apiserver. */
struct kl__probed {
    uint64_t n[ENDPOINTS][CHECKS];
};

static bool has_check(const struct endpoint *d, size_t i) { return d->ready || !checks[i].ready; }

static bool fails(bool loading, size_t check)
{
    return loading && !strcmp(checks[check].name, "informer-sync");
}

typedef struct excluding {
    const struct endpoint *endpoint;
    bool check[CHECKS];
    kl_buf unknown;
} excluding;

static void exclude(void *arg, const char *value)
{
    excluding *e = arg;
    bool found = false;
    for (size_t i = 0; i < CHECKS; i++)
        if (has_check(e->endpoint, i) && !strcmp(checks[i].name, value))
            found = e->check[i] = true;
    if (!found)
        kl_buf_printf(&e->unknown, "%s\"%s\"", e->unknown.len ? "," : "", value);
}

static void reply_checks(kl_server *s, const struct endpoint *endpoint, kl_httpd_request *http)
{
    excluding e = {.endpoint = endpoint, .unknown = KL_BUF_INIT};
    kl_buf text = KL_BUF_INIT;
    kl_httpd_query_each(http, "exclude", exclude, &e);
    if (!s->probed)
        s->probed = kl_new(struct kl__probed);
    bool loading = s->loading, failed = false; /* one value for the whole answer */
    for (size_t i = 0; i < CHECKS; i++) {
        bool asked = has_check(endpoint, i) && !e.check[i];
        s->probed->n[endpoint - endpoints][i] += asked && !fails(loading, i);
        failed |= asked && fails(loading, i);
    }
    if (failed || kl_httpd_query(http, "verbose")) {
        for (size_t i = 0; i < CHECKS; i++)
            if (has_check(endpoint, i) && fails(loading, i) && !e.check[i])
                kl_buf_printf(&text, "[-]%s failed: reason withheld\n", checks[i].name);
            else if (has_check(endpoint, i))
                kl_buf_printf(&text, "[+]%s %sok\n", checks[i].name, e.check[i] ? "excluded: " : "");
        if (e.unknown.len)
            kl_buf_printf(&text, "warn: some health checks cannot be excluded: no matches for %s\n",
                kl_buf_str(&e.unknown));
        kl_buf_printf(&text, "%s check %s\n", endpoint->name, failed ? "failed" : "passed");
    } else
        kl_buf_puts(&text, "ok");
    kl__reply_buf(http, failed ? 500 : 200, TEXT, NOSNIFF, &text);
    kl_buf_fini(&e.unknown);
}

static bool health(kl_server *s, const char *path, kl_httpd_request *http)
{
    for (size_t i = 0; i < ENDPOINTS; i++) {
        size_t n = strlen(endpoints[i].name);
        if (strncmp(path + 1, endpoints[i].name, n) != 0)
            continue;
        const char *rest = path + 1 + n;
        if (!*rest) {
            reply_checks(s, &endpoints[i], http);
            return true;
        }
        for (size_t k = 0; *rest == '/' && k < CHECKS; k++)
            if (has_check(&endpoints[i], k) && !strcmp(rest + 1, checks[k].name)) {
                bool failed = fails(s->loading, k);
                const char *text = failed ? "internal server error: objects are being loaded" : "ok";
                kl_httpd_reply(http, failed ? 500 : 200, TEXT, NULL, text, strlen(text));
                return true;
            }
    }
    return false;
}

void kl__health_each(void (*each)(void *arg, const char *endpoint, const char *check), void *arg)
{
    for (size_t i = 0; i < ENDPOINTS; i++) {
        each(arg, endpoints[i].name, NULL);
        for (size_t k = 0; k < CHECKS; k++)
            if (has_check(&endpoints[i], k))
                each(arg, endpoints[i].name, checks[k].name);
    }
}

/* ------------------------------------------------------------------ counts, and keys of tokens */

#define METRICS "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

static void reply_metrics(const kl_server *s, kl_httpd_request *http, kl_buf *text)
{
    double started = (double)s->started / KL_SECONDS(1);
    kl_buf_printf(text,
        "# HELP process_start_time_seconds [ALPHA] Start time of the process since unix epoch in seconds.\n"
        "# TYPE process_start_time_seconds gauge\n"
        "process_start_time_seconds %.11e\n",
        started);
    char *header = kl_sprintf("Process-Start-Time-Unix: %.0f\r\n", started);
    kl__reply_buf(http, 200, METRICS, header, text);
    kl_free(header);
}

static void reply_counts(const kl_server *s, kl_httpd_request *http)
{
    kl__bucket *const *all;
    size_t n = kl__store_buckets(s->world.store, &all);
    kl_buf text = KL_BUF_INIT;
    kl_buf_puts(&text,
        "# HELP apiserver_resource_objects [ALPHA] Number of stored objects split by kind.\n"
        "# TYPE apiserver_resource_objects gauge\n");
    for (size_t i = 0; i < n; i++)
        kl_buf_printf(&text, "apiserver_resource_objects{group=\"%s\",resource=\"%s\"} %zu\n", all[i]->group,
            all[i]->plural, all[i]->len);
    reply_metrics(s, http, &text);
}

static int by_check(const void *a, const void *b)
{
    return strcmp(checks[*(const size_t *)a].name, checks[*(const size_t *)b].name);
}

/* Answers with the last result of each check that ran, and the number of its runs. */
static void reply_slis(const kl_server *s, kl_httpd_request *http)
{
    kl_buf text = KL_BUF_INIT, counts = KL_BUF_INIT;
    size_t sorted[CHECKS];
    for (size_t i = 0; i < CHECKS; i++)
        sorted[i] = i;
    qsort(sorted, CHECKS, sizeof *sorted, by_check);
    if (s->probed) {
        kl_buf_puts(&text,
            "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.\n"
            "# TYPE kubernetes_healthcheck gauge\n");
        kl_buf_puts(&counts,
            "# HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all "
            "healthcheck.\n"
            "# TYPE kubernetes_healthchecks_total counter\n");
    }
    for (size_t i = 0; s->probed && i < CHECKS; i++)
        for (size_t d = 0; d < ENDPOINTS; d++) {
            const char *name = checks[sorted[i]].name, *endpoint = endpoints[d].name;
            uint64_t n = s->probed->n[d][sorted[i]];
            if (!n)
                continue;
            kl_buf_printf(&text, "kubernetes_healthcheck{name=\"%s\",type=\"%s\"} 1\n", name, endpoint);
            kl_buf_printf(&counts,
                "kubernetes_healthchecks_total{name=\"%s\",status=\"success\",type=\"%s\"} %" PRIu64 "\n",
                name, endpoint, n);
        }
    kl_buf_add(&text, counts.data, counts.len);
    kl_buf_fini(&counts);
    reply_metrics(s, http, &text);
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

/* Whether a path is `page`, with or without slashes behind it. */
static bool is_below(const char *path, const char *page)
{
    size_t n = strlen(page);
    return !strncmp(path, page, n) && !path[n + strspn(path + n, "/")];
}

bool kl__health(kl_server *s, const char *path, kl_httpd_request *http)
{
    if (health(s, path, http)) /* by any method */
        return true;
    bool get = !strcmp(kl_httpd_method(http), "GET"),
         openid = is_below(path, "/.well-known/openid-configuration"),
         keys = is_below(path, "/openid/v1/jwks");
    if (!strcmp(path, "/metrics"))
        reply_counts(s, http);
    else if (!strcmp(path, "/metrics/slis"))
        reply_slis(s, http);
    else if ((openid || keys) && !get) {
        kl_err err = KL_ERR_INIT;
        kl__fail_method(&err);
        kl__reply_error(http, NULL, &err);
        kl_err_fini(&err);
    } else if (openid)
        reply_openid(s->url, http);
    else if (keys)
        reply_keys(s->world.issuer, http);
    else
        return false;
    return true;
}
