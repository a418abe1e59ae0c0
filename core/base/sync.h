/* sync.h - the only door to pthread: mutex, condition, thread, and the lock contracts that clang checks.
 *
 * Threads created here block all signals and carry a name. Conditions wait on CLOCK_MONOTONIC. */
#ifndef KL_BASE_SYNC_H
#define KL_BASE_SYNC_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "base/clock.h"

#if defined(__clang__)
#define KL_TSA(x) __attribute__((x))
#else
#define KL_TSA(x)
#endif
#define KL_CAPABILITY KL_TSA(capability("mutex"))
/* A note for readers: clang before version 20 cannot check it in C, where a member may not name its
 * neighbour. Clang does check KL_REQUIRES on the functions that touch such members. */
#define KL_GUARDED_BY(m)
#define KL_REQUIRES(m) KL_TSA(requires_capability(m))
#define KL_ACQUIRE(m) KL_TSA(acquire_capability(m))
#define KL_RELEASE(m) KL_TSA(release_capability(m))
#define KL_ACQUIRE_IF(ret, m)                                                                                \
    KL_TSA(try_acquire_capability(ret, m))             /* acquired when the function returns ret (0 or 1) */
#define KL_UNCHECKED KL_TSA(no_thread_safety_analysis) /* for bodies that implement these contracts */

/* The order in which locks are taken, by rank, is in base/locks.h; debug builds check it. */
#ifdef KL_DEBUG
typedef struct kl__lock_id {
    int rank;          /* 0: a leaf; of a spin lock: the last of all */
    const char *place; /* where it was made: "core/cache/ttl.c:37" */
} kl__lock_id;
#define KL__LOCK_ID_AT(rank, file, line)                                                                     \
    {                                                                                                        \
        rank, file ":" #line                                                                                 \
    }
#define KL__LOCK_ID_OF(rank, file, line) KL__LOCK_ID_AT(rank, file, line)
#define KL__LOCK_ID(rank) KL__LOCK_ID_OF(rank, __FILE__, __LINE__)
#define KL__MUTEX_VALUE(rank) PTHREAD_MUTEX_INITIALIZER, KL__LOCK_ID(rank)
#define KL__SPIN_VALUE(rank) 0, KL__LOCK_ID(rank)
/* The calling thread is about to take `lock`; has released it; may hold no lock but this one. */
void kl__lock_wanted(const void *lock, const kl__lock_id *id);
void kl__lock_dropped(const void *lock);
void kl__locks_only(const void *lock, const char *what);
#else
#define KL__MUTEX_VALUE(rank) PTHREAD_MUTEX_INITIALIZER
#define KL__SPIN_VALUE(rank) 0
#define kl__lock_wanted(lock, id) ((void)0)
#define kl__lock_dropped(lock) ((void)0)
#define kl__locks_only(lock, what) ((void)0)
#endif
/* Debug builds abort if the calling thread holds a lock now; `what` says what it is about to do. */
#define kl_locks_none(what) kl__locks_only(NULL, what)

typedef struct KL_CAPABILITY kl_mutex {
    pthread_mutex_t m;
#ifdef KL_DEBUG
    kl__lock_id id;
#endif
} kl_mutex;
#define KL_MUTEX_INIT KL_MUTEX_INIT_AS(0) /* for a static mutex */
#define KL_MUTEX_INIT_AS(rank)                                                                               \
    {                                                                                                        \
        KL__MUTEX_VALUE(rank)                                                                                \
    }
typedef struct kl_cond {
    pthread_cond_t c;
} kl_cond;
typedef struct kl_thread kl_thread;

/* Storage belongs to the caller. Any thread; kl_lock waits for the holder, so make no calls under a lock. */
void kl_mutex_init(kl_mutex *m); /* a leaf */
void kl_mutex_init_as(kl_mutex *m, int rank);
#ifdef KL_DEBUG
void kl__mutex_init_at(kl_mutex *m, kl__lock_id id);
#define kl_mutex_init_as(m, rank) kl__mutex_init_at(m, (kl__lock_id)KL__LOCK_ID(rank))
#define kl_mutex_init(m) kl_mutex_init_as(m, 0)
#endif
void kl_mutex_fini(kl_mutex *m);
void kl_lock(kl_mutex *m) KL_ACQUIRE(*m);
void kl_unlock(kl_mutex *m) KL_RELEASE(*m);

/* A one-word lock for sections that take about a microsecond and never wait: no I/O, no other lock but the
 * allocator's (the queue makes an item under its lock). Zero is unlocked. A waiter spins, then yields. */
typedef struct KL_CAPABILITY kl_spin {
    _Atomic uint32_t held;
#ifdef KL_DEBUG
    kl__lock_id id;
#endif
} kl_spin;
#define KL_SPIN_INIT_AS(rank)                                                                                \
    {                                                                                                        \
        KL__SPIN_VALUE(rank)                                                                                 \
    }
void kl_spin_wait(kl_spin *s); /* the slow half of kl_spin_lock */
KL_UNCHECKED static inline void kl_spin_lock(kl_spin *s) KL_ACQUIRE(*s);
KL_UNCHECKED static inline void kl_spin_lock(kl_spin *s)
{
    kl__lock_wanted(s, &s->id);
    if (atomic_exchange_explicit(&s->held, 1, memory_order_acquire))
        kl_spin_wait(s);
}
KL_UNCHECKED static inline void kl_spin_unlock(kl_spin *s) KL_RELEASE(*s);
KL_UNCHECKED static inline void kl_spin_unlock(kl_spin *s)
{
    kl__lock_dropped(s);
    atomic_store_explicit(&s->held, 0, memory_order_release);
}

/* Storage belongs to the caller. Wake-ups may be spurious: a waiter checks its condition again. */
void kl_cond_init(kl_cond *c);
void kl_cond_fini(kl_cond *c);
void kl_cond_signal(kl_cond *c);
void kl_cond_broadcast(kl_cond *c);
void kl_cond_wait(kl_cond *c, kl_mutex *m) KL_REQUIRES(*m);
/* Waits until signalled or until monotonic `deadline` (KL_NEVER waits forever). False when the deadline
 * passed. */
bool kl_cond_wait_until(kl_cond *c, kl_mutex *m, kl_time deadline) KL_REQUIRES(*m);

/* A wake-up for one thread, its owner; the data itself is passed elsewhere:
 *
 *   owner:   look = kl_bell_look(b); take the news; kl_bell_wait(b, look, deadline)
 *   others:  leave news; kl_bell_ring(b)
 *
 * The owner misses no ring after its look. A ring is a system call only while the owner sleeps, and takes no
 * mutex. */
typedef struct kl_bell {
    atomic_uint rung;
    atomic_bool asleep;
} kl_bell;
void kl_bell_init(kl_bell *b);
unsigned kl_bell_look(kl_bell *b); /* owner */
/* Owner: returns after a ring since `look`, or at `deadline` (KL_NEVER: forever). Spurious returns are
 * possible. */
void kl_bell_wait(kl_bell *b, unsigned look, kl_time deadline);
void kl_bell_ring(kl_bell *b); /* any thread; b must outlive the call */

/* Starts `fn(arg)`; name is at most 15 bytes (longer ones are cut). Never NULL: failure goes to the memory
 * hook. */
kl_thread *kl_thread_start(const char *name, void (*fn)(void *arg), void *arg);
/* Sets the cluster that this thread works for, in a process that works for several; the thread's log lines
 * begin with it. Threads that it starts inherit the badge. `text` is borrowed and outlives all these threads;
 * NULL: no badge. */
void kl_thread_set_badge(const char *text);
const char *kl_thread_badge(void);
/* As kl_thread_start, for a thread that is never joined: it ends by itself, or with the process. */
void kl_thread_start_alone(const char *name, void (*fn)(void *arg), void *arg);
void kl_thread_join(kl_thread *t); /* waits for the end and frees t; NULL is fine */
/* Threads that a library starts for us inherit the starter's signal mask: block around the call, then
 * restore. */
typedef struct kl_signal_mask {
    sigset_t set;
} kl_signal_mask;
void kl_signals_block(kl_signal_mask *old);
void kl_signals_restore(const kl_signal_mask *old);
void kl_signal_unblock(int signo); /* on the calling thread */
/* signals the thread with that kl_thread_self(); does nothing when it is gone */
void kl_thread_signal(uint64_t thread, int signo);
/* a number that is unique among living threads, to assert ownership */
uint64_t kl_thread_self(void);

#endif
