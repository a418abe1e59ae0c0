/* names.c - the map from a hash to numbers, and the tables of numbers.
 *
 * One array of 64-bit slots, {hash, number + 1}, probed linearly. 0 ends a probe; a slot with only a hash is
 * dead. One writer changes slots while readers probe: a reader takes what it finds as a hint and checks it in
 * its version. A bigger array replaces a full one in the next version; readers of earlier ones go on in the
 * old array, which has all of theirs. */
#include "cache/indexer_impl.h"

#include <string.h>
#include "base/mem.h"

#define FIRST_SLOTS 16

struct kl__slots {
    size_t mask;
    _Atomic uint64_t v[];
};

static uint64_t slot_of(uint32_t tag, uint32_t number)
{
    return (uint64_t)tag << 32 | (uint32_t)(number + 1);
}

kl__probe kl__names_probe(const kl__slots *s, uint32_t tag)
{
    return (kl__probe){s, tag, s ? tag & s->mask : 0};
}

bool kl__probe_next(kl__probe *p, uint32_t *number)
{
    if (!p->slots)
        return false;
    for (;;) {
        uint64_t slot = atomic_load_explicit(&((kl__slots *)p->slots)->v[p->at], memory_order_relaxed);
        if (!slot)
            return false;
        p->at = (p->at + 1) & p->slots->mask;
        if (slot >> 32 == p->tag && (uint32_t)slot) {
            *number = (uint32_t)slot - 1;
            return true;
        }
    }
}

static void enter(kl__slots *s, uint64_t slot)
{
    size_t at = slot >> 32 & s->mask;
    while (atomic_load_explicit(&s->v[at], memory_order_relaxed))
        at = (at + 1) & s->mask;
    atomic_store_explicit(&s->v[at], slot, memory_order_relaxed);
}

/* Copies the live slots into an array that is at most half full. */
static void rebuild(kl__edit *e, kl__names *n)
{
    kl__slots *old = n->slots;
    size_t size = FIRST_SLOTS;
    while (size < 2 * (n->live + 1))
        size *= 2;
    kl__slots *s = kl_zalloc(sizeof *s + size * sizeof *s->v);
    s->mask = size - 1;
    for (size_t i = 0; old && i <= old->mask; i++) {
        uint64_t slot = atomic_load_explicit(&old->v[i], memory_order_relaxed);
        if ((uint32_t)slot)
            enter(s, slot);
    }
    n->used = n->live;
    n->slots = s;
    kl__edit_drop(e, old, 0);
}

void kl__names_add(kl__edit *e, kl__names *n, uint32_t tag, uint32_t number)
{
    if (!n->slots || (n->used + 1) * 5 > (n->slots->mask + 1) * 4)
        rebuild(e, n);
    enter(n->slots, slot_of(tag, number));
    n->live++;
    n->used++;
}

void kl__names_remove(kl__names *n, uint32_t tag, uint32_t number)
{
    kl__slots *s = n->slots;
    uint64_t slot = slot_of(tag, number);
    size_t at = tag & s->mask;
    while (atomic_load_explicit(&s->v[at], memory_order_relaxed) != slot)
        at = (at + 1) & s->mask;
    atomic_store_explicit(&s->v[at], (uint64_t)tag << 32, memory_order_relaxed);
    n->live--;
}

void kl__names_fini(kl__names *n) { kl_free(n->slots); }

/* --- numbers ------------------------------------------------------------------------------ */

static uint32_t number_new(const kl__edit *e, kl__table *t)
{
    if (t->from_spare == t->n_spare)
        t->from_spare = t->n_spare = 0;
    else if (t->spare[t->from_spare].epoch < e->oldest)
        return t->spare[t->from_spare++].number;
    return t->end++;
}

uint32_t kl__table_add(kl__edit *e, kl__table *t, uint32_t tag, void *p)
{
    uint32_t number = number_new(e, t);
    kl__cells_set(e, &t->cells, number, p);
    kl__names_add(e, &t->names, tag, number);
    return number;
}

void kl__table_remove(kl__edit *e, kl__table *t, uint32_t tag, uint32_t number)
{
    kl__cells_set(e, &t->cells, number, NULL);
    if (t->n_gone == t->cap_gone)
        t->gone = kl_realloc(t->gone, (t->cap_gone = t->cap_gone ? 2 * t->cap_gone : 16) * sizeof *t->gone);
    t->gone[t->n_gone++] = (kl__gone){tag, number};
}

static void keep_spare(const kl__edit *e, kl__table *t, uint32_t number)
{
    if (t->n_spare == t->cap_spare && t->from_spare > t->n_spare / 2) {
        t->n_spare -= t->from_spare;
        memmove(t->spare, t->spare + t->from_spare, t->n_spare * sizeof *t->spare);
        t->from_spare = 0;
    }
    if (t->n_spare == t->cap_spare)
        t->spare = kl_realloc(
            t->spare, (t->cap_spare = t->cap_spare ? 2 * t->cap_spare : 16) * sizeof *t->spare);
    t->spare[t->n_spare++] = (kl__spare){e->ended, number};
}

void kl__table_shown(const kl__edit *e, kl__table *t)
{
    for (size_t i = 0; i < t->n_gone; i++) {
        kl__names_remove(&t->names, t->gone[i].tag, t->gone[i].number);
        keep_spare(e, t, t->gone[i].number);
    }
    t->n_gone = 0;
}

void kl__table_fini(kl__table *t)
{
    kl__names_fini(&t->names);
    kl__cells_fini(&t->cells);
    kl_free(t->spare);
    kl_free(t->gone);
}

void *kl__chunks_at(kl__edit *e, kl__chunks *c, size_t size, uint32_t i)
{
    uint32_t chunk = i / KL__CHUNK;
    if (chunk >= c->len) {
        uint32_t len = c->len ? c->len : 1;
        while (len <= chunk)
            len *= 2;
        char **v = kl_new_array(char *, len);
        if (c->len)
            memcpy(v, c->v, c->len * sizeof *v);
        kl__edit_drop(e, c->v, 0);
        *c = (kl__chunks){v, len};
    }
    if (!c->v[chunk])
        c->v[chunk] = kl_zalloc_array(size, KL__CHUNK);
    return c->v[chunk] + size * (i % KL__CHUNK);
}

void kl__chunks_fini(kl__chunks *c)
{
    for (uint32_t i = 0; i < c->len; i++)
        kl_free(c->v[i]);
    kl_free(c->v);
    *c = (kl__chunks){0};
}
