/* gather.h - how decoders gather values into containers (private to core/value): growing stacks of entries,
 * and recurring strings.
 *
 * An entry says whether its reference is ours or borrowed from the guide, see value/intern.h. Owner
 * thread. */
#ifndef KL_VALUE_GATHER_H
#define KL_VALUE_GATHER_H

#include "base/mem.h"
#include "value/intern.h"

#define KL__RECENT 32

typedef struct kl__entries {
    kl__entry *v;
    size_t len, cap;
} kl__entries;

/* Recent strings of one text, by their last bytes: a time or a name soon recurs. The text's stacks hold the
 * references. */
typedef struct kl__recent {
    kl__entry v[KL__RECENT];
} kl__recent;

static inline void kl__entries_push(kl__entries *s, kl__entry e)
{
    if (__builtin_expect(s->len == s->cap, 0)) {
        s->cap = s->cap ? 2 * s->cap : 128;
        s->v = kl_realloc(s->v, s->cap * sizeof *s->v);
    }
    s->v[s->len++] = e;
}

static inline void kl__entries_borrow(kl__entries *s, const kl__h *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kl__entries_push(s, v[i]);
}

static inline void kl__entries_room(kl__entries *s, size_t n)
{
    if (s->cap - s->len >= n)
        return;
    s->cap = s->cap + n > 2 * s->cap ? s->cap + n + 128 : 2 * s->cap;
    s->v = kl_realloc(s->v, s->cap * sizeof *s->v);
}

static inline void kl__entries_zeroes(kl__entries *s, size_t n)
{
    kl__entries_room(s, n);
    if (n)
        memset(s->v + s->len, 0, n * sizeof *s->v);
    s->len += n;
}

static inline void kl__entry_drop(kl__entry e)
{
    if (e & KL__OWNED)
        kl_value_unref(KL__VALUE((kl__h)e));
}

/* Back to `len` entries; the owned ones above it go. */
static inline void kl__entries_cut(kl__entries *s, size_t len)
{
    while (s->len > len)
        kl__entry_drop(s->v[--s->len]);
}

static inline uint64_t kl__word_at(const char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static inline bool kl__is_bytes_of(kl__h h, const char *s, size_t n)
{
    return kl__is_node(h) ? kl__at(h)->len == n && !memcmp(kl__at(h)->bytes, s, n) : !n;
}

/* The node of a string that is not the guide's: a new reference. */
static inline kl__h kl__recent_string(kl__recent *r, const char *s, size_t n, bool *is_new)
{
    if (n < 8)
        return kl__intern_str_new(s, n, is_new);
    kl__entry *recent = &r->v[(kl__word_at(s + n - 8) * 0x9e3779b97f4a7c15u >> 59) % KL__RECENT];
    if (*recent && kl__is_bytes_of((kl__h)*recent, s, n)) {
        kl_value_ref(KL__VALUE((kl__h)*recent));
        *is_new = *recent & KL__NEW;
        return (kl__h)*recent;
    }
    kl__h h = kl__intern_str_new(s, n, is_new);
    *recent = h | (*is_new ? KL__NEW : 0);
    return h;
}

/* Drops a new reference that turned out to be the guide: a caller borrows the guide. */
static inline kl__h kl__made(kl__h h, kl__h guide)
{
    if (h == guide)
        kl__spare(h);
    return h;
}

/* A value that was just read beside `like`, as an entry. */
static inline kl__entry kl__entry_of(kl__h h, kl__h like, bool is_new)
{
    return (h == like || !kl__is_node(h) ? h : kl__owned(h)) | (is_new ? KL__NEW : 0);
}

#endif
