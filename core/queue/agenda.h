/* agenda.h - a binary heap of items by a number, lowest first. Its entries hold the number, so ordering
 * touches only the items that move. Equal numbers come out in the order they went in. An item is in one
 * agenda at most and knows its place there (kl_item.place, 1-based; 0 none). Inside core/queue only, under
 * the queue's lock. */
#ifndef KL_QUEUE_AGENDA_H
#define KL_QUEUE_AGENDA_H

#include "queue/items.h"

typedef struct kl_agenda_entry {
    int64_t number;
    uint64_t seq;
    kl_handle item;
} kl_agenda_entry;
typedef struct kl_agenda {
    kl_agenda_entry *v;
    size_t len, cap;
    uint64_t next_seq;
} kl_agenda;

void kl_agenda_init(kl_agenda *a);
void kl_agenda_fini(kl_agenda *a);
/* inserts the item, or moves it to its new place */
void kl_agenda_put(kl_agenda *a, kl_items *t, kl_item *it, int64_t number);
void kl_agenda_remove(kl_agenda *a, kl_items *t, kl_item *it); /* it is in a */
/* The first entry, which stays, or NULL. */
static inline const kl_agenda_entry *kl_agenda_peek(const kl_agenda *a) { return a->len ? a->v : NULL; }

#endif
