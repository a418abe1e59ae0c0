/* definitions_test.c - the definitions of the Kubernetes API: found by name, and marked with their
 * dependencies. */
#include "support/json.h"

#include "openapi/definitions.h"

static void definitions_are_sorted_and_found_by_name_and_by_their_end(void **state)
{
    (void)state;
    kl__definitions d;
    kl__definitions_open(&d);
    assert_true(d.len > 500);
    for (size_t i = 0; i < d.len; i++) {
        assert_ptr_equal(kl__definitions_get(&d, d.v[i].name), &d.v[i]);
        assert_int_equal(d.v[i].json[0], '{');
        assert_int_equal(d.v[i].json[d.v[i].json_len - 1], '}');
        assert_false(d.v[i].wanted);
        if (i)
            assert_true(strcmp(d.v[i - 1].name, d.v[i].name) < 0);
    }
    assert_ptr_equal(
        kl__definitions_ending(&d, "core.v1.Pod"), kl__definitions_get(&d, "io.k8s.api.core.v1.Pod"));
    assert_null(kl__definitions_ending(&d, "ore.v1.Pod"));
    assert_null(kl__definitions_get(&d, "core.v1.Pod"));
    assert_null(kl__definitions_get(&d, ""));
    kl__definitions_close(&d);
}

static bool wanted(const kl__definitions *d, const char *name)
{
    return kl__definitions_get(d, name)->wanted;
}

static void definitions_include_their_references(void **state)
{
    (void)state;
    kl__definitions d;
    kl__definitions_open(&d);
    kl__definitions_want_one(&d, NULL);
    kl__definitions_want_one(&d, kl__definitions_get(&d, "io.k8s.api.core.v1.Pod"));
    assert_true(wanted(&d, "io.k8s.api.core.v1.Pod"));
    assert_true(wanted(&d, "io.k8s.api.core.v1.Container"));
    assert_true(wanted(&d, "io.k8s.apimachinery.pkg.api.resource.Quantity"));
    assert_false(wanted(&d, "io.k8s.api.core.v1.PodList"));
    const char *const text = "{\"$ref\":\"#/components/schemas/io.k8s.api.core.v1.PodList\"} "
                             "{\"$ref\":\"#/components/schemas/x\"}";
    kl__definitions_want(&d, text, 20);
    assert_false(wanted(&d, "io.k8s.api.core.v1.PodList"));
    kl__definitions_want(&d, text, strlen(text));
    assert_true(wanted(&d, "io.k8s.api.core.v1.PodList"));
    kl__definitions_close(&d);
}

KL_TESTS(cmocka_unit_test(definitions_are_sorted_and_found_by_name_and_by_their_end),
    cmocka_unit_test(definitions_include_their_references))

/* not in tsan: it starts no thread */
