/* store.c - sorted arrays of objects and a ring of changes per resource.
 *
 * The ring serves two readers: a watch that starts at an old RV, and a list that must show the past (the
 * second page of a paged list is the same snapshot as the first). The past is the present with the changes
 * since undone, so no page keeps a copy of anything. */
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "schema/edit.h"

struct kl__store {
    uint64_t rv, birth; /* the latest version, and the one before the first */
    size_t history;
    kl__store_listener *changed;
    void *arg;
    kl__bucket **buckets;
    size_t len, cap;
    kl_map *by_name; /* "plural.group" */
};

kl__store *kl__store_new(size_t history, kl__store_listener *changed, void *arg)
{
    kl__store *s = kl_new(kl__store);
    s->rv = 1;
    s->history = history;
    s->changed = changed;
    s->arg = arg;
    s->by_name = kl_map_new();
    return s;
}

static void change_fini(kl__change *c)
{
    kl_free(c->key);
    kl_value_unref(c->old);
    kl_value_unref(c->now);
}

void kl__store_free(kl__store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->len; i++) {
        kl__bucket *b = s->buckets[i];
        for (size_t k = 0; k < b->len; k++) {
            kl_free(b->v[k]->key);
            kl_value_unref(b->v[k]->object);
            kl_free(b->v[k]);
        }
        for (size_t k = 0; k < b->count; k++)
            change_fini(&b->ring[(b->first + k) % b->ring_cap]);
        kl_free(b->v);
        kl_free(b->ring);
        kl_free(b->group);
        kl_free(b->plural);
        kl_free(b);
    }
    kl_free(s->buckets);
    kl_map_free(s->by_name, NULL);
    kl_free(s);
}

void kl__store_begin(kl__store *s, uint64_t rv) { s->rv = s->birth = rv; }
uint64_t kl__store_rv(const kl__store *s) { return s->rv; }
uint64_t kl__store_step(kl__store *s) { return ++s->rv; }

kl__bucket *kl__store_bucket(kl__store *s, const char *group, const char *plural)
{
    char *name = kl_sprintf("%s.%s", plural, group);
    kl__bucket *b = kl_map_get(s->by_name, name);
    if (!b) {
        b = kl_new(kl__bucket);
        b->group = kl_strdup(group);
        b->plural = kl_strdup(plural);
        b->forgotten = s->birth;
        kl_list_init(&b->watches);
        if (s->len == s->cap) {
            s->cap = s->cap ? s->cap * 2 : 128;
            s->buckets = kl_realloc(s->buckets, s->cap * sizeof *s->buckets);
        }
        s->buckets[s->len++] = b;
        kl_map_set(s->by_name, name, b);
    }
    kl_free(name);
    return b;
}

size_t kl__store_buckets(const kl__store *s, kl__bucket *const **all)
{
    *all = s->buckets;
    return s->len;
}

size_t kl__bucket_from(const kl__bucket *b, const char *key)
{
    size_t lo = 0, hi = b->len;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (strcmp(b->v[mid]->key, key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const kl__entry *kl__bucket_get(const kl__bucket *b, const char *key)
{
    size_t i = kl__bucket_from(b, key);
    return i < b->len && !strcmp(b->v[i]->key, key) ? b->v[i] : NULL;
}

bool kl__bucket_has(const kl__bucket *b, const char *prefix)
{
    size_t i = kl__bucket_from(b, prefix);
    return i < b->len && !strncmp(b->v[i]->key, prefix, strlen(prefix));
}

static void remember(kl__store *s, kl__bucket *b, kl__change c)
{
    b->last_rv = c.rv;
    if (b->count == s->history) {
        b->forgotten = b->ring[b->first].rv;
        change_fini(&b->ring[b->first]);
        b->first = (b->first + 1) % b->ring_cap;
        b->count--;
    } else if (b->count == b->ring_cap) {
        size_t cap = b->ring_cap ? b->ring_cap * 2 : 16;
        if (cap > s->history)
            cap = s->history;
        kl__change *ring = kl_new_array(kl__change, cap);
        for (size_t i = 0; i < b->count; i++)
            ring[i] = b->ring[(b->first + i) % b->ring_cap];
        kl_free(b->ring);
        b->ring = ring;
        b->ring_cap = cap;
        b->first = 0;
    }
    b->ring[(b->first + b->count) % b->ring_cap] = c;
    b->count++;
    s->changed(s->arg, b, &c);
}

/* `object` (taken) with a new resource version. */
static const kl_value *stamp(kl__store *s, const kl_value *object)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, ++s->rv);
    KL_EDIT(&object, kl_value_of_str(text), "metadata", "resourceVersion");
    return object;
}

/* kind, apiVersion and metadata come first, as Go writes them: whoever reads a stream then knows an
 * object's name before its bulk. Takes `object`. */
static const kl_value *head_first(const kl_value *object)
{
    static const char *const head[] = {"kind", "apiVersion", "metadata"};
    const char *key;
    size_t n;
    bool in_order = true;
    for (size_t i = 0; i < 3 && in_order; i++)
        in_order = kl_value_member(object, i, &key, &n) && !strcmp(key, head[i]);
    if (in_order)
        return object;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < 3; i++)
        kl_build_kvalue(b, head[i], kl_value_get(object, head[i]));
    for (size_t i = 0; i < kl_value_len(object); i++) {
        const kl_value *v = kl_value_member(object, i, &key, &n);
        if (strcmp(key, head[0]) && strcmp(key, head[1]) && strcmp(key, head[2])) {
            kl_build_keyn(b, key, n);
            kl_build_value(b, v);
        }
    }
    kl_build_end(b);
    kl_value_unref(object);
    return kl_builder_done(b);
}

/* The entry of `key`. A new one, if there is none, has the object NULL. */
static kl__entry *entry_for(kl__bucket *b, const char *key)
{
    size_t i = kl__bucket_from(b, key);
    if (i < b->len && !strcmp(b->v[i]->key, key))
        return b->v[i];
    if (b->len == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 16;
        b->v = kl_realloc(b->v, b->cap * sizeof *b->v);
    }
    memmove(&b->v[i + 1], &b->v[i], (b->len - i) * sizeof *b->v);
    b->len++;
    b->v[i] = kl_new(kl__entry);
    b->v[i]->key = kl_strdup(key);
    return b->v[i];
}

void kl__store_restore(kl__bucket *b, const char *key, const kl_value *object, uint64_t rv)
{
    kl__entry *e = entry_for(b, key);
    kl_value_unref(e->object);
    e->object = object;
    e->rv = rv;
}

void kl__store_remember(kl__store *s, kl__bucket *b, uint64_t last, uint64_t known)
{
    b->last_rv = b->forgotten = last;
    b->gap_from = known;
    b->gap_to = s->birth;
}

bool kl__bucket_knows(const kl__bucket *b, uint64_t rv)
{
    return rv >= b->forgotten && !(rv > b->gap_from && rv < b->gap_to);
}

const kl_value *kl__store_put(kl__store *s, kl__bucket *b, const char *key, const kl_value *object)
{
    kl__entry *e = entry_for(b, key);
    kl__change c = {.type = e->object ? KL_MODIFIED : KL_ADDED, .key = kl_strdup(key), .old = e->object};
    e->object = stamp(s, head_first(object));
    e->rv = c.rv = s->rv;
    c.now = kl_value_ref(e->object);
    remember(s, b, c);
    return e->object;
}

const kl_value *kl__store_remove(kl__store *s, kl__bucket *b, const char *key, const kl_value *last)
{
    size_t i = kl__bucket_from(b, key);
    if (i == b->len || strcmp(b->v[i]->key, key))
        return NULL;
    kl__entry *e = b->v[i];
    b->len--;
    memmove(&b->v[i], &b->v[i + 1], (b->len - i) * sizeof *b->v);
    const kl_value *now = stamp(s, kl_value_ref(last ? last : e->object));
    kl__change c = {
        .type = KL_DELETED, .rv = s->rv, .key = e->key, .old = e->object, .now = kl_value_ref(now)};
    kl_free(e);
    remember(s, b, c);
    return now;
}

const kl__change *kl__bucket_change(const kl__bucket *b, size_t i)
{
    return &b->ring[(b->first + i) % b->ring_cap];
}

/* ------------------------------------------------------------------ pictures */

struct painter {
    kl__picture *p;
    size_t cap, most;
};

static void picture_add(struct painter *w, const char *key, const kl_value *object)
{
    kl__picture *p = w->p;
    if (p->len == w->most) {
        p->rest++;
        return;
    }
    if (p->len == w->cap) {
        w->cap = w->cap ? w->cap * 2 : 64;
        p->objects = kl_realloc(p->objects, w->cap * sizeof *p->objects);
        p->keys = kl_realloc(p->keys, w->cap * sizeof *p->keys);
    }
    p->objects[p->len] = kl_value_ref(object);
    p->keys[p->len++] = kl_strdup(key);
}

/* The end of the keys with `prefix`; `i` is where they begin, or one of them. */
static size_t prefix_end(const kl__bucket *b, size_t i, const char *prefix)
{
    size_t n = strlen(prefix), hi = b->len;
    while (i < hi) {
        size_t mid = (i + hi) / 2;
        if (!strncmp(b->v[mid]->key, prefix, n))
            i = mid + 1;
        else
            hi = mid;
    }
    return i;
}

struct past {
    const char *key;
    const kl_value *object;
};
static int past_order(const void *a, const void *b)
{
    return strcmp(((const struct past *)a)->key, ((const struct past *)b)->key);
}

/* Adds the entries from i to before `end` as they were before the changes after `rv`. */
static void paint_past(struct painter *w, const kl__bucket *b, size_t i, size_t end, const char *prefix,
    const char *from, uint64_t rv)
{
    size_t n = strlen(prefix), npast = 0, k = 0;
    kl_map *seen = kl_map_new();
    /* keys that changed since `rv`, with what they were then */
    struct past *past = kl_new_array(struct past, b->count);
    for (size_t at = 0; at < b->count; at++) {
        const kl__change *c = kl__bucket_change(b, at);
        if (c->rv <= rv || kl_map_has(seen, c->key))
            continue;
        kl_map_set(seen, c->key, (void *)1);
        if (c->old && !strncmp(c->key, prefix, n) && strcmp(c->key, from) >= 0)
            past[npast++] = (struct past){c->key, c->old};
    }
    qsort(past, npast, sizeof *past, past_order);
    for (; i < end; i++) {
        const kl__entry *e = b->v[i];
        for (; k < npast && strcmp(past[k].key, e->key) < 0; k++)
            picture_add(w, past[k].key, past[k].object);
        if (!kl_map_has(seen, e->key))
            picture_add(w, e->key, e->object);
    }
    for (; k < npast; k++)
        picture_add(w, past[k].key, past[k].object);
    kl_free(past);
    kl_map_free(seen, NULL);
}

kl_status kl__bucket_picture(
    const kl__bucket *b, const char *prefix, const char *from, uint64_t rv, size_t most, kl__picture *out)
{
    *out = (kl__picture){0};
    struct painter w = {.p = out, .most = most};
    if (rv && !kl__bucket_knows(b, rv))
        return KL_EGONE;
    size_t i = kl__bucket_from(b, strcmp(from, prefix) > 0 ? from : prefix), end = prefix_end(b, i, prefix);
    if (rv && rv < b->last_rv) {
        paint_past(&w, b, i, end, prefix, from, rv);
        return KL_OK;
    }
    for (; i < end && out->len < most; i++)
        picture_add(&w, b->v[i]->key, b->v[i]->object);
    out->rest = end - i;
    return KL_OK;
}

void kl__picture_fini(kl__picture *p)
{
    for (size_t i = 0; i < p->len; i++) {
        kl_value_unref(p->objects[i]);
        kl_free(p->keys[i]);
    }
    kl_free(p->objects);
    kl_free(p->keys);
    *p = (kl__picture){0};
}
