/* value_test.c - values: reads return what was written, equal parts are shared, and nothing is left at the
 * end. */
#include "support/test.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include "base/mem.h"
#include "base/sync.h"
#include "value/json.h"
#include "value/value.h"
#include "support/random_value.h"

static const kl_value *decode(const char *text)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static void assert_json(const kl_value *v, const char *want)
{
    char *got = kl_value_to_json(v);
    assert_string_equal(got, want);
    kl_free(got);
}

/* Decodes, encodes, compares; frees. */
static void assert_decodes(const char *text, const char *want)
{
    const kl_value *v = decode(text);
    assert_json(v, want);
    kl_value_unref(v);
}

static void assert_refused(const char *text, const char *part)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_fails(kl_value_decode(text, strlen(text), &v, &err), KL_ESYNTAX, &err, part);
    assert_null(v);
    assert_int_equal(kl_value_decode(text, strlen(text), &v, NULL), KL_ESYNTAX);
}

static void keeps_integers_exact_to_64_bits(void **state)
{
    (void)state;
    const kl_value *v = decode(
        "[0, -1, 9007199254740993, 9223372036854775807, -9223372036854775808, 9223372036854775808, "
        "18446744073709551615, 4611686018427387904, -4611686018427387905, -0]");
    static const int64_t want[] = {0, -1, 9007199254740993, INT64_MAX, INT64_MIN};
    int64_t x;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(kl_value_type(kl_value_item(v, i)), KL_INT);
        assert_true(kl_value_int(kl_value_item(v, i), &x));
        assert_true(x == want[i]);
    }
    assert_int_equal(kl_value_type(kl_value_item(v, 5)), KL_UINT);
    assert_true(kl_value_uint(kl_value_item(v, 6)) == UINT64_MAX);
    assert_false(kl_value_int(kl_value_item(v, 6), &x));
    assert_true(kl_value_int(kl_value_item(v, 7), &x) && x == (int64_t)1 << 62);
    assert_true(kl_value_int(kl_value_item(v, 8), &x) && x == -((int64_t)1 << 62) - 1);
    assert_json(v,
        "[0,-1,9007199254740993,9223372036854775807,-9223372036854775808,9223372036854775808,"
        "18446744073709551615,4611686018427387904,-4611686018427387905,0]");
    kl_value_unref(v);
}

static void doubles_round_trip(void **state)
{
    (void)state;
    assert_decodes("[0.1,1.5,1e21,1e20,1e-6,1e-7,1.0,100.0,-2.5e-10,5e-324,1.7976931348623157e308,0."
                   "30000000000000004,123456789.125,1E3,-0.0]",
        "[0.1,1.5,1e+21,1e+20,0.000001,1e-7,1,100,-2.5e-10,5e-324,1.7976931348623157e+308,0."
        "30000000000000004,123456789.125,1000,-0]");
    rng r = rng_of(7);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = (uint64_t)rng_next(&r) << 32 | rng_next(&r);
        double x, y;
        memcpy(&x, &bits, sizeof x);
        if (!isfinite(x))
            continue;
        const kl_value *v = kl_value_of_double(x);
        char *text = kl_value_to_json(v);
        const kl_value *back = decode(text);
        y = kl_value_double(back, NAN);
        if (x != y)
            fail_msg("%a became %s became %a", x, text, y);
        kl_free(text);
        kl_value_unref(v);
        kl_value_unref(back);
    }
}

static void numbers_do_not_follow_the_locale(void **state)
{
    (void)state;
    char *old = kl_strdup(setlocale(LC_ALL, NULL));
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8"))
        print_message("no locale with a decimal comma here: only the C locale is tried\n");
    assert_decodes("[1.5,12345678901234567890123.25,0.1234567890123456789]",
        "[1.5,1.2345678901234568e+22,0.12345678901234568]");
    setlocale(LC_ALL, old);
    kl_free(old);
}

static void numbers_no_json_can_say_are_written_as_null(void **state)
{
    (void)state;
    const kl_value *v = kl_value_of_double(INFINITY);
    assert_json(v, "null");
    kl_value_unref(v);
    v = kl_value_of_double(NAN);
    assert_json(v, "null");
    kl_value_unref(v);
}

static void strings_keep_every_byte(void **state)
{
    (void)state;
    const kl_value *v = decode("\"a\\u0000b\\ud83d\\ude00\\n\\/\\u00e9\xe2\x82\xac\"");
    size_t n;
    const char *s = kl_value_strn(v, &n);
    assert_int_equal(n, 14);
    assert_memory_equal(s, "a\0b\xf0\x9f\x98\x80\n/\xc3\xa9\xe2\x82\xac", 15);
    assert_json(v, "\"a\\u0000b\xf0\x9f\x98\x80\\n/\xc3\xa9\xe2\x82\xac\"");
    kl_value_unref(v);
    assert_decodes("[\"\", \"\\b\\f\\r\\t\\u001f\\\"\\\\\"]", "[\"\",\"\\b\\f\\r\\t\\u001f\\\"\\\\\"]");
    v = kl_value_of_strn("ok\xff\xc0\xaf\xed\xa0\x80z", 9);
    assert_string_equal(
        kl_value_str(v), "ok\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
    kl_value_unref(v);
    assert_true(kl_utf8_valid("\xf4\x8f\xbf\xbf", 4));
    assert_false(kl_utf8_valid("\xf4\x90\x80\x80", 4));
    assert_false(kl_utf8_valid("\xe2\x82", 2));
}

static void refuses_what_is_not_json_and_says_where(void **state)
{
    (void)state;
    assert_refused("", "byte 0 (line 1, column 1): the text ends where a value was expected");
    assert_refused("{\"a\": 1,\n  \"b\": }", "byte 16 (line 2, column 8): '}' where a value is expected");
    assert_refused("[1, 2", "the text ends where ',' or ']' was expected");
    assert_refused("[1,]", "']' where a value is expected");
    assert_refused("{\"a\":1,}", "a key in double quotes");
    assert_refused("{a:1}", "a key in double quotes");
    assert_refused("{\"a\" 1}", "':' is expected");
    assert_refused("{\"a\":1} x", "'x' where nothing more is expected");
    assert_refused("{\"a\":1,\"b\":{\"x\":1,\"x\":2}}", "byte 18 (line 1, column 19): duplicate key \"x\"");
    assert_refused("\"\xff\"", "invalid UTF-8");
    assert_refused("\"\xc3\"", "invalid UTF-8");
    assert_refused("\"a\nb\"", "control character");
    assert_refused("\"abc", "the text ends inside a string");
    assert_refused("\"\\", "the text ends inside a string");
    assert_refused("\"\\x\"", "unknown escape");
    assert_refused("\"\\u12g4\"", "four hexadecimal digits");
    assert_refused("\"\\u12", "four hexadecimal digits");
    assert_refused("\"\\ud800\"", "surrogate");
    assert_refused("\"\\udc00\\ud800\"", "surrogate");
    assert_refused("01", "begin with 0");
    assert_refused("-", "a digit");
    assert_refused("1.", "a digit");
    assert_refused("1e", "a digit");
    assert_refused("1e999", "range of a double");
    assert_refused("nul", "'n' where a value");
    assert_refused("\x01", "byte 0x01");
    assert_refused("+1", "'+'");
    assert_refused("NaN", "'N'");
    assert_refused("\xef\xbb\xbf{}", "byte 0xef");
}

static void refuses_duplicate_keys_also_in_wide_objects(void **state)
{
    (void)state;
    for (int dup = 0; dup < 100; dup += 9) {
        kl_buf b = KL_BUF_INIT;
        kl_buf_puts(&b, "{\"o\":{");
        for (int i = 0; i < 100; i++)
            kl_buf_printf(&b, "\"key%d\":{\"key%d\":%d},", i, i, i);
        kl_buf_printf(&b, "\"key%d\":1}}", dup);
        char part[40];
        snprintf(part, sizeof part, "duplicate key \"key%d\"", dup);
        assert_refused(kl_buf_str(&b), part);
        kl_buf_fini(&b);
    }
}

static void goes_512_levels_deep_and_no_further(void **state)
{
    (void)state;
    char text[1100];
    for (size_t depth = 511; depth <= 513; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        if (depth <= 512)
            assert_decodes(text, text);
        else
            assert_refused(text, "deeper than 512");
    }
}

static void built_values_may_be_deeper_than_any_stack(void **state)
{
    (void)state;
    kl_builder *b = kl_builder_new();
    for (int i = 0; i < 300000; i++)
        kl_build_array(b);
    kl_build_int(b, 1);
    for (int i = 0; i < 300000; i++)
        kl_build_end(b);
    const kl_value *v = kl_builder_done(b), *w = kl_value_ref(v);
    kl_buf out = KL_BUF_INIT;
    assert_int_equal(kl_value_encode(v, &out), KL_OK);
    assert_int_equal(out.len, 600001);
    assert_true(kl_value_bytes(v) > 300000);
    assert_true(kl_value_equal(v, w));
    kl_buf_fini(&out);
    kl_value_unref(v);
    kl_value_unref(w);
}

static void keeps_key_order_and_never_mixes_the_empties(void **state)
{
    (void)state;
    assert_decodes(" {\"z\" : {} , \"a\":[ ],\"m\":[{},[],\"\",null,true,false]} ",
        "{\"z\":{},\"a\":[],\"m\":[{},[],\"\",null,true,false]}");
    const kl_value *v = decode("{\"z\":{},\"a\":[]}");
    const char *key;
    size_t n;
    assert_int_equal(kl_value_type(kl_value_member(v, 0, &key, &n)), KL_OBJECT);
    assert_string_equal(key, "z");
    assert_int_equal(n, 1);
    assert_int_equal(kl_value_type(kl_value_member(v, 1, NULL, NULL)), KL_ARRAY);
    assert_null(kl_value_member(v, 2, NULL, NULL));
    kl_value_unref(v);
}

/* What comes from outside may be a text or a list where an object was meant. */
static void what_is_no_object_has_members_without_a_name(void **state)
{
    (void)state;
    static const char *const texts[] = {"[1,2]", "\"text\"", "5", "null", "{}"};
    for (size_t i = 0; i <= sizeof texts / sizeof *texts; i++) {
        const kl_value *v = i < sizeof texts / sizeof *texts ? decode(texts[i]) : NULL;
        const char *key = NULL;
        size_t n = 9;
        assert_null(kl_value_member(v, 0, &key, &n));
        assert_string_equal(key, "");
        assert_int_equal(n, 0);
        kl_value_unref(v);
    }
}

static void reads_absent_and_wrong_types_as_absent(void **state)
{
    (void)state;
    const kl_value *v = decode("{\"s\":\"x\",\"n\":5,\"f\":2.5,\"big\":3.0,\"b\":true,\"a\":[1],\"null\":"
                               "null,\"o\":{\"i\":7,\"s\":\"deep\"}}");
    int64_t x;
    assert_null(kl_value_get(v, "nope"));
    assert_null(kl_value_get(NULL, "s"));
    assert_null(kl_value_get(kl_value_get(v, "s"), "s"));
    assert_null(kl_value_str(kl_value_get(v, "n")));
    assert_null(kl_value_item(kl_value_get(v, "a"), 1));
    assert_null(kl_value_item(v, 0));
    assert_int_equal(kl_value_len(kl_value_get(v, "n")), 0);
    assert_int_equal(kl_value_len(NULL), 0);
    assert_int_equal(kl_value_len(kl_value_get(v, "s")), 1);
    assert_true(kl_value_bool(NULL, true));
    assert_true(kl_value_bool(kl_value_get(v, "b"), false));
    assert_false(kl_value_int(kl_value_get(v, "f"), &x));
    assert_true(kl_value_int(kl_value_get(v, "big"), &x) && x == 3);
    assert_true(kl_value_double(kl_value_get(v, "n"), 0) == 5);
    assert_true(kl_value_double(kl_value_get(v, "s"), -1) == -1);
    assert_int_equal(kl_value_uint(kl_value_get(v, "n")), 0);
    assert_string_equal(kl_value_str_at(v, "o", "s", NULL), "deep");
    assert_null(kl_value_str_at(v, "o", "i", NULL));
    assert_int_equal(kl_value_int_at(v, -1, "o", "i", NULL), 7);
    assert_int_equal(kl_value_int_at(v, -1, "o", "s", NULL), -1);
    assert_null(kl_value_at(v, "o", "i", "j", NULL));
    assert_string_equal(kl_value_type_name(NULL), "absent");
    assert_string_equal(kl_value_type_name(kl_value_get(v, "null")), "null");
    assert_string_equal(kl_value_type_name(kl_value_get(v, "f")), "number");
    assert_string_equal(kl_value_type_name(v), "object");
    kl_value_unref(v);
    kl_value_unref(NULL);
    assert_null(kl_value_ref(NULL));
}

static void finds_every_key_of_a_wide_object(void **state)
{
    (void)state;
    kl_builder *b = kl_builder_new();
    char key[16];
    kl_build_object(b);
    for (int i = 0; i < 3000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        kl_build_key(b, key);
        kl_build_int(b, i);
    }
    kl_build_key(b, "k7");
    kl_build_str(b, "replaced");
    kl_build_key(b, "");
    kl_build_bool(b, true);
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    assert_int_equal(kl_value_len(v), 3001);
    for (int i = 0; i < 3000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        if (i == 7)
            assert_string_equal(kl_value_str(kl_value_get(v, key)), "replaced");
        else
            assert_int_equal(kl_value_int_at(v, -1, key, NULL), i);
    }
    assert_null(kl_value_get(v, "k3000"));
    assert_true(kl_value_bool(kl_value_get(v, ""), false));
    kl_value_unref(v);
}

static void compares_by_value_whatever_the_order_of_keys(void **state)
{
    (void)state;
    const kl_value *a = decode("{\"a\":1,\"b\":[1,2.0,{\"x\":null}]}"),
                   *b = decode("{\"b\":[1.0,2,{\"x\":null}],\"a\":1}"),
                   *c = decode("{\"a\":1,\"b\":[1,2,{\"y\":null}]}");
    assert_true(kl_value_equal(a, b));
    assert_false(kl_value_equal(a, c));
    assert_false(kl_value_equal(a, NULL));
    assert_true(kl_value_equal(NULL, NULL));
    kl_value_unref(a);
    kl_value_unref(b);
    kl_value_unref(c);
    a = decode("[9223372036854775807, 18446744073709551615, 9223372036854775808]");
    b = decode("[9223372036854775807.0, 18446744073709551616.0, 9223372036854775808.0]");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(kl_value_equal(kl_value_item(a, i), kl_value_item(b, i)), i == 2);
    kl_value_unref(a);
    kl_value_unref(b);
}

static void equal_parts_are_one_node(void **state)
{
    (void)state;
    const char *text = "{\"spec\":{\"containers\":[{\"name\":\"web\",\"image\":\"nginx\"}],\"n\":"
                       "12345678901234567890,\"f\":0.5}}";
    const kl_value *a = decode(text);
    size_t nodes, bytes, again;
    kl_value_memory(&nodes, &bytes);
    const kl_value *b = decode(text);
    kl_value_memory(&again, &bytes);
    assert_ptr_equal(a, b);
    assert_int_equal(nodes, again);
    kl_value_unref(a);
    assert_string_equal(
        kl_value_str(kl_value_get(kl_value_item(kl_value_at(b, "spec", "containers", NULL), 0), "image")),
        "nginx");
    kl_value_unref(b);
}

static void a_subtree_outlives_its_root_when_referenced(void **state)
{
    (void)state;
    const kl_value *root = decode("{\"metadata\":{\"labels\":{\"app\":\"web\"}}}");
    const kl_value *labels = kl_value_ref(kl_value_at(root, "metadata", "labels", NULL));
    kl_value_unref(root);
    assert_json(labels, "{\"app\":\"web\"}");
    kl_value_unref(labels);
}

static void objects_are_made_with_the_keys_of_another(void **state)
{
    (void)state;
    const kl_value *like = decode("{\"b\":1,\"a\":{}}"), *same = decode("{\"b\":\"x\",\"a\":[1]}");
    const kl_value *v = kl_value_like(
        like, (const kl_value *const[]){kl_value_of_str("x"), kl_value_ref(kl_value_get(same, "a"))});
    assert_json(v, "{\"b\":\"x\",\"a\":[1]}");
    assert_true(kl_value_equal(v, same));
    kl_value_unref(like);
    kl_value_unref(same);
    kl_value_unref(v);
    const kl_value *wide = decode(
        "{\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"9\":0}");
    const kl_value *nine[9];
    for (int i = 0; i < 9; i++)
        nine[i] = kl_value_of_int(i);
    v = kl_value_like(wide, nine);
    assert_json(v, "{\"1\":0,\"2\":1,\"3\":2,\"4\":3,\"5\":4,\"6\":5,\"7\":6,\"8\":7,\"9\":8}");
    kl_value_unref(wide);
    kl_value_unref(v);
}

static void updates_share_what_did_not_change(void **state)
{
    (void)state;
    const kl_value *v = decode("{\"a\":{\"x\":[1,2,3]},\"b\":1}"), *two = kl_value_of_int(2),
                   *name = kl_value_of_str("n");
    const kl_value *w = kl_value_with(v, "b", two);
    assert_json(w, "{\"a\":{\"x\":[1,2,3]},\"b\":2}");
    assert_ptr_equal(kl_value_get(w, "a"), kl_value_get(v, "a"));
    assert_json(v, "{\"a\":{\"x\":[1,2,3]},\"b\":1}");
    kl_value_unref(w);
    w = kl_value_with(v, "a", NULL);
    assert_json(w, "{\"b\":1}");
    kl_value_unref(w);
    w = kl_value_with(v, "nope", NULL);
    assert_ptr_equal(w, v);
    kl_value_unref(w);
    w = kl_value_with(NULL, "k", name);
    assert_json(w, "{\"k\":\"n\"}");
    kl_value_unref(w);
    w = kl_value_with_at(v, name, "b", "deep", "er", NULL);
    assert_json(w, "{\"a\":{\"x\":[1,2,3]},\"b\":{\"deep\":{\"er\":\"n\"}}}");
    kl_value_unref(w);
    w = kl_value_with_at(v, NULL, "a", "x", NULL);
    assert_json(w, "{\"a\":{},\"b\":1}");
    kl_value_unref(w);
    w = kl_value_with_at(v, NULL, "c", "x", NULL);
    assert_ptr_equal(w, v);
    kl_value_unref(w);
    w = kl_value_with_at(NULL, NULL, "c", NULL);
    assert_json(w, "{}");
    kl_value_unref(v);
    kl_value_unref(name);
}

static void builds_from_the_outside_in(void **state)
{
    (void)state;
    const kl_value *spec = decode("{\"x\":1}");
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "Pod");
    kl_build_kstr(b, "absent", NULL);
    kl_build_kint(b, "i", -3);
    kl_build_kvalue(b, "spec", spec);
    kl_build_kvalue(b, "none", NULL);
    kl_build_key(b, "list");
    kl_build_array(b);
    kl_build_null(b);
    kl_build_bool(b, true);
    kl_build_uint(b, UINT64_MAX);
    kl_build_double(b, 0.5);
    kl_build_strn(b, "a\0b", 3);
    kl_build_object(b);
    kl_build_end(b);
    kl_build_value(b, spec);
    kl_build_end(b);
    kl_build_key(b, "i");
    kl_build_array(b);
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    assert_json(v,
        "{\"kind\":\"Pod\",\"i\":[],\"spec\":{\"x\":1},\"list\":[null,true,18446744073709551615,0.5,"
        "\"a\\u0000b\",{},{\"x\":1}]}");
    kl_value_unref(v);
    kl_value_unref(spec);
    b = kl_builder_new();
    kl_build_array(b);
    kl_build_object(b);
    kl_build_key(b, "half");
    kl_builder_free(b);
}

static void writes_for_people_too(void **state)
{
    (void)state;
    const kl_value *v = decode("{\"a\":[1,{}],\"b\":{\"c\":[]}}");
    kl_buf b = KL_BUF_INIT;
    assert_int_equal(kl_value_encode_pretty(v, &b), KL_OK);
    assert_string_equal(
        kl_buf_str(&b), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {\n    \"c\": []\n  }\n}");
    kl_buf_fini(&b);
    kl_buf_init(&b, 8);
    assert_int_equal(kl_value_encode(v, &b), KL_ETOOBIG);
    kl_buf_fini(&b);
    kl_value_unref(v);
}

static void sorts_keys_at_every_depth(void **state)
{
    (void)state;
    const kl_value *v = decode(
        "{\"b\":{\"z\":1,\"aa\":[{\"d\":0,\"c\":\"\\\"\"},[]],\"a\":{}},\"\\u00e4\":null,\"a\\n\":2.5}");
    kl_buf b = KL_BUF_INIT;
    assert_int_equal(kl_value_encode_sorted(v, &b), KL_OK);
    assert_string_equal(kl_buf_str(&b),
        "{\"a\\n\":2.5,\"b\":{\"a\":{},\"aa\":[{\"c\":\"\\\"\",\"d\":0},[]],\"z\":1},\"\xc3\xa4\":null}");
    kl_buf_fini(&b);
    kl_buf_init(&b, 8);
    assert_int_equal(kl_value_encode_sorted(v, &b), KL_ETOOBIG);
    kl_buf_fini(&b);
    kl_value_unref(v);
}

static void random_values_survive_text(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        rng r = rng_of(seed);
        const kl_value *v = random_value(&r, 5, true);
        char *text = kl_value_to_json(v);
        const kl_value *back = decode(text);
        char *again = kl_value_to_json(back);
        if (!kl_value_equal(v, back) || strcmp(text, again))
            fail_msg("seed %d: %s", (int)seed, text);
        if (kl_json_compare(text, strlen(text)) == KL_JSON_DIFFERENT)
            fail_msg("seed %d: cJSON reads another value from %s", (int)seed, text);
        kl_free(text);
        kl_free(again);
        kl_value_unref(v);
        kl_value_unref(back);
    }
}

/* Any cut of a document is an error, never a crash or another value. */
static void no_prefix_of_a_document_is_a_document(void **state)
{
    (void)state;
    const char *text = "{\"a\":[1,-2.5e3,true,null,\"\\u00e9\\\"\"],\"b\":{\"c\":{}}}";
    for (size_t n = 0; n < strlen(text); n++) {
        char *cut = kl_strndup(text, n); /* its own allocation: a read beyond it is caught */
        const kl_value *v = NULL;
        assert_int_equal(kl_value_decode(cut, n, &v, NULL), KL_ESYNTAX);
        kl_free(cut);
    }
}

static void cjson_and_we_read_the_same(void **state)
{
    (void)state;
    assert_int_equal(kl_json_compare("{\"a\":[1,2.5,\"x\",null,true,false,{}]}", 36), KL_JSON_SAME);
    assert_int_equal(kl_json_compare("{\"a\":", 5), KL_JSON_REFUSED);
    assert_int_equal(kl_json_compare("\"\\u0000\"", 8), KL_JSON_INCOMPARABLE);
}

static void work(void *arg)
{
    rng r = rng_of((uint64_t)(uintptr_t)arg % 3 + 1); /* threads share seeds, hence nodes */
    for (int i = 0; i < 300; i++) {
        const kl_value *v = random_value(&r, 4, true);
        char *text = kl_value_to_json(v);
        const kl_value *w = NULL;
        if (kl_value_decode(text, strlen(text), &w, NULL) || !kl_value_equal(v, w))
            abort();
        kl_value_unref(v);
        kl_free(text);
        kl_value_unref(w);
    }
}

static void threads_may_share_make_and_drop_the_same_nodes(void **state)
{
    (void)state;
    kl_thread *t[4];
    for (uintptr_t i = 0; i < 4; i++)
        t[i] = kl_thread_start("values", work, (void *)i);
    for (size_t i = 0; i < 4; i++)
        kl_thread_join(t[i]);
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(keeps_integers_exact_to_64_bits), CASE(doubles_round_trip),
    CASE(numbers_do_not_follow_the_locale), CASE(numbers_no_json_can_say_are_written_as_null),
    CASE(strings_keep_every_byte), CASE(refuses_what_is_not_json_and_says_where),
    CASE(refuses_duplicate_keys_also_in_wide_objects), CASE(goes_512_levels_deep_and_no_further),
    CASE(built_values_may_be_deeper_than_any_stack), CASE(keeps_key_order_and_never_mixes_the_empties),
    CASE(what_is_no_object_has_members_without_a_name), CASE(reads_absent_and_wrong_types_as_absent),
    CASE(finds_every_key_of_a_wide_object), CASE(compares_by_value_whatever_the_order_of_keys),
    CASE(equal_parts_are_one_node), CASE(a_subtree_outlives_its_root_when_referenced),
    CASE(objects_are_made_with_the_keys_of_another), CASE(updates_share_what_did_not_change),
    CASE(builds_from_the_outside_in), CASE(writes_for_people_too), CASE(sorts_keys_at_every_depth),
    CASE(random_values_survive_text), CASE(no_prefix_of_a_document_is_a_document),
    CASE(cjson_and_we_read_the_same), CASE(threads_may_share_make_and_drop_the_same_nodes))
