/* managers.c - the entries of metadata.managedFields. A client may send tens of thousands of them, so nothing
 * here compares each with each: entries are sorted by writer, and so found. */
#include "schema/managers.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "schema/edit.h"

static int order(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : ""); }
static bool is_apply(const kl__manager *e) { return !order(e->operation, "Apply"); }
static bool is_update(const kl__manager *e)
{
    return !order(e->operation, "Update") && !kl__fieldset_empty(e->set);
}

/* 0: both are one writer's. */
static int by_writer(const void *x, const void *y)
{
    const kl__manager *a = x, *b = y;
    int c = order(a->name, b->name);
    c = c ? c : order(a->operation, b->operation);
    c = c || is_apply(a) ? c : order(a->api_version, b->api_version);
    return c ? c : order(a->sub, b->sub);
}

/* The order in managedFields. */
static int by_age(const void *x, const void *y)
{
    const kl__manager *a = x, *b = y;
    int c = order(a->operation, b->operation);
    c = c ? c : order(a->time, b->time);
    c = c ? c : order(a->name, b->name);
    c = c ? c : order(a->api_version, b->api_version);
    return c ? c : order(a->sub, b->sub);
}

static void sort(kl__managers *m, int (*compare)(const void *, const void *))
{
    if (m->len > 1)
        qsort(m->v, m->len, sizeof *m->v, compare);
}

static void free_one(kl__manager *e)
{
    kl_free(e->name);
    kl_free(e->operation);
    kl_free(e->api_version);
    kl_free(e->sub);
    kl_free(e->time);
    kl__fieldset_free(e->set);
}

void kl__managers_fini(kl__managers *m)
{
    for (size_t i = 0; i < m->len; i++)
        free_one(&m->v[i]);
    kl_free(m->v);
    *m = (kl__managers){0};
}

static char *copy(const kl_value *entry, const char *key)
{
    return kl_strdup(kl_value_str(kl_value_get(entry, key)));
}

/* An entry of the list, and its place there. */
typedef struct placed {
    kl__manager entry; /* first, for by_writer */
    size_t at;
} placed;

static int by_writer_and_place(const void *x, const void *y)
{
    const placed *a = x, *b = y;
    int c = by_writer(x, y);
    return c ? c : a->at < b->at ? -1 : a->at > b->at;
}

kl__managers kl__managers_of(const kl_value *object)
{
    const kl_value *list = kl_value_at(object, "metadata", "managedFields", NULL);
    size_t len = kl_value_len(list), n = 0;
    kl__managers m = {0};
    placed *all = kl_new_array(placed, len + 1);
    for (size_t i = 0; i < len; i++) {
        const kl_value *entry = kl_value_item(list, i);
        if (!kl_value_str(kl_value_get(entry, "operation")))
            continue;
        all[n].at = i;
        all[n++].entry = (kl__manager){.name = copy(entry, "manager"),
            .operation = copy(entry, "operation"),
            .api_version = copy(entry, "apiVersion"),
            .sub = copy(entry, "subresource"),
            .time = copy(entry, "time"),
            .set = kl__fieldset_decode(kl_value_get(entry, "fieldsV1"))};
    }
    if (n > 1)
        qsort(all, n, sizeof *all, by_writer_and_place);
    m.v = kl_new_array(kl__manager, len + 1);
    for (size_t i = 0; i < n; i++)
        if (i + 1 < n && !by_writer(&all[i], &all[i + 1]))
            free_one(&all[i].entry);
        else
            m.v[m.len++] = all[i].entry;
    kl_free(all);
    return m;
}

kl__manager *kl__managers_find(const kl__managers *m, const kl__manager *like)
{
    return m->len ? bsearch(like, m->v, m->len, sizeof *m->v, by_writer) : NULL;
}

kl__manager *kl__managers_add(kl__managers *m)
{
    m->v = kl_realloc(m->v, (m->len + 1) * sizeof *m->v);
    m->v[m->len] = (kl__manager){0};
    return &m->v[m->len++];
}

void kl__managers_join(kl__managers *m, kl__managers *from)
{
    m->v = kl_realloc(m->v, (m->len + from->len + 1) * sizeof *m->v);
    for (size_t i = 0; i < from->len; i++)
        m->v[m->len++] = from->v[i];
    from->len = 0;
    kl__managers_fini(from);
}

void kl__managers_write(kl__managers *m, const kl_value **object)
{
    sort(m, by_age);
    kl_builder *b = kl_builder_new();
    size_t n = 0;
    kl_build_array(b);
    for (size_t i = 0; i < m->len; i++) {
        const kl__manager *e = &m->v[i];
        if (kl__fieldset_empty(e->set))
            continue;
        kl_build_object(b);
        kl_build_kstr(b, "manager", e->name);
        kl_build_kstr(b, "operation", e->operation);
        kl_build_kstr(b, "apiVersion", e->api_version);
        kl_build_kstr(b, "time", e->time);
        kl_build_kstr(b, "fieldsType", "FieldsV1");
        kl_build_key(b, "fieldsV1");
        kl__fieldset_encode(e->set, b);
        kl_build_kstr(b, "subresource", e->sub && *e->sub ? e->sub : NULL);
        kl_build_end(b);
        n++;
    }
    kl_build_end(b);
    const kl_value *list = kl_builder_done(b);
    if (n || kl_value_at(*object, "metadata", "managedFields", NULL))
        KL_EDIT(object, n ? kl_value_ref(list) : NULL, "metadata", "managedFields");
    kl_value_unref(list);
}

bool kl__managers_same(const kl_value *a, const kl_value *b)
{
    kl__managers p = kl__managers_of(a), q = kl__managers_of(b);
    bool yes = p.len == q.len;
    for (size_t i = 0; i < p.len && yes; i++)
        yes = !by_writer(&p.v[i], &q.v[i]) && !order(p.v[i].api_version, q.v[i].api_version)
            && kl__fieldset_equal(p.v[i].set, q.v[i].set);
    kl__managers_fini(&p);
    kl__managers_fini(&q);
    return yes;
}

/* The maximum number of update entries. Beyond it, the oldest of each version are merged. */
#define UPDATERS_MAX 10

static void replace(char **text, const char *by)
{
    kl_free(*text);
    *text = kl_strdup(by);
}

void kl__managers_cap(kl__managers *m)
{
    size_t updaters = 0, n = 0;
    for (size_t i = 0; i < m->len; i++)
        updaters += is_update(&m->v[i]);
    if (updaters <= UPDATERS_MAX)
        return;
    sort(m, by_age);
    kl_map *buckets = kl_map_new(); /* of a version: the first entry, in which others are merged */
    for (size_t i = 0; i < m->len; i++) {
        kl__manager *e = &m->v[i];
        const char *version = e->api_version ? e->api_version : "";
        kl__manager *bucket = is_update(e) && updaters > UPDATERS_MAX ? kl_map_get(buckets, version) : NULL;
        if (!bucket) {
            m->v[n] = *e;
            if (is_update(&m->v[n]))
                kl_map_set(buckets, version, &m->v[n]);
            n++;
            continue;
        }
        replace(&bucket->name, "ancient-changes");
        replace(&bucket->sub, NULL);
        replace(&bucket->time, e->time);
        kl__fieldset_add(bucket->set, e->set);
        free_one(e);
        updaters--;
    }
    m->len = n;
    kl_map_free(buckets, NULL);
}
