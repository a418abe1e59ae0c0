/* metrics.c - a few fixed families, series made on first use.
 *
 * Samples of keys are atomic, and a scrape may see half a run; samples of requests are under one lock. */
#include "metrics/metrics.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/locks.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"

/* controller_runtime_reconcile_time_seconds (controller-runtime internal/controller/metrics) */
static const double RECONCILE_BUCKETS[] = {.005, .01, .025, .05, .1, .15, .2, .25, .3, .35, .4, .45, .5, .6,
    .7, .8, .9, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60};
/* workqueue histograms: prometheus.ExponentialBuckets(10e-9, 10, 12), which multiplies step by step; these
 * numbers have its rounding errors. */
static const double QUEUE_BUCKETS[] = {
    1e-08, 1e-07, 1e-06, 9.999999999999999e-06, 9.999999999999999e-05, 0.001, 0.01, 0.1, 1, 10, 100, 1000};
/* rest_client_request_duration_seconds (controller-runtime metrics/client_go_adapter) */
static const double REQUEST_BUCKETS[] = {.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60};

/* rest_client_request_size_bytes, rest_client_response_size_bytes */
static const double SIZE_BUCKETS[] = {
    64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216};

#define BUCKETS_MAX KL_HISTOGRAM_MAX
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

typedef struct histogram {
    const double *le;
    size_t n;
    /* observed units per exported unit: 1e9 for seconds, 1 for bytes */
    double unit;
    atomic_uint_fast64_t in[BUCKETS_MAX + 1]; /* not cumulative; the last is +Inf */
    _Atomic int64_t sum;
} histogram;

struct kl_controller_metrics {
    char *name;
    size_t users;   /* controllers of that name that have not ended; under mu */
    uint64_t ended; /* which end this was, counted from 1; 0: it has users, or never had any; under mu */
    atomic_int max_concurrent, active;
    atomic_uint_fast64_t total[KL_OUTCOMES], terminal, panics, timeouts, elided, own_writes_waits,
        own_writes_timeouts, outlived, loops, fights, spent[KL_SPENT], mapped; /* mapped: in ns */
    histogram reconcile, waited, worked;
};

typedef struct request_series {
    char *method, *host;
    int code;
    uint64_t n;
} request_series;

typedef struct latency_series {
    char *method, *host;
    histogram h;
} latency_series;

typedef struct lease_series {
    bool leading;
    uint64_t slow;
} lease_series;

struct kl_metrics {
    atomic_uint_fast64_t certificates, bad_certificates;
    kl_mutex mu;
    uint64_t ends KL_GUARDED_BY(mu);
    kl_map *controllers KL_GUARDED_BY(mu), *requests KL_GUARDED_BY(mu), *latencies KL_GUARDED_BY(mu),
        *retries KL_GUARDED_BY(mu), *delays KL_GUARDED_BY(mu), *lookups KL_GUARDED_BY(mu),
        *sent KL_GUARDED_BY(mu), *received KL_GUARDED_BY(mu), *leases KL_GUARDED_BY(mu);
};

static const char *const BUDGETS[KL_SPENT] = {"cpu", "timeout", "memory", "process"};
static const char *const OUTCOMES[KL_OUTCOMES] = {"success", "error", "requeue", "requeue_after"};

kl_metrics *kl_metrics_new(void)
{
    kl_metrics *m = kl_new(kl_metrics);
    kl_mutex_init_as(&m->mu, KL_LOCK_METRICS);
    m->controllers = kl_map_new();
    m->requests = kl_map_new();
    m->latencies = kl_map_new();
    m->retries = kl_map_new();
    m->delays = kl_map_new();
    m->lookups = kl_map_new();
    m->sent = kl_map_new();
    m->received = kl_map_new();
    m->leases = kl_map_new();
    return m;
}

static void controller_free(void *p)
{
    kl_controller_metrics *c = p;
    kl_free(c->name);
    kl_free(c);
}

static void request_free(void *p)
{
    request_series *s = p;
    kl_free(s->method);
    kl_free(s->host);
    kl_free(s);
}

static void latency_free(void *p)
{
    latency_series *s = p;
    kl_free(s->method);
    kl_free(s->host);
    kl_free(s);
}

void kl_metrics_free(kl_metrics *m)
{
    if (!m)
        return;
    kl_map_free(m->controllers, controller_free);
    kl_map_free(m->requests, request_free);
    kl_map_free(m->latencies, latency_free);
    kl_map_free(m->retries, request_free);
    kl_map_free(m->delays, latency_free);
    kl_map_free(m->lookups, latency_free);
    kl_map_free(m->sent, latency_free);
    kl_map_free(m->received, latency_free);
    kl_map_free(m->leases, kl_free);
    kl_mutex_fini(&m->mu);
    kl_free(m);
}

static void histogram_init(histogram *h, const double *le, size_t n, double unit)
{
    h->le = le;
    h->n = n;
    h->unit = unit;
}

static void observe(histogram *h, int64_t t)
{
    double s = (double)t / h->unit;
    size_t i = 0;
    while (i < h->n && s > h->le[i])
        i++;
    atomic_fetch_add_explicit(&h->in[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum, t, memory_order_relaxed);
}

static kl_controller_metrics *controller_locked(kl_metrics *m, const char *name, int max_concurrent)
    KL_REQUIRES(m->mu)
{
    kl_controller_metrics *c = kl_map_get(m->controllers, name);
    if (!c) {
        c = kl_new(kl_controller_metrics);
        c->name = kl_strdup(name);
        histogram_init(&c->reconcile, RECONCILE_BUCKETS, COUNT(RECONCILE_BUCKETS), 1e9);
        histogram_init(&c->waited, QUEUE_BUCKETS, COUNT(QUEUE_BUCKETS), 1e9);
        histogram_init(&c->worked, QUEUE_BUCKETS, COUNT(QUEUE_BUCKETS), 1e9);
        kl_map_set(m->controllers, name, c);
    }
    c->max_concurrent = max_concurrent;
    return c;
}

kl_controller_metrics *kl_metrics_controller(kl_metrics *m, const char *name, int max_concurrent)
{
    kl_lock(&m->mu);
    kl_controller_metrics *c = controller_locked(m, name, max_concurrent);
    kl_unlock(&m->mu);
    return c;
}

kl_controller_metrics *kl_metrics_enter(kl_metrics *m, const char *name, int max_concurrent)
{
    kl_lock(&m->mu);
    kl_controller_metrics *c = controller_locked(m, name, max_concurrent);
    c->users++;
    c->ended = 0;
    kl_unlock(&m->mu);
    return c;
}

/* The controller that ended first, when there are too many; or NULL. */
static kl_controller_metrics *oldest_locked(kl_metrics *m) KL_REQUIRES(m->mu)
{
    kl_controller_metrics *oldest = NULL;
    const char *name;
    void *value;
    size_t n = 0;
    for (size_t it = 0; kl_map_next(m->controllers, &it, &name, &value);) {
        kl_controller_metrics *c = value;
        n += c->ended > 0;
        if (c->ended && (!oldest || c->ended < oldest->ended))
            oldest = c;
    }
    return n > KL_METRICS_ENDED ? oldest : NULL;
}

void kl_metrics_leave(kl_metrics *m, kl_controller_metrics *c)
{
    kl_lock(&m->mu);
    if (!--c->users)
        c->ended = ++m->ends;
    kl_controller_metrics *old = oldest_locked(m);
    if (old)
        kl_map_take(m->controllers, old->name);
    kl_unlock(&m->mu);
    if (old)
        controller_free(old);
}

static void bump(atomic_uint_fast64_t *n) { atomic_fetch_add_explicit(n, 1, memory_order_relaxed); }

void kl_metrics_reconcile(kl_controller_metrics *c, kl_outcome outcome, kl_time took)
{
    bump(&c->total[outcome]);
    observe(&c->reconcile, took);
}

bool kl_metrics_latency(kl_metrics *m, const char *controller, bool waited, kl_histogram *out)
{
    kl_lock(&m->mu);
    kl_controller_metrics *c = kl_map_get(m->controllers, controller);
    kl_unlock(&m->mu);
    if (!c)
        return false;
    histogram *h = waited ? &c->waited : &c->reconcile;
    *out = (kl_histogram){.le = h->le, .n = h->n};
    for (size_t i = 0; i <= h->n; i++)
        out->in[i] = atomic_load_explicit(&h->in[i], memory_order_relaxed);
    return true;
}

void kl_metrics_terminal(kl_controller_metrics *c) { bump(&c->terminal); }
void kl_metrics_spent(kl_controller_metrics *c, kl_spent what) { bump(&c->spent[what]); }
void kl_metrics_mapped(kl_controller_metrics *c, kl_time took)
{
    atomic_fetch_add_explicit(&c->mapped, (uint64_t)took, memory_order_relaxed);
}
void kl_metrics_elided(kl_controller_metrics *c) { bump(&c->elided); }
void kl_metrics_own_writes_wait(kl_controller_metrics *c) { bump(&c->own_writes_waits); }
void kl_metrics_own_writes_timeout(kl_controller_metrics *c) { bump(&c->own_writes_timeouts); }
void kl_metrics_circle(kl_controller_metrics *c, bool fight) { bump(fight ? &c->fights : &c->loops); }
void kl_metrics_outlived(kl_controller_metrics *c) { bump(&c->outlived); }
void kl_metrics_panic(kl_controller_metrics *c) { bump(&c->panics); }
void kl_metrics_timeout(kl_controller_metrics *c) { bump(&c->timeouts); }

void kl_metrics_active(kl_controller_metrics *c, int by)
{
    atomic_fetch_add_explicit(&c->active, by, memory_order_relaxed);
}

void kl_metrics_queue_latency(kl_controller_metrics *c, kl_time waited) { observe(&c->waited, waited); }

void kl_metrics_work_duration(kl_controller_metrics *c, kl_time took) { observe(&c->worked, took); }

uint64_t kl_metrics_runs(kl_controller_metrics *c)
{
    uint64_t n = 0;
    for (int i = 0; i < KL_OUTCOMES; i++)
        n += atomic_load(&c->total[i]);
    return n;
}

uint64_t kl_metrics_errors(kl_controller_metrics *c) { return atomic_load(&c->total[KL_OUTCOME_ERROR]); }

static void count_locked(kl_map *series, const char *method, const char *host, int code)
{
    char *key = kl_sprintf("%d %s %s", code, method, host);
    request_series *s = kl_map_get(series, key);
    if (!s) {
        s = kl_new(request_series);
        s->method = kl_strdup(method);
        s->host = kl_strdup(host);
        s->code = code;
        kl_map_set(series, key, s);
    }
    s->n++;
    kl_free(key);
}

/* Observes bytes or, unless `bytes`, a duration. method NULL: only the host is a label. */
static void observe_locked(kl_map *series, const char *method, const char *host, bool bytes, int64_t value)
{
    char *key = kl_sprintf("%s %s", method ? method : "", host);
    latency_series *l = kl_map_get(series, key);
    if (!l) {
        l = kl_new(latency_series);
        l->method = kl_strdup(method);
        l->host = kl_strdup(host);
        if (bytes)
            histogram_init(&l->h, SIZE_BUCKETS, COUNT(SIZE_BUCKETS), 1);
        else
            histogram_init(&l->h, REQUEST_BUCKETS, COUNT(REQUEST_BUCKETS), 1e9);
        kl_map_set(series, key, l);
    }
    observe(&l->h, value);
    kl_free(key);
}

void kl_metrics_request(kl_metrics *m, const char *method, const char *host, int code, kl_time took)
{
    kl_lock(&m->mu);
    count_locked(m->requests, method, host, code);
    observe_locked(m->latencies, method, host, false, took);
    kl_unlock(&m->mu);
}

void kl_metrics_retry(kl_metrics *m, const char *method, const char *host, int code)
{
    kl_lock(&m->mu);
    count_locked(m->retries, method, host, code);
    kl_unlock(&m->mu);
}

void kl_metrics_delay(kl_metrics *m, const char *method, const char *host, kl_time waited)
{
    kl_lock(&m->mu);
    observe_locked(m->delays, method, host, false, waited);
    kl_unlock(&m->mu);
}

void kl_metrics_sizes(kl_metrics *m, const char *method, const char *host, size_t sent, size_t received)
{
    kl_lock(&m->mu);
    observe_locked(m->sent, method, host, true, (int64_t)sent);
    observe_locked(m->received, method, host, true, (int64_t)received);
    kl_unlock(&m->mu);
}

void kl_metrics_lookup(kl_metrics *m, const char *host, kl_time took)
{
    kl_lock(&m->mu);
    observe_locked(m->lookups, NULL, host, false, took);
    kl_unlock(&m->mu);
}

void kl_metrics_certificate(kl_metrics *m, bool good)
{
    bump(&m->certificates);
    if (!good)
        bump(&m->bad_certificates);
}

static lease_series *lease_locked(kl_map *leases, const char *name)
{
    lease_series *l = kl_map_get(leases, name);
    if (!l)
        kl_map_set(leases, name, l = kl_new(lease_series));
    return l;
}

void kl_metrics_leader(kl_metrics *m, const char *lease_name, bool leading)
{
    kl_lock(&m->mu);
    lease_locked(m->leases, lease_name)->leading = leading;
    kl_unlock(&m->mu);
}

void kl_metrics_leader_slow(kl_metrics *m, const char *lease_name)
{
    kl_lock(&m->mu);
    lease_locked(m->leases, lease_name)->slow++;
    kl_unlock(&m->mu);
}

/* --- text --------------------------------------------------------------------------------- */

/* Escapes for the text format; in a label quotes, too. */
static void escaped(kl_buf *out, const char *text, bool quotes)
{
    for (; *text; text++) {
        if (*text == '\\' || (quotes && *text == '"'))
            kl_buf_putc(out, '\\');
        if (*text == '\n')
            kl_buf_puts(out, "\\n");
        else
            kl_buf_putc(out, *text);
    }
}

void kl_metrics_head(kl_buf *out, const char *name, const char *type, const char *help)
{
    kl_buf_printf(out, "# HELP %s ", name);
    escaped(out, help, false);
    kl_buf_printf(out, "\n# TYPE %s %s\n", name, type);
}

void kl_metrics_label(kl_buf *out, bool first, const char *k, const char *v)
{
    kl_buf_printf(out, "%s%s=\"", first ? "{" : ",", k);
    escaped(out, v, true);
    kl_buf_putc(out, '"');
}

void kl_metrics_number(kl_buf *out, double v)
{
    if (isinf(v))
        kl_buf_puts(out, v > 0 ? "+Inf" : "-Inf");
    else if (v == floor(v) && fabs(v) < 1e15)
        kl_buf_printf(out, "%.0f", v);
    else
        kl_buf_printf(out, "%.10g", v);
}

void kl_metrics_bound(double v, char out[32])
{
    if (isinf(v)) {
        snprintf(out, 32, "+Inf");
        return;
    }
    int digits = 1;
    while (snprintf(out, 32, "%.*e", digits - 1, v) && digits < 17 && strtod(out, NULL) != v)
        digits++;
    int exponent = (int)strtol(strchr(out, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 6)
        snprintf(out, 32, "%.*g", digits > 6 ? digits : 6, v);
}

void kl_metrics_sample(kl_buf *out, const char *name, double value, ...)
{
    kl_buf_puts(out, name);
    va_list ap;
    va_start(ap, value);
    bool first = true;
    for (const char *k; (k = va_arg(ap, const char *)); first = false)
        kl_metrics_label(out, first, k, va_arg(ap, const char *));
    va_end(ap);
    kl_buf_puts(out, first ? " " : "} ");
    kl_metrics_number(out, value);
    kl_buf_putc(out, '\n');
}

/* k1..v2: one or two labels, NULL ends them. */
static void write_histogram(kl_buf *out, const char *name, const histogram *h, const char *k1, const char *v1,
    const char *k2, const char *v2)
{
    char series[128], le[32];
    uint64_t total = 0;
    for (size_t i = 0; i <= h->n; i++) {
        total += h->in[i];
        kl_metrics_bound(i < h->n ? h->le[i] : INFINITY, le);
        snprintf(series, sizeof series, "%s_bucket", name);
        if (k2)
            kl_metrics_sample(out, series, (double)total, k1, v1, k2, v2, "le", le, NULL);
        else
            kl_metrics_sample(out, series, (double)total, k1, v1, "le", le, NULL);
    }
    snprintf(series, sizeof series, "%s_sum", name);
    kl_metrics_sample(out, series, (double)h->sum / h->unit, k1, v1, k2, v2, NULL);
    snprintf(series, sizeof series, "%s_count", name);
    kl_metrics_sample(out, series, (double)total, k1, v1, k2, v2, NULL);
}

typedef struct counter_family {
    const char *name, *help;
    size_t offset;
} counter_family;

static void write_outcomes(kl_map *controllers, char **names, kl_buf *out)
{
    kl_metrics_head(out, "controller_runtime_reconcile_total", "counter",
        "Total number of reconciliations per controller");
    for (char **n = names; *n; n++) {
        kl_controller_metrics *c = kl_map_get(controllers, *n);
        for (int i = 0; i < KL_OUTCOMES; i++)
            kl_metrics_sample(out, "controller_runtime_reconcile_total", (double)c->total[i], "controller",
                *n, "result", OUTCOMES[i], NULL);
    }
    kl_metrics_head(out, "controller_runtime_reconcile_errors_total", "counter",
        "Total number of reconciliation errors per controller");
    for (char **n = names; *n; n++) {
        kl_controller_metrics *c = kl_map_get(controllers, *n);
        kl_metrics_sample(out, "controller_runtime_reconcile_errors_total",
            (double)c->total[KL_OUTCOME_ERROR], "controller", *n, NULL);
    }
    kl_metrics_head(out, "kubelua_budget_exceeded_total", "counter",
        "Total number of runs and script function calls that were ended because they exceeded a budget");
    for (char **n = names; *n; n++) {
        kl_controller_metrics *c = kl_map_get(controllers, *n);
        for (int i = 0; i < KL_SPENT; i++)
            kl_metrics_sample(out, "kubelua_budget_exceeded_total", (double)c->spent[i], "controller", *n,
                "budget", BUDGETS[i], NULL);
    }
    kl_metrics_head(out, "kubelua_mapping_seconds_total", "counter",
        "Total time that mapping, `when` and `priority` functions of a script used on their shared thread");
    for (char **n = names; *n; n++) {
        kl_controller_metrics *c = kl_map_get(controllers, *n);
        kl_metrics_sample(
            out, "kubelua_mapping_seconds_total", (double)c->mapped / 1e9, "controller", *n, NULL);
    }
}

static void write_counters(kl_map *controllers, char **names, kl_buf *out)
{
    static const counter_family FAMILIES[] = {
        {"controller_runtime_terminal_reconcile_errors_total",
            "Total number of terminal reconciliation errors per controller",
            offsetof(kl_controller_metrics, terminal)},
        {"controller_runtime_reconcile_panics_total", "Total number of reconciliation panics per controller",
            offsetof(kl_controller_metrics, panics)},
        {"controller_runtime_reconcile_timeouts_total",
            "Total number of reconciliation timeouts per controller",
            offsetof(kl_controller_metrics, timeouts)},
        {"kubelua_elided_writes_total", "Writes that were not sent because they would have changed nothing",
            offsetof(kl_controller_metrics, elided)},
        {"kubelua_own_writes_waits_total",
            "Total number of times a key waited for the caches to show its writes",
            offsetof(kl_controller_metrics, own_writes_waits)},
        {"kubelua_own_writes_timeouts_total",
            "Total number of runs that began before the caches showed earlier writes",
            offsetof(kl_controller_metrics, own_writes_timeouts)},
        {"kubelua_reload_ended_runs_total",
            "Total number of runs on old logic that were ended because they ran too long after a reload",
            offsetof(kl_controller_metrics, outlived)},
        {"kubelua_write_loops_total",
            "Total number of keys found to be triggered by their own writes again and again",
            offsetof(kl_controller_metrics, loops)},
        {"kubelua_field_fights_total",
            "Total number of fields found to be written alternately by a key and by another manager",
            offsetof(kl_controller_metrics, fights)},
    };
    for (size_t f = 0; f < COUNT(FAMILIES); f++) {
        kl_metrics_head(out, FAMILIES[f].name, "counter", FAMILIES[f].help);
        for (char **n = names; *n; n++) {
            const char *c = kl_map_get(controllers, *n);
            kl_metrics_sample(out, FAMILIES[f].name,
                (double)*(const atomic_uint_fast64_t *)(const void *)(c + FAMILIES[f].offset), "controller",
                *n, NULL);
        }
    }
}

static void write_workers(kl_map *controllers, char **names, kl_buf *out)
{
    kl_metrics_head(out, "controller_runtime_max_concurrent_reconciles", "gauge",
        "Maximum number of concurrent reconciles per controller");
    for (char **n = names; *n; n++)
        kl_metrics_sample(out, "controller_runtime_max_concurrent_reconciles",
            ((kl_controller_metrics *)kl_map_get(controllers, *n))->max_concurrent, "controller", *n, NULL);
    kl_metrics_head(
        out, "controller_runtime_active_workers", "gauge", "Number of currently used workers per controller");
    for (char **n = names; *n; n++)
        kl_metrics_sample(out, "controller_runtime_active_workers",
            ((kl_controller_metrics *)kl_map_get(controllers, *n))->active, "controller", *n, NULL);
}

static void write_durations(kl_map *controllers, char **names, kl_buf *out)
{
    kl_metrics_head(out, "controller_runtime_reconcile_time_seconds", "histogram",
        "Length of time per reconciliation per controller");
    for (char **n = names; *n; n++)
        write_histogram(out, "controller_runtime_reconcile_time_seconds",
            &((kl_controller_metrics *)kl_map_get(controllers, *n))->reconcile, "controller", *n, NULL, NULL);
    kl_metrics_head(out, "workqueue_queue_duration_seconds", "histogram",
        "How long in seconds an item stays in workqueue before being requested");
    for (char **n = names; *n; n++)
        write_histogram(out, "workqueue_queue_duration_seconds",
            &((kl_controller_metrics *)kl_map_get(controllers, *n))->waited, "name", *n, "controller", *n);
    kl_metrics_head(out, "workqueue_work_duration_seconds", "histogram",
        "How long in seconds processing an item from workqueue takes.");
    for (char **n = names; *n; n++)
        write_histogram(out, "workqueue_work_duration_seconds",
            &((kl_controller_metrics *)kl_map_get(controllers, *n))->worked, "name", *n, "controller", *n);
}

static void write_controllers(kl_metrics *m, kl_buf *out) KL_REQUIRES(m->mu)
{
    char **names = kl_map_sorted_keys(m->controllers);
    write_outcomes(m->controllers, names, out);
    write_counters(m->controllers, names, out);
    write_workers(m->controllers, names, out);
    write_durations(m->controllers, names, out);
    kl_free(names);
}

static void write_counts(kl_buf *out, kl_map *series, const char *name, const char *help, const char *method)
{
    char **keys = kl_map_sorted_keys(series);
    if (*keys)
        kl_metrics_head(out, name, "counter", help);
    for (char **k = keys; *k; k++) {
        request_series *s = kl_map_get(series, *k);
        char code[16] = "<error>";
        if (s->code)
            snprintf(code, sizeof code, "%d", s->code);
        kl_metrics_sample(out, name, (double)s->n, "code", code, "host", s->host, method, s->method, NULL);
    }
    kl_free(keys);
}

static void write_latencies(kl_buf *out, kl_map *series, const char *name, const char *help)
{
    char **keys = kl_map_sorted_keys(series);
    if (*keys)
        kl_metrics_head(out, name, "histogram", help);
    for (char **k = keys; *k; k++) {
        latency_series *s = kl_map_get(series, *k);
        write_histogram(out, name, &s->h, "host", s->host, s->method ? "verb" : NULL, s->method);
    }
    kl_free(keys);
}

static void write_requests(kl_metrics *m, kl_buf *out) KL_REQUIRES(m->mu)
{
    write_counts(out, m->requests, "rest_client_requests_total",
        "Number of HTTP requests, partitioned by status code, method, and host.", "method");
    write_latencies(out, m->latencies, "rest_client_request_duration_seconds",
        "Request latency in seconds. Broken down by verb and host.");
    write_latencies(out, m->sent, "rest_client_request_size_bytes",
        "Request size in bytes. Broken down by verb and host.");
    write_latencies(out, m->received, "rest_client_response_size_bytes",
        "Response size in bytes. Broken down by verb and host.");
    write_counts(out, m->retries, "rest_client_request_retries_total",
        "Number of request retries, partitioned by status code, verb, and host.", "verb");
    write_latencies(out, m->delays, "rest_client_rate_limiter_duration_seconds",
        "Client side rate limiter latency in seconds. Broken down by verb, and host.");
    write_latencies(out, m->lookups, "rest_client_dns_resolution_duration_seconds",
        "DNS resolver latency in seconds. Broken down by host.");
}

static void write_leases(kl_metrics *m, kl_buf *out) KL_REQUIRES(m->mu)
{
    char **keys = kl_map_sorted_keys(m->leases);
    if (*keys)
        kl_metrics_head(out, "leader_election_master_status", "gauge",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 "
            "indicates master. 'name' is the string used to identify the lease. Please make sure to group by "
            "name.");
    for (char **k = keys; *k; k++)
        kl_metrics_sample(out, "leader_election_master_status",
            ((lease_series *)kl_map_get(m->leases, *k))->leading, "name", *k, NULL);
    if (*keys)
        kl_metrics_head(out, "leader_election_slowpath_total", "counter",
            "Total number of slow path exercised in renewing leader leases. 'name' is the string used to "
            "identify the lease. Please make sure to group by name.");
    for (char **k = keys; *k; k++)
        kl_metrics_sample(out, "leader_election_slowpath_total",
            (double)((lease_series *)kl_map_get(m->leases, *k))->slow, "name", *k, NULL);
    kl_free(keys);
}

static void write_certificates(kl_metrics *m, kl_buf *out)
{
    kl_metrics_head(
        out, "certwatcher_read_certificate_total", "counter", "Total number of certificate reads");
    kl_metrics_sample(out, "certwatcher_read_certificate_total", (double)m->certificates, NULL);
    kl_metrics_head(out, "certwatcher_read_certificate_errors_total", "counter",
        "Total number of certificate read errors");
    kl_metrics_sample(out, "certwatcher_read_certificate_errors_total", (double)m->bad_certificates, NULL);
}

void kl_metrics_write(kl_metrics *m, kl_buf *out)
{
    kl_lock(&m->mu);
    write_controllers(m, out);
    write_requests(m, out);
    write_leases(m, out);
    write_certificates(m, out);
    kl_unlock(&m->mu);
}
