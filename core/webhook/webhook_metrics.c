/* webhook_metrics.c - see controller-runtime pkg/webhook/internal/metrics and pkg/certwatcher/metrics. */
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "metrics/metrics.h"
#include "webhook/webhook_metrics.h"

/* prometheus.ExponentialBuckets(10e-9, 10, 12), which multiplies step by step; these numbers have its
 * rounding errors. */
static const double BUCKETS[] = {
    1e-08, 1e-07, 1e-06, 9.999999999999999e-06, 9.999999999999999e-05, 0.001, 0.01, 0.1, 1, 10, 100, 1000};
#define COUNT(a) (sizeof(a) / sizeof *(a))
/* The codes of the server's answers. All but the first two are mistakes of the client. controller-runtime
 * starts these two at zero. */
static const int CODES[] = {200, 500, 400, 404, 405, 503};

typedef struct series {
    uint64_t code[COUNT(CODES)], bucket[COUNT(BUCKETS)], count;
    double sum;
    int64_t in_flight;
} series;

struct kl_webhook_metrics {
    kl_mutex mu;
    kl_map *of KL_GUARDED_BY(mu);
    uint64_t panics KL_GUARDED_BY(mu);
    kl_metrics *all;
};

kl_webhook_metrics *kl_webhook_metrics_new(kl_metrics *all)
{
    kl_webhook_metrics *m = kl_new(kl_webhook_metrics);
    m->all = all;
    kl_mutex_init(&m->mu);
    m->of = kl_map_new();
    return m;
}

void kl_webhook_metrics_free(kl_webhook_metrics *m)
{
    if (!m)
        return;
    kl_map_free(m->of, kl_free);
    kl_mutex_fini(&m->mu);
    kl_free(m);
}

static series *series_locked(kl_webhook_metrics *m, const char *path) KL_REQUIRES(m->mu)
{
    series *s = kl_map_get(m->of, path);
    if (!s)
        kl_map_set(m->of, path, s = kl_new(series));
    return s;
}

void kl_webhook_metrics_begin(kl_webhook_metrics *m, const char *path)
{
    kl_lock(&m->mu);
    series_locked(m, path)->in_flight++;
    kl_unlock(&m->mu);
}

void kl_webhook_metrics_end(kl_webhook_metrics *m, const char *path, int code, kl_time took)
{
    double seconds = (double)took / 1e9;
    kl_lock(&m->mu);
    series *s = series_locked(m, path);
    s->in_flight--;
    s->count++;
    s->sum += seconds;
    for (size_t i = 0; i < COUNT(BUCKETS); i++)
        s->bucket[i] += seconds <= BUCKETS[i];
    for (size_t i = 0; i < COUNT(CODES); i++)
        s->code[i] += code == CODES[i];
    kl_unlock(&m->mu);
}

void kl_webhook_metrics_panic(kl_webhook_metrics *m)
{
    kl_lock(&m->mu);
    m->panics++;
    kl_unlock(&m->mu);
}

void kl_webhook_metrics_certificate(kl_webhook_metrics *m, bool good)
{
    kl_metrics_certificate(m->all, good);
}

static void write_latency(kl_buf *out, const char *path, const series *s)
{
    char le[32];
    for (size_t i = 0; i < COUNT(BUCKETS); i++) {
        kl_metrics_bound(BUCKETS[i], le);
        kl_metrics_sample(out, "controller_runtime_webhook_latency_seconds_bucket", (double)s->bucket[i],
            "webhook", path, "le", le, NULL);
    }
    kl_metrics_sample(out, "controller_runtime_webhook_latency_seconds_bucket", (double)s->count, "webhook",
        path, "le", "+Inf", NULL);
    kl_metrics_sample(out, "controller_runtime_webhook_latency_seconds_sum", s->sum, "webhook", path, NULL);
    kl_metrics_sample(
        out, "controller_runtime_webhook_latency_seconds_count", (double)s->count, "webhook", path, NULL);
}

static void write_requests(kl_buf *out, const char *path, const series *s)
{
    for (size_t i = 0; i < COUNT(CODES); i++) {
        char code[16];
        snprintf(code, sizeof code, "%d", CODES[i]);
        if (i < 2 || s->code[i])
            kl_metrics_sample(out, "controller_runtime_webhook_requests_total", (double)s->code[i], "webhook",
                path, "code", code, NULL);
    }
}

void kl_webhook_metrics_write(kl_webhook_metrics *m, kl_buf *out)
{
    kl_lock(&m->mu);
    char **names = kl_map_sorted_keys(m->of);
    kl_metrics_head(out, "controller_runtime_webhook_latency_seconds", "histogram",
        "Histogram of the latency of processing admission requests");
    for (char **n = names; *n; n++)
        write_latency(out, *n, kl_map_get(m->of, *n));
    kl_metrics_head(out, "controller_runtime_webhook_requests_total", "counter",
        "Total number of admission requests by HTTP status code.");
    for (char **n = names; *n; n++)
        write_requests(out, *n, kl_map_get(m->of, *n));
    kl_metrics_head(out, "controller_runtime_webhook_requests_in_flight", "gauge",
        "Current number of admission requests being served.");
    for (char **n = names; *n; n++)
        kl_metrics_sample(out, "controller_runtime_webhook_requests_in_flight",
            (double)((series *)kl_map_get(m->of, *n))->in_flight, "webhook", *n, NULL);
    kl_free(names);
    const struct {
        const char *name, *help;
        uint64_t n;
    } counters[] = {
        {"controller_runtime_webhook_panics_total", "Total number of webhook panics", m->panics},
    };
    for (size_t i = 0; i < COUNT(counters); i++) {
        kl_metrics_head(out, counters[i].name, "counter", counters[i].help);
        kl_metrics_sample(out, counters[i].name, (double)counters[i].n, NULL);
    }
    kl_unlock(&m->mu);
}
