/* check.c - a place's text is built from its end: each part knows only what is above it. */
#include "check/check.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void place_put(const kl__place *at, kl_buf *out)
{
    if (!at)
        return;
    place_put(at->up, out);
    if (!at->name)
        kl_buf_printf(out, "[%zu]", at->n);
    else if (at->key)
        kl_buf_printf(out, "[%.*s]", (int)at->n, at->name);
    else
        kl_buf_printf(out, "%s%s", out->len ? "." : "", at->name);
}

char *kl__place_text(const kl__place *at)
{
    kl_buf b = KL_BUF_INIT;
    place_put(at, &b);
    char *text = kl_strdup(b.len ? kl_buf_str(&b) : "");
    kl_buf_fini(&b);
    return text;
}

/* ------------------------------------------------------------------ complaints */

/* Takes `message`. */
static void say(kl__causes *c, const kl__place *at, const char *reason, char *message)
{
    char *field = kl__place_text(at);
    kl__cause_add(c, reason, field, "%s", message);
    kl_free(field);
    kl_free(message);
}

void kl__say_odd(kl__causes *c, const kl__place *at, const char *fmt, ...)
{
    if (kl__causes_full(c))
        return;
    va_list ap;
    va_start(ap, fmt);
    say(c, at, "Warning", kl_vsprintf(fmt, ap));
    va_end(ap);
}

void kl__say_required(kl__causes *c, const kl__place *at, const char *why)
{
    if (kl__causes_full(c))
        return;
    say(c, at, "FieldValueRequired", kl_sprintf("Required value%s%s", *why ? ": " : "", why));
}

void kl__say_forbidden(kl__causes *c, const kl__place *at, const char *fmt, ...)
{
    if (kl__causes_full(c))
        return;
    va_list ap;
    va_start(ap, fmt);
    char *why = kl_vsprintf(fmt, ap);
    va_end(ap);
    say(c, at, "FieldValueForbidden", kl_sprintf("Forbidden%s%s", *why ? ": " : "", why));
    kl_free(why);
}

void kl__say_internal(kl__causes *c, const kl__place *at, const char *why)
{
    say(c, at, "InternalError", kl_sprintf("Internal error: %s", why));
}

static bool only_texts(const kl_value *v)
{
    const char *key;
    size_t n;
    bool texts = kl_value_type(v) == KL_OBJECT;
    if (texts && kl_value_len(v) && kl_value_member(v, 0, &key, &n) && *key >= 'A' && *key <= 'Z')
        return false;
    for (size_t i = 0; i < kl_value_len(v) && texts; i++)
        texts = kl_value_type(kl_value_member(v, i, &key, &n)) == KL_STRING;
    return texts;
}

static int by_key(const void *a, const void *b)
{
    const struct kl__member *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* Go prints maps sorted by key and structs in the order of declaration, while our objects keep the order of
 * the input. Objects that have only strings count as maps, unless kl__as_go made them. */
static void sorted(kl_builder *b, const kl_value *v)
{
    size_t len = kl_value_len(v);
    if (kl_value_type(v) == KL_ARRAY) {
        kl_build_array(b);
        for (size_t i = 0; i < len; i++)
            sorted(b, kl_value_item(v, i));
        kl_build_end(b);
        return;
    }
    if (kl_value_type(v) != KL_OBJECT) {
        kl_build_value(b, v);
        return;
    }
    bool by_name = only_texts(v);
    kl__sorted members = by_name ? kl__members(v) : (kl__sorted){0};
    kl_build_object(b);
    for (size_t i = 0; i < len; i++) {
        const char *key;
        size_t n;
        const kl_value *x = by_name ? members.v[i].v : kl_value_member(v, i, &key, &n);
        kl_build_key(b, by_name ? members.v[i].key : key);
        sorted(b, x);
    }
    kl_build_end(b);
    kl_free(members.v);
}

/* JSON; the caller frees it. */
static char *shown_text(const kl_value *v, const char *absent)
{
    if (!v)
        return kl_strdup(absent);
    kl_builder *b = kl_builder_new();
    sorted(b, v);
    const kl_value *s = kl_builder_done(b);
    char *text = kl_value_to_json(s);
    kl_value_unref(s);
    return text;
}

/* Takes `why`. */
static void say_bad(kl__causes *c, const kl__place *at, const kl_value *bad, char *why)
{
    char *shown = shown_text(bad, "null");
    say(c, at, "FieldValueInvalid", kl_sprintf("Invalid value: %s%s%s", shown, *why ? ": " : "", why));
    kl_free(shown);
    kl_free(why);
}

void kl__say_invalid(kl__causes *c, const kl__place *at, const kl_value *bad, const char *fmt, ...)
{
    if (kl__causes_full(c))
        return;
    va_list ap;
    va_start(ap, fmt);
    char *why = kl_vsprintf(fmt, ap);
    va_end(ap);
    say_bad(c, at, bad, why);
}

void kl__say_invalid_text(kl__causes *c, const kl__place *at, const char *bad, const char *fmt, ...)
{
    if (kl__causes_full(c))
        return;
    va_list ap;
    va_start(ap, fmt);
    char *why = kl_vsprintf(fmt, ap);
    va_end(ap);
    const kl_value *v = kl_value_of_str(bad);
    say_bad(c, at, v, why);
    kl_value_unref(v);
}

void kl__say_invalid_int(kl__causes *c, const kl__place *at, int64_t bad, const char *fmt, ...)
{
    if (kl__causes_full(c))
        return;
    va_list ap;
    va_start(ap, fmt);
    char *why = kl_vsprintf(fmt, ap);
    va_end(ap);
    const kl_value *v = kl_value_of_int(bad);
    say_bad(c, at, v, why);
    kl_value_unref(v);
}

void kl__say_invalid_bare(kl__causes *c, const kl__place *at, const char *why)
{
    say(c, at, "FieldValueInvalid", kl_sprintf("Invalid value: %s", why));
}

void kl__say_unsupported(kl__causes *c, const kl__place *at, const kl_value *bad, const char *words)
{
    if (kl__causes_full(c))
        return;
    char *shown = shown_text(bad, "\"\"");
    kl_buf list = KL_BUF_INIT;
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");
        kl_buf_printf(&list, "%s\"%.*s\"", list.len ? ", " : "", (int)n, p);
        p += n + (p[n] == ' ');
    }
    say(c, at, "FieldValueNotSupported",
        kl_sprintf("Unsupported value: %s: supported values: %s", shown, kl_buf_str(&list)));
    kl_buf_fini(&list);
    kl_free(shown);
}

void kl__say_duplicate_because(kl__causes *c, const kl__place *at, const kl_value *bad, const char *why)
{
    if (kl__causes_full(c))
        return;
    char *shown = shown_text(bad, "\"\"");
    say(c, at, "FieldValueDuplicate", kl_sprintf("Duplicate value: %s%s%s", shown, *why ? ": " : "", why));
    kl_free(shown);
}

void kl__say_duplicate(kl__causes *c, const kl__place *at, const kl_value *bad)
{
    kl__say_duplicate_because(c, at, bad, "");
}

void kl__say_not_found(kl__causes *c, const kl__place *at, const char *bad)
{
    if (kl__causes_full(c))
        return;
    const kl_value *v = kl_value_of_str(bad);
    char *shown = kl_value_to_json(v);
    say(c, at, "FieldValueNotFound", kl_sprintf("Not found: %s", shown));
    kl_free(shown);
    kl_value_unref(v);
}

void kl__say_too_long(kl__causes *c, const kl__place *at, unsigned most)
{
    say(c, at, "FieldValueTooLong", kl_sprintf("Too long: may not be more than %u bytes", most));
}

void kl__say_too_many(kl__causes *c, const kl__place *at, size_t have, unsigned most)
{
    say(c, at, "FieldValueTooMany", kl_sprintf("Too many: %zu: must have at most %u items", have, most));
}

/* ------------------------------------------------------------------ looking */

const char *kl__text(const kl_value *o, const char *member)
{
    const char *s = kl_value_str(kl_value_get(o, member));
    return s ? s : "";
}

const char *kl__item_text(const kl_value *list, size_t i)
{
    const char *s = kl_value_str(kl_value_item(list, i));
    return s ? s : "";
}

bool kl__is(const kl_value *o, const char *member, const char *word)
{
    return !strcmp(kl__text(o, member), word);
}

bool kl__true(const kl_value *o, const char *member) { return kl_value_bool(kl_value_get(o, member), false); }

bool kl__one_of(const char *word, const char *words)
{
    size_t n = strlen(word);
    for (const char *p = words; n && *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && !memcmp(p, word, n))
            return true;
        p += len + (p[len] == ' ');
    }
    return false;
}

/* ------------------------------------------------------------------ one member */

void kl__check_natural(kl__causes *c, const kl_value *o, const kl__place *at, const char *member)
{
    const kl_value *v = kl_value_get(o, member);
    int64_t n;
    if (v && kl_value_int(v, &n) && n < 0)
        kl__say_invalid(c, KL_IN(at, member), v, "must be greater than or equal to 0");
}

void kl__check_naturals(kl__causes *c, const kl_value *o, const kl__place *at, const char *members)
{
    for (const char *p = members; *p;) {
        char name[64];
        size_t n = strcspn(p, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        kl__check_natural(c, o, at, name);
        p += n + (p[n] == ' ');
    }
}

void kl__check_range(
    kl__causes *c, const kl_value *o, const kl__place *at, const char *member, int64_t min, int64_t max)
{
    const kl_value *v = kl_value_get(o, member);
    int64_t n;
    if (v && kl_value_int(v, &n) && (n < min || n > max))
        kl__say_invalid(
            c, KL_IN(at, member), v, "must be between %" PRId64 " and %" PRId64 ", inclusive", min, max);
}

void kl__check_present(kl__causes *c, const kl_value *o, const kl__place *at, const char *member)
{
    if (!*kl__text(o, member))
        kl__say_required(c, KL_IN(at, member), "");
}

void kl__check_word(kl__causes *c, const kl_value *o, const kl__place *at, const char *member, bool required,
    const char *words)
{
    const kl_value *v = kl_value_get(o, member);
    const char *text = kl_value_str(v);
    if (text && *text) {
        if (!kl__one_of(text, words))
            kl__say_unsupported(c, KL_IN(at, member), v, words);
    } else if (required)
        kl__say_required(c, KL_IN(at, member), "");
}

void kl__check_same(
    kl__causes *c, const kl_value *old, const kl_value *o, const kl__place *at, const char *member)
{
    const kl_value *now = kl_value_get(o, member);
    if (!kl_value_equal(kl_value_get(old, member), now))
        kl__say_invalid(c, KL_IN(at, member), now, "field is immutable");
}

void kl__show_difference(const kl_value *old, const kl_value *now, kl_buf *out)
{
    const kl_value *sides[] = {old, now};
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < kl_value_len(sides[s]); i++) {
            const char *key;
            size_t n;
            const kl_value *v = kl_value_member(sides[s], i, &key, &n);
            if (kl_value_equal(v, kl_value_getn(sides[!s], key, n)))
                continue;
            char *text = kl_value_to_json(v);
            kl_buf_printf(out, "%c %.*s: %s\n", s ? '+' : '-', (int)n, key, text);
            kl_free(text);
        }
}

kl__sorted kl__members(const kl_value *map)
{
    kl__sorted s = {.len = kl_value_type(map) == KL_OBJECT ? kl_value_len(map) : 0};
    s.v = kl_zalloc_array(sizeof *s.v, s.len + 1);
    for (size_t i = 0; i < s.len; i++) {
        size_t n;
        s.v[i].v = kl_value_member(map, i, &s.v[i].key, &n);
    }
    qsort(s.v, s.len, sizeof *s.v, by_key);
    return s;
}

kl_quantity *kl__quantity_of(const char *text)
{
    kl_quantity *q = NULL;
    return text && *text && !kl_quantity_parse(text, &q, NULL) ? q : NULL;
}
