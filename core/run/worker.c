/* worker.c - a round: take answers, wake sleepers, end late runs, then start new keys while there is room.
 *
 *   key --start--> running --call, sleep--> waiting --answer--> running --finish--> queued or done
 *
 * All runs and states belong to the worker's thread; only the mailbox (answers) and the flags are shared. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/time.h"
#include "run/run_impl.h"

/* The default number of runs in flight per worker. Enough to hide a slow API server, few enough to bound
 * memory. */
#define CONCURRENCY_DEFAULT 32
/* Keys taken in one round. Answers and timers wait for no more than these, and a key that is always ready
 * cannot block others. */
#define ROUND_MAX 64
/* The time between two checks whether an expired lease was renewed after all. If not, the election ends the
 * worker. */
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

/* Continues a run with its answer. */
static void resume(kl_run *r, int code)
{
    r->wait.for_what = NULL;
    kl__tell_answered(r,
        &(kl_answered){.status = r->reply.status,
            .code = code,
            .body = r->reply.body,
            .err = r->reply.status ? &r->reply.err : NULL});
    kl__run_stepped(r, r->gen->logic->program->ops->resume(r->gen->state, r));
}

char *kl__late_text(const kl_run *r)
{
    char t[KL_DURATION_MAX];
    if (r->wait.expired)
        return kl_strdup(r->wait.expired);
    return kl_sprintf(
        "timed out after %s while waiting for %s: raise `timeout` in the spec of %s, or do less per run",
        kl_duration_format(r->gen->logic->spec->timeout, t), r->wait.for_what ? r->wait.for_what : "nothing",
        r->w->o.name);
}

void kl__run_expire(kl_run *r, char *why)
{
    kl_free(r->wait.expired);
    r->wait.expired = why;
    kl_heap_remove(&r->w->due, &r->wait.deadline);
    kl_heap_push(&r->w->due, &r->wait.deadline, kl_clock_now(r->w->o.clock));
}

static void run_late(kl_run *r, kl_time now)
{
    char *m = kl__late_text(r);
    r->gen->logic->program->ops->abandon(r->gen->state, r);
    if (r->w->o.metrics)
        kl_metrics_timeout(r->w->o.metrics);
    kl_run_finish(r, KL_RESULT_ERROR, 0, m, NULL);
    kl_free(m);
    kl__run_end(r, now);
}

static bool has_room(kl_worker *w, const kl_gen_state *g)
{
    int limit = g->logic->spec->concurrency;
    return atomic_load(&w->inflight) < (limit > 0 ? (size_t)limit : CONCURRENCY_DEFAULT);
}

static void put_back(kl_worker *w, kl_queue_item *item, kl_time now)
{
    kl__key_return(w, item, now);
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
        r->wait.answer = NULL;
        r->reply.status = a->status;
        r->term.lost |= a->status == KL_ENOTLEADER;
        r->reply.body = a->body;
        kl_err_move(&r->reply.err, &a->err);
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

static size_t count_answers(kl_worker *w)
{
    size_t n = 0;
    kl_lock(&w->mu);
    for (const kl_list *at = w->answers.next; at != &w->answers; at = at->next)
        n++;
    kl_unlock(&w->mu);
    return n;
}

/* Takes the answers that are there now, and no later ones: a dry run's calls are answered at once, and would
 * hold up timeouts, other keys and the worker's end. */
static void take_answers(kl_worker *w)
{
    for (size_t n = count_answers(w); n > 0; n--) {
        kl_lock(&w->mu);
        kl_list *first = kl_list_empty(&w->answers) ? NULL : w->answers.next;
        kl_answer *a = first ? KL_CONTAINER(first, kl_answer, link) : NULL;
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
        kl_run *as_sleep = KL_CONTAINER(h, kl_run, wait.sleep);
        bool is_sleep = false; /* which of the run's two nodes it is */
        for (kl_list *n = w->runs.next; n != &w->runs && !is_sleep; n = n->next)
            is_sleep = KL_CONTAINER(n, kl_run, link) == as_sleep;
        if (is_sleep)
            resume(as_sleep, 0);
        else
            run_late(KL_CONTAINER(h, kl_run, wait.deadline), now);
    }
}

static void abandon_all(kl_worker *w, kl_time now)
{
    while (!kl_list_empty(&w->runs))
        kl__run_abandon(KL_CONTAINER(w->runs.next, kl_run, link), now);
}

/* Ends the runs on a lost state: they have failed, whatever they wait for. */
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
        kl__run_end(r, kl_clock_now(w->o.clock));
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
        n += KL_CONTAINER(l, kl_run, link)->wait.sleep.pos != 0;
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
    kl_time next = KL_NEVER, old = kl__gens_end_old_runs(w, now);
    w->room = false;
    bool mine = (!w->o.turn || w->o.turn(w->o.arg)) && !(w->o.paused && atomic_load(w->o.paused));
    if (!draining && !may_act(w)) {
        next = now + MANDATE_RETRY;
    } else if (!draining && mine) {
        kl_gen_state *g = kl__gen_wanted(w, now, &next);
        kl_queue_item item;
        int taken = 0;
        while (g && mine && taken < ROUND_MAX && has_room(w, g) && may_act(w)
            && kl_workqueue_try_get(w->o.queue, now, &item)) {
            mine = !w->o.turn && !atomic_load(&w->draining) && !(w->o.paused && atomic_load(w->o.paused));
            /* Asks again after the key was taken: a generation is published before it enqueues keys, so this
             * is at least the one that enqueued the key. */
            g = kl__gen_current(w, now);
            if (w->o.more)
                w->o.more(w->o.arg);
            if (g) {
                taken++;
                (void)kl__run_start(w, g, &item, now);
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
            next = now; /* check everything again before taking more */
        if (w->o.turn_over)
            w->o.turn_over(w->o.arg);
    }
    if (old < next)
        next = old;
    if (w->o.turn)
        next = KL_NEVER; /* the owner of the turns starts the next round */
    kl__gens_sweep(w);
    kl_heap_node *h = kl_heap_peek(&w->due);
    kl_time due = h ? h->when : KL_NEVER;
    size_t asleep = w->o.turn ? sleepers(w) : 0;
    kl_lock(&w->mu);
    if (!kl_list_empty(&w->answers)) /* the door refuses at once: there are more answers */
        next = now;
    w->told_asleep = asleep;
    w->told_full = kl__gen_newest(w) && !has_room(w, kl__gen_newest(w));
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
        if (next > kl_clock_now(w->o.clock)) /* a bell of real time would wait for a fake clock's now */
            kl_bell_wait(&w->bell, look, next);
        atomic_store(&w->rest, KL_WORKER_BUSY);
    }
    while (!kl_list_empty(&w->gens))
        kl__gen_close(w, kl__gen_newest(w));
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

/* A busy worker sees the bell before it sleeps. */
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
        worker_main(w); /* no thread: the caller drove the worker by steps, and ends it the same way */
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
