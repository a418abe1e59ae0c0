/* schema_check.c - one walk over a value beside its schema. Unchanged parts are shared with the input. */
#include <string.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "model/schema_impl.h"
#include "value/edited.h"

#define TOLD_MAX 8 /* faults in one message */

/* The place of the walk: a chain on the C stack, turned into text only for a message. */
typedef struct step {
    const struct step *up; /* NULL: from the root */
    const char *key;       /* NULL: an item of a list */
    size_t n, index;       /* length of the key; place in the list, from 1 */
} step;

typedef struct walk {
    const kl_schema *s;
    kl_schema_use use;
    bool strict;
    kl_buf story;
    size_t faults;
} walk;

/* --- telling ------------------------------------------------------------------------------ */

/* "spec.containers[1].image" */
static void add_path(kl_buf *out, const step *at)
{
    if (!at)
        return;
    add_path(out, at->up);
    if (!at->key) {
        kl_buf_printf(out, "[%zu]", at->index);
        return;
    }
    bool plain = at->n && !memchr(at->key, '.', at->n) && !memchr(at->key, '[', at->n);
    kl_buf_printf(out, "%s%.*s%s", !plain ? "[" : at->up ? "." : "", (int)at->n, at->key, plain ? "" : "]");
}

static bool one_more(walk *w)
{
    if (w->faults++ >= TOLD_MAX)
        return false;
    kl_buf_puts(&w->story, w->story.len ? "; " : "");
    return true;
}

static const char *nearest(const walk *w, const kl__snode *x, const char *word)
{
    const char **names = kl_new_array(const char *, x->n + 1);
    for (uint32_t i = 0; i < x->n; i++)
        names[i] = w->s->names + w->s->fields[x->first + i].name;
    const char *near = kl_suggest(word, names, x->n);
    kl_free(names);
    return near;
}

static void tell_unknown(walk *w, const kl__snode *x, const step *at)
{
    if (!w->strict || !one_more(w))
        return;
    const char *near = nearest(w, x, at->key);
    kl_buf_puts(&w->story, "there is no field \"");
    add_path(&w->story, at);
    kl_buf_putc(&w->story, '"');
    if (near)
        kl_buf_printf(&w->story, "; did you mean \"%s\"?", near);
}

static void tell_types(kl_buf *out, unsigned types)
{
    static const char *const words[] = {
        "a string", "an integer", "a number", "a boolean", "a list", "an object"};
    bool first = true;
    for (unsigned i = 0; i < 6; i++)
        if (types & (1u << i)) {
            kl_buf_printf(out, "%s%s", first ? "" : " or ", words[i]);
            first = false;
        }
}

/* The value itself is not shown: it may be a secret. */
static void tell_type(walk *w, const kl__snode *x, const kl_value *v, const step *at)
{
    static const char *const words[] = {[KL_NULL] = "null",
        [KL_BOOL] = "a boolean",
        [KL_INT] = "an integer",
        [KL_UINT] = "an integer",
        [KL_DOUBLE] = "a number with a fraction",
        [KL_STRING] = "a string",
        [KL_ARRAY] = "a list",
        [KL_OBJECT] = "an object"};
    if (!w->strict || !one_more(w))
        return;
    kl_buf_putc(&w->story, '"');
    add_path(&w->story, at);
    kl_buf_puts(&w->story, "\" must be ");
    tell_types(&w->story, x->types);
    kl_buf_printf(&w->story, ", not %s", words[kl_value_type(v)]);
}

/* --- walking ------------------------------------------------------------------------------ */

static const kl_value *visit(walk *w, uint32_t node, const kl_value *v, const step *at);

/* The node below x at a key, NO_NODE when there is none. */
static uint32_t below(const walk *w, const kl__snode *x, const char *key)
{
    uint32_t lo = 0, hi = x->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        const kl__sfield *f = &w->s->fields[x->first + mid];
        int c = strcmp(w->s->names + f->name, key);
        if (!c)
            return f->node;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    bool common = (x->flags & KL__EMBEDDED)
        && (!strcmp(key, "apiVersion") || !strcmp(key, "kind") || !strcmp(key, "metadata"));
    if ((x->flags & KL__OPEN) || common || (w->use == KL_SCHEMA_PATCH && *key == '$'))
        return 0;
    return x->types & KL__ARRAY ? KL__NO_NODE : x->items;
}

static const kl_value *visit_object(walk *w, const kl__snode *x, const kl_value *v, const step *at)
{
    kl_edited e = {.base = v};
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *child = kl_value_member(v, i, &key, &n);
        step here = {.up = at, .key = key, .n = n};
        uint32_t node = below(w, x, key);
        if (node == KL__NO_NODE) {
            tell_unknown(w, x, &here);
            continue;
        }
        if (!node)
            continue;
        const kl_value *now = visit(w, node, child, &here);
        if (now != child)
            kl_edited_put(&e, key, now);
        kl_value_unref(now);
    }
    return kl_edited_done(&e);
}

static const kl_value *visit_list(walk *w, const kl__snode *x, const kl_value *v, const step *at)
{
    size_t n = kl_value_len(v);
    const kl_value **now = kl_new_array(const kl_value *, n + 1);
    bool same = true;
    for (size_t i = 0; i < n; i++) {
        step here = {.up = at, .index = i + 1};
        now[i] = visit(w, x->items == KL__NO_NODE ? 0 : x->items, kl_value_item(v, i), &here);
        same = same && now[i] == kl_value_item(v, i);
    }
    kl_builder *b = same ? NULL : kl_builder_new();
    if (b)
        kl_build_array(b);
    for (size_t i = 0; i < n; i++) {
        if (b)
            kl_build_value(b, now[i]);
        kl_value_unref(now[i]);
    }
    kl_free(now);
    if (!b)
        return kl_value_ref(v);
    kl_build_end(b);
    return kl_builder_done(b);
}

static unsigned type_of(const kl_value *v)
{
    switch (kl_value_type(v)) {
    case KL_STRING: return KL__STRING;
    case KL_INT:
    case KL_UINT: return KL__INTEGER | KL__NUMBER;
    case KL_DOUBLE: return KL__NUMBER;
    case KL_BOOL: return KL__BOOLEAN;
    case KL_ARRAY: return KL__ARRAY;
    case KL_OBJECT: return KL__OBJECT;
    default: return KL__TYPES; /* null fits every type: it stands for an absent or removed value */
    }
}

static const kl_value *visit(walk *w, uint32_t node, const kl_value *v, const step *at)
{
    const kl__snode *x = &w->s->nodes[node];
    kl_type t = kl_value_type(v);
    int64_t whole;
    if (x->types && !(x->types & type_of(v))) {
        if (t == KL_OBJECT && !kl_value_len(v) && (x->types & KL__ARRAY))
            return kl_value_empty(KL_ARRAY);
        if (t == KL_DOUBLE && (x->types & KL__INTEGER) && kl_value_int(v, &whole))
            return kl_value_of_int(whole);
        tell_type(w, x, v, at);
        return kl_value_ref(v);
    }
    if (t == KL_OBJECT && node)
        return visit_object(w, x, v, at);
    if (t == KL_ARRAY && node)
        return visit_list(w, x, v, at);
    return kl_value_ref(v);
}

kl_status kl_schema_check(
    const kl_schema *s, const kl_schema_question *q, const kl_value *in, const kl_value **out, kl_err *err)
{
    uint32_t root = kl__schema_root(s, q->group, q->version, q->kind);
    if (root == KL__NO_NODE)
        return kl_fail(
            err, KL_ENOTFOUND, "the schema of \"%s/%s\" has no kind \"%s\"", q->group, q->version, q->kind);
    walk w = {.s = s, .use = q->use, .strict = q->strict};
    const kl_value *now = visit(&w, root, in, NULL);
    kl_status st = KL_OK;
    if (w.faults) {
        if (w.faults > TOLD_MAX)
            kl_buf_printf(&w.story, "; and %zu more", w.faults - TOLD_MAX);
        kl_value_unref(now);
        st = kl_fail(err, KL_EINVAL, "%s", kl_buf_str(&w.story));
    } else
        *out = now;
    kl_buf_fini(&w.story);
    return st;
}
