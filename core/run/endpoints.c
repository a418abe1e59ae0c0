/* endpoints.c - answers in the formats that Prometheus and kubelet probes expect (controller-runtime's health text). */
#include "run/endpoints.h"

#include <stdio.h>
#include <string.h>

#include "base/httpd.h"
#include "base/log.h"
#include "base/mem.h"

struct kl_endpoints {
    kl_manager *m;
    kl_httpd *metrics, *health;            /* the same when they share an address */
};

static void reply_text(kl_httpd_request *r, int code, const char *type, const char *text)
{
    kl_httpd_reply(r, code, type, "X-Content-Type-Options: nosniff\r\n", text, strlen(text));
}

/* One check: its line, and whether it counts as failed. */
static bool check(kl_buf *out, const char *name, const char *problem)
{
    if (problem)
        kl_buf_printf(out, "[-]%s failed: %s\n", name, problem);
    else
        kl_buf_printf(out, "[+]%s ok\n", name);
    return !problem;
}

static void health(kl_endpoints *e, kl_httpd_request *r, const char *what, bool readiness)
{
    const char *only = kl_httpd_path(r) + strlen(what) + 1, *exclude = kl_httpd_query(r, "exclude");
    if (*only)
        only++;
    kl_buf out = KL_BUF_INIT;
    bool good = true, found = !*only;
    if (!*only || !strcmp(only, "ping")) {
        found = true;
        check(&out, "ping", NULL);
    }
    kl_controller_state *states = NULL;
    size_t n = readiness ? kl_manager_controllers(e->m, &states) : 0;
    for (size_t i = 0; i < n; i++) {
        if ((*only && strcmp(only, states[i].name)) || (exclude && !strcmp(exclude, states[i].name)))
            continue;
        found = true;
        bool up = !strcmp(states[i].state, "running") || !strcmp(states[i].state, "waiting for leadership");
        char *why = up ? NULL : kl_sprintf("%s%s%s", states[i].state, states[i].message ? ": " : "", states[i].message ? states[i].message : "");
        good &= check(&out, states[i].name, why);
        kl_free(why);
    }
    kl_controller_states_free(states, n);
    if (!found)
        reply_text(r, 404, "text/plain; charset=utf-8", "no such check\n");
    else if (!good) {
        kl_buf_printf(&out, "%s check failed\n", what);
        reply_text(r, 500, "text/plain; charset=utf-8", kl_buf_str(&out));
    } else if (kl_httpd_query(r, "verbose")) {
        kl_buf_printf(&out, "%s check passed\n", what);
        reply_text(r, 200, "text/plain; charset=utf-8", kl_buf_str(&out));
    } else {
        reply_text(r, 200, "text/plain; charset=utf-8", "ok");
    }
    kl_buf_fini(&out);
}

/* "/healthz" itself or a check below it. */
static bool is_below(const char *path, const char *root)
{
    size_t n = strlen(root);
    return !strncmp(path, root, n) && (!path[n] || path[n] == '/');
}

static void handle(void *arg, kl_httpd_request *r)
{
    kl_endpoints *e = arg;
    const char *path = kl_httpd_path(r);
    if (strcmp(kl_httpd_method(r), "GET") && strcmp(kl_httpd_method(r), "HEAD")) {
        reply_text(r, 405, "text/plain; charset=utf-8", "only GET is answered here\n");
    } else if (!strcmp(path, "/metrics")) {
        char *text = kl_manager_metrics(e->m);
        reply_text(r, 200, "text/plain; version=0.0.4; charset=utf-8", text);
        kl_free(text);
    } else if (is_below(path, "/healthz") || is_below(path, "/livez")) {
        health(e, r, is_below(path, "/livez") ? "livez" : "healthz", false);
    } else if (is_below(path, "/readyz")) {
        health(e, r, "readyz", true);
    } else {
        reply_text(r, 404, "text/plain; charset=utf-8", "try /metrics, /healthz or /readyz\n");
    }
}

kl_status kl_endpoints_start(kl_manager *m, const char *metrics_address, const char *health_address, kl_endpoints **out, kl_err *err)
{
    kl_endpoints *e = kl_new(kl_endpoints);
    e->m = m;
    kl_status st = KL_OK;
    if (metrics_address && (st = kl_httpd_start(&(kl_httpd_options){.listen = metrics_address, .handler = handle, .arg = e}, &e->metrics, err)))
        kl_err_prefix(err, "--metrics-bind-address %s", metrics_address);
    if (!st && health_address) {
        if (metrics_address && !strcmp(metrics_address, health_address))
            e->health = e->metrics;
        else if ((st = kl_httpd_start(&(kl_httpd_options){.listen = health_address, .handler = handle, .arg = e}, &e->health, err)))
            kl_err_prefix(err, "--health-probe-bind-address %s", health_address);
    }
    if (st) {
        kl_endpoints_stop(e);
        return st;
    }
    if (e->metrics)
        kl_info("serving metrics", "address=%s", kl_httpd_address(e->metrics));
    if (e->health)
        kl_info("serving health probes", "address=%s", kl_httpd_address(e->health));
    *out = e;
    return KL_OK;
}

void kl_endpoints_stop(kl_endpoints *e)
{
    if (!e)
        return;
    if (e->health != e->metrics)
        kl_httpd_stop(e->health);
    kl_httpd_stop(e->metrics);
    kl_free(e);
}

const char *kl_endpoints_metrics_address(kl_endpoints *e) { return e && e->metrics ? kl_httpd_address(e->metrics) : NULL; }
const char *kl_endpoints_health_address(kl_endpoints *e) { return e && e->health ? kl_httpd_address(e->health) : NULL; }
