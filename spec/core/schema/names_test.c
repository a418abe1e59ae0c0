/* names_test.c - the messages about keys and values of labels and about names of objects: which ones, and
 * how many. */
#include "support/test.h"

#include "schema/kinds.h"
#include "schema/names.h"

#define X10 "xxxxxxxxxx"
#define X63 X10 X10 X10 X10 X10 X10 "xxx"
#define X253 X63 "." X63 "." X63 "." X10 X10 X10 X10 X10 X10 "x"

typedef size_t faults_fn(const char *s, const char *out[KL_FAULTS_MAX]);

/* The beginnings of the sentences about s, and no more of them. */
static void assert_faults(faults_fn *of, const char *s, const char *first, const char *second)
{
    const char *out[KL_FAULTS_MAX], *want[] = {first, second};
    size_t n = of(s, out), wanted = (first != NULL) + (second != NULL);
    if (n != wanted)
        fail_msg("%s: %zu faults, not %zu", s, n, wanted);
    for (size_t i = 0; i < n; i++)
        if (strncmp(out[i], want[i], strlen(want[i])) != 0)
            fail_msg("%s: %s, not %s", s, out[i], want[i]);
}

static void keys_of_labels_are_names_with_a_prefix(void **state)
{
    (void)state;
    faults_fn *key = kl__qualified_faults;
    static const char name[] = "name part must consist",
                      prefix[] = "prefix part a lowercase RFC 1123 subdomain";
    assert_faults(key, "a", NULL, NULL);
    assert_faults(key, "example.com/A_b.c-1", NULL, NULL);
    assert_faults(key, X63, NULL, NULL);
    assert_faults(key, X253 "/a", NULL, NULL);
    assert_faults(key, "", "name part must be non-empty", name);
    assert_faults(key, "/a", "prefix part must be non-empty", NULL);
    assert_faults(key, "a/", "name part must be non-empty", name);
    assert_faults(key, "a/b/c", "a qualified name must consist", NULL);
    assert_faults(key, "A/b", prefix, NULL);
    assert_faults(key, "A/-b", prefix, name);
    assert_faults(key, X253 "x/a", "prefix part must be no more than 253", NULL);
    assert_faults(key, X63 "x", "name part must be no more than 63", NULL);
    assert_faults(key, "a b", name, NULL);
}

static void values_of_labels_may_be_empty(void **state)
{
    (void)state;
    faults_fn *value = kl__label_value_faults;
    static const char valid[] = "a valid label must be an empty string";
    assert_faults(value, "", NULL, NULL);
    assert_faults(value, "A_b.c-1", NULL, NULL);
    assert_faults(value, X63, NULL, NULL);
    assert_faults(value, X63 "x", "must be no more than 63", NULL);
    assert_faults(value, "a b", valid, NULL);
    assert_faults(value, "-a", valid, NULL);
    assert_faults(value, "a.", valid, NULL);
    assert_faults(value, "-" X63, "must be no more than 63", valid);
}

static void names_of_objects_follow_their_kind(void **state)
{
    (void)state;
    static const struct {
        const char *group, *plural, *name, *fault;
    } rows[] = {
        {"", "pods", "a.b-c", NULL},
        {"", "pods", "A", KL_NO_SUBDOMAIN},
        {"", "pods", X253, NULL},
        {"", "pods", X253 "x", "must be no more than 253 characters"},
        {"", "namespaces", X63, NULL},
        {"", "namespaces", X63 "x", "must be no more than 63 characters"},
        {"", "namespaces", "a.b", "must not contain dots"},
        {"", "namespaces", "1", NULL},
        {"", "namespaces", "A", KL_NO_LABEL},
        {"", "services", "a-1", NULL},
        {"", "services", "1", KL_NO_LABEL_1035},
        {"rbac.authorization.k8s.io", "roles", "A:b c", NULL},
        {"rbac.authorization.k8s.io", "roles", "a/b", "may not contain '/'"},
    };
    kl__types *types = kl__types_builtin();
    kl__kinds *kinds = kl__kinds_new(types);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *version = "v1",
                   *fault = kl__bad_name(
                       kl__kinds_get(kinds, rows[i].group, version, rows[i].plural), rows[i].name);
        if (!fault != !rows[i].fault || (fault && strcmp(fault, rows[i].fault) != 0))
            fail_msg("%s %s: %s", rows[i].plural, rows[i].name, fault ? fault : "fine");
    }
    kl__kinds_free(kinds);
    kl__types_free(types);
}

KL_TESTS(cmocka_unit_test(keys_of_labels_are_names_with_a_prefix),
    cmocka_unit_test(values_of_labels_may_be_empty), cmocka_unit_test(names_of_objects_follow_their_kind))
