/* slots.h - ids that may outlive their objects: an id names a slot and its generation. A late cancel of
 * something that has ended finds nothing, even if its slot is used again. Ids are never 0. Owner thread or
 * owner's lock. */
#ifndef KL_HTTP_SLOTS_H
#define KL_HTTP_SLOTS_H

#include <stdint.h>
#include "base/mem.h"

typedef struct kl_slot {
    void *p;
    uint32_t generation;
    uint32_t next_free; /* index + 1; 0 ends */
} kl_slot;
typedef struct kl_slots {
    kl_slot *v;
    uint32_t len, cap, first_free;
} kl_slots;

static inline uint64_t kl_slots_add(kl_slots *s, void *p)
{
    uint32_t i;
    if (s->first_free) {
        i = s->first_free - 1;
        s->first_free = s->v[i].next_free;
    } else {
        if (s->len == s->cap) {
            s->cap = s->cap ? 2 * s->cap : 16;
            s->v = kl_realloc(s->v, s->cap * sizeof *s->v);
        }
        i = s->len++;
        s->v[i].generation = 1;
    }
    s->v[i].p = p;
    return (uint64_t)s->v[i].generation << 32 | (i + 1);
}

/* The object under `id`, or NULL when it was removed (or never existed). */
static inline void *kl_slots_get(const kl_slots *s, uint64_t id)
{
    uint32_t i = (uint32_t)id - 1;
    return id && i < s->len && s->v[i].generation == id >> 32 ? s->v[i].p : NULL;
}

static inline void *kl_slots_remove(kl_slots *s, uint64_t id)
{
    void *p = kl_slots_get(s, id);
    if (!p)
        return NULL;
    uint32_t i = (uint32_t)id - 1;
    s->v[i].p = NULL;
    s->v[i].generation++;
    s->v[i].next_free = s->first_free;
    s->first_free = i + 1;
    return p;
}

static inline void kl_slots_fini(kl_slots *s)
{
    kl_free(s->v);
    *s = (kl_slots){0};
}

#endif
