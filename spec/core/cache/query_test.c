/* query_test.c - how a list is answered: when an index is built, and that it is freed. indexer_model_test.c
 * checks the answers. */
#include "support/test.h"

#include "base/mem.h"
#include "cache/indexer_impl.h"
#include "model/object.h"

#define OBJECTS 1000

static const kl_value *object(int n)
{
    char text[300];
    const kl_value *o = NULL;
    int k = snprintf(text, sizeof text,
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"p%d\",\"uid\":\"u%d\",\"resourceVersion\":\"1\","
        "\"labels\":{\"app\":\"a%d\",\"tier\":\"t%d\"}},"
        "\"spec\":{\"node\":\"n%d\"}}",
        n, n, n % 100, n % 2, n % 10);
    assert_int_equal(kl_value_decode(text, (size_t)k, &o, NULL), KL_OK);
    return o;
}

static kl_indexer *filled(void)
{
    kl_indexer *ix = kl_indexer_new();
    const kl_value *page[OBJECTS];
    kl_changes c;
    for (int n = 0; n < OBJECTS; n++)
        page[n] = object(n);
    kl_indexer_replace(ix, page, OBJECTS, "1", &c);
    kl_changes_fini(&c);
    for (int n = 0; n < OBJECTS; n++)
        kl_value_unref(page[n]);
    return ix;
}

static size_t listed(kl_indexer *ix, const char *labels)
{
    kl_selector *s = NULL;
    kl_objects found;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_selector_parse(labels, &s, &err), &err);
    assert_ok(kl_indexer_list(ix, &(kl_query){.labels = s}, &found, &err), &err);
    size_t n = found.len;
    kl_objects_fini(&found);
    kl_selector_free(s);
    return n;
}

static bool has_index(const kl_indexer *ix, const char *label)
{
    const struct kl__listed *l = kl__index_find_label(ix->indexes, label);
    return l && l->ready;
}

static void a_label_that_is_asked_for_again_and_again_gets_an_index(void **state)
{
    (void)state;
    kl_indexer *ix = filled();
    for (int i = 0; i < 3; i++)
        assert_int_equal(listed(ix, "app=a7"), 10);
    assert_false(has_index(ix, "app"));
    assert_int_equal(listed(ix, "app in (a7,a8)"), 20);
    assert_true(has_index(ix, "app"));
    assert_int_equal(listed(ix, "app=a7"), 10);
    assert_int_equal(listed(ix, "app=a7,tier=t1"), 10);
    assert_int_equal(listed(ix, "app=a7,tier=t0"), 0);
    for (int i = 0; i < 10; i++) { /* half of all, and what an index cannot say */
        assert_int_equal(listed(ix, "tier=t1"), OBJECTS / 2);
        assert_int_equal(listed(ix, "tier,tier!=t1,tier notin (t0)"), 0);
    }
    assert_false(has_index(ix, "tier"));
    kl_indexer_free(ix);
}

static size_t listed_between(kl_indexer *ix, const char *ns, const char *value)
{
    kl_objects found;
    kl_err err = KL_ERR_INIT;
    assert_ok(
        kl_indexer_list(ix, &(kl_query){.ns = ns, .index = KL_INDEX_NAMESPACE, .value = value}, &found, &err),
        &err);
    size_t n = found.len;
    kl_objects_fini(&found);
    return n;
}

static void two_namespaces_at_once_hold_nothing(void **state)
{
    (void)state;
    kl_indexer *ix = filled();
    assert_int_equal(listed_between(ix, "ns", "ns"), OBJECTS);
    assert_int_equal(listed_between(ix, "ns", "a"), 0);
    assert_int_equal(listed_between(ix, "a", "ns"), 0);
    assert_int_equal(listed_between(ix, "z", "a"), 0);
    assert_int_equal(listed_between(ix, "a", "z"), 0);
    kl_indexer_free(ix);
}

static void at_most_eight_labels_get_one(void **state)
{
    (void)state;
    kl_indexer *ix = filled();
    char text[32];
    for (int label = 0; label < 20; label++)
        for (int i = 0; i < 10; i++) {
            snprintf(text, sizeof text, "label%d=x", label);
            assert_int_equal(listed(ix, text), 0);
        }
    assert_int_equal(ix->indexes->len, 1 + KL__WISHES); /* and the namespace */
    assert_int_equal(listed(ix, "app=a7"), 10);
    kl_indexer_free(ix);
}

static void a_bucket_goes_with_its_last_object_and_an_index_with_its_last_user(void **state)
{
    (void)state;
    kl_indexer *ix = filled();
    kl_err err = KL_ERR_INIT;
    for (int i = 0; i < 5; i++)
        assert_int_equal(listed(ix, "app=a7"), 10);
    assert_ok(kl_indexer_add_path(ix, "node", "spec.node", &err), &err);
    assert_ok(kl_indexer_add_path(ix, "node", "spec.node", &err), &err);
    /* one more each, of those that have any */
    assert_int_equal(ix->buckets.names.live, 100 + 1 + 10 + 1);
    assert_false(kl_indexer_drop(ix, "node"));
    kl_indexer_sweep(ix);
    assert_int_equal(ix->buckets.names.live, 112);
    assert_true(kl_indexer_drop(ix, "node"));
    kl_indexer_sweep(ix);
    assert_int_equal(ix->buckets.names.live, 101);
    for (int n = 0; n < OBJECTS; n++) {
        const kl_value *o = object(n);
        kl_value_unref(kl_indexer_remove(ix, o, NULL));
        kl_value_unref(o);
    }
    assert_int_equal(ix->buckets.names.live, 0);
    assert_int_equal(ix->objects.names.live, 0);
    assert_null(ix->all.root);
    kl_indexer_free(ix);
}

#define VALUES 1000000

static size_t listed_by(kl_indexer *ix, const char *index, kl_selector_op op, const char *const *values)
{
    kl_objects found;
    kl_err err = KL_ERR_INIT;
    const kl_index_term term = {index, op, values};
    assert_ok(kl_indexer_list(ix, &(kl_query){.terms = &term, .n_terms = 1}, &found, &err), &err);
    size_t n = found.len;
    kl_objects_fini(&found);
    return n;
}

/* As many as a script may give. Each compared with all objects, or all buckets, this took 10 s, in which no
 * budget ends a run. */
static void many_values_cost_what_their_number_says(void **state)
{
    (void)state;
    kl_indexer *ix = filled();
    kl_err err = KL_ERR_INIT;
    static char texts[OBJECTS][16];
    const char **values = kl_new_array(const char *, VALUES + 1);
    assert_ok(kl_indexer_add_path(ix, "uid", "metadata.uid", &err), &err);
    for (size_t i = 0; i < VALUES; i++)
        values[i] = texts[i % OBJECTS];
    for (int i = 0; i < OBJECTS; i++)
        snprintf(texts[i], sizeof texts[i], "u%d", i < OBJECTS / 2 ? i : -i);
    assert_int_equal(listed_by(ix, "uid", KL_SEL_IN, values), OBJECTS / 2);
    assert_int_equal(listed_by(ix, "uid", KL_SEL_NOTIN, values), OBJECTS / 2);
    assert_int_equal(listed_by(ix, KL_INDEX_NAMESPACE, KL_SEL_NOTIN, values), OBJECTS);
    assert_int_equal(listed_by(ix, KL_INDEX_NAMESPACE, KL_SEL_IN, values), 0);
    values[VALUES / 2] = "ns";
    assert_int_equal(listed_by(ix, KL_INDEX_NAMESPACE, KL_SEL_NOTIN, values), 0);
    assert_int_equal(listed_by(ix, KL_INDEX_NAMESPACE, KL_SEL_IN, values), OBJECTS);
    kl_free(values);
    kl_indexer_free(ix);
}

KL_TESTS(cmocka_unit_test(a_label_that_is_asked_for_again_and_again_gets_an_index),
    cmocka_unit_test(two_namespaces_at_once_hold_nothing), cmocka_unit_test(at_most_eight_labels_get_one),
    cmocka_unit_test(many_values_cost_what_their_number_says),
    cmocka_unit_test(a_bucket_goes_with_its_last_object_and_an_index_with_its_last_user))

/* not in tsan: it starts no thread */
