/* patch_test.c - merge patches and JSON patches: the examples of their RFCs, and the law that diff then
 * apply gives the goal. */
#include "support/test.h"

#include "base/mem.h"
#include "value/patch.h"
#include "support/random_value.h"

static const kl_value *decode(const char *text)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static void assert_value(const kl_value *v, const char *want)
{
    const kl_value *w = decode(want);
    if (!kl_value_equal(v, w)) {
        char *got = kl_value_to_json(v);
        fail_msg("got %s, wanted %s", got, want);
    }
    kl_value_unref(w);
}

/* RFC 7386, appendix A. */
static void merges_as_the_rfc_says(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"a\":\"foo\"}", "null", "null"},
        {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kl_value *doc = decode(cases[i][0]), *patch = decode(cases[i][1]),
                       *out = kl_merge_patch_apply(doc, patch);
        assert_value(out, cases[i][2]);
        kl_value_unref(doc);
        kl_value_unref(patch);
        kl_value_unref(out);
    }
    const kl_value *patch = decode("{\"a\":1,\"b\":null}"), *out = kl_merge_patch_apply(NULL, patch);
    assert_value(out, "{\"a\":1}");
    kl_value_unref(patch);
    kl_value_unref(out);
}

static void finds_the_least_merge_patch(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"{\"a\":1,\"b\":{\"x\":1,\"y\":2}}", "{\"a\":1,\"b\":{\"x\":1,\"y\":3}}", "{\"b\":{\"y\":3}}"},
        {"{\"a\":1,\"b\":2}", "{\"b\":2}", "{\"a\":null}"},
        {"{\"a\":[1,2]}", "{\"a\":[1,2,3]}", "{\"a\":[1,2,3]}"},
        {"{\"a\":1}", "{\"a\":1.0}", "{}"},
        {"{\"a\":1}", "{\"a\":{}}", "{\"a\":{}}"},
        {"{\"a\":{\"b\":1}}", "{\"a\":{}}", "{\"a\":{\"b\":null}}"},
        {"[1]", "[1]", "[1]"},
        {"7", "7", "7"},
        {"{}", "{}", "{}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kl_value *from = decode(cases[i][0]), *to = decode(cases[i][1]),
                       *patch = kl_merge_patch_create(from, to);
        assert_value(patch, cases[i][2]);
        kl_value_unref(from);
        kl_value_unref(to);
        kl_value_unref(patch);
    }
}

static void applying_the_difference_gives_the_goal(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        rng r = rng_of(seed);
        const kl_value *from = random_object(&r, false), *to = random_object(&r, false);
        const kl_value *patch = kl_merge_patch_create(from, to), *got = kl_merge_patch_apply(from, patch);
        if (!kl_value_equal(got, to))
            fail_msg("seed %d: patch %s", (int)seed, kl_value_to_json(patch));
        kl_value_unref(from);
        kl_value_unref(to);
        kl_value_unref(patch);
        kl_value_unref(got);
    }
}

/* "" for want: the patch must fail with `status` and a message that has `part`. */
typedef struct json_case {
    const char *doc, *patch, *want;
    kl_status status;
    const char *part;
} json_case;

static void edits_as_the_api_server_does(void **state)
{
    (void)state;
    static const json_case cases[] = {
        {"{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]",
            "{\"foo\":\"bar\",\"baz\":\"qux\"}", 0, 0},
        {"{\"foo\":[\"bar\",\"baz\"]}", "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]",
            "{\"foo\":[\"bar\",\"qux\",\"baz\"]}", 0, 0},
        {"{\"foo\":[1]}",
            "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":[2]},{\"op\":\"add\",\"path\":\"/foo/"
            "2\",\"value\":3}]",
            "{\"foo\":[1,[2],3]}", 0, 0},
        {"{\"foo\":{\"a\":[{\"b\":1}]}}", "[{\"op\":\"replace\",\"path\":\"/foo/a/0/b\",\"value\":2}]",
            "{\"foo\":{\"a\":[{\"b\":2}]}}", 0, 0},
        {"{\"foo\":[1,2,3]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]", "{\"foo\":[1,3]}", 0, 0},
        {"{\"foo\":{\"bar\":\"baz\",\"waldo\":\"fred\"},\"qux\":{}}",
            "[{\"op\":\"move\",\"from\":\"/foo/waldo\",\"path\":\"/qux/thud\"}]",
            "{\"foo\":{\"bar\":\"baz\"},\"qux\":{\"thud\":\"fred\"}}", 0, 0},
        {"{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}",
            "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
            "{\"foo\":[\"all\",\"cows\",\"eat\",\"grass\"]}", 0, 0},
        {"{\"a\":{\"b\":1}}",
            "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"},{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/"
            "a\"}]",
            "{\"c\":{\"b\":1},\"a\":{\"b\":1}}", 0, 0},
        {"{\"a/b\":1,\"m~n\":2,\"\":3}",
            "[{\"op\":\"test\",\"path\":\"/a~1b\",\"value\":1.0},{\"op\":\"test\",\"path\":\"/"
            "m~0n\",\"value\":2},{\"op\":\"test\",\"path\":\"/\",\"value\":3},{\"op\":\"remove\",\"path\":\"/"
            "a~1b\"}]",
            "{\"m~n\":2,\"\":3}", 0, 0},
        {"{\"a\":1}",
            "[{\"op\":\"add\",\"path\":\"\",\"value\":[]},{\"op\":\"test\",\"path\":\"\",\"value\":[]}]",
            "[]", 0, 0},
        {"{\"a\":1}", "[]", "{\"a\":1}", 0, 0},
        {"{\"a\":null}",
            "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null},{\"op\":\"replace\",\"path\":\"/"
            "a\",\"value\":null}]",
            "{\"a\":null}", 0, 0},
        {"{\"baz\":\"qux\"}",
            "[{\"op\":\"add\",\"path\":\"/x\",\"value\":1},{\"op\":\"test\",\"path\":\"/"
            "baz\",\"value\":\"bar\"}]",
            "", KL_EREJECTED, "operation 2 (test /baz) cannot be applied: the value differs"},
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b/c\",\"value\":1}]", "", KL_EREJECTED,
            "the path does not exist"},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a\\u0000b\"}]", "", KL_EINVAL,
            "path must be a JSON pointer"},
        {"{\"a\":1}", "[{\"op\":\"remove\\u0000\",\"path\":\"/a\"}]", "", KL_EINVAL, "op must be one of"},
        {"{\"a\":1}", "[{\"op\":\"move\",\"path\":\"/b\",\"from\":\"/a\\u0000\"}]", "", KL_EINVAL,
            "from must be a JSON pointer"},
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/c\",\"value\":1}]", "", KL_EREJECTED,
            "neither object nor list"},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":1}]", "{\"a\":1,\"b\":1}", 0, 0},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", "", KL_EREJECTED, "does not exist"},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"\"}]", "", KL_EREJECTED, "whole document"},
        {"{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"/b\",\"path\":\"/c\"}]", "{\"a\":1,\"c\":null}", 0, 0},
        {"{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"/b/d\",\"path\":\"/c\"}]", "", KL_EREJECTED,
            "from does not exist"},
        {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/b\",\"path\":\"/c\"}]", "", KL_EREJECTED,
            "from does not exist"},
        {"{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/c\"}]", "", KL_EINVAL,
            "from must name a part"},
        {"{\"a\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", "", KL_EREJECTED,
            "into itself"},
        {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":null}]", "{\"a\":1}", 0, 0},
        {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":1}]", "", KL_EREJECTED, ""},
        {"[1]", "[{\"op\":\"add\",\"path\":\"/2\",\"value\":1}]", "", KL_EREJECTED, "no such index"},
        {"[1]", "[{\"op\":\"remove\",\"path\":\"/-\"}]", "", KL_EREJECTED, "no such index"},
        {"[1]", "[{\"op\":\"replace\",\"path\":\"/00\",\"value\":2}]", "[2]", 0, 0},
        {"[1,2]", "[{\"op\":\"remove\",\"path\":\"/-1\"},{\"op\":\"add\",\"path\":\"/-1\",\"value\":3}]",
            "[1,3]", 0, 0},
        {"[1,2]", "[{\"op\":\"remove\",\"path\":\"/-3\"}]", "", KL_EREJECTED, "no such index"},
        {"[1]", "[{\"op\":\"remove\",\"path\":\"/1234567890\"}]", "", KL_EREJECTED, "no such index"},
        {"{}", "null", "{}", 0, 0},
        {"7", "[]", "", KL_EREJECTED, "not a document of type"},
        {"[1]", "[{\"op\":\"test\",\"path\":\"/1e0\",\"value\":1}]", "", KL_EREJECTED, "does not exist"},
        {"{}", "{}", "", KL_EINVAL, "a list of operations, not of type object"},
        {"{}", "[{\"op\":\"spam\",\"path\":\"/a\"}]", "", KL_EINVAL,
            "operation 1 is malformed: op must be one of"},
        {"{}", "[{\"path\":\"/a\"}]", "", KL_EINVAL, "op must be"},
        {"{}", "[{\"op\":\"add\",\"value\":1}]", "", KL_EINVAL, "path must be"},
        {"{}", "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", "", KL_EINVAL, "path must be"},
        {"{}", "[{\"op\":\"add\",\"path\":\"/a~2\",\"value\":1}]", "{\"a~2\":1}", 0, 0},
        {"{}", "[{\"op\":\"add\",\"path\":\"/a\"}]", "{\"a\":null}", 0, 0},
        {"{}", "[{\"op\":\"replace\",\"path\":\"/a\"}]", "", KL_EINVAL, "value is missing"},
        {"{}", "[{\"op\":\"move\",\"path\":\"/a\"}]", "", KL_EINVAL, "from must be"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_err err = KL_ERR_INIT;
        const kl_value *doc = decode(cases[i].doc), *patch = decode(cases[i].patch), *out = NULL;
        if (*cases[i].want) {
            assert_ok(kl_json_patch_apply(doc, patch, &out, &err), &err);
            assert_value(out, cases[i].want);
        } else {
            assert_fails(kl_json_patch_apply(doc, patch, &out, &err), cases[i].status, &err, cases[i].part);
            assert_null(out);
        }
        assert_value(doc, cases[i].doc);
        kl_value_unref(doc);
        kl_value_unref(patch);
        kl_value_unref(out);
    }
}

/* Each operation doubles the document: 2^60 parts out of 2 KB. */
static void copies_of_copies_have_an_end(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    kl_err err = KL_ERR_INIT;
    kl_buf_putc(&b, '[');
    for (int i = 0; i < 60; i++)
        kl_buf_printf(&b, "%s{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/k%d\"}", i ? "," : "", i);
    kl_buf_putc(&b, ']');
    const kl_value *doc = decode("{\"a\":{\"b\":[1,2,3]}}"), *patch = decode(kl_buf_str(&b)), *out = NULL;
    assert_fails(kl_json_patch_apply(doc, patch, &out, &err), KL_EREJECTED, &err,
        "the copies of this patch hold more than 3 MiB together");
    assert_null(out);
    kl_value_unref(patch);
    kl_value_unref(doc);
    kl_buf_fini(&b);
}

/* Each operation makes a list or an object of 20,000 members anew. */
static void operations_on_large_containers_have_an_end(void **state)
{
    (void)state;
    static const char *const ops[] = {"{\"op\":\"add\",\"path\":\"/a/0\",\"value\":1}",
        "{\"op\":\"add\",\"path\":\"/o/x\",\"value\":1}",
        "{\"op\":\"move\",\"from\":\"/a/0\",\"path\":\"/a/9\"}"};
    kl_buf text = KL_BUF_INIT;
    kl_buf_puts(&text, "{\"a\":[0");
    for (int i = 1; i < 20000; i++)
        kl_buf_printf(&text, ",%d", i);
    kl_buf_puts(&text, "],\"o\":{\"k\":0");
    for (int i = 1; i < 20000; i++)
        kl_buf_printf(&text, ",\"k%d\":0", i);
    kl_buf_puts(&text, "}}");
    const kl_value *doc = decode(kl_buf_str(&text));
    for (size_t k = 0; k < 3; k++) {
        kl_buf b = KL_BUF_INIT;
        kl_err err = KL_ERR_INIT;
        for (int i = 0; i < 2000; i++)
            kl_buf_printf(&b, "%c%s", i ? ',' : '[', ops[k]);
        kl_buf_putc(&b, ']');
        const kl_value *patch = decode(kl_buf_str(&b)), *out = NULL;
        assert_fails(kl_json_patch_apply(doc, patch, &out, &err), KL_EREJECTED, &err,
            "more than 10 million members together");
        assert_null(out);
        kl_value_unref(patch);
        kl_buf_fini(&b);
    }
    kl_value_unref(doc);
    kl_buf_fini(&text);
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(merges_as_the_rfc_says), CASE(finds_the_least_merge_patch),
    CASE(applying_the_difference_gives_the_goal), CASE(edits_as_the_api_server_does),
    CASE(copies_of_copies_have_an_end), CASE(operations_on_large_containers_have_an_end))

/* not in tsan: it starts no thread */
