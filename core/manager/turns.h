/* turns.h - a manager in virtual time, whose keys run one after the other: the same inputs give the same
 * order.
 *
 * For tests of controllers. With kl_manager_options.turns and a fake clock, the manager on its own only talks
 * to the server (watches use real time, kl_manager_options.watch_clock). Its owner runs the keys one after
 * the other and moves the clock:
 *
 *   busy      wait
 *   ready     kl_manager_turn
 *   neither   move the clock to `next` at most, then kl_manager_clock_moved
 *
 * A controller's keys run in order of their names, controllers in their own order, with one worker each. The
 * fake clock must be far ahead of the real one (KL_TURNS_EPOCH), so that no sleep until one of its times ends
 * by real time. Any thread but the manager's own. */
#ifndef KL_MANAGER_TURNS_H
#define KL_MANAGER_TURNS_H

#include "controller/outlook.h"
#include "manager/manager.h"

/* The next steps of all controllers; busy, too, while a healthy cache has not reached resourceVersion rv. */
void kl_manager_outlook(kl_manager *m, uint64_t rv, kl_outlook *out);
/* Runs one ready key, of the first controller that has one; false: no key is ready. */
bool kl_manager_turn(kl_manager *m);
void kl_manager_clock_moved(kl_manager *m);

#endif
