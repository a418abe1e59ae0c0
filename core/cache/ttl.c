/* ttl.c - a map, and a list in the order of puts: as all objects live equally long, that is the order of
 * expiry. */
#include "cache/ttl.h"

#include <string.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"

typedef struct item {
    kl_list link;
    kl_time until;
    char *key;
    const kl_value *o;
    size_t bytes;
} item;

/* The memory of an item without its object and its key, which the map stores a second time. */
#define ITEM_BYTES (sizeof(item) + 64)

struct kl_ttl {
    kl_time ttl;
    kl_mutex mu;
    kl_map *by_key KL_GUARDED_BY(mu);
    kl_list order KL_GUARDED_BY(mu);
    size_t bytes KL_GUARDED_BY(mu);
};

kl_ttl *kl_ttl_new(kl_time ttl)
{
    kl_ttl *t = kl_new(kl_ttl);
    t->ttl = ttl;
    t->by_key = kl_map_new();
    kl_mutex_init(&t->mu);
    kl_list_init(&t->order);
    return t;
}

static void drop_locked(kl_ttl *t, item *i) KL_REQUIRES(t->mu);
static void drop_locked(kl_ttl *t, item *i)
{
    (void)kl_map_take(t->by_key, i->key);
    kl_list_remove(&i->link);
    t->bytes -= i->bytes;
    kl_value_unref(i->o);
    kl_free(i->key);
    kl_free(i);
}

static void expire_locked(kl_ttl *t, kl_time now) KL_REQUIRES(t->mu);
static void expire_locked(kl_ttl *t, kl_time now)
{
    while (!kl_list_empty(&t->order)) {
        item *i = KL_CONTAINER(t->order.next, item, link);
        if (i->until > now)
            return;
        drop_locked(t, i);
    }
}

void kl_ttl_free(kl_ttl *t)
{
    if (!t)
        return;
    kl_lock(&t->mu);
    expire_locked(t, KL_NEVER);
    kl_unlock(&t->mu);
    kl_map_free(t->by_key, NULL);
    kl_mutex_fini(&t->mu);
    kl_free(t);
}

void kl_ttl_put(kl_ttl *t, const char *key, const kl_value *o, kl_time now)
{
    item *fresh = kl_new(item);
    fresh->key = kl_strdup(key);
    fresh->o = kl_value_ref(o);
    fresh->bytes = ITEM_BYTES + 2 * strlen(key) + kl_value_held(o, KL_TTL_MEASURED);
    fresh->until = kl_time_after(now, t->ttl);
    kl_lock(&t->mu);
    expire_locked(t, now);
    item *old = kl_map_get(t->by_key, key);
    if (old)
        drop_locked(t, old);
    kl_map_set(t->by_key, key, fresh);
    kl_list_push(&t->order, &fresh->link);
    t->bytes += fresh->bytes;
    kl_unlock(&t->mu);
}

const kl_value *kl_ttl_lookup(kl_ttl *t, const char *key, kl_time now)
{
    kl_lock(&t->mu);
    expire_locked(t, now);
    item *i = kl_map_get(t->by_key, key);
    const kl_value *o = i ? kl_value_ref(i->o) : NULL;
    kl_unlock(&t->mu);
    return o;
}

bool kl_ttl_delete(kl_ttl *t, const char *key, kl_time now)
{
    kl_lock(&t->mu);
    expire_locked(t, now);
    item *i = kl_map_get(t->by_key, key);
    if (i)
        drop_locked(t, i);
    kl_unlock(&t->mu);
    return i;
}

size_t kl_ttl_count(kl_ttl *t, kl_time now)
{
    kl_lock(&t->mu);
    expire_locked(t, now);
    size_t n = kl_map_len(t->by_key);
    kl_unlock(&t->mu);
    return n;
}

size_t kl_ttl_bytes(kl_ttl *t)
{
    kl_lock(&t->mu);
    size_t n = t->bytes;
    kl_unlock(&t->mu);
    return n;
}

void kl_ttl_list(kl_ttl *t, kl_time now, kl_objects *out)
{
    kl_lock(&t->mu);
    expire_locked(t, now);
    *out = (kl_objects){0, kl_new_array(const kl_value *, kl_map_len(t->by_key) + 1)};
    for (kl_list *n = t->order.next; n != &t->order; n = n->next)
        out->v[out->len++] = kl_value_ref(KL_CONTAINER(n, item, link)->o);
    kl_unlock(&t->mu);
}
