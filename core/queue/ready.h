/* ready.h - which ready key is next. Inside core/queue only, under the queue's lock.
 *
 *   level: one priority      levels by urgency: the highest priority, or the one whose oldest key has waited
 *                            long enough to pass it
 *   flow: one namespace      flows of a level take turns, so that a namespace with many keys delays the
 *                            others by one
 *   item, item, item         first in, first out
 *
 * A step of priority is worth `ageing` of waiting: a key of priority p added at t is handed out before every
 * key of priority p + d that was added after t + d * ageing. So no key starves, however many others are more
 * urgent. Only the oldest key of a level passes a higher level.
 *
 * A key that was handed out and did not run is put back: at the front of its flow, and at the place of its
 * age among the others of its level.
 *
 * Without `turns` a level has one flow; with `by_name`, its first key by name is next. In rank order there
 * are no flows, and a level's keys come by their first add; those that were delayed come last, by the time of
 * their delay's end. Putting and taking cost O(log of the number of priorities in use); in rank order O(log
 * keys). */
#ifndef KL_QUEUE_READY_H
#define KL_QUEUE_READY_H

#include "base/heap.h"
#include "queue/agenda.h"

typedef struct kl_level {
    kl_heap_node urgency; /* in `urgent` while it has keys */
    kl_heap_node height;  /* in `high` likewise: the highest priority first */
    int32_t priority;
    uint32_t self;
    uint32_t next_of_hash; /* the next level in its bucket, or the next unused one */
    bool used;
    size_t len;
    kl_handle oldest, newest; /* the list of its keys, by age */
    uint32_t turn;            /* the flow whose turn it is: a ring of the flows that have keys */
    /* rank order: all keys; otherwise those that were put back, by age, which are not in the list */
    kl_agenda ranked;
} kl_level;

typedef struct kl_flow {
    uint32_t next, prev; /* in its level's ring; next also in the list of unused ones */
    uint32_t level;
    uint32_t ns; /* hash of the namespace: two of one hash share their turns */
    uint32_t next_of_hash;
    kl_handle first, last;
} kl_flow;

typedef struct kl_ready {
    kl_items *items;
    bool turns, by_rank, by_name;
    kl_time ageing; /* 0: a higher priority always goes first */
    size_t len;
    kl_level **levels; /* number 0 is unused */
    kl_flow *flows;    /* likewise */
    uint32_t n_levels, n_flows, cap_flows;
    uint32_t unused_level, unused_flow;
    uint32_t *level_of, *flow_of; /* buckets by hash, powers of two */
    size_t level_buckets, flow_buckets;
    uint32_t levels_in_use, flows_in_use;
    kl_heap urgent, high;
} kl_ready;

void kl_ready_init(kl_ready *r, kl_items *items);
void kl_ready_fini(kl_ready *r);
/* at the place of its priority and its time */
void kl_ready_put(kl_ready *r, kl_item *it);
/* puts it back in its old place, as if it had not been taken */
void kl_ready_put_back(kl_ready *r, kl_item *it);
kl_item *kl_ready_take(kl_ready *r);            /* the next, or NULL */
void kl_ready_remove(kl_ready *r, kl_item *it); /* it is in there */

#endif
