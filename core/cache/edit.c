/* edit.c - nodes that a writer creates and removes.
 *
 * A node carries the number of the edit that made it. During that edit no reader has seen it: it is changed
 * in place and freed at once. Later it is copied instead, and the replaced node waits in limbo, oldest first,
 * until no reader can hold it. */
#include "cache/indexer_impl.h"

#include <string.h>
#include "base/epoch.h"
#include "base/mem.h"

#define LIMBO_KEEP 1024 /* capacity kept for the next edit when no node waits */

static void wait_in(kl__limbos *l, void *p)
{
    if (l->len == l->cap && l->from > l->len / 2) {
        memmove(l->v, l->v + l->from, (l->len - l->from) * sizeof *l->v);
        l->len -= l->from;
        l->from = 0;
    }
    if (l->len == l->cap)
        l->v = kl_realloc(l->v, (l->cap = l->cap ? 2 * l->cap : 16) * sizeof *l->v);
    l->v[l->len++] = (kl__limbo){p, UINT64_MAX};
}

void kl__edit_drop(kl__edit *e, void *p, uint64_t made)
{
    if (made == e->now)
        kl_free(p);
    else if (p)
        wait_in(&e->memory, p);
}

void kl__edit_drop_value(kl__edit *e, const kl_value *v) { wait_in(&e->values, (void *)v); }

/* Marks the nodes removed in this edit: new readers cannot see them since `epoch`. */
static void stamp(kl__limbos *l, uint64_t epoch)
{
    for (size_t i = l->len; i-- > l->from && l->v[i].epoch == UINT64_MAX;)
        l->v[i].epoch = epoch;
}

static bool due(kl__limbos *l, uint64_t oldest)
{
    if (l->from < l->len && l->v[l->from].epoch < oldest)
        return true;
    if (l->from == l->len) {
        l->from = l->len = 0;
        if (l->cap > LIMBO_KEEP) {
            kl_free(l->v);
            *l = (kl__limbos){0};
        }
    }
    return false;
}

static void settle(kl__edit *e, uint64_t oldest)
{
    while (due(&e->memory, oldest))
        kl_free(e->memory.v[e->memory.from++].p);
    while (due(&e->values, oldest))
        kl_value_unref(e->values.v[e->values.from++].p);
}

void kl__edit_shown(kl__edit *e)
{
    e->ended = kl_epoch_end();
    e->oldest = kl_epoch_oldest();
    stamp(&e->memory, e->ended);
    stamp(&e->values, e->ended);
    e->now++;
    settle(e, e->oldest);
}

void kl__edit_fini(kl__edit *e)
{
    stamp(&e->memory, 0);
    stamp(&e->values, 0);
    settle(e, UINT64_MAX);
    kl_free(e->memory.v);
    kl_free(e->values.v);
}
