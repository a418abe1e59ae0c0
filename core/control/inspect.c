/* inspect.c - snapshots as JSON. */
#include "control/inspect.h"

#include "base/log.h"
#include "base/mem.h"
#include "cache/informer.h"
#include "metrics/custom.h"
#include "metrics/metrics.h"
#include "observe/tally.h"

static void kbool(kl_builder *b, const char *key, bool x)
{
    kl_build_key(b, key);
    kl_build_bool(b, x);
}

static void kseconds(kl_builder *b, const char *key, kl_time t)
{
    kl_build_key(b, key);
    kl_build_double(b, (double)(t / KL_MILLISECONDS(1)) / 1e3);
}

/* Scripts and servers choose texts, and a page gets all of them each second: long ones are cut. */
static void put_text(kl_builder *b, const char *text)
{
    char *cut = kl_log_cut(text);
    kl_build_str(b, cut ? cut : text);
    kl_free(cut);
}

static void ktext(kl_builder *b, const char *key, const char *text)
{
    if (!text)
        return;
    kl_build_key(b, key);
    put_text(b, text);
}

/* The maximum of each controller. */
#define PARAMS_MOST 100

static void params(kl_builder *b, const kl_value *all)
{
    if (!all)
        return;
    size_t n = kl_value_len(all);
    kl_build_key(b, "params");
    kl_build_object(b);
    for (size_t i = 0; i < n && i < PARAMS_MOST; i++) {
        const char *key;
        const kl_value *v = kl_value_member(all, i, &key, NULL);
        char *name = kl_log_cut(key), *json = kl_value_str(v) ? NULL : kl_value_to_json(v),
             *cut = json ? kl_log_cut(json) : NULL;
        kl_build_key(b, name ? name : key);
        if (!json)
            put_text(b, kl_value_str(v));
        else if (cut)
            kl_build_str(b, cut);
        else
            kl_build_value(b, v);
        kl_free(name);
        kl_free(json);
        kl_free(cut);
    }
    if (n > PARAMS_MOST) {
        char *more = kl_sprintf("and %zu more", n - PARAMS_MOST);
        kl_build_kstr(b, "...", more);
        kl_free(more);
    }
    kl_build_end(b);
}

/* An object that `part` fills. */
static void answer(kl_control_request *q, kl_manager *m, void (*part)(kl_builder *, kl_manager *))
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    part(b, m);
    kl_build_end(b);
    kl_control_reply(q, 200, kl_builder_done(b));
}

static void latency(kl_builder *b, const char *key, kl_metrics *m, const char *name, bool waited)
{
    kl_histogram h;
    if (!kl_metrics_latency(m, name, waited, &h))
        return;
    kl_build_key(b, key);
    kl_build_object(b);
    kl_build_key(b, "le");
    kl_build_array(b);
    for (size_t i = 0; i < h.n; i++)
        kl_build_double(b, h.le[i]);
    kl_build_end(b);
    kl_build_key(b, "in");
    kl_build_array(b);
    for (size_t i = 0; i <= h.n; i++)
        kl_build_int(b, (int64_t)h.in[i]);
    kl_build_end(b);
    kl_build_end(b);
}

static void controller(kl_builder *b, kl_manager *m, const kl_controller_state *s)
{
    const char *own;
    kl_manager *of = kl_manager_of(m, s->name, &own);
    kl_build_object(b);
    kl_build_kstr(b, "name", s->name);
    kl_build_kstr(b, "resource", s->resource);
    kl_build_kstr(b, "state", s->state);
    ktext(b, "message", s->message);
    kl_build_kint(b, "generation", s->generation);
    params(b, s->params);
    kl_build_key(b, "queue");
    kl_build_object(b);
    kl_build_kint(b, "ready", (int64_t)s->ready);
    kl_build_kint(b, "delayed", (int64_t)s->delayed);
    kl_build_kint(b, "running", (int64_t)s->running);
    kl_build_kint(b, "failing", (int64_t)s->failing);
    kl_build_end(b);
    kl_build_kint(b, "runs", (int64_t)s->runs);
    kl_build_kint(b, "errors", (int64_t)s->errors);
    kl_build_key(b, "generations");
    kl_build_array(b);
    kl_tally_generations(kl_manager_tally(of), own, b);
    kl_build_end(b);
    latency(b, "latency", kl_manager_figures(of), own, false);
    latency(b, "waited", kl_manager_figures(of), own, true);
    kl_build_end(b);
}

static void controllers(kl_builder *b, kl_manager *m)
{
    kl_controller_state *v;
    size_t n = kl_manager_controllers(m, &v);
    kl_build_key(b, "controllers");
    kl_build_array(b);
    for (size_t i = 0; i < n; i++)
        controller(b, m, &v[i]);
    kl_build_end(b);
    kl_controller_states_free(v, n);
}

static void answer_controllers(void *arg, kl_control_request *q) { answer(q, arg, controllers); }

typedef struct informers_call {
    kl_builder *b;
    kl_time now;
} informers_call;

static void informer(void *arg, const char *cluster, const char *kind, kl_informer *i)
{
    informers_call *c = arg;
    kl_builder *b = c->b;
    kl_informer_stats s;
    kl_informer_stats_get(i, &s);
    kl_build_object(b);
    kl_build_kstr(b, "cluster", cluster);
    kl_build_kstr(b, "kind", kind);
    kl_build_kstr(b, "state", s.state);
    ktext(b, "message", s.message);
    kl_build_kstr(b, "namespace", s.namespace_);
    kbool(b, "synced", s.synced);
    kbool(b, "parked", s.parked);
    kl_build_kint(b, "objects", (int64_t)s.objects);
    kl_build_kint(b, "bytes", (int64_t)s.bytes);
    kl_build_kstr(b, "resourceVersion", s.rv);
    kl_build_kint(b, "lists", (int64_t)s.lists);
    kl_build_kint(b, "relists", (int64_t)s.relists);
    kl_build_kint(b, "watches", (int64_t)s.watches);
    kl_build_kint(b, "events", (int64_t)s.events);
    kl_build_kint(b, "errors", (int64_t)s.errors);
    if (s.last_event)
        kseconds(b, "lagSeconds", c->now > s.last_event ? c->now - s.last_event : 0);
    kl_build_end(b);
    kl_informer_stats_fini(&s);
}

static void informers(kl_builder *b, kl_manager *m)
{
    kl_build_key(b, "informers");
    kl_build_array(b);
    kl_manager_informers_of_all(m, informer, &(informers_call){.b = b, .now = kl_manager_now(m)});
    kl_build_end(b);
}

static void answer_informers(void *arg, kl_control_request *q) { answer(q, arg, informers); }

/* --- keys that fail, and reloads ---------------------------------------------------------- */

/* The maximum of each manager. */
#define FAILING_MOST 100

static void failing(kl_builder *b, kl_manager *m)
{
    size_t all = 0;
    const char *cluster;
    kl_manager *one;
    kl_build_key(b, "failing");
    kl_build_array(b);
    for (size_t i = 0; (one = kl_manager_at(m, i, &cluster)); i++)
        all += kl_tally_failing(kl_manager_tally(one), cluster, FAILING_MOST, kl_manager_now(one), b);
    kl_build_end(b);
    kl_build_kint(b, "failingCount", (int64_t)all);
}

static void answer_failing(void *arg, kl_control_request *q) { answer(q, arg, failing); }

static void reloads(kl_builder *b, kl_manager *m)
{
    const kl_value *v = kl_reloads_value(kl_manager_reloads(m));
    kl_build_kvalue(b, "reloads", v);
    kl_value_unref(v);
}

static void answer_reloads(void *arg, kl_control_request *q) { answer(q, arg, reloads); }

/* --- what scripts count ------------------------------------------------------------------- */

/* The maximum of each metric. */
#define SERIES_MOST 20

static void metrics(kl_builder *b, kl_manager *m)
{
    const char *cluster;
    kl_manager *one;
    kl_build_key(b, "metrics");
    kl_build_array(b);
    for (size_t i = 0; (one = kl_manager_at(m, i, &cluster)); i++)
        kl_custom_metrics_show(kl_manager_custom_metrics(one), cluster, SERIES_MOST, b);
    kl_build_end(b);
}

static void answer_metrics(void *arg, kl_control_request *q) { answer(q, arg, metrics); }

const kl_value *kl_inspect_snapshot(kl_manager *m)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kseconds(b, "now", kl_manager_now(m));
    controllers(b, m);
    failing(b, m);
    informers(b, m);
    reloads(b, m);
    metrics(b, m);
    kl_build_end(b);
    return kl_builder_done(b);
}

void kl_inspect_add(kl_control *c, kl_manager *m)
{
    kl_control_route(
        c, "GET", "/v1/controllers", "controllers: state, generation, queue", answer_controllers, m);
    kl_control_route(c, "GET", "/v1/informers", "caches: objects, bytes, lag, relists", answer_informers, m);
    kl_control_route(
        c, "GET", "/v1/failing", "keys that fail or wait: why, and when they run again", answer_failing, m);
    kl_control_route(c, "GET", "/v1/metrics", "metrics of scripts, 20 series of each", answer_metrics, m);
    kl_control_route(c, "GET", "/v1/reloads", "outcome of script changes, latest first", answer_reloads, m);
}
