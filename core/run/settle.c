/* settle.c - the end of a run: its result decides the key's next step in the queue, and observers, metrics
 * and the log get it. */
#include <stdio.h>

#include "base/mem.h"
#include "model/time.h"
#include "run/run_impl.h"

void kl__answer_forget(kl_run *r)
{
    kl_worker *w = r->w;
    kl_answer *pending = r->wait.answer;
    if (!pending)
        return;
    kl_lock(&w->mu);
    pending->run = NULL;
    kl_unlock(&w->mu);
    r->wait.answer = NULL;
    kl_door_cancel(r->wait.door, r->wait.request);
}

static void run_free(kl_run *r)
{
    kl_worker *w = r->w;
    kl__answer_forget(r);
    for (size_t i = 0; i < r->n_streams && i < KL__RUN_STREAMS; i++)
        kl_door_cancel(w->o.door, r->streams[i]);
    kl_heap_remove(&w->due, &r->wait.sleep);
    kl_heap_remove(&w->due, &r->wait.deadline);
    kl_list_remove(&r->link);
    r->gen->runs--;
    if (r->dry.view)
        r->w->o.imagine->ops->view_free(r->dry.view);
    kl_overlay_unref(r->dry.overlay);
    kl_value_unref(r->object);
    kl_value_unref(r->reply.body);
    kl_err_fini(&r->reply.err);
    kl_free(r->wait.expired);
    kl_free(r->outcome.message);
    kl_free(r->outcome.traceback);
    kl_free(r->detail);
    kl_free(r->ns);
    kl_free(r->group);
    kl_free(r);
    atomic_fetch_sub(&w->inflight, 1);
}

/* Returns the key to the queue. */
static void run_leave(kl_run *r, kl_time now)
{
    kl_worker *w = r->w;
    if (w->o.gate)
        kl_gate_leave(w->o.gate, r->key);
    kl_workqueue_finish(w->o.queue, &r->item, now);
    r->key = r->name = NULL;
}

static void log_failure(kl_run *r, kl_time next)
{
    char in[KL_DURATION_MAX], why[2048];
    kl_log_quote(r->outcome.message ? r->outcome.message : "", why, sizeof why);
    if (next < 0)
        kl_error("reconcile failed for good, waiting for the object to change",
            "controller=%s key=%s attempt=%d reconcileID=%s generation=%d%s error=%s%s%s", r->w->o.name,
            r->key, r->attempt, kl_run_id(r), r->gen->logic->generation, kl__run_detail(r), why,
            r->outcome.traceback ? "\n" : "", r->outcome.traceback ? r->outcome.traceback : "");
    else
        kl_error("reconcile failed",
            "controller=%s key=%s attempt=%d retry_in=%s reconcileID=%s generation=%d%s error=%s%s%s",
            r->w->o.name, r->key, r->attempt, kl_duration_format(next, in), kl_run_id(r),
            r->gen->logic->generation, kl__run_detail(r), why, r->outcome.traceback ? "\n" : "",
            r->outcome.traceback ? r->outcome.traceback : "");
}

/* A script that requeues its key at once, forever, would use a core: the minimum is the base of client-go's
 * backoff. */
#define AGAIN_SOONEST KL_MILLISECONDS(5)

/* A requeued key keeps its priority. */
static kl_time again(const kl_run *r, kl_time after, kl_why why, bool rate_limited, kl_time now)
{
    return kl_workqueue_add_with(r->w->o.queue, r->key,
        &(kl_add){.priority = r->item.priority,
            .after = rate_limited || after > AGAIN_SOONEST ? after : AGAIN_SOONEST,
            .rate_limited = rate_limited,
            .blameless = r->outcome.kind != KL_RESULT_ERROR,
            .cause = kl_cause_of(why, NULL)},
        now);
}

void kl__key_return(kl_worker *w, const kl_queue_item *item, kl_time now)
{
    kl_workqueue_add_with(w->o.queue, item->key,
        &(kl_add){
            .priority = item->priority, .cause = kl_cause_of(item->cause.why, kl_cause_object(&item->cause))},
        now);
}

/* The failures in a row, this one included. Conflicts do not count: another writer was faster. */
static int failures_of(const kl_run *r) { return kl_workqueue_faults(r->w->o.queue, r->key) + 1; }

static bool gives_up(const kl_run *r)
{
    int most = r->gen->logic->spec->give_up;
    return most > 0 && failures_of(r) >= most;
}

/* Ends the last allowed failure in a row: only a change brings the key back, and then it starts afresh. */
static void give_up(kl_run *r)
{
    kl_worker *w = r->w;
    char why[2048],
        *note = kl_sprintf("gave up after %d failures in a row, waiting for the object to change: %s",
            failures_of(r), r->outcome.message ? r->outcome.message : "");
    kl_log_quote(r->outcome.message ? r->outcome.message : "", why, sizeof why);
    kl_error("reconcile failed too often, waiting for the object to change",
        "controller=%s key=%s attempt=%d reconcileID=%s generation=%d%s error=%s%s%s", w->o.name, r->key,
        r->attempt, kl_run_id(r), r->gen->logic->generation, kl__run_detail(r), why,
        r->outcome.traceback ? "\n" : "", r->outcome.traceback ? r->outcome.traceback : "");
    w->o.event(w->o.arg, &(kl_news){.about = r->object, .type = "Warning", .reason = "GaveUp", .note = note});
    kl_free(note);
    kl_workqueue_rest(w->o.queue, &r->item);
    if (w->o.metrics)
        kl_metrics_terminal(w->o.metrics);
}

static void tell_put_back(kl_run *r, kl_time now)
{
    kl__tell_ended(r,
        &(kl_ran){.controller = r->w->o.name,
            .key = r->key,
            .id = kl_run_id(r),
            .message = r->outcome.message,
            .after = -1,
            .started = r->started,
            .ended = now,
            .attempt = r->attempt,
            .generation = r->gen->logic->generation,
            .wrote = r->wrote,
            .excused = r->excused,
            .put_back = true});
}

/* The new leader redoes the refused work; if we lead again, the key runs again. No error, no backoff, no
 * outcome. */
static void settle_deposed(kl_run *r, kl_time now)
{
    kl_worker *w = r->w;
    kl_info("a run was ended: this process does not lead", "controller=%s key=%s reconcileID=%s", w->o.name,
        r->key, kl_run_id(r));
    kl__key_return(w, &r->item, now);
    if (w->o.metrics)
        kl_metrics_active(w->o.metrics, -1);
    tell_put_back(r, now);
    run_leave(r, now);
}

static void tell_ran(kl_run *r, kl_time after, kl_time now)
{
    kl_worker *w = r->w;
    kl_ran x = {.controller = w->o.name,
        .key = r->key,
        .id = "",
        .message = r->outcome.message,
        .traceback = r->outcome.traceback,
        .result = r->outcome.kind,
        .after = after,
        .started = r->started,
        .ended = now,
        .attempt = r->attempt,
        .generation = r->gen->logic->generation,
        .wrote = r->wrote,
        .excused = r->excused};
    if (w->o.ran || kl_run_watched(r))
        x.id = kl_run_id(r);
    char *loop = kl__fight_ended(r, now);
    x.loop = loop;
    if (w->o.ran)
        w->o.ran(w->o.arg, &x);
    kl__tell_ended(r, &x);
    kl_free(loop);
}

static void settle_shadow(kl_run *r, kl_time now)
{
    kl_workqueue_forget(r->w->o.queue, r->key);
    tell_ran(r, r->outcome.after, now);
    run_leave(r, now);
}

static void settle(kl_run *r, kl_time now)
{
    kl_worker *w = r->w;
    kl_workqueue *q = w->o.queue;
    kl_outcome outcome = KL_OUTCOME_SUCCESS;
    kl_time next = -1;
    switch (r->outcome.kind) {
    case KL_RESULT_DONE: kl_workqueue_forget(q, r->key); break;
    case KL_RESULT_AFTER:
        kl_workqueue_forget(q, r->key);
        next = again(r, r->outcome.after, KL_WHY_AFTER, false, now);
        outcome = KL_OUTCOME_REQUEUE_AFTER;
        break;
    case KL_RESULT_REQUEUE:
        next = again(r, 0, KL_WHY_RETRY, true, now);
        outcome = KL_OUTCOME_REQUEUE;
        break;
    case KL_RESULT_RETRY:
        if (r->outcome.message)
            kl_info("reconcile waits", "controller=%s key=%s reconcileID=%s generation=%d%s why=%s",
                w->o.name, r->key, kl_run_id(r), r->gen->logic->generation, kl__run_detail(r),
                kl_log_quoted(r->outcome.message));
        next = again(r, r->outcome.after, KL_WHY_RETRY, r->outcome.after <= 0, now);
        outcome = KL_OUTCOME_REQUEUE_AFTER;
        break;
    case KL_RESULT_CONFLICT:
        kl_debug("the object changed or went, running again",
            "controller=%s key=%s reconcileID=%s generation=%d%s", w->o.name, r->key, kl_run_id(r),
            r->gen->logic->generation, kl__run_detail(r));
        next = again(r, 0, KL_WHY_RETRY, true, now);
        outcome = KL_OUTCOME_REQUEUE;
        break;
    case KL_RESULT_ERROR:
        if (gives_up(r))
            give_up(r);
        else
            log_failure(r, next = again(r, 0, KL_WHY_RETRY, true, now));
        outcome = KL_OUTCOME_ERROR;
        break;
    case KL_RESULT_FAIL:
        log_failure(r, -1);
        outcome = KL_OUTCOME_ERROR;
        if (w->o.metrics)
            kl_metrics_terminal(w->o.metrics);
        break;
    }
    if (w->o.metrics) {
        kl_metrics_reconcile(w->o.metrics, outcome, now - r->started);
        kl_metrics_work_duration(w->o.metrics, now - r->started);
        kl_metrics_active(w->o.metrics, -1);
    }
    tell_ran(r, next, now);
    run_leave(r, now);
}

void kl__run_end(kl_run *r, kl_time now)
{
    if (r->term.lost)
        settle_deposed(r, now);
    else if (r->w->o.shadow)
        settle_shadow(r, now);
    else
        settle(r, now);
    run_free(r);
}

void kl__run_stepped(kl_run *r, kl_run_state state)
{
    if (state == KL_RUN_WAITING)
        return;
    if (!r->outcome.known)
        kl_run_finish(r, KL_RESULT_ERROR, 0,
            "the program ended a run without a result: call kl_run_finish before KL_RUN_DONE", NULL);
    kl__run_end(r, kl_clock_now(r->w->o.clock));
}

void kl__run_abandon(kl_run *r, kl_time now)
{
    kl_worker *w = r->w;
    r->gen->logic->program->ops->abandon(r->gen->state, r);
    kl__key_return(w, &r->item, now);
    tell_put_back(r, now);
    run_leave(r, now);
    if (w->o.metrics)
        kl_metrics_active(w->o.metrics, -1);
    run_free(r);
}
