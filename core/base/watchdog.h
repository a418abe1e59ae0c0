/* watchdog.h - one thread per process that ends what other threads do for too long.
 *
 * A *guard* stands for something that one thread at a time does in *turns*: its owner enters it, works,
 * and leaves. While turns are taken the dog looks every few milliseconds; when all guards rest it sleeps.
 * A turn that has used more processor time than it may, whose deadline has passed or that is to stop is
 * *over*: kl_guard_over says so from then on, and, where kl_watchdog_signals was asked for, its thread
 * gets the signal, again and again until it leaves. The dog lives as long as there are guards.
 *
 * It counts processor time, by the thread's own clock: a thread that waits, or is not scheduled, spends
 * nothing. What a turn used before the dog's first look at it is not counted, so that it may last longer than
 * its budget by an eighth (KL_WATCHDOG_LOOK_MAX at most). */
#ifndef KL_BASE_WATCHDOG_H
#define KL_BASE_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include "base/clock.h"
#include "base/list.h"

#define KL_WATCHDOG_LOOK_MAX KL_MILLISECONDS(50)
/* Between two looks, while it is awake; where budgets are of a millisecond. Any thread. */
void kl_watchdog_set_look_max(kl_time d);
/* A turn that is over for this long and still not left is stuck; specs are less patient. */
#define KL_WATCHDOG_STUCK KL_SECONDS(5)
void kl_watchdog_set_patience(kl_time d); /* any thread */

typedef enum kl_over {
    KL_OVER_NOT,
    KL_OVER_CPU, /* its processor time is spent */
    KL_OVER_DEADLINE,
    KL_OVER_STOP, /* somebody wants it to stop */
} kl_over;

typedef struct kl_terms {
    kl_time cpu;             /* processor time that one turn may use; 0: as much as it wants */
    kl_time deadline;        /* monotonic, by the real clock; KL_NEVER: none */
    const atomic_bool *stop; /* to be watched while the guard lives; NULL: none */
} kl_terms;

/* A turn that does not end. */
typedef struct kl_stuck {
    char *name;  /* what it is, as a check of health is called: "worker/hello" */
    char *story; /* for people; both are kl_alloc'ed */
} kl_stuck;

/* Zeroed but for kl_guard_init; its members are the dog's and the functions' here. */
typedef struct kl_guard {
    kl_list link;
    atomic_uint turn;          /* odd: somebody is in it */
    atomic_uint_fast64_t over; /* the turn that is over, and why */
    _Atomic kl_time cpu, deadline;
    const atomic_bool *_Atomic stop;
    atomic_uint_fast64_t thread; /* who is in it */
    void (*stuck)(void *arg, kl_stuck *out);
    void *arg;
    unsigned seen; /* the dog's: the turn of its last look */
    /* ... and of that: when it was first seen, with how much on its thread's clock, and since when it is
     * over */
    kl_time began, used, ended;
    kl_stuck told; /* name NULL: it is not stuck */
} kl_guard;

/* stuck (may be NULL) tells of a turn that is over since KL_WATCHDOG_STUCK. It is called on the dog's
 * thread, once, while that turn lasts: who is in it waits in kl_guard_leave. It may not touch guards.
 * kl_guard_fini after the last turn; nothing of the guard is looked at or called any more when it returns.
 * Any thread. */
void kl_guard_init(kl_guard *g, void (*stuck)(void *arg, kl_stuck *out), void *arg);
void kl_guard_fini(kl_guard *g);
/* What is stuck now, one by one; fn may not touch guards. Any thread. */
void kl_watchdog_stuck(void (*fn)(void *arg, const kl_stuck *s), void *arg);

/* A turn, on the calling thread. It costs no system call while the dog is awake. Not nested. */
void kl_guard_enter(kl_guard *g, const kl_terms *t);
/* What it had become. */
kl_over kl_guard_leave(kl_guard *g);

/* Whether this turn is over, for who is in it; also in a signal handler. A few instructions. */
static inline kl_over kl_guard_over(const kl_guard *g)
{
    uint64_t over = atomic_load_explicit(&((kl_guard *)g)->over, memory_order_relaxed);
    return over >> 2 == atomic_load_explicit(&((kl_guard *)g)->turn, memory_order_relaxed)
        ? (kl_over)(over & 3)
        : KL_OVER_NOT;
}

/* From now on threads hear of their turn's end by a realtime signal of ours, whose handler this installs:
 * for programs that own their process. `interrupt` is called on the thread whose turn is over, or was,
 * wherever it is: it may do what a signal handler may. Once, before the first guard. */
void kl_watchdog_signals(void (*interrupt)(void));
/* Sends that signal now to the thread that is in the guard's turn; nothing without signals. Only in
 * `stuck`. */
void kl_guard_interrupt(kl_guard *g);

#endif
