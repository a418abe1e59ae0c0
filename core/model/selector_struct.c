/* selector_struct.c - label selectors as JSON: metav1.LabelSelector and plain maps of labels, to and from. */
#include <string.h>
#include "base/mem.h"
#include "model/names.h"
#include "model/selector_impl.h"

static const struct {
    const char *name;
    kl_selector_op op;
} operators[] = {
    {"In", KL_SEL_IN},
    {"NotIn", KL_SEL_NOTIN},
    {"Exists", KL_SEL_EXISTS},
    {"DoesNotExist", KL_SEL_NOT_EXISTS},
};
#define NOPERATORS (sizeof operators / sizeof *operators)

static kl_status wrong_type(const kl_value *v, const char *what, const char *type, kl_err *err)
{
    return kl_fail(
        err, KL_EINVAL, "label selector: %s must be %s, got %s", what, type, kl_value_type_name(v));
}

static bool absent(const kl_value *v) { return kl_value_type(v) == KL_NULL; }

/* The text of a key or value; null reads as "". A NUL fails: it would look like the end. */
static kl_status text_of(const kl_value *v, const char *what, const char **out, kl_err *err)
{
    size_t n = 0;

    *out = absent(v) ? "" : kl_value_strn(v, &n);
    if (!*out)
        return wrong_type(v, what, "a string", err);
    return strlen(*out) == n ? KL_OK
                             : kl_fail(err, KL_EINVAL, "label selector: %s contains a NUL character", what);
}

static kl_status require_labels(kl_selector *s, const kl_value *labels, const char *what, kl_err *err)
{
    const char *key, *value;
    kl_status st = KL_OK;
    size_t i, n;

    if (absent(labels))
        return KL_OK;
    if (kl_value_type(labels) != KL_OBJECT)
        return wrong_type(labels, what, "an object of strings", err);
    for (i = 0; i < kl_value_len(labels) && !st; i++) {
        const kl_value *v = kl_value_member(labels, i, &key, &n);

        if (strlen(key) != n)
            return kl_fail(
                err, KL_EINVAL, "label selector: the key \"%s\" of %s contains a NUL character", key, what);
        st = text_of(v, key, &value, err);
        if (!st)
            st = kl__selector_require(s, key, KL_SEL_EQ, &value, 1, err);
    }
    return st;
}

static kl_status require_expression(kl_selector *s, const kl_value *e, kl_err *err)
{
    const kl_value *list = kl_value_get(e, "values");
    const char *key, *name;
    size_t n = kl_value_type(list) == KL_ARRAY ? kl_value_len(list) : 0, i, o;
    const char **values;
    kl_status st = KL_OK;

    if (kl_value_type(e) != KL_OBJECT && !absent(e))
        return wrong_type(e, "an element of matchExpressions", "an object", err);
    if ((st = text_of(kl_value_get(e, "key"), "key", &key, err))
        || (st = text_of(kl_value_get(e, "operator"), "operator", &name, err)))
        return st;
    if (!absent(list) && kl_value_type(list) != KL_ARRAY)
        return wrong_type(list, "values", "an array", err);
    for (o = 0; o < NOPERATORS && strcmp(operators[o].name, name); o++)
        ;
    if (o == NOPERATORS)
        return kl_fail(err, KL_EINVAL,
            "label selector: \"%.80s\" is not an operator; use In, NotIn, Exists or DoesNotExist", name);
    values = kl_new_array(const char *, n + 1);
    for (i = 0; i < n && !st; i++)
        st = text_of(kl_value_item(list, i), "an element of values", &values[i], err);
    if (!st)
        st = kl__selector_require(s, key, operators[o].op, values, n, err);
    kl_free(values);
    return st;
}

static kl_status finish(kl_selector *s, kl_status st, kl_selector **out)
{
    if (st) {
        kl_selector_free(s);
        return st;
    }
    kl__selector_sort(s);
    *out = s;
    return KL_OK;
}

kl_status kl_selector_from_struct(const kl_value *v, kl_selector **out, kl_err *err)
{
    const kl_value *expressions = kl_value_get(v, "matchExpressions");
    kl_selector *s = kl_new(kl_selector);
    kl_status st = KL_OK;
    size_t i;

    if (absent(v))
        s->nothing = true;
    else if (kl_value_type(v) != KL_OBJECT)
        st = wrong_type(v, "it", "an object", err);
    else if (!absent(expressions) && kl_value_type(expressions) != KL_ARRAY)
        st = wrong_type(expressions, "matchExpressions", "an array", err);
    else
        st = require_labels(s, kl_value_get(v, "matchLabels"), "matchLabels", err);
    for (i = 0; !st && i < kl_value_len(expressions); i++)
        st = require_expression(s, kl_value_item(expressions, i), err);
    return finish(s, st, out);
}

kl_status kl_selector_from_map(const kl_value *labels, kl_selector **out, kl_err *err)
{
    kl_selector *s = kl_new(kl_selector);

    return finish(s, require_labels(s, labels, "a set of labels", err), out);
}

static bool is_equality(const kl__requirement *r) { return r->op == KL_SEL_EQ || r->op == KL_SEL_DOUBLE_EQ; }

static const char *operator_name(kl_selector_op op)
{
    size_t o;

    for (o = 0; o < NOPERATORS; o++)
        if (operators[o].op == op)
            return operators[o].name;
    return NULL;
}

static void build_expression(kl_builder *b, const kl__requirement *r)
{
    size_t i;

    kl_build_object(b);
    kl_build_kstr(b, "key", r->key);
    kl_build_kstr(b, "operator", operator_name(r->op));
    if (r->nvalues) {
        kl_build_key(b, "values");
        kl_build_array(b);
        for (i = 0; i < r->nvalues; i++)
            kl_build_str(b, r->values[i]);
        kl_build_end(b);
    }
    kl_build_end(b);
}

kl_status kl_selector_to_struct(const kl_selector *s, const kl_value **out, kl_err *err)
{
    size_t equalities = 0, i;
    kl_builder *b;

    if (s->nothing)
        return kl_fail(err, KL_EINVAL, "a selector that matches nothing can only be written as null");
    for (i = 0; i < s->len; i++) {
        if (!is_equality(&s->v[i]) && !operator_name(s->v[i].op))
            return kl_fail(err, KL_EINVAL,
                "label selector: \"%s\" is compared with \"%s\", which matchExpressions cannot say; use in "
                "or notin",
                s->v[i].key, kl_selector_op_text(s->v[i].op));
        equalities += is_equality(&s->v[i]);
    }
    b = kl_builder_new();
    kl_build_object(b);
    if (equalities) {
        kl_build_key(b, "matchLabels");
        kl_build_object(b);
        for (i = 0; i < s->len; i++)
            if (is_equality(&s->v[i]))
                kl_build_kstr(b, s->v[i].key, s->v[i].values[0]);
        kl_build_end(b);
    }
    if (equalities < s->len) {
        kl_build_key(b, "matchExpressions");
        kl_build_array(b);
        for (i = 0; i < s->len; i++)
            if (!is_equality(&s->v[i]))
                build_expression(b, &s->v[i]);
        kl_build_end(b);
    }
    kl_build_end(b);
    *out = kl_builder_done(b);
    return KL_OK;
}

/* How many bytes of white space s begins with, as Unicode has it. */
static size_t space_at(const char *s, size_t n)
{
    static const char *const wide[] = {
        "\xc2\x85",
        "\xc2\xa0",
        "\xe1\x9a\x80",
        "\xe2\x80\x80",
        "\xe2\x80\x81",
        "\xe2\x80\x82",
        "\xe2\x80\x83",
        "\xe2\x80\x84",
        "\xe2\x80\x85",
        "\xe2\x80\x86",
        "\xe2\x80\x87",
        "\xe2\x80\x88",
        "\xe2\x80\x89",
        "\xe2\x80\x8a",
        "\xe2\x80\xa8",
        "\xe2\x80\xa9",
        "\xe2\x80\xaf",
        "\xe2\x81\x9f",
        "\xe3\x80\x80",
    };
    size_t i;

    if (!n)
        return 0;
    if (*s == ' ' || (*s >= '\t' && *s <= '\r'))
        return 1;
    for (i = 0; i < sizeof wide / sizeof *wide; i++)
        if (n >= strlen(wide[i]) && !memcmp(s, wide[i], strlen(wide[i])))
            return strlen(wide[i]);
    return 0;
}

static char *trimmed(const char *s, size_t n)
{
    size_t k;

    while ((k = space_at(s, n)))
        s += k, n -= k;
    while (n
        && ((k = space_at(s + n - 1, 1)) || (n >= 2 && space_at(s + n - 2, 2) == 2 && (k = 2))
            || (n >= 3 && space_at(s + n - 3, 3) == 3 && (k = 3))))
        n -= k;
    return kl_strndup(s, n);
}

static kl_status add_label(kl_builder *b, const char *s, size_t n, kl_err *err)
{
    const char *eq = memchr(s, '=', n), *why;
    char *key, *value;
    kl_status st = KL_OK;

    if (!eq || memchr(eq + 1, '=', n - (size_t)(eq + 1 - s)))
        return kl_fail(err, KL_ESYNTAX, "labels: \"%.*s\" is not key=value", (int)(n < 200 ? n : 200), s);
    key = trimmed(s, (size_t)(eq - s));
    value = trimmed(eq + 1, n - (size_t)(eq + 1 - s));
    if ((why = kl_name_qualified(key)))
        st = kl_fail(err, KL_EINVAL, "labels: key \"%.300s\" %s", key, why);
    else if ((why = kl_name_label_value(value)))
        st = kl_fail(err, KL_EINVAL, "labels: value \"%.300s\" of \"%s\" %s", value, key, why);
    else
        kl_build_kstr(b, key, value);
    kl_free(key);
    kl_free(value);
    return st;
}

char *kl_selector_text_of(const kl_value *selector)
{
    bool is_struct = kl_value_get(selector, "matchLabels") || kl_value_get(selector, "matchExpressions");
    kl_selector *s = NULL;
    kl_status st;
    if (kl_value_type(selector) == KL_STRING)
        return kl_strdup(kl_value_str(selector));
    if (!selector)
        return NULL;
    st = is_struct ? kl_selector_from_struct(selector, &s, NULL) : kl_selector_from_map(selector, &s, NULL);
    char *text = st ? NULL : kl_selector_text(s);
    kl_selector_free(s);
    return text;
}

kl_status kl_selector_text_to_map(const char *text, const kl_value **out, kl_err *err)
{
    kl_builder *b = kl_builder_new();
    const char *s = text, *comma;
    kl_status st = KL_OK;

    kl_build_object(b);
    while (*text && !st) {
        comma = strchr(s, ',');
        st = add_label(b, s, comma ? (size_t)(comma - s) : strlen(s), err);
        if (!comma)
            break;
        s = comma + 1;
    }
    if (st) {
        kl_builder_free(b);
        return st;
    }
    kl_build_end(b);
    *out = kl_builder_done(b);
    return KL_OK;
}
