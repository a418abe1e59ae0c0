/* watchdog.c - the watchdog sleeps, or checks every guard and computes the time of the next check.
 *
 *   asleep --a turn begins--> awake --every guard rested since the last look--> asleep
 *
 * A thread that enters publishes its turn before it checks whether the dog sleeps; the dog publishes that it
 * sleeps before it checks for turns a last time: one of them sees the other. */
#include "base/watchdog.h"

#include <signal.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"

#define LOOK_MIN KL_MILLISECONDS(1)
#define LOOKS_PER_BUDGET 8
/* The time between two signals to a turn that exceeds its budget; the first one nearly always works. */
#define AGAIN KL_MILLISECONDS(5)

typedef struct dog {
    kl_thread *thread;
    kl_bell bell;
    atomic_bool asleep, leave;
} dog;

static struct {
    kl_mutex mu;
    kl_list guards KL_GUARDED_BY(mu);
    dog *_Atomic dog;  /* set under mu; NULL: no guards. While a guard lives it stays */
    atomic_int signal; /* 0: none */
} all = {.mu = KL_MUTEX_INIT, .guards = {&all.guards, &all.guards}};

static void (*on_interrupt)(void);
static _Atomic kl_time patience = KL_WATCHDOG_STUCK, look_max = KL_WATCHDOG_LOOK_MAX;

void kl_watchdog_set_patience(kl_time d) { atomic_store(&patience, d); }
void kl_watchdog_set_look_max(kl_time d) { atomic_store(&look_max, d); }

/* --- looking ------------------------------------------------------------------------------ */

static kl_time most(kl_time a, kl_time b) { return a > b ? a : b; }
static kl_time least(kl_time a, kl_time b) { return a < b ? a : b; }

/* A turn that the dog has not seen yet. */
static void first_look(kl_guard *g, unsigned turn, kl_time now)
{
    g->seen = turn;
    g->began = now;
    g->ended = 0;
    if (turn & 1)
        g->used = kl_clock_cpu_of(atomic_load(&g->thread));
}

static kl_over judge(kl_guard *g, kl_time now)
{
    const atomic_bool *stop = atomic_load(&g->stop);
    kl_time cpu = atomic_load(&g->cpu);
    if (kl_guard_over(g))
        return kl_guard_over(g);
    if (stop && atomic_load(stop))
        return KL_OVER_STOP;
    if (now >= atomic_load(&g->deadline))
        return KL_OVER_DEADLINE;
    if (!cpu || now - g->began < cpu) /* it cannot have used more than has passed */
        return KL_OVER_NOT;
    return kl_clock_cpu_of(atomic_load(&g->thread)) - g->used >= cpu ? KL_OVER_CPU : KL_OVER_NOT;
}

void kl_guard_interrupt(kl_guard *g)
{
    int signal = atomic_load(&all.signal);
    if (signal)
        kl_thread_signal(atomic_load(&g->thread), signal);
}

static void end(kl_guard *g, unsigned turn, kl_over why, kl_time now)
{
    if (!g->ended) {
        g->ended = now;
        atomic_store(&g->over, (uint64_t)turn << 2 | why);
    }
    kl_guard_interrupt(g);
    if (g->stuck && !g->told.name && now - g->ended >= atomic_load(&patience)
        && atomic_load(&g->turn) == turn)
        g->stuck(g->arg, &g->told);
}

/* The time of the next check; KL_NEVER: it is idle, and was at the last check. */
static kl_time look_at(kl_guard *g, kl_time now)
{
    unsigned turn = atomic_load(&g->turn);
    bool news = turn != g->seen;
    if (news)
        first_look(g, turn, now);
    kl_time latest = atomic_load(&look_max);
    if (!(turn & 1))
        return news ? now + latest : KL_NEVER;
    kl_over why = g->ended ? KL_OVER_CPU : judge(g, now);
    if (atomic_load(&g->turn) != turn) /* the values read may belong to another turn */
        return now + LOOK_MIN;
    if (why) {
        end(g, turn, why, now);
        return now + AGAIN;
    }
    kl_time cpu = atomic_load(&g->cpu),
            next = now + (cpu ? most(LOOK_MIN, least(cpu / LOOKS_PER_BUDGET, latest)) : latest);
    return least(next, most(atomic_load(&g->deadline), now + LOOK_MIN));
}

/* Appends its log text to news. */
static kl_time look_around_locked(kl_time now, kl_buf *news) KL_REQUIRES(all.mu)
{
    kl_time next = KL_NEVER;
    for (kl_list *n = all.guards.next; n != &all.guards; n = n->next) {
        kl_guard *g = KL_CONTAINER(n, kl_guard, link);
        bool known = g->told.name;
        next = least(next, look_at(g, now));
        if (g->told.name && !known)
            kl_buf_printf(news, "%s%s: %s", news->len ? "; " : "", g->told.name, g->told.story);
    }
    return next;
}

static void dog_main(void *arg)
{
    dog *d = arg;
    for (;;) {
        unsigned rung = kl_bell_look(&d->bell);
        kl_time next = KL_NEVER;
        kl_buf news = KL_BUF_INIT;
        kl_lock(&all.mu);
        bool leave = atomic_load(&d->leave);
        for (int i = 0; i < 2 && !leave && next == KL_NEVER; i++) {
            atomic_store(&d->asleep, i == 1);
            next = look_around_locked(kl_clock_now(kl_clock_real()), &news);
        }
        if (next != KL_NEVER)
            atomic_store(&d->asleep, false);
        kl_unlock(&all.mu);
        if (news.len)
            kl_error("a thread is stuck in a C call", "what=%s", kl_log_quoted(kl_buf_str(&news)));
        kl_buf_fini(&news);
        if (leave)
            return;
        kl_bell_wait(&d->bell, rung, next);
    }
}

/* --- guards ------------------------------------------------------------------------------- */

void kl_guard_init(kl_guard *g, void (*stuck)(void *arg, kl_stuck *out), void *arg)
{
    *g = (kl_guard){.stuck = stuck, .arg = arg};
    atomic_init(&g->deadline, KL_NEVER);
    kl_lock(&all.mu);
    kl_list_push(&all.guards, &g->link);
    if (!atomic_load(&all.dog)) {
        dog *d = kl_new(dog);
        kl_bell_init(&d->bell);
        atomic_store(&all.dog, d);
        d->thread = kl_thread_start("kl-watchdog", dog_main, d);
    }
    kl_unlock(&all.mu);
}

void kl_guard_fini(kl_guard *g)
{
    dog *last = NULL;
    kl_lock(&all.mu);
    kl_list_remove(&g->link);
    if (kl_list_empty(&all.guards)) {
        last = atomic_exchange(&all.dog, NULL);
        atomic_store(&last->leave, true);
    }
    kl_unlock(&all.mu);
    if (!last)
        return;
    kl_bell_ring(&last->bell);
    kl_thread_join(last->thread);
    kl_free(last);
}

/* A thread that has never entered a guard lets no signal through. */
static void hear_signal(void)
{
    static _Thread_local bool hears;
    int signal = atomic_load_explicit(&all.signal, memory_order_relaxed);
    if (!signal || hears)
        return;
    hears = true;
    kl_signal_unblock(signal);
}

void kl_guard_enter(kl_guard *g, const kl_terms *t)
{
    kl_locks_none("run a script");
    hear_signal();
    atomic_store_explicit(&g->thread, kl_thread_self(), memory_order_relaxed);
    atomic_store_explicit(&g->cpu, t->cpu, memory_order_relaxed);
    atomic_store_explicit(&g->deadline, t->deadline, memory_order_relaxed);
    atomic_store_explicit(&g->stop, t->stop, memory_order_relaxed);
    atomic_store(&g->turn, atomic_load_explicit(&g->turn, memory_order_relaxed) + 1);
    dog *d = atomic_load_explicit(&all.dog, memory_order_relaxed);
    if (atomic_load(&d->asleep) && atomic_exchange(&d->asleep, false))
        kl_bell_ring(&d->bell);
}

/* After a turn that exceeded its budget: the lock waits for a watchdog that is reporting it. */
static void come_back(kl_guard *g)
{
    kl_lock(&all.mu);
    kl_stuck told = g->told;
    g->told = (kl_stuck){0};
    kl_unlock(&all.mu);
    if (told.name)
        kl_warn("a stuck C call returned", "what=%s", told.name);
    kl_free(told.name);
    kl_free(told.story);
}

kl_over kl_guard_leave(kl_guard *g)
{
    kl_over over = kl_guard_over(g);
    atomic_store_explicit(&g->turn, atomic_load_explicit(&g->turn, memory_order_relaxed) + 1,
        over ? memory_order_seq_cst : memory_order_release);
    if (over)
        come_back(g);
    return over;
}

void kl_watchdog_stuck(void (*fn)(void *arg, const kl_stuck *s), void *arg)
{
    kl_lock(&all.mu);
    for (kl_list *n = all.guards.next; n != &all.guards; n = n->next)
        if (KL_CONTAINER(n, kl_guard, link)->told.name)
            fn(arg, &KL_CONTAINER(n, kl_guard, link)->told);
    kl_unlock(&all.mu);
}

/* --- signals ------------------------------------------------------------------------------ */

static void handle(int signo)
{
    (void)signo;
    on_interrupt();
}

void kl_watchdog_signals(void (*interrupt)(void))
{
    int signo = SIGRTMIN + 3;
    struct sigaction a = {.sa_handler = handle, .sa_flags = SA_RESTART};
    on_interrupt = interrupt;
    sigaction(signo, &a, NULL);
    atomic_store(&all.signal, signo);
}
