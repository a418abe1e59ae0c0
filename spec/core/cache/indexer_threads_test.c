/* indexer_threads_test.c - eight threads read, keep and drop what they read, and bring and drop indexes,
 * while the writer replaces it. Meant for ThreadSanitizer and AddressSanitizer.
 *
 * Every list gives all objects one batch number, so whoever lists sees one number in all of them: a list
 * is one moment. The writer goes on until each reader has had its rounds, and each reader until the writer
 * is through; nobody sleeps. */
#include "support/test.h"

#include <stdatomic.h>
#include "base/mem.h"
#include "base/random.h"
#include "base/sync.h"
#include "cache/indexer_impl.h"
#include "model/object.h"

#define READERS 8
#define OBJECTS 700
#define NAMESPACES 5
#define NODES 40
#ifdef KL_DEBUG
#define ROUNDS 150
#else
#define ROUNDS 3000
#endif
#define KEEP 64 /* views a reader holds on to */

typedef struct crowd {
    kl_indexer *ix;
    atomic_int rounds[READERS];
    atomic_bool done;
} crowd;
typedef struct reader {
    crowd *c;
    int me;
} reader;

static const kl_value *object(int n, int batch, int rv)
{
    char text[300];
    const kl_value *o = NULL;
    kl_err err = KL_ERR_INIT;
    int k = snprintf(text, sizeof text,
        "{\"metadata\":{\"namespace\":\"ns%d\",\"name\":\"p%04d\",\"uid\":\"u%d\",\"resourceVersion\":\"%d\","
        "\"labels\":{\"app\":\"a%d\"}},"
        "\"spec\":{\"nodeName\":\"n%d\",\"batch\":%d}}",
        n % NAMESPACES, n, n, rv, n % 50, (n + batch) % NODES, batch);
    assert_ok(kl_value_decode(text, (size_t)k, &o, &err), &err);
    return o;
}

static int64_t batch_of(const kl_value *o) { return kl_value_int_at(o, -1, "spec", "batch", NULL); }

static void read_lists(crowd *c, kl_random *r)
{
    kl_objects all, some;
    char text[16], ns[16];
    kl_err err = KL_ERR_INIT;
    kl_selector *app = NULL;
    assert_ok(kl_indexer_list(c->ix, NULL, &all, &err), &err);
    for (size_t i = 1; i < all.len; i++)
        assert_int_equal(batch_of(all.v[i]), batch_of(all.v[0]));
    kl_objects_fini(&all);
    /* What an index says of an object and what the object says are one. */
    snprintf(text, sizeof text, "n%d", (int)(kl_random_next(r) % NODES));
    snprintf(ns, sizeof ns, "ns%d", (int)(kl_random_next(r) % NAMESPACES));
    const char *value[] = {text, NULL};
    kl_index_term not_there = {"node", KL_SEL_NE, value};
    assert_ok(kl_indexer_list(c->ix, &(kl_query){.index = "node", .value = text}, &some, &err), &err);
    for (size_t i = 0; i < some.len; i++)
        assert_string_equal(kl_value_str_at(some.v[i], "spec", "nodeName", NULL), text);
    kl_objects_fini(&some);
    assert_ok(
        kl_indexer_list(c->ix, &(kl_query){.ns = ns, .terms = &not_there, .n_terms = 1}, &some, &err), &err);
    for (size_t i = 0; i < some.len; i++) {
        assert_string_equal(kl_object_namespace(some.v[i]), ns);
        assert_string_not_equal(kl_value_str_at(some.v[i], "spec", "nodeName", NULL), text);
    }
    kl_objects_fini(&some);
    /* an index comes of it while we go on */
    assert_ok(kl_selector_parse("app in (a1,a7)", &app, &err), &err);
    assert_ok(kl_indexer_list(c->ix, &(kl_query){.labels = app}, &some, &err), &err);
    assert_true(some.len <= 2 * (OBJECTS / 50));
    for (size_t i = 0; i < some.len; i++)
        assert_true(kl_selector_matches(app, kl_value_at(some.v[i], "metadata", "labels", NULL)));
    kl_objects_fini(&some);
    kl_selector_free(app);
}

static const kl_value *read_one(crowd *c, kl_random *r)
{
    char key[32];
    int n = (int)(kl_random_next(r) % OBJECTS);
    snprintf(key, sizeof key, "ns%d/p%04d", n % NAMESPACES, n);
    const kl_value *o = kl_indexer_lookup(c->ix, key);
    if (o)
        assert_int_equal(atoi(kl_object_uid(o) + 1), n);
    return o;
}

static void use_own_index(crowd *c, int me)
{
    kl_err err = KL_ERR_INIT;
    kl_objects some;
    char name[16];
    snprintf(name, sizeof name, "mine%d", me / 2); /* two share one */
    assert_ok(kl_indexer_add_path(c->ix, name, "metadata.uid", &err), &err);
    assert_ok(kl_indexer_list(c->ix, &(kl_query){.index = name, .value = "u7"}, &some, &err), &err);
    assert_true(some.len <= 1);
    kl_objects_fini(&some);
    kl_indexer_drop(c->ix, name);
}

static void read_on(void *arg)
{
    reader *me = arg;
    crowd *c = me->c;
    kl_random r = {(uint64_t)me->me + 1};
    const kl_value *kept[KEEP] = {0};
    for (int round = 0; round < ROUNDS || !atomic_load(&c->done); round++) {
        for (int i = 0; i < 20; i++) {
            const kl_value **at = &kept[kl_random_next(&r) % KEEP];
            kl_value_unref(*at);
            *at = read_one(c, &r);
        }
        if (round % 8 == me->me)
            read_lists(c, &r);
        if (round % 64 == me->me)
            use_own_index(c, me->me);
        assert_true(kl_indexer_count(c->ix) <= OBJECTS);
        atomic_fetch_add(&c->rounds[me->me], 1);
    }
    for (int i = 0; i < KEEP; i++)
        kl_value_unref(kept[i]);
}

static bool all_had_their_rounds(crowd *c)
{
    for (int i = 0; i < READERS; i++)
        if (atomic_load(&c->rounds[i]) < ROUNDS)
            return false;
    return true;
}

static void write_on(crowd *c)
{
    kl_random r = {99};
    const kl_value *page[OBJECTS], *old;
    int rv = 0, batch = 0;
    do {
        size_t n = 0;
        kl_changes changes;
        batch++;
        for (int i = 0; i < OBJECTS; i++)
            if (kl_random_next(&r) % 10)
                page[n++] = object(i, batch, ++rv);
        kl_indexer_replace(c->ix, page, n, NULL, &changes);
        kl_changes_fini(&changes);
        for (size_t i = 0; i < n; i++)
            kl_value_unref(page[i]);
        for (int i = 0; i < 100; i++) { /* within the batch: some come, go, change */
            const kl_value *o = object((int)(kl_random_next(&r) % OBJECTS), batch, ++rv);
            if (kl_random_next(&r) % 3)
                kl_indexer_put(c->ix, o, kl_object_rv(o), &old);
            else
                old = kl_indexer_remove(c->ix, o, NULL);
            kl_value_unref(old);
            kl_value_unref(o);
        }
        kl_indexer_sweep(c->ix);
    } while (!all_had_their_rounds(c));
    atomic_store(&c->done, true);
}

static void readers_see_whole_versions_and_nothing_is_left_behind(void **state)
{
    (void)state;
    size_t nodes_before, nodes, bytes;
    kl_value_memory(&nodes_before, &bytes);
    crowd c = {.ix = kl_indexer_new()};
    kl_err err = KL_ERR_INIT;
    kl_thread *t[READERS];
    reader who[READERS];
    assert_ok(kl_indexer_add_path(c.ix, "node", "spec.nodeName", &err), &err);
    for (int i = 0; i < READERS; i++) {
        who[i] = (reader){&c, i};
        t[i] = kl_thread_start("reader", read_on, &who[i]);
    }
    write_on(&c);
    for (int i = 0; i < READERS; i++)
        kl_thread_join(t[i]);
    kl_indexer_free(c.ix);
    kl_value_memory(&nodes, &bytes);
    assert_int_equal(nodes, nodes_before);
}

/* --- what readers may still see ----------------------------------------------------------- */

static void put(kl_indexer *ix, int n, int rv)
{
    const kl_value *o = object(n, 0, rv), *old;
    kl_indexer_put(ix, o, kl_object_rv(o), &old);
    kl_value_unref(old);
    kl_value_unref(o);
}

static void take(kl_indexer *ix, int n)
{
    const kl_value *o = object(n, 0, 1);
    kl_value_unref(kl_indexer_remove(ix, o, NULL));
    kl_value_unref(o);
}

static size_t waiting(const kl__limbos *l) { return l->len - l->from; }

static void data_visible_to_a_reader_lives_until_it_leaves(void **state)
{
    (void)state;
    size_t nodes_before, nodes, bytes;
    kl_value_memory(&nodes_before, &bytes);
    kl_indexer *ix = kl_indexer_new();
    put(ix, 1, 1);
    kl__sight s = kl__look(ix);
    take(ix, 1);
    put(ix, 2, 2);
    put(ix, 2, 3);
    /* the number of the first is not the second's: the reader knows it */
    assert_int_equal(ix->objects.end, 2);
    assert_int_equal(waiting(&ix->edit.values), 2);
    assert_int_equal(s.v->all.len, 1);
    kl__order order = kl__order_in(&s);
    assert_string_equal(order.key(order.of, s.v->all.only).name, "p0001");
    assert_string_equal(kl_object_name(kl__cells_get(&s.v->objects, s.v->all.only)), "p0001");
    kl__look_away(&s);
    put(ix, 2, 4); /* the writer looks back when it writes */
    assert_int_equal(waiting(&ix->edit.values), 0);
    assert_int_equal(waiting(&ix->edit.memory), 0);
    put(ix, 3, 5);
    assert_int_equal(ix->objects.end, 2); /* now it may be */
    kl_indexer_free(ix);
    kl_value_memory(&nodes, &bytes);
    assert_int_equal(nodes, nodes_before);
}

KL_TESTS(cmocka_unit_test(data_visible_to_a_reader_lives_until_it_leaves),
    cmocka_unit_test(readers_see_whole_versions_and_nothing_is_left_behind))
