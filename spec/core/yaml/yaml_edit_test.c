/* yaml_edit_test.c - an edit changes one string and no other byte. */
#include "support/test.h"

#include "base/mem.h"
#include "yaml/yaml.h"

static kl_err err;

static kl_status set(const char *text, const char *const *steps, const char *value, char **out)
{
    kl_buf b = KL_BUF_INIT;
    kl_status st = kl_yaml_set_string("f", text, strlen(text), steps, value, &b, &err);
    if (!st)
        *out = kl_strdup(kl_buf_str(&b));
    kl_buf_fini(&b);
    return st;
}

static const char *const steps[] = {"list", "name=b", "map", "key", NULL};

static void a_string_changes_in_place_in_every_style(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"# c\nlist:\n- name: a\n  map: {key: x}\n- name: b\n  map: {key: old, z: 1} # d\n",
            "# c\nlist:\n- name: a\n  map: {key: x}\n- name: b\n  map: {key: \"n\\\"w\", z: 1} # d\n"},
        {"list: [{name: b, map: {key: 'old'}}]", "list: [{name: b, map: {key: \"n\\\"w\"}}]"},
        {"{\"list\":[{\"name\":\"b\",\"map\":{\"key\":\"\\u00e9\"}}]}",
            "{\"list\":[{\"name\":\"b\",\"map\":{\"key\":\"n\\\"w\"}}]}"},
        {"list:\n- map:\n    key: |\n      two\n      lines\n    z: 1\n  name: b\n",
            "list:\n- map:\n    key: \"n\\\"w\"\n    z: 1\n  name: b\n"},
        {"list:\n- name: b\n  map:\n    key:\n    z: 1\n",
            "list:\n- name: b\n  map:\n    key: \"n\\\"w\"\n    z: 1\n"},
        {"é: ü\nlist:\n- name: b\n  map:\n    ö: 1\n    key: ä\n",
            "é: ü\nlist:\n- name: b\n  map:\n    ö: 1\n    key: \"n\\\"w\"\n"},
        {"list:\n- name: b\n  map:\n    z: 1\n    y: 2\n",
            "list:\n- name: b\n  map:\n    \"key\": \"n\\\"w\"\n    z: 1\n    y: 2\n"},
        {"list:\n- name: b\n  map: { z: 1 }\n", "list:\n- name: b\n  map: { \"key\": \"n\\\"w\", z: 1 }\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out = NULL;
        assert_ok(set(cases[i][0], steps, "n\"w", &out), &err);
        assert_string_equal(out, cases[i][1]);
        kl_free(out);
    }
}

static void a_path_to_nothing_is_named(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "f: there is no list"},
        {"", "f: there is no list"},
        {"list: []", "f: there is no name=b"},
        {"list: [x, {name: c}]", "f: there is no name=b"},
        {"list: [{name: b}]", "f: there is no map"},
        {"list: [{name: b, map: {}}]", "f: key cannot be set"},
        {"list: [{name: b, map: x}]", "f: key cannot be set"},
        {"list: [{name: b, map: {key: []}}]", "f: key cannot be set"},
    };
    char *out = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(set(cases[i][0], steps, "x", &out), KL_ENOTFOUND, &err, cases[i][1]);
    assert_fails(set("a: [", steps, "x", &out), KL_ESYNTAX, &err, "f:2: ");
}

KL_TESTS(
    cmocka_unit_test(a_string_changes_in_place_in_every_style), cmocka_unit_test(a_path_to_nothing_is_named))

/* not in tsan: it starts no thread */
