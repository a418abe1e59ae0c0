/* worker.c - a round: take in answers, wake sleepers, end what is late, then start new keys while there is
 * room.
 *
 *   key --start--> running --call, sleep--> waiting --answer--> running --finish--> its result decides what the queue hears
 *
 * All runs and states belong to the worker's thread; only the mailbox (answers) and the flags are shared.
 * A generation's state is closed when the last run on it has ended and a newer one is there; runs that go
 * on and on are ended some time after that. */
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"
#include "model/time.h"
#include "run/run_impl.h"

/* Runs in flight per worker where the spec does not say. Enough to hide a slow API server, few enough to
 * bound memory. */
#define CONCURRENCY_DEFAULT 32
/* A state that cannot be opened (memory, a broken script that passed its load) is tried again this much
 * later. */
#define OPEN_RETRY KL_SECONDS(1)
/* As long as runs may take at the end of the process, unless somebody says otherwise. */
#define RELOAD_DEADLINE KL_SECONDS(30)
/* Keys that are taken in one round. Answers and timers do not wait for more of them, and one that is ready
 * again as soon as it has run holds nobody up. */
#define ROUND_MAX 64
/* Between two looks whether a lease that has run out was renewed after all: who decides that ends the
 * worker otherwise. */
#define MANDATE_RETRY KL_MILLISECONDS(50)

kl_worker *kl_worker_new(const kl_worker_owner *owner, int number)
{
    kl_worker *w = kl_new(kl_worker);
    w->o = *owner;
    w->number = number;
    w->mandate = kl_tenure_mandate(owner->tenure);
    w->epoch = owner->tenure ? atomic_load(&owner->tenure->epoch) : 0;
    kl_mutex_init(&w->mu);
    kl_bell_init(&w->bell);
    w->told_next = KL_NEVER;
    kl_list_init(&w->answers);
    kl_list_init(&w->runs);
    kl_list_init(&w->gens);
    kl_heap_init(&w->due);
    return w;
}

/* --- generations -------------------------------------------------------------------------- */

static void gen_close(kl_worker *w, kl_gen_state *g)
{
    kl_list_remove(&g->link);
    g->logic->program->ops->close(g->state);
    w->o.logic_unref(w->o.arg, g->logic);
    kl_free(g);
}

static kl_gen_state *gen_newest(kl_worker *w)
{
    return kl_list_empty(&w->gens) ? NULL : KL_CONTAINER(w->gens.next, kl_gen_state, link);
}

static void gens_sweep(kl_worker *w)
{
    for (kl_list *n = w->gens.next, *next; n != &w->gens; n = next) {
        next = n->next;
        kl_gen_state *g = KL_CONTAINER(n, kl_gen_state, link);
        if (!g->runs && g != gen_newest(w))
            gen_close(w, g);
    }
}

/* Of the present generation, and good for another key. */
static bool is_fresh(kl_worker *w, const kl_gen_state *g)
{
    bool (*worn)(void *) = g->logic->program->ops->worn;
    return w->o.is_current(w->o.arg, g->logic) && !(worn && worn(g->state));
}

/* The state of the present generation, opened when it is new here; NULL when it cannot be opened now. */
static kl_gen_state *gen_current(kl_worker *w, kl_time now)
{
    kl_gen_state *g = gen_newest(w);
    if (g && is_fresh(w, g))
        return g;
    kl_logic *l = w->o.logic(w->o.arg);
    bool same = g && g->logic == l;
    if (same && is_fresh(w, g)) {
        w->o.logic_unref(w->o.arg, l);
        return g;
    }
    if (now < w->retry_open) {
        w->o.logic_unref(w->o.arg, l);
        return NULL;
    }
    kl_err err = KL_ERR_INIT;
    void *state = l->program->ops->open(l->program, l->index, &w->aborting, &err);
    if (!state) {
        kl_error("cannot open the script on this worker, trying again",
            "controller=%s generation=%d worker=%d error=%s", w->o.name, l->generation, w->number,
            kl_log_quoted(kl_err_message(&err)));
        kl_err_fini(&err);
        w->retry_open = now + OPEN_RETRY;
        w->o.logic_unref(w->o.arg, l);
        return NULL;
    }
    if (same)
        kl_info("a worker's state was replaced by a fresh one: it held more than half of what it may, or an "
                "error left it in doubt",
            "controller=%s generation=%d worker=%d", w->o.name, l->generation, w->number);
    g = kl_new(kl_gen_state);
    g->logic = l;
    g->state = state;
    kl_list_push_front(&w->gens, &g->link);
    gens_sweep(w);
    return g;
}

/* The same, but a state is only opened for a key: an idle controller has none, and what is left of another
 * generation goes. NULL with *next: when to look again. */
static kl_gen_state *gen_wanted(kl_worker *w, kl_time now, kl_time *next)
{
    kl_gen_state *g = gen_newest(w);
    if (g && is_fresh(w, g))
        return g;
    kl_time due = kl_workqueue_more(w->o.queue);
    if (due <= now)
        return gen_current(w, now);
    *next = due;
    w->room = true;
    if (g && !g->runs)
        gen_close(w, g);
    return NULL;
}

/* --- the end of a run --------------------------------------------------------------------- */

void kl__answer_forget(kl_run *r)
{
    kl_worker *w = r->w;
    kl_answer *pending = r->pending;
    if (!pending)
        return;
    kl_lock(&w->mu);
    pending->run = NULL;
    kl_unlock(&w->mu);
    r->pending = NULL;
    kl_door_cancel(r->door, r->request);
}

static void run_free(kl_run *r)
{
    kl_worker *w = r->w;
    kl__answer_forget(r);
    kl_heap_remove(&w->due, &r->sleep);
    kl_heap_remove(&w->due, &r->deadline);
    kl_list_remove(&r->link);
    r->gen->runs--;
    if (r->view)
        r->w->o.imagine->ops->view_free(r->view);
    kl_overlay_unref(r->overlay);
    kl_value_unref(r->object);
    kl_value_unref(r->reply_body);
    kl_err_fini(&r->reply_err);
    kl_free(r->message);
    kl_free(r->traceback);
    kl_free(r->detail);
    kl_free(r->ns);
    kl_free(r->group);
    kl_free(r);
    atomic_fetch_sub(&w->inflight, 1);
}

/* The key is the queue's again. */
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
    kl_log_quote(r->message ? r->message : "", why, sizeof why);
    if (next < 0)
        kl_error("reconcile failed for good, waiting for the object to change",
            "controller=%s key=%s attempt=%d reconcileID=%s generation=%d%s error=%s%s%s", r->w->o.name,
            r->key, r->attempt, kl_run_id(r), r->gen->logic->generation, kl__run_detail(r), why,
            r->traceback ? "\n" : "", r->traceback ? r->traceback : "");
    else
        kl_error("reconcile failed",
            "controller=%s key=%s attempt=%d retry_in=%s reconcileID=%s generation=%d%s error=%s%s%s",
            r->w->o.name, r->key, r->attempt, kl_duration_format(next, in), kl_run_id(r),
            r->gen->logic->generation, kl__run_detail(r), why, r->traceback ? "\n" : "",
            r->traceback ? r->traceback : "");
}

/* A script that wants its key again at once, for ever, would take a core: the base of client-go's backoff. */
#define AGAIN_SOONEST KL_MILLISECONDS(5)

/* What the queue is asked to bring again comes as urgent as it was. */
static kl_time again(const kl_run *r, kl_time after, kl_why why, bool rate_limited, kl_time now)
{
    return kl_workqueue_add_with(r->w->o.queue, r->key,
        &(kl_add){.priority = r->item.priority,
            .after = rate_limited || after > AGAIN_SOONEST ? after : AGAIN_SOONEST,
            .rate_limited = rate_limited,
            .blameless = r->result != KL_RESULT_ERROR,
            .cause = kl_cause_of(why, NULL)},
        now);
}

/* It was not run after all, or not to its end: what it was for, it is still for. */
static void again_the_same(kl_worker *w, const kl_queue_item *item, kl_time now)
{
    kl_workqueue_add_with(w->o.queue, item->key,
        &(kl_add){
            .priority = item->priority, .cause = kl_cause_of(item->cause.why, kl_cause_object(&item->cause))},
        now);
}

/* This one counted. Conflicts are none: somebody else was faster. */
static int failures_of(const kl_run *r) { return kl_workqueue_faults(r->w->o.queue, r->key) + 1; }

static bool gives_up(const kl_run *r)
{
    int most = r->gen->logic->spec->give_up;
    return most > 0 && failures_of(r) >= most;
}

/* The last of so many failures in a row: routine does not bring the key back, a change does, and it is as
 * good as new then. */
static void give_up(kl_run *r)
{
    kl_worker *w = r->w;
    char why[2048],
        *note = kl_sprintf("gave up after %d failures in a row, waiting for the object to change: %s",
            failures_of(r), r->message ? r->message : "");
    kl_log_quote(r->message ? r->message : "", why, sizeof why);
    kl_error("reconcile failed too often, waiting for the object to change",
        "controller=%s key=%s attempt=%d reconcileID=%s generation=%d%s error=%s%s%s", w->o.name, r->key,
        r->attempt, kl_run_id(r), r->gen->logic->generation, kl__run_detail(r), why, r->traceback ? "\n" : "",
        r->traceback ? r->traceback : "");
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
            .message = r->message,
            .after = -1,
            .started = r->started,
            .ended = now,
            .attempt = r->attempt,
            .generation = r->gen->logic->generation,
            .wrote = r->wrote,
            .excused = r->excused,
            .put_back = true});
}

/* What it was refused somebody else does; but should we lead again, its key is looked at again. No error,
 * no backoff, no outcome. */
static void settle_deposed(kl_run *r, kl_time now)
{
    kl_worker *w = r->w;
    kl_info("a run was ended: this process does not lead (any more)", "controller=%s key=%s reconcileID=%s",
        w->o.name, r->key, kl_run_id(r));
    again_the_same(w, &r->item, now);
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
        .message = r->message,
        .traceback = r->traceback,
        .result = r->result,
        .after = after,
        .started = r->started,
        .ended = now,
        .attempt = r->attempt,
        .generation = r->gen->logic->generation,
        .wrote = r->wrote,
        .excused = r->excused};
    if (w->o.ran || kl_run_watched(r))
        x.id = kl_run_id(r);
    if (w->o.ran)
        w->o.ran(w->o.arg, &x);
    kl__tell_ended(r, &x);
    kl__fight_ended(r, now);
}

static void settle_shadow(kl_run *r, kl_time now)
{
    kl_workqueue_forget(r->w->o.queue, r->key);
    tell_ran(r, r->after, now);
    run_leave(r, now);
}

static void settle(kl_run *r, kl_time now)
{
    kl_worker *w = r->w;
    kl_workqueue *q = w->o.queue;
    kl_outcome outcome = KL_OUTCOME_SUCCESS;
    kl_time next = -1;
    switch (r->result) {
    case KL_RESULT_DONE: kl_workqueue_forget(q, r->key); break;
    case KL_RESULT_AFTER:
        kl_workqueue_forget(q, r->key);
        next = again(r, r->after, KL_WHY_AFTER, false, now);
        outcome = KL_OUTCOME_REQUEUE_AFTER;
        break;
    case KL_RESULT_REQUEUE:
        next = again(r, 0, KL_WHY_RETRY, true, now);
        outcome = KL_OUTCOME_REQUEUE;
        break;
    case KL_RESULT_RETRY:
        if (r->message)
            kl_info("reconcile waits", "controller=%s key=%s reconcileID=%s generation=%d%s why=%s",
                w->o.name, r->key, kl_run_id(r), r->gen->logic->generation, kl__run_detail(r),
                kl_log_quoted(r->message));
        next = again(r, r->after, KL_WHY_RETRY, r->after <= 0, now);
        outcome = KL_OUTCOME_REQUEUE_AFTER;
        break;
    case KL_RESULT_CONFLICT:
        kl_debug("conflict, running again", "controller=%s key=%s reconcileID=%s generation=%d%s", w->o.name,
            r->key, kl_run_id(r), r->gen->logic->generation, kl__run_detail(r));
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

static void run_end(kl_run *r, kl_time now)
{
    if (r->deposed)
        settle_deposed(r, now);
    else if (r->w->o.shadow)
        settle_shadow(r, now);
    else
        settle(r, now);
    run_free(r);
}

static void after_step(kl_run *r, kl_run_state state)
{
    if (state == KL_RUN_WAITING)
        return;
    if (!r->finished)
        kl_run_finish(r, KL_RESULT_ERROR, 0,
            "the program ended a run without a result: call kl_run_finish before KL_RUN_DONE", NULL);
    run_end(r, kl_clock_now(r->w->o.clock));
}

/* With what it was answered. */
static void resume(kl_run *r, int code)
{
    r->waiting_for = NULL;
    kl__tell_answered(r,
        &(kl_answered){.status = r->reply_status,
            .code = code,
            .body = r->reply_body,
            .err = r->reply_status ? &r->reply_err : NULL});
    after_step(r, r->gen->logic->program->ops->resume(r->gen->state, r));
}

char *kl__late_text(const kl_run *r)
{
    char t[KL_DURATION_MAX];
    return kl_sprintf(
        "timed out after %s, waiting for %s: raise `timeout` in the spec of %s, or do less per run",
        kl_duration_format(r->gen->logic->spec->timeout, t), r->waiting_for ? r->waiting_for : "nothing",
        r->w->o.name);
}

static void run_late(kl_run *r, kl_time now)
{
    char *m = kl__late_text(r);
    r->gen->logic->program->ops->abandon(r->gen->state, r);
    if (r->w->o.metrics)
        kl_metrics_timeout(r->w->o.metrics);
    kl_run_finish(r, KL_RESULT_ERROR, 0, m, NULL);
    kl_free(m);
    run_end(r, now);
}

/* --- the start of a run ------------------------------------------------------------------- */

static kl_run *run_new(
    kl_worker *w, kl_gen_state *g, const kl_queue_item *item, const kl_value *object, kl_time now)
{
    kl_run *r = kl_new(kl_run);
    size_t nslen;
    r->w = w;
    r->gen = g;
    r->door = w->o.door;
    r->at = KL_FLEET_NONE;
    r->item = *item;
    r->key = item->key;
    kl_key_split(r->key, &nslen, &r->name);
    r->ns = nslen ? kl_strndup(r->key, nslen) : NULL;
    r->object = object;
    r->mandate = w->mandate;
    r->epoch = w->epoch;
    r->attempt = kl_workqueue_requeues(w->o.queue, r->key) + 1;
    r->started = now;
    g->runs++;
    kl_list_push(&w->runs, &r->link);
    atomic_fetch_add(&w->inflight, 1);
    if (w->o.metrics)
        kl_metrics_active(w->o.metrics, 1);
    return r;
}

/* What is owed to `name`, the key or its group, is shown; if not, the queue holds the key until it is. */
static bool is_shown(
    kl_worker *w, const kl_gen_state *g, const kl_queue_item *item, const char *name, kl_time now)
{
    kl_time until;
    if (!kl__write_owed(w, g, name, item->key, now, &until))
        return true;
    kl_workqueue_hold(w->o.queue, item, until, now);
    return false;
}

/* Whether it may run now, in *group where it is in one; if not, the queue has it again and brings it in
 * time. */
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

/* A run that cannot begin has failed like one that did. */
static void run_fail(kl_run *r, const kl_err *err, kl_time now)
{
    if (err->status == KL_ETIMEOUT || err->status == KL_ETOOBIG)
        kl_run_spent(r, err->status == KL_ETOOBIG ? KL_SPENT_MEMORY : KL_SPENT_CPU);
    kl_run_finish(r, KL_RESULT_ERROR, 0, kl_err_message(err), NULL);
    run_end(r, now);
}

/* False when the key has to wait after all. */
static bool run_start(kl_worker *w, kl_gen_state *g, kl_queue_item *item, kl_time now)
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
    if (object && w->o.gate && !kl_gate_enter(w->o.gate, item->key)) { /* another replica's by now */
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
            kl_heap_push(&w->due, &r->deadline, kl__after(now, g->logic->spec->timeout));
        after_step(r, g->logic->program->ops->start(g->state, r));
    }
    kl_err_fini(&err);
    return true;
}

static bool has_room(kl_worker *w, const kl_gen_state *g)
{
    int limit = g->logic->spec->concurrency;
    return atomic_load(&w->inflight) < (limit > 0 ? (size_t)limit : CONCURRENCY_DEFAULT);
}

static void put_back(kl_worker *w, kl_queue_item *item, kl_time now)
{
    again_the_same(w, item, now);
    kl_workqueue_finish(w->o.queue, item, now);
}

/* --- a round ------------------------------------------------------------------------------ */

int kl__answer_take(kl_answer *a)
{
    kl_worker *w = a->w;
    kl_lock(&w->mu);
    kl_list_remove(&a->link);
    w->outstanding--;
    kl_run *r = a->run;
    kl_unlock(&w->mu);
    if (r) {
        r->pending = NULL;
        r->reply_status = a->status;
        r->deposed |= a->status == KL_ENOTLEADER;
        r->reply_body = a->body;
        kl_err_move(&r->reply_err, &a->err);
        if (!a->status)
            kl__write_answered(r, a->write, a->body);
    } else {
        kl_value_unref(a->body);
        kl_err_fini(&a->err);
    }
    int code = a->code;
    kl__write_free(a->write);
    kl_free(a);
    return code;
}

static void take_answers(kl_worker *w)
{
    for (;;) {
        kl_lock(&w->mu);
        kl_list *n = kl_list_empty(&w->answers) ? NULL : w->answers.next;
        kl_answer *a = n ? KL_CONTAINER(n, kl_answer, link) : NULL;
        kl_run *r = a ? a->run : NULL;
        kl_unlock(&w->mu);
        if (!a)
            return;
        int code = kl__answer_take(a);
        if (r)
            resume(r, code);
    }
}

static void take_timers(kl_worker *w, kl_time now)
{
    kl_heap_node *h;
    while ((h = kl_heap_pop_due(&w->due, now))) {
        kl_run *as_sleep = KL_CONTAINER(h, kl_run, sleep);
        bool is_sleep = false; /* which of the run's two nodes it is */
        for (kl_list *n = w->runs.next; n != &w->runs && !is_sleep; n = n->next)
            is_sleep = KL_CONTAINER(n, kl_run, link) == as_sleep;
        if (is_sleep)
            resume(as_sleep, 0);
        else
            run_late(KL_CONTAINER(h, kl_run, deadline), now);
    }
}

static void run_abandon(kl_run *r, kl_time now)
{
    kl_worker *w = r->w;
    r->gen->logic->program->ops->abandon(r->gen->state, r);
    again_the_same(w, &r->item, now);
    tell_put_back(r, now);
    run_leave(r, now);
    if (w->o.metrics)
        kl_metrics_active(w->o.metrics, -1);
    run_free(r);
}

static void abandon_all(kl_worker *w, kl_time now)
{
    while (!kl_list_empty(&w->runs))
        run_abandon(KL_CONTAINER(w->runs.next, kl_run, link), now);
}

/* --- runs on old logic -------------------------------------------------------------------- */

static kl_time patience(const kl_worker *w, const kl_gen_state *g)
{
    kl_time timeout = g->logic->spec->timeout;
    return w->o.reload_deadline     ? w->o.reload_deadline
        : timeout > RELOAD_DEADLINE ? timeout
                                    : RELOAD_DEADLINE;
}

static void end_runs_of(kl_worker *w, kl_gen_state *g, kl_time now)
{
    for (kl_list *n = w->runs.next, *next; n != &w->runs; n = next) {
        next = n->next;
        kl_run *r = KL_CONTAINER(n, kl_run, link);
        char t[KL_DURATION_MAX];
        if (r->gen != g)
            continue;
        kl_warn("a run on the old logic was ended; its key runs on the new one",
            "controller=%s key=%s reconcileID=%s generation=%d waited_for=%s after=%s%s", w->o.name, r->key,
            kl_run_id(r), g->logic->generation, kl_log_quoted(r->waiting_for ? r->waiting_for : "nothing"),
            kl_duration_format(now - g->old_since, t), kl__run_detail(r));
        if (w->o.metrics)
            kl_metrics_outlived(w->o.metrics);
        run_abandon(r, now);
    }
}

kl_time kl__outlived_at(kl_worker *w, kl_gen_state *g, kl_time now)
{
    if (w->o.reload_deadline < 0 || w->o.is_current(w->o.arg, g->logic))
        return KL_NEVER;
    if (!g->old_since)
        g->old_since = now;
    return kl__after(g->old_since, patience(w, g));
}

/* Ends what has outlived its generation for too long; when to look again, or KL_NEVER. */
static kl_time end_old_runs(kl_worker *w, kl_time now)
{
    kl_time next = KL_NEVER;
    for (kl_list *n = w->gens.next; n != &w->gens; n = n->next) {
        kl_gen_state *g = KL_CONTAINER(n, kl_gen_state, link);
        kl_time end = g->runs ? kl__outlived_at(w, g, now) : KL_NEVER;
        if (end <= now)
            end_runs_of(w, g, now);
        else if (end < next)
            next = end;
    }
    return next;
}

/* What runs on a state that is gone has failed, whatever it waits for. */
static void end_lost_runs(kl_worker *w)
{
    for (kl_list *n = w->runs.next, *next; n != &w->runs; n = next) {
        next = n->next;
        kl_run *r = KL_CONTAINER(n, kl_run, link);
        const kl_program_ops *ops = r->gen->logic->program->ops;
        const char *why = ops->lost ? ops->lost(r->gen->state) : NULL;
        if (!why)
            continue;
        ops->abandon(r->gen->state, r);
        kl_run_spent(r, KL_SPENT_PROCESS);
        kl_run_finish(r, KL_RESULT_ERROR, 0, why, NULL);
        run_end(r, kl_clock_now(w->o.clock));
    }
}

static bool may_act(kl_worker *w) { return kl_mandate_holds(&w->mandate, w->o.clock); }

static bool rest(kl_gen_state *g, bool idle)
{
    const kl_program_ops *ops = g->logic->program->ops;
    return ops->rest && ops->rest(g->state, idle);
}

static size_t sleepers(kl_worker *w)
{
    size_t n = 0;
    for (kl_list *l = w->runs.next; l != &w->runs; l = l->next)
        n += KL_CONTAINER(l, kl_run, link)->sleep.pos != 0;
    return n;
}

kl_time kl_worker_step(kl_worker *w)
{
    kl_time now = kl_clock_now(w->o.clock);
    bool draining = atomic_load(&w->draining);
    if (atomic_load(&w->aborting))
        abandon_all(w, now);
    take_answers(w);
    take_timers(w, now);
    end_lost_runs(w);
    kl_time next = KL_NEVER, old = end_old_runs(w, now);
    w->room = false;
    bool mine = (!w->o.turn || w->o.turn(w->o.arg)) && !(w->o.paused && atomic_load(w->o.paused));
    if (!draining && !may_act(w)) {
        next = now + MANDATE_RETRY;
    } else if (!draining && mine) {
        kl_gen_state *g = gen_wanted(w, now, &next);
        kl_queue_item item;
        int taken = 0;
        while (g && mine && taken < ROUND_MAX && has_room(w, g) && may_act(w)
            && kl_workqueue_try_get(w->o.queue, now, &item)) {
            mine = !w->o.turn && !atomic_load(&w->draining) && !(w->o.paused && atomic_load(w->o.paused));
            /* Asked again after the key was taken: a generation is published before it enqueues, so this
             * is the one that did. */
            g = gen_current(w, now);
            if (w->o.more)
                w->o.more(w->o.arg);
            if (g) {
                taken++;
                (void)run_start(w, g, &item, now);
                (void)rest(g, false);
            } else {
                put_back(w, &item, now);
            }
            now = kl_clock_now(w->o.clock);
        }
        if (!g && !w->room)
            next = w->retry_open;
        else if (g && (w->room = has_room(w, g)))
            next = kl_workqueue_next_due(w->o.queue);
        if (taken == ROUND_MAX)
            next = now;
        if (g && next > now && rest(g, true))
            next = now; /* look at everything again before more of it */
        if (w->o.turn_over)
            w->o.turn_over(w->o.arg);
    }
    if (old < next)
        next = old;
    if (w->o.turn)
        next = KL_NEVER; /* whose turn it is hears of it */
    gens_sweep(w);
    kl_heap_node *h = kl_heap_peek(&w->due);
    kl_time due = h ? h->when : KL_NEVER;
    size_t asleep = w->o.turn ? sleepers(w) : 0;
    kl_lock(&w->mu);
    if (!kl_list_empty(&w->answers)) /* the door refuses at once: there is more to do */
        next = now;
    w->told_asleep = asleep;
    w->told_full = gen_newest(w) && !has_room(w, gen_newest(w));
    w->told_next = due;
    kl_unlock(&w->mu);
    return due < next ? due : next;
}

static bool nothing_left(kl_worker *w)
{
    kl_lock(&w->mu);
    bool none = !w->outstanding;
    kl_unlock(&w->mu);
    return none && !atomic_load(&w->inflight);
}

static void worker_main(void *arg)
{
    kl_worker *w = arg;
    for (;;) {
        unsigned look = kl_bell_look(&w->bell);
        bool draining = atomic_load(&w->draining);
        kl_time next = kl_worker_step(w);
        if (draining && nothing_left(w))
            break;
        atomic_store(&w->until, next);
        if (w->room)
            atomic_store(&w->rest, KL_WORKER_FREE);
        if (next > kl_clock_now(w->o.clock)) /* else a bell of real time would wait for a fake clock's now */
            kl_bell_wait(&w->bell, look, next);
        atomic_store(&w->rest, KL_WORKER_BUSY);
    }
    while (!kl_list_empty(&w->gens))
        gen_close(w, gen_newest(w));
    atomic_store(&w->ended, true);
    if (w->o.ended)
        w->o.ended(w->o.arg);
}

void kl_worker_start(kl_worker *w)
{
    char *name = kl_sprintf("kl-%.8s-%d", w->o.name, w->number);
    w->started = true;
    w->thread = kl_thread_start(name, worker_main, w);
    kl_free(name);
}

static void raise_flag(kl_worker *w, atomic_bool *flag)
{
    atomic_store(flag, true);
    kl_bell_ring(&w->bell);
}

void kl_worker_poke(kl_worker *w) { kl_bell_ring(&w->bell); }
void kl_worker_drain(kl_worker *w) { raise_flag(w, &w->draining); }
void kl_worker_abort(kl_worker *w) { raise_flag(w, &w->aborting); }

/* Who is busy hears the bell before it sleeps. */
bool kl_worker_call(kl_worker *w)
{
    kl_worker_rest free = KL_WORKER_FREE;
    bool called = atomic_compare_exchange_strong(&w->rest, &free, KL_WORKER_CALLED);
    if (called || free == KL_WORKER_BUSY)
        kl_bell_ring(&w->bell);
    return called || free == KL_WORKER_CALLED;
}

bool kl_worker_awaits(kl_worker *w, kl_time due)
{
    return atomic_load(&w->rest) == KL_WORKER_FREE && atomic_load(&w->until) <= due;
}

bool kl_worker_idle(kl_worker *w) { return !atomic_load(&w->inflight); }

bool kl_worker_ended(kl_worker *w) { return atomic_load(&w->ended); }

size_t kl_worker_inflight(kl_worker *w) { return atomic_load(&w->inflight); }

void kl_worker_outlook(kl_worker *w, size_t *asleep, bool *full, kl_time *next)
{
    kl_lock(&w->mu);
    *asleep = w->told_asleep;
    *full = w->told_full;
    *next = w->told_next;
    kl_unlock(&w->mu);
}

void kl_worker_wait(kl_worker *w)
{
    if (!w->started)
        worker_main(w); /* driven by steps so far: let it end the same way */
    kl_thread_join(w->thread);
    w->started = true;
    w->thread = NULL;
}

void kl_worker_join(kl_worker *w)
{
    if (!w)
        return;
    if (w->thread || !w->started)
        kl_worker_wait(w);
    kl_commons_free(w->commons);
    kl_shared_free(w->memos);
    kl_heap_fini(&w->due);
    kl_mutex_fini(&w->mu);
    kl_free(w);
}
