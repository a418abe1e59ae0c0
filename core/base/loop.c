/* loop.c - posted functions in fifos, timers in a heap, one lock that guards both and is never held over a
 * call. Its thread looks at the bell before it looks for work, so it overlooks nothing that comes after.
 *
 * Each line counts the time that its functions have used, and the line with the least time is next. `floor`
 * is the time of the last chosen line. A line that was empty starts at `floor`, so it cannot save up unused
 * time. Posts without a line do the same. */
#include "base/loop.h"

#include <stdatomic.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/locks.h"
#include "base/mem.h"
#include "base/sync.h"

typedef struct task {
    kl_list link;
    uint64_t number; /* in the order of all posts */
    kl_loop_line *line;
    void (*fn)(void *);
    void *arg;
} task;

struct kl_loop_line {
    kl_list link, tasks; /* link: in `lines`, while it has tasks */
    size_t n;
    kl_time used;
};

typedef struct timer {
    kl_heap_node node;
    uint64_t id;
    void (*fn)(void *);
    void *arg;
    kl_list link; /* all timers, for cancel by id */
} timer;

struct kl_loop {
    kl_mutex mu;
    kl_bell bell; /* rung after each change; only the loop's thread waits for it */
    kl_clock *clock;
    const char *name;
    kl_list tasks KL_GUARDED_BY(mu); /* without a line */
    kl_list lines KL_GUARDED_BY(mu); /* those that have tasks */
    kl_time floor KL_GUARDED_BY(mu);
    uint64_t posted KL_GUARDED_BY(mu);
    kl_heap due KL_GUARDED_BY(mu);
    kl_list timers KL_GUARDED_BY(mu);
    uint64_t next_id KL_GUARDED_BY(mu);
    bool stopping KL_GUARDED_BY(mu);
    kl_thread *thread;
    atomic_uint_fast64_t self; /* thread number while it runs, 0 otherwise */
};

kl_loop *kl_loop_new(const char *name, kl_clock *clock)
{
    kl_loop *l = kl_new(kl_loop);
    kl_mutex_init_as(&l->mu, KL_LOCK_POST);
    kl_bell_init(&l->bell);
    kl_list_init(&l->tasks);
    kl_list_init(&l->lines);
    kl_list_init(&l->timers);
    kl_heap_init(&l->due);
    l->name = name;
    l->clock = clock ? clock : kl_clock_real();
    return l;
}

/* --- what is next ------------------------------------------------------------------------- */

static const task *first_of(const kl_list *tasks)
{
    return kl_list_empty(tasks) ? NULL : KL_CONTAINER(tasks->next, task, link);
}

static bool is_idle_locked(const kl_loop *l) KL_REQUIRES(l->mu)
{
    return kl_list_empty(&l->tasks) && kl_list_empty(&l->lines);
}

static kl_time next_timer_locked(const kl_loop *l) KL_REQUIRES(l->mu)
{
    kl_heap_node *h = kl_heap_peek(&l->due);
    return h ? h->when : KL_NEVER;
}

/* The line whose turn it is; NULL: that of the posts without one. */
static kl_loop_line *choose_locked(const kl_loop *l) KL_REQUIRES(l->mu)
{
    const task *best = first_of(&l->tasks);
    kl_time used = l->floor;
    for (kl_list *n = l->lines.next; n != &l->lines; n = n->next) {
        const kl_loop_line *line = KL_CONTAINER(n, kl_loop_line, link);
        const task *t = first_of(&line->tasks);
        if (best && (line->used > used || (line->used == used && t->number > best->number)))
            continue;
        best = t;
        used = line->used;
    }
    return best ? best->line : NULL;
}

/* One due timer or posted task, moved out; false when there is none. */
static bool next_locked(kl_loop *l, kl_time now, task *out) KL_REQUIRES(l->mu)
{
    kl_loop_line *line = choose_locked(l);
    kl_list *n = kl_list_shift(line ? &line->tasks : &l->tasks);
    if (line) {
        line->n--;
        if (line->used > l->floor)
            l->floor = line->used;
        if (kl_list_empty(&line->tasks))
            kl_list_remove(&line->link);
    }
    if (n) {
        task *t = KL_CONTAINER(n, task, link);
        *out = *t;
        kl_free(t);
        return true;
    }
    kl_heap_node *h = kl_heap_pop_due(&l->due, now);
    if (!h)
        return false;
    timer *tm = KL_CONTAINER(h, timer, node);
    *out = (task){.fn = tm->fn, .arg = tm->arg};
    kl_list_remove(&tm->link);
    kl_free(tm);
    return true;
}

kl_time kl_loop_step(kl_loop *l)
{
    task t;
    kl_lock(&l->mu);
    while (next_locked(l, kl_clock_now(l->clock), &t)) {
        kl_time begun = t.line ? kl_clock_now(l->clock) : 0;
        kl_unlock(&l->mu);
        kl_locks_none("run what was posted");
        t.fn(t.arg);
        kl_lock(&l->mu);
        if (t.line)
            t.line->used += kl_clock_now(l->clock) - begun;
    }
    kl_time next = next_timer_locked(l);
    kl_unlock(&l->mu);
    return next;
}

static void loop_main(void *arg)
{
    kl_loop *l = arg;
    atomic_store(&l->self, kl_thread_self());
    for (;;) {
        unsigned look = kl_bell_look(&l->bell);
        (void)kl_loop_step(l);
        kl_lock(&l->mu);
        bool idle = is_idle_locked(l), over = idle && l->stopping;
        kl_time next = idle ? next_timer_locked(l) : INT64_MIN;
        kl_unlock(&l->mu);
        if (over)
            break;
        if (next > kl_clock_now(l->clock))
            kl_bell_wait(&l->bell, look, next);
    }
    atomic_store(&l->self, 0);
}

void kl_loop_start(kl_loop *l) { l->thread = kl_thread_start(l->name, loop_main, l); }

void kl_loop_free(kl_loop *l)
{
    if (!l)
        return;
    kl_lock(&l->mu);
    l->stopping = true;
    kl_bell_ring(&l->bell);
    kl_unlock(&l->mu);
    kl_thread_join(l->thread);
    l->thread = NULL; /* from now on kl_loop_call runs fn at once: no thread would do it */
    task t;
    kl_lock(&l->mu);
    while (next_locked(l, INT64_MIN, &t)) {
        kl_unlock(&l->mu);
        kl_locks_none("run what was posted");
        t.fn(t.arg);
        kl_lock(&l->mu);
    }
    kl_unlock(&l->mu);
    kl_heap_fini(&l->due); /* reads its nodes, so it comes before they are freed */
    kl_list *n;
    while ((n = kl_list_shift(&l->timers)))
        kl_free(KL_CONTAINER(n, timer, link));
    kl_mutex_fini(&l->mu);
    kl_free(l);
}

bool kl_loop_on_thread(const kl_loop *l) { return atomic_load(&((kl_loop *)l)->self) == kl_thread_self(); }

void kl_loop_post(kl_loop *l, void (*fn)(void *arg), void *arg)
{
    task *t = kl_new(task);
    t->fn = fn;
    t->arg = arg;
    kl_lock(&l->mu);
    t->number = ++l->posted;
    kl_list_push(&l->tasks, &t->link);
    kl_bell_ring(&l->bell);
    kl_unlock(&l->mu);
}

/* --- lines -------------------------------------------------------------------------------- */

kl_loop_line *kl_loop_line_new(void)
{
    kl_loop_line *line = kl_new(kl_loop_line);
    kl_list_init(&line->tasks);
    return line;
}

void kl_loop_line_free(kl_loop_line *line) { kl_free(line); }

void kl_loop_post_in(kl_loop *l, kl_loop_line *line, void (*fn)(void *arg), void *arg)
{
    task *t = kl_new(task);
    t->fn = fn;
    t->arg = arg;
    t->line = line;
    kl_lock(&l->mu);
    t->number = ++l->posted;
    if (!line->n++) {
        kl_list_push(&l->lines, &line->link);
        if (line->used < l->floor)
            line->used = l->floor;
    }
    kl_list_push(&line->tasks, &t->link);
    kl_bell_ring(&l->bell);
    kl_unlock(&l->mu);
}

size_t kl_loop_line_waiting(kl_loop *l, const kl_loop_line *line)
{
    kl_lock(&l->mu);
    size_t n = line->n;
    kl_unlock(&l->mu);
    return n;
}

/* --- timers, calls ------------------------------------------------------------------------ */

uint64_t kl_loop_timer(kl_loop *l, kl_time after, void (*fn)(void *arg), void *arg)
{
    timer *t = kl_new(timer);
    t->fn = fn;
    t->arg = arg;
    kl_lock(&l->mu);
    uint64_t id = t->id = ++l->next_id;
    kl_list_push(&l->timers, &t->link);
    kl_heap_push(&l->due, &t->node, kl_clock_now(l->clock) + (after > 0 ? after : 0));
    kl_bell_ring(&l->bell);
    kl_unlock(&l->mu);
    return id;
}

void kl_loop_wake(kl_loop *l)
{
    kl_lock(&l->mu);
    kl_bell_ring(&l->bell);
    kl_unlock(&l->mu);
}

kl_time kl_loop_next(kl_loop *l)
{
    kl_lock(&l->mu);
    kl_time next = is_idle_locked(l) ? next_timer_locked(l) : INT64_MIN;
    kl_unlock(&l->mu);
    return next;
}

void kl_loop_timer_cancel(kl_loop *l, uint64_t id)
{
    if (!id)
        return;
    kl_lock(&l->mu);
    for (kl_list *n = l->timers.next; n != &l->timers; n = n->next) {
        timer *t = KL_CONTAINER(n, timer, link);
        if (t->id == id) {
            kl_heap_remove(&l->due, &t->node);
            kl_list_remove(&t->link);
            kl_free(t);
            break;
        }
    }
    kl_unlock(&l->mu);
}

typedef struct waited_call {
    void (*fn)(void *);
    void *arg;
    kl_mutex mu;
    kl_cond cond;
    bool done;
} waited_call;

static void waited_run(void *arg)
{
    waited_call *c = arg;
    c->fn(c->arg);
    kl_lock(&c->mu);
    c->done = true;
    kl_cond_signal(&c->cond);
    kl_unlock(&c->mu);
}

/* Removes a call that the loop has not begun; false if it has. */
static bool withdraw(kl_loop *l, const waited_call *c)
{
    bool found = false;
    kl_lock(&l->mu);
    for (kl_list *n = l->tasks.next; n != &l->tasks && !found; n = n->next) {
        task *t = KL_CONTAINER(n, task, link);
        found = t->fn == waited_run && t->arg == c;
        if (found) {
            kl_list_remove(&t->link);
            kl_free(t);
            break;
        }
    }
    kl_unlock(&l->mu);
    return found;
}

/* A running call is waited for: it uses the caller's stack. */
static bool call(kl_loop *l, void (*fn)(void *arg), void *arg, kl_time deadline)
{
    if (!l->thread || kl_loop_on_thread(l)) {
        fn(arg);
        return true;
    }
    waited_call c = {.fn = fn, .arg = arg};
    bool ran = true;
    kl_mutex_init(&c.mu);
    kl_cond_init(&c.cond);
    kl_loop_post(l, waited_run, &c);
    kl_lock(&c.mu);
    while (!c.done && ran) {
        if (kl_cond_wait_until(&c.cond, &c.mu, deadline))
            continue;
        kl_unlock(&c.mu);
        ran = !withdraw(l, &c);
        deadline = KL_NEVER;
        kl_lock(&c.mu);
    }
    kl_unlock(&c.mu);
    kl_cond_fini(&c.cond);
    kl_mutex_fini(&c.mu);
    return ran;
}

void kl_loop_call(kl_loop *l, void (*fn)(void *arg), void *arg) { call(l, fn, arg, KL_NEVER); }

bool kl_loop_call_within(kl_loop *l, void (*fn)(void *arg), void *arg, kl_time within)
{
    return call(l, fn, arg, kl_clock_now(kl_clock_real()) + within);
}
