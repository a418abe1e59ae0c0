/* inspect.c - snapshots as JSON. */
#include "run/inspect.h"

#include "base/mem.h"
#include "cache/informer.h"

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

static void controller(kl_builder *b, const kl_controller_state *s)
{
    kl_build_object(b);
    kl_build_kstr(b, "name", s->name);
    kl_build_kstr(b, "resource", s->resource);
    kl_build_kstr(b, "state", s->state);
    kl_build_kstr(b, "message", s->message);
    kl_build_kint(b, "generation", s->generation);
    kl_build_key(b, "queue");
    kl_build_object(b);
    kl_build_kint(b, "ready", (int64_t)s->ready);
    kl_build_kint(b, "delayed", (int64_t)s->delayed);
    kl_build_kint(b, "running", (int64_t)s->running);
    kl_build_kint(b, "failing", (int64_t)s->failing);
    kl_build_end(b);
    kl_build_kint(b, "runs", (int64_t)s->runs);
    kl_build_kint(b, "errors", (int64_t)s->errors);
    kl_build_end(b);
}

static void answer_controllers(void *arg, kl_control_request *q)
{
    kl_controller_state *v;
    size_t n = kl_manager_controllers(arg, &v);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_key(b, "controllers");
    kl_build_array(b);
    for (size_t i = 0; i < n; i++)
        controller(b, &v[i]);
    kl_build_end(b);
    kl_build_end(b);
    kl_controller_states_free(v, n);
    kl_control_reply(q, 200, kl_builder_done(b));
}

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
    kl_build_kstr(b, "message", s.message);
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

static void answer_informers(void *arg, kl_control_request *q)
{
    informers_call c = {.b = kl_builder_new(), .now = kl_manager_now(arg)};
    kl_build_object(c.b);
    kl_build_key(c.b, "informers");
    kl_build_array(c.b);
    kl_manager_informers_of_all(arg, informer, &c);
    kl_build_end(c.b);
    kl_build_end(c.b);
    kl_control_reply(q, 200, kl_builder_done(c.b));
}

void kl_inspect_add(kl_control *c, kl_manager *m)
{
    kl_control_route(c, "GET", "/v1/controllers", "controllers: state, generation, queue", answer_controllers, m);
    kl_control_route(c, "GET", "/v1/informers", "caches: objects, bytes, lag, relists", answer_informers, m);
}
