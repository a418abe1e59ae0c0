/* telemetry.c - reads each of its subjects once per scrape, and writes the samples, one family after the
 * other. */
#include "observe/telemetry.h"

#include <stdio.h>

#include "base/mem.h"
#include "metrics/metrics.h"

typedef struct family {
    const char *name, *type, *help;
} family;
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- queues ------------------------------------------------------------------------------- */

static const family QUEUES[] = {
    {"workqueue_adds_total", "counter", "Total number of adds handled by workqueue"},
    {"workqueue_retries_total", "counter",
        "Total number of items added to the workqueue with a non-zero delay (rate-limited requeues, explicit "
        "RequeueAfter or AddAfter calls)"},
    {"workqueue_unfinished_work_seconds", "gauge",
        "How many seconds of work has been done that is in progress and hasn't been observed by "
        "work_duration. Large values indicate stuck threads. One can deduce the number of stuck threads by "
        "observing the rate at which this increases."},
    {"workqueue_longest_running_processor_seconds", "gauge",
        "How many seconds has the longest running processor for workqueue been running."},
};

static void depth_sample(kl_buf *out, const char *name, const char *priority, size_t ready)
{
    kl_metrics_sample(
        out, "workqueue_depth", (double)ready, "name", name, "controller", name, "priority", priority, NULL);
}

/* One sample for each priority in use, and always for priority 0. Priorities beyond the first ones share a
 * sample, named as in controller-runtime. */
static void depth_samples(kl_buf *out, const char *name, kl_workqueue *q)
{
    kl_workqueue_depths d;
    bool normal = false;
    kl_workqueue_depths_get(q, &d);
    for (size_t i = 0; i < d.n; i++) {
        char priority[16];
        snprintf(priority, sizeof priority, "%d", d.of[i].priority);
        normal |= !d.of[i].priority;
        depth_sample(out, name, priority, d.of[i].ready);
    }
    if (!normal)
        depth_sample(out, name, "0", 0);
    if (d.more)
        depth_sample(out, name, "exceeded_cardinality_limit", d.others);
}

void kl_telemetry_queues(kl_buf *out, const kl_queue_of *v, size_t n, kl_time now)
{
    kl_metrics_head(out, "workqueue_depth", "gauge", "Current depth of workqueue by workqueue and priority");
    for (size_t i = 0; i < n; i++)
        depth_samples(out, v[i].controller, v[i].queue);
    for (size_t f = 0; f < COUNT(QUEUES); f++) {
        kl_metrics_head(out, QUEUES[f].name, QUEUES[f].type, QUEUES[f].help);
        for (size_t i = 0; i < n; i++) {
            kl_workqueue_stats q;
            kl_workqueue_stats_get(v[i].queue, now, &q);
            const double values[COUNT(QUEUES)] = {(double)q.adds, (double)q.retries,
                (double)q.unfinished / 1e9, (double)q.longest_running / 1e9};
            kl_metrics_sample(
                out, QUEUES[f].name, values[f], "name", v[i].controller, "controller", v[i].controller, NULL);
        }
    }
}

/* --- caches ------------------------------------------------------------------------------- */

static const family INFORMERS[] = {
    {"kubelua_informer_objects", "gauge", "Objects in the cache"},
    {"kubelua_informer_bytes", "gauge", "Bytes used by the cached objects"},
    {"kubelua_informer_synced", "gauge", "1 after the first list was delivered"},
    {"kubelua_informer_parked", "gauge", "1 while the server refuses the kind or does not have it"},
    {"kubelua_informer_lists_total", "counter", "Lists begun, relists included"},
    {"kubelua_informer_relists_total", "counter", "Of these, those caused by an expired resourceVersion"},
    {"kubelua_informer_watches_total", "counter", "Watches begun"},
    {"kubelua_informer_watch_restarts_total", "counter", "Of these, those that followed an earlier watch"},
    {"kubelua_informer_events_total", "counter", "Watch events received"},
    {"kubelua_informer_errors_total", "counter", "Lists and watches that failed"},
    {"kubelua_informer_skipped_objects_total", "counter",
        "Objects larger than --max-object-bytes that were left out"},
    {"kubelua_informer_initial_streams_total", "counter",
        "Watches that began with initial events instead of a list"},
    {"kubelua_informer_list_fallbacks_total", "counter", "Of these, those that fell back to a list"},
    {"kubelua_informer_short_watches_total", "counter", "Watches that ended within a second"},
    {"kubelua_informer_stalled_watches_total", "counter", "Watches given up because they were silent"},
    {"kubelua_informer_lag_seconds", "gauge",
        "Time since the server last sent something about the kind, bookmarks included: the maximum age of "
        "the cache"},
    {"kubelua_informer_last_event_age_seconds", "gauge",
        "Time since the last watch event, bookmarks not included; 0 before the first"},
};

typedef struct informers_call {
    kl_buf out[COUNT(INFORMERS)];
    kl_time now;
} informers_call;

static double age(kl_time now, kl_time then) { return then && then < now ? (double)(now - then) / 1e9 : 0; }

static void informer_samples(void *arg, const char *kind, kl_informer *i)
{
    informers_call *c = arg;
    kl_informer_stats s;
    kl_informer_stats_get(i, &s);
    const double values[COUNT(INFORMERS)] = {(double)s.objects, (double)s.bytes, s.synced, s.parked,
        (double)s.lists, (double)s.relists, (double)s.watches, (double)s.restarts, (double)s.events,
        (double)s.errors, (double)s.skipped, (double)s.streams, (double)s.fallbacks, (double)s.short_watches,
        (double)s.stalls, age(c->now, s.last_event), age(c->now, s.last_change)};
    for (size_t f = 0; f < COUNT(INFORMERS); f++)
        kl_metrics_sample(&c->out[f], INFORMERS[f].name, values[f], "kind", kind, NULL);
    kl_informer_stats_fini(&s);
}

void kl_telemetry_informers(kl_buf *out, kl_caches *caches, kl_time now)
{
    informers_call c = {.now = now};
    kl_caches_each(caches, informer_samples, &c);
    for (size_t f = 0; f < COUNT(INFORMERS); f++) {
        kl_metrics_head(out, INFORMERS[f].name, INFORMERS[f].type, INFORMERS[f].help);
        kl_buf_puts(out, kl_buf_str(&c.out[f]));
        kl_buf_fini(&c.out[f]);
    }
}

/* --- events ------------------------------------------------------------------------------- */

void kl_telemetry_events(kl_buf *out, kl_recorder *recorder)
{
    kl_recorder_stats s;
    kl_recorder_stats_get(recorder, &s);
    const struct {
        const char *why;
        uint64_t n;
    } dropped[] = {{"full", s.full}, {"spam", s.spam}, {"refused", s.refused}, {"given_up", s.given_up},
        {"terminating", s.terminating}, {"not_leading", s.not_leading}};
    kl_metrics_head(
        out, "kubelua_events_total", "counter", "Events about objects that were recorded, repeats included");
    kl_metrics_sample(out, "kubelua_events_total", (double)s.recorded, NULL);
    kl_metrics_head(
        out, "kubelua_events_dropped_total", "counter", "Events about objects that were lost, and why");
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        kl_metrics_sample(
            out, "kubelua_events_dropped_total", (double)dropped[i].n, "reason", dropped[i].why, NULL);
    kl_metrics_head(
        out, "kubelua_events_waiting", "gauge", "Events with changes that were not sent to the server yet");
    kl_metrics_sample(out, "kubelua_events_waiting", (double)s.waiting, NULL);
}
