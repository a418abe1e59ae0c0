/* fieldset.c - trees of path elements and their algebra. */
#include "schema/fieldset.h"

#include <string.h>

#include "base/mem.h"

kl__fieldset *kl__fieldset_new(void) { return kl_new(kl__fieldset); }

/* Depth is that of objects: bounded by KL_VALUE_DEPTH_MAX. */
void kl__fieldset_free(kl__fieldset *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->len; i++)
        kl__fieldset_free(s->kids[i]);
    kl_free(s->kids);
    kl_free(s->element);
    kl_free(s);
}

static size_t position(const kl__fieldset *s, const char *element, bool *found)
{
    size_t lo = 0, hi = s->len;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int c = strcmp(s->kids[mid]->element, element);
        if (!c) {
            *found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *found = false;
    return lo;
}

kl__fieldset *kl__fieldset_kid(const kl__fieldset *s, const char *element)
{
    bool found = false;
    size_t i = s ? position(s, element, &found) : 0;
    return found ? s->kids[i] : NULL;
}

kl__fieldset *kl__fieldset_make(kl__fieldset *s, const char *element)
{
    bool found;
    size_t i = position(s, element, &found);
    if (found)
        return s->kids[i];
    if (s->len == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 1;
        s->kids = kl_realloc(s->kids, s->cap * sizeof *s->kids);
    }
    memmove(&s->kids[i + 1], &s->kids[i], (s->len - i) * sizeof *s->kids);
    s->len++;
    s->kids[i] = kl_new(kl__fieldset);
    s->kids[i]->element = kl_strdup(element);
    return s->kids[i];
}

static kl__fieldset *node_at(kl__fieldset *s, const kl__place *at)
{
    return at ? kl__fieldset_make(node_at(s, at->up), at->element) : s;
}

void kl__fieldset_insert(kl__fieldset *s, const kl__place *at)
{
    if (at)
        node_at(s, at)->member = true;
}

bool kl__fieldset_empty(const kl__fieldset *s) { return !s || (!s->member && !s->len); }

bool kl__fieldset_equal(const kl__fieldset *a, const kl__fieldset *b)
{
    if (a->member != b->member || a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (strcmp(a->kids[i]->element, b->kids[i]->element) || !kl__fieldset_equal(a->kids[i], b->kids[i]))
            return false;
    return true;
}

/* ------------------------------------------------------------------ algebra */

void kl__fieldset_add(kl__fieldset *a, const kl__fieldset *b)
{
    a->member = a->member || b->member;
    for (size_t i = 0; i < b->len; i++)
        kl__fieldset_add(kl__fieldset_make(a, b->kids[i]->element), b->kids[i]);
}

kl__fieldset *kl__fieldset_copy(const kl__fieldset *s)
{
    kl__fieldset *copy = kl__fieldset_new();
    kl__fieldset_add(copy, s);
    return copy;
}

/* Removes children that became empty. */
static void prune(kl__fieldset *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->len; i++)
        if (kl__fieldset_empty(s->kids[i]))
            kl__fieldset_free(s->kids[i]);
        else
            s->kids[n++] = s->kids[i];
    s->len = n;
}

void kl__fieldset_subtract(kl__fieldset *a, const kl__fieldset *b)
{
    if (b->member)
        a->member = false;
    for (size_t i = 0; i < a->len; i++) {
        const kl__fieldset *other = kl__fieldset_kid(b, a->kids[i]->element);
        if (other)
            kl__fieldset_subtract(a->kids[i], other);
    }
    prune(a);
}

void kl__fieldset_intersect(kl__fieldset *a, const kl__fieldset *b)
{
    static const kl__fieldset nothing;
    a->member = a->member && b->member;
    for (size_t i = 0; i < a->len; i++) {
        const kl__fieldset *other = kl__fieldset_kid(b, a->kids[i]->element);
        kl__fieldset_intersect(a->kids[i], other ? other : &nothing);
    }
    prune(a);
}

void kl__fieldset_drop(kl__fieldset *s, const char *element)
{
    bool found;
    size_t i = position(s, element, &found);
    if (!found)
        return;
    kl__fieldset_free(s->kids[i]);
    s->len--;
    memmove(&s->kids[i], &s->kids[i + 1], (s->len - i) * sizeof *s->kids);
}

/* ------------------------------------------------------------------ FieldsV1 */

static void decode_into(kl__fieldset *s, const kl_value *v)
{
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *below = kl_value_member(v, i, &key, &n);
        if (!strcmp(key, ".")) {
            s->member = true;
            continue;
        }
        kl__fieldset *kid = kl__fieldset_make(s, key);
        if (kl_value_type(below) == KL_OBJECT && kl_value_len(below))
            decode_into(kid, below);
        else
            kid->member = true;
    }
}

kl__fieldset *kl__fieldset_decode(const kl_value *v)
{
    kl__fieldset *s = kl__fieldset_new();
    if (kl_value_type(v) == KL_OBJECT)
        decode_into(s, v);
    s->member = false;
    return s;
}

void kl__fieldset_encode(const kl__fieldset *s, kl_builder *b)
{
    kl_build_object(b);
    if (s->member && s->len) {
        kl_build_key(b, ".");
        kl_build_object(b);
        kl_build_end(b);
    }
    for (size_t i = 0; i < s->len; i++) {
        kl_build_key(b, s->kids[i]->element);
        kl__fieldset_encode(s->kids[i], b);
    }
    kl_build_end(b);
}

/* ------------------------------------------------------------------ paths for people */

void kl__fieldset_put_element(const char *e, kl_buf *out)
{
    if (!strncmp(e, "f:", 2)) {
        kl_buf_printf(out, ".%s", e + 2);
        return;
    }
    kl_buf_putc(out, '[');
    if (!strncmp(e, "k:", 2)) {
        const kl_value *keys = NULL;
        if (!kl_value_decode(e + 2, strlen(e + 2), &keys, NULL))
            for (size_t i = 0; i < kl_value_len(keys); i++) {
                const char *key;
                size_t n;
                const kl_value *v = kl_value_member(keys, i, &key, &n);
                kl_buf_printf(out, "%s%s=", i ? "," : "", key);
                kl_value_encode(v, out);
            }
        kl_value_unref(keys);
    } else if (!strncmp(e, "v:", 2))
        kl_buf_printf(out, "=%s", e + 2);
    else
        kl_buf_puts(out, e + 2);
    kl_buf_putc(out, ']');
}

static void each(const kl__fieldset *s, kl_buf *path, void (*fn)(void *arg, const char *path), void *arg)
{
    if (s->member)
        fn(arg, kl_buf_str(path));
    for (size_t i = 0; i < s->len; i++) {
        size_t mark = path->len;
        kl__fieldset_put_element(s->kids[i]->element, path);
        each(s->kids[i], path, fn, arg);
        path->len = mark;
        if (path->data)
            path->data[mark] = 0;
    }
}

void kl__fieldset_each(const kl__fieldset *s, void (*fn)(void *arg, const char *path), void *arg)
{
    kl_buf path = KL_BUF_INIT;
    each(s, &path, fn, arg);
    kl_buf_fini(&path);
}
