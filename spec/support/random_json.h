/* random_json.h - seeded random JSON text, as strange as the grammar allows, and damage to it: for what no
 * encoder of ours would write. Runs of plain bytes go up to a little over 64, because readers work in
 * blocks of 16, 32 and 64. */
#ifndef KL_SPEC_RANDOM_JSON_H
#define KL_SPEC_RANDOM_JSON_H

#include "base/buf.h"
#include "support/random_value.h"

#define RANDOM_RUN_MAX 70

static inline void random_space(rng *r, kl_buf *out)
{
    if (rng_below(r, 8))
        return;
    for (unsigned i = rng_below(r, rng_below(r, 6) ? 4 : RANDOM_RUN_MAX); i; i--)
        kl_buf_putc(out, " \n\t\r"[rng_below(r, 4)]);
}

static inline void random_string_part(rng *r, kl_buf *out)
{
    static const char *const parts[] = {
        "\\\"",
        "\\\\",
        "\\/",
        "\\b",
        "\\f",
        "\\n",
        "\\r",
        "\\t",
        "\\u0000",
        "\\u001f",
        "\\u0041",
        "\\u00e9",
        "\\u20AC",
        "\\ud83d\\ude00",
        "\\uDBFF\\uDFFF",
        "\\uffff",
        "\\u0022",
        "\\u005c",
        "\x7f",
        "\xc2\x80",
        "\xc3\xa9",
        "\xdf\xbf",
        "\xe0\xa0\x80",
        "\xe2\x82\xac",
        "\xed\x9f\xbf",
        "\xee\x80\x80",
        "\xef\xbf\xbf",
        "\xf0\x90\x80\x80",
        "\xf0\x9f\x98\x80",
        "\xf4\x8f\xbf\xbf",
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "/",
        "'",
    };
    if (rng_below(r, 2)) {
        kl_buf_puts(out, parts[rng_below(r, sizeof parts / sizeof *parts)]);
        return;
    }
    for (unsigned i = rng_below(r, rng_below(r, 4) ? 6 : RANDOM_RUN_MAX); i; i--)
        kl_buf_putc(out, (char)('a' + rng_below(r, 26)));
}

static inline void random_string(rng *r, kl_buf *out)
{
    kl_buf_putc(out, '"');
    for (unsigned i = rng_below(r, 5); i; i--)
        random_string_part(r, out);
    kl_buf_putc(out, '"');
}

static inline void random_number(rng *r, kl_buf *out)
{
    static const char *const numbers[] = {
        "0",
        "-0",
        "0.0",
        "-0.0",
        "1",
        "-1",
        "1.0",
        "9007199254740992",
        "9007199254740993",
        "4611686018427387903",
        "4611686018427387904",
        "-4611686018427387904",
        "-4611686018427387905",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "1e0",
        "1E+2",
        "1e-2",
        "1e22",
        "1e23",
        "123456789e-5",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        "5e-324",
        "1e-400",
        "0e999",
        "0.1",
        "0.30000000000000004",
        "12345678901234567890123.25",
        "2147483647",
        "2147483648",
        "-2147483649",
        "4294967295",
        "4294967296",
        "536870911",
        "536870912",
        "-536870913",
        "268435455",
        "268435456",
    };
    if (rng_below(r, 3)) {
        kl_buf_puts(out, numbers[rng_below(r, sizeof numbers / sizeof *numbers)]);
        return;
    }
    kl_buf_puts(out, rng_below(r, 3) ? "" : "-");
    kl_buf_printf(out, "%u", 1 + (rng_below(r, 4) ? rng_below(r, 100) : rng_next(r) / 2));
    for (unsigned i = rng_below(r, 3) ? 0 : rng_below(r, 24); i; i--)
        kl_buf_putc(out, (char)('0' + rng_below(r, 10)));
    if (!rng_below(r, 3))
        for (unsigned i = kl_buf_putc(out, '.') ? 0 : 1 + rng_below(r, 20); i; i--)
            kl_buf_putc(out, (char)('0' + rng_below(r, 10)));
    if (!rng_below(r, 4))
        kl_buf_printf(
            out, "%s%u", (const char *const[]){"e", "E", "e-", "E+"}[rng_below(r, 4)], rng_below(r, 270));
}

/* Key number `i` of an object: distinct for each i, and the words of Kubernetes among them. Now and then
 * it is spelt with escapes, and now and then (`repeats`) it is one that was there before. */
static inline void random_key(rng *r, kl_buf *out, unsigned i, bool repeats)
{
    static const char *const words[] = {
        "metadata", "managedFields", "name", "namespace", "items", "object", "type", ""};
    char key[RANDOM_RUN_MAX + 16];
    if (repeats && i && !rng_below(r, 20))
        i = rng_below(r, i);
    if (i < sizeof words / sizeof *words)
        snprintf(key, sizeof key, "%s", words[i]);
    else
        snprintf(key, sizeof key, "%0*u", (int)(i * 7 % RANDOM_RUN_MAX), i);
    kl_buf_putc(out, '"');
    for (const char *c = key; *c; c++) {
        if (rng_below(r, 200))
            kl_buf_putc(out, *c);
        else
            kl_buf_printf(out, "\\u%04x", (unsigned)*c);
    }
    kl_buf_putc(out, '"');
}

static inline void random_json(rng *r, kl_buf *out, unsigned depth, bool repeats)
{
    unsigned kind = rng_below(r, depth ? 10 : 5), n;
    switch (kind) {
    case 0: kl_buf_puts(out, (const char *const[]){"null", "true", "false"}[rng_below(r, 3)]); return;
    case 1:
    case 2: random_number(r, out); return;
    case 3:
    case 4: random_string(r, out); return;
    default: break;
    }
    bool object = kind > 6;
    n = rng_below(r, rng_below(r, 12) ? 6 : RANDOM_RUN_MAX);
    kl_buf_putc(out, object ? '{' : '[');
    random_space(r, out);
    for (unsigned i = 0; i < n; i++) {
        if (i)
            kl_buf_putc(out, ',');
        random_space(r, out);
        if (object) {
            random_key(r, out, n > 8 || rng_below(r, 2) ? i : i + 8, repeats);
            random_space(r, out);
            kl_buf_putc(out, ':');
            random_space(r, out);
        }
        random_json(r, out, n > 20 ? 0 : depth - 1, repeats);
        random_space(r, out);
    }
    kl_buf_putc(out, object ? '}' : ']');
}

/* --- look-alikes -------------------------------------------------------------------------- */

/* Values out of a small world, spelt in different ways, so that equal ones and nearly equal ones follow
 * each other: for readers that compare with what they read before. Members come mostly in one order, wide
 * objects now and then, and keys again with `repeats`. */
static inline void random_alike(rng *r, kl_buf *out, unsigned depth, bool repeats)
{
    static const char *const scalars[] = {
        "0",
        "1",
        "-1",
        "1.0",
        "1073741823",
        "1073741824",
        "-1073741825",
        "1099511627776",
        "18446744073709551615",
        "0.5",
        "5e-1",
        "-0.0",
        "null",
        "true",
        "false",
        "\"\"",
        "\"a\"",
        "\"\\u0061\"",
        "\"2026-01-02T03:04:05Z\"",
        "\"2026-01-02T03:04:06Z\"",
        "\"a plain string of some length\"",
        "\"a plain string of some lengti\"",
        "\"a plain string of some length \"",
        "\"a\\nb\"",
        "\"a\\u000ab\"",
        "\"\xe2\x82\xac uro and more\"",
        "\"\\u20ac uro and more\"",
        "{}",
        "[]",
        "{ }",
        "[ ]",
    };
    static const char *const keys[] = {"name", "kind", "a", "b", "apiVersion", "a key of some length",
        "n\\u0061me", "c", "d", "", "labels", "\xc3\xa9"};
    unsigned what = rng_below(r, depth ? 4 : 1), n;
    if (what == 0) {
        kl_buf_puts(out, scalars[rng_below(r, sizeof scalars / sizeof *scalars)]);
        return;
    }
    if (what == 1) {
        kl_buf_putc(out, '[');
        for (unsigned i = 0, items = rng_below(r, 5); i < items; i++) {
            kl_buf_puts(out, i ? "," : "");
            random_alike(r, out, depth - 1, repeats);
        }
        kl_buf_putc(out, ']');
        return;
    }
    unsigned wide = rng_below(r, 12) ? 0 : 6 + rng_below(r, 70), members = 0, seen = 0;
    kl_buf_putc(out, '{');
    for (unsigned i = 0; i < 12; i++) {
        n = rng_below(r, 12) ? i : rng_below(r, 12);
        n = n == 6 && !repeats ? 0 : n;
        unsigned same = n == 6 ? 0 : n; /* the escaped name is the name */
        if (rng_below(r, 3) == 0 || (!repeats && seen & 1u << same)
            || (repeats && seen & 1u << same && rng_below(r, 4)))
            continue;
        seen |= 1u << same;
        kl_buf_printf(out, "%s\"%s\":", members++ ? "," : "", keys[n]);
        random_alike(r, out, depth - 1, repeats);
    }
    for (unsigned i = 0; i < wide; i++) {
        if (!rng_below(r, 20))
            continue;
        kl_buf_printf(out, "%s\"w%u\":%u", members++ ? "," : "", i, rng_below(r, 30) ? i : 7);
    }
    if (repeats && wide && !rng_below(r, 3))
        kl_buf_printf(out, "%s\"w%u\":%u", members ? "," : "", rng_below(r, wide), wide);
    kl_buf_putc(out, '}');
}

/* A few bytes lost, doubled, changed or brought in. Most of what comes out is not JSON any more, and some
 * still is. */
static inline void random_damage(rng *r, kl_buf *text)
{
    static const char *const wrong[] = {
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "0",
        "-",
        ".",
        "e",
        "\\u",
        "\\ud800",
        "\\udc00",
        "\\u00",
        "\x01",
        "\x1f",
        "\x7f",
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc3",
        "\xe0\x80\x80",
        "\xe2\x82",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x80\x80\x80",
        "\xf0\x9f\x98",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "null",
        "tru",
        "NaN",
        "\n",
        "/*",
        "'",
    };
    kl_buf out = KL_BUF_INIT;
    size_t at = text->len ? rng_below(r, (uint32_t)text->len) : 0,
           n = 1 + rng_below(r, rng_below(r, 3) ? 2 : 9);
    if (n > text->len - at)
        n = text->len - at;
    kl_buf_add(&out, text->data, at);
    switch (rng_below(r, 5)) {
    case 0: break;
    case 1:
        kl_buf_add(&out, text->data + at, n);
        kl_buf_add(&out, text->data + at, n);
        break;
    case 2: kl_buf_putc(&out, (char)rng_next(r)); break;
    case 3:
        kl_buf_puts(&out, wrong[rng_below(r, sizeof wrong / sizeof *wrong)]);
        n = 0;
        break;
    default: n = text->len - at; break; /* the end is gone */
    }
    kl_buf_add(&out, text->data + at + n, text->len - at - n);
    kl_buf_fini(text);
    *text = out;
}

#endif
