/* selectors.c - a LabelSelector as JSON on the first line, labels on the next: it selects what its words
 * say, as a struct, as text and back. */
#include "base/mem.h"
#include "fuzz/two.h"
#include "model/selector.h"

/* null reads as "", as in Go. */
static const kl_value *text_or_null(const kl_value *v, const char **s, size_t *n)
{
    *s = "";
    *n = 0;
    if (kl_value_type(v) == KL_STRING)
        *s = kl_value_strn(v, n);
    return v;
}

static bool same_text(const kl_value *a, const kl_value *b)
{
    const char *x, *y;
    size_t n, m;
    text_or_null(a, &x, &n);
    text_or_null(b, &y, &m);
    return n == m && !memcmp(x, y, n);
}

/* The meaning of the struct, read off the JSON. */
static bool selects(const kl_value *s, const kl_value *labels)
{
    const kl_value *equal = kl_value_get(s, "matchLabels"), *all = kl_value_get(s, "matchExpressions"), *v;
    const char *key;
    size_t n;
    if (kl_value_type(s) != KL_OBJECT)
        return false;
    for (size_t i = 0; (v = kl_value_member(equal, i, &key, &n)); i++) {
        const kl_value *label = kl_value_getn(labels, key, n);
        if (!label || !same_text(label, v))
            return false;
    }
    for (size_t i = 0; (v = kl_value_item(all, i)); i++) {
        const kl_value *label, *values = kl_value_get(v, "values");
        const char *op = kl_value_str_at(v, "operator", NULL);
        text_or_null(kl_value_get(v, "key"), &key, &n);
        label = kl_value_getn(labels, key, n);
        bool listed = false, holds = false;
        for (size_t k = 0; k < kl_value_len(values); k++)
            listed |= label && same_text(label, kl_value_item(values, k));
        holds = !op                 ? false
            : !strcmp(op, "In")     ? listed
            : !strcmp(op, "NotIn")  ? !listed
            : !strcmp(op, "Exists") ? label != NULL
                                    : label == NULL;
        if (!holds)
            return false;
    }
    return true;
}

/* Labels as an object may have them: texts without a NUL. */
static bool labels_are_texts(const kl_value *labels)
{
    const kl_value *v;
    const char *key;
    size_t n;
    for (size_t i = 0; (v = kl_value_member(labels, i, &key, &n)); i++)
        if (kl_value_type(v) != KL_STRING || strlen(kl_value_str(v)) != kl_value_len(v) || strlen(key) != n)
            return false;
    return kl_value_type(labels) == KL_OBJECT;
}

/* "a=b,a=c" has no form in a map; Go keeps the last and so do we. */
static bool repeats_a_key(const kl_selector *s)
{
    kl_selector_op op;
    const char *const *values;
    for (size_t i = 1; i < kl_selector_len(s); i++)
        if (!strcmp(
                kl_selector_requirement(s, i - 1, &op, &values), kl_selector_requirement(s, i, &op, &values)))
            return true;
    return false;
}

static void same_as_text(const kl_selector *s, const kl_value *labels, bool yes)
{
    kl_err err = KL_ERR_INIT;
    char *text = kl_selector_text(s), *twice, *thrice;
    kl_selector *again = NULL, *third = NULL;
    CLAIM(kl_selector_parse(text, &again, &err) == KL_OK);
    twice = kl_selector_text(again);
    CLAIM(kl_selector_parse(twice, &third, &err) == KL_OK);
    thrice = kl_selector_text(third);
    /* a struct may repeat values, and text does not: stable from the second on */
    CLAIM(!strcmp(twice, thrice));
    CLAIM(kl_selector_matches(again, labels) == yes);
    CLAIM(kl_selector_empty(again) == kl_selector_empty(s));
    kl_selector_free(again);
    kl_selector_free(third);
    kl_free(thrice);
    kl_free(twice);
    kl_free(text);
}

static void same_as_struct(const kl_selector *s, const kl_value *labels, bool yes)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    kl_selector *again = NULL;
    CLAIM(kl_selector_to_struct(s, &v, &err) == KL_OK);
    CLAIM(kl_selector_from_struct(v, &again, &err) == KL_OK);
    CLAIM(kl_selector_matches(again, labels) == yes);
    CLAIM(selects(v, labels) == yes);
    kl_selector_free(again);
    kl_value_unref(v);
}

static void label_selector(const kl_value *v, const kl_value *labels)
{
    kl_err err = KL_ERR_INIT;
    kl_selector *s = NULL;
    if (kl_selector_from_struct(v, &s, &err)) {
        CLAIM(!s && *kl_err_message(&err));
        kl_err_fini(&err);
        return;
    }
    bool yes = kl_selector_matches(s, labels);
    CLAIM(kl_selector_selectable(s) == (kl_value_type(v) != KL_NULL));
    CLAIM(yes == selects(v, labels));
    if (kl_selector_selectable(s)) {
        same_as_text(s, labels, yes);
        if (!repeats_a_key(s))
            same_as_struct(s, labels, yes);
    } else {
        CLAIM(!yes);
    }
    kl_selector_free(s);
}

/* Labels select themselves; their text says all of them. */
static void labels_alone(const kl_value *labels)
{
    kl_err err = KL_ERR_INIT;
    kl_selector *s = NULL;
    const kl_value *map = NULL;
    if (!kl_selector_from_map(labels, &s, &err)) {
        char *text = kl_labels_text(labels);
        CLAIM(kl_selector_matches(s, labels));
        if (*text) {
            CLAIM(kl_selector_text_to_map(text, &map, &err) == KL_OK);
            CLAIM(kl_value_equal(map, labels));
        }
        kl_value_unref(map);
        kl_free(text);
    } else {
        CLAIM(*kl_err_message(&err));
    }
    kl_selector_free(s);
    kl_err_fini(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const kl_value *v, *labels;
    if (!two_values(data, size, &v, &labels))
        return 0;
    if (labels_are_texts(labels)) {
        label_selector(v, labels);
        labels_alone(labels);
    }
    kl_value_unref(v);
    kl_value_unref(labels);
    no_values_left();
    return 0;
}
