/* decode_hard_test.c - every odd input at every place where a decoder that works in blocks may stumble
 * over it: each prefix of real objects, special bytes at each offset of a string, depth and width bombs,
 * numbers at the edges of their types. */
#include "support/test.h"

#include "support/json_laws.h"
#include "support/random_value.h"

#define OFFSETS 71 /* beyond the blocks of 16, 32 and 64 bytes that readers like */

/* A text that must be refused, and the story of it. */
static void assert_refused(const char *text, size_t n, const char *part)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    char *copy = exact_copy(text, n);
    kl_status st = kl_value_decode(copy, n, &v, &err);
    kl_free(copy);
    if (st != KL_ESYNTAX || v || !strstr(kl_err_message(&err), part))
        fail_msg("status %s, message \"%s\" without \"%s\" for %.*s", kl_status_name(st),
            kl_err_message(&err), part, (int)(n < 300 ? n : 300), text);
    kl_err_fini(&err);
}

static void assert_laws(const char *text, size_t n)
{
    const char *broken = laws_of_decoding(text, n);
    if (broken)
        fail_msg("%s does not hold for %.*s", broken, (int)(n < 300 ? n : 300), text);
}

static const kl_value *decode(const char *text, size_t n)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_value_decode(text, n, &v, &err), &err);
    return v;
}

static void fill(kl_buf *b, char c, size_t n)
{
    while (n--)
        kl_buf_putc(b, c);
}

/* --- cuts --------------------------------------------------------------------------------- */

static const char POD[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web-6d4b75cb6d-x7x2p\","
    "\"generateName\":\"web-6d4b75cb6d-\",\"namespace\":\"default\",\"uid\":\"0f3c1a52-77ab-4d39-9a53-"
    "2f1f6a1f7a11\","
    "\"resourceVersion\":\"184467\",\"generation\":3,\"creationTimestamp\":\"2026-01-02T03:04:05Z\","
    "\"labels\":{\"app.kubernetes.io/name\":\"web\",\"pod-template-hash\":\"6d4b75cb6d\"},"
    "\"annotations\":{\"kubectl.kubernetes.io/"
    "last-applied-configuration\":\"{\\\"apiVersion\\\":\\\"v1\\\",\\\"kind\\\":\\\"Pod\\\",\\\"x\\\":"
    "\\\"\\\\u00e9\\\\n\\\"}\\n\",\"note\":\"h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80 \\ud83d\\ude00\"},"
    "\"managedFields\":[{\"manager\":\"kubelet\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":"
    "\"2026-01-02T03:04:06Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{\"k:{"
    "\\\"type\\\":\\\"Ready\\\"}\":{\".\":{},\"f:status\":{}}}}}}]},\n"
    "  \"spec\": {\"containers\": [{\"name\": \"web\", \"image\": \"nginx:1.25\", \"ports\": "
    "[{\"containerPort\": 80, \"protocol\": \"TCP\"}], \"resources\": {\"limits\": {\"cpu\": \"500m\", "
    "\"memory\": \"128Mi\"}}, \"env\": [], \"command\": null}],"
    " \"terminationGracePeriodSeconds\": 30, \"enableServiceLinks\": true, \"hostNetwork\": false, "
    "\"priority\": -1000, \"weights\": [0.25, 1e-3, -2.5E+10, 9223372036854775807, 18446744073709551615]},"
    "\"status\":{\"phase\":\"Running\",\"qosClass\":\"Burstable\",\"conditions\":[{\"type\":\"Ready\","
    "\"status\":\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":\"2026-01-02T03:04:07Z\"}],\"podIPs\":"
    "[{\"ip\":\"10.0.0.1\"},{\"ip\":\"fd00::1\"}]}}\n";

static void every_prefix_of_an_object_is_refused(void **state)
{
    (void)state;
    size_t n = sizeof POD - 2; /* the newline after it is not part of it */
    assert_laws(POD, sizeof POD - 1);
    for (size_t cut = 0; cut < n; cut++)
        assert_refused(POD, cut, "JSON is malformed at byte ");
    for (size_t from = 1; from < n; from++) { /* and no suffix is another object */
        kl_status st;
        const kl_value *v = NULL;
        char *copy = exact_copy(POD + from, n - from);
        st = kl_value_decode(copy, n - from, &v, NULL);
        kl_free(copy);
        assert_int_equal(!st, strict_accepts(POD + from, n - from, KL_VALUE_DEPTH_MAX, false));
        kl_value_unref(v);
    }
}

static void every_single_wrong_byte_is_judged_as_it_should(void **state)
{
    (void)state;
    static const char wrong[] = {0, 1, 0x1f, '"', '\\', '{', '}', '[', ']', ',', ':', '0', 'x', ' ', 0x7f,
        (char)0x80, (char)0xc0, (char)0xff};
    char text[sizeof POD];
    memcpy(text, POD, sizeof POD);
    for (size_t at = 0; at < sizeof POD - 2; at++) {
        for (size_t i = 0; i < sizeof wrong; i++) {
            const kl_value *v = NULL;
            text[at] = wrong[i];
            kl_status st = kl_value_decode(text, sizeof POD - 1, &v, NULL);
            if (!st != strict_accepts(text, sizeof POD - 1, KL_VALUE_DEPTH_MAX, false)
                || (!st && !strict_reads_as(text, sizeof POD - 1, false, v)))
                fail_msg("byte 0x%02x at %zu: status %s", (unsigned char)wrong[i], at, kl_status_name(st));
            kl_value_unref(v);
        }
        text[at] = POD[at];
    }
}

/* --- depth -------------------------------------------------------------------------------- */

/* The innermost container may be an empty one. */
static char *nested(size_t depth, bool objects, bool mixed, const char *inner, size_t *n)
{
    kl_buf b = KL_BUF_INIT;
    depth -= *inner != '1';
    for (size_t i = 0; i < depth; i++)
        kl_buf_puts(&b, objects && !(mixed && i % 2) ? (i % 3 ? "{\"a\":" : " { \"\" : ") : "[");
    kl_buf_puts(&b, inner);
    for (size_t i = depth; i-- > 0;)
        kl_buf_puts(&b, objects && !(mixed && i % 2) ? "}" : "]");
    *n = b.len;
    return kl_buf_take(&b);
}

static void depth_512_passes_and_513_does_not(void **state)
{
    (void)state;
    static const char *const inner[] = {"1", "{}", "[]", "[ ]"};
    for (int kind = 0; kind < 12; kind++)
        for (size_t depth = 510; depth < 516; depth++) {
            size_t n;
            char *text = nested(depth, kind % 3 > 0, kind % 3 > 1, inner[kind / 3], &n);
            if (depth <= KL_VALUE_DEPTH_MAX) {
                const kl_value *v = decode(text, n);
                assert_true(strict_reads_as(text, n, false, v));
                kl_value_unref(v);
            } else {
                assert_refused(text, n, "deeper than 512");
            }
            kl_free(text);
        }
}

static void a_million_brackets_are_refused_at_the_513th(void **state)
{
    (void)state;
    static const struct {
        const char *unit;
        size_t each;
        const char *where;
    } bombs[] = {
        {"[", 1, "at byte 512 "},
        {"{\"a\":", 5, "at byte 2560 "},
        {"[{\"a\":", 6, "at byte 1536 "},
        {"[1,", 3, "at byte 1536 "},
    };
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        kl_buf b = KL_BUF_INIT;
        while (b.len < 1000000 * bombs[i].each)
            kl_buf_puts(&b, bombs[i].unit);
        assert_refused(b.data, b.len, "deeper than 512");
        assert_refused(b.data, b.len, bombs[i].where);
        kl_buf_fini(&b);
    }
}

/* --- width -------------------------------------------------------------------------------- */

/* An object of n members k0..; with `dup`, the key of member `dup` comes again at the end, spelt with an
 * escape when asked. */
static void wide_object(kl_buf *b, size_t n, long dup, bool escaped)
{
    char key[32];
    kl_buf_clear(b);
    kl_buf_putc(b, '{');
    for (size_t i = 0; i < n; i++)
        kl_buf_printf(b, "%s\"k%zu\":%zu", i ? "," : "", i, i);
    if (dup >= 0) {
        snprintf(key, sizeof key, escaped ? "\\u006B%ld" : "k%ld", dup);
        kl_buf_printf(b, ",\"%s\":\"again\"", key);
    }
    kl_buf_putc(b, '}');
}

static void a_repeated_key_is_found_in_objects_of_any_width(void **state)
{
    (void)state;
    static const size_t widths[] = {
        1, 2, 3, 7, 8, 9, 15, 16, 17, 18, 31, 32, 33, 63, 64, 65, 66, 127, 128, 129, 255, 256, 257, 1000};
    kl_buf b = KL_BUF_INIT;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        size_t n = widths[i];
        wide_object(&b, n, -1, false);
        assert_laws(b.data, b.len);
        for (size_t dup = 0; dup < n; dup += 1 + n / 9)
            for (int escaped = 0; escaped < 2; escaped++) {
                char part[40];
                wide_object(&b, n, (long)dup, escaped);
                snprintf(part, sizeof part, "duplicate key \"k%zu\"", dup);
                assert_refused(b.data, b.len, part);
                assert_laws(b.data, b.len);
            }
    }
    kl_buf_fini(&b);
}

static void a_repeated_key_is_found_however_it_is_spelt(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"a\":1,\"\\u0061\":2}",
        "{\"\\u0061\":1,\"a\":2}",
        "{\"\":1,\"\":2}",
        "{\"\xc3\xa9\":1,\"\\u00e9\":2}",
        "{\"\xf0\x9f\x98\x80\":1,\"\\ud83d\\uDE00\":2}",
        "{\"/\":1,\"\\/\":2}",
        "{\"a\\u0000b\":1,\"a\\u0000b\":2}",
        "{\"x\":{\"a\":1,\"b\":{},\"a\":2}}",
        "[{\"a\":[{\"q\":0,\"q\":0}]}]",
        "{\"a\":{\"a\":{\"a\":1}},\"a\":{}}",
    };
    static const char *const fine[] = {
        "{\"a\":1,\"A\":2}",
        "{\"a\\u0000b\":1,\"a\\u0000c\":2,\"a\":3,\"a\\u0000\":4}",
        "{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":1}]}",
        "{\"\":{\"\":{\"\":0}}}",
        "{\"\xc3\xa9\":1,\"e\xcc\x81\":2}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_refused(texts[i], strlen(texts[i]), "duplicate key");
        assert_laws(texts[i], strlen(texts[i]));
    }
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        const kl_value *v = decode(fine[i], strlen(fine[i]));
        kl_value_unref(v);
        assert_laws(fine[i], strlen(fine[i]));
    }
}

static void keys_of_any_length_and_content_are_found(void **state)
{
    (void)state;
    for (size_t len = 0; len < 300; len += len < OFFSETS ? 1 : 37) {
        kl_buf b = KL_BUF_INIT, key = KL_BUF_INIT;
        fill(&key, 'k', len);
        kl_buf_printf(&b, "{\"%sx\":1,\"%s\":2,\"%sy\":3,\"%s\\u0000\":4}", kl_buf_str(&key),
            kl_buf_str(&key), kl_buf_str(&key), kl_buf_str(&key));
        const kl_value *v = decode(b.data, b.len);
        assert_int_equal(kl_value_int_at(v, -1, kl_buf_str(&key), NULL), 2);
        assert_true(strict_reads_as(b.data, b.len, false, v));
        kl_buf_putc(&key, '\0');
        int64_t four;
        assert_true(kl_value_int(kl_value_getn(v, key.data, len + 1), &four) && four == 4);
        kl_value_unref(v);
        kl_buf_fini(&b);
        kl_buf_fini(&key);
    }
}

static void a_hundred_thousand_members_and_a_million_items(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    wide_object(&b, 100000, -1, false);
    const kl_value *v = decode(b.data, b.len);
    assert_int_equal(kl_value_len(v), 100000);
    assert_true(strict_reads_as(b.data, b.len, false, v));
    kl_value_unref(v);
    wide_object(&b, 100000, 77777, true);
    assert_refused(b.data, b.len, "duplicate key \"k77777\"");
    kl_buf_clear(&b);
    kl_buf_putc(&b, '[');
    for (int i = 0; i < 1000000; i++)
        kl_buf_printf(&b, "%d,", i * 3);
    kl_buf_puts(&b, "null]");
    v = decode(b.data, b.len);
    assert_int_equal(kl_value_len(v), 1000001);
    assert_true(strict_reads_as(b.data, b.len, false, v));
    kl_buf out = KL_BUF_INIT;
    assert_int_equal(kl_value_encode(v, &out), KL_OK);
    assert_int_equal(out.len, b.len);
    assert_memory_equal(out.data, b.data, b.len);
    kl_value_unref(v);
    b.data[b.len - 1] = ' ';
    assert_refused(b.data, b.len, "']' was expected");
    kl_buf_fini(&out);
    kl_buf_fini(&b);
}

/* --- strings ------------------------------------------------------------------------------ */

/* `special` after 0..70 plain bytes and before 0..70 of them, as item, key and value. Judged by the laws,
 * so by two others. */
static void at_every_offset(const char *special)
{
    static const size_t tails[] = {0, 1, 2, 7, 14, 15, 16, 31, 32, 62, 63, 64};
    kl_buf b = KL_BUF_INIT;
    for (size_t lead = 0; lead < OFFSETS; lead++)
        for (size_t t = 0; t < sizeof tails / sizeof *tails; t++) {
            kl_buf_clear(&b);
            kl_buf_puts(&b, lead % 2 ? "{\"" : "\"");
            fill(&b, 'p', lead);
            kl_buf_puts(&b, special);
            fill(&b, 'q', tails[t]);
            kl_buf_puts(&b, lead % 2 ? "\":1}" : "\"");
            assert_laws(b.data, b.len);
        }
    kl_buf_fini(&b);
}

static void good_and_bad_utf8_at_every_offset(void **state)
{
    (void)state;
    static const char *const specials[] = {
        "\xc2\x80",
        "\xdf\xbf",
        "\xe0\xa0\x80",
        "\xed\x9f\xbf",
        "\xee\x80\x80",
        "\xef\xbf\xbd",
        "\xf0\x90\x80\x80",
        "\xf4\x8f\xbf\xbf",
        "\x7f",
        /* overlong */ "\xc0\x80",
        "\xc1\xbf",
        "\xe0\x80\x80",
        "\xe0\x9f\xbf",
        "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf",
        /* surrogates, alone and paired (CESU-8) */ "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xed\xa0\xbd\xed\xb8\x80",
        /* above U+10FFFF */ "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xf8\x88\x80\x80\x80",
        "\xfc\x84\x80\x80\x80\x80",
        "\xfe",
        "\xff",
        /* alone, cut short, one too many */ "\x80",
        "\xbf",
        "\xc3",
        "\xe2",
        "\xe2\x82",
        "\xf0",
        "\xf0\x9f",
        "\xf0\x9f\x98",
        "\xc3\xa9\xa9",
        "\xe2\x82\xac\x80",
    };
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        at_every_offset(specials[i]);
}

static void escapes_and_controls_at_every_offset(void **state)
{
    (void)state;
    static const char *const specials[] = {
        "\\\"",
        "\\\\",
        "\\\\\\\\\\\"",
        "\\/",
        "\\b\\f\\n\\r\\t",
        "\\u0000",
        "\\u0041",
        "\\uFFFF",
        "\\ud83d\\ude00",
        "\\n\xe2\x82\xac\\n",
        "\\ud800",
        "\\udc00",
        "\\ud83dx",
        "\\ud83d\\n",
        "\\ud83d\\u0041",
        "\\ude00\\ud83d",
        "\\u12",
        "\\u12g4",
        "\\x41",
        "\\",
        "\\U0041",
        "\\'",
        "\x01",
        "\x1f",
        "\t",
        "\n",
        "\r",
    };
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        at_every_offset(specials[i]);
    /* a raw NUL, which C strings cannot say above */
    for (size_t lead = 0; lead < OFFSETS; lead++) {
        kl_buf b = KL_BUF_INIT;
        kl_buf_putc(&b, '"');
        fill(&b, 'p', lead);
        kl_buf_putc(&b, '\0');
        kl_buf_puts(&b, "q\"");
        assert_refused(b.data, b.len, "control character");
        kl_buf_fini(&b);
    }
}

static void a_string_that_ends_with_the_text_is_refused_at_every_offset(void **state)
{
    (void)state;
    static const char *const ends[] = {"", "\\", "\\u", "\\u0", "\\u00", "\\u004", "\\ud83d", "\\ud83d\\",
        "\\ud83d\\u", "\\ud83d\\ude0", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xf0"};
    for (size_t lead = 0; lead < OFFSETS; lead++)
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            kl_buf b = KL_BUF_INIT;
            kl_buf_putc(&b, '"');
            fill(&b, 'p', lead);
            kl_buf_puts(&b, ends[i]);
            assert_refused(b.data, b.len, "JSON is malformed");
            kl_buf_fini(&b);
        }
}

static void strings_of_every_length_and_very_long_ones(void **state)
{
    (void)state;
    static const size_t lengths[] = {
        255, 256, 257, 4095, 4096, 4097, 65535, 65536, 65537, 1 << 20, (1 << 20) + 1};
    for (size_t i = 0; i < OFFSETS + sizeof lengths / sizeof *lengths; i++) {
        size_t len = i < OFFSETS ? i : lengths[i - OFFSETS];
        for (int kind = 0; kind < 3; kind++) {
            kl_buf b = KL_BUF_INIT;
            kl_buf_putc(&b, '"');
            for (size_t k = 0; k < len; k++)
                kl_buf_puts(&b, kind == 0 ? "s" : kind == 1 ? "\xe2\x82\xac" : k % 50 == 49 ? "\\n" : "t");
            kl_buf_putc(&b, '"');
            const kl_value *v = decode(b.data, b.len), *again = decode(b.data, b.len);
            assert_ptr_equal(v, again);
            assert_int_equal(kl_value_len(v), kind == 1 ? 3 * len : len);
            assert_true(strict_reads_as(b.data, b.len, false, v));
            assert_refused(b.data, b.len - 1, "ends inside a string");
            kl_value_unref(v);
            kl_value_unref(again);
            kl_buf_fini(&b);
        }
    }
}

/* --- numbers ------------------------------------------------------------------------------ */

static void numbers_at_the_edges_of_their_types(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "0",
        "-0",
        "-0.0",
        "0.0",
        "0e0",
        "-0E-5",
        "1",
        "-1",
        "1.0",
        "1e0",
        "10e-1",
        "0.1",
        "0.2",
        "0.30000000000000004",
        "2.5",
        "1e22",
        "1e23",
        "9007199254740991",
        "9007199254740992",
        "9007199254740993",
        "9007199254740993.0",
        "999999999999999999",
        "1000000000000000000",
        "9223372036854775806",
        "9223372036854775807",
        "9223372036854775808",
        "9223372036854775809",
        "-9223372036854775807",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551614",
        "18446744073709551615",
        "18446744073709551616",
        "-18446744073709551615",
        "18446744073709551619",
        "18446744073709551620",
        "99999999999999999999",
        "184467440737095516150",
        "9223372036854775807.0",
        "9223372036854775808e0",
        "1e308",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "17976931348623157e292",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "4.9406564584124654e-324",
        "2.4703282292062328e-324",
        "1e-400",
        "-1e-400",
        "0.000001",
        "0.0000001",
        "12345678901234567",
        "1234567890.1234567",
        "0.12345678901234567",
        "5e-324",
        "8.5e-323",
        "1e0000000000000000000001",
        "1e-0000000000000000000001",
        "100000000000000000000000000000e-29",
    };
    static const char *const beyond[] = {
        "1e309", "-1e309", "1.7976931348623159e308", "1.8e308", "1e999999999999999999999", "-1e400"};
    static const char *const malformed[] = {"00", "01", "-01", "-", "+1", ".5", "1.", "1.e5", "1e", "1e+",
        "1e-", "1E", "0x10", "1_000", "1,5", "--1", "1-", "1e5.5", "Infinity", "NaN", "-Infinity", "1.5.5",
        "0e", "1 2"};
    kl_buf b = KL_BUF_INIT;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const kl_value *v = decode(numbers[i], strlen(numbers[i]));
        kl_value_unref(v);
        /* also across the borders of blocks */
        for (size_t lead = 0; lead < OFFSETS; lead += 1 + lead / 8) {
            kl_buf_clear(&b);
            kl_buf_putc(&b, '[');
            fill(&b, ' ', lead);
            kl_buf_printf(&b, "%s,{\"n\":%s}]", numbers[i], numbers[i]);
            assert_laws(b.data, b.len);
        }
    }
    kl_buf_fini(&b);
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++)
        assert_refused(beyond[i], strlen(beyond[i]), "beyond the range of a double");
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        assert_refused(malformed[i], strlen(malformed[i]), "JSON is malformed");
        assert_laws(malformed[i], strlen(malformed[i]));
    }
}

static void numbers_of_many_digits(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    for (size_t digits = 1; digits < 1200; digits += digits < 40 ? 1 : 193) {
        for (int kind = 0; kind < 5; kind++) {
            kl_buf_clear(&b);
            kl_buf_puts(&b, kind == 1 ? "-" : kind == 2 ? "0." : "");
            for (size_t i = 0; i < digits; i++)
                kl_buf_putc(&b, (char)('1' + i * 7 % 9));
            if (kind == 3)
                kl_buf_puts(&b, "e-5");
            if (kind == 4)
                kl_buf_puts(&b, ".125");
            assert_laws(b.data, b.len);
            kl_buf_putc(&b, 'x');
            assert_refused(b.data, b.len, "JSON is malformed");
        }
        kl_buf_clear(&b); /* zeros that count for nothing */
        kl_buf_puts(&b, "0.");
        fill(&b, '0', digits);
        kl_buf_puts(&b, "5");
        assert_laws(b.data, b.len);
        kl_buf_clear(&b);
        kl_buf_puts(&b, "1.");
        fill(&b, '0', digits);
        assert_laws(b.data, b.len);
    }
    /* 1000 digits are beyond a double, and 1000 with a small exponent are not */
    kl_buf_clear(&b);
    fill(&b, '9', 1000);
    assert_refused(b.data, b.len, "beyond the range of a double");
    kl_buf_puts(&b, "e-990");
    const kl_value *v = decode(b.data, b.len);
    assert_true(kl_value_double(v, 0) == 1e10);
    kl_value_unref(v);
    kl_buf_fini(&b);
}

/* --- white space -------------------------------------------------------------------------- */

static void white_space_of_any_length_anywhere_and_nothing_that_looks_like_it(void **state)
{
    (void)state;
    static const char *const parts[] = {"{", "\"a\"", ":", "[", "1", ",", "true", ",", "null", ",", "{", "}",
        "]", ",", "\"b\"", ":", "-2.5e3", "}", ""};
    kl_buf b = KL_BUF_INIT;
    for (size_t len = 0; len < OFFSETS; len++) {
        kl_buf_clear(&b);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            for (size_t k = 0; k < len; k++)
                kl_buf_putc(&b, " \n\r\t"[(i + k) % 4]);
            kl_buf_puts(&b, parts[i]);
        }
        assert_laws(b.data, b.len);
        for (size_t at = len; at < b.len; at++)
            if (b.data[at] == ' ') {
                b.data[at] = "\v\f\x01\xc2"[at % 4];
                assert_refused(b.data, b.len, "JSON is malformed");
                b.data[at] = ' ';
                at += len / 3;
            }
    }
    kl_buf_fini(&b);
    assert_refused("", 0, "ends where a value was expected");
    assert_refused(NULL, 0, "ends where a value was expected");
    assert_refused(" \n\n ", 4, "line 3, column 2");
    assert_refused("1\0", 2, "byte 0x00 where nothing more");
    assert_refused("\0", 1, "byte 0x00");
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(every_prefix_of_an_object_is_refused), CASE(every_single_wrong_byte_is_judged_as_it_should),
    CASE(depth_512_passes_and_513_does_not), CASE(a_million_brackets_are_refused_at_the_513th),
    CASE(a_repeated_key_is_found_in_objects_of_any_width), CASE(a_repeated_key_is_found_however_it_is_spelt),
    CASE(keys_of_any_length_and_content_are_found), CASE(a_hundred_thousand_members_and_a_million_items),
    CASE(good_and_bad_utf8_at_every_offset), CASE(escapes_and_controls_at_every_offset),
    CASE(a_string_that_ends_with_the_text_is_refused_at_every_offset),
    CASE(strings_of_every_length_and_very_long_ones), CASE(numbers_at_the_edges_of_their_types),
    CASE(numbers_of_many_digits), CASE(white_space_of_any_length_anywhere_and_nothing_that_looks_like_it))

/* not in tsan: it starts no thread */
