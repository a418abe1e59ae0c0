/* edited.c - changes beside an object, found by key. */
#include "value/edited.h"

#include <string.h>

#include "base/mem.h"

static struct kl_edit *find(const kl_edited *e, const char *key)
{
    size_t place = e->places ? (size_t)(uintptr_t)kl_map_get(e->places, key) : 0;
    return place ? &e->v[place - 1] : NULL;
}

const kl_value *kl_edited_get(const kl_edited *e, const char *key)
{
    const struct kl_edit *edit = find(e, key);
    return edit ? edit->x : kl_value_get(e->base, key);
}

void kl_edited_put(kl_edited *e, const char *key, const kl_value *x)
{
    struct kl_edit *edit = find(e, key);
    x = kl_value_ref(x);
    if (edit) {
        kl_value_unref(edit->x);
        edit->x = x;
        return;
    }
    if (!(e->len & (e->len - 1))) /* room is a power of two */
        e->v = kl_realloc(e->v, (e->len ? 2 * e->len : 1) * sizeof *e->v);
    e->v[e->len++] = (struct kl_edit){kl_strdup(key), x};
    if (!e->places)
        e->places = kl_map_new();
    kl_map_set(e->places, key, (void *)(uintptr_t)e->len);
}

static void put_members(kl_edited *e, const kl_value *map, bool missing)
{
    for (size_t i = 0; i < kl_value_len(map); i++) {
        const char *key;
        const kl_value *v = kl_value_member(map, i, &key, NULL);
        if (!missing || !kl_edited_get(e, key))
            kl_edited_put(e, key, v);
    }
}

void kl_edited_put_all(kl_edited *e, const kl_value *map) { put_members(e, map, false); }
void kl_edited_fill(kl_edited *e, const kl_value *map) { put_members(e, map, true); }

static void build(kl_builder *b, const char *key, size_t n, const kl_value *x)
{
    kl_build_keyn(b, key, n);
    kl_build_value(b, x);
}

const kl_value *kl_edited_done(kl_edited *e)
{
    if (e->base && !e->len) {
        const kl_value *same = kl_value_ref(e->base);
        *e = (kl_edited){0};
        return same;
    }
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(e->base); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(e->base, i, &key, &n);
        const struct kl_edit *edit = find(e, key);
        if (!edit || edit->x)
            build(b, key, n, edit ? edit->x : v);
    }
    for (size_t i = 0; i < e->len; i++) {
        struct kl_edit *edit = &e->v[i];
        if (edit->x && !kl_value_get(e->base, edit->key))
            build(b, edit->key, strlen(edit->key), edit->x);
    }
    kl_build_end(b);
    for (size_t i = 0; i < e->len; i++) {
        kl_value_unref(e->v[i].x);
        kl_free(e->v[i].key);
    }
    kl_free(e->v);
    kl_map_free(e->places, NULL);
    *e = (kl_edited){0};
    return kl_builder_done(b);
}
