/* cells.c - number -> pointer, in versions: a radix tree of 32-way nodes.
 *
 * Numbers are given out from 0, so the tree is dense: about 8 bytes per number. A change copies the nodes
 * on its way, 264 bytes per level (three levels up to 32,768 numbers, four up to a million), unless this
 * edit has made them. */
#include "cache/indexer_impl.h"

#include <string.h>
#include "base/mem.h"

#define BITS 5
#define FAN (1u << BITS)

typedef struct node {
    uint64_t made;
    void *slot[FAN];
} node;

static bool beyond(const kl__cells *c, uint32_t number) { return (uint64_t)number >> (c->shift + BITS); }

void *kl__cells_get(const kl__cells *c, uint32_t number)
{
    const node *n = c->root;
    if (!n || beyond(c, number))
        return NULL;
    for (uint32_t shift = c->shift; shift; shift -= BITS)
        if (!(n = n->slot[number >> shift & (FAN - 1)]))
            return NULL;
    return n->slot[number & (FAN - 1)];
}

static node *node_new(kl__edit *e)
{
    node *n = kl_new(node);
    n->made = e->now;
    return n;
}

/* The node at *at, replaced by a copy unless this edit has made it. */
static node *own(kl__edit *e, void **at)
{
    node *n = *at;
    if (!n)
        return *at = node_new(e);
    if (n->made == e->now)
        return n;
    node *mine = kl_alloc(sizeof *mine);
    memcpy(mine, n, sizeof *mine);
    mine->made = e->now;
    kl__edit_drop(e, n, n->made);
    return *at = mine;
}

void kl__cells_set(kl__edit *e, kl__cells *c, uint32_t number, void *p)
{
    while (beyond(c, number)) {
        node *top = NULL;
        if (c->root) {
            top = node_new(e);
            top->slot[0] = c->root;
        }
        c->root = top;
        c->shift += BITS;
    }
    void **at = &c->root;
    for (uint32_t shift = c->shift; shift; shift -= BITS)
        at = &own(e, at)->slot[number >> shift & (FAN - 1)];
    own(e, at)->slot[number & (FAN - 1)] = p;
}

static void free_below(node *n, uint32_t shift)
{
    if (n && shift)
        for (uint32_t i = 0; i < FAN; i++)
            free_below(n->slot[i], shift - BITS);
    kl_free(n);
}

void kl__cells_fini(kl__cells *c)
{
    free_below(c->root, c->shift);
    *c = (kl__cells){0};
}
