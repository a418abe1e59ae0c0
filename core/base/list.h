/* list.h - an intrusive doubly linked list with a sentinel. Owner thread or owner's lock. */
#ifndef KL_BASE_LIST_H
#define KL_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct kl_list {
    struct kl_list *next, *prev;
} kl_list;

static inline void kl_list_init(kl_list *l) { l->next = l->prev = l; }
static inline bool kl_list_empty(const kl_list *l) { return l->next == l; }
static inline void kl_list_insert_before(kl_list *at, kl_list *n)
{
    n->next = at;
    n->prev = at->prev;
    at->prev->next = n;
    at->prev = n;
}
/* at the end */
static inline void kl_list_push(kl_list *l, kl_list *n) { kl_list_insert_before(l, n); }
static inline void kl_list_push_front(kl_list *l, kl_list *n) { kl_list_insert_before(l->next, n); }
static inline void kl_list_remove(kl_list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    kl_list_init(n);
}
static inline kl_list *kl_list_shift(kl_list *l)
{
    kl_list *n = l->next;
    if (n == l)
        return NULL;
    kl_list_remove(n);
    return n;
}

#endif
