/* flight.c - runs as short strips of bytes: numbers and texts in the order of events, decoded on request.
 *
 * Keys are spread over shards, each with a lock that is held to find a key and to hang a strip into it,
 * and with its share of the bytes. */
#include "observe/flight.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "client/web.h"
#include "model/object.h"
#include "model/redact.h"
#include "model/time.h"
#include "run/worker.h"

#define SHARDS 16u
/* Maximum steps of one run; further ones are only counted. */
#define STEPS_MAX 64u
#define STRIP_MAX 16384u
#define STRIP_FIRST 512u
#define SPARE_MAX 4096u
/* Texts are cut here; messages and tracebacks are longer. */
#define TEXT_MAX 512u
#define MESSAGE_MAX 2048u
/* The approximate memory of a key in the tables. */
#define KEY_COST 160u
#define SLOT_MAX 1024

typedef enum step { STEP_END, STEP_GET, STEP_LIST, STEP_CALL, STEP_ANSWER, STEP_SLEEP, STEP_DISCOVERY } step;

typedef struct strip {
    size_t len, cap;
    kl_time at, took, after; /* wall clock; after: -1: no requeue */
    int generation, attempt;
    unsigned events, steps, skipped;
    uint8_t why, result;
    bool put_back, open; /* open: the last call has no answer yet */
    /* trigger (apiVersion or "", kind, namespace, name, version), steps and their end, id, message,
     * traceback */
    char bytes[];
} strip;

typedef struct entry {
    kl_list link;       /* in its shard's list, the longest idle first */
    struct entry *next; /* in a chain of evicted entries */
    char *slot;
    strip *runs[KL_FLIGHT_RUNS]; /* the newest first */
    const char *dropped_by;      /* NULL: nothing was dropped */
    kl_time dropped_at;
    char dropped_rv[24];
} entry;

typedef struct shard {
    kl_mutex mu;
    kl_map *entries KL_GUARDED_BY(mu);
    kl_list quiet KL_GUARDED_BY(mu);
    size_t bytes KL_GUARDED_BY(mu), runs KL_GUARDED_BY(mu);
    uint64_t evicted KL_GUARDED_BY(mu);
} shard;

struct kl_flight {
    kl_clock *clock;
    size_t n, most;         /* number of shards, and the maximum bytes of each */
    _Atomic(strip *) spare; /* to gather the next run in, or NULL */
    shard shards[SHARDS];
};

kl_flight *kl_flight_new(size_t bytes, kl_clock *clock)
{
    kl_flight *f = kl_new(kl_flight);
    f->clock = clock;
    f->n = bytes >= SHARDS * KL_FLIGHT_BYTES_MIN ? SHARDS : 1;
    f->most = bytes / f->n;
    for (size_t i = 0; i < f->n; i++) {
        kl_mutex_init(&f->shards[i].mu);
        kl_list_init(&f->shards[i].quiet);
        f->shards[i].entries = kl_map_new();
    }
    return f;
}

static void entry_free(void *p)
{
    entry *e = p;
    for (size_t i = 0; i < KL_FLIGHT_RUNS; i++)
        kl_free(e->runs[i]);
    kl_free(e->slot);
    kl_free(e);
}

void kl_flight_free(kl_flight *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++) {
        kl_map_free(f->shards[i].entries, entry_free);
        kl_mutex_fini(&f->shards[i].mu);
    }
    kl_free(atomic_load(&f->spare));
    kl_free(f);
}

/* --- writing a strip ---------------------------------------------------------------------- */

/* The run's strip with room for n more bytes; it may move. NULL: nothing is gathered for this run. */
static strip *room(kl_run *r, size_t n)
{
    strip *s = kl_run_strip(r);
    if (!s || s->len + n <= s->cap)
        return s;
    size_t cap = s->cap * 2;
    while (cap < s->len + n)
        cap *= 2;
    s = kl_realloc(s, sizeof *s + cap);
    s->cap = cap;
    kl_run_set_strip(r, s);
    return s;
}

static void put_number(strip *s, uint64_t x, size_t n)
{
    memcpy(s->bytes + s->len, &x, n);
    s->len += n;
}

static size_t text_size(const char *text, size_t most, size_t *n)
{
    *n = text ? strnlen(text, most) : 0;
    return *n + 2;
}

static void put_text(strip *s, const char *text, size_t n)
{
    put_number(s, n, 2);
    memcpy(s->bytes + s->len, text ? text : "", n);
    s->len += n;
}

/* NULL when there is no room for another step. */
static strip *begin_step(kl_run *r, step what, const char *const *texts, size_t n_texts, size_t numbers)
{
    strip *s = kl_run_strip(r);
    if (!s)
        return NULL;
    if (what != STEP_ANSWER && (s->steps >= STEPS_MAX || s->len > STRIP_MAX)) {
        s->skipped++;
        s->open = false;
        return NULL;
    }
    size_t need = 1 + numbers, n[8];
    for (size_t i = 0; i < n_texts; i++)
        need += text_size(texts[i], TEXT_MAX, &n[i]);
    s = room(r, need);
    s->steps += what != STEP_ANSWER;
    put_number(s, what, 1);
    for (size_t i = 0; i < n_texts; i++)
        put_text(s, texts[i], n[i]);
    return s;
}

#define TEXTS(...)                                                                                           \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)

static void add_texts(kl_run *r, const char *const *texts, size_t n, size_t most)
{
    for (size_t i = 0; i < n; i++) {
        size_t len, need = text_size(texts[i], most, &len);
        put_text(room(r, need), texts[i], len);
    }
}

static void on_began(void *arg, kl_run *r)
{
    kl_flight *f = arg;
    const kl_value *o;
    unsigned events;
    kl_why why = kl_run_cause(r, &o, &events);
    strip *s = atomic_exchange(&f->spare, NULL);
    size_t cap = s ? s->cap : STRIP_FIRST;
    if (!s)
        s = kl_alloc(sizeof *s + cap);
    *s = (strip){.cap = cap,
        .at = kl_clock_wall(f->clock),
        .generation = kl_run_generation(r),
        .attempt = kl_run_attempt(r),
        .events = events,
        .why = (uint8_t)why};
    kl_run_set_strip(r, s);
    /* the usual case: the object need not be read */
    if (o && o == kl_run_object(r))
        add_texts(r,
            TEXTS(NULL, kl_run_spec(r)->resource, kl_run_namespace(r), kl_run_name(r), kl_object_rv(o)),
            TEXT_MAX);
    else
        add_texts(r,
            TEXTS(kl_object_api_version(o), kl_object_kind(o), kl_object_namespace(o), kl_object_name(o),
                kl_object_rv(o)),
            TEXT_MAX);
}

static void on_saw(void *arg, kl_run *r, const kl_saw *x)
{
    (void)arg;
    if (x->name) {
        begin_step(r, STEP_GET, TEXTS(x->kind, x->ns, x->name, x->n ? kl_object_rv(x->found[0]) : NULL), 0);
        return;
    }
    const kl_read_query *q = x->query;
    const char *value = q ? q->value : NULL;
    if (value && kl_redacts_kind(x->kind)) /* an index may be made of what Secrets hold */
        value = "***";
    strip *s = begin_step(r, STEP_LIST,
        TEXTS(x->kind, x->ns, q ? q->labels : NULL, q ? q->fields : NULL, q ? q->index : NULL, value), 4);
    if (s)
        put_number(s, x->n, 4);
}

static const char *name_of(const kl_op *op) { return op->name ? op->name : kl_object_name(op->body); }

static void on_asked(void *arg, kl_run *r, const kl_asked *x)
{
    (void)arg;
    strip *s = NULL;
    if (x->op && kl_web_of_stream(x->op))
        return; /* the flight has the request that opened the stream; its reads may be many */
    if (x->op && x->op->verb == KL_HTTP) {
        char *url = kl_web_shown(x->op);
        s = begin_step(r, STEP_CALL, TEXTS(x->op->subresource, url, NULL, NULL, NULL), 0);
        kl_free(url);
    } else if (x->op) {
        const kl_op *op = x->op;
        const kl_resource *res = op->resource;
        char *kind = op->kind ? NULL : res ? kl_gvk_text(res->group, res->version, res->kind) : NULL;
        const char *ns = op->ns             ? op->ns
            : kl_object_namespace(op->body) ? kl_object_namespace(op->body)
            : op->name || op->body          ? op->default_ns
                                            : NULL;
        s = begin_step(r, STEP_CALL,
            TEXTS(x->what,
                op->kind   ? op->kind
                    : kind ? kind
                           : kl_object_kind(op->body),
                res && !res->namespaced ? NULL : ns, name_of(op), op->subresource),
            0);
        kl_free(kind);
    } else if (x->kind) {
        s = begin_step(r, STEP_DISCOVERY, TEXTS(x->kind), 0);
    } else {
        s = begin_step(r, STEP_SLEEP, NULL, 0, 8);
        if (s)
            put_number(s, (uint64_t)x->wait, 8);
    }
    if (s)
        s->open = true;
}

static void on_answered(void *arg, kl_run *r, const kl_answered *x)
{
    (void)arg;
    strip *s = kl_run_strip(r);
    if (!s || !s->open)
        return;
    s->open = false;
    s = begin_step(r, STEP_ANSWER,
        TEXTS(x->status ? kl_err_message(x->err) : NULL, x->status ? NULL : kl_object_rv(x->body)), 10);
    put_number(s, (uint64_t)x->code, 2);
    put_number(s, (uint64_t)x->took, 8);
}

/* --- keys --------------------------------------------------------------------------------- */

/* The table key of a key. kind NULL: of the controller's own resource, which has runs. Cut when it is longer
 * than any name in Kubernetes. */
static size_t slot_of(char out[SLOT_MAX], const char *controller, const char *kind, const char *key)
{
    const char *parts[] = {controller, kind ? kind : "", key};
    size_t n = 0;
    for (size_t i = 0; i < 3; i++) {
        size_t len = strlen(parts[i]);
        len = len < SLOT_MAX - 2 - n ? len : SLOT_MAX - 2 - n;
        memcpy(out + n, parts[i], len);
        n += len;
        out[n] = i < 2 && n < SLOT_MAX - 2 ? '\n' : '\0';
        n += out[n] != '\0';
    }
    return n;
}

static shard *shard_of(kl_flight *f, const char *slot, size_t n)
{
    return &f->shards[kl_quick_hash(slot, n) % f->n];
}

static size_t strip_bytes(const strip *s) { return sizeof *s + s->cap + 16; }

static size_t entry_bytes(const entry *e)
{
    size_t n = sizeof *e + 2 * strlen(e->slot) + KEY_COST;
    for (size_t i = 0; i < KL_FLIGHT_RUNS && e->runs[i]; i++)
        n += strip_bytes(e->runs[i]);
    return n;
}

static entry *touch(shard *h, const char *slot) KL_REQUIRES(h->mu)
{
    entry *e = kl_map_get(h->entries, slot);
    if (e) {
        kl_list_remove(&e->link);
    } else {
        e = kl_new(entry);
        e->slot = kl_strdup(slot);
        kl_list_init(&e->link);
        kl_map_set(h->entries, slot, e);
        h->bytes += entry_bytes(e);
    }
    kl_list_push(&h->quiet, &e->link);
    return e;
}

/* Removes the longest idle keys, except the newest, until the rest fits: a chain that the caller frees
 * without the lock. */
static entry *evict(kl_flight *f, shard *h) KL_REQUIRES(h->mu)
{
    entry *gone = NULL;
    while (h->bytes > f->most && h->quiet.next != h->quiet.prev) {
        entry *e = KL_CONTAINER(kl_list_shift(&h->quiet), entry, link);
        (void)kl_map_take(h->entries, e->slot);
        h->bytes -= entry_bytes(e);
        for (size_t i = 0; i < KL_FLIGHT_RUNS; i++)
            h->runs -= e->runs[i] != NULL;
        h->evicted++;
        e->next = gone;
        gone = e;
    }
    return gone;
}

static void free_chain(entry *e)
{
    while (e) {
        entry *next = e->next;
        entry_free(e);
        e = next;
    }
}

static void hang(kl_flight *f, const char *controller, const char *key, strip *s)
{
    char slot[SLOT_MAX];
    shard *h = shard_of(f, slot, slot_of(slot, controller, NULL, key));
    strip *draft = s;
    s = kl_alloc(sizeof *s + draft->len);
    memcpy(s, draft, sizeof *s + draft->len);
    s->cap = s->len;
    if (draft->cap <= SPARE_MAX)
        draft = atomic_exchange(&f->spare, draft);
    kl_free(draft);
    kl_lock(&h->mu);
    entry *e = touch(h, slot);
    strip *old = e->runs[KL_FLIGHT_RUNS - 1];
    memmove(&e->runs[1], &e->runs[0], (KL_FLIGHT_RUNS - 1) * sizeof e->runs[0]);
    e->runs[0] = s;
    h->bytes += strip_bytes(s) - (old ? strip_bytes(old) : 0);
    h->runs += !old;
    entry *gone = evict(f, h);
    kl_unlock(&h->mu);
    kl_free(old);
    free_chain(gone);
}

static void on_ended(void *arg, kl_run *r, const kl_ran *x)
{
    kl_flight *f = arg;
    strip *s = kl_run_strip(r);
    if (!s)
        return;
    put_number(room(r, 1), STEP_END, 1);
    add_texts(r, TEXTS(x->id), TEXT_MAX);
    add_texts(r, TEXTS(x->message, x->traceback), MESSAGE_MAX);
    s = kl_run_strip(r);
    kl_run_set_strip(r, NULL);
    s->took = x->ended - x->started;
    s->after = x->after;
    s->result = (uint8_t)x->result;
    s->put_back = x->put_back;
    hang(f, x->controller, x->key, s);
}

kl_witness kl_flight_witness(kl_flight *f)
{
    return (kl_witness){.began = on_began,
        .saw = on_saw,
        .asked = on_asked,
        .answered = on_answered,
        .ended = on_ended,
        .arg = f};
}

void kl_flight_dropped(
    kl_flight *f, const char *controller, const char *kind, const kl_value *object, const char *by)
{
    char slot[SLOT_MAX], key[SLOT_MAX];
    const char *ns = kl_object_namespace(object), *name = kl_object_name(object), *rv = kl_object_rv(object);
    snprintf(key, sizeof key, "%s%s%s", ns ? ns : "", ns ? "/" : "", name ? name : "");
    shard *h = shard_of(f, slot, slot_of(slot, controller, kind, key));
    kl_time now = kl_clock_wall(f->clock);
    kl_lock(&h->mu);
    entry *e = touch(h, slot);
    e->dropped_by = by;
    e->dropped_at = now;
    snprintf(e->dropped_rv, sizeof e->dropped_rv, "%s", rv ? rv : "");
    entry *gone = evict(f, h);
    kl_unlock(&h->mu);
    free_chain(gone);
}

/* --- reading it --------------------------------------------------------------------------- */

typedef struct reading {
    const strip *s;
    size_t at;
} reading;

static uint64_t take_number(reading *r, size_t n)
{
    uint64_t x = 0;
    memcpy(&x, r->s->bytes + r->at, n);
    r->at += n;
    return x;
}

/* The next text, not NUL-terminated. */
static const char *take_text(reading *r, size_t *n)
{
    *n = take_number(r, 2);
    const char *text = r->s->bytes + r->at;
    r->at += *n;
    return text;
}

/* The next text as a member, unless it is empty. */
static void member(reading *r, kl_builder *b, const char *name)
{
    size_t n;
    const char *text = take_text(r, &n);
    if (!n)
        return;
    kl_build_key(b, name);
    kl_build_strn(b, text, n);
}

/* The next two texts, namespace and name, as one. */
static void key_member(reading *r, kl_builder *b, const char *name)
{
    size_t nns, nname;
    const char *ns = take_text(r, &nns), *text = take_text(r, &nname);
    if (!nns && !nname)
        return;
    char *key = kl_sprintf("%.*s%s%.*s", (int)nns, ns, nns && nname ? "/" : "", (int)nname, text);
    kl_build_kstr(b, name, key);
    kl_free(key);
}

static void seconds(kl_builder *b, const char *name, kl_time t)
{
    kl_build_key(b, name);
    kl_build_double(b, (double)(t / KL_MICROSECONDS(1)) / 1e6);
}

static void moment(kl_builder *b, const char *name, kl_time wall)
{
    char text[KL_TIME_MAX];
    kl_build_kstr(b, name, kl_time_format_wall(wall, text));
}

static void tell_trigger(reading *r, kl_builder *b)
{
    size_t nv, nk;
    kl_build_key(b, "trigger");
    kl_build_object(b);
    kl_build_kstr(b, "reason", kl_why_name(r->s->why));
    kl_build_kint(b, "events", r->s->events);
    const char *version = take_text(r, &nv), *kind = take_text(r, &nk);
    if (nk) {
        char *text = kl_sprintf("%.*s%s%.*s", (int)nv, version, nv ? "/" : "", (int)nk, kind);
        kl_build_kstr(b, "kind", text);
        kl_free(text);
    }
    key_member(r, b, "key");
    member(r, b, "resourceVersion");
    kl_build_end(b);
}

/* Adds the answer, if there is one, to its call. */
static void tell_answer(reading *r, kl_builder *b)
{
    if (take_number(&(reading){r->s, r->at}, 1) != STEP_ANSWER)
        return;
    r->at++;
    member(r, b, "error");
    member(r, b, "resourceVersion");
    kl_build_kint(b, "code", (int64_t)take_number(r, 2));
    seconds(b, "took", (kl_time)take_number(r, 8));
}

static void tell_step(reading *r, step what, kl_builder *b)
{
    kl_build_object(b);
    switch (what) {
    case STEP_GET:
        member(r, b, "get");
        key_member(r, b, "key");
        member(r, b, "resourceVersion");
        break;
    case STEP_LIST:
        member(r, b, "list");
        member(r, b, "namespace");
        member(r, b, "labels");
        member(r, b, "fields");
        member(r, b, "index");
        member(r, b, "value");
        kl_build_kint(b, "count", (int64_t)take_number(r, 4));
        break;
    case STEP_CALL:
        member(r, b, "call");
        member(r, b, "kind");
        key_member(r, b, "key");
        member(r, b, "subresource");
        tell_answer(r, b);
        break;
    case STEP_DISCOVERY:
        member(r, b, "discovery");
        tell_answer(r, b);
        break;
    default: seconds(b, "sleep", (kl_time)take_number(r, 8)); tell_answer(r, b);
    }
    kl_build_end(b);
}

static void tell_steps(reading *r, kl_builder *b)
{
    kl_build_key(b, "steps");
    kl_build_array(b);
    for (step what; (what = (step)take_number(r, 1)) != STEP_END;)
        tell_step(r, what, b);
    kl_build_end(b);
    if (r->s->skipped)
        kl_build_kint(b, "moreSteps", r->s->skipped);
}

static void tell_run(const strip *s, kl_time now, kl_builder *b)
{
    reading r = {.s = s};
    kl_build_object(b);
    moment(b, "at", s->at);
    seconds(b, "ago", now > s->at ? now - s->at : 0);
    seconds(b, "took", s->took);
    kl_build_kint(b, "generation", s->generation);
    kl_build_kint(b, "attempt", s->attempt);
    tell_trigger(&r, b);
    tell_steps(&r, b);
    member(&r, b, "reconcileID");
    kl_build_kstr(b, "result", s->put_back ? "put back" : kl_result_name(s->result));
    member(&r, b, "message");
    member(&r, b, "traceback");
    if (s->after >= 0 && !s->put_back) {
        kl_time next = s->at + s->took + s->after;
        moment(b, "next", next);
        seconds(b, "in", next > now ? next - now : 0);
    }
    kl_build_end(b);
}

bool kl_flight_runs(kl_flight *f, const char *controller, const char *key, kl_builder *b)
{
    char slot[SLOT_MAX];
    shard *h = shard_of(f, slot, slot_of(slot, controller, NULL, key));
    kl_time now = kl_clock_wall(f->clock);
    kl_lock(&h->mu);
    entry *e = kl_map_get(h->entries, slot);
    bool any = e && e->runs[0];
    if (any) {
        kl_build_key(b, "runs");
        kl_build_array(b);
        for (size_t i = 0; i < KL_FLIGHT_RUNS && e->runs[i]; i++)
            tell_run(e->runs[i], now, b);
        kl_build_end(b);
    }
    kl_unlock(&h->mu);
    return any;
}

bool kl_flight_drop(kl_flight *f, const char *controller, const char *kind, const char *key, kl_builder *b)
{
    char slot[SLOT_MAX];
    shard *h = shard_of(f, slot, slot_of(slot, controller, kind, key));
    kl_time now = kl_clock_wall(f->clock);
    kl_lock(&h->mu);
    entry *e = kl_map_get(h->entries, slot);
    bool any = e && e->dropped_by;
    if (any) {
        kl_build_key(b, "dropped");
        kl_build_object(b);
        moment(b, "at", e->dropped_at);
        seconds(b, "ago", now > e->dropped_at ? now - e->dropped_at : 0);
        kl_build_kstr(b, "by", e->dropped_by);
        kl_build_kstr(b, "resourceVersion", *e->dropped_rv ? e->dropped_rv : NULL);
        kl_build_end(b);
    }
    kl_unlock(&h->mu);
    return any;
}

void kl_flight_stats_get(kl_flight *f, kl_flight_stats *out)
{
    *out = (kl_flight_stats){0};
    for (size_t i = 0; i < f->n; i++) {
        shard *h = &f->shards[i];
        kl_lock(&h->mu);
        out->keys += kl_map_len(h->entries);
        out->runs += h->runs;
        out->bytes += h->bytes;
        out->evicted += h->evicted;
        kl_unlock(&h->mu);
    }
}
