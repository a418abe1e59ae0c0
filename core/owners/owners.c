/* owners.c - an index from the uids of owners to their dependents, and a queue of objects to check.
 *
 *   an object comes, or names other owners   -> the object (not with fixtures)
 *   an object goes                           -> its dependents, and the owners that wait for it
 *   an object waits for its dependents       -> the object, and its dependents
 *
 * An owner waits between its foreground deletion and the end of its last dependent that blocks it. */
#include "owners/owners.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"

typedef struct places {
    kl__place_of *v;
    size_t len, cap;
} places;

struct kl__owners {
    bool fixtures;
    kl_map *dependents; /* uid -> places */
    kl_map *waiting;    /* uid -> places, of one: the owner that waits for its dependents */
    kl_map *gone;       /* uids */
    places queue;
    size_t first;   /* in the queue: the places before it were taken */
    kl_map *queued; /* names of places in the queue */
};

static void places_add(places *p, kl__bucket *b, const char *key)
{
    if (p->len == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 4;
        p->v = kl_realloc(p->v, p->cap * sizeof *p->v);
    }
    p->v[p->len++] = (kl__place_of){b, kl_strdup(key)};
}

void kl__owners_drop(kl__place_of *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kl_free(v[i].key);
    kl_free(v);
}

static void places_free(void *arg)
{
    places *p = arg;
    kl__owners_drop(p->v, p->len);
    kl_free(p);
}

kl__owners *kl__owners_new(bool fixtures)
{
    kl__owners *o = kl_new(kl__owners);
    o->fixtures = fixtures;
    o->dependents = kl_map_new();
    o->waiting = kl_map_new();
    o->gone = kl_map_new();
    o->queued = kl_map_new();
    return o;
}

void kl__owners_free(kl__owners *o)
{
    if (!o)
        return;
    kl__owners_forget(o);
    kl_free(o->queue.v);
    kl_map_free(o->dependents, places_free);
    kl_map_free(o->waiting, places_free);
    kl_map_free(o->gone, NULL);
    kl_map_free(o->queued, NULL);
    kl_free(o);
}

/* ------------------------------------------------------------------ the queue */

static char *name_of(const kl__bucket *b, const char *key)
{
    return kl_sprintf("%s.%s %s", b->plural, b->group, key);
}

static void enqueue(kl__owners *o, kl__bucket *b, const char *key)
{
    char *name = name_of(b, key);
    if (!kl_map_has(o->queued, name)) {
        kl_map_set(o->queued, name, o);
        places_add(&o->queue, b, key);
    }
    kl_free(name);
}

static void enqueue_all(kl__owners *o, const places *p)
{
    for (size_t i = 0; p && i < p->len; i++)
        enqueue(o, p->v[i].bucket, p->v[i].key);
}

void kl__owners_forget(kl__owners *o)
{
    for (size_t i = o->first; i < o->queue.len; i++)
        kl_free(o->queue.v[i].key);
    o->queue.len = o->first = 0;
    kl_map_free(o->queued, NULL);
    kl_map_free(o->gone, NULL);
    o->queued = kl_map_new();
    o->gone = kl_map_new();
}

bool kl__owners_next(kl__owners *o, kl__place_of *out)
{
    if (o->first == o->queue.len) {
        if (o->first || kl_map_len(o->gone))
            kl__owners_forget(o);
        return false;
    }
    *out = o->queue.v[o->first++];
    char *name = name_of(out->bucket, out->key);
    kl_map_take(o->queued, name);
    kl_free(name);
    return true;
}

bool kl__owners_gone(const kl__owners *o, const char *uid) { return kl_map_has(o->gone, uid); }

/* ------------------------------------------------------------------ the index */

static const kl_value *owners_of(const kl_value *object)
{
    return kl_value_at(object, "metadata", "ownerReferences", NULL);
}

static const char *uid_of(const kl_value *owners, size_t i)
{
    const char *uid = kl_value_str(kl_value_get(kl_value_item(owners, i), "uid"));
    return uid ? uid : "";
}

static bool names(const kl_value *owners, const char *uid)
{
    for (size_t i = 0; i < kl_value_len(owners); i++)
        if (!strcmp(uid_of(owners, i), uid))
            return true;
    return false;
}

static void link_to(kl__owners *o, const char *uid, kl__bucket *b, const char *key)
{
    places *p = kl_map_get(o->dependents, uid);
    if (!p) {
        p = kl_new(places);
        kl_map_set(o->dependents, uid, p);
    }
    places_add(p, b, key);
}

static void unlink_from(kl__owners *o, const char *uid, const kl__bucket *b, const char *key)
{
    places *p = kl_map_get(o->dependents, uid);
    for (size_t i = 0; p && i < p->len; i++)
        if (p->v[i].bucket == b && !strcmp(p->v[i].key, key)) {
            kl_free(p->v[i].key);
            p->v[i] = p->v[--p->len];
            break;
        }
    if (p && !p->len)
        places_free(kl_map_take(o->dependents, uid));
}

static void relink(kl__owners *o, kl__bucket *b, const kl__change *c)
{
    const kl_value *had = owners_of(c->old), *has = c->type == KL_DELETED ? NULL : owners_of(c->now);
    if (kl_value_equal(had, has) && c->type == KL_MODIFIED)
        return;
    for (size_t i = 0; i < kl_value_len(had); i++) {
        const char *uid = uid_of(had, i);
        unlink_from(o, uid, b, c->key);
        enqueue_all(o, kl_map_get(o->waiting, uid));
    }
    for (size_t i = 0; i < kl_value_len(has); i++)
        link_to(o, uid_of(has, i), b, c->key);
    if (kl_value_len(has) && !o->fixtures)
        enqueue(o, b, c->key);
}

static bool waits(const kl_value *object, const char *finalizer)
{
    return object && kl_object_deleting(object) && kl_object_has_finalizer(object, finalizer);
}

void kl__owners_change(kl__owners *o, kl__bucket *b, const kl__change *c)
{
    const kl_value *now = c->type == KL_DELETED ? NULL : c->now;
    const char *uid = kl_object_uid(c->now), *was = c->old ? kl_object_uid(c->old) : NULL;
    relink(o, b, c);
    if (!uid)
        return;
    bool same = was && !strcmp(was, uid), waits_now = waits(now, KL_FINALIZER_FOREGROUND);
    if (!now || (was && !same)) {
        const char *lost = now ? was : uid;
        kl_map_set(o->gone, lost, o);
        enqueue_all(o, kl_map_get(o->dependents, lost));
    }
    if (!waits_now && kl_map_has(o->waiting, uid))
        places_free(kl_map_take(o->waiting, uid));
    if (waits_now && !kl_map_has(o->waiting, uid)) {
        places *p = kl_new(places);
        places_add(p, b, c->key);
        kl_map_set(o->waiting, uid, p);
        enqueue_all(o, kl_map_get(o->dependents, uid));
        enqueue(o, b, c->key);
    }
    if (waits(now, KL_FINALIZER_ORPHAN) && !(same && waits(c->old, KL_FINALIZER_ORPHAN)))
        enqueue(o, b, c->key);
    /* the object begins to end: its waiting owners are checked again */
    if (now && kl_object_deleting(now) && !(c->old && kl_object_deleting(c->old)))
        for (size_t i = 0; i < kl_value_len(owners_of(now)); i++)
            enqueue_all(o, kl_map_get(o->waiting, uid_of(owners_of(now), i)));
}

kl__place_of *kl__owners_dependents(const kl__owners *o, const char *uid, size_t *n)
{
    const places *p = kl_map_get(o->dependents, uid);
    places copy = {0};
    for (size_t i = 0; p && i < p->len; i++) {
        const kl__entry *e = kl__bucket_get(p->v[i].bucket, p->v[i].key);
        if (e && names(owners_of(e->object), uid))
            places_add(&copy, p->v[i].bucket, p->v[i].key);
    }
    *n = copy.len;
    return copy.v;
}
