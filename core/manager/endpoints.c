/* endpoints.c - which path is answered on which socket: metrics from the manager (behind the gate, where
 * there is one), health from the manager's checks. */
#include "manager/endpoints.h"

#include <string.h>

#include "base/certdir.h"
#include "httpd/httpd.h"
#include "httpd/listen.h"
#include "base/keyring.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "metrics/health.h"
#include "metrics/metrics.h"
#include "observe/metrics_gate.h"

typedef struct listener {
    kl_endpoints *e;
    kl_httpd *httpd;
    bool metrics, health;
    bool loopback; /* nothing but its address keeps others away */
} listener;

struct kl_endpoints {
    kl_manager *m;
    kl_metrics *metrics;
    listener first, second; /* metrics; health, unless they share an address */
    kl_keyring *ring;
    kl_certdir *certs;
    kl_metrics_gate *gate;
    kl_mutex mu;
    char *told; /* the unready checks of the last request */
};

#define TEXT "text/plain; charset=utf-8"

static void reply_text(kl_httpd_request *r, int code, const char *type, const char *text)
{
    kl_httpd_reply(r, code, type, "X-Content-Type-Options: nosniff\r\n", text, strlen(text));
}

/* A web page of a stranger sends its own name as the Host, also when that name leads to this machine (DNS
 * rebinding). Clients of HTTP/1.0 send none. */
static bool by_stranger(const kl_httpd_request *r)
{
    const char *host = kl_httpd_header(r, "Host");
    return host && !kl_httpd_peer(r, NULL, NULL) && !kl_listen_own_name(host);
}

/* --- health ------------------------------------------------------------------------------- */

/* Logs unready checks, once per change: a probe comes every few seconds. */
static void tell(kl_endpoints *e, char *failures)
{
    kl_lock(&e->mu);
    bool news = failures ? !e->told || strcmp(e->told, failures) : e->told != NULL;
    char *old = e->told;
    if (news)
        e->told = failures;
    kl_unlock(&e->mu);
    if (news && failures)
        kl_warn("not ready", "checks=%s", kl_log_quoted(failures));
    else if (news)
        kl_info("ready", "checks=%s", "all");
    kl_free(news ? old : failures);
}

typedef struct words {
    char **v;
    size_t n;
} words;

static void take_word(void *arg, const char *value)
{
    words *w = arg;
    w->v = kl_realloc(w->v, (w->n + 1) * sizeof *w->v);
    w->v[w->n++] = kl_strdup(value);
}

static void health(kl_endpoints *e, kl_httpd_request *r, const char *below, bool readiness)
{
    kl_checks checks = {0};
    words exclude = {0};
    kl_buf out = KL_BUF_INIT;
    kl_manager_checks(e->m, readiness, &checks);
    kl_httpd_query_each(r, "exclude", take_word, &exclude);
    int code = kl_health_answer(&checks,
        &(kl_health_query){.only = *below ? below + 1 : NULL,
            .exclude = exclude.v,
            .n_exclude = exclude.n,
            .verbose = kl_httpd_query(r, "verbose") != NULL,
            .reasons = kl_httpd_from_loopback(r) && !by_stranger(r)},
        &out);
    if (readiness)
        tell(e, kl_health_failures(&checks));
    reply_text(r, code, TEXT, kl_buf_str(&out));
    for (size_t i = 0; i < exclude.n; i++)
        kl_free(exclude.v[i]);
    kl_free(exclude.v);
    kl_buf_fini(&out);
    kl_checks_fini(&checks);
}

/* --- metrics ------------------------------------------------------------------------------ */

static void certificate_read(void *arg, bool good)
{
    kl_metrics_certificate(((kl_endpoints *)arg)->metrics, good);
}

static void reply_metrics(void *arg, kl_httpd_request *r)
{
    kl_endpoints *e = arg;
    char *text = kl_manager_metrics(e->m);
    reply_text(r, 200, "text/plain; version=0.0.4; charset=utf-8", text);
    kl_free(text);
}

/* --- requests ----------------------------------------------------------------------------- */

/* What follows `root` in the path: "", or "/..." without a slash at the end; NULL when it is another path. */
static char *below(const char *path, const char *root)
{
    size_t n = strlen(root);
    if (strncmp(path, root, n) || (path[n] && path[n] != '/'))
        return NULL;
    size_t len = strlen(path + n);
    while (len && path[n + len - 1] == '/')
        len--;
    return kl_strndup(path + n, len);
}

static bool handle_health(kl_endpoints *e, kl_httpd_request *r)
{
    static const struct {
        const char *root;
        bool readiness;
    } ROOTS[] = {{"/healthz", false}, {"/livez", false}, {"/readyz", true}};
    for (size_t i = 0; i < sizeof ROOTS / sizeof *ROOTS; i++) {
        char *rest = below(kl_httpd_path(r), ROOTS[i].root);
        if (!rest)
            continue;
        health(e, r, rest, ROOTS[i].readiness);
        kl_free(rest);
        return true;
    }
    return false;
}

static void handle(void *arg, kl_httpd_request *r)
{
    listener *l = arg;
    kl_endpoints *e = l->e;
    if (strcmp(kl_httpd_method(r), "GET") && strcmp(kl_httpd_method(r), "HEAD"))
        reply_text(r, 405, TEXT, "only GET is supported here\n");
    else if (l->loopback && by_stranger(r))
        reply_text(r, 403, TEXT,
            "this process listens on the loopback address and answers only to localhost, to addresses, and "
            "to "
            "names of Services that end in .svc or .svc.cluster.local\n");
    else if (l->metrics && !strcmp(kl_httpd_path(r), "/metrics") && e->gate)
        kl_metrics_gate_ask(e->gate, r);
    else if (l->metrics && !strcmp(kl_httpd_path(r), "/metrics"))
        reply_metrics(e, r);
    else if (!l->health || !handle_health(e, r))
        reply_text(r, 404, TEXT,
            l->metrics && l->health ? "try /metrics, /healthz or /readyz\n"
                : l->metrics        ? "try /metrics\n"
                                    : "try /healthz or /readyz\n");
}

/* --- start and stop ----------------------------------------------------------------------- */

static kl_status listen_on(listener *l, const char *address, kl_keyring *tls, const char *option, kl_err *err)
{
    l->loopback = kl_listen_loopback(address) && !tls && !(l->metrics && l->e->gate);
    kl_status st = kl_httpd_start(
        &(kl_httpd_options){.listen = address, .no_bodies = true, .tls = tls, .handler = handle, .arg = l},
        &l->httpd, err);
    if (st)
        kl_err_prefix(err, "%s %s", option, address);
    return st;
}

static kl_status start_metrics(kl_endpoints *e, const kl_endpoints_options *o, kl_err *err)
{
    kl_status st = KL_OK;
    if (o->metrics_cert_dir) {
        e->ring = kl_keyring_new();
        st = kl_certdir_start(o->metrics_cert_dir, "metrics", e->ring, certificate_read, e, &e->certs, err);
        if (st)
            kl_err_prefix(err, "--metrics-cert-dir %s", o->metrics_cert_dir);
    }
    if (!st && o->metrics_auth)
        e->gate = kl_metrics_gate_new(o->client, o->clock, reply_metrics, e);
    if (!st)
        st = listen_on(&e->first, o->metrics_address, e->ring, "--metrics-bind-address", err);
    return st;
}

/* Port 0 twice means two free ports. */
static bool is_same(const char *a, const char *b)
{
    size_t n = a ? strlen(a) : 0;
    return a && b && !strcmp(a, b) && !(n > 1 && !strcmp(a + n - 2, ":0"));
}

kl_status kl_endpoints_start(kl_manager *m, const kl_endpoints_options *o, kl_endpoints **out, kl_err *err)
{
    bool shared = is_same(o->metrics_address, o->health_address);
    if ((o->metrics_cert_dir || o->metrics_auth) && !o->metrics_address)
        return kl_fail(err, KL_EINVAL, "--metrics-cert-dir and --metrics-auth need --metrics-bind-address");
    kl_endpoints *e = kl_new(kl_endpoints);
    e->m = m;
    e->metrics = o->metrics;
    kl_mutex_init(&e->mu);
    e->first = (listener){.e = e, .metrics = true, .health = shared};
    e->second = (listener){.e = e, .health = true};
    kl_status st = o->metrics_address ? start_metrics(e, o, err) : KL_OK;
    if (!st && o->health_address && !shared)
        st = listen_on(&e->second, o->health_address, NULL, "--health-probe-bind-address", err);
    if (st) {
        kl_endpoints_stop(e);
        return st;
    }
    if (e->first.httpd)
        kl_info("serving metrics", "address=%s tls=%s auth=%s", kl_httpd_address(e->first.httpd),
            e->ring ? "yes" : "no", e->gate ? "yes" : "no");
    if (o->health_address)
        kl_info("serving health probes", "address=%s", kl_endpoints_health_address(e));
    *out = e;
    return KL_OK;
}

void kl_endpoints_stop(kl_endpoints *e)
{
    if (!e)
        return;
    kl_metrics_gate *gate = e->gate;
    kl_httpd_stop(e->second.httpd);
    kl_metrics_gate_close(gate);
    kl_httpd_stop(e->first.httpd);
    kl_metrics_gate_free(gate);
    kl_certdir_stop(e->certs);
    kl_keyring_free(e->ring);
    kl_mutex_fini(&e->mu);
    kl_free(e->told);
    kl_free(e);
}

const char *kl_endpoints_metrics_address(kl_endpoints *e)
{
    return e && e->first.httpd ? kl_httpd_address(e->first.httpd) : NULL;
}

const char *kl_endpoints_health_address(kl_endpoints *e)
{
    const listener *l = !e ? NULL : e->first.health ? &e->first : &e->second;
    return l && l->httpd ? kl_httpd_address(l->httpd) : NULL;
}
