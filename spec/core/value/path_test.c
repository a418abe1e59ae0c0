/* path_test.c - the paths in which users name fields. */
#include "support/test.h"

#include "value/path.h"
#include "support/random_value.h"

static const char DOC[] = "{\"metadata\":{\"labels\":{\"app.kubernetes.io/"
                          "name\":\"web\",\"a]b\":\"odd\",\"7\":\"seven\",\"\":\"empty\"}},\"spec\":{\"c\":[{"
                          "\"n\":\"one\"},{\"n\":\"two\",\"p\":[[1,2],[3]]}]}}";

static void finds_what_is_named(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"metadata.labels[app.kubernetes.io/name]", "\"web\""},
        {"metadata.labels[\"app.kubernetes.io/name\"]", "\"web\""},
        {"metadata.labels['a]b']", "\"odd\""},
        {"metadata.labels['7']", "\"seven\""},
        {"metadata.labels.7", "\"seven\""},
        {"metadata.labels['']", "\"empty\""},
        {"[spec][c][2].n", "\"two\""},
        {"spec.c[1].n", "\"one\""},
        {"spec.c[2].p[1][2]", "2"},
        {"spec.c[2].p[2]", "[3]"},
        {"spec.c[3]", NULL},
        {"spec.c.n", NULL},
        {"spec[1]", NULL},
        {"nope.deeper", NULL},
        {"metadata.labels[7]", NULL},
    };
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_value_decode(DOC, sizeof DOC - 1, &v, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_path *p = NULL;
        assert_ok(kl_path_parse(cases[i][0], &p, &err), &err);
        assert_string_equal(kl_path_text(p), cases[i][0]);
        const kl_value *got = kl_path_get(p, v);
        if (cases[i][1]) {
            char *text = kl_value_to_json(got);
            assert_string_equal(text, cases[i][1]);
            free(text);
        } else {
            assert_null(got);
        }
        assert_null(kl_path_get(p, NULL));
        /* nor does it matter what was followed before */
        assert_ptr_equal(kl_path_find(p, v), got);
        assert_null(kl_path_find(p, NULL));
        assert_ptr_equal(kl_path_find(p, v), got);
        kl_path_free(p);
    }
    kl_path_free(NULL);
    kl_value_unref(v);
}

static void refuses_what_names_nothing(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "nothing at column 1"},
        {".a", "a missing key at column 1"},
        {"a.", "a missing key at column 2"},
        {"a..b", "a missing key"},
        {"a[", "not closed"},
        {"a[]", "empty brackets"},
        {"a[0]", "index 0, but lists count from 1"},
        {"a['x]", "closing quote"},
        {"a]", "unexpected ']'"},
        {"a[1]b", "a missing key at column 5"},
        {"a.[1]", "a missing key"},
        {"a[99999999999999999999999]", "too large"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_err err = KL_ERR_INIT;
        kl_path *p = NULL;
        assert_fails(kl_path_parse(cases[i][0], &p, &err), KL_EINVAL, &err, cases[i][1]);
        assert_null(p);
    }
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(finds_what_is_named), CASE(refuses_what_names_nothing))

/* not in tsan: it starts no thread */
