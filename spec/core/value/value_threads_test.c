/* value_threads_test.c - eight threads that make, share, change and drop the same values: nothing is freed
 * early, nothing stays, and what is equal is one handle even when two threads make it at once. Loops have
 * a fixed length; no test waits for a time.
 * not in check: it keeps both cores busy for long */
#include "support/test.h"
#include "support/sizes.h"

#include "base/mem.h"
#include "base/sync.h"
#include "wire/stream.h"
#include "support/random_value.h"

#define THREADS 8
/* What a sanitizer watches costs several times as much, and it sees a mistake that happened without being
 * hurt by it; ThreadSanitizer sees one that could have happened. */
#if defined __SANITIZE_THREAD__
#define ROUNDS 200
#define STEPS 2000
#elif defined KL_DEBUG
#define ROUNDS 600
#define STEPS 6000
#else
#define ROUNDS test_size(1000, 2000)
#define STEPS test_size(8000, 25000)
#endif

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "does not hold: %s\n", what);
        abort();
    }
}
#define MUST(x) must(x, #x)

static void on_all(void (*fn)(void *), void *const args[THREADS])
{
    kl_thread *t[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        t[i] = kl_thread_start("values", fn, args[i]);
    for (size_t i = 0; i < THREADS; i++)
        kl_thread_join(t[i]);
}

static size_t live_nodes(void)
{
    size_t nodes, bytes;
    kl_value_memory(&nodes, &bytes);
    return nodes;
}

static const kl_value *decode(const char *text)
{
    const kl_value *v = NULL;
    MUST(!kl_value_decode(text, strlen(text), &v, NULL));
    return v;
}

/* --- all threads at one point ------------------------------------------------------------- */

typedef struct meeting {
    kl_mutex mu;
    kl_cond cond;
    unsigned here, times;
} meeting;

static void meet(meeting *m)
{
    kl_lock(&m->mu);
    unsigned mine = m->times;
    if (++m->here == THREADS) {
        m->here = 0;
        m->times++;
        kl_cond_broadcast(&m->cond);
    }
    while (m->times == mine)
        kl_cond_wait(&m->cond, &m->mu);
    kl_unlock(&m->mu);
}

typedef struct racer {
    meeting *m;
    size_t me;
    const kl_value **made;
} racer;

static const kl_value *make_one_way_or_another(size_t way, int round)
{
    char text[160];
    if (way % 2) {
        snprintf(text, sizeof text,
            "{\"round\":%d,\"list\":[\"item-%d\",{\"deep\":[%d.5,\"of round %d\"]}],\"wide\":%d000000000000}",
            round, round, round, round, round + 1);
        return decode(text);
    }
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kint(b, "round", round);
    kl_build_key(b, "list");
    kl_build_array(b);
    snprintf(text, sizeof text, "item-%d", round);
    kl_build_str(b, text);
    kl_build_object(b);
    kl_build_key(b, "deep");
    kl_build_array(b);
    kl_build_double(b, round + 0.5);
    snprintf(text, sizeof text, "of round %d", round);
    kl_build_str(b, text);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_kint(b, "wide", (round + 1) * (int64_t)1000000000000);
    kl_build_end(b);
    return kl_builder_done(b);
}

static void race(void *arg)
{
    racer *r = arg;
    for (int round = 0; round < ROUNDS; round++) {
        meet(r->m);
        r->made[r->me] = make_one_way_or_another(r->me, round);
        meet(r->m);
        for (size_t i = 0; i < THREADS; i++)
            MUST(r->made[i] == r->made[r->me]);
        meet(r->m);
        kl_value_unref(r->made[r->me]); /* all at once, too */
    }
}

static void threads_that_make_the_same_at_once_get_one_handle(void **state)
{
    (void)state;
    size_t nodes = live_nodes();
    const kl_value *made[THREADS];
    meeting m = {0};
    racer r[THREADS];
    void *args[THREADS];
    kl_mutex_init(&m.mu);
    kl_cond_init(&m.cond);
    for (size_t i = 0; i < THREADS; i++) {
        r[i] = (racer){&m, i, made};
        args[i] = &r[i];
    }
    on_all(race, args);
    assert_int_equal(live_nodes(), nodes);
    kl_cond_fini(&m.cond);
    kl_mutex_fini(&m.mu);
}

/* --- to zero and back --------------------------------------------------------------------- */

/* A value dies in one thread while another asks for it: it gets the old one or a new one, and never a dead
 * one. */
static void die_and_return(void *arg)
{
    rng r = rng_of((uint64_t)(uintptr_t)arg);
    for (int i = 0; i < STEPS; i++) {
        static const char *const texts[] = {"{\"a\":[\"dies often\",{\"b\":\"with it\"}]}",
            "[\"dies often\",{\"b\":\"with it\"}]", "\"dies often\"", "123456789012345678901",
            "9007199254740993"};
        unsigned which = rng_below(&r, 5);
        const kl_value *v = decode(texts[which]),
                       *w = rng_below(&r, 2) ? decode(texts[which]) : kl_value_ref(v);
        MUST(v == w);
        const kl_value *part = which == 0 ? kl_value_ref(kl_value_item(kl_value_get(v, "a"), 1)) : NULL;
        kl_value_unref(v);
        if (which == 2)
            MUST(!strcmp(kl_value_str(w), "dies often"));
        kl_value_unref(w);
        if (part)
            MUST(!strcmp(kl_value_str_at(part, "b", NULL), "with it"));
        kl_value_unref(part);
    }
}

static void values_dropped_here_while_decoded_there_are_whole(void **state)
{
    (void)state;
    size_t nodes = live_nodes();
    void *args[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        args[i] = (void *)(i + 1);
    on_all(die_and_return, args);
    assert_int_equal(live_nodes(), nodes);
}

/* --- the storm ---------------------------------------------------------------------------- */

#define TEXTS 40
#define SLOTS 32
#define HELD 24

typedef struct storm {
    kl_mutex mu;
    const kl_value *slots[SLOTS]; /* what the threads give each other; guarded by mu */
    char *texts[TEXTS];           /* objects that share parts */
} storm;

typedef struct sailor {
    storm *s;
    uint64_t seed;
} sailor;

/* A value that is whole says itself and is found again by what it says. */
static void check_whole(const kl_value *v)
{
    char *text = kl_value_to_json(v);
    const kl_value *again = decode(text);
    MUST(again == v);
    kl_value_unref(again);
    kl_free(text);
}

static const kl_value *part_of(rng *r, const kl_value *v)
{
    for (unsigned steps = 1 + rng_below(r, 4); steps && kl_value_len(v) && kl_value_type(v) != KL_STRING;
         steps--)
        v = kl_value_type(v) == KL_OBJECT
            ? kl_value_member(v, rng_below(r, (uint32_t)kl_value_len(v)), NULL, NULL)
            : kl_value_item(v, rng_below(r, (uint32_t)kl_value_len(v)));
    return v;
}

static const kl_value *rebuilt(rng *r, const kl_value *v, const kl_value *w)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kvalue(b, "spec", v);
    kl_build_key(b, "list");
    kl_build_array(b);
    for (unsigned i = rng_below(r, 30); i; i--)
        kl_build_value(b, i % 3 ? v : w);
    kl_build_end(b);
    if (rng_below(r, 4)) {
        kl_build_end(b);
        return kl_builder_done(b);
    }
    kl_builder_free(b); /* given up in the middle */
    return kl_value_ref(w);
}

static void swap_with_slot(storm *s, unsigned slot, const kl_value **v)
{
    kl_lock(&s->mu);
    const kl_value *theirs = s->slots[slot];
    s->slots[slot] = *v;
    kl_unlock(&s->mu);
    *v = theirs;
}

static const kl_value *lookup_slot(storm *s, unsigned slot)
{
    kl_lock(&s->mu);
    const kl_value *v = kl_value_ref(s->slots[slot]);
    kl_unlock(&s->mu);
    return v;
}

static void sail(void *arg)
{
    storm *s = ((sailor *)arg)->s;
    rng r = rng_of(((sailor *)arg)->seed);
    const kl_value *held[HELD] = {0};
    for (int i = 0; i < STEPS; i++) {
        const kl_value **v = &held[rng_below(&r, HELD)], *w = held[rng_below(&r, HELD)], *made;
        switch (rng_below(&r, 10)) {
        case 0:
        case 1: made = decode(s->texts[rng_below(&r, TEXTS)]); break;
        case 2: made = lookup_slot(s, rng_below(&r, SLOTS)); break;
        case 3: made = kl_value_ref(part_of(&r, w)); break;
        case 4:
            made = kl_value_with(kl_value_type(*v) == KL_OBJECT ? *v : NULL,
                rng_below(&r, 2) ? "kind" : "status", w ? part_of(&r, w) : NULL);
            break;
        case 5:
            made = kl_value_with_at(kl_value_type(*v) == KL_OBJECT ? *v : NULL,
                rng_below(&r, 3) ? part_of(&r, w) : NULL, "metadata", "labels", rng_below(&r, 2) ? "a" : "b",
                NULL);
            break;
        case 6: made = rebuilt(&r, *v, w); break;
        case 7: made = NULL; break;
        default:
            swap_with_slot(s, rng_below(&r, SLOTS), v);
            made = kl_value_ref(*v);
            break;
        }
        if (kl_value_bytes(made) > 100000) { /* what grows out of itself is cut back */
            kl_value_unref(made);
            made = NULL;
        }
        if (made && !rng_below(&r, 20))
            check_whole(made);
        kl_value_unref(*v);
        *v = made;
    }
    for (size_t i = 0; i < HELD; i++)
        kl_value_unref(held[i]);
}

static void a_storm_of_owners_leaves_nothing_behind(void **state)
{
    (void)state;
    storm s = {0};
    sailor crew[THREADS];
    void *args[THREADS];
    size_t nodes, first, bytes, later;
    kl_mutex_init(&s.mu);
    rng r = rng_of(77);
    for (size_t i = 0; i < TEXTS; i++) {
        const kl_value *v = random_object(&r, true), *normal;
        /* integral floats are written as integers: once read back, it is stable */
        char *text = kl_value_to_json(v);
        normal = decode(text);
        s.texts[i] = kl_value_to_json(normal);
        kl_free(text);
        kl_value_unref(v);
        kl_value_unref(normal);
    }
    nodes = live_nodes();
    for (int storms = 0; storms < 3; storms++) {
        for (size_t i = 0; i < THREADS; i++) {
            crew[i] = (sailor){&s, (uint64_t)storms * THREADS + i + 1};
            args[i] = &crew[i];
        }
        on_all(sail, args);
        for (size_t i = 0; i < SLOTS; i++) {
            kl_value_unref(s.slots[i]);
            s.slots[i] = NULL;
        }
        assert_int_equal(live_nodes(), nodes);
        kl_value_memory(&first, storms ? &later : &bytes);
    }
    assert_true(later <= bytes + bytes / 4); /* a third storm needs no more than the first */
    for (size_t i = 0; i < TEXTS; i++)
        kl_free(s.texts[i]);
    kl_mutex_fini(&s.mu);
}

/* --- one writer, many readers ------------------------------------------------------------- */

/* As a store lives: one thread replaces objects, the others take views, keep parts and read them. */
typedef struct store {
    kl_mutex mu;
    const kl_value *now;
    bool done;
} store;

static void replace_objects(store *st)
{
    for (int i = 0; i < STEPS; i++) {
        char text[200];
        snprintf(text, sizeof text,
            "{\"metadata\":{\"name\":\"web\",\"resourceVersion\":\"%d\",\"labels\":{\"app\":\"web\"}},"
            "\"spec\":{\"n\":[%d,\"v%d\"]},\"status\":{\"n\":%d}}",
            i, i / 10, i / 10, i);
        const kl_value *v = decode(text), *old;
        kl_lock(&st->mu);
        old = st->now;
        st->now = v;
        kl_unlock(&st->mu);
        kl_value_unref(old);
    }
    kl_lock(&st->mu);
    st->done = true;
    kl_unlock(&st->mu);
}

static void read_objects(store *st)
{
    const kl_value *kept = NULL;
    for (bool done = false; !done;) {
        kl_lock(&st->mu);
        const kl_value *v = kl_value_ref(st->now);
        done = st->done;
        kl_unlock(&st->mu);
        if (!v)
            continue;
        int64_t n = kl_value_int_at(v, -1, "status", "n", NULL), tens;
        MUST(atoll(kl_value_str_at(v, "metadata", "resourceVersion", NULL)) == n);
        MUST(kl_value_int(kl_value_item(kl_value_at(v, "spec", "n", NULL), 0), &tens) && tens == n / 10);
        if (kept)
            MUST(kl_value_type(kl_value_item(kept, 1)) == KL_STRING
                && *kl_value_str(kl_value_item(kept, 1)) == 'v');
        kl_value_unref(kept);
        kept = kl_value_ref(kl_value_at(v, "spec", "n", NULL));
        kl_value_unref(v);
    }
    kl_value_unref(kept);
}

typedef struct actor {
    store *st;
    bool writes;
} actor;

static void act(void *arg)
{
    actor *a = arg;
    (a->writes ? replace_objects : read_objects)(a->st);
}

static void views_stay_whole_while_objects_are_replaced(void **state)
{
    (void)state;
    size_t nodes = live_nodes();
    store st = {0};
    actor actors[THREADS];
    void *args[THREADS];
    kl_mutex_init(&st.mu);
    for (size_t i = 0; i < THREADS; i++) {
        actors[i] = (actor){&st, i == 0};
        args[i] = &actors[i];
    }
    on_all(act, args);
    kl_value_unref(st.now);
    assert_int_equal(live_nodes(), nodes);
    kl_mutex_fini(&st.mu);
}

/* --- streams beside each other ------------------------------------------------------------ */

#define NAMES 6

/* A store as the streams' owner: the last state of each object, which is the guide of its next one. */
typedef struct watched {
    kl_mutex mu;
    const kl_value *objects[NAMES];
} watched;
typedef struct watcher {
    watched *w;
    uint64_t seed;
    const kl_value *part;
} watcher;

static const kl_value *known(void *arg, const char *ns, size_t nslen, const char *name, size_t namelen)
{
    watched *w = ((watcher *)arg)->w;
    MUST(nslen == 2 && !memcmp(ns, "ns", 2) && namelen == 4 && !memcmp(name, "web", 3));
    kl_lock(&w->mu);
    const kl_value *v = kl_value_ref(w->objects[name[3] - '0']);
    kl_unlock(&w->mu);
    return v;
}

/* Takes the object over from the stream, gives the old one away and keeps a part of another. */
static kl_status on_event(void *arg, const char *type, const kl_value *object, kl_err *err)
{
    (void)err;
    watcher *me = arg;
    watched *w = me->w;
    unsigned slot = (unsigned)(kl_value_str_at(object, "metadata", "name", NULL)[3] - '0');
    MUST(!strcmp(type, "MODIFIED"));
    kl_lock(&w->mu);
    const kl_value *old = w->objects[slot], *other = kl_value_ref(w->objects[(slot + 1) % NAMES]);
    w->objects[slot] = object;
    kl_unlock(&w->mu);
    kl_value_unref(old);
    if (me->part)
        MUST(kl_value_int_at(me->part, -1, "n", NULL) == atoll(kl_value_str_at(me->part, "text", NULL)));
    kl_value_unref(me->part);
    me->part = kl_value_ref(kl_value_item(kl_value_at(other, "spec", "list", NULL), 1));
    kl_value_unref(other);
    return KL_OK;
}

static void watch_and_keep(void *arg)
{
    watcher *me = arg;
    rng r = rng_of(me->seed);
    kl_stream_handler h = {.event = on_event,
        .known = known,
        .arg = me,
        .max_object = 4096,
        .drop_managed_fields = me->seed % 2};
    kl_stream *s = kl_stream_watch_new(&h);
    for (int i = 0; i < STEPS / 2; i++) {
        char text[512];
        /* now new, now what somebody has or had */
        unsigned n = rng_below(&r, 3) ? rng_below(&r, 1000) : 7;
        int len = snprintf(text, sizeof text,
            "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"web%u\",\"namespace\":\"ns\","
            "\"uid\":\"uid of the object %u\",\"managedFields\":[{\"time\":\"time %u of managedFields\"}]},"
            "\"spec\":{\"list\":[{\"a\":[\"always the "
            "same\"]},{\"n\":%u,\"text\":\"%u\",\"deep\":{\"er\":[\"text number "
            "%u\",%u.5]}}]},\"status\":{\"phase\":\"%s\"}}}\n",
            rng_below(&r, NAMES), n % 5, n, n, n, n, n, n % 2 ? "Running and running" : "Pending");
        size_t cut = rng_below(&r, 2) ? (size_t)len : rng_below(&r, (uint32_t)len);
        MUST(!kl_stream_feed(s, text, cut, NULL));
        MUST(!kl_stream_feed(s, text + cut, (size_t)len - cut, NULL));
    }
    kl_stream_free(s);
    kl_value_unref(me->part);
}

static void streams_that_guide_each_other_leave_nothing_behind(void **state)
{
    (void)state;
    size_t nodes = live_nodes();
    watched w = {0};
    watcher me[THREADS];
    void *args[THREADS];
    kl_mutex_init(&w.mu);
    for (size_t i = 0; i < THREADS; i++) {
        me[i] = (watcher){&w, i + 1, NULL};
        args[i] = &me[i];
    }
    on_all(watch_and_keep, args);
    for (size_t i = 0; i < NAMES; i++) {
        assert_string_equal(kl_value_str_at(w.objects[i], "metadata", "namespace", NULL), "ns");
        kl_value_unref(w.objects[i]);
    }
    assert_int_equal(live_nodes(), nodes);
    kl_mutex_fini(&w.mu);
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(threads_that_make_the_same_at_once_get_one_handle),
    CASE(values_dropped_here_while_decoded_there_are_whole), CASE(a_storm_of_owners_leaves_nothing_behind),
    CASE(views_stay_whole_while_objects_are_replaced),
    CASE(streams_that_guide_each_other_leave_nothing_behind))
