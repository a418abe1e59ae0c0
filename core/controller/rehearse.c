/* rehearse.c - a thread that runs one key on its own worker and waits for the end. */
#include "controller/rehearse.h"

#include <string.h>

#include "base/mem.h"
#include "base/sync.h"
#include "controller/dry_writes.h"
#include "model/object.h"
#include "model/diff.h"
#include "model/resource.h"
#include "observe/flight.h"

struct kl_rehearsal {
    kl_worker_owner like;
    kl_imagination how;
    kl_witnesses witnesses;
    kl_flight *flight;
    kl_workqueue *queue;
    char *key;
    kl_time within;
    void (*done)(void *arg, const kl_value *report);
    void *arg;
    kl_thread *thread;
    atomic_bool over;
    kl_mutex mu;
    kl_cond changed;
    bool ended, ending KL_GUARDED_BY(mu); /* the run has ended; it was asked to end */
    kl_builder *writes KL_GUARDED_BY(mu); /* an open array */
};

/* --- what its worker asks ----------------------------------------------------------------- */

static kl_logic *logic(void *arg)
{
    return ((kl_rehearsal *)arg)->like.logic(((kl_rehearsal *)arg)->like.arg);
}
static void logic_unref(void *arg, kl_logic *l)
{
    ((kl_rehearsal *)arg)->like.logic_unref(((kl_rehearsal *)arg)->like.arg, l);
}
static bool is_current(void *arg, const kl_logic *l)
{
    return ((kl_rehearsal *)arg)->like.is_current(((kl_rehearsal *)arg)->like.arg, l);
}
static const kl_value *object(void *arg, kl_logic *l, const char *key)
{
    return ((kl_rehearsal *)arg)->like.object(((kl_rehearsal *)arg)->like.arg, l, key);
}
static const kl_resource *resource(void *arg, const char *kind)
{
    return ((kl_rehearsal *)arg)->like.resource(((kl_rehearsal *)arg)->like.arg, kind);
}

static void resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    kl_rehearsal *r = arg;
    r->like.resolve(r->like.arg, kind, done, done_arg);
}

static void no_event(void *arg, const kl_news *n)
{
    (void)arg;
    (void)n;
}

static void end(kl_rehearsal *r)
{
    kl_lock(&r->mu);
    r->ended = true;
    kl_cond_signal(&r->changed);
    kl_unlock(&r->mu);
}

static void ran(void *arg, kl_run *run, const kl_ran *x)
{
    (void)run;
    (void)x;
    end(arg);
}

static void gone(void *arg, const char *controller, const char *key)
{
    (void)controller;
    (void)key;
    end(arg);
}

static bool turn(void *arg)
{
    kl_rehearsal *r = arg;
    kl_lock(&r->mu);
    bool yes = !r->ended;
    kl_unlock(&r->mu);
    return yes;
}

static void wrote(void *arg, const kl_imagined *x)
{
    kl_rehearsal *r = arg;
    kl_buf changes = KL_BUF_INIT;
    if (!x->status && x->is)
        kl_diff_text(x->was, x->is, &changes);
    char *kind = kl_gvk_text(x->resource->group, x->resource->version, x->resource->kind),
         *key = kl_key_join(x->ns, x->name ? x->name : "");
    kl_lock(&r->mu);
    kl_build_object(r->writes);
    kl_build_kstr(r->writes, "verb", kl_verb_name(x->op->verb));
    kl_build_kstr(r->writes, "kind", kind);
    kl_build_kstr(r->writes, "key", key);
    kl_build_kstr(r->writes, "subresource", x->op->subresource);
    kl_build_kstr(r->writes, "changes", x->status ? NULL : !x->is ? "gone" : kl_buf_str(&changes));
    kl_build_kstr(r->writes, "error", x->status ? kl_err_message(x->err) : NULL);
    kl_build_end(r->writes);
    kl_unlock(&r->mu);
    kl_free(kind);
    kl_free(key);
    kl_buf_fini(&changes);
}

/* --- its thread --------------------------------------------------------------------------- */

static kl_worker *worker_of(kl_rehearsal *r)
{
    return kl_worker_new(&(kl_worker_owner){.logic = logic,
                             .logic_unref = logic_unref,
                             .is_current = is_current,
                             .object = object,
                             .resolve = resolve,
                             .resource = resource,
                             .event = no_event,
                             .turn = turn,
                             .arg = r,
                             .name = r->like.name,
                             .queue = r->queue,
                             .door = r->like.door,
                             .clock = r->like.clock,
                             .fleet = r->like.fleet,
                             .cluster = r->like.cluster,
                             .imagine = &r->how,
                             .witnesses = &r->witnesses},
        0);
}

static void report(kl_rehearsal *r)
{
    kl_build_end(r->writes);
    const kl_value *writes = kl_builder_done(r->writes);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    (void)kl_flight_runs(r->flight, r->like.name, r->key, b);
    kl_build_kvalue(b, "writes", writes);
    kl_build_end(b);
    kl_value_unref(writes);
    r->done(r->arg, kl_builder_done(b));
}

static void work(void *arg)
{
    kl_rehearsal *r = arg;
    kl_time deadline = kl_clock_now(kl_clock_real()) + r->within;
    kl_worker *w = worker_of(r);
    kl_workqueue_add_with(
        r->queue, r->key, &(kl_add){.cause = kl_cause_of(KL_WHY_HAND, NULL)}, kl_clock_now(r->like.clock));
    kl_worker_start(w);
    kl_lock(&r->mu);
    while (!r->ended && !r->ending && kl_cond_wait_until(&r->changed, &r->mu, deadline))
        ;
    bool late = !r->ended;
    r->ended = true;
    kl_unlock(&r->mu);
    kl_worker_drain(w);
    if (late)
        kl_worker_abort(w);
    kl_worker_join(w);
    report(r);
    atomic_store(&r->over, true);
}

kl_rehearsal *kl_rehearse(const kl_worker_owner *like, const char *key, kl_time within,
    void (*done)(void *arg, const kl_value *report), void *arg)
{
    kl_rehearsal *r = kl_new(kl_rehearsal);
    r->like = *like;
    r->key = kl_strdup(key);
    r->within = within;
    r->done = done;
    r->arg = arg;
    kl_mutex_init(&r->mu);
    kl_cond_init(&r->changed);
    r->how = (kl_imagination){.ops = &kl_dry_writes, .wrote = wrote, .arg = r};
    r->flight = kl_flight_new(KL_FLIGHT_BYTES_MIN, like->clock);
    kl_witness flight = kl_flight_witness(r->flight);
    kl_witnesses_add(&r->witnesses, &flight);
    kl_witnesses_add(&r->witnesses, &(kl_witness){.ended = ran, .gone = gone, .arg = r});
    r->queue = kl_workqueue_new(&(kl_workqueue_options){.forget = kl_cause_forget});
    r->writes = kl_builder_new();
    kl_build_array(r->writes);
    r->thread = kl_thread_start("kl-rehearse", work, r);
    return r;
}

bool kl_rehearsal_over(kl_rehearsal *r) { return atomic_load(&r->over); }

void kl_rehearsal_end(kl_rehearsal *r)
{
    kl_lock(&r->mu);
    r->ending = true;
    kl_cond_signal(&r->changed);
    kl_unlock(&r->mu);
    kl_thread_join(r->thread);
    kl_workqueue_free(r->queue);
    kl_flight_free(r->flight);
    kl_cond_fini(&r->changed);
    kl_mutex_fini(&r->mu);
    kl_free(r->key);
    kl_free(r);
}
