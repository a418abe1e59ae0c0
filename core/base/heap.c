/* heap.c - the next due node: a binary min-heap of intrusive nodes ordered by (when, seq).
 *
 * seq is drawn at every push and move, so equal times come out in the order they went in. Each node knows
 * its place, so moving and removing cost O(log n). */
#include "base/heap.h"

#include "base/mem.h"

void kl_heap_init(kl_heap *h) { *h = (kl_heap){0}; }

void kl_heap_fini(kl_heap *h)
{
    for (size_t i = 0; i < h->len; i++)
        h->v[i]->pos = 0;
    kl_free(h->v);
    kl_heap_init(h);
}

static bool before(const kl_heap_node *a, const kl_heap_node *b)
{
    return a->when < b->when || (a->when == b->when && a->seq < b->seq);
}

static void put(kl_heap *h, size_t i, kl_heap_node *n)
{
    h->v[i] = n;
    n->pos = i + 1;
}

static void sift_up(kl_heap *h, size_t i, kl_heap_node *n)
{
    for (; i && before(n, h->v[(i - 1) / 2]); i = (i - 1) / 2)
        put(h, i, h->v[(i - 1) / 2]);
    put(h, i, n);
}

static void sift_down(kl_heap *h, size_t i, kl_heap_node *n)
{
    for (size_t child; (child = 2 * i + 1) < h->len; i = child) {
        if (child + 1 < h->len && before(h->v[child + 1], h->v[child]))
            child++;
        if (!before(h->v[child], n))
            break;
        put(h, i, h->v[child]);
    }
    put(h, i, n);
}

static void settle(kl_heap *h, size_t i, kl_heap_node *n)
{
    if (i && before(n, h->v[(i - 1) / 2]))
        sift_up(h, i, n);
    else
        sift_down(h, i, n);
}

void kl_heap_push(kl_heap *h, kl_heap_node *n, kl_time when)
{
    if (h->len == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 16;
        h->v = kl_realloc(h->v, h->cap * sizeof *h->v);
    }
    n->when = when;
    n->seq = h->next_seq++;
    sift_up(h, h->len++, n);
}

void kl_heap_move(kl_heap *h, kl_heap_node *n, kl_time when)
{
    n->when = when;
    n->seq = h->next_seq++;
    settle(h, n->pos - 1, n);
}

void kl_heap_remove(kl_heap *h, kl_heap_node *n)
{
    if (!n->pos)
        return;
    size_t i = n->pos - 1;
    kl_heap_node *last = h->v[--h->len];
    n->pos = 0;
    if (last != n)
        settle(h, i, last);
}

kl_heap_node *kl_heap_peek(const kl_heap *h) { return h->len ? h->v[0] : NULL; }

kl_heap_node *kl_heap_pop_due(kl_heap *h, kl_time now)
{
    kl_heap_node *n = kl_heap_peek(h);
    if (!n || n->when > now)
        return NULL;
    kl_heap_remove(h, n);
    return n;
}
