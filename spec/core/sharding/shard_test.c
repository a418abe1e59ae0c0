/* shard_test.c - the protocol of sharding in a small world: one server with its Leases, several replicas
 * with clocks of their own, messages that take their time or are lost, processes that freeze, crash and
 * come back.
 *
 * After every tick of 20 ms all replicas are asked, frozen ones too, what they may run by their own
 * clocks: no key has two owners, ever. When the world has been quiet for a lease, every key has one. */
#include "support/test.h"
#include "support/sizes.h"

#include <math.h>

#include "base/mem.h"
#include "base/random.h"
#include "sharding/shard.h"
#include "sharding/shard_lease.h"

#define TICK KL_MILLISECONDS(20)
#define LEASE KL_SECONDS(4)
#define RENEW KL_SECONDS(3)
#define RETRY KL_MILLISECONDS(700)
#define LEASES_MAX 16
#define MEMBERS 5
#define KEYS 20
#define MESSAGES_MAX 4096
#define RUNS_MAX 6

static const char *const CONTROLLERS[] = {"by-key", "by-namespace"};

typedef struct stored {
    char *name;
    const kl_value *lease;
} stored;

typedef enum what { ARRIVES, ANSWERED, PICTURE } what;

typedef struct message {
    kl_time at;
    what what;
    int member, life; /* of whom; a later life of the same place hears nothing of it */
    kl_shard_do verb;
    uint64_t serial;
    char *name, *uid, *rv;
    const kl_value *body;
    kl_status status;
    const kl_value **leases;
    size_t n;
    bool silent; /* the answer is lost, or was told as a timeout already */
} message;

typedef struct run {
    int controller, key;
    kl_time until;
    bool on;
} run;

typedef struct member {
    kl_shard *s;
    kl_claims *claims;
    int life;
    bool alive, left;
    kl_time offset; /* of its clock */
    kl_time timer, frozen, last_picture, joined_at;
    bool stopping; /* told to end its runs */
    bool leaving;
    uint64_t told; /* the target for which it said that it had drained */
    run runs[RUNS_MAX];
} member;

typedef struct world {
    kl_random random;
    kl_time now;
    stored leases[LEASES_MAX];
    size_t n_leases;
    uint64_t rv, uids;
    message *messages;
    size_t n_messages;
    member members[MEMBERS];
    bool faults;
    size_t max;
    long owned, moves, fences, epochs;
} world;

static double chance(world *w) { return kl_random_unit(&w->random); }

static void key_text(int k, char out[32]) { snprintf(out, 32, "ns-%d/o-%d", k % 7, k); }

/* --- the server --------------------------------------------------------------------------- */

static kl_time delay(world *w)
{
    double x = chance(w);
    if (w->faults && x < 0.01)
        return kl_random_between(&w->random, KL_SECONDS(1), KL_SECONDS(9));
    return x < 0.3 ? kl_random_between(&w->random, KL_MILLISECONDS(50), KL_MILLISECONDS(600))
                   : kl_random_between(&w->random, 0, KL_MILLISECONDS(40));
}

static message *post(world *w, kl_time at, what what, int m)
{
    assert_true(w->n_messages < MESSAGES_MAX);
    w->messages[w->n_messages] = (message){.at = at, .what = what, .member = m, .life = w->members[m].life};
    return &w->messages[w->n_messages++];
}

static void tell_all(world *w)
{
    for (int m = 0; m < MEMBERS; m++) {
        member *x = &w->members[m];
        if (!x->alive)
            continue;
        kl_time at = w->now + delay(w);
        if (at < x->last_picture)
            at = x->last_picture; /* a watch keeps the order */
        x->last_picture = at;
        message *p = post(w, at, PICTURE, m);
        p->leases = kl_new_array(const kl_value *, w->n_leases + 1);
        for (size_t i = 0; i < w->n_leases; i++)
            p->leases[p->n++] = kl_value_ref(w->leases[i].lease);
    }
}

static stored *find(world *w, const char *name)
{
    for (size_t i = 0; i < w->n_leases; i++)
        if (!strcmp(w->leases[i].name, name))
            return &w->leases[i];
    return NULL;
}

static const kl_value *stamped(world *w, const kl_value *body, const char *uid)
{
    char rv[32], created[32];
    snprintf(rv, sizeof rv, "%llu", (unsigned long long)++w->rv);
    snprintf(created, sizeof created, "2026-01-01T%08lld", (long long)(w->now / KL_SECONDS(1)));
    const kl_value *r = kl_value_of_str(rv), *u = kl_value_of_str(uid), *c = kl_value_of_str(created);
    const kl_value *a = kl_value_with_at(body, r, "metadata", "resourceVersion", NULL),
                   *b = kl_value_with_at(a, u, "metadata", "uid", NULL);
    const kl_value *out = kl_value_at(b, "metadata", "creationTimestamp", NULL)
        ? kl_value_ref(b)
        : kl_value_with_at(b, c, "metadata", "creationTimestamp", NULL);
    const kl_value *drop[] = {r, u, c, a, b};
    for (size_t i = 0; i < 5; i++)
        kl_value_unref(drop[i]);
    return out;
}

static const char *meta(const kl_value *v, const char *what)
{
    return kl_value_str_at(v, "metadata", what, NULL);
}

/* What the API server does with a request that arrives. */
static kl_status serve(world *w, const message *q, const kl_value **answer)
{
    stored *at = find(w, q->name);
    *answer = NULL;
    if (q->verb == KL_SHARD_CREATE) {
        if (at)
            return KL_EEXISTS;
        assert_true(w->n_leases < LEASES_MAX);
        char uid[32];
        snprintf(uid, sizeof uid, "uid-%llu", (unsigned long long)++w->uids);
        at = &w->leases[w->n_leases++];
        *at = (stored){kl_strdup(q->name), stamped(w, q->body, uid)};
        *answer = at->lease;
        tell_all(w);
        return KL_OK;
    }
    if (!at)
        /* a Lease is made by an update unless its uid forbids it */
        return q->verb == KL_SHARD_UPDATE ? KL_ECONFLICT : KL_ENOTFOUND;
    if (q->verb == KL_SHARD_UPDATE) {
        if (strcmp(meta(q->body, "resourceVersion"), meta(at->lease, "resourceVersion"))
            || strcmp(meta(q->body, "uid"), meta(at->lease, "uid")))
            return KL_ECONFLICT;
        const kl_value *fresh = stamped(w, q->body, meta(at->lease, "uid"));
        kl_value_unref(at->lease);
        at->lease = fresh;
        tell_all(w);
    } else if (q->verb == KL_SHARD_DELETE) {
        if ((q->uid && strcmp(q->uid, meta(at->lease, "uid")))
            || (q->rv && strcmp(q->rv, meta(at->lease, "resourceVersion"))))
            return KL_ECONFLICT;
        w->fences += q->rv != NULL;
        kl_free(at->name);
        kl_value_unref(at->lease);
        *at = w->leases[--w->n_leases];
        w->rv++;
        tell_all(w);
        return KL_OK;
    }
    *answer = at->lease;
    return KL_OK;
}

/* --- a replica ---------------------------------------------------------------------------- */

static kl_shard_now clock_of(const world *w, const member *m)
{
    return (kl_shard_now){w->now + m->offset, w->now * 2 + m->offset};
}

static void step(world *w, int i, kl_shard_input in);

static void request(world *w, int i, const kl_shard_request *q)
{
    if (q->what == KL_SHARD_NOTHING)
        return;
    message *p = post(w, w->now + delay(w), ARRIVES, i);
    p->verb = q->what;
    p->serial = q->serial;
    p->name = kl_strdup(q->name);
    p->uid = kl_strdup(q->uid);
    p->rv = kl_strdup(q->rv);
    p->body = kl_value_ref(q->body);
    if (!w->faults || chance(w) > 0.06)
        return;
    p->silent = true; /* it arrives, or not, and nobody tells */
    uint64_t serial = q->serial;
    if (chance(w) < 0.5)
        p->at = KL_NEVER;
    message *t = post(w, w->now + KL_MILLISECONDS(1400), ANSWERED, i);
    t->serial = serial;
    t->status = KL_ETIMEOUT;
}

static bool wanted_all(const member *m)
{
    char key[32];
    for (int r = 0; r < RUNS_MAX; r++) {
        key_text(m->runs[r].key, key);
        if (m->runs[r].on && !kl_claims_want(m->claims, CONTROLLERS[m->runs[r].controller], key))
            return false;
    }
    return true;
}

static bool running(const member *m)
{
    bool any = false;
    for (int r = 0; r < RUNS_MAX; r++)
        any |= m->runs[r].on;
    return any;
}

static void step(world *w, int i, kl_shard_input in)
{
    member *m = &w->members[i];
    kl_shard_action a = kl_shard_step(m->s, &in, clock_of(w, m));
    if (a.events & KL_SHARD_CHANGED) {
        kl_claims_unref(m->claims);
        m->claims = kl_shard_claims(m->s);
    }
    if (a.events & KL_SHARD_STOPPED) {
        m->stopping = true;
        m->joined_at = w->now + kl_random_between(&w->random, 0, KL_SECONDS(2));
    }
    if (a.events & KL_SHARD_STARTED)
        w->epochs++;
    if (a.events & KL_SHARD_GONE)
        m->left = true;
    m->timer = a.until == KL_NEVER ? KL_NEVER : a.until - m->offset;
    request(w, i, &a.own);
    request(w, i, &a.fence);
}

static const kl_value *controllers(bool by_key)
{
    const kl_value *k = kl_value_of_str("key"), *n = kl_value_of_str("namespace"),
                   *a = kl_value_with(NULL, CONTROLLERS[0], k),
                   *b = kl_value_with(a, CONTROLLERS[1], by_key ? k : n);
    kl_value_unref(k);
    kl_value_unref(n);
    kl_value_unref(a);
    return b;
}

static void reload(world *w, int i, bool by_key)
{
    const kl_value *v = controllers(by_key);
    step(w, i, (kl_shard_input){.kind = KL_SHARD_CONTROLLERS, .lease = v});
    kl_value_unref(v);
}

static void begin(world *w, int i, bool same_identity)
{
    member *m = &w->members[i];
    int life = m->life + 1;
    char identity[32];
    snprintf(identity, sizeof identity, "Pod_%d-%d", i, same_identity ? 0 : life);
    *m = (member){.life = life,
        .alive = true,
        .offset = KL_SECONDS(1000) + kl_random_between(&w->random, 0, KL_SECONDS(5000)),
        .timer = KL_NEVER,
        .last_picture = w->now};
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_shard_new(&(kl_shard_config){.group = "g",
                               .ns = "ns",
                               .identity = identity,
                               .lease = LEASE,
                               .renew = RENEW,
                               .retry = RETRY,
                               .max = w->max,
                               .seed = kl_random_next(&w->random)},
                  &m->s, &err),
        &err);
    m->claims = kl_shard_claims(m->s);
    reload(w, i, false);
    step(w, i, (kl_shard_input){.kind = KL_SHARD_START});
    message *p = post(w, w->now + delay(w), PICTURE, i); /* its first list */
    m->last_picture = p->at;
    p->leases = kl_new_array(const kl_value *, w->n_leases + 1);
    for (size_t k = 0; k < w->n_leases; k++)
        p->leases[p->n++] = kl_value_ref(w->leases[k].lease);
}

static void end(world *w, int i)
{
    member *m = &w->members[i];
    kl_shard_free(m->s);
    kl_claims_unref(m->claims);
    *m = (member){.life = m->life};
}

/* May this replica write for this key, if it were asked now? */
static bool owns(const world *w, const member *m, int c, int k)
{
    char key[32];
    if (!m->alive || kl_shard_deadline(m->s) <= w->now + m->offset || m->stopping)
        return false;
    for (int r = 0; r < RUNS_MAX; r++)
        if (m->runs[r].on && m->runs[r].controller == c && m->runs[r].key == k)
            return true;
    key_text(k, key);
    return kl_claims_own(m->claims, CONTROLLERS[c], key);
}

static void work(world *w, int i)
{
    member *m = &w->members[i];
    for (int r = 0; r < RUNS_MAX; r++)
        if (m->runs[r].on && w->now >= m->runs[r].until)
            m->runs[r].on = false;
    if (m->stopping && w->now >= m->joined_at) {
        memset(m->runs, 0, sizeof m->runs);
        m->stopping = false;
        if (!m->leaving)
            step(w, i, (kl_shard_input){.kind = KL_SHARD_JOINED});
    }
    if (m->leaving && !m->stopping && !running(m))
        step(w, i, (kl_shard_input){.kind = KL_SHARD_LEAVE});
    if (m->stopping || m->leaving)
        return;
    for (int r = 0; r < RUNS_MAX; r++) {
        int c = (int)(kl_random_next(&w->random) % 2), k = (int)(kl_random_next(&w->random) % KEYS);
        bool busy = false;
        for (int o = 0; o < RUNS_MAX; o++)
            busy |= m->runs[o].on && m->runs[o].controller == c && m->runs[o].key == k;
        if (!m->runs[r].on && !busy && chance(w) < 0.2 && owns(w, m, c, k))
            m->runs[r] = (run){c, k,
                w->now
                    + (chance(w) < 0.02 ? KL_SECONDS(9)
                                        : kl_random_between(&w->random, 0, KL_MILLISECONDS(800))),
                true};
    }
    if (m->told != kl_shard_target(m->s) && wanted_all(m)) {
        m->told = kl_shard_target(m->s);
        step(w, i, (kl_shard_input){.kind = KL_SHARD_DRAINED, .serial = m->told});
    }
}

/* --- time --------------------------------------------------------------------------------- */

static void message_free(message *q)
{
    for (size_t i = 0; i < q->n; i++)
        kl_value_unref(q->leases[i]);
    kl_free(q->leases);
    kl_value_unref(q->body);
    kl_free(q->name);
    kl_free(q->uid);
    kl_free(q->rv);
}

static void deliver(world *w, message *q)
{
    member *m = &w->members[q->member];
    if (q->what == ARRIVES) { /* also when its sender is dead or frozen */
        const kl_value *answer;
        kl_status st = serve(w, q, &answer);
        if (!q->silent) {
            message *p = post(w, w->now + delay(w), ANSWERED, q->member);
            p->life = q->life;
            p->serial = q->serial;
            p->status = st;
            p->body = kl_value_ref(answer);
        }
    } else if (m->alive && m->life == q->life && q->what == ANSWERED) {
        step(w, q->member,
            (kl_shard_input){
                .kind = KL_SHARD_REPLY, .serial = q->serial, .status = q->status, .lease = q->body});
    } else if (m->alive && m->life == q->life) {
        step(w, q->member, (kl_shard_input){.kind = KL_SHARD_PICTURE, .leases = q->leases, .n = q->n});
    }
}

static void deliver_due(world *w)
{
    for (bool any = true; any;) {
        size_t first = w->n_messages;
        for (size_t i = 0; i < w->n_messages; i++) {
            message *q = &w->messages[i];
            member *m = &w->members[q->member];
            bool waits = q->at > w->now
                || (q->what != ARRIVES && m->alive && m->life == q->life && m->frozen > w->now);
            if (!waits && (first == w->n_messages || q->at < w->messages[first].at))
                first = i;
        }
        any = first < w->n_messages;
        if (any) {
            message q = w->messages[first];
            memmove(&w->messages[first], &w->messages[first + 1], (--w->n_messages - first) * sizeof q);
            deliver(w, &q);
            message_free(&q);
        }
    }
}

static void check_owners(world *w)
{
    for (int c = 0; c < 2; c++)
        for (int k = 0; k < KEYS; k++) {
            int n = 0, who = -1;
            for (int i = 0; i < MEMBERS; i++)
                if (owns(w, &w->members[i], c, k)) {
                    if (n++)
                        fail_msg("%s of %d has two owners, %s and %s, at %lld ms", CONTROLLERS[c], k,
                            kl_shard_name(w->members[who].s), kl_shard_name(w->members[i].s),
                            (long long)(w->now / KL_MILLISECONDS(1)));
                    who = i;
                }
            w->owned += n;
        }
}

static void disturb(world *w)
{
    int i = (int)(kl_random_next(&w->random) % MEMBERS);
    member *m = &w->members[i];
    double x = chance(w);
    if (!m->alive) {
        begin(w, i, x < 0.5);
    } else if (x < 0.3) {
        m->frozen = w->now + kl_random_between(&w->random, KL_MILLISECONDS(300), KL_SECONDS(12));
    } else if (x < 0.5) {
        end(w, i);
    } else if (x < 0.7) {
        m->leaving = true;
    } else {
        reload(w, i, x < 0.85);
    }
}

static void tick(world *w, bool disturbing)
{
    w->now += TICK;
    deliver_due(w);
    for (int i = 0; i < MEMBERS; i++) {
        member *m = &w->members[i];
        if (!m->alive || m->frozen > w->now)
            continue;
        if (w->now >= m->timer)
            step(w, i, (kl_shard_input){.kind = KL_SHARD_TIMER});
        work(w, i);
        if (m->left)
            end(w, i);
    }
    check_owners(w);
    if (disturbing && chance(w) < 0.012)
        disturb(w);
}

static void pass(world *w, kl_time d, bool disturbing)
{
    for (kl_time until = w->now + d; w->now < until;)
        tick(w, disturbing);
}

/* Owners of all keys; every key must have one. */
static void assert_all_owned(world *w)
{
    for (int c = 0; c < 2; c++)
        for (int k = 0; k < KEYS; k++) {
            int n = 0;
            for (int i = 0; i < MEMBERS; i++)
                n += owns(w, &w->members[i], c, k);
            if (n != 1)
                fail_msg("%s of key %d has %d owners in a quiet world", CONTROLLERS[c], k, n);
        }
}

static void setup(world *w, uint64_t seed)
{
    *w = (world){.random = {seed}, .now = KL_SECONDS(10)};
    w->messages = kl_new_array(message, MESSAGES_MAX);
}

static void teardown(world *w)
{
    for (int i = 0; i < MEMBERS; i++)
        end(w, i);
    for (size_t i = 0; i < w->n_messages; i++)
        message_free(&w->messages[i]);
    for (size_t i = 0; i < w->n_leases; i++) {
        kl_free(w->leases[i].name);
        kl_value_unref(w->leases[i].lease);
    }
    kl_free(w->messages);
}

static int owner_count(world *w, int i)
{
    int n = 0;
    for (int c = 0; c < 2; c++)
        for (int k = 0; k < KEYS; k++)
            n += owns(w, &w->members[i], c, k);
    return n;
}

/* --- the specs ---------------------------------------------------------------------------- */

static void whatever_happens_no_key_has_two_owners_and_in_the_end_each_has_one(void **state)
{
    (void)state;
    int seeds = (int)test_size(4, 200);
    long owned = 0, fences = 0, epochs = 0;
    for (int seed = 1; seed <= seeds; seed++) {
        world w;
        setup(&w, (uint64_t)seed * 7919);
        for (int i = 0; i < 3; i++)
            begin(&w, i, true);
        for (int round = 0; round < 3; round++) {
            w.faults = true;
            pass(&w, KL_SECONDS(60), true);
            w.faults = false;
            for (int i = 0; i < MEMBERS; i++) {
                w.members[i].frozen = 0;
                if (!w.members[i].alive)
                    begin(&w, i, false);
                else if (!w.members[i].leaving)
                    reload(&w, i, false);
            }
            pass(&w, KL_SECONDS(10) + LEASE + RETRY * 4 + KL_SECONDS(9), false);
            assert_all_owned(&w);
        }
        owned += w.owned;
        fences += w.fences;
        epochs += w.epochs;
        teardown(&w);
    }
    assert_true(owned > 1000 && fences > seeds && epochs > 3 * seeds); /* the world was not idle */
}

static void a_crash_moves_its_keys_within_a_lease(void **state)
{
    (void)state;
    world w;
    setup(&w, 5);
    for (int i = 0; i < 3; i++)
        begin(&w, i, true);
    pass(&w, KL_SECONDS(6), false);
    assert_all_owned(&w);
    for (int i = 0; i < 3; i++) {
        assert_true(owner_count(&w, i) > 0);
        assert_true(kl_shard_settled(w.members[i].s));
        assert_int_equal(kl_shard_members(w.members[i].s), 3);
    }
    end(&w, 1);
    pass(&w, LEASE + KL_SECONDS(4), false);
    assert_all_owned(&w);
    assert_int_equal(w.fences, 1);
    teardown(&w);
}

static void no_replica_is_settled_while_a_member_has_not_published_the_target(void **state)
{
    (void)state;
    world w;
    setup(&w, 5);
    for (int i = 0; i < 3; i++)
        begin(&w, i, true);
    pass(&w, KL_SECONDS(6), false);
    begin(&w, 3, true);
    w.members[2].frozen = w.now + KL_SECONDS(3); /* less than its lease */
    bool waited = false;
    while (w.members[2].frozen > w.now) {
        tick(&w, false);
        waited = waited || kl_shard_members(w.members[0].s) == 4;
        assert_false(kl_shard_settled(w.members[0].s) && kl_shard_members(w.members[0].s) == 4);
    }
    assert_true(waited);
    pass(&w, KL_SECONDS(12), false);
    assert_all_owned(&w);
    for (int i = 0; i < 4; i++) {
        assert_true(kl_shard_settled(w.members[i].s));
        assert_int_equal(kl_shard_members(w.members[i].s), 4);
    }
    teardown(&w);
}

static void a_release_moves_its_keys_at_once(void **state)
{
    (void)state;
    world w;
    setup(&w, 6);
    for (int i = 0; i < 3; i++)
        begin(&w, i, true);
    pass(&w, KL_SECONDS(20), false);
    w.members[0].leaving = true;
    kl_time from = w.now;
    while (w.members[0].alive)
        tick(&w, false);
    assert_true(w.now - from < KL_SECONDS(12)); /* its longest run */
    pass(&w, KL_SECONDS(12), false);
    assert_all_owned(&w);
    assert_int_equal(w.fences, 0);
    teardown(&w);
}

static void of_more_members_than_wanted_the_oldest_take_keys_and_another_steps_in(void **state)
{
    (void)state;
    world w;
    setup(&w, 7);
    w.max = 2;
    for (int i = 0; i < 4; i++) {
        begin(&w, i, true);
        pass(&w, KL_SECONDS(3), false);
    }
    pass(&w, KL_SECONDS(12), false);
    assert_all_owned(&w);
    assert_true(owner_count(&w, 0) > 0 && owner_count(&w, 1) > 0);
    assert_int_equal(owner_count(&w, 2) + owner_count(&w, 3), 0);
    end(&w, 0);
    pass(&w, LEASE + KL_SECONDS(14), false);
    assert_all_owned(&w);
    assert_true(owner_count(&w, 1) > 0 && owner_count(&w, 2) > 0);
    assert_int_equal(owner_count(&w, 3), 0);
    teardown(&w);
}

static void a_publication_that_cannot_be_read_may_mean_any_key(void **state)
{
    (void)state;
    kl_ring *r = kl_ring_new((const char *[]){"a", "b"}, 2);
    const kl_value *c = controllers(false);
    kl_publication ours = {r, 0, c}, theirs = {NULL, 0, NULL};
    kl_claims *alone = kl_claims_new(&ours, 1, NULL, 0), *beside = kl_claims_new(&ours, 1, &theirs, 1);
    int mine = 0;
    for (int k = 0; k < KEYS; k++) {
        char key[32];
        key_text(k, key);
        mine += kl_claims_own(alone, "by-key", key);
        assert_false(kl_claims_own(beside, "by-key", key));
        assert_true(kl_claims_want(alone, "by-key", key) == kl_claims_own(alone, "by-key", key));
        assert_false(kl_claims_own(alone, "another", key));
    }
    assert_in_range(mine, 1, KEYS - 1);
    kl_claims_unref(alone);
    kl_claims_unref(beside);
    kl_ring_unref(r);
    kl_value_unref(c);
}

static void keys_of_one_namespace_stay_together_where_that_is_asked_for(void **state)
{
    (void)state;
    kl_ring *r = kl_ring_new((const char *[]){"a", "b", "c"}, 3);
    const kl_value *c = controllers(false);
    int cut = 0;
    for (size_t me = 0; me < 3; me++) {
        kl_publication p = {r, me, c};
        kl_claims *claims = kl_claims_new(&p, 1, NULL, 0);
        for (int ns = 0; ns < 20; ns++) {
            char first[32], other[32];
            snprintf(first, sizeof first, "ns-%d/a", ns);
            for (int i = 0; i < 20; i++) {
                snprintf(other, sizeof other, "ns-%d/%d", ns, i);
                assert_true(kl_claims_own(claims, "by-namespace", first)
                    == kl_claims_own(claims, "by-namespace", other));
                cut += kl_claims_own(claims, "by-key", first) != kl_claims_own(claims, "by-key", other);
            }
        }
        assert_true(fabs(kl_claims_share(claims, "by-key") - 1.0 / 3) < 0.12);
        assert_true(kl_claims_share(claims, "another") == 0);
        kl_claims_unref(claims);
    }
    assert_true(cut > 0);
    kl_ring_unref(r);
    kl_value_unref(c);
}

static kl_shard_action feed(kl_shard *s, kl_time at, kl_shard_input in)
{
    return kl_shard_step(s, &in, (kl_shard_now){at, at});
}

static void the_deadline_counts_from_before_the_request_and_a_late_answer_is_ignored(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_shard *s;
    world w = {0};
    assert_ok(
        kl_shard_new(
            &(kl_shard_config){
                .group = "g", .ns = "ns", .identity = "me", .lease = LEASE, .renew = RENEW, .retry = RETRY},
            &s, &err),
        &err);
    const kl_value *c = controllers(false);
    feed(s, 0, (kl_shard_input){.kind = KL_SHARD_CONTROLLERS, .lease = c});
    /* who is there already? */
    assert_int_equal(feed(s, 0, (kl_shard_input){.kind = KL_SHARD_START}).own.what, KL_SHARD_NOTHING);
    kl_shard_action a = feed(s, KL_SECONDS(1), (kl_shard_input){.kind = KL_SHARD_PICTURE});
    assert_int_equal(a.own.what, KL_SHARD_CREATE);
    const kl_value *lease = stamped(&w, a.own.body, "uid-1");
    a = feed(
        s, KL_SECONDS(3), (kl_shard_input){.kind = KL_SHARD_REPLY, .serial = a.own.serial, .lease = lease});
    assert_true(a.events & KL_SHARD_STARTED);
    assert_true(kl_shard_deadline(s) == KL_SECONDS(1) + (LEASE + RENEW) / 2);
    a = feed(s, KL_SECONDS(4), (kl_shard_input){.kind = KL_SHARD_TIMER});
    assert_int_equal(a.own.what, KL_SHARD_UPDATE);
    /* 4.5 s have passed: too late */
    a = feed(
        s, KL_SECONDS(5), (kl_shard_input){.kind = KL_SHARD_REPLY, .serial = a.own.serial, .lease = lease});
    assert_true(a.events & KL_SHARD_STOPPED);
    assert_true(kl_shard_deadline(s) == 0);
    a = feed(s, KL_SECONDS(6), (kl_shard_input){.kind = KL_SHARD_JOINED});
    /* what is left of the other life */
    assert_int_equal(a.own.what, KL_SHARD_DELETE);
    assert_string_equal(a.own.uid, "uid-1");
    a = feed(s, KL_SECONDS(6),
        (kl_shard_input){.kind = KL_SHARD_REPLY, .serial = a.own.serial, .status = KL_ENOTFOUND});
    assert_int_equal(a.own.what, KL_SHARD_CREATE);
    /* born dead */
    a = feed(
        s, KL_SECONDS(16), (kl_shard_input){.kind = KL_SHARD_REPLY, .serial = a.own.serial, .lease = lease});
    assert_false(a.events & KL_SHARD_STARTED);
    assert_true(kl_shard_deadline(s) == 0);
    kl_value_unref(lease);
    kl_value_unref(c);
    kl_shard_free(s);
}

/* The seconds of a Lease come from a server: their nanoseconds must be a time. */
static void the_duration_of_a_lease_is_within_what_a_clock_can_count(void **state)
{
    (void)state;
    static const struct {
        const char *seconds;
        kl_time is;
    } cases[] = {{"9223372036854775807", KL_SECONDS(INT32_MAX)}, {"2147483648", KL_SECONDS(INT32_MAX)},
        {"2147483646", KL_SECONDS(2147483646)}, {"15", KL_SECONDS(15)}, {"0", 0}, {"-1", 0},
        {"-9223372036854775808", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = kl_sprintf(
            "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"leaseDurationSeconds\":%s}}", cases[i].seconds);
        const kl_value *lease = NULL;
        kl_err err = KL_ERR_INIT;
        kl_shard_lease read;
        assert_ok(kl_value_decode(text, strlen(text), &lease, &err), &err);
        kl_shard_lease_read(lease, NULL, &read);
        assert_int_equal(read.duration, cases[i].is);
        kl_shard_lease_fini(&read);
        kl_value_unref(lease);
        kl_free(text);
    }
}

KL_TESTS(cmocka_unit_test(the_duration_of_a_lease_is_within_what_a_clock_can_count),
    cmocka_unit_test(the_deadline_counts_from_before_the_request_and_a_late_answer_is_ignored),
    cmocka_unit_test(a_publication_that_cannot_be_read_may_mean_any_key),
    cmocka_unit_test(keys_of_one_namespace_stay_together_where_that_is_asked_for),
    cmocka_unit_test(a_crash_moves_its_keys_within_a_lease),
    cmocka_unit_test(no_replica_is_settled_while_a_member_has_not_published_the_target),
    cmocka_unit_test(a_release_moves_its_keys_at_once),
    cmocka_unit_test(of_more_members_than_wanted_the_oldest_take_keys_and_another_steps_in),
    cmocka_unit_test(whatever_happens_no_key_has_two_owners_and_in_the_end_each_has_one))

/* not in tsan: it starts no thread */
