/* correlator.c - two LRU tables: groups of similar notes with their recent texts, and token buckets. */
#include "events/correlator.h"

#include <stdint.h>
#include <string.h>

#include "base/bucket.h"
#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"

/* client-go tools/record/events_cache.go: maxLruCacheEntries, defaultAggregateMaxEvents,
 * defaultAggregateIntervalInSeconds, defaultSpamBurst, defaultSpamQPS. */
#define REMEMBERED_MAX 4096
#define NOTES_MAX 10
#define SIMILAR_WITHIN KL_SECONDS(600)
#define BURST 25
#define REFILL KL_SECONDS(300)

typedef struct record {
    kl_list link; /* in the table's order, oldest use first */
    char *key;
    kl_time last;
    uint64_t notes[NOTES_MAX]; /* a group: hashes of the notes it had, oldest first */
    int n;
    kl_bucket bucket; /* of the other table */
    bool refused;
} record;

typedef struct table {
    kl_map *map;
    kl_list order;
} table;

struct kl_correlator {
    table groups, buckets;
};

static void table_init(table *t)
{
    t->map = kl_map_new();
    kl_list_init(&t->order);
}

static void record_free(void *p)
{
    record *r = p;
    kl_free(r->key);
    kl_free(r);
}

kl_correlator *kl_correlator_new(void)
{
    kl_correlator *c = kl_new(kl_correlator);
    table_init(&c->groups);
    table_init(&c->buckets);
    return c;
}

void kl_correlator_free(kl_correlator *c)
{
    if (!c)
        return;
    kl_map_free(c->groups.map, record_free);
    kl_map_free(c->buckets.map, record_free);
    kl_free(c);
}

/* The record of a key, used now; *fresh when it is new. */
static record *find(table *t, const char *key, bool *fresh)
{
    record *r = kl_map_get(t->map, key);
    *fresh = !r;
    if (!r) {
        if (kl_map_len(t->map) >= REMEMBERED_MAX) {
            record *oldest = KL_CONTAINER(kl_list_shift(&t->order), record, link);
            kl_map_take(t->map, oldest->key);
            record_free(oldest);
        }
        r = kl_new(record);
        r->key = kl_strdup(key);
        kl_map_set(t->map, key, r);
    } else {
        kl_list_remove(&r->link);
    }
    kl_list_push(&t->order, &r->link);
    return r;
}

static void add(kl_buf *b, const char *s) { kl_buf_printf(b, "%s\1", s ? s : ""); }

/* resourceVersion is not part of an object's identity. */
static void add_object(kl_buf *b, const kl_value *o)
{
    add(b, kl_object_api_version(o));
    add(b, kl_object_kind(o));
    add(b, kl_object_namespace(o));
    add(b, kl_object_name(o));
    add(b, kl_object_uid(o));
}

static char *group_key(const kl_news *n)
{
    kl_buf b = KL_BUF_INIT;
    add(&b, n->component);
    add_object(&b, n->about);
    if (n->related)
        add_object(&b, n->related);
    add(&b, n->type);
    add(&b, n->reason);
    add(&b, n->action);
    return kl_buf_take(&b);
}

static bool has_note(const record *g, uint64_t hash)
{
    for (int i = 0; i < g->n; i++)
        if (g->notes[i] == hash)
            return true;
    return false;
}

char *kl_correlator_see(kl_correlator *c, const kl_news *n, kl_time now, bool *combined)
{
    char *key = group_key(n);
    const char *note = n->note ? n->note : "";
    uint64_t hash = kl_hash(note, strlen(note));
    bool fresh;
    record *g = find(&c->groups, key, &fresh);
    if (now - g->last > SIMILAR_WITHIN)
        g->n = 0;
    g->last = now;
    *combined = false;
    if (!has_note(g, hash)) {
        g->notes[g->n++] = hash;
        if (g->n == NOTES_MAX) {
            /* Keeps one place free, so that the next new note is the tenth again. */
            memmove(g->notes, g->notes + 1, (NOTES_MAX - 1) * sizeof *g->notes);
            g->n--;
            *combined = true;
        }
    }
    char *name = *combined ? kl_sprintf("%s*", key) : kl_sprintf("%s=%s", key, note);
    kl_free(key);
    return name;
}

bool kl_correlator_allow(kl_correlator *c, const kl_news *n, kl_time now, bool *first)
{
    kl_buf b = KL_BUF_INIT;
    add(&b, n->component);
    add_object(&b, n->about);
    add(&b, n->type);
    char *key = kl_buf_take(&b);
    bool fresh;
    record *r = find(&c->buckets, key, &fresh);
    kl_free(key);
    if (fresh)
        kl_bucket_init(&r->bucket, (double)KL_SECONDS(1) / (double)REFILL, BURST);
    r->last = now;
    bool pass = kl_bucket_try(&r->bucket, now);
    *first = !pass && !r->refused;
    r->refused = !pass;
    return pass;
}
