/* differences_test.c - the kinds of differences, and their counts in a report. */
#include "support/json.h"

#include "lab/differences.h"

static void kind_is(const char *want, kl_buf *kind)
{
    assert_string_equal(want, kl_buf_str(kind));
    kl_buf_fini(kind);
}

static void fields_count_and_values_do_not(void **state)
{
    (void)state;
    const kl_value *a = json("{'data':{'a':'1','n-12':'x'}}"), *b = json("{'data':{'a':'2','n-13':'x'}}");
    kl_buf kind = KL_BUF_INIT;
    kl_kind_add(&kind, "ns/n-12", "patch v1/ConfigMap", a, b);
    kind_is("patch v1/ConfigMap: data.a, data.* gone, data.n-# new", &kind);
    kl_kind_add(&kind, "ns/x", "patch v1/ConfigMap", a, a);
    kl_kind_add(&kind, "ns/x", "delete v1/Secret", a, NULL);
    kind_is("patch v1/ConfigMap; delete v1/Secret: data gone", &kind);
    kl_value_unref(a);
    kl_value_unref(b);
}

static void messages_count_by_their_words_and_lines(void **state)
{
    (void)state;
    kl_buf kind = KL_BUF_INIT;
    kl_kind_text(&kind, "ns/web", "result: error -> done", "a.lua:12: web has 3 of \"x\" in webs, not 42");
    kind_is("result: error -> done: a.lua:12: * has # of \"*\" in webs, not #", &kind);
    char *text = kl_sprintf("%02000d", 0);
    for (char *c = text; *c; c++)
        *c = 'x';
    kl_kind_text(&kind, "ns/web", "result", text);
    assert_int_equal(kind.len, 1024);
    kl_buf_fini(&kind);
    kl_free(text);
    char *word = kl_kind_word("POST https://example.com:8443/a?b");
    assert_string_equal("POST https://example.com:8443", word);
    kl_free(word);
    word = kl_kind_word("configmaps ns/a");
    assert_string_equal("configmaps", word);
    kl_free(word);
}

static void the_commonest_comes_first_and_the_first_of_each_is_kept(void **state)
{
    (void)state;
    kl_differences *d = kl_differences_new();
    char key[] = "k0";
    kl_likes *rare = kl_differences_add(d, &(kl_likes){"c", key, "rare", "r", 1, 0});
    for (int i = 1; i < 4; i++) {
        key[1] = (char)('0' + i);
        kl_differences_add(d, &(kl_likes){"c", key, "common", "t", 1, 0});
    }
    kl_differences_add(d, &(kl_likes){"c", key, "common", "t", 2, 0}); /* worse, so another */
    kl_likes **all = kl_differences_sorted(d);
    assert_string_equal("common", all[0]->kind);
    assert_int_equal(3, all[0]->n);
    assert_string_equal("k1", all[0]->key);
    assert_string_equal("rare", all[1]->kind);
    assert_int_equal(2, all[2]->verdict);
    assert_null(all[3]);
    kl_free(all);
    rare->n--;
    all = kl_differences_sorted(d);
    assert_int_equal(2, all[1]->verdict);
    assert_null(all[2]);
    kl_free(all);
    for (int i = 0; i < 1000; i++) {
        char *kind = kl_sprintf("kind %d", i);
        kl_differences_add(d, &(kl_likes){"c", key, kind, "t", 1, 0});
        kl_free(kind);
    }
    all = kl_differences_sorted(d);
    assert_string_equal("", all[0]->kind); /* those for which there was no room */
    assert_true(all[0]->n > 400);
    kl_free(all);
    kl_differences_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_count_and_values_do_not),
        cmocka_unit_test(messages_count_by_their_words_and_lines),
        cmocka_unit_test(the_commonest_comes_first_and_the_first_of_each_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
