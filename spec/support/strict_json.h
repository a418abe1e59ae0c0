/* strict_json.h - a second opinion on JSON: a small recursive reader that shares no line with ours and no
 * weakness with cJSON. It judges whether text is JSON as kl_value_decode promises to read it, and whether
 * a value is what the text says, to the last bit of a number and the last byte of a string. Slow and plain
 * on purpose. */
#ifndef KL_SPEC_STRICT_JSON_H
#define KL_SPEC_STRICT_JSON_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "value/value.h"

typedef struct strict {
    const unsigned char *p, *end;
    unsigned depth_max;
    bool repeats; /* a key that comes again replaces the earlier member */
    bool differs; /* some value was not what the text says */
} strict;

typedef struct strict_key {
    char *bytes;
    size_t n, place;
    const unsigned char *value;
} strict_key;

static inline bool strict_value(strict *j, unsigned depth, const kl_value *v, bool compare);

static inline void strict_space(strict *j)
{
    while (j->p < j->end && (*j->p == 0x20 || *j->p == 0x09 || *j->p == 0x0a || *j->p == 0x0d))
        j->p++;
}

static inline bool strict_take(strict *j, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(j->end - j->p) < n || memcmp(j->p, word, n))
        return false;
    j->p += n;
    return true;
}

/* --- strings ------------------------------------------------------------------------------ */

/* One well-formed character of UTF-8 at p by the table of the Unicode standard (D92): its length, or 0. */
static inline size_t strict_utf8(const unsigned char *p, const unsigned char *end)
{
    static const struct {
        unsigned char lo, hi, second_lo, second_hi;
        size_t n;
    } rows[] = {
        {0x00, 0x7f, 0, 0, 1},
        {0xc2, 0xdf, 0x80, 0xbf, 2},
        {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3},
        {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4},
        {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (*p < rows[i].lo || *p > rows[i].hi)
            continue;
        if ((size_t)(end - p) < rows[i].n)
            return 0;
        if (rows[i].n > 1 && (p[1] < rows[i].second_lo || p[1] > rows[i].second_hi))
            return 0;
        for (size_t k = 2; k < rows[i].n; k++)
            if (p[k] < 0x80 || p[k] > 0xbf)
                return 0;
        return rows[i].n;
    }
    return 0;
}

static inline long strict_hex4(strict *j)
{
    char digits[5] = "";
    if (j->end - j->p < 4 || strspn(memcpy(digits, j->p, 4), "0123456789abcdefABCDEF") != 4)
        return -1;
    j->p += 4;
    return strtol(digits, NULL, 16);
}

static inline size_t strict_put(char *out, unsigned long c)
{
    if (c < 0x80)
        return out[0] = (char)c, 1;
    if (c < 0x800)
        return out[0] = (char)(c / 64 + 192), out[1] = (char)(c % 64 + 128), 2;
    if (c < 0x10000)
        return out[0] = (char)(c / 4096 + 224), out[1] = (char)(c / 64 % 64 + 128),
               out[2] = (char)(c % 64 + 128), 3;
    return out[0] = (char)(c / 262144 + 240), out[1] = (char)(c / 4096 % 64 + 128),
           out[2] = (char)(c / 64 % 64 + 128), out[3] = (char)(c % 64 + 128), 4;
}

/* j->p is at a quote. *bytes is the caller's to free, also on failure. */
static inline bool strict_string(strict *j, char **bytes, size_t *n)
{
    const unsigned char *close = j->p + 1;
    while (close < j->end && *close != '"')
        close += *close == '\\' ? 2 : 1;
    *n = 0;
    /* undoing escapes makes nothing longer */
    *bytes = malloc(close < j->end ? (size_t)(close - j->p) : 1);
    if (!*bytes)
        abort();
    if (close >= j->end)
        return false;
    j->p++;
    while (*j->p != '"') {
        if (*j->p == '\\') {
            static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
            unsigned char c = j->p[1];
            const char *name = c ? strchr(names, c) : NULL;
            j->p += 2;
            if (name) {
                (*bytes)[(*n)++] = means[name - names];
                continue;
            }
            long unit = c == 'u' ? strict_hex4(j) : -1, low;
            if (unit < 0 || (unit >= 0xdc00 && unit <= 0xdfff))
                return false;
            if (unit >= 0xd800 && unit <= 0xdbff) {
                if (!strict_take(j, "\\u") || (low = strict_hex4(j)) < 0xdc00 || low > 0xdfff)
                    return false;
                unit = 0x10000 + (unit - 0xd800) * 0x400 + (low - 0xdc00);
            }
            *n += strict_put(*bytes + *n, (unsigned long)unit);
            continue;
        }
        size_t len = strict_utf8(j->p, j->end);
        if (!len || *j->p < 0x20)
            return false;
        memcpy(*bytes + *n, j->p, len);
        *n += len;
        j->p += len;
    }
    j->p++;
    return true;
}

/* --- numbers ------------------------------------------------------------------------------ */

static inline bool strict_digits(strict *j)
{
    const unsigned char *from = j->p;
    while (j->p < j->end && *j->p >= '0' && *j->p <= '9')
        j->p++;
    return j->p > from;
}

static inline bool strict_same_number(const char *text, size_t n, bool integral, const kl_value *v)
{
    unsigned __int128 magnitude = 0;
    bool minus = *text == '-', huge = false;
    int64_t i;
    for (size_t k = minus; integral && k < n && !huge; k++) {
        magnitude = magnitude * 10 + (unsigned)(text[k] - '0');
        huge = magnitude > UINT64_MAX;
    }
    if (integral && !huge && !minus && magnitude > INT64_MAX)
        return kl_value_type(v) == KL_UINT && kl_value_uint(v) == (uint64_t)magnitude && !kl_value_int(v, &i);
    if (integral && !huge && magnitude <= (unsigned __int128)INT64_MAX + minus)
        return kl_value_type(v) == KL_INT && kl_value_int(v, &i)
            && i == (int64_t)(minus ? -(__int128)magnitude : (__int128)magnitude);
    double want = strtod(text, NULL), got = kl_value_double(v, NAN);
    return kl_value_type(v) == KL_DOUBLE && got == want && !signbit(got) == !signbit(want);
}

static inline bool strict_number(strict *j, const kl_value *v, bool compare)
{
    const unsigned char *from = j->p;
    bool integral = true, ok = true;
    if (*j->p == '-')
        j->p++;
    if (!strict_take(j, "0") && !strict_digits(j))
        return false;
    if (strict_take(j, ".")) {
        integral = false;
        if (!strict_digits(j))
            return false;
    }
    if (strict_take(j, "e") || strict_take(j, "E")) {
        integral = false;
        if (!strict_take(j, "+"))
            strict_take(j, "-");
        if (!strict_digits(j))
            return false;
    }
    size_t n = (size_t)(j->p - from);
    char *text = malloc(n + 1);
    if (!text)
        abort();
    memcpy(text, from, n);
    text[n] = '\0';
    ok = isfinite(strtod(text, NULL));
    if (ok && compare && !strict_same_number(text, n, integral, v))
        j->differs = true;
    free(text);
    return ok;
}

/* --- containers --------------------------------------------------------------------------- */

static inline int strict_by_key(const void *x, const void *y)
{
    const strict_key *a = x, *b = y;
    int order = memcmp(a->bytes, b->bytes, a->n < b->n ? a->n : b->n);
    return order              ? order
        : a->n != b->n        ? (a->n < b->n ? -1 : 1)
        : a->place < b->place ? -1
                              : a->place > b->place;
}

static inline int strict_by_place(const void *x, const void *y)
{
    const strict_key *a = x, *b = y;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Merges equal keys: the first one's place with the last one's value. False when there are some and they
 * must not be. */
static inline bool strict_unique(strict *j, strict_key *keys, size_t *n)
{
    size_t kept = 0;
    bool ok = true;
    qsort(keys, *n, sizeof *keys, strict_by_key);
    for (size_t i = 0; i < *n; i++) {
        strict_key *last = kept ? &keys[kept - 1] : NULL;
        if (last && last->n == keys[i].n && !memcmp(last->bytes, keys[i].bytes, last->n)) {
            ok = j->repeats;
            last->value = keys[i].value;
            free(keys[i].bytes);
        } else {
            keys[kept++] = keys[i];
        }
        if (!ok) { /* the rest is still to be freed */
            while (++i < *n)
                keys[kept++] = keys[i];
        }
    }
    *n = kept;
    qsort(keys, *n, sizeof *keys, strict_by_place);
    return ok;
}

/* After the members were read: each of v's members is one of the text's, in its order, with its key. */
static inline void strict_compare_members(
    strict *j, unsigned depth, const strict_key *keys, size_t n, const kl_value *v)
{
    const unsigned char *after = j->p;
    if (kl_value_type(v) != KL_OBJECT || kl_value_len(v) != n)
        j->differs = true;
    for (size_t i = 0; i < n && !j->differs; i++) {
        const char *key;
        size_t len;
        const kl_value *member = kl_value_member(v, i, &key, &len);
        if (!member || len != keys[i].n || memcmp(key, keys[i].bytes, len) || key[len]
            || kl_value_getn(v, keys[i].bytes, keys[i].n) != member) {
            j->differs = true;
            break;
        }
        j->p = keys[i].value;
        strict_value(j, depth, member, true);
    }
    j->p = after;
}

static inline bool strict_object(strict *j, unsigned depth, const kl_value *v, bool compare)
{
    strict_key *keys = NULL;
    size_t n = 0, room = 0;
    bool ok = true, more;
    j->p++;
    strict_space(j);
    for (more = !strict_take(j, "}"); more && ok;) {
        if (n == room && !(keys = realloc(keys, (room = room * 2 + 8) * sizeof *keys)))
            abort();
        if (j->p >= j->end || *j->p != '"') {
            ok = false;
            break;
        }
        strict_key *k = &keys[n];
        k->place = n++;
        ok = strict_string(j, &k->bytes, &k->n);
        strict_space(j);
        ok = ok && strict_take(j, ":");
        strict_space(j);
        k->value = j->p;
        ok = ok && strict_value(j, depth, NULL, false);
        strict_space(j);
        more = ok && strict_take(j, ",");
        ok = ok && (more || strict_take(j, "}"));
        strict_space(j);
    }
    if (n)
        ok = strict_unique(j, keys, &n) && ok;
    if (ok && compare)
        strict_compare_members(j, depth, keys, n, v);
    for (size_t i = 0; i < n; i++)
        free(keys[i].bytes);
    free(keys);
    return ok;
}

static inline bool strict_array(strict *j, unsigned depth, const kl_value *v, bool compare)
{
    size_t n = 0;
    j->p++;
    strict_space(j);
    if (!strict_take(j, "]"))
        for (;;) {
            if (!strict_value(j, depth, compare ? kl_value_item(v, n) : NULL, compare))
                return false;
            n++;
            strict_space(j);
            if (strict_take(j, "]"))
                break;
            if (!strict_take(j, ","))
                return false;
            strict_space(j);
        }
    if (compare && (kl_value_type(v) != KL_ARRAY || kl_value_len(v) != n))
        j->differs = true;
    return true;
}

/* `depth`: containers that are open around it. */
static inline bool strict_value(strict *j, unsigned depth, const kl_value *v, bool compare)
{
    if (j->p >= j->end)
        return false;
    kl_type type = v ? kl_value_type(v) : KL_NULL;
    compare = compare && !j->differs;
    if (compare && !v)
        j->differs = true;
    if (*j->p == '{')
        return depth < j->depth_max && strict_object(j, depth + 1, v, compare);
    if (*j->p == '[')
        return depth < j->depth_max && strict_array(j, depth + 1, v, compare);
    if (*j->p == '"') {
        char *bytes;
        size_t n, len;
        bool ok = strict_string(j, &bytes, &n);
        if (ok && compare) {
            const char *s = kl_value_strn(v, &len);
            j->differs |= type != KL_STRING || !s || len != n || memcmp(s, bytes, n) || s[n];
        }
        free(bytes);
        return ok;
    }
    if (*j->p == '-' || (*j->p >= '0' && *j->p <= '9'))
        return strict_number(j, v, compare);
    bool yes = strict_take(j, "true"), no = !yes && strict_take(j, "false");
    if (yes || no) {
        j->differs |= compare && (type != KL_BOOL || kl_value_bool(v, !yes) != yes);
        return true;
    }
    if (!strict_take(j, "null"))
        return false;
    j->differs |= compare && type != KL_NULL;
    return true;
}

static inline bool strict_document(strict *j, const char *text, size_t n, const kl_value *v, bool compare)
{
    j->p = (const unsigned char *)text;
    j->end = j->p + n;
    strict_space(j);
    if (!strict_value(j, 0, v, compare))
        return false;
    strict_space(j);
    return j->p == j->end;
}

/* Whether the decoder must accept this text (`repeats`: kl_value_decode_last). */
static inline bool strict_accepts(const char *text, size_t n, unsigned depth_max, bool repeats)
{
    strict j = {.depth_max = depth_max, .repeats = repeats};
    return strict_document(&j, text, n, NULL, false);
}

/* Whether v is what the text says, which is accepted. */
static inline bool strict_reads_as(const char *text, size_t n, bool repeats, const kl_value *v)
{
    strict j = {.depth_max = KL_VALUE_DEPTH_MAX, .repeats = repeats};
    return strict_document(&j, text, n, v, true) && !j.differs;
}

#endif
