/* groups.h - keys that exclude each other: of those in one group at most one runs. Inside core/queue only,
 * under the queue's lock.
 *
 *   handed out --enter, nobody runs--> runs in it --leave--> out
 *   handed out --enter, busy--> parked --the one that ran leaves--> candidate: in the queue, at the place of its age
 *
 * Which group a key belongs to is only known when it is handed out, and may have changed when it is again:
 * so a key waits in the order of the queue (ready.h) first and in the same order in its group then, and
 * whoever ends calls one of its group back into the queue: the candidate. When that one turns up
 * elsewhere, or ends without a group, it calls the next. As long as somebody is parked there is one who
 * runs or a candidate. */
#ifndef KL_QUEUE_GROUPS_H
#define KL_QUEUE_GROUPS_H

#include "base/map.h"
#include "queue/ready.h"

typedef struct kl_group {
    kl_item *runs, *candidate; /* or NULL */
    kl_ready parked;           /* by the order of the queue */
    bool has_parked;           /* `parked` is initialised */
    char name[];
} kl_group;

typedef struct kl_groups {
    kl_ready *ready; /* the queue's */
    kl_map *by_name; /* NULL until somebody enters one */
    size_t n_parked;
} kl_groups;

void kl_groups_init(kl_groups *g, kl_ready *ready);
void kl_groups_fini(kl_groups *g);
/* The item was handed out and enters a group. False: somebody runs there, so it wants to be parked. *news:
 * another one, of a group that it had been the candidate of, is ready now; else left alone. */
bool kl_groups_enter(kl_groups *g, const char *name, kl_item *it, bool *news);
/* after it entered in vain: queued, in its group */
void kl_groups_park(kl_groups *g, kl_item *it);
/* not in rank order */
static inline bool kl_groups_runs(const kl_item *it) { return it->group && it->group->runs == it; }
/* It runs no more, or does not run after all: true when another one of its group is ready now. */
bool kl_groups_leave(kl_groups *g, kl_item *it);
/* back into the queue, at the place of its age: to be looked at again */
void kl_groups_unpark(kl_groups *g, kl_item *it);

#endif
