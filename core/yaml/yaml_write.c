/* yaml_write.c - writes values as YAML.
 *
 * Keys stand in their own order, or in that of Go's YAML library, as in the answers of kube-apiserver: letter
 * by letter, letters behind everything else, and runs of digits as numbers. */
#include "yaml/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include "base/mem.h"
#include "value/intern.h"
#include "yaml/scalar.h"

typedef struct writer {
    yaml_emitter_t e;
    bool sorted; /* as Go writes it */
} writer;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static int on_write(void *arg, unsigned char *data, size_t n) { return kl_buf_add(arg, data, n) == KL_OK; }

static bool emit(yaml_emitter_t *e, yaml_event_t *ev, int made) { return made && yaml_emitter_emit(e, ev); }

static bool emit_text(
    yaml_emitter_t *e, const char *s, size_t n, bool plain, bool quoted, yaml_scalar_style_t style)
{
    yaml_event_t ev;
    bool lines = quoted && memchr(s, '\n', n) != NULL;
    return emit(e, &ev,
        yaml_scalar_event_initialize(&ev, NULL, NULL, (const yaml_char_t *)s, (int)n, plain, quoted,
            lines ? YAML_LITERAL_SCALAR_STYLE : style));
}

/* Reads one or two digits that make `least` to `most`. */
static bool two_digits(const char **p, int least, int most, int *out)
{
    int x = 0, n = 0;
    for (; n < 2 && is_digit(**p); ++*p, n++)
        x = x * 10 + **p - '0';
    *out = x;
    return n && x >= least && x <= most;
}

static bool skip(const char **p, const char *set)
{
    if (!**p || !strchr(set, **p))
        return false;
    ++*p;
    return true;
}

static bool is_day(int year, int month, int day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100) || year % 400 == 0;
    return day <= days[month - 1] + (leap && month == 2);
}

/* Whether Go's YAML library takes a plain text for a time: "2001-1-2", and with "3:04:05" behind it. */
static bool is_timestamp(const char *s)
{
    const char *p = s + strspn(s, "0123456789");
    int x, month;
    if (p - s != 4 || !skip(&p, "-") || !two_digits(&p, 1, 12, &month) || !skip(&p, "-")
        || !two_digits(&p, 1, 31, &x) || !is_day(atoi(s), month, x))
        return false;
    if (!*p)
        return true;
    bool zone = *p != ' ';
    if (!skip(&p, " Tt") || !two_digits(&p, 0, 23, &x) || !skip(&p, ":") || !two_digits(&p, 0, 59, &x)
        || !skip(&p, ":") || !two_digits(&p, 0, 59, &x))
        return false;
    if ((*p == '.' || *p == ',') && is_digit(p[1]))
        p += 1 + strspn(p + 1, "0123456789");
    if (zone && *p != 'Z')
        return skip(&p, "+-") && is_digit(*p) && is_digit(p[1]) && two_digits(&p, 0, 24, &x) && skip(&p, ":")
            && is_digit(*p) && is_digit(p[1]) && two_digits(&p, 0, 60, &x) && !*p;
    return zone ? !p[1] : !*p;
}

/* Whether YAML 1.1 reads a plain text as a number to the base of 60. */
static bool is_sexagesimal(const char *s)
{
    s += *s == '-' || *s == '+';
    if (!is_digit(*s))
        return false;
    s += strspn(s, "0123456789_");
    int x;
    bool more = *s == ':';
    while (skip(&s, ":"))
        if (!two_digits(&s, 0, 59, &x))
            return false;
    if (more && skip(&s, "."))
        s += strspn(s, "0123456789_");
    return more && !*s;
}

/* Writes a string. A text that would read as something else must be quoted. */
static bool emit_string(writer *w, const kl_value *v)
{
    size_t n;
    const char *s = kl__str_bytes(v, &n);
    const kl_value *read = kl__scalar_plain(s, n);
    bool plain = kl_value_type(read) == KL_STRING;
    if (w->sorted)
        plain = plain && !is_timestamp(s) && !is_sexagesimal(s);
    else
        plain = plain && strcmp(s, "<<") && strcmp(s, "=");
    kl_value_unref(read);
    return emit_text(&w->e, s, n, plain, true,
        w->sorted && !plain ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE);
}

/* --- the order of keys -------------------------------------------------------------------- */

/* The bytes of other alphabets count as letters. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

/* Reads a run of digits from *p on, behind the number `x`, as Go does: it may overflow. */
static uint64_t run_of_digits(const char **p, uint64_t x)
{
    for (; is_digit(**p); ++*p)
        x = x * 10 + (uint64_t)(**p - '0');
    return x;
}

/* Compares two keys from their first difference on, which is not of two letters. */
static int compare_rest(const char *start, const char *a, const char *b)
{
    uint64_t before = 0;
    if (*a == '0' || *b == '0') /* zeros count when digits stand before them */
        for (const char *p = a; p > start && is_digit(p[-1]) && !before; p--)
            before = p[-1] != '0';
    const char *x = a, *y = b;
    int64_t m = (int64_t)run_of_digits(&x, before), n = (int64_t)run_of_digits(&y, before);
    if (m != n)
        return m < n ? -1 : 1;
    if (x - a != y - b)
        return x - a < y - b ? -1 : 1;
    return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static int compare_keys(const kl_value *x, const kl_value *y)
{
    const char *start = kl_value_str(x), *a = start, *b = kl_value_str(y);
    while (*a && *a == *b)
        a++, b++;
    if (!*a || !*b)
        return *b ? -1 : *a ? 1 : 0;
    bool letter = is_letter(*a), other = is_letter(*b);
    if (letter && other)
        return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
    if (letter || other)
        return other ? -1 : 1;
    return compare_rest(start, a, b);
}

/* Merges the sorted halves of `from` into `to`. */
static void merge(const kl_value **from, size_t half, size_t n, const kl_value **to)
{
    for (size_t i = 0, j = half, k = 0; k < n; k++)
        to[k] = j == n || (i < half && compare_keys(from[i], from[j]) <= 0) ? from[i++] : from[j++];
}

/* Go's order has circles ("a02" < "a10" < "a1b" < "a02"), so this is no qsort, which may trust the order. */
static void sort_keys(const kl_value **keys, size_t n, const kl_value **room)
{
    if (n < 2)
        return;
    size_t half = n / 2;
    sort_keys(keys, half, room);
    sort_keys(keys + half, n - half, room);
    memcpy(room, keys, n * sizeof *keys);
    merge(room, half, n, keys);
}

/* --- values ------------------------------------------------------------------------------- */

static bool emit_value(writer *w, const kl_value *v, size_t depth);

/* Emits the members of an object in the order of their keys. */
static bool emit_sorted(writer *w, const kl_value *v, size_t depth)
{
    size_t n = kl_value_len(v);
    const kl_value **keys = kl_new_array(const kl_value *, 2 * n);
    for (size_t i = 0; i < n; i++)
        keys[i] = kl__key(v, i);
    sort_keys(keys, n, keys + n);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        size_t len;
        const char *key = kl__str_bytes(keys[i], &len);
        ok = emit_string(w, keys[i]) && emit_value(w, kl_value_getn(v, key, len), depth);
    }
    kl_free(keys);
    return ok;
}

static bool emit_members(writer *w, const kl_value *v, size_t depth)
{
    size_t n = kl_value_len(v);
    if (w->sorted && n > 1)
        return emit_sorted(w, v, depth);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = emit_string(w, kl__key(v, i)) && emit_value(w, kl__val(v, i), depth);
    return ok;
}

static bool emit_value(writer *w, const kl_value *v, size_t depth)
{
    yaml_emitter_t *e = &w->e;
    yaml_event_t ev;
    kl_type t = kl_value_type(v);
    if (t == KL_STRING)
        return emit_string(w, v);
    if (t != KL_ARRAY && t != KL_OBJECT) {
        char *text = kl_value_to_json(v);
        bool ok = emit_text(e, text, strlen(text), true, false, YAML_ANY_SCALAR_STYLE);
        kl_free(text);
        return ok;
    }
    if (depth > KL_VALUE_DEPTH_MAX)
        return false;
    size_t n = kl_value_len(v);
    if (t == KL_ARRAY) {
        bool ok = emit(e, &ev,
            yaml_sequence_start_event_initialize(
                &ev, NULL, NULL, 1, n ? YAML_BLOCK_SEQUENCE_STYLE : YAML_FLOW_SEQUENCE_STYLE));
        for (size_t i = 0; ok && i < n; i++)
            ok = emit_value(w, kl_value_item(v, i), depth + 1);
        return ok && emit(e, &ev, yaml_sequence_end_event_initialize(&ev));
    }
    bool ok = emit(e, &ev,
        yaml_mapping_start_event_initialize(
            &ev, NULL, NULL, 1, n ? YAML_BLOCK_MAPPING_STYLE : YAML_FLOW_MAPPING_STYLE));
    ok = ok && emit_members(w, v, depth + 1);
    return ok && emit(e, &ev, yaml_mapping_end_event_initialize(&ev));
}

static kl_status encode(const kl_value *v, bool sorted, kl_buf *out)
{
    writer w = {.sorted = sorted};
    yaml_event_t ev;
    if (!yaml_emitter_initialize(&w.e))
        kl_mem_die("memory (YAML)");
    yaml_emitter_set_output(&w.e, on_write, out);
    yaml_emitter_set_unicode(&w.e, 1);
    if (!sorted) /* Go folds lines */
        yaml_emitter_set_width(&w.e, -1);
    bool ok = emit(&w.e, &ev, yaml_stream_start_event_initialize(&ev, YAML_UTF8_ENCODING))
        && emit(&w.e, &ev, yaml_document_start_event_initialize(&ev, NULL, NULL, NULL, 1))
        && emit_value(&w, v, 1) && emit(&w.e, &ev, yaml_document_end_event_initialize(&ev, 1))
        && emit(&w.e, &ev, yaml_stream_end_event_initialize(&ev));
    yaml_emitter_delete(&w.e);
    return ok && !out->failed ? KL_OK : KL_ETOOBIG;
}

kl_status kl_yaml_encode(const kl_value *v, kl_buf *out) { return encode(v, false, out); }

kl_status kl_yaml_encode_sorted(const kl_value *v, kl_buf *out) { return encode(v, true, out); }
