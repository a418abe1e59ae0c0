/* typed_check.c - typed/validate.go of structured-merge-diff, with Go's formatting of values. */
#include "schema/typed_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schema/typed.h"

typedef struct check {
    kl_buf path, lines;
    size_t count;
} check;

/* ------------------------------------------------------------------ Go's %T, %v and %#v */

const char *kl__go_type(const kl_value *v)
{
    switch (kl_value_type(v)) {
    case KL_STRING: return "string";
    case KL_BOOL: return "bool";
    case KL_ARRAY: return "[]interface {}";
    case KL_OBJECT: return "map[string]interface {}";
    case KL_NULL: return "<nil>";
    default: return kl_value_int(v, &(int64_t){0}) ? "int64" : "float64";
    }
}

static int by_key(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* As %v, or with `syntax` as %#v prints it. */
static void go_value(kl_buf *b, const kl_value *v, bool syntax)
{
    size_t n = 0, len = kl_value_len(v);
    const char *text = kl_value_strn(v, &n), *between = syntax ? ", " : " ";
    if (text && !syntax) {
        kl_buf_add(b, text, n);
    } else if (kl_value_type(v) == KL_NULL) {
        kl_buf_puts(b, syntax ? "interface {}(nil)" : "<nil>");
    } else if (kl_value_type(v) == KL_ARRAY) {
        kl_buf_printf(b, "%s%c", syntax ? kl__go_type(v) : "", syntax ? '{' : '[');
        for (size_t i = 0; i < len; i++) {
            kl_buf_puts(b, i ? between : "");
            go_value(b, kl_value_item(v, i), syntax);
        }
        kl_buf_putc(b, syntax ? '}' : ']');
    } else if (kl_value_type(v) == KL_OBJECT) {
        const char **keys = kl_new_array(const char *, len + 1), *quote = syntax ? "\"" : "";
        for (size_t i = 0; i < len; i++)
            kl_value_member(v, i, &keys[i], &n);
        qsort(keys, len, sizeof *keys, by_key);
        kl_buf_printf(b, "%s%c", syntax ? kl__go_type(v) : "map", syntax ? '{' : '[');
        for (size_t i = 0; i < len; i++) {
            kl_buf_printf(b, "%s%s%s%s:", i ? between : "", quote, keys[i], quote);
            go_value(b, kl_value_get(v, keys[i]), syntax);
        }
        kl_buf_putc(b, syntax ? '}' : ']');
        kl_free(keys);
    } else {
        kl_value_encode(v, b);
    }
}

void kl__go_print(const kl_value *v, kl_buf *out) { go_value(out, v, false); }

/* ------------------------------------------------------------------ problems */

static void problem(check *c, const char *fmt, ...) KL_PRINTF(2, 3);
static void problem(check *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *what = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_buf_printf(
        &c->lines, "%s%s%s%s", c->count ? "\n  " : "", kl_buf_str(&c->path), c->path.len ? ": " : "", what);
    c->count++;
    kl_free(what);
}

static void expected(check *c, const char *what, const kl_value *v)
{
    kl_buf got = KL_BUF_INIT;
    kl__go_print(v, &got);
    problem(c, "expected %s, got &{%s}", what, kl_buf_str(&got));
    kl_buf_fini(&got);
}

static void walk(check *c, const kl__schema *s, const kl_value *v);

static void below(check *c, const kl__schema *s, const kl_value *v, const char *fmt, ...) KL_PRINTF(4, 5);
static void below(check *c, const kl__schema *s, const kl_value *v, const char *fmt, ...)
{
    size_t mark = c->path.len;
    va_list ap;
    va_start(ap, fmt);
    char *more = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_buf_puts(&c->path, more);
    kl_free(more);
    walk(c, s, v);
    c->path.len = mark;
    if (c->path.data)
        c->path.data[mark] = 0;
}

static void members(check *c, const kl__schema *s, const kl_value *v)
{
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(v, i, &key, &n);
        const kl__schema *child = kl__schema_child(s, key, n);
        if (!child && s->embedded)
            child = &kl__schema_any;
        if (child)
            below(c, child, x, ".%.*s", (int)n, key);
        else {
            size_t mark = c->path.len;
            kl_buf_printf(&c->path, ".%.*s", (int)n, key);
            problem(c, "field not declared in schema");
            c->path.len = mark;
            c->path.data[mark] = 0;
        }
    }
}

/* [name="a",port=1] */
static char *item_name(const kl__schema *list, const kl_value *item)
{
    kl_buf b = KL_BUF_INIT;
    char *element = kl__typed_element(list, item);
    kl__fieldset_put_element(element, &b);
    kl_free(element);
    return kl_buf_take(&b);
}

/* Why an item cannot be named; the caller frees it. NULL: it can. */
static char *nameless(const kl__schema *list, const kl_value *item)
{
    kl_type t = kl_value_type(item);
    if (list->list == KL_S_SET)
        return t == KL_OBJECT ? kl_strdup("associative list without keys has an element that's a map type")
            : t == KL_ARRAY   ? kl_strdup("not supported: associative list with lists as elements")
            : t == KL_NULL ? kl_strdup("associative list without keys has an element that's an explicit null")
                           : NULL;
    if (t != KL_OBJECT)
        return kl_sprintf("associative list with keys may not have %s",
            t == KL_NULL ? "a null element" : "non-map elements");
    if (!list->items->custom) /* a missing text is "" */
        return NULL;
    kl_buf keys = KL_BUF_INIT;
    for (char **k = list->keys; *k; k++) {
        const kl__field *f = kl__schema_field(list->items, *k, strlen(*k));
        if (kl_value_get(item, *k) || (f && f->schema->dflt)) {
            kl_buf_fini(&keys);
            return NULL;
        }
        kl_buf_printf(&keys, "%s\"%s\"", keys.len ? " " : "", *k);
    }
    char *why = kl_sprintf("associative list with keys has an element that omits all key fields [%s] (and "
                           "doesn't have default values for any key fields)",
        kl_buf_str(&keys));
    kl_buf_fini(&keys);
    return why;
}

static void keyed_items(check *c, const kl__schema *s, const kl_value *v)
{
    size_t n = kl_value_len(v);
    char **names = kl_new_array(char *, n + 1), **sorted = kl_new_array(char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        char *why = nameless(s, kl_value_item(v, i));
        if (why) { /* nothing more is said of the list */
            problem(c, "element %zu: %s", i, why);
            kl_free(why);
            n = i;
            break;
        }
        names[i] = sorted[i] = item_name(s, kl_value_item(v, i));
        below(c, s->items, kl_value_item(v, i), "%s", names[i]);
    }
    qsort(sorted, n, sizeof *sorted, by_key);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(sorted[i - 1], sorted[i]) && (i < 2 || strcmp(sorted[i - 2], sorted[i])))
            problem(c, "duplicate entries for key %s", sorted[i]);
    for (size_t i = 0; i < n; i++)
        kl_free(names[i]);
    kl_free(names);
    kl_free(sorted);
}

static void scalar(check *c, const kl__schema *s, const kl_value *v)
{
    kl_type t = kl_value_type(v);
    bool number = t == KL_INT || t == KL_UINT || t == KL_DOUBLE;
    switch (s->type) {
    case KL_S_INT:
    case KL_S_NUMBER:
        if (!number)
            problem(c, "expected numeric (int or float), got %s", kl__go_type(v));
        break;
    case KL_S_BOOL:
        if (t != KL_BOOL)
            expected(c, "boolean", v);
        break;
    case KL_S_QUANTITY:
    case KL_S_INT_OR_STRING:
        if (!number && t != KL_STRING && t != KL_BOOL)
            expected(c, "any scalar", v);
        break;
    default:
        if (t != KL_STRING) {
            kl_buf got = KL_BUF_INIT;
            go_value(&got, v, true);
            problem(c, "expected string, got &value.valueUnstructured{Value:%s}", kl_buf_str(&got));
            kl_buf_fini(&got);
        }
    }
}

static void walk(check *c, const kl__schema *s, const kl_value *v)
{
    kl_type t = kl_value_type(v);
    if (t == KL_NULL || s->type == KL_S_ANY) {
        if (t == KL_OBJECT && (s->nfields || s->items))
            members(c, s, v);
        return;
    }
    switch (s->type) {
    case KL_S_STRUCT:
    case KL_S_MAP:
        if (t == KL_OBJECT)
            members(c, s, v);
        else
            expected(c, "map", v);
        break;
    case KL_S_LIST:
        if (t != KL_ARRAY)
            expected(c, "list", v);
        else if (s->list != KL_S_ATOMIC)
            keyed_items(c, s, v);
        else
            for (size_t i = 0; i < kl_value_len(v); i++)
                below(c, s->items, kl_value_item(v, i), "[%zu]", i);
        break;
    default: scalar(c, s, v);
    }
}

char *kl__typed_problem(const kl__schema *s, const kl_value *v)
{
    check c = {0};
    char *text = NULL;
    if (s)
        walk(&c, s, v);
    if (c.count)
        text = c.count > 1 ? kl_sprintf("errors:\n  %s", kl_buf_str(&c.lines))
                           : kl_strdup(kl_buf_str(&c.lines));
    kl_buf_fini(&c.path);
    kl_buf_fini(&c.lines);
    return text;
}
