/* diff.c - walks two values side by side, in the order of their keys. */
#include "model/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/object.h"

#define LONGEST 64    /* characters of a value in a text */
#define NAMED_MAX 512 /* maximum elements of a list that are matched by key: each is compared with each */

typedef struct walk {
    kl_diff_fn *fn;
    void *arg;
    kl_buf path;
} walk;

static void compare(walk *w, const kl_value *a, const kl_value *b);

static bool is_plain(const char *key)
{
    if (!(*key == '_' || (*key >= 'a' && *key <= 'z') || (*key >= 'A' && *key <= 'Z')))
        return false;
    return strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == strlen(key);
}

static void at(walk *w, const char *key, bool bracket, const kl_value *a, const kl_value *b)
{
    size_t len = w->path.len;
    if (bracket || !is_plain(key))
        kl_buf_printf(&w->path, "[%s]", key);
    else
        kl_buf_printf(&w->path, "%s%s", len ? "." : "", key);
    compare(w, a, b);
    w->path.len = len;
    w->path.data[len] = '\0';
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void objects(walk *w, const kl_value *a, const kl_value *b)
{
    size_t na = kl_value_len(a), nb = kl_value_len(b), n = 0;
    const char **keys = kl_new_array(const char *, na + nb + 1);
    for (size_t i = 0; i < na; i++)
        (void)kl_value_member(a, i, &keys[n++], NULL);
    for (size_t i = 0; i < nb; i++) {
        const char *key;
        (void)kl_value_member(b, i, &key, NULL);
        if (!kl_value_get(a, key))
            keys[n++] = key;
    }
    qsort(keys, n, sizeof *keys, by_text);
    for (size_t i = 0; i < n; i++)
        at(w, keys[i], false, kl_value_get(a, keys[i]), kl_value_get(b, keys[i]));
    kl_free(keys);
}

/* --- lists -------------------------------------------------------------------------------- */

static const char *const names[] = {"name", "type", "key", "uid", "containerPort", "port", "ip", NULL};

/* The name of element i of a list, from a field; empty: none. */
static void name_of(const kl_value *list, size_t i, const char *field, char out[256])
{
    const kl_value *v = kl_value_get(kl_value_item(list, i), field);
    int64_t n;
    *out = '\0';
    if (kl_value_type(v) == KL_STRING)
        snprintf(out, 256, "%s", kl_value_str(v));
    else if (kl_value_int(v, &n))
        snprintf(out, 256, "%lld", (long long)n);
}

static const kl_value *find(const kl_value *list, const char *field, const char *name)
{
    char other[256];
    for (size_t i = 0; i < kl_value_len(list); i++) {
        name_of(list, i, field, other);
        if (!strcmp(other, name))
            return kl_value_item(list, i);
    }
    return NULL;
}

/* Whether every element has the field, each with another value. */
static bool is_named(const kl_value *list, const char *field)
{
    char name[256];
    if (kl_value_len(list) > NAMED_MAX)
        return false;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        name_of(list, i, field, name);
        if (!*name || find(list, field, name) != kl_value_item(list, i))
            return false;
    }
    return true;
}

static bool by_name(walk *w, const kl_value *a, const kl_value *b)
{
    char name[256];
    for (const char *const *f = names; *f; f++) {
        if (!is_named(a, *f) || !is_named(b, *f))
            continue;
        for (size_t i = 0; i < kl_value_len(a); i++) {
            name_of(a, i, *f, name);
            at(w, name, true, kl_value_item(a, i), find(b, *f, name));
        }
        for (size_t i = 0; i < kl_value_len(b); i++) {
            name_of(b, i, *f, name);
            if (!find(a, *f, name))
                at(w, name, true, NULL, kl_value_item(b, i));
        }
        return true;
    }
    return false;
}

static void lists(walk *w, const kl_value *a, const kl_value *b)
{
    char number[32];
    if (by_name(w, a, b))
        return;
    for (size_t i = 0; i < kl_value_len(a) || i < kl_value_len(b); i++) {
        snprintf(number, sizeof number, "%zu", i + 1);
        at(w, number, true, kl_value_item(a, i), kl_value_item(b, i));
    }
}

static void compare(walk *w, const kl_value *a, const kl_value *b)
{
    if (a == b || (a && b && kl_value_equal(a, b)))
        return;
    if (kl_value_type(a) == KL_OBJECT && kl_value_type(b) == KL_OBJECT && kl_value_len(a) && kl_value_len(b))
        objects(w, a, b);
    else if (kl_value_type(a) == KL_ARRAY && kl_value_type(b) == KL_ARRAY && kl_value_len(a)
        && kl_value_len(b))
        lists(w, a, b);
    else
        w->fn(w->arg, kl_buf_str(&w->path), a, b);
}

void kl_diff(const kl_value *was, const kl_value *is, kl_diff_fn *fn, void *arg)
{
    walk w = {fn, arg, KL_BUF_INIT};
    compare(&w, was, is);
    kl_buf_fini(&w.path);
}

/* --- objects ------------------------------------------------------------------------------ */

/* Fields that the server changes by itself at a write. */
static const char *const quiet[] = {"resourceVersion", "generation", "managedFields", NULL};
static const char *const identity[] = {"name", "namespace", "uid", "creationTimestamp", "selfLink", NULL};

static const kl_value *without(const kl_value *o, const char *const *keys)
{
    const kl_value *m = kl_value_ref(kl_value_get(o, "metadata"));
    if (!m)
        return kl_value_ref(o);
    for (; *keys; keys++) {
        const kl_value *less = kl_value_with(m, *keys, NULL);
        kl_value_unref(m);
        m = less;
    }
    const kl_value *out = kl_value_with(o, "metadata", m);
    kl_value_unref(m);
    return out;
}

/* The object without its identity and kind, for a text without another state to compare with. */
static const kl_value *contents(const kl_value *o)
{
    const kl_value *m = without(o, identity), *k = kl_value_with(m, "kind", NULL),
                   *out = kl_value_with(k, "apiVersion", NULL);
    kl_value_unref(m);
    kl_value_unref(k);
    return out;
}

static void members(walk *w, const kl_value *o, bool came)
{
    size_t n = kl_value_len(o);
    const char **keys = kl_new_array(const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        (void)kl_value_member(o, i, &keys[i], NULL);
    qsort(keys, n, sizeof *keys, by_text);
    for (size_t i = 0; i < n; i++) {
        const kl_value *v = kl_value_get(o, keys[i]);
        if (strcmp(keys[i], "metadata") || w->path.len) {
            at(w, keys[i], false, came ? NULL : v, came ? v : NULL);
            continue;
        }
        kl_buf_puts(&w->path, "metadata");
        members(w, v, came);
        kl_buf_clear(&w->path);
    }
    kl_free(keys);
}

void kl_diff_objects(const kl_value *was, const kl_value *is, kl_diff_fn *fn, void *arg)
{
    if (was == is)
        return;
    const kl_value *a = without(was, quiet), *b = without(is, quiet);
    walk w = {fn, arg, KL_BUF_INIT};
    if (a && b) {
        compare(&w, a, b);
    } else {
        const kl_value *c = contents(a ? a : b);
        members(&w, c, !a);
        kl_value_unref(c);
    }
    kl_buf_fini(&w.path);
    kl_value_unref(a);
    kl_value_unref(b);
}

bool kl_diff_is_secret(const kl_value *object, const char *path)
{
    const char *kind = kl_object_kind(object);
    if (!kind || strcmp(kind, "Secret"))
        return false;
    size_t n = strcspn(path, ".[");
    return (n == 4 && !strncmp(path, "data", n)) || (n == 10 && !strncmp(path, "stringData", n))
        || !strcmp(path, "metadata.annotations")
        || !strcmp(path, "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]");
}

void kl_diff_value(const kl_value *v, kl_buf *out)
{
    if (!v) {
        kl_buf_puts(out, "none");
        return;
    }
    char *text = kl_value_to_json(v);
    size_t i = 0, characters = 0, cut = 0;
    for (; text[i]; i++)
        if ((text[i] & 0xc0) != 0x80) {
            if (characters == LONGEST - 3)
                cut = i;
            if (characters++ == LONGEST)
                break;
        }
    if (text[i])
        kl_buf_printf(out, "%.*s...", (int)cut, text);
    else
        kl_buf_puts(out, text);
    kl_free(text);
}

typedef struct text {
    const kl_value *object;
    kl_buf *out;
    size_t begin;
} text;

static void tell(void *arg, const char *path, const kl_value *was, const kl_value *is)
{
    text *t = arg;
    kl_buf_printf(t->out, "%s%s: ", t->out->len > t->begin ? ", " : "", path);
    if (kl_diff_is_secret(t->object, path)) {
        kl_buf_puts(t->out, was && is ? "(changed)" : was ? "(removed)" : "(added)");
        return;
    }
    kl_diff_value(was, t->out);
    kl_buf_puts(t->out, " -> ");
    kl_diff_value(is, t->out);
}

void kl_diff_text(const kl_value *was, const kl_value *is, kl_buf *out)
{
    text t = {is ? is : was, out, out->len};
    kl_diff_objects(was, is, tell, &t);
}
