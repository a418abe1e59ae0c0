/* spec_diff_test.c - the differences between two specs, in words. */
#include "support/test.h"

#include "base/mem.h"
#include "controller/spec_diff.h"

static void assert_diff(const kl_controller_spec *a, const kl_controller_spec *b, const char *want)
{
    kl_buf out = KL_BUF_INIT;
    kl_spec_diff_controller(a, b, &out);
    assert_string_equal(kl_buf_str(&out), want);
    kl_buf_fini(&out);
}

static void equal_specs_have_no_difference(void **state)
{
    (void)state;
    char *words[] = {"generation", NULL}, *words_again[] = {"generation", NULL};
    kl_controller_spec a = {.name = "c", .resource = "v1/Pod", .when.words = words, .workers = 2}, b = a;
    b.when.words = words_again;
    assert_diff(&a, &b, "");
}

static void each_key_has_its_words(void **state)
{
    (void)state;
    char *words[] = {"generation", NULL}, *reads[] = {"v1/Node", NULL}, *spaces[] = {"a", "b", NULL},
         *fewer[] = {"b", NULL};
    kl_watch_spec via = {.kind = "v1/Secret", .how = KL_MAP_VIA, .via = "src"},
                  owner = {.kind = "v1/Secret", .how = KL_MAP_OWNER};
    kl_index_spec src = {.kind = "v1/Pod", .name = "src", .path = "spec.a"},
                  other = {.kind = "v1/Pod", .name = "src", .path = "spec.b"};
    kl_owned_spec owned = {.kind = "v1/ConfigMap"};
    kl_controller_spec a = {.name = "c", .resource = "v1/Pod", .namespaces = spaces};
    kl_controller_spec b = {.name = "c",
        .resource = "v1/Pod",
        .namespaces = fewer,
        .when.words = words,
        .reads = reads,
        .workers = 4,
        .timeout = KL_SECONDS(2)};
    assert_diff(&a, &b,
        "no namespace a, `when` changed, new informer v1/Node, workers default -> 4, timeout default -> 2s");
    assert_diff(&b, &a,
        "new namespace a, `when` changed, no informer v1/Node, workers 4 -> default, timeout 2s -> default");
    a = (kl_controller_spec){
        .name = "c", .resource = "v1/Pod", .watches = &via, .n_watches = 1, .indexes = &src, .n_indexes = 1};
    b = (kl_controller_spec){.name = "c",
        .resource = "v1/Pod",
        .watches = &owner,
        .n_watches = 1,
        .indexes = &other,
        .n_indexes = 1,
        .owns = &owned,
        .n_owns = 1};
    assert_diff(&a, &b,
        "new informer v1/ConfigMap, watch of v1/Secret changed, owns v1/ConfigMap, index src changed");
    b = (kl_controller_spec){.name = "c",
        .resource = "v1/Pod",
        .finalizer = "x/y",
        .give_up = 3,
        .backoff = {.max = KL_SECONDS(9)}};
    assert_diff(&a, &b,
        "no informer v1/Secret, watches v1/Secret no more, no index src, backoff changed, give_up default -> "
        "3, finalizer none -> x/y");
}

static void controllers_come_and_go(void **state)
{
    (void)state;
    kl_controller_spec old[] = {{.name = "a", .resource = "v1/Pod"}, {.name = "b", .resource = "v1/Pod"}};
    kl_controller_spec now[] = {{.name = "c", .resource = "v1/Pod"}, {.name = "a", .resource = "v1/Node"}};
    kl_program p = {.specs = old, .n_specs = 2}, q = {.specs = now, .n_specs = 2};
    kl_buf out = KL_BUF_INIT;
    kl_spec_diff(&p, &q, &out);
    assert_string_equal(kl_buf_str(&out),
        "new controller c; a: resource v1/Pod -> v1/Node, new informer v1/Node, no informer v1/Pod; no "
        "controller b any more");
    kl_buf_fini(&out);
}

KL_TESTS(cmocka_unit_test(equal_specs_have_no_difference), cmocka_unit_test(each_key_has_its_words),
    cmocka_unit_test(controllers_come_and_go))

/* not in tsan: it starts no thread */
