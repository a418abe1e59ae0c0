/* draft.c - an editable copy of a value, copy-on-write.
 *
 * A node stands for one container. Until its first write or its first child it is only a handle on `base`;
 * then its members are laid out in `entries`, each a value or a child node. What stands in an entry since
 * then is borrowed from `base`, so that opening a node counts nothing. What changed is found by comparing
 * with the object the draft began with, and only below nodes that were laid out: a patch costs what was
 * edited, not what there is. A node that was replaced or removed lives on, apart from the root, until the
 * draft is freed. */
#include "value/draft.h"

#include <stdlib.h>
#include <string.h>
#include "base/list.h"
#include "base/heap.h"
#include "base/mem.h"
#include "value/intern.h"
#include "value/patch.h"

/* A node this far from the root opens no child: deeper values read as absent. Values from text are less deep,
 * and recursive walks of nodes have stack for this depth. */
#define OPEN_DEPTH_MAX (2 * KL_VALUE_DEPTH_MAX)

typedef struct entry {
    const kl_value *key;   /* a string; NULL in arrays */
    const kl_value *value; /* the value here, unless there is a child */
    kl_draft_node *child;
    bool own_key, own_value; /* the draft owns the reference; otherwise the node's base does */
} entry;

struct kl_draft_node {
    kl_list link; /* in the draft's nodes */
    kl_draft *draft;
    kl_type type;
    unsigned depth; /* nodes above */
    const kl_value *base;
    bool laid_out; /* entries are valid, and base is the former state */
    entry *entries;
    size_t len, cap;
};

struct kl_draft {
    const kl_value *base; /* NULL: there was no value */
    kl_list nodes;
    kl_draft_node *root;
    size_t bytes; /* of nodes, entries, and what was written */
};

static size_t held(const kl_value *v) { return kl_value_held(v, KL_DRAFT_MEASURED); }

static kl_draft_node *node_new(kl_draft *d, const kl_value *base, unsigned depth)
{
    kl_draft_node *n = kl_new(kl_draft_node);
    n->draft = d;
    n->depth = depth;
    n->type = kl_value_type(base) == KL_ARRAY ? KL_ARRAY : KL_OBJECT;
    n->base = kl_value_ref(base);
    d->bytes += sizeof *n;
    kl_list_push(&d->nodes, &n->link);
    return n;
}

kl_draft *kl_draft_new(const kl_value *base)
{
    kl_draft *d = kl_new(kl_draft);
    kl_list_init(&d->nodes);
    d->base = kl_value_ref(base);
    bool container = kl_value_type(base) == KL_OBJECT || kl_value_type(base) == KL_ARRAY;
    d->root = node_new(d, container ? base : KL__EMPTY_OBJECT, 0);
    return d;
}

static void entry_fini(entry *e)
{
    if (e->own_key)
        kl_value_unref(e->key);
    if (e->own_value)
        kl_value_unref(e->value);
}

size_t kl_draft_bytes(const kl_draft *d) { return sizeof *d + d->bytes; }

/* The bytes that an entry's own references hold. */
static size_t entry_bytes(const entry *e)
{
    return (e->own_key ? held(e->key) : 0) + (e->own_value ? held(e->value) : 0);
}

void kl_draft_free(kl_draft *d)
{
    if (!d)
        return;
    for (kl_list *l; (l = kl_list_shift(&d->nodes));) {
        kl_draft_node *n = KL_CONTAINER(l, kl_draft_node, link);
        for (size_t i = 0; i < n->len; i++)
            entry_fini(&n->entries[i]);
        kl_free(n->entries);
        kl_value_unref(n->base);
        kl_free(n);
    }
    kl_value_unref(d->base);
    kl_free(d);
}

kl_draft_node *kl_draft_root(kl_draft *d) { return d->root; }

/* --- entries ------------------------------------------------------------------------------ */

static void reserve(kl_draft_node *n, size_t len)
{
    if (len <= n->cap)
        return;
    size_t had = n->cap;
    n->cap = len < n->cap * 2 ? n->cap * 2 : len; /* what is laid out rarely grows */
    n->draft->bytes += (n->cap - had) * sizeof *n->entries;
    n->entries = kl_realloc(n->entries, n->cap * sizeof *n->entries);
}

static void lay_out(kl_draft_node *n)
{
    if (n->laid_out)
        return;
    n->laid_out = true;
    n->len = kl_value_len(n->base);
    reserve(n, n->len);
    for (size_t i = 0; i < n->len; i++)
        n->entries[i] = n->type == KL_ARRAY
            ? (entry){.value = kl__item(n->base, i)}
            : (entry){.key = kl__key(n->base, i), .value = kl__val(n->base, i)};
}

static entry *find(kl_draft_node *n, const char *key, size_t keylen)
{
    for (size_t i = 0; i < n->len; i++) {
        size_t len;
        const char *k = kl__str_bytes(n->entries[i].key, &len);
        if (len == keylen && !memcmp(k, key, len))
            return &n->entries[i];
    }
    return NULL;
}

static bool is_container(const kl_value *v)
{
    kl_type t = kl_value_type(v);
    return t == KL_ARRAY || t == KL_OBJECT;
}

/* Replaces e's content by v, with a new reference. */
static void entry_set(kl_draft *d, entry *e, const kl_value *v)
{
    const kl_value *old = e->own_value ? e->value : NULL;
    d->bytes = d->bytes - held(old) + held(v);
    e->value = kl_value_ref(v);
    e->own_value = true;
    e->child = NULL;
    kl_value_unref(old);
}

static kl_draft_node *entry_read(kl_draft_node *n, entry *e, const kl_value **scalar)
{
    if (!e->child && !is_container(e->value)) {
        *scalar = e->value;
        return NULL;
    }
    if (!e->child && n->depth == OPEN_DEPTH_MAX)
        return NULL;
    if (!e->child) {
        e->child = node_new(n->draft, e->value, n->depth + 1);
        if (e->own_value)
            kl_value_unref(e->value);
        e->value = NULL;
        e->own_value = false;
    }
    return e->child;
}

static void entry_insert(kl_draft_node *n, size_t at, entry e)
{
    reserve(n, n->len + 1);
    memmove(n->entries + at + 1, n->entries + at, (n->len - at) * sizeof e);
    n->entries[at] = e;
    n->len++;
    n->draft->bytes += entry_bytes(&e);
}

static void entry_remove(kl_draft_node *n, size_t at)
{
    entry gone = n->entries[at];
    n->len--;
    memmove(n->entries + at, n->entries + at + 1, (n->len - at) * sizeof gone);
    n->draft->bytes -= entry_bytes(&gone);
    entry_fini(&gone);
}

/* Whether e already has the content of v. */
static bool entry_holds(const entry *e, const kl_value *v)
{
    if (!e->child)
        return kl_value_equal(e->value, v);
    const kl_value *now = kl_draft_value(e->child);
    bool equal = kl_value_equal(now, v);
    kl_value_unref(now);
    return equal;
}

/* --- reading ------------------------------------------------------------------------------ */

kl_draft_node *kl_draft_get(kl_draft_node *n, const char *key, size_t keylen, const kl_value **scalar)
{
    *scalar = NULL;
    if (n->type != KL_OBJECT)
        return NULL;
    if (!n->laid_out) { /* reading a scalar lays nothing out */
        const kl_value *v = kl_value_getn(n->base, key, keylen);
        if (!is_container(v)) {
            *scalar = v;
            return NULL;
        }
        lay_out(n);
    }
    entry *e = find(n, key, keylen);
    return e ? entry_read(n, e, scalar) : NULL;
}

kl_draft_node *kl_draft_item(kl_draft_node *n, size_t i, const kl_value **scalar)
{
    *scalar = NULL;
    if (n->type != KL_ARRAY || i >= kl_draft_len(n))
        return NULL;
    if (!n->laid_out && !is_container(kl_value_item(n->base, i))) {
        *scalar = kl_value_item(n->base, i);
        return NULL;
    }
    lay_out(n);
    return entry_read(n, &n->entries[i], scalar);
}

unsigned kl_draft_depth(const kl_draft_node *n) { return n->depth; }

kl_type kl_draft_type(const kl_draft_node *n) { return n->type; }

size_t kl_draft_len(const kl_draft_node *n) { return n->laid_out ? n->len : kl_value_len(n->base); }

const char *kl_draft_key(kl_draft_node *n, size_t i, size_t *len)
{
    const char *key = NULL;
    if (n->type != KL_OBJECT || i >= kl_draft_len(n))
        return NULL;
    if (n->laid_out)
        return kl__str_bytes(n->entries[i].key, len);
    return kl_value_member(n->base, i, &key, len) ? key : NULL;
}

/* --- writing ------------------------------------------------------------------------------ */

void kl_draft_set(kl_draft_node *n, const char *key, size_t keylen, const kl_value *v)
{
    if (n->type != KL_OBJECT)
        return;
    const kl_value *k = kl_value_of_strn(key, keylen); /* as it would be written: valid UTF-8 */
    key = kl__str_bytes(k, &keylen);
    lay_out(n);
    entry *e = find(n, key, keylen);
    if (!e && v)
        entry_insert(n, n->len, (entry){kl_value_ref(k), kl_value_ref(v), NULL, true, true});
    else if (e && !v)
        entry_remove(n, (size_t)(e - n->entries));
    else if (e && !entry_holds(e, v))
        entry_set(n->draft, e, v);
    kl_value_unref(k);
}

kl_status kl_draft_set_item(kl_draft_node *n, size_t i, const kl_value *v, kl_err *err)
{
    if (n->type != KL_ARRAY)
        return kl_fail(err, KL_EINVAL, "an object has no item %zu: use a string key", i + 1);
    size_t len = kl_draft_len(n);
    if (i > len || (i == len && !v))
        return kl_fail(err, KL_EINVAL, "item %zu is outside of a list of %zu; the next one is item %zu",
            i + 1, len, len + 1);
    lay_out(n);
    if (!v)
        entry_remove(n, i);
    else if (i == len)
        entry_insert(n, i, (entry){NULL, kl_value_ref(v), NULL, false, true});
    else if (!entry_holds(&n->entries[i], v))
        entry_set(n->draft, &n->entries[i], v);
    return KL_OK;
}

void kl_draft_insert_item(kl_draft_node *n, size_t i, const kl_value *v)
{
    if (n->type != KL_ARRAY || !v)
        return;
    lay_out(n);
    entry_insert(n, i < n->len ? i : n->len, (entry){NULL, kl_value_ref(v), NULL, false, true});
}

kl_draft_node *kl_draft_make(kl_draft_node *n, const char *key, size_t keylen)
{
    if (n->type != KL_OBJECT)
        return NULL;
    const kl_value *scalar;
    kl_draft_node *child = kl_draft_get(n, key, keylen, &scalar);
    if (child)
        return child;
    kl_draft_set(n, key, keylen, KL__EMPTY_OBJECT);
    return kl_draft_get(n, key, keylen, &scalar);
}

/* --- results ------------------------------------------------------------------------------ */

/* The value of a node. Recursion is as deep as the edits that opened nodes, which a script's author wrote. */
const kl_value *kl_draft_value(kl_draft_node *n)
{
    if (!n->laid_out)
        return kl_value_ref(n->base);
    kl__stack s = {0};
    for (size_t i = 0; i < n->len; i++) {
        entry *e = &n->entries[i];
        if (n->type == KL_OBJECT)
            kl__stack_push(&s, kl_value_ref(e->key));
        kl__stack_push(&s, e->child ? kl_draft_value(e->child) : kl_value_ref(e->value));
    }
    const kl_value *v = kl__intern_container(n->type, s.v, n->len);
    s.len = 0;
    kl__stack_fini(&s);
    return v;
}

/* Whether the patch from a to b replaces or removes a list, or adds one that another writer may have added
 * meanwhile. */
static bool list_differs(const kl_value *a, const kl_value *b, size_t depth)
{
    if (a == b || kl_value_equal(a, b))
        return false;
    if (kl_value_type(a) == KL_ARRAY || kl_value_type(b) == KL_ARRAY || depth > KL_VALUE_DEPTH_MAX)
        return true;
    const char *key;
    size_t n;
    const kl_value *v;
    for (size_t i = 0; (v = kl_value_member(a, i, &key, &n)); i++)
        if (list_differs(v, kl_value_getn(b, key, n), depth + 1))
            return true;
    for (size_t i = 0; (v = kl_value_member(b, i, &key, &n)); i++)
        if (!kl_value_getn(a, key, n) && list_differs(NULL, v, depth + 1))
            return true;
    return false;
}

/* The keys of a node's entries; equal strings have one handle. Sorted where there are many, since each key of
 * the base is looked up. */
typedef struct keys {
    const kl_draft_node *n;
    const kl_value **sorted;
} keys;

#define SORTED_FROM 64

static int by_handle(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const kl_value *const *)a, y = (uintptr_t) * (const kl_value *const *)b;
    return (x > y) - (x < y);
}

static keys keys_of(const kl_draft_node *n)
{
    keys k = {.n = n};
    if (n->len < SORTED_FROM)
        return k;
    k.sorted = kl_new_array(const kl_value *, n->len);
    for (size_t i = 0; i < n->len; i++)
        k.sorted[i] = n->entries[i].key;
    qsort(k.sorted, n->len, sizeof *k.sorted, by_handle);
    return k;
}

static bool keys_have(const keys *k, const kl_value *key)
{
    if (k->sorted)
        return bsearch(&key, k->sorted, k->n->len, sizeof key, by_handle) != NULL;
    for (size_t i = 0; i < k->n->len; i++)
        if (k->n->entries[i].key == key)
            return true;
    return false;
}

/* The patch that turns `from` into `to`; NULL: they are equal. */
static const kl_value *value_patch(const kl_value *from, const kl_value *to, bool *lists)
{
    if (from == to || (from && kl_value_equal(from, to)))
        return NULL;
    *lists = *lists || list_differs(from, to, 1);
    return kl_value_type(from) == KL_OBJECT && kl_value_type(to) == KL_OBJECT
        ? kl_merge_patch_create(from, to)
        : kl_value_ref(to);
}

/* The patch from `from` to the node's present value, a new reference. */
static const kl_value *node_patch(const kl_value *from, kl_draft_node *n, bool *lists)
{
    if (!n->laid_out)
        return value_patch(from, n->base, lists);
    if (n->type == KL_ARRAY || kl_value_type(from) != KL_OBJECT) {
        const kl_value *now = kl_draft_value(n), *patch = value_patch(from, now, lists);
        kl_value_unref(now);
        return patch;
    }
    kl__stack s = {0};
    keys now = keys_of(n);
    for (size_t i = 0, len = kl_value_len(from); i < len; i++)
        if (!keys_have(&now, kl__key(from, i))) {
            *lists = *lists || list_differs(kl__val(from, i), NULL, 1);
            kl__stack_push(&s, kl_value_ref(kl__key(from, i)));
            kl__stack_push(&s, KL__NULL);
        }
    kl_free(now.sorted);
    for (size_t i = 0; i < n->len; i++) {
        const entry *e = &n->entries[i];
        if (!e->child && !e->own_value && n->base == from)
            continue;
        size_t keylen;
        const char *key = kl__str_bytes(e->key, &keylen);
        const kl_value *old = kl_value_getn(from, key, keylen);
        const kl_value *patch = e->child ? node_patch(old, e->child, lists)
                                         : value_patch(old, e->value, lists);
        if (patch) {
            kl__stack_push(&s, kl_value_ref(e->key));
            kl__stack_push(&s, patch);
        }
    }
    const kl_value *out = s.len ? kl__intern_container(KL_OBJECT, s.v, s.len / 2) : NULL;
    s.len = 0;
    kl__stack_fini(&s);
    return out;
}

const kl_value *kl_draft_result(kl_draft *d, bool *lists)
{
    *lists = false;
    return node_patch(d->base ? d->base : KL__EMPTY_OBJECT, d->root, lists);
}

bool kl_draft_changed(kl_draft *d)
{
    bool lists;
    const kl_value *patch = kl_draft_result(d, &lists);
    kl_value_unref(patch);
    return patch != NULL;
}

bool kl_draft_list_changed(kl_draft *d)
{
    bool lists;
    kl_value_unref(kl_draft_result(d, &lists));
    return lists;
}

const kl_value *kl_draft_patch(kl_draft *d)
{
    bool lists;
    const kl_value *patch = kl_draft_result(d, &lists);
    return patch ? patch : KL__EMPTY_OBJECT;
}
