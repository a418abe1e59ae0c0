/* turns.h - a manager in virtual time, whose keys run one after the other: the same inputs give the same
 * order.
 *
 * For tests of controllers. With kl_manager_options.turns and a fake clock the manager only talks to the
 * server on its own (its watches keep real time, by kl_manager_options.watch_clock); its owner lets one key
 * run after the other, and moves the clock:
 *
 *   busy      wait
 *   ready     kl_manager_turn
 *   neither   move the clock to `next` at most, then kl_manager_clock_moved
 *
 * Keys of a controller come by name, controllers in their order; workers are one for each. A fake clock
 * has to be far ahead of the real one, so that nobody who sleeps until a time of it wakes by himself
 * (KL_TURNS_EPOCH). Any thread but the manager's own. */
#ifndef KL_MANAGER_TURNS_H
#define KL_MANAGER_TURNS_H

#include "controller/outlook.h"
#include "manager/manager.h"

/* Whether all healthy caches have reached resource version rv. Otherwise it is busy. */
void kl_manager_outlook(kl_manager *m, uint64_t rv, kl_outlook *out);
/* Lets one key of the first controller that has one run; false: none is ready. */
bool kl_manager_turn(kl_manager *m);
void kl_manager_clock_moved(kl_manager *m);

#endif
