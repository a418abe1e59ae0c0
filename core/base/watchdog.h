/* watchdog.h - one thread per process that interrupts work of other threads that takes too long.
 *
 * A *guard* stands for something that one thread at a time does in *turns*: its owner enters it, works, and
 * leaves. During turns the watchdog looks every few milliseconds; without turns it sleeps. A turn is *over*
 * when its processor time is used up, its deadline has passed, or its stop flag is set. From then on
 * kl_guard_over says so; after kl_watchdog_signals its thread also gets the signal, repeatedly, until it
 * leaves. The watchdog's thread lives as long as there are guards.
 *
 * The watchdog counts processor time, by the thread's own clock: a thread that waits, or is not scheduled,
 * spends nothing. Time before the watchdog's first look at a turn is not counted, so a turn may exceed its
 * budget by an eighth (KL_WATCHDOG_LOOK_MAX at most). */
#ifndef KL_BASE_WATCHDOG_H
#define KL_BASE_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include "base/clock.h"
#include "base/list.h"

#define KL_WATCHDOG_LOOK_MAX KL_MILLISECONDS(50)
/* Sets the longest pause between two looks, for budgets of a millisecond. Any thread. */
void kl_watchdog_set_look_max(kl_time d);
/* A turn that has been over for this long without leaving is stuck; specs set a shorter time. */
#define KL_WATCHDOG_STUCK KL_SECONDS(5)
void kl_watchdog_set_patience(kl_time d); /* any thread */

typedef enum kl_over {
    KL_OVER_NOT,
    KL_OVER_CPU, /* its processor time is spent */
    KL_OVER_DEADLINE,
    KL_OVER_STOP, /* its stop flag is set */
} kl_over;

typedef struct kl_terms {
    kl_time cpu;             /* processor time that one turn may use; 0: as much as it wants */
    kl_time deadline;        /* monotonic, by the real clock; KL_NEVER: none */
    const atomic_bool *stop; /* must live as long as the guard; NULL: none */
} kl_terms;

/* A turn that was over for KL_WATCHDOG_STUCK and has not left. */
typedef struct kl_stuck {
    char *name;  /* names it as a health check does: "worker/hello" */
    char *story; /* a sentence for people; both are kl_alloc'ed */
} kl_stuck;

/* Initialised by kl_guard_init; only the functions here and the watchdog touch its members. */
typedef struct kl_guard {
    kl_list link;
    atomic_uint turn;          /* odd: a thread is in it */
    atomic_uint_fast64_t over; /* the turn that is over, and why */
    _Atomic kl_time cpu, deadline;
    const atomic_bool *_Atomic stop;
    atomic_uint_fast64_t thread; /* the thread in it */
    void (*stuck)(void *arg, kl_stuck *out);
    void *arg;
    unsigned seen; /* the watchdog's: the turn of its last look */
    /* of that turn: when the watchdog first saw it, the thread's CPU clock at that look, and when it became
     * over */
    kl_time began, used, ended;
    kl_stuck told; /* name NULL: it is not stuck */
} kl_guard;

/* `stuck` (may be NULL) describes a stuck turn. It runs once per turn, on the watchdog's thread; the turn's
 * thread waits for it in kl_guard_leave. It may not touch guards. Call kl_guard_fini after the last turn;
 * once it returns, the watchdog neither reads nor calls the guard.
 * Any thread. */
void kl_guard_init(kl_guard *g, void (*stuck)(void *arg, kl_stuck *out), void *arg);
void kl_guard_fini(kl_guard *g);
/* Calls fn for each turn that is stuck now; fn may not touch guards. Any thread. */
void kl_watchdog_stuck(void (*fn)(void *arg, const kl_stuck *s), void *arg);

/* Begins a turn on the calling thread, without a system call while the watchdog is awake. Not nested. */
void kl_guard_enter(kl_guard *g, const kl_terms *t);
/* Ends the turn; whether, and why, it was over. */
kl_over kl_guard_leave(kl_guard *g);

/* Whether this turn is over, for the thread in it, also in a signal handler. A few instructions. */
static inline kl_over kl_guard_over(const kl_guard *g)
{
    uint64_t over = atomic_load_explicit(&((kl_guard *)g)->over, memory_order_relaxed);
    return over >> 2 == atomic_load_explicit(&((kl_guard *)g)->turn, memory_order_relaxed)
        ? (kl_over)(over & 3)
        : KL_OVER_NOT;
}

/* From now on a realtime signal interrupts threads whose turn is over; this installs its handler, so it is
 * for programs that own their process. The handler calls `interrupt`, perhaps after the turn was left: only
 * async-signal-safe calls are allowed. Once, before the first guard. */
void kl_watchdog_signals(void (*interrupt)(void));
/* Sends that signal now to the thread in the guard's turn; does nothing without kl_watchdog_signals. Call it
 * only in `stuck`. */
void kl_guard_interrupt(kl_guard *g);

#endif
