/* turns.h - a manager whose time stands still and whose keys wait for their turn: what is the same going in runs in the same order.
 *
 * For tests of controllers. With kl_manager_options.turns and a fake clock the manager does nothing by itself but talk to the server
 * (its watches keep real time, by kl_manager_options.watch_clock); its owner lets one key run after the other, and moves the clock:
 *
 *   busy: wait     ready: kl_manager_turn     neither: move the clock to `next` at most, then kl_manager_clock_moved
 *
 * Keys of a controller come by name, controllers in their order; workers are one for each. A fake clock has to be far ahead of the
 * real one, so that nobody who sleeps until a time of it wakes by himself (KL_TURNS_EPOCH). Any thread but the manager's own. */
#ifndef KL_RUN_TURNS_H
#define KL_RUN_TURNS_H

#include "run/manager.h"

/* Where the monotonic time of such a clock begins: no machine is up for 36 years. */
#define KL_TURNS_EPOCH ((kl_time)1 << 60)

/* Adds up over controllers. Zero it but for next and next_key = KL_NEVER. */
typedef struct kl_outlook {
    bool busy;                 /* something is under way that needs no time to pass: look again */
    bool ready;                /* a key may run */
    size_t failing, asleep;    /* keys that failed last; runs that sleep */
    uint64_t parked;           /* controllers that wait for what is not there */
    kl_time next;              /* when something would happen, or KL_NEVER */
    kl_time next_key;          /* when a key would run or go on running, likewise */
    char *what;                /* what is under way, for people: "reconcile of web default/a"; NULL. Caller frees */
} kl_outlook;

/* Have the caches come to resource version rv, all of them that can? Else it is busy. */
void kl_manager_outlook(kl_manager *m, uint64_t rv, kl_outlook *out);
/* Lets one key of the first controller that has one run; false: none is ready. */
bool kl_manager_turn(kl_manager *m);
void kl_manager_clock_moved(kl_manager *m);

#endif
