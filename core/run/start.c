/* start.c - the start of a run: whether its key may run now, and the run itself. */
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "run/run_impl.h"

static kl_run *run_new(
    kl_worker *w, kl_gen_state *g, const kl_queue_item *item, const kl_value *object, kl_time now)
{
    kl_run *r = kl_new(kl_run);
    size_t nslen;
    r->w = w;
    r->gen = g;
    r->wait.door = w->o.door;
    r->at = KL_FLEET_NONE;
    r->item = *item;
    r->key = item->key;
    kl_key_split(r->key, &nslen, &r->name);
    r->ns = nslen ? kl_strndup(r->key, nslen) : NULL;
    r->object = object;
    r->term.mandate = w->mandate;
    r->term.epoch = w->epoch;
    r->attempt = kl_workqueue_requeues(w->o.queue, r->key) + 1;
    r->started = now;
    g->runs++;
    kl_list_push(&w->runs, &r->link);
    atomic_fetch_add(&w->inflight, 1);
    if (w->o.metrics)
        kl_metrics_active(w->o.metrics, 1);
    return r;
}

/* Whether the writes of `name`, the key or its group, are shown; if not, the queue holds the key until they
 * are. */
static bool is_shown(
    kl_worker *w, const kl_gen_state *g, const kl_queue_item *item, const char *name, kl_time now)
{
    kl_time until;
    if (!kl__write_owed(w, g, name, item->key, now, &until))
        return true;
    kl_workqueue_hold(w->o.queue, item, until, now);
    return false;
}

/* Whether the key may run now; *group is its group, if it has one. If not, the key is back in the queue until
 * it may. */
static bool may_run(kl_worker *w, kl_gen_state *g, const kl_queue_item *item, const kl_value *object,
    kl_time now, char **group, kl_err *err)
{
    kl_time until;
    if (!is_shown(w, g, item, item->key, now))
        return false;
    if (w->o.fights && kl_fights_holds(w->o.fights, item->key, now, &until)) {
        kl_workqueue_hold(w->o.queue, item, until, now);
        return false;
    }
    kl_buf text = KL_BUF_INIT;
    if (!kl__serial_says(g->logic->spec) || kl__serial_text(g, object, &text, err) || !text.len) {
        kl_buf_fini(&text);
        return true;
    }
    bool may = kl_workqueue_enter(w->o.queue, item, kl_buf_str(&text), now)
        && is_shown(w, g, item, kl_buf_str(&text), now);
    if (may)
        *group = kl_buf_take(&text);
    kl_buf_fini(&text);
    return may;
}

/* A run that cannot start fails like a started one. */
static void run_fail(kl_run *r, const kl_err *err, kl_time now)
{
    if (err->status == KL_ETIMEOUT || err->status == KL_ETOOBIG)
        kl_run_spent(r, err->status == KL_ETOOBIG ? KL_SPENT_MEMORY : KL_SPENT_CPU);
    kl_run_finish(r, KL_RESULT_ERROR, 0, kl_err_message(err), NULL);
    kl__run_end(r, now);
}

bool kl__run_start(kl_worker *w, kl_gen_state *g, kl_queue_item *item, kl_time now)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *object = w->o.object(w->o.arg, g->logic, item->key);
    char *group = NULL;
    if (object && !may_run(w, g, item, object, now, &group, &err)) {
        kl_value_unref(object);
        return false;
    }
    if (w->o.metrics)
        kl_metrics_queue_latency(w->o.metrics, now - item->queued_at);
    if (object && w->o.gate && !kl_gate_enter(w->o.gate, item->key)) { /* another replica has the key now */
        kl_value_unref(object);
        object = NULL;
    }
    if (!object) { /* deleted meanwhile: level-based logic has nothing to look at */
        kl__tell_gone(w, item->key);
        if (w->o.memos || w->memos)
            kl_shared_forget(w->o.memos ? w->o.memos : w->memos, item->key);
        kl_workqueue_forget(w->o.queue, item->key);
        kl_workqueue_finish(w->o.queue, item, now);
        kl_free(group);
        kl_err_fini(&err);
        return true;
    }
    kl_run *r = run_new(w, g, item, object, now);
    r->group = group;
    if (w->o.trace)
        (void)w->o.trace(w->o.arg, item->key, &r->caller);
    kl__fight_began(r);
    kl__tell_began(r);
    if (err.status) {
        run_fail(r, &err, now);
    } else {
        if (g->logic->spec->timeout > 0)
            kl_heap_push(&w->due, &r->wait.deadline, kl__after(now, g->logic->spec->timeout));
        kl__run_stepped(r, g->logic->program->ops->start(g->state, r));
    }
    kl_err_fini(&err);
    return true;
}
