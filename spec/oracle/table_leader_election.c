/* table_leader_election.c - the election against a server of one Lease, in virtual time. */
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "model/time.h"
#include "oracle.h"
#include "election/leader.h"

/* Times in the table count from the start; the election's are somewhere else on purpose. */
#define BOOT KL_SECONDS(5000)
#define WALL KL_SECONDS(1700000000)

typedef struct world {
    kl_leader *leader;
    kl_time now;           /* since the start */
    const kl_value *lease; /* the server's; NULL: none */
    int64_t rv;
    bool get_fails, create_fails;
    int64_t update_fails; /* so many more */
    kl_time unit;         /* of times in specs: ms or us */
    const char *suffix;
    bool stamped;      /* calls carry tNs */
    kl_builder *calls; /* an open array */
} world;

static const kl_value *micro_time(kl_time since_start)
{
    char text[KL_TIME_MAX];
    kl_time wall = WALL + since_start;
    return kl_value_of_str(kl_time_format_micro(wall / KL_SECONDS(1), (int32_t)(wall % KL_SECONDS(1)), text));
}

static void put_time(kl_builder *b, const char *key, const kl_value *in, const char *in_key)
{
    int64_t ms;
    if (!kl_value_int(kl_value_get(in, in_key), &ms))
        return;
    const kl_value *t = micro_time(KL_MILLISECONDS(ms));
    kl_build_kvalue(b, key, t);
    kl_value_unref(t);
}

static void put_if_set(kl_builder *b, const char *key, const kl_value *in)
{
    const kl_value *v = kl_value_get(in, key);
    if (kl_value_type(v) != KL_NULL)
        kl_build_kvalue(b, key, v);
}

/* The server's Lease becomes `spec`, under a new resourceVersion. */
static void store(world *w, const kl_value *spec)
{
    char rv[24];
    snprintf(rv, sizeof rv, "%lld", (long long)++w->rv);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", "coordination.k8s.io/v1");
    kl_build_kstr(b, "kind", "Lease");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "name", "lock");
    kl_build_kstr(b, "namespace", "ns");
    kl_build_kstr(b, "resourceVersion", rv);
    kl_build_end(b);
    kl_build_kvalue(b, "spec", spec);
    kl_build_end(b);
    const kl_value *fresh = kl_builder_done(b);
    kl_value_unref(w->lease);
    w->lease = fresh;
}

static void store_table_spec(world *w, const kl_value *in)
{
    if (kl_value_type(in) != KL_OBJECT)
        return;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    put_if_set(b, "holderIdentity", in);
    put_if_set(b, "leaseDurationSeconds", in);
    put_time(b, "acquireTime", in, "acquireTimeMs");
    put_time(b, "renewTime", in, "renewTimeMs");
    put_if_set(b, "leaseTransitions", in);
    kl_build_end(b);
    const kl_value *spec = kl_builder_done(b);
    store(w, spec);
    kl_value_unref(spec);
}

static void show_time(const world *w, kl_builder *b, const char *word, const kl_value *spec)
{
    char key[32];
    int64_t sec;
    int32_t nsec;
    const char *text = kl_value_str(kl_value_get(spec, word));
    if (!text || kl_time_parse(text, &sec, &nsec, NULL))
        return;
    snprintf(key, sizeof key, "%s%s", word, w->suffix);
    kl_build_kint(b, key, (KL_SECONDS(sec) + nsec - WALL) / w->unit);
}

static void show_spec(const world *w, kl_builder *b, const char *key, const kl_value *lease)
{
    const kl_value *spec = kl_value_get(lease, "spec");
    kl_build_key(b, key);
    if (!lease) {
        kl_build_null(b);
        return;
    }
    kl_build_object(b);
    show_time(w, b, "acquireTime", spec);
    put_if_set(b, "holderIdentity", spec);
    put_if_set(b, "leaseDurationSeconds", spec);
    put_if_set(b, "leaseTransitions", spec);
    show_time(w, b, "renewTime", spec);
    kl_build_end(b);
}

static kl_leader_now now_of(const world *w) { return (kl_leader_now){BOOT + w->now, WALL + w->now}; }

static kl_leader_action step(world *w, kl_leader_input_kind kind)
{
    return kl_leader_step(w->leader, &(kl_leader_input){.kind = kind}, now_of(w));
}

static kl_status serve_update(world *w, const kl_value *body)
{
    if (w->update_fails > 0) {
        w->update_fails--;
        return KL_ESERVER;
    }
    if (!w->lease)
        return KL_ENOTFOUND;
    const char *have = kl_value_str_at(w->lease, "metadata", "resourceVersion", NULL),
               *sent = kl_value_str_at(body, "metadata", "resourceVersion", NULL);
    return sent && !strcmp(have, sent) ? KL_OK : KL_ECONFLICT;
}

/* The server's answer to what the action asks for, noted in calls. */
static kl_leader_action serve(world *w, const kl_leader_action *a)
{
    const char *verb = a->what == KL_LEADER_GET ? "get" : a->what == KL_LEADER_CREATE ? "create" : "update";
    kl_status st = KL_OK;
    if (a->what == KL_LEADER_GET)
        st = w->get_fails ? KL_ESERVER : w->lease ? KL_OK : KL_ENOTFOUND;
    else if (a->what == KL_LEADER_CREATE)
        st = w->create_fails ? KL_ESERVER : w->lease ? KL_EEXISTS : KL_OK;
    else
        st = serve_update(w, a->body);
    kl_build_object(w->calls);
    kl_build_kstr(w->calls, "verb", verb);
    kl_build_kstr(w->calls, "result",
        st == KL_OK              ? "ok"
            : st == KL_ENOTFOUND ? "notfound"
            : st == KL_ECONFLICT ? "conflict"
            : st == KL_EEXISTS   ? "exists"
                                 : "error");
    if (w->stamped)
        kl_build_kint(w->calls, "tNs", w->now);
    if (a->body)
        show_spec(w, w->calls, "spec", a->body);
    kl_build_end(w->calls);
    if (!st && a->body)
        store(w, kl_value_get(a->body, "spec"));
    return kl_leader_step(w->leader,
        &(kl_leader_input){.kind = KL_LEADER_REPLY, .status = st, .lease = st ? NULL : w->lease}, now_of(w));
}

static bool is_request(const kl_leader_action *a)
{
    return a->what == KL_LEADER_GET || a->what == KL_LEADER_CREATE || a->what == KL_LEADER_UPDATE;
}

static kl_status world_init(world *w, const oracle_case *c, kl_err *err)
{
    const kl_value *in = kl_value_get(c->in, "config");
    kl_leader_config config = {
        .identity = kl_value_str_at(in, "id", NULL),
        .ns = "ns",
        .name = "lock",
        .seed = 1,
        .lease = KL_MILLISECONDS(kl_value_int_at(in, 0, "leaseDurationMs", NULL)),
        .renew = KL_MILLISECONDS(kl_value_int_at(in, 0, "renewDeadlineMs", NULL)),
        .retry = KL_MILLISECONDS(kl_value_int_at(in, 0, "retryPeriodMs", NULL)),
        .release = kl_value_bool(kl_value_get(in, "releaseOnCancel"), false),
    };
    kl_status st = kl_leader_new(&config, &w->leader, err);
    if (!st)
        store_table_spec(w, kl_value_get(c->in, "initial"));
    return st;
}

static void world_fini(world *w)
{
    kl_leader_free(w->leader);
    kl_value_unref(w->lease);
}

static void change(world *w, const kl_value *env)
{
    const kl_value *set = kl_value_get(env, "set");
    if (set)
        store_table_spec(w, set);
    if (kl_value_bool(kl_value_get(env, "delete"), false)) {
        kl_value_unref(w->lease);
        w->lease = NULL;
    }
    if (kl_value_bool(kl_value_get(env, "touch"), false) && w->lease)
        store(w, kl_value_get(w->lease, "spec"));
    w->get_fails = kl_value_bool(kl_value_get(env, "getErr"), false);
    w->create_fails = kl_value_bool(kl_value_get(env, "createErr"), false);
    w->update_fails = kl_value_int_at(env, 0, "updateErrs", NULL);
}

/* --- steps: single attempts, releases and checks ------------------------------------------ */

static void one_step(world *w, const kl_value *s, const char *identity, kl_builder *b)
{
    const char *op = kl_value_str_at(s, "op", NULL);
    w->now = KL_MILLISECONDS(kl_value_int_at(s, 0, "t", NULL));
    change(w, kl_value_get(s, "env"));
    kl_build_object(b);
    kl_build_key(b, "calls");
    kl_build_array(b);
    w->calls = b;
    if (!strcmp(op, "check")) {
        kl_build_end(b);
        oracle_build_bool(b, "healthy",
            kl_leader_healthy(
                w->leader, BOOT + w->now, KL_MILLISECONDS(kl_value_int_at(s, 0, "toleranceMs", NULL))));
    } else {
        kl_leader_action a = step(w, !strcmp(op, "try") ? KL_LEADER_TRY : KL_LEADER_RELEASE);
        while (is_request(&a))
            a = serve(w, &a);
        kl_build_end(b);
        oracle_build_bool(b, "ok", a.ok);
    }
    oracle_build_bool(b, "isLeader", !strcmp(kl_leader_holder(w->leader), identity));
    kl_build_kstr(b, "leader", kl_leader_holder(w->leader));
    show_spec(w, b, "lease", w->lease);
    kl_build_end(b);
}

static kl_status steps(const oracle_case *c, kl_builder *b, kl_err *err)
{
    world w = {.unit = KL_MILLISECONDS(1), .suffix = "Ms"};
    kl_status st = world_init(&w, c, err);
    if (st)
        return st;
    const kl_value *todo = kl_value_get(c->in, "steps");
    kl_build_key(b, "results");
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(todo); i++)
        one_step(&w, kl_value_item(todo, i), kl_value_str_at(c->in, "config", "id", NULL), b);
    kl_build_end(b);
    world_fini(&w);
    return KL_OK;
}

/* --- run: the whole loop ------------------------------------------------------------------ */

static void note(world *w, kl_builder *events, const char *event, const char *id)
{
    kl_build_object(events);
    kl_build_kstr(events, "event", event);
    kl_build_kstr(events, "id", id);
    kl_build_kint(events, "tNs", w->now);
    kl_build_end(events);
}

static bool in_outage(const kl_value *outages, kl_time now)
{
    for (size_t i = 0; i < kl_value_len(outages); i++) {
        int64_t from = 0, to = 0;
        const kl_value *o = kl_value_item(outages, i);
        if (kl_value_int(kl_value_item(o, 0), &from) && kl_value_int(kl_value_item(o, 1), &to)
            && now >= KL_MILLISECONDS(from) && now < KL_MILLISECONDS(to))
            return true;
    }
    return false;
}

typedef struct script {
    world w;
    const kl_value *acts, *gaps, *outages;
    size_t act, gap;
    kl_time retry;
    bool led; /* ever */
    kl_builder *events;
} script;

/* When the next attempt is due. Between attempts to acquire it is the table's jitter that counts; ours
 * must be in its range. */
static kl_status next_attempt(script *s, const kl_leader_action *a, kl_time *due, kl_err *err)
{
    int64_t ns;
    *due = a->until == KL_NEVER ? KL_NEVER : a->until - BOOT;
    if (s->led)
        return KL_OK;
    kl_time drawn = *due - s->w.now;
    if (drawn < s->retry || drawn >= s->retry * 22 / 10)
        return kl_fail(err, KL_EAGAIN, "the gap between attempts is %lld ns: outside of retry * [1, 2.2)",
            (long long)drawn);
    *due = kl_value_int(kl_value_item(s->gaps, s->gap++), &ns) ? s->w.now + ns : KL_NEVER;
    return KL_OK;
}

static void note_events(script *s, unsigned told)
{
    if (told & KL_LEADER_NEW)
        note(&s->w, s->events, "newLeader", kl_leader_holder(s->w.leader));
    if (told & KL_LEADER_STARTED)
        note(&s->w, s->events, "started", NULL);
    if (told & KL_LEADER_STOPPED)
        note(&s->w, s->events, "stopped", NULL);
    s->led |= (told & KL_LEADER_STARTED) != 0;
}

/* Does what the case does next, if that is not later than `due`; true when it cancels us. */
static bool next_act(script *s, kl_time due, bool *acted)
{
    const kl_value *act = kl_value_item(s->acts, s->act);
    kl_time when = KL_MILLISECONDS(kl_value_int_at(act, 0, "t", NULL));
    *acted = act && when <= due;
    if (!*acted)
        return false;
    s->act++;
    s->w.now = when;
    change(&s->w, kl_value_get(act, "env"));
    return kl_value_bool(kl_value_get(act, "cancel"), false);
}

static kl_status play(script *s, kl_err *err)
{
    world *w = &s->w;
    bool acted;
    kl_leader_action a = step(w, KL_LEADER_START);
    for (int guard = 0; guard < 10000; guard++) {
        note_events(s, a.events);
        if (is_request(&a)) {
            bool down = in_outage(s->outages, w->now);
            w->get_fails = down;
            w->create_fails = down;
            w->update_fails = down;
            a = serve(w, &a);
        } else if (a.what == KL_LEADER_DONE) {
            do /* the world goes on without us */
                next_act(s, KL_NEVER, &acted);
            while (acted);
            return KL_OK;
        } else if (a.events & KL_LEADER_STOPPED) {
            a = step(w, KL_LEADER_JOINED);
        } else {
            kl_time due;
            bool cancelled = false;
            kl_status st = next_attempt(s, &a, &due, err);
            if (st)
                return st;
            do
                cancelled = next_act(s, due, &acted);
            while (acted && !cancelled);
            if (!cancelled && due == KL_NEVER)
                return kl_fail(err, KL_EAGAIN, "the election waits forever");
            if (!cancelled)
                w->now = due;
            a = step(w, cancelled ? KL_LEADER_CANCEL : s->led ? KL_LEADER_TIMER : KL_LEADER_CHANGED);
        }
    }
    return kl_fail(err, KL_EAGAIN, "the election does not come to an end");
}

static kl_status run(const oracle_case *c, kl_builder *b, kl_err *err)
{
    script s = {
        .w = {.unit = KL_MICROSECONDS(1), .suffix = "Us", .stamped = true},
        .acts = kl_value_get(c->in, "acts"),
        .gaps = kl_value_get(c->in, "acquireGapsNs"),
        .outages = kl_value_get(c->in, "outagesMs"),
        .retry = KL_MILLISECONDS(kl_value_int_at(c->in, 0, "config", "retryPeriodMs", NULL)),
    };
    kl_status st = world_init(&s.w, c, err);
    if (st)
        return st;
    s.events = kl_builder_new();
    s.w.calls = kl_builder_new();
    kl_build_array(s.w.calls);
    kl_build_array(s.events);
    st = play(&s, err);
    kl_build_end(s.w.calls);
    kl_build_end(s.events);
    const kl_value *calls = kl_builder_done(s.w.calls), *events = kl_builder_done(s.events);
    kl_build_kvalue(b, "calls", calls);
    kl_build_kvalue(b, "events", events);
    kl_build_kint(b, "endMs", s.w.now / KL_MILLISECONDS(1));
    show_spec(&s.w, b, "lease", s.w.lease);
    kl_value_unref(calls);
    kl_value_unref(events);
    world_fini(&s.w);
    return st;
}

static size_t count_equal(const kl_value *list, const kl_value *item)
{
    size_t n = 0;
    for (size_t i = 0; i < kl_value_len(list); i++)
        n += kl_value_equal(kl_value_item(list, i), item);
    return n;
}

/* Events of one time have no order. */
static bool same_run(const oracle_case *c, const kl_value *got)
{
    const kl_value *want = kl_value_get(c->want, "events"), *have = kl_value_get(got, "events");
    bool same = kl_value_len(want) == kl_value_len(have)
        && kl_value_equal(kl_value_get(c->want, "calls"), kl_value_get(got, "calls"))
        && kl_value_equal(kl_value_get(c->want, "lease"), kl_value_get(got, "lease"))
        && kl_value_equal(kl_value_get(c->want, "endMs"), kl_value_get(got, "endMs"));
    for (size_t i = 0; same && i < kl_value_len(want); i++)
        same = count_equal(have, kl_value_item(want, i)) == count_equal(want, kl_value_item(want, i));
    return same;
}

static const oracle_op ops[] = {{"steps", steps, NULL}, {"run", run, same_run}, {0}};
ORACLE_TABLE("leader_election", ops)
