/* overlay.c - a map of objects by "group/plural/namespace/name". */
#include "run/overlay.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "model/object.h"

typedef struct entry {
    const kl_value *v; /* NULL: the object does not exist */
    bool wrote;
    bool listed; /* used during one list: the object is in it */
} entry;

struct kl_overlay {
    atomic_int refs;
    kl_mutex mu;
    kl_map *objects KL_GUARDED_BY(mu);
    uint64_t number KL_GUARDED_BY(mu);
};

/* Made-up uids and names differ between the overlays of a process, too. */
static atomic_uint_fast64_t overlays;

kl_overlay *kl_overlay_new(void)
{
    kl_overlay *o = kl_new(kl_overlay);
    atomic_init(&o->refs, 1);
    kl_mutex_init(&o->mu);
    o->objects = kl_map_new();
    o->number = atomic_fetch_add(&overlays, 1) << 16;
    return o;
}

kl_overlay *kl_overlay_ref(kl_overlay *o)
{
    atomic_fetch_add(&o->refs, 1);
    return o;
}

static void entry_free(void *p)
{
    entry *e = p;
    if (e)
        kl_value_unref(e->v);
    kl_free(e);
}

void kl_overlay_unref(kl_overlay *o)
{
    if (!o || atomic_fetch_sub(&o->refs, 1) != 1)
        return;
    kl_map_free(o->objects, entry_free);
    kl_mutex_fini(&o->mu);
    kl_free(o);
}

static char *prefix_of(const kl_resource *r) { return kl_sprintf("%s/%s/", r->group, r->plural); }
static char *key_of(const kl_resource *r, const char *ns, const char *name)
{
    return kl_sprintf("%s/%s/%s/%s", r->group, r->plural, ns ? ns : "", name);
}

bool kl_overlay_get(
    kl_overlay *o, const kl_resource *r, const char *ns, const char *name, const kl_value **out)
{
    char *key = key_of(r, ns, name);
    kl_lock(&o->mu);
    const entry *e = kl_map_get(o->objects, key);
    if (e)
        *out = kl_value_ref(e->v);
    kl_unlock(&o->mu);
    kl_free(key);
    return e;
}

/* Stores v, with `first` only if nothing was known. True: v is stored. */
static bool put(
    kl_overlay *o, const kl_resource *r, const char *ns, const char *name, const kl_value *v, bool first)
{
    char *key = key_of(r, ns, name);
    kl_lock(&o->mu);
    entry *e = kl_map_get(o->objects, key);
    bool put_in = !first || !e;
    if (put_in) {
        entry *fresh = kl_new(entry);
        *fresh = (entry){.v = kl_value_ref(v), .wrote = !first};
        entry_free(kl_map_set(o->objects, key, fresh));
    }
    kl_unlock(&o->mu);
    kl_free(key);
    return put_in;
}

void kl_overlay_set(kl_overlay *o, const kl_resource *r, const char *ns, const char *name, const kl_value *v)
{
    (void)put(o, r, ns, name, v, false);
}

bool kl_overlay_show(kl_overlay *o, const kl_resource *r, const char *ns, const char *name, const kl_value *v)
{
    return put(o, r, ns, name, v, true);
}

bool kl_overlay_wrote(kl_overlay *o, const kl_resource *r, const char *ns, const char *name)
{
    char *key = key_of(r, ns, name);
    kl_lock(&o->mu);
    const entry *e = kl_map_get(o->objects, key);
    bool wrote = e && e->wrote;
    kl_unlock(&o->mu);
    kl_free(key);
    return wrote;
}

bool kl_overlay_has(kl_overlay *o, const kl_resource *r)
{
    char *prefix = prefix_of(r);
    size_t n = strlen(prefix), it = 0;
    const char *key;
    void *e;
    bool any = false;
    kl_lock(&o->mu);
    while (!any && kl_map_next(o->objects, &it, &key, &e))
        any = !strncmp(key, prefix, n);
    kl_unlock(&o->mu);
    kl_free(prefix);
    return any;
}

kl_status kl_overlay_write(
    kl_overlay *o, const kl_simulation *write, kl_simulated *out, const kl_value **was, kl_err *err)
{
    kl_simulation over = *write;
    const kl_value *known = NULL;
    const char *name = kl_op_name(over.op);
    kl_lock(&o->mu);
    over.number = ++o->number;
    kl_unlock(&o->mu);
    if (!name || !kl_overlay_get(o, over.resource, over.ns, name, &known))
        known = kl_value_ref(over.base);
    over.base = known;
    kl_status st = kl_simulate(&over, out, err);
    if (!st) {
        if (!name)
            name = kl_object_name(out->object);
        if (out->changed)
            kl_overlay_set(o, over.resource, over.ns, name, out->object);
        else
            (void)kl_overlay_show(o, over.resource, over.ns, name, out->object);
        if (was)
            *was = kl_value_ref(known);
    }
    kl_value_unref(known);
    return st;
}

/* --- lists -------------------------------------------------------------------------------- */

/* Compares by the text "namespace/name" without making it. */
static int by_key(const void *a, const void *b)
{
    const kl_value *x = *(const kl_value *const *)a, *y = *(const kl_value *const *)b;
    const char *p = kl_object_namespace(x), *q = kl_object_namespace(y);
    if (p && q) {
        for (; *p && *p == *q; p++, q++)
            ;
        if (*p != *q)
            return (unsigned char)(*p ? *p : '/') - (unsigned char)(*q ? *q : '/');
    }
    return strcmp(kl_object_name(x) ? kl_object_name(x) : "", kl_object_name(y) ? kl_object_name(y) : "");
}

void kl_overlay_list(kl_overlay *o, const kl_resource *r,
    bool (*matches)(void *arg, const kl_value *v, bool listed), void *arg, kl_objects *io)
{
    char *prefix = prefix_of(r);
    size_t n = strlen(prefix), kept = 0, it = 0;
    const char *name;
    void *p;
    kl_lock(&o->mu);
    const kl_value **all = kl_zalloc_array(sizeof *all, io->len + kl_map_len(o->objects) + 1);
    for (size_t i = 0; i < io->len; i++) {
        char *key = key_of(r, kl_object_namespace(io->v[i]), kl_object_name(io->v[i]));
        entry *e = kl_map_get(o->objects, key);
        if (e)
            e->listed = true;
        else
            all[kept++] = kl_value_ref(io->v[i]);
        kl_free(key);
    }
    size_t theirs = kept;
    while (kl_map_next(o->objects, &it, &name, &p)) {
        entry *e = p;
        if (!strncmp(name, prefix, n) && e->v && matches(arg, e->v, e->listed))
            all[kept++] = kl_value_ref(e->v);
        e->listed = false;
    }
    kl_unlock(&o->mu);
    if (kept > theirs)
        qsort(all, kept, sizeof *all, by_key);
    kl_objects_fini(io);
    *io = (kl_objects){kept, all};
    kl_free(prefix);
}
