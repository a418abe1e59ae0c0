/* ring.c - points of all members in one sorted array; the owner of a key is found by bisection. */
#include "sharding/ring.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Points per member: with 160 the largest share of three is seldom more than a tenth above the average. */
#define POINTS 160

typedef struct place {
    uint64_t point;
    size_t member;
} place;

struct kl_ring {
    atomic_int refs;
    size_t n_members, n_places;
    char **members; /* sorted */
    place *places;  /* sorted by point, then member */
};

/* FNV-1a, then murmur's finisher so that names which differ in their last letter lie far apart. Not
 * seeded: see the header. */
uint64_t kl_ring_point(const char *text, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
    return h ^ (h >> 33);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int by_point(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->point != y->point)
        return x->point < y->point ? -1 : 1;
    return x->member < y->member ? -1 : x->member > y->member;
}

kl_ring *kl_ring_new(const char *const *members, size_t n)
{
    kl_ring *r = kl_new(kl_ring);
    atomic_init(&r->refs, 1);
    r->members = kl_new_array(char *, n + 1);
    for (size_t i = 0; i < n; i++)
        r->members[i] = kl_strdup(members[i]);
    qsort(r->members, n, sizeof *r->members, by_name);
    for (size_t i = 0; i < n; i++) {
        if (r->n_members && !strcmp(r->members[r->n_members - 1], r->members[i]))
            kl_free(r->members[i]);
        else
            r->members[r->n_members++] = r->members[i];
    }
    r->places = kl_new_array(place, r->n_members * POINTS + 1);
    for (size_t i = 0; i < r->n_members; i++)
        for (int k = 0; k < POINTS; k++) {
            char *text = kl_sprintf("%s#%d", r->members[i], k);
            r->places[r->n_places++] = (place){kl_ring_point(text, strlen(text)), i};
            kl_free(text);
        }
    qsort(r->places, r->n_places, sizeof *r->places, by_point);
    return r;
}

kl_ring *kl_ring_ref(kl_ring *r)
{
    if (r)
        atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

void kl_ring_unref(kl_ring *r)
{
    if (!r || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < r->n_members; i++)
        kl_free(r->members[i]);
    kl_free(r->members);
    kl_free(r->places);
    kl_free(r);
}

size_t kl_ring_members(const kl_ring *r) { return r->n_members; }
const char *kl_ring_member(const kl_ring *r, size_t i) { return r->members[i]; }

size_t kl_ring_find(const kl_ring *r, const char *member)
{
    char *const *at = bsearch(&member, r->members, r->n_members, sizeof *r->members, by_name);
    return at ? (size_t)(at - r->members) : KL_RING_NOBODY;
}

size_t kl_ring_owner(const kl_ring *r, uint64_t point)
{
    if (!r->n_places)
        return KL_RING_NOBODY;
    size_t from = 0, to = r->n_places;
    while (from < to) { /* the first place at or after the point */
        size_t mid = from + (to - from) / 2;
        if (r->places[mid].point < point)
            from = mid + 1;
        else
            to = mid;
    }
    return r->places[from == r->n_places ? 0 : from].member;
}

double kl_ring_share(const kl_ring *r, size_t member)
{
    double share = 0;
    for (size_t i = 0; i < r->n_places; i++) {
        if (r->places[i].member != member)
            continue;
        uint64_t before = r->places[i ? i - 1 : r->n_places - 1].point;
        share += (double)(r->places[i].point - before) * 0x1p-64; /* wraps round */
    }
    return share;
}
