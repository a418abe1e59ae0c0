/* typed.c - the walks of structured-merge-diff over our values and schemas. */
#include "schema/typed.h"

#include <stdint.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

typedef enum shape { LEAF, MAP, LIST } shape;

static shape shape_of(const kl__schema *s, const kl_value *v)
{
    kl_type t = kl_value_type(v);
    if (t == KL_OBJECT && (s->type == KL_S_STRUCT || s->type == KL_S_MAP || s->type == KL_S_ANY))
        return s->atomic ? LEAF : MAP;
    if (t == KL_ARRAY && s->type == KL_S_LIST && s->list != KL_S_ATOMIC)
        return LIST;
    return LEAF;
}

static bool is_empty(const kl_value *v)
{
    return !v || kl_value_type(v) == KL_NULL
        || ((kl_value_type(v) == KL_OBJECT || kl_value_type(v) == KL_ARRAY) && !kl_value_len(v));
}

static char *field_element(const char *key, size_t n) { return kl_sprintf("f:%.*s", (int)n, key); }

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

char *kl__typed_element(const kl__schema *list, const kl_value *item)
{
    kl_buf text = KL_BUF_INIT;
    if (list->list == KL_S_SET) {
        kl_buf_puts(&text, "v:");
        kl_value_encode(item, &text);
        return kl_buf_take(&text);
    }
    size_t n = 0, put = 0;
    while (list->keys[n])
        n++;
    char **keys = kl_new_array(char *, n + 1);
    memcpy(keys, list->keys, n * sizeof *keys);
    /* keys are written sorted; there are two or three */
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && by_text(&keys[k - 1], &keys[k]) > 0; k--) {
            char *swap = keys[k];
            keys[k] = keys[k - 1];
            keys[k - 1] = swap;
        }
    kl_buf_puts(&text, "k:{");
    for (size_t i = 0; i < n; i++) {
        const kl_value *v = kl_value_get(item, keys[i]);
        const kl__schema *field = kl__schema_child(list->items, keys[i], strlen(keys[i]));
        if (!v && field)
            v = field->dflt;
        const kl__field *f = kl__schema_field(list->items, keys[i], strlen(keys[i]));
        bool empty = !v && f && f->omitted && field->type == KL_S_STRING;
        if (!v && !empty)
            continue;
        kl_buf_printf(&text, "%s\"%s\":%s", put++ ? "," : "", keys[i], empty ? "\"\"" : "");
        if (v)
            kl_value_encode(v, &text);
    }
    kl_buf_putc(&text, '}');
    kl_free(keys);
    return kl_buf_take(&text);
}

#define FEW_ITEMS 16 /* from here on a map finds them */

/* The items of a list with their elements. */
typedef struct items {
    char **elements;
    size_t len;
    const kl_value *list;
    kl_map *places; /* the first place of each element, counted from 1; NULL: few elements, or never asked */
} items;

static items items_of(const kl__schema *s, const kl_value *list)
{
    items it = {.list = list, .len = kl_value_type(list) == KL_ARRAY ? kl_value_len(list) : 0};
    it.elements = kl_new_array(char *, it.len + 1);
    for (size_t i = 0; i < it.len; i++)
        it.elements[i] = kl__typed_element(s, kl_value_item(list, i));
    return it;
}

static void items_fini(items *it)
{
    for (size_t i = 0; i < it->len; i++)
        kl_free(it->elements[i]);
    kl_free(it->elements);
    kl_map_free(it->places, NULL);
}

/* The place of an element; it->len: there is none. */
static size_t place_of(items *it, const char *element)
{
    size_t at = 0;
    if (!it->places && it->len > FEW_ITEMS) {
        it->places = kl_map_new();
        for (size_t i = it->len; i > 0; i--)
            kl_map_set(it->places, it->elements[i - 1], (void *)(uintptr_t)i);
    }
    if (it->places) {
        uintptr_t from_1 = (uintptr_t)kl_map_get(it->places, element);
        return from_1 ? from_1 - 1 : it->len;
    }
    while (at < it->len && strcmp(it->elements[at], element))
        at++;
    return at;
}

static const kl_value *item_at(items *it, const char *element)
{
    size_t at = place_of(it, element);
    return at < it->len ? kl_value_item(it->list, at) : NULL;
}

/* For each place, the next one with the same element; 0: there is none. The caller frees the array. */
static size_t *nexts_of(items *it)
{
    size_t *next = kl_zalloc_array(sizeof *next, it->len + 1);
    for (size_t i = it->len; i-- > 0;) {
        size_t first = place_of(it, it->elements[i]);
        if (first != i) {
            next[i] = next[first];
            next[first] = i;
        }
    }
    return next;
}

static const kl__schema *below(const kl__schema *s, const char *key, size_t n)
{
    const kl__schema *c = kl__schema_child(s, key, n);
    return c ? c : &kl__schema_any;
}

/* ------------------------------------------------------------------ fields */

static void fields_at(const kl__schema *s, const kl_value *v, const kl__place *at, kl__fieldset *out)
{
    switch (shape_of(s, v)) {
    case LEAF: kl__fieldset_insert(out, at); break;
    case MAP:
        for (size_t i = 0; i < kl_value_len(v); i++) {
            const char *key;
            size_t n;
            const kl_value *x = kl_value_member(v, i, &key, &n);
            char *element = field_element(key, n);
            kl__place here = {at, element};
            fields_at(below(s, key, n), x, &here, out);
            if (kl_value_type(x) == KL_NULL || (kl_value_type(x) == KL_OBJECT && !kl_value_len(x))
                || !kl__schema_field(s, key, n))
                kl__fieldset_insert(out, &here);
            kl_free(element);
        }
        break;
    case LIST: {
        items it = items_of(s, v);
        for (size_t i = 0; i < it.len; i++) {
            kl__place here = {at, it.elements[i]};
            fields_at(s->items, kl_value_item(v, i), &here, out);
            kl__fieldset_insert(out, &here);
        }
        items_fini(&it);
    }
    }
}

void kl__typed_fields(const kl__schema *s, const kl_value *v, kl__fieldset *out)
{
    fields_at(s ? s : &kl__schema_any, v, NULL, out);
}

/* ------------------------------------------------------------------ compare */

void kl__changes_fini(kl__changes *c)
{
    kl__fieldset_free(c->added);
    kl__fieldset_free(c->modified);
    kl__fieldset_free(c->removed);
    kl_value_unref(c->null);
}

static void leaf(kl__changes *c, const kl_value *old, const kl_value *now, const kl__place *at)
{
    if (!old)
        kl__fieldset_insert(c->added, at);
    else if (!now)
        kl__fieldset_insert(c->removed, at);
    else if (!kl_value_equal(old, now))
        kl__fieldset_insert(c->modified, at);
}

/* `empty` is {}, which stands for a Go struct that was not given. */
static void compare_at(const kl__schema *s, const kl_value *old, const kl_value *now, const kl_value *empty,
    const kl__place *at, kl__changes *c);

/* Whether both lists have the same items at a place and those that follow it. */
static bool same_repeats(
    const items *x, const size_t *x_next, size_t i, const items *y, const size_t *y_next, size_t k)
{
    bool same;
    do {
        same = kl_value_equal(kl_value_item(x->list, i), kl_value_item(y->list, k));
        i = x_next[i];
        k = y_next[k];
    } while (same && i && k);
    return same && !i && !k;
}

/* An element that is there more than once has no fields: it is owned as a whole. */
static void compare_lists(const kl__schema *s, const kl_value *old, const kl_value *now,
    const kl_value *empty, const kl__place *at, kl__changes *c)
{
    items x = items_of(s, old), y = items_of(s, now);
    size_t *x_next = nexts_of(&x), *y_next = nexts_of(&y);
    for (size_t i = 0; i < y.len; i++) {
        if (place_of(&y, y.elements[i]) < i)
            continue;
        kl__place here = {at, y.elements[i]};
        size_t was = place_of(&x, y.elements[i]);
        const kl_value *item = kl_value_item(now, i), *before = was < x.len ? kl_value_item(old, was) : NULL;
        bool repeated = before && x_next[was];
        if (!repeated && !y_next[i])
            compare_at(s->items, before, item, empty, &here, c);
        else if (repeated && y_next[i]) {
            if (!same_repeats(&x, x_next, was, &y, y_next, i))
                kl__fieldset_insert(c->modified, &here);
        } else if (repeated) {
            kl__fieldset_insert(c->removed, &here);
            compare_at(s->items, NULL, item, empty, &here, c);
        } else {
            if (before)
                compare_at(s->items, before, NULL, empty, &here, c);
            kl__fieldset_insert(c->added, &here);
        }
    }
    for (size_t i = 0; i < x.len; i++) {
        if (place_of(&x, x.elements[i]) < i || item_at(&y, x.elements[i]))
            continue;
        kl__place here = {at, x.elements[i]};
        if (x_next[i])
            kl__fieldset_insert(c->removed, &here);
        else
            compare_at(s->items, kl_value_item(old, i), NULL, empty, &here, c);
    }
    kl_free(x_next);
    kl_free(y_next);
    items_fini(&x);
    items_fini(&y);
}

static void compare_at(const kl__schema *s, const kl_value *old, const kl_value *now, const kl_value *empty,
    const kl__place *at, kl__changes *c)
{
    shape a = old ? shape_of(s, old) : LEAF, b = now ? shape_of(s, now) : a,
          kind = now && kl_value_type(now) != KL_NULL ? b : a;
    if (!old || kl_value_type(old) == KL_NULL)
        kind = b;
    bool differ = old && now && a != b && kl_value_type(old) != KL_NULL && kl_value_type(now) != KL_NULL;
    if (kind == LEAF || differ || (is_empty(old) && is_empty(now))) {
        leaf(c, old, now, at);
        return;
    }
    if (kind == MAP) {
        for (size_t i = 0; i < kl_value_len(now); i++) {
            const char *key;
            size_t n;
            const kl_value *x = kl_value_member(now, i, &key, &n), *was = kl_value_getn(old, key, n);
            const kl__field *f = kl__schema_field(s, key, n);
            bool is_struct = f && f->schema->type == KL_S_STRUCT;
            if (!was && old && f && (is_struct ? f->filled : f->present))
                was = is_struct ? empty : c->null;
            char *element = field_element(key, n);
            kl__place here = {at, element};
            compare_at(below(s, key, n), was, x, empty, &here, c);
            kl_free(element);
        }
        for (size_t i = 0; i < kl_value_len(old); i++) {
            const char *key;
            size_t n;
            const kl_value *was = kl_value_member(old, i, &key, &n);
            if (kl_value_getn(now, key, n))
                continue;
            char *element = field_element(key, n);
            kl__place here = {at, element};
            compare_at(below(s, key, n), was, NULL, empty, &here, c);
            kl_free(element);
        }
    } else
        compare_lists(s, old, now, empty, at, c);
    if (!old)
        kl__fieldset_insert(c->added, at);
    else if (!now)
        kl__fieldset_insert(c->removed, at);
}

void kl__typed_compare(const kl__schema *s, const kl_value *old, const kl_value *now, kl__changes *out)
{
    const kl_value *empty = kl_value_empty(KL_OBJECT);
    *out = (kl__changes){kl__fieldset_new(), kl__fieldset_new(), kl__fieldset_new(), kl_value_null()};
    compare_at(s ? s : &kl__schema_any, old ? old : empty, now ? now : empty, empty, NULL, out);
    kl_value_unref(empty);
}

/* ------------------------------------------------------------------ merge */

static const kl_value *merge_at(const kl__schema *s, const kl_value *live, const kl_value *config);

static bool has_element(items *it, const char *element) { return item_at(it, element) != NULL; }

/* Merges the items of both lists: shared ones in the order of the config, others where they stood. */
static const kl_value *merge_lists(const kl__schema *s, const kl_value *live, const kl_value *config)
{
    items l = items_of(s, live), r = items_of(s, config);
    bool *merged = kl_zalloc_array(sizeof *merged, r.len + 1);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    size_t shared = 0; /* the next item of r that l has too */
    for (; shared < r.len && !has_element(&l, r.elements[shared]); shared++) {}
    for (size_t i = 0, k = 0; i < l.len || k < r.len;) {
        bool take_right = true;
        if (i < l.len) {
            const char *e = l.elements[i];
            size_t at = place_of(&r, e);
            if (at == r.len) { /* only in l */
                kl_build_value(b, kl_value_item(live, i++));
                take_right = false;
            } else if (merged[at]) {
                i++;
                take_right = false;
            } else if (k < r.len && at != k && shared < r.len && strcmp(r.elements[shared], e)) {
                /* a shared item: the order of the config decides when it comes */
                i++;
                take_right = false;
            }
        }
        if (!take_right || k >= r.len)
            continue;
        const kl_value *x = merge_at(s->items, item_at(&l, r.elements[k]), kl_value_item(config, k));
        kl_build_value(b, x);
        kl_value_unref(x);
        merged[k] = true;
        if (k == shared)
            for (shared++; shared < r.len && !has_element(&l, r.elements[shared]); shared++) {}
        k++;
    }
    kl_build_end(b);
    kl_free(merged);
    items_fini(&l);
    items_fini(&r);
    return kl_builder_done(b);
}

static const kl_value *merge_at(const kl__schema *s, const kl_value *live, const kl_value *config)
{
    if (!config || !live)
        return kl_value_ref(config ? config : live);
    shape kind = shape_of(s, config);
    if (kl_value_type(config) == KL_NULL && kl_value_len(live) && shape_of(s, live) != LEAF)
        return kl_value_ref(live); /* it names nothing in there */
    if (kind == LEAF || kind != shape_of(s, live))
        return kl_value_ref(config);
    if (kind == LIST)
        return merge_lists(s, live, config);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(live); i++) {
        const char *key;
        size_t n;
        const kl_value *was = kl_value_member(live, i, &key, &n),
                       *x = merge_at(below(s, key, n), was, kl_value_getn(config, key, n));
        kl_build_keyn(b, key, n);
        kl_build_value(b, x);
        kl_value_unref(x);
    }
    for (size_t i = 0; i < kl_value_len(config); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(config, i, &key, &n);
        if (kl_value_getn(live, key, n))
            continue;
        kl_build_keyn(b, key, n);
        kl_build_value(b, x);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

const kl_value *kl__typed_merge(const kl__schema *s, const kl_value *live, const kl_value *config)
{
    return merge_at(s ? s : &kl__schema_any, live, config);
}

/* ------------------------------------------------------------------ remove */

static const kl_value *remove_at(const kl__schema *s, const kl_value *v, const kl__fieldset *f)
{
    shape kind = shape_of(s, v);
    if (kind == LEAF || !kl_value_len(v))
        return kl_value_ref(v);
    kl_builder *b = kl_builder_new();
    size_t left = 0;
    if (kind == MAP) {
        kl_build_object(b);
        for (size_t i = 0; i < kl_value_len(v); i++) {
            const char *key;
            size_t n;
            const kl_value *x = kl_value_member(v, i, &key, &n);
            char *element = field_element(key, n);
            const kl__fieldset *kid = kl__fieldset_kid(f, element);
            kl_free(element);
            if (kid && kid->member)
                continue;
            const kl_value *y = kid ? remove_at(below(s, key, n), x, kid) : kl_value_ref(x);
            kl_build_keyn(b, key, n);
            if (y)
                kl_build_value(b, y);
            else
                kl_build_null(b); /* all its content was removed, but the field itself was not */
            left++;
            kl_value_unref(y);
        }
    } else {
        items it = items_of(s, v);
        kl_build_array(b);
        for (size_t i = 0; i < it.len; i++) {
            const kl__fieldset *kid = kl__fieldset_kid(f, it.elements[i]);
            if (kid && kid->member)
                continue;
            const kl_value *y = kid ? remove_at(s->items, kl_value_item(v, i), kid)
                                    : kl_value_ref(kl_value_item(v, i));
            if (y)
                kl_build_value(b, y);
            else
                kl_build_null(b);
            left++;
            kl_value_unref(y);
        }
        items_fini(&it);
    }
    kl_build_end(b);
    if (!left) {
        kl_builder_free(b);
        return NULL;
    }
    return kl_builder_done(b);
}

const kl_value *kl__typed_remove(const kl__schema *s, const kl_value *v, const kl__fieldset *fields)
{
    return remove_at(s ? s : &kl__schema_any, v, fields);
}

/* ------------------------------------------------------------------ named fields */

void kl__typed_name_fields(const kl__schema *s, kl__fieldset *set)
{
    if (!s)
        return;
    for (size_t i = 0; i < set->len; i++) {
        kl__fieldset *kid = set->kids[i];
        const kl__schema *child = NULL;
        if (!strncmp(kid->element, "f:", 2)) {
            size_t n = strlen(kid->element + 2);
            if (kid->len && kl__schema_field(s, kid->element + 2, n))
                kid->member = true;
            child = kl__schema_child(s, kid->element + 2, n);
        } else if (s->type == KL_S_LIST)
            child = s->items;
        kl__typed_name_fields(child, kid);
    }
}
