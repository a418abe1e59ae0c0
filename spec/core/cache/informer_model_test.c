/* informer_model_test.c - whatever the network does, the store is what the server had at the store's
 * resourceVersion.
 *
 * A model server keeps its whole history. Random changes, answers and faults; after every step the store
 * must equal the server's state at the resourceVersion that the store claims, and every handler must have
 * been told exactly that. */
#include "support/fake_source.h"

#include "base/map.h"
#include "base/random.h"
#include "cache/informer.h"
#include "model/object.h"

#define NAMES 12
#define HISTORY 4000

typedef struct version {
    int uid, rv;
} version; /* rv 0: absent */
typedef struct past {
    int name;
    char what;
    version v;
} past; /* what: + ~ - */

typedef struct server {
    kl_random r;
    past history[HISTORY];   /* history[k] happened at resourceVersion k + 1 */
    int rv, uids, compacted; /* watches from before `compacted` are gone */
    version state[NAMES];
    /* of the list or of the initial events that are being served: their resourceVersion, the next name */
    int snapshot, page_at;
    bool listing, initial;
    bool refuses; /* it knows no initial events */
    int sent;     /* of the open watch: up to here */
} server;

static uint64_t draw(server *s, uint64_t n) { return kl_random_next(&s->r) % n; }

static void happen(server *s, int name, char what, version v)
{
    assert_true(s->rv < HISTORY);
    s->history[s->rv++] = (past){name, what, v};
    s->state[name] = what == '-' ? (version){0} : v;
}

static void change(server *s)
{
    int n = (int)draw(s, NAMES);
    version v = s->state[n];
    if (!v.rv) {
        happen(s, n, '+', (version){++s->uids, s->rv + 1});
    } else if (draw(s, 3)) {
        happen(s, n, '~', (version){v.uid, s->rv + 1});
    } else {
        happen(s, n, '-', (version){v.uid, s->rv + 1});
        if (draw(s, 2))
            happen(s, n, '+', (version){++s->uids, s->rv + 1});
    }
}

static void state_at(const server *s, int rv, version out[NAMES])
{
    memset(out, 0, sizeof *out * NAMES);
    for (int k = 0; k < rv; k++)
        out[s->history[k].name] = s->history[k].what == '-' ? (version){0} : s->history[k].v;
}

static const char *json_of(int name, version v)
{
    static char text[200];
    snprintf(text, sizeof text,
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":\"ns%d\",\"name\":\"p%d\","
        "\"uid\":\"u%d\",\"resourceVersion\":\"%d\"}}",
        name % 3, name, v.uid, v.rv);
    return text;
}

/* --- what a handler was told -------------------------------------------------------------- */

typedef struct known {
    version v[NAMES];
    int synced;
    kl_subscription *sub;
} known;

static version version_of(const kl_value *o, int *name)
{
    *name = atoi(kl_object_name(o) + 1);
    return (version){atoi(kl_object_uid(o) + 1), atoi(kl_object_rv(o))};
}

static void told(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    known *k = arg;
    int name;
    version a = old ? version_of(old, &name) : (version){0}, b = now ? version_of(now, &name) : (version){0};
    version *v = &k->v[name];
    (void)flags;
    switch (type) {
    case KL_ADDED: assert_int_equal(v->rv, 0); break;
    case KL_MODIFIED:
        assert_int_equal(v->rv, a.rv);
        assert_int_equal(v->uid, b.uid);
        break;
    default:
        assert_true(v->rv != 0);
        assert_int_equal(v->uid, a.uid);
        break;
    }
    *v = b;
}

static void told_synced(void *arg) { ((known *)arg)->synced++; }

/* --- serving, with faults ----------------------------------------------------------------- */

static bool fault(server *s, fake_source *f, bool calm)
{
    static const struct {
        kl_status st;
        int code;
    } how[] = {
        {KL_ECLOSED, 0},
        {KL_ECONNECT, 0},
        {KL_ETIMEOUT, 0},
        {KL_ETHROTTLED, 429},
        {KL_ESERVER, 500},
        {KL_ESYNTAX, 200},
        {KL_ETOOBIG, 200},
        {KL_EFORBIDDEN, 403},
        {KL_ENOTFOUND, 404},
        {KL_EGONE, 410},
    };
    if (calm || draw(s, 12))
        return false;
    size_t k = draw(s, sizeof how / sizeof *how);
    fake_fails(f, how[k].st, how[k].code);
    return true;
}

static void serve_list(server *s, fake_source *f, bool calm)
{
    char text[16], token[32];
    if (fault(s, f, calm))
        return;
    if (!*f->continue_token) {
        int floor = atoi(f->rv);
        /* "0": anything; "": the newest; else: not older than that. */
        s->snapshot = !*f->rv || calm ? s->rv : floor + (int)draw(s, (uint64_t)(s->rv - floor) + 1);
        s->page_at = 0;
        s->listing = true;
    } else if (!s->listing || s->snapshot < s->compacted) {
        fake_fails(f, KL_EGONE, 410);
        return;
    } else {
        s->page_at = atoi(f->continue_token + 1); /* a page may be asked for twice */
    }
    version at[NAMES];
    int left = (int)f->limit;
    state_at(s, s->snapshot, at);
    for (; s->page_at < NAMES && (!f->limit || left > 0); s->page_at++)
        if (at[s->page_at].rv) {
            fake_item(f, json_of(s->page_at, at[s->page_at]));
            left--;
            if (fault(s, f, calm)) /* in the middle of a page */
                return;
        }
    snprintf(text, sizeof text, "%d", s->snapshot);
    snprintf(token, sizeof token, "t%d", s->page_at);
    fake_listed(f, text, s->page_at < NAMES ? token : NULL);
}

static void serve_watch(server *s, fake_source *f, bool calm, int *seen_watch)
{
    if (*seen_watch != f->watches) {
        *seen_watch = f->watches;
        s->sent = atoi(f->rv);
        s->initial = f->initial;
        if (f->initial && s->refuses) {
            fake_fails(f, KL_EREJECTED, 422);
            return;
        }
        if (f->initial) {
            s->snapshot = s->sent += *f->rv && !calm ? (int)draw(s, (uint64_t)(s->rv - s->sent) + 1)
                                                     : s->rv - s->sent;
            s->page_at = 0;
        }
        if (s->sent < s->compacted) {
            if (draw(s, 2))
                fake_fails(f, KL_EGONE, 410);
            else
                fake_error_event(f, 410, "Expired");
            return;
        }
        if (fault(s, f, calm))
            return;
        fake_opens(f);
    }
    if (s->initial && s->page_at < NAMES) {
        version at[NAMES];
        state_at(s, s->snapshot, at);
        while (s->page_at < NAMES && !at[s->page_at].rv)
            s->page_at++;
        if (s->page_at < NAMES) {
            fake_event(f, "ADDED", json_of(s->page_at, at[s->page_at]));
            s->page_at++;
        }
        if (f->open == FAKE_WATCH && !draw(s, 8))
            fault(s, f, calm);
    } else if (s->initial && (calm || draw(s, 2))) {
        char text[16];
        snprintf(text, sizeof text, "%d", s->sent);
        s->initial = false;
        fake_initial_end(f, text, "true");
    } else if (s->sent < s->rv) {
        past *p = &s->history[s->sent++];
        version v = p->v;
        /* a delete carries the last state with the resourceVersion of the delete */
        v.rv = s->sent;
        fake_event(f,
            p->what == '+'       ? "ADDED"
                : p->what == '~' ? "MODIFIED"
                                 : "DELETED",
            json_of(p->name, v));
    } else if (s->initial) {
        return;
    } else if (!draw(s, 3)) {
        char text[16];
        snprintf(text, sizeof text, "%d", s->sent);
        fake_bookmark(f, text);
    } else if (!calm && !draw(s, 4)) {
        switch (draw(s, 4)) {
        case 0: fake_fails(f, KL_OK, 200); break;
        case 1: fake_error_event(f, 429, "TooManyRequests"); break;
        case 2: fake_error_event(f, 500, "InternalError"); break;
        default: fault(s, f, false); break;
        }
    }
}

static void check(const server *s, kl_informer *i, const known *who)
{
    kl_informer_stats st;
    version want[NAMES];
    if (!kl_informer_synced(i)) {
        assert_int_equal(kl_informer_count(i), 0);
        return;
    }
    kl_informer_stats_get(i, &st);
    state_at(s, atoi(st.rv), want);
    kl_informer_stats_fini(&st);
    for (int n = 0; n < NAMES; n++) {
        char key[32];
        int name;
        snprintf(key, sizeof key, "ns%d/p%d", n % 3, n);
        const kl_value *o = kl_informer_lookup(i, key);
        version have = o ? version_of(o, &name) : (version){0};
        kl_value_unref(o);
        assert_int_equal(have.rv, want[n].rv);
        assert_int_equal(have.uid, want[n].uid);
        assert_int_equal(who->v[n].rv, have.rv);
        assert_int_equal(who->v[n].uid, have.uid);
    }
    assert_int_equal(who->synced, 1);
    for (int ns = 0; ns < 3; ns++) { /* the namespace index says the same */
        char name[16];
        kl_objects some;
        size_t expected = 0;
        snprintf(name, sizeof name, "ns%d", ns);
        for (int n = ns; n < NAMES; n += 3)
            expected += want[n].rv != 0;
        assert_int_equal(kl_informer_list(i, &(kl_query){.ns = name}, &some, NULL), KL_OK);
        assert_int_equal(some.len, expected);
        kl_objects_fini(&some);
    }
}

static void one_seed(uint64_t seed)
{
    server *s = kl_new(server);
    fake_source f;
    known first = {0}, late = {0};
    int seen_watch = 0;
    s->r.state = seed;
    fake_init(&f);
    kl_informer_options o = {.source = fake_source_of(&f),
        .clock = f.clock,
        .resource = "pods",
        .api_version = "v1",
        .kind = "Pod",
        .seed = seed,
        .page_size = 3,
        .stream = seed % 2};
    s->refuses = seed % 6 == 1;
    kl_informer *i = kl_informer_new(&o);
    for (int k = 0; k < 20; k++)
        change(s);
    first.sub = kl_informer_subscribe(i, &(kl_handler){told, told_synced, &first});
    kl_informer_start(i);
    fake_pump(&f);
    for (int k = 0; k < 700; k++) {
        bool calm = k > 600;
        switch (draw(s, 8)) {
        case 0:
        case 1:
            if (!calm)
                change(s);
            break;
        case 2: fake_advance(&f, kl_random_between(&s->r, 0, KL_SECONDS(calm ? 100 : 20))); break;
        case 3:
            if (!calm && !draw(s, 8))
                s->compacted = s->rv - (int)draw(s, 3);
            if (!late.sub && !draw(s, 20))
                late.sub = kl_informer_subscribe(i, &(kl_handler){told, told_synced, &late});
            fake_pump(&f);
            break;
        default:
            if (f.open == FAKE_LIST)
                serve_list(s, &f, calm);
            else if (f.open == FAKE_WATCH)
                serve_watch(s, &f, calm, &seen_watch);
            break;
        }
        check(s, i, &first);
    }
    /* The world is calm: now everything arrives. */
    for (int k = 0;
         k < 200 && !(f.open == FAKE_WATCH && seen_watch == f.watches && s->sent == s->rv && !s->initial);
         k++) {
        if (f.open == FAKE_LIST)
            serve_list(s, &f, true);
        else if (f.open == FAKE_WATCH)
            serve_watch(s, &f, true, &seen_watch);
        else
            fake_advance(&f, KL_SECONDS(61));
    }
    fake_pump(&f);
    check(s, i, &first);
    for (int n = 0; n < NAMES; n++) {
        assert_int_equal(first.v[n].rv, s->state[n].rv);
        assert_int_equal(first.v[n].uid, s->state[n].uid);
        if (late.sub)
            assert_int_equal(late.v[n].rv, s->state[n].rv);
    }
    kl_informer_stop(i, NULL, NULL);
    fake_pump(&f);
    kl_informer_unsubscribe(first.sub);
    kl_informer_unsubscribe(late.sub);
    kl_informer_unref(i);
    fake_pump(&f);
    fake_fini(&f);
    kl_free(s);
}

static void the_store_is_the_server_at_the_stores_resource_version(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++)
        one_seed(seed);
}

KL_TESTS(cmocka_unit_test(the_store_is_the_server_at_the_stores_resource_version))

/* not in tsan: it starts no thread */
