/* recorder.c - one Event object per (object, type, reason, message, component): a repeat becomes a patch of count and
 * lastTimestamp; when the Event is gone it is made anew. Requests of one Event never overlap, so counts cannot run backwards.
 *
 *   idle --event--> sending --answer--> idle, or sending again when it repeated meanwhile */
#include "run/recorder.h"

#include <string.h>

#include "base/list.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "model/object.h"
#include "model/time.h"

/* Distinct events remembered, as client-go's correlator cache; past it the oldest idle one is forgotten. */
#define REMEMBERED_MAX 4096
/* Requests under way; past it events are dropped and counted (client-go: a queue of 1000). */
#define UNDER_WAY_MAX 1000

typedef struct entry {
    kl_list link;                  /* in r->order, oldest use first */
    kl_recorder *r;
    char *slot, *name, *ns, *component;
    const kl_value *event;         /* as first created; NULL until the first answer... holds the body to create */
    int64_t count;                 /* what the server should show */
    int64_t sent;                  /* what it was last told */
    bool created, busy, patching;
    kl_time last;                  /* wall */
} entry;

struct kl_recorder {
    kl_door *door;
    kl_clock *clock;
    kl_mutex mu;
    kl_cond cond;
    kl_map *entries KL_GUARDED_BY(mu);
    kl_list order KL_GUARDED_BY(mu);
    size_t under_way KL_GUARDED_BY(mu);
    uint64_t dropped KL_GUARDED_BY(mu), serial KL_GUARDED_BY(mu);
};

kl_recorder *kl_recorder_new(kl_door *door, kl_clock *clock)
{
    kl_recorder *r = kl_new(kl_recorder);
    r->door = door;
    r->clock = clock;
    kl_mutex_init(&r->mu);
    kl_cond_init(&r->cond);
    r->entries = kl_map_new();
    kl_list_init(&r->order);
    return r;
}

static void entry_free(void *p)
{
    entry *e = p;
    kl_list_remove(&e->link);
    kl_value_unref(e->event);
    kl_free(e->slot);
    kl_free(e->name);
    kl_free(e->ns);
    kl_free(e->component);
    kl_free(e);
}

static const kl_value *event_body(const entry *e, const kl_value *about, const char *type, const char *reason, const char *message)
{
    char now[KL_TIME_MAX];
    kl_time_format_wall(e->last, now);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", "v1");
    kl_build_kstr(b, "kind", "Event");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "name", e->name);
    kl_build_kstr(b, "namespace", e->ns);
    kl_build_end(b);
    kl_build_key(b, "involvedObject");
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", kl_object_api_version(about));
    kl_build_kstr(b, "kind", kl_object_kind(about));
    kl_build_kstr(b, "name", kl_object_name(about));
    kl_build_kstr(b, "namespace", kl_object_namespace(about));
    kl_build_kstr(b, "uid", kl_object_uid(about));
    kl_build_kstr(b, "resourceVersion", kl_object_rv(about));
    kl_build_end(b);
    kl_build_kstr(b, "type", type);
    kl_build_kstr(b, "reason", reason);
    kl_build_kstr(b, "message", message);
    kl_build_kstr(b, "firstTimestamp", now);
    kl_build_kstr(b, "lastTimestamp", now);
    kl_build_kint(b, "count", 1);
    kl_build_key(b, "source");
    kl_build_object(b);
    kl_build_kstr(b, "component", e->component);
    kl_build_end(b);
    kl_build_kstr(b, "reportingComponent", e->component);
    kl_build_kstr(b, "reportingInstance", e->component);
    kl_build_end(b);
    return kl_builder_done(b);
}

static void send(entry *e);

static void answered(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    (void)code, (void)body;
    entry *e = arg;
    kl_recorder *r = e->r;
    bool again;
    kl_lock(&r->mu);
    if (!st) {
        e->created = true;
    } else if (st == KL_ENOTFOUND && e->patching) {
        e->created = false;            /* it expired: make it anew with the count so far */
        e->sent = 0;
    } else if (st != KL_ECANCELLED && st != KL_ENOTLEADER) {
        kl_warn("an event was not recorded", "event=%s/%s error=%s", e->ns, e->name, kl_log_quoted(kl_err_message(err)));
        e->sent = e->count;            /* a StatusError is never retried (client-go record/event.go) */
    } else {
        e->sent = e->count;
    }
    again = e->sent < e->count;
    e->busy = again;
    if (!again) {
        r->under_way--;
        kl_cond_broadcast(&r->cond);
    }
    kl_unlock(&r->mu);
    if (again)
        send(e);
}

/* The entry is busy: nobody else touches its request. */
static void send(entry *e)
{
    kl_recorder *r = e->r;
    char now[KL_TIME_MAX];
    kl_lock(&r->mu);
    int64_t count = e->sent = e->count;
    bool create = !e->created;
    e->patching = !create;
    kl_time_format_wall(e->last, now);
    const kl_value *event = kl_value_ref(e->event);
    kl_unlock(&r->mu);
    kl_op op;
    kl_op_init(&op, create ? KL_CREATE : KL_PATCH, "v1/Event");
    op.ns = e->ns;
    op.field_manager = e->component;
    const kl_value *n = kl_value_of_int(count), *t = kl_value_of_str(now), *half = NULL, *body;
    half = kl_value_with(create ? event : NULL, "count", n);
    body = kl_value_with(half, "lastTimestamp", t);
    op.body = body;
    if (!create) {
        op.name = e->name;
        op.patch_type = KL_PATCH_MERGE;
    }
    kl_door_write(r->door, e->component, &op, answered, e);
    kl_value_unref(body);
    kl_value_unref(half);
    kl_value_unref(n);
    kl_value_unref(t);
    kl_value_unref(event);
}

static void forget_oldest_locked(kl_recorder *r) KL_REQUIRES(r->mu)
{
    for (kl_list *n = r->order.next; n != &r->order; n = n->next) {
        entry *e = KL_CONTAINER(n, entry, link);
        if (!e->busy) {
            kl_map_take(r->entries, e->slot);
            entry_free(e);
            return;
        }
    }
}

void kl_recorder_event(kl_recorder *r, const char *component, const kl_value *about, const char *type, const char *reason, const char *message)
{
    const char *ns = kl_object_namespace(about) ? kl_object_namespace(about) : "default", *name = kl_object_name(about) ? kl_object_name(about) : "unknown";
    char *slot = kl_sprintf("%s\1%s\1%s\1%s\1%s\1%s\1%s", component, ns, kl_object_kind(about) ? kl_object_kind(about) : "", kl_object_uid(about) ? kl_object_uid(about) : name, type, reason, message);
    kl_time now = kl_clock_wall(r->clock);
    kl_lock(&r->mu);
    entry *e = kl_map_get(r->entries, slot);
    bool start = false;
    if (!e && r->under_way >= UNDER_WAY_MAX) {
        r->dropped++;
    } else {
        if (!e) {
            if (kl_map_len(r->entries) >= REMEMBERED_MAX)
                forget_oldest_locked(r);
            e = kl_new(entry);
            e->r = r;
            e->slot = kl_strdup(slot);
            e->ns = kl_strdup(ns);
            e->component = kl_strdup(component);
            e->name = kl_sprintf("%.200s.%llx", name, (unsigned long long)now + ++r->serial);
            e->last = now;
            e->event = event_body(e, about, type, reason, message);
            kl_map_set(r->entries, slot, e);
        } else {
            kl_list_remove(&e->link);
        }
        kl_list_push(&r->order, &e->link);
        e->count++;
        e->last = now;
        start = !e->busy;
        if (start) {
            e->busy = true;
            r->under_way++;
        }
    }
    kl_unlock(&r->mu);
    kl_free(slot);
    if (start)
        send(e);
}

bool kl_recorder_flush(kl_recorder *r, kl_time deadline)
{
    bool all = true;
    kl_lock(&r->mu);
    while (r->under_way && all)
        all = kl_cond_wait_until(&r->cond, &r->mu, deadline);
    all = !r->under_way;
    kl_unlock(&r->mu);
    return all;
}

uint64_t kl_recorder_dropped(kl_recorder *r)
{
    kl_lock(&r->mu);
    uint64_t n = r->dropped;
    kl_unlock(&r->mu);
    return n;
}

void kl_recorder_free(kl_recorder *r)
{
    if (!r)
        return;
    kl_recorder_flush(r, KL_NEVER);        /* each request has its own timeout, so this ends */
    kl_map_free(r->entries, entry_free);
    kl_cond_fini(&r->cond);
    kl_mutex_fini(&r->mu);
    kl_free(r);
}
