/* groups.h - keys that exclude each other: at most one key of a group runs. Inside core/queue only, under the
 * queue's lock.
 *
 *   handed out --enter, nobody runs--> runs in it --leave--> out
 *   handed out --enter, busy--> parked --the one that ran leaves--> candidate: in the queue, at the place of its age
 *
 * The group of a key is only known when the key is handed out, and may differ the next time. So a key first
 * waits in the order of the queue (ready.h), and then in the same order in its group; a run that ends calls
 * one key of its group back into the queue: the candidate. When the candidate enters another group, or ends
 * without one, the group calls its next key. While a key is parked, its group has a running key or a
 * candidate. */
#ifndef KL_QUEUE_GROUPS_H
#define KL_QUEUE_GROUPS_H

#include "base/map.h"
#include "queue/ready.h"

typedef struct kl_group {
    kl_item *runs, *candidate; /* or NULL */
    kl_ready parked;           /* in the queue's order */
    bool has_parked;           /* `parked` is initialised */
    char name[];
} kl_group;

typedef struct kl_groups {
    kl_ready *ready; /* the queue's */
    kl_map *by_name; /* NULL until a key enters one */
    size_t n_parked;
} kl_groups;

void kl_groups_init(kl_groups *g, kl_ready *ready);
void kl_groups_fini(kl_groups *g);
/* The item was handed out and enters a group. False: another key runs in the group, so the item must be
 * parked. *news is set when the item was the candidate of another group, whose next key is ready now;
 * otherwise unchanged. */
bool kl_groups_enter(kl_groups *g, const char *name, kl_item *it, bool *news);
/* after kl_groups_enter failed: the item is queued in its group */
void kl_groups_park(kl_groups *g, kl_item *it);
/* whether it runs in its group; not in rank order */
static inline bool kl_groups_runs(const kl_item *it) { return it->group && it->group->runs == it; }
/* The item's run ended, or never started. True when another key of its group is ready now. */
bool kl_groups_leave(kl_groups *g, kl_item *it);
/* puts it back into the queue, at the place of its age; its group is read again */
void kl_groups_unpark(kl_groups *g, kl_item *it);

#endif
