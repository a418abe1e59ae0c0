/* recorder.c - one entry per Event: its contents, its count, and the count that the server has.
 *
 *   idle --something to tell--> ready --a place is free--> busy --answered--> idle, ready again, or waiting for another try
 *   idle, 6 minutes without a repeat --> forgotten (its last count is told before)
 *
 * Sent are: the first occurrence, the second (which makes a series), the count of a running series every half
 * hour, and the last count; core/v1 has no series, so there each repeat is sent. Requests of one Event never
 * overlap, so its counts never run backwards, and repeats meanwhile become one. */
#include "events/recorder.h"

#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/sync.h"
#include "model/object.h"
#include "events/correlator.h"
#include "events/event_body.h"

/* client-go tools/events/event_broadcaster.go: refreshTime, finishTime, maxTriesPerEvent,
 * defaultSleepDuration and its jitter. */
#define REFRESH KL_MINUTES(30)
#define FINISH KL_MINUTES(6)
#define TRIES_MAX 12
#define TRY_AGAIN KL_SECONDS(10)
#define TRY_JITTER KL_MILLISECONDS(2500)
/* The size of the cache, as client-go's; beyond it the oldest idle Event is dropped. */
#define REMEMBERED_MAX 4096
/* The maximum of pending Events; beyond it new ones are dropped (client-go: maxQueuedEvents). */
#define WAITING_MAX 1000
/* Requests at a time, so that a storm of events leaves room for reconciles and the lease. */
#define UNDER_WAY_MAX 32
/* The timeout of a request; then it is retried. */
#define REQUEST_MAX KL_SECONDS(30)

typedef enum phase { IDLE, READY, BUSY, WAITING } phase;

typedef struct entry {
    kl_list link;     /* in r->order, oldest use first */
    kl_list turn;     /* in r->ready while READY */
    kl_heap_node due; /* in r->due while IDLE or WAITING */
    kl_recorder *r;
    char *key, *name, *ns, *component;
    const kl_value *body;
    kl_mandate mandate; /* of the last reporter */
    kl_event_series seen;
    int64_t told;    /* the server's count; 0: it does not have the Event */
    int64_t telling; /* the count in the request under way */
    phase phase;
    bool patching;
    int tries;
    kl_time last, told_at; /* monotonic */
} entry;

struct kl_recorder {
    kl_door *door;
    kl_clock *clock;
    kl_loop *loop;
    char instance[80]; /* "-hostname" */
    kl_mutex mu;
    kl_cond cond;
    kl_correlator *correlator KL_GUARDED_BY(mu);
    kl_map *entries KL_GUARDED_BY(mu);
    kl_list order KL_GUARDED_BY(mu), ready KL_GUARDED_BY(mu);
    kl_heap due KL_GUARDED_BY(mu);
    kl_random random KL_GUARDED_BY(mu);
    size_t under_way KL_GUARDED_BY(mu), inside KL_GUARDED_BY(mu); /* requests; answers being taken in */
    kl_recorder_stats stats KL_GUARDED_BY(mu);
    uint64_t serial KL_GUARDED_BY(mu);
    bool core KL_GUARDED_BY(mu); /* the server has no events.k8s.io/v1 */
    bool closing KL_GUARDED_BY(mu), flushing KL_GUARDED_BY(mu), pumping KL_GUARDED_BY(mu),
        told_full KL_GUARDED_BY(mu);
    kl_time armed KL_GUARDED_BY(mu); /* the time of the loop's timer, present or about to be set */
    uint64_t timer;                  /* loop's thread only */
};

kl_recorder *kl_recorder_new(kl_door *door, kl_clock *clock, kl_loop *loop)
{
    kl_recorder *r = kl_new(kl_recorder);
    r->door = door;
    r->clock = clock;
    r->loop = loop;
    r->instance[0] = '-';
    if (gethostname(r->instance + 1, sizeof r->instance - 2))
        r->instance[0] = '\0';
    kl_mutex_init(&r->mu);
    kl_cond_init(&r->cond);
    r->correlator = kl_correlator_new();
    r->entries = kl_map_new();
    kl_list_init(&r->order);
    kl_list_init(&r->ready);
    kl_heap_init(&r->due);
    r->random.state = (uint64_t)kl_clock_wall(clock);
    r->armed = KL_NEVER;
    return r;
}

static void entry_free(void *p)
{
    entry *e = p;
    kl_list_remove(&e->link);
    kl_value_unref(e->body);
    kl_free(e->key);
    kl_free(e->name);
    kl_free(e->ns);
    kl_free(e->component);
    kl_free(e);
}

static void forget_locked(kl_recorder *r, entry *e) KL_REQUIRES(r->mu)
{
    kl_heap_remove(&r->due, &e->due);
    kl_map_take(r->entries, e->key);
    entry_free(e);
}

/* --- when --------------------------------------------------------------------------------- */

static void tick_on_loop(void *arg);

static void arm_on_loop(void *arg)
{
    kl_recorder *r = arg;
    kl_lock(&r->mu);
    kl_time at = r->armed;
    kl_unlock(&r->mu);
    if (r->timer)
        kl_loop_timer_cancel(r->loop, r->timer);
    kl_time left = at - kl_clock_now(r->clock);
    r->timer = at == KL_NEVER ? 0 : kl_loop_timer(r->loop, left > 0 ? left : 0, tick_on_loop, r);
}

static void tick_on_loop(void *arg)
{
    kl_recorder *r = arg;
    r->timer = 0;
    kl_lock(&r->mu);
    r->armed = KL_NEVER;
    kl_unlock(&r->mu);
    (void)kl_recorder_tick(r);
}

/* Called whenever the heap may have a new top. */
static void arm_locked(kl_recorder *r) KL_REQUIRES(r->mu)
{
    kl_heap_node *top = kl_heap_peek(&r->due);
    if (!r->loop || r->closing || !top || top->when >= r->armed)
        return;
    r->armed = top->when;
    kl_loop_post(r->loop, arm_on_loop, r);
}

static void due_locked(kl_recorder *r, entry *e, kl_time when) KL_REQUIRES(r->mu)
{
    if (e->due.pos)
        kl_heap_move(&r->due, &e->due, when);
    else
        kl_heap_push(&r->due, &e->due, when);
    arm_locked(r);
}

/* Whether there is something to send now: see the head of this file. */
static bool wants_locked(kl_recorder *r, const entry *e, kl_time now) KL_REQUIRES(r->mu)
{
    if (!e->told)
        return true;
    if (e->seen.count == e->told)
        return false;
    return r->core || e->told == 1 || r->flushing || now - e->told_at >= REFRESH || now - e->last >= FINISH;
}

static void ready_locked(kl_recorder *r, entry *e) KL_REQUIRES(r->mu)
{
    if (e->phase == IDLE)
        r->stats.waiting++;
    e->phase = READY;
    kl_heap_remove(&r->due, &e->due);
    kl_list_push(&r->ready, &e->turn);
}

/* An idle entry: to be sent, to be dropped, or to be checked later. */
static void settle_locked(kl_recorder *r, entry *e, kl_time now) KL_REQUIRES(r->mu)
{
    if (wants_locked(r, e, now)) {
        ready_locked(r, e);
    } else if (now - e->last >= FINISH) {
        forget_locked(r, e);
    } else {
        kl_time refresh = e->seen.count > e->told ? e->told_at + REFRESH : KL_NEVER,
                finish = e->last + FINISH;
        due_locked(r, e, refresh < finish ? refresh : finish);
    }
}

/* --- requests ----------------------------------------------------------------------------- */

static void pump(kl_recorder *r);

static bool is_terminating(const kl_err *err)
{
    return (err->details && strstr(err->details, "NamespaceTerminating"))
        || strstr(kl_err_message(err), "because it is being terminated");
}

/* The kind is missing, not the object or its namespace. Discovery tells so without a request; a server with
 * wrong discovery answers with this message. */
static bool is_no_kind(const kl_err *err)
{
    return !err->http_code || strstr(kl_err_message(err), "could not find the requested resource");
}

static bool passes(kl_status st)
{
    return st == KL_ECONNECT || st == KL_ECLOSED || st == KL_ETIMEOUT || st == KL_ESERVER
        || st == KL_ETHROTTLED;
}

typedef enum fate { KEEP, AGAIN, LATER, DROP } fate;

/* Handles an entry whose request failed. Counts dropped Events. */
static fate failed_locked(kl_recorder *r, entry *e, kl_status st, const kl_err *err) KL_REQUIRES(r->mu)
{
    if (st == KL_ENOTFOUND && !r->core && is_no_kind(err)) {
        kl_info("the server has no events.k8s.io/v1; events are recorded as core/v1", "event=%s/%s", e->ns,
            e->name);
        r->core = true;
        return AGAIN;
    }
    if (st == KL_ENOTFOUND && e->patching) {
        e->told = 0; /* it expired: create it again with the present count */
        return AGAIN;
    }
    if (st == KL_EEXISTS && !e->patching) {
        e->told = 1; /* an earlier answer was lost */
        return KEEP;
    }
    if (st == KL_ENOTLEADER || st == KL_ECANCELLED) {
        r->stats.not_leading++;
        return DROP;
    }
    if (st == KL_EFORBIDDEN && is_terminating(err)) {
        r->stats.terminating++;
        kl_debug("an event was not recorded: its namespace is being deleted", "event=%s/%s", e->ns, e->name);
        return DROP;
    }
    if (passes(st) && ++e->tries < TRIES_MAX)
        return LATER;
    if (passes(st))
        r->stats.given_up++;
    else
        r->stats.refused++;
    kl_warn(passes(st) ? "an event was not recorded; giving up" : "an event was not recorded",
        "event=%s/%s tries=%d error=%s", e->ns, e->name, e->tries, kl_log_quoted(kl_err_message(err)));
    return DROP;
}

static void answered(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    (void)code, (void)body;
    entry *e = arg;
    kl_recorder *r = e->r;
    kl_time now = kl_clock_now(r->clock);
    kl_lock(&r->mu);
    fate f = KEEP;
    if (st) {
        f = failed_locked(r, e, st, err);
    } else {
        e->told = e->telling;
        e->tries = 0;
        e->told_at = now;
    }
    r->under_way--;
    r->stats.waiting--;
    e->phase = IDLE;
    if (f == KEEP) {
        settle_locked(r, e, now);
    } else if (f == AGAIN) {
        ready_locked(r, e);
    } else if (f == DROP) {
        r->stats.recorded -= (uint64_t)(e->seen.count - e->told);
        forget_locked(r, e);
    } else {
        kl_time pause = TRY_AGAIN + kl_random_between(&r->random, 0, TRY_JITTER);
        e->phase = WAITING;
        r->stats.waiting++;
        due_locked(r, e, now + (err->retry_after_ns > pause ? err->retry_after_ns : pause));
    }
    r->inside++;
    kl_unlock(&r->mu);
    pump(r);
    kl_lock(&r->mu);
    r->inside--;
    kl_cond_broadcast(&r->cond);
    kl_unlock(&r->mu);
}

typedef struct shot {
    entry *e;
    kl_op op;
    const kl_value *body;
} shot;

/* Makes the next request under the lock; false when none may be sent. A busy entry is not freed. */
static bool next_locked(kl_recorder *r, shot *s) KL_REQUIRES(r->mu)
{
    kl_list *n = r->under_way < UNDER_WAY_MAX && !r->closing ? kl_list_shift(&r->ready) : NULL;
    if (!n)
        return false;
    entry *e = s->e = KL_CONTAINER(n, entry, turn);
    e->phase = BUSY;
    e->patching = e->told > 0;
    e->telling = e->seen.count;
    r->under_way++;
    kl_op_init(&s->op, e->patching ? KL_PATCH : KL_CREATE, r->core ? "v1/Event" : "events.k8s.io/v1/Event");
    s->op.ns = e->ns;
    s->op.field_manager = e->component;
    s->op.timeout = REQUEST_MAX;
    s->op.mandate = e->mandate;
    s->body = s->op.body = e->patching ? kl_event_patch(&e->seen, r->core)
                                       : kl_event_create(e->body, &e->seen, r->core);
    if (e->patching) {
        s->op.name = e->name;
        s->op.patch_type = KL_PATCH_MERGE;
    }
    return true;
}

/* Sends what is ready. An immediate answer re-enters here: then the outer call continues. */
static void pump(kl_recorder *r)
{
    shot s;
    kl_lock(&r->mu);
    while (!r->pumping && next_locked(r, &s)) {
        r->pumping = true;
        kl_unlock(&r->mu);
        kl_door_write(r->door, s.e->component, &s.op, answered, s.e);
        kl_value_unref(s.body);
        kl_lock(&r->mu);
        r->pumping = false;
    }
    kl_cond_broadcast(&r->cond);
    kl_unlock(&r->mu);
}

/* --- news --------------------------------------------------------------------------------- */

static void forget_oldest_locked(kl_recorder *r) KL_REQUIRES(r->mu)
{
    for (kl_list *n = r->order.next; n != &r->order; n = n->next) {
        entry *e = KL_CONTAINER(n, entry, link);
        if (e->phase == IDLE) {
            forget_locked(r, e);
            return;
        }
    }
}

static entry *entry_new_locked(kl_recorder *r, const kl_news *n, const char *key, bool combined, kl_time wall)
    KL_REQUIRES(r->mu)
{
    const char *ns = kl_object_namespace(n->about), *name = kl_object_name(n->about);
    if (kl_map_len(r->entries) >= REMEMBERED_MAX)
        forget_oldest_locked(r);
    entry *e = kl_new(entry);
    e->r = r;
    e->key = kl_strdup(key);
    e->ns = kl_strdup(ns ? ns : "default"); /* the namespace of Events about cluster-scoped objects */
    e->component = kl_strdup(n->component);
    e->name = kl_sprintf("%.200s.%llx", name ? name : "unknown", (unsigned long long)wall + ++r->serial);
    e->seen.first = wall;
    kl_list_init(&e->link);
    kl_list_init(&e->turn);
    char *instance = kl_sprintf("%s%s", n->component, r->instance);
    e->body = kl_event_body(n, e->name, e->ns, instance, combined, wall);
    kl_free(instance);
    kl_map_set(r->entries, key, e);
    return e;
}

/* A new entry, or NULL at the limit: counted, and logged the first time. */
static entry *admit_locked(kl_recorder *r, const kl_news *n, const char *key, bool combined, kl_time now,
    kl_time wall) KL_REQUIRES(r->mu)
{
    bool first;
    if (r->stats.waiting >= WAITING_MAX) {
        r->stats.full++;
        if (!r->told_full)
            kl_warn("events are dropped: too many are waiting", "waiting=%zu", r->stats.waiting);
        r->told_full = true;
        return NULL;
    }
    r->told_full = false;
    if (!kl_correlator_allow(r->correlator, n, now, &first)) {
        r->stats.spam++;
        if (first) {
            char *about = kl_object_key(n->about);
            kl_warn("events about an object are dropped: too many different ones; 25 at once and one more "
                    "every 5 minutes are recorded",
                "component=%s kind=%s object=%s type=%s reason=%s", n->component,
                kl_object_kind(n->about) ? kl_object_kind(n->about) : "", about ? about : "", n->type,
                n->reason);
            kl_free(about);
        }
        return NULL;
    }
    return entry_new_locked(r, n, key, combined, wall);
}

void kl_recorder_event(kl_recorder *r, const kl_news *n)
{
    kl_time now = kl_clock_now(r->clock), wall = kl_clock_wall(r->clock);
    bool combined;
    kl_lock(&r->mu);
    char *key = kl_correlator_see(r->correlator, n, now, &combined);
    entry *e = kl_map_get(r->entries, key);
    if (e)
        kl_list_remove(&e->link);
    else
        e = admit_locked(r, n, key, combined, now, wall);
    if (e) {
        kl_list_push(&r->order, &e->link);
        e->seen.count++;
        e->seen.last = wall;
        e->mandate = n->mandate;
        e->last = now;
        r->stats.recorded++;
        if (e->phase == IDLE)
            settle_locked(r, e, now);
    }
    kl_unlock(&r->mu);
    kl_free(key);
    pump(r);
}

kl_time kl_recorder_tick(kl_recorder *r)
{
    kl_time now = kl_clock_now(r->clock);
    kl_lock(&r->mu);
    kl_heap_node *h;
    while ((h = kl_heap_pop_due(&r->due, now))) {
        entry *e = KL_CONTAINER(h, entry, due);
        if (e->phase == WAITING)
            ready_locked(r, e);
        else
            settle_locked(r, e, now);
    }
    h = kl_heap_peek(&r->due);
    kl_time next = h ? h->when : KL_NEVER;
    arm_locked(r);
    kl_unlock(&r->mu);
    pump(r);
    return next;
}

/* --- the end ------------------------------------------------------------------------------ */

bool kl_recorder_flush(kl_recorder *r, kl_time deadline)
{
    kl_time now = kl_clock_now(r->clock);
    kl_lock(&r->mu);
    r->flushing = true;
    for (kl_list *n = r->order.next, *next; n != &r->order; n = next) {
        next = n->next;
        entry *e = KL_CONTAINER(n, entry, link);
        if (e->phase == WAITING || (e->phase == IDLE && wants_locked(r, e, now)))
            ready_locked(r, e);
    }
    kl_unlock(&r->mu);
    pump(r);
    kl_lock(&r->mu);
    bool in_time = true;
    while ((r->under_way || !kl_list_empty(&r->ready)) && in_time)
        in_time = kl_cond_wait_until(&r->cond, &r->mu, deadline);
    r->flushing = false;
    bool all = !r->stats.waiting;
    kl_unlock(&r->mu);
    return all;
}

void kl_recorder_stats_get(kl_recorder *r, kl_recorder_stats *out)
{
    kl_lock(&r->mu);
    *out = r->stats;
    kl_unlock(&r->mu);
}

bool kl_recorder_busy(kl_recorder *r)
{
    kl_lock(&r->mu);
    bool busy = r->under_way || r->inside || r->pumping || !kl_list_empty(&r->ready);
    kl_unlock(&r->mu);
    return busy;
}

uint64_t kl_recorder_dropped(kl_recorder *r)
{
    kl_recorder_stats s;
    kl_recorder_stats_get(r, &s);
    return s.full + s.spam + s.refused + s.given_up + s.terminating + s.not_leading;
}

static void disarm_on_loop(void *arg)
{
    kl_recorder *r = arg;
    if (r->timer)
        kl_loop_timer_cancel(r->loop, r->timer);
    r->timer = 0;
}

void kl_recorder_free(kl_recorder *r)
{
    if (!r)
        return;
    kl_lock(&r->mu);
    r->closing = true;                /* what flush could not send is not sent */
    while (r->under_way || r->inside) /* each request has its own timeout, so this ends */
        (void)kl_cond_wait_until(&r->cond, &r->mu, KL_NEVER);
    kl_unlock(&r->mu);
    if (r->loop)
        kl_loop_call(r->loop, disarm_on_loop, r);
    kl_heap_fini(&r->due); /* its nodes are in the entries */
    kl_map_free(r->entries, entry_free);
    kl_correlator_free(r->correlator);
    kl_cond_fini(&r->cond);
    kl_mutex_fini(&r->mu);
    kl_free(r);
}
