/* sync.c - the only door to pthread.
 *
 * Every thread of the library starts here with all signals blocked, so that a host's handlers run on the
 * host's own threads. Conditions wait on CLOCK_MONOTONIC: a changed wall clock neither wakes nor delays a
 * thread. */
#include "base/sync.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/mem.h"

struct kl_thread {
    pthread_t id; /* only of a thread that is joined */
    bool alone;
    char name[16];
    void (*fn)(void *arg);
    void *arg;
    const char *badge; /* inherited from the thread that started it */
};

static void mutex_init(kl_mutex *m)
{
    if (pthread_mutex_init(&m->m, NULL))
        kl_mem_die("mutex");
}

#ifdef KL_DEBUG
void kl__mutex_init_at(kl_mutex *m, kl__lock_id id)
{
    mutex_init(m);
    m->id = id;
}
#else
void kl_mutex_init(kl_mutex *m) { mutex_init(m); }

void kl_mutex_init_as(kl_mutex *m, int rank)
{
    (void)rank;
    mutex_init(m);
}
#endif

void kl_mutex_fini(kl_mutex *m) { pthread_mutex_destroy(&m->m); }

KL_UNCHECKED void kl_lock(kl_mutex *m)
{
    kl__lock_wanted(m, &m->id);
    pthread_mutex_lock(&m->m);
}

KL_UNCHECKED void kl_unlock(kl_mutex *m)
{
    kl__lock_dropped(m);
    pthread_mutex_unlock(&m->m);
}

#define SPINS 64 /* spins before yielding the processor */

void kl_spin_wait(kl_spin *s)
{
    for (unsigned i = 1;; i++) {
        if (!atomic_load_explicit(&s->held, memory_order_relaxed)
            && !atomic_exchange_explicit(&s->held, 1, memory_order_acquire))
            return;
        if (i % SPINS == 0)
            sched_yield();
#if defined(__x86_64__)
        else
            __builtin_ia32_pause();
#endif
    }
}

void kl_cond_init(kl_cond *c)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    if (pthread_cond_init(&c->c, &a))
        kl_mem_die("condition");
    pthread_condattr_destroy(&a);
}

void kl_cond_fini(kl_cond *c) { pthread_cond_destroy(&c->c); }

void kl_cond_signal(kl_cond *c) { pthread_cond_signal(&c->c); }

void kl_cond_broadcast(kl_cond *c) { pthread_cond_broadcast(&c->c); }

void kl_cond_wait(kl_cond *c, kl_mutex *m)
{
    kl__locks_only(m, "wait for a condition");
    pthread_cond_wait(&c->c, &m->m);
}

bool kl_cond_wait_until(kl_cond *c, kl_mutex *m, kl_time deadline)
{
    if (deadline == KL_NEVER) {
        kl_cond_wait(c, m);
        return true;
    }
    kl__locks_only(m, "wait for a condition");
    if (deadline < 0)
        deadline = 0;
    struct timespec ts = {.tv_sec = deadline / KL_SECONDS(1), .tv_nsec = deadline % KL_SECONDS(1)};
    return pthread_cond_timedwait(&c->c, &m->m, &ts) == 0;
}

void kl_bell_init(kl_bell *b)
{
    atomic_init(&b->rung, 0);
    atomic_init(&b->asleep, false);
}

unsigned kl_bell_look(kl_bell *b) { return atomic_load(&b->rung); }

/* Either the ringer sees `asleep`, or we see its ring before we sleep: both are sequentially consistent. */
void kl_bell_wait(kl_bell *b, unsigned look, kl_time deadline)
{
    kl_locks_none("wait for a bell");
    struct timespec ts = {.tv_sec = deadline > 0 ? deadline / KL_SECONDS(1) : 0,
        .tv_nsec = deadline > 0 ? deadline % KL_SECONDS(1) : 0};
    atomic_store(&b->asleep, true);
    if (atomic_load(&b->rung) == look)
        syscall(SYS_futex, &b->rung, FUTEX_WAIT_BITSET_PRIVATE, look, deadline == KL_NEVER ? NULL : &ts, NULL,
            FUTEX_BITSET_MATCH_ANY);
    atomic_store(&b->asleep, false);
}

void kl_bell_ring(kl_bell *b)
{
    atomic_fetch_add(&b->rung, 1);
    if (atomic_load(&b->asleep))
        syscall(SYS_futex, &b->rung, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void kl_signals_block(kl_signal_mask *old)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old->set);
}

void kl_signals_restore(const kl_signal_mask *old) { pthread_sigmask(SIG_SETMASK, &old->set, NULL); }

void kl_signal_unblock(int signo)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signo);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

/* Uses the kernel's thread id: a pthread_t must not be used after the thread's end. */
void kl_thread_signal(uint64_t thread, int signo) { syscall(SYS_tgkill, getpid(), (pid_t)thread, signo); }

static _Thread_local const char *badge;

void kl_thread_set_badge(const char *text) { badge = text; }
const char *kl_thread_badge(void) { return badge; }

static void *thread_main(void *arg)
{
    kl_thread *t = arg;
    void (*fn)(void *arg) = t->fn;
    void *fn_arg = t->arg;
    badge = t->badge;
    pthread_setname_np(pthread_self(), t->name);
    if (t->alone)
        kl_free(t);
    fn(fn_arg);
    return NULL;
}

static kl_thread *start(const char *name, void (*fn)(void *arg), void *arg, bool alone)
{
    kl_thread *t = kl_new(kl_thread);
    strncpy(t->name, name, sizeof t->name - 1);
    t->fn = fn;
    t->arg = arg;
    t->badge = badge;
    t->alone = alone;
    pthread_t id;
    pthread_attr_t how;
    kl_signal_mask old;
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, alone ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
    kl_signals_block(&old);
    int rc = pthread_create(&id, &how, thread_main, t);
    kl_signals_restore(&old);
    pthread_attr_destroy(&how);
    if (rc)
        kl_mem_die("thread");
    if (alone)
        return NULL;
    t->id = id;
    return t;
}

kl_thread *kl_thread_start(const char *name, void (*fn)(void *arg), void *arg)
{
    return start(name, fn, arg, false);
}

void kl_thread_start_alone(const char *name, void (*fn)(void *arg), void *arg)
{
    (void)start(name, fn, arg, true);
}

void kl_thread_join(kl_thread *t)
{
    if (!t)
        return;
    kl_locks_none("join a thread");
    pthread_join(t->id, NULL);
    kl_free(t);
}

uint64_t kl_thread_self(void)
{
    static _Thread_local uint64_t id;
    if (!id)
        id = (uint64_t)syscall(SYS_gettid);
    return id;
}
