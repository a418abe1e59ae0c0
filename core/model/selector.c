/* selector.c - a label selector is a list of requirements that must all hold. Here: checking, matching and
 * printing. */
#include "model/selector.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "model/names.h"
#include "model/selector_impl.h"

static const char *const op_text[] = {"=", "==", "!=", "in", "notin", "exists", "!", "gt", "lt"};

const char *kl_selector_op_text(kl_selector_op op) { return op_text[op]; }

static bool read_int64(const char *s, int64_t *out)
{
    const char *digits = s + (*s == '-' || *s == '+');
    char *end;

    if (*digits < '0' || *digits > '9')
        return false;
    errno = 0;
    *out = strtoll(s, &end, 10);
    return !*end && !errno;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void copy_values(kl__requirement *r, const char *const *values, size_t n)
{
    size_t i;

    r->values = kl_new_array(char *, n + 1);
    r->nvalues = n;
    for (i = 0; i < n; i++)
        r->values[i] = kl_strdup(values[i]);
    qsort(r->values, n, sizeof *r->values, by_text);
}

static kl_status check_count(const char *key, kl_selector_op op, size_t n, kl_err *err)
{
    bool ok = op == KL_SEL_EXISTS || op == KL_SEL_NOT_EXISTS ? n == 0
        : op == KL_SEL_IN || op == KL_SEL_NOTIN              ? n > 0
                                                             : n == 1;

    if (ok)
        return KL_OK;
    return kl_fail(err, KL_EINVAL, "label selector: \"%s\" with operator \"%s\" takes %s, got %zu", key,
        op_text[op],
        op == KL_SEL_EXISTS || op == KL_SEL_NOT_EXISTS ? "no values"
            : op == KL_SEL_IN || op == KL_SEL_NOTIN    ? "at least one value"
                                                       : "exactly one value",
        n);
}

kl_status kl__selector_require(
    kl_selector *s, const char *key, kl_selector_op op, const char *const *values, size_t n, kl_err *err)
{
    const char *why = kl_name_qualified(key);
    int64_t number = 0;
    kl__requirement *r;
    kl_status st;
    size_t i;

    if (why)
        return kl_fail(err, KL_EINVAL, "label selector: key \"%.300s\" %s", key, why);
    st = check_count(key, op, n, err);
    if (st)
        return st;
    if ((op == KL_SEL_GT || op == KL_SEL_LT) && !read_int64(values[0], &number))
        return kl_fail(err, KL_EINVAL,
            "label selector: \"%s\" is compared with \"%.80s\", which is not a whole number", key, values[0]);
    for (i = 0; i < n; i++)
        if ((why = kl_name_label_value(values[i])))
            return kl_fail(
                err, KL_EINVAL, "label selector: value \"%.300s\" of \"%s\" %s", values[i], key, why);
    if (s->len == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 4;
        s->v = kl_realloc(s->v, s->cap * sizeof *s->v);
    }
    r = &s->v[s->len++];
    *r = (kl__requirement){.key = kl_strdup(key), .op = op, .number = number};
    copy_values(r, values, n);
    return KL_OK;
}

typedef struct placed {
    kl__requirement r;
    size_t at;
} placed;

static int by_key(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    int order = strcmp(x->r.key, y->r.key);

    return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

/* Stable: requirements on one key keep the order in which they were given. */
void kl__selector_sort(kl_selector *s)
{
    placed *p;
    size_t i;

    if (s->len < 2)
        return;
    p = kl_new_array(placed, s->len);
    for (i = 0; i < s->len; i++)
        p[i] = (placed){s->v[i], i};
    qsort(p, s->len, sizeof *p, by_key);
    for (i = 0; i < s->len; i++)
        s->v[i] = p[i].r;
    kl_free(p);
}

void kl_selector_free(kl_selector *s)
{
    size_t i, j;

    if (!s)
        return;
    for (i = 0; i < s->len; i++) {
        for (j = 0; j < s->v[i].nvalues; j++)
            kl_free(s->v[i].values[j]);
        kl_free(s->v[i].values);
        kl_free(s->v[i].key);
    }
    kl_free(s->v);
    kl_free(s);
}

static bool has_value(const kl__requirement *r, const char *value)
{
    return r->nvalues && bsearch(&value, r->values, r->nvalues, sizeof *r->values, by_text);
}

static bool holds(const kl__requirement *r, const char *value)
{
    int64_t number;

    switch (r->op) {
    case KL_SEL_EQ:
    case KL_SEL_DOUBLE_EQ:
    case KL_SEL_IN: return value && has_value(r, value);
    case KL_SEL_NE:
    case KL_SEL_NOTIN: return !value || !has_value(r, value);
    case KL_SEL_EXISTS: return value != NULL;
    case KL_SEL_NOT_EXISTS: return value == NULL;
    case KL_SEL_GT: return value && read_int64(value, &number) && number > r->number;
    case KL_SEL_LT: return value && read_int64(value, &number) && number < r->number;
    }
    return false;
}

bool kl_selector_matches(const kl_selector *s, const kl_value *labels)
{
    size_t i;

    for (i = 0; i < s->len; i++)
        if (!holds(&s->v[i], kl_value_str(kl_value_get(labels, s->v[i].key))))
            return false;
    return !s->nothing;
}

bool kl_selector_empty(const kl_selector *s) { return !s->nothing && s->len == 0; }

bool kl_selector_selectable(const kl_selector *s) { return !s->nothing; }

size_t kl_selector_len(const kl_selector *s) { return s->len; }

const char *kl_selector_requirement(
    const kl_selector *s, size_t i, kl_selector_op *op, const char *const **values)
{
    if (op)
        *op = s->v[i].op;
    if (values)
        *values = (const char *const *)s->v[i].values;
    return s->v[i].key;
}

static void print(const kl__requirement *r, kl_buf *out)
{
    static const char *const between[] = {"=", "==", "!=", " in (", " notin (", "", "", ">", "<"};
    size_t i;

    if (r->op == KL_SEL_NOT_EXISTS)
        kl_buf_putc(out, '!');
    kl_buf_puts(out, r->key);
    kl_buf_puts(out, between[r->op]);
    for (i = 0; i < r->nvalues; i++) {
        kl_buf_puts(out, i ? "," : "");
        kl_buf_puts(out, r->values[i]);
    }
    if (r->op == KL_SEL_IN || r->op == KL_SEL_NOTIN)
        kl_buf_putc(out, ')');
}

char *kl_selector_text(const kl_selector *s)
{
    kl_buf out = KL_BUF_INIT;
    size_t i;

    kl_buf_puts(&out, "");
    for (i = 0; i < s->len; i++) {
        kl_buf_puts(&out, i ? "," : "");
        print(&s->v[i], &out);
    }
    return kl_buf_take(&out);
}

char *kl_labels_text(const kl_value *labels)
{
    size_t n = kl_value_len(labels), i;
    char **v = kl_new_array(char *, n + 1);
    kl_buf out = KL_BUF_INIT;

    for (i = 0; i < n; i++) {
        const char *key, *value = kl_value_str(kl_value_member(labels, i, &key, NULL));

        v[i] = kl_sprintf("%s=%s", key, value ? value : "");
    }
    qsort(v, n, sizeof *v, by_text);
    kl_buf_puts(&out, "");
    for (i = 0; i < n; i++) {
        kl_buf_puts(&out, i ? "," : "");
        kl_buf_puts(&out, v[i]);
        kl_free(v[i]);
    }
    kl_free(v);
    return kl_buf_take(&out);
}
