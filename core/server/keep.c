/* keep.c - saves a state of the server and restores it later. A saved state is a reference to every object;
 * the cost of a restore grows with the changes. */
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "server/state.h"
#include "verbs/collect.h"

typedef struct kept_object {
    kl__bucket *bucket;
    const kl_value *object;
    uint64_t rv;
} kept_object;

struct kl__kept {
    kl_map *objects; /* "plural.group key" */
    uint64_t next_address;
};

static void object_free(void *p)
{
    kept_object *o = p;
    kl_value_unref(o->object);
    kl_free(o);
}

static char *name_of(const kl__bucket *b, const char *key)
{
    return kl_sprintf("%s.%s %s", b->plural, b->group, key);
}

void kl__kept_free(struct kl__kept *k)
{
    if (!k)
        return;
    kl_map_free(k->objects, object_free);
    kl_free(k);
}

void kl_server_keep(kl_server *s)
{
    kl_lock(&s->mu);
    kl__kept_free(s->kept);
    s->kept = kl_new(struct kl__kept);
    s->kept->objects = kl_map_new();
    s->kept->next_address = s->world.next_address;
    kl__bucket *const *all;
    size_t n = kl__store_buckets(s->world.store, &all);
    for (size_t i = 0; i < n; i++)
        for (size_t e = 0; e < all[i]->len; e++) {
            kept_object *o = kl_new(kept_object);
            *o = (kept_object){all[i], kl_value_ref(all[i]->v[e]->object), all[i]->v[e]->rv};
            char *name = name_of(all[i], all[i]->v[e]->key);
            kl_map_set(s->kept->objects, name, o);
            kl_free(name);
        }
    kl_unlock(&s->mu);
}

static kept_object *kept(kl_server *s, const kl__bucket *b, const char *key)
{
    char *name = name_of(b, key);
    kept_object *o = kl_map_get(s->kept->objects, name);
    kl_free(name);
    return o;
}

/* Whether the bucket's objects define kinds. */
static bool defines(const kl__bucket *b)
{
    return !strcmp(b->group, "apiextensions.k8s.io") || !strcmp(b->group, "apiregistration.k8s.io");
}

static bool same_kinds(kl_server *s, kl__bucket *const *all, size_t n)
{
    size_t had = 0, has = 0, it = 0;
    const char *name;
    void *v;
    while (kl_map_next(s->kept->objects, &it, &name, &v))
        had += defines(((kept_object *)v)->bucket);
    for (size_t i = 0; i < n; i++)
        for (size_t e = 0; defines(all[i]) && e < all[i]->len; e++) {
            kept_object *o = kept(s, all[i], all[i]->v[e]->key);
            if (!o || o->rv != all[i]->v[e]->rv)
                return false;
            has++;
        }
    return had == has;
}

static void remove_news(kl_server *s, kl__bucket *b)
{
    for (size_t e = b->len; e-- > 0;)
        if (!kept(s, b, b->v[e]->key)) {
            char *key = kl_strdup(b->v[e]->key);
            kl_value_unref(kl__store_remove(s->world.store, b, key, NULL));
            kl_free(key);
        }
}

static void put_back(kl_server *s)
{
    size_t it = 0;
    const char *name;
    void *v;
    while (kl_map_next(s->kept->objects, &it, &name, &v)) {
        kept_object *o = v;
        const char *key = strchr(name, ' ') + 1;
        const kl__entry *e = kl__bucket_get(o->bucket, key);
        if (e && e->rv == o->rv)
            continue;
        const kl_value *now = kl__store_put(s->world.store, o->bucket, key, kl_value_ref(o->object));
        kl_value_unref(o->object);
        o->object = kl_value_ref(now);
        o->rv = kl__bucket_get(o->bucket, key)->rv;
    }
}

bool kl_server_reset(kl_server *s)
{
    kl_lock(&s->mu);
    kl__bucket *const *all;
    size_t n = kl__store_buckets(s->world.store, &all);
    bool good = s->kept && same_kinds(s, all, n);
    for (size_t i = 0; good && i < n; i++)
        remove_news(s, all[i]);
    if (good) {
        put_back(s);
        s->world.next_address = s->kept->next_address;
    }
    kl__collect_forget(&s->world);
    kl_unlock(&s->mu);
    kl_faults_clear(s->faults);
    return good;
}
