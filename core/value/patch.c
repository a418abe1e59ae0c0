/* patch.c - merge patch (RFC 7386) and JSON patch (RFC 6902) over values, with the habits of the API
 * server: see patch.h.
 *
 * Values are immutable, so a patch is a function from one root to another that shares what it did not
 * touch. A merge patch cannot say "null inside an object": there null means remove. */
#include "value/patch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "value/intern.h"

/* --- merge patch -------------------------------------------------------------------------- */

/* A value that a patch adds: nulls inside its objects, also in lists, are left out. A new reference. */
static const kl_value *pruned(const kl_value *v, size_t depth)
{
    if ((kl_value_type(v) != KL_OBJECT && kl_value_type(v) != KL_ARRAY) || depth > KL_VALUE_DEPTH_MAX)
        return kl_value_ref(v);
    bool object = kl_value_type(v) == KL_OBJECT;
    kl__stack s = {0};
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const kl_value *x = object ? kl_value_member(v, i, NULL, NULL) : kl_value_item(v, i);
        if (object && kl_value_type(x) == KL_NULL)
            continue;
        if (object)
            kl__stack_push(&s, kl_value_ref(kl__key(v, i)));
        kl__stack_push(&s, pruned(x, depth + 1));
    }
    const kl_value *out = kl__intern_container(kl_value_type(v), s.v, object ? s.len / 2 : s.len);
    s.len = 0;
    kl__stack_fini(&s);
    return out;
}

/* Recursion follows the patch; a decoded one is at most KL_VALUE_DEPTH_MAX deep. Below that depth a patch
 * replaces. */
static const kl_value *merge(const kl_value *doc, const kl_value *patch, size_t depth)
{
    if (kl_value_type(patch) != KL_OBJECT || depth > KL_VALUE_DEPTH_MAX)
        return pruned(patch, depth);
    const kl_value *out = kl_value_type(doc) == KL_OBJECT ? kl_value_ref(doc) : KL__EMPTY_OBJECT;
    size_t len = kl_value_len(patch);
    if (!len)
        return out;
    /* One pass over the document's members, one over the patch's, so that wide objects stay linear. */
    kl__stack s = {0};
    const char *key;
    size_t n;
    const kl_value *v;
    for (size_t i = 0; (v = kl_value_member(out, i, &key, &n)); i++) {
        const kl_value *p = kl_value_getn(patch, key, n);
        if (p && kl_value_type(p) == KL_NULL)
            continue;
        kl__stack_push(&s, kl_value_ref(kl__key(out, i)));
        kl__stack_push(&s, p ? merge(v, p, depth + 1) : kl_value_ref(v));
    }
    for (size_t i = 0; (v = kl_value_member(patch, i, &key, &n)); i++) {
        if (kl_value_type(v) == KL_NULL || kl_value_getn(out, key, n))
            continue;
        kl__stack_push(&s, kl_value_ref(kl__key(patch, i)));
        kl__stack_push(&s, merge(NULL, v, depth + 1));
    }
    kl_value_unref(out);
    out = kl__intern_container(KL_OBJECT, s.v, s.len / 2);
    s.len = 0;
    kl__stack_fini(&s);
    return out;
}

const kl_value *kl_merge_patch_apply(const kl_value *doc, const kl_value *patch)
{
    return merge(doc, patch, 1);
}

static const kl_value *diff(const kl_value *from, const kl_value *to, size_t depth)
{
    if (kl_value_type(from) != KL_OBJECT || kl_value_type(to) != KL_OBJECT || depth > KL_VALUE_DEPTH_MAX)
        return kl_value_ref(to);
    kl__stack s = {0};
    const char *key;
    size_t n;
    const kl_value *v;
    for (size_t i = 0; (v = kl_value_member(from, i, &key, &n)); i++)
        if (!kl_value_getn(to, key, n)) {
            kl__stack_push(&s, kl_value_ref(kl__key(from, i)));
            kl__stack_push(&s, KL__NULL);
        }
    for (size_t i = 0; (v = kl_value_member(to, i, &key, &n)); i++) {
        const kl_value *old = kl_value_getn(from, key, n);
        if (old && kl_value_equal(old, v))
            continue;
        kl__stack_push(&s, kl_value_ref(kl__key(to, i)));
        kl__stack_push(&s, diff(old, v, depth + 1));
    }
    const kl_value *out = kl__intern_container(KL_OBJECT, s.v, s.len / 2);
    s.len = 0;
    kl__stack_fini(&s);
    return out;
}

const kl_value *kl_merge_patch_create(const kl_value *from, const kl_value *to)
{
    /* {} would make an object of anything else */
    if (kl_value_type(to) == KL_OBJECT && kl_value_equal(from, to))
        return KL__EMPTY_OBJECT;
    return diff(from, to, 1);
}

/* --- JSON patch: places ------------------------------------------------------------------- */

void kl_json_pointer_fini(kl_json_pointer *p)
{
    for (size_t i = 0; i < p->len; i++)
        kl_free(p->steps[i]);
    kl_free(p->steps);
    *p = (kl_json_pointer){0};
}

bool kl_json_pointer_parse(const char *text, kl_json_pointer *out)
{
    *out = (kl_json_pointer){0};
    if (!text || (*text && *text != '/'))
        return false;
    while (*text == '/') {
        const char *from = ++text;
        text += strcspn(text, "/");
        char *step = kl_alloc((size_t)(text - from) + 1), *w = step;
        for (const char *p = from; p < text; p++) {
            if (*p == '~' && p + 1 < text && (p[1] == '0' || p[1] == '1'))
                *w++ = *++p == '0' ? '~' : '/';
            else
                *w++ = *p;
        }
        *w = '\0';
        out->steps = kl_realloc(out->steps, (out->len + 1) * sizeof *out->steps);
        out->steps[out->len++] = step;
        if (out->len > KL_VALUE_DEPTH_MAX) {
            kl_json_pointer_fini(out);
            return false;
        }
    }
    return true;
}

/* Reads an index: a decimal, with a sign if need be. A negative one counts from the end, where "past the end"
 * is -1. "-" is one past the end. */
static bool index_of(const char *step, size_t len, bool past_end, size_t *out)
{
    size_t size = past_end ? len + 1 : len, digits = *step == '-' || *step == '+';
    if (past_end && !strcmp(step, "-")) {
        *out = len;
        return true;
    }
    size_t n = strspn(step + digits, "0123456789");
    if (!n || step[digits + n] || n > 9)
        return false;
    size_t i = strtoul(step + digits, NULL, 10);
    if (*step == '-' && i)
        i = i <= size ? size - i : size;
    *out = i;
    return i < size;
}

static const kl_value *child(const kl_value *v, const char *step)
{
    size_t i;
    if (kl_value_type(v) == KL_ARRAY)
        return index_of(step, kl_value_len(v), false, &i) ? kl_value_item(v, i) : NULL;
    return kl_value_get(v, step);
}

static const kl_value *find(const kl_value *v, const kl_json_pointer *p)
{
    for (size_t i = 0; v && i < p->len; i++)
        v = child(v, p->steps[i]);
    return v;
}

/* --- JSON patch: edits -------------------------------------------------------------------- */

typedef enum edit { ADD, REMOVE, REPLACE } edit;

static const char *array_edit(
    const kl_value *v, const char *step, edit how, const kl_value *x, const kl_value **out)
{
    size_t len = kl_value_len(v), at;
    if (!index_of(step, len, how == ADD, &at))
        return "the list has no such index";
    kl__stack s = {0};
    for (size_t i = 0; i <= len; i++) {
        if (i == at && how != REMOVE)
            kl__stack_push(&s, kl_value_ref(x));
        if (i < len && (i != at || how == ADD))
            kl__stack_push(&s, kl_value_ref(kl_value_item(v, i)));
    }
    *out = kl__intern_container(KL_ARRAY, s.v, s.len);
    s.len = 0;
    kl__stack_fini(&s);
    return NULL;
}

/* Edits v at steps[0..n); *out gets a new reference. Returns NULL, or why not. */
static const char *edit_at(
    const kl_value *v, char *const *steps, size_t n, edit how, const kl_value *x, const kl_value **out)
{
    kl_type t = kl_value_type(v);
    if (!n) {
        if (how == REMOVE)
            return "the whole document cannot be removed";
        *out = kl_value_ref(x);
        return NULL;
    }
    if (t != KL_OBJECT && t != KL_ARRAY)
        return "the path passes through a value that is neither object nor list";
    if (n == 1 && t == KL_ARRAY)
        return array_edit(v, steps[0], how, x, out);
    const kl_value *below = child(v, steps[0]);
    if (n == 1) {
        if (!below && how == REMOVE)
            return "the key does not exist";
        *out = kl_value_with(v, steps[0], how == REMOVE ? NULL : x);
        return NULL;
    }
    if (!below)
        return "the path does not exist";
    const kl_value *changed = NULL;
    const char *why = edit_at(below, steps + 1, n - 1, how, x, &changed);
    if (why)
        return why;
    if (t == KL_OBJECT)
        *out = kl_value_with(v, steps[0], changed);
    else
        why = array_edit(v, steps[0], REPLACE, changed, out);
    kl_value_unref(changed);
    return why;
}

/* --- JSON patch: operations --------------------------------------------------------------- */

typedef struct operation {
    const char *op, *path, *from;
    kl_json_pointer at, source;
    const kl_value *value; /* borrowed; NULL when absent */
} operation;

static void operation_fini(operation *o)
{
    kl_json_pointer_fini(&o->at);
    kl_json_pointer_fini(&o->source);
}

static bool is(const operation *o, const char *name) { return !strcmp(o->op, name); }

static kl_status malformed(size_t i, const char *what, kl_err *err)
{
    return kl_fail(err, KL_EINVAL, "JSON patch operation %zu is malformed: %s", i + 1, what);
}

/* The member as C text. A text with a NUL reads as absent, since it would be cut there and name another
 * place. */
static const char *whole_text(const kl_value *v, const char *key)
{
    size_t n;
    const char *s = kl_value_strn(kl_value_get(v, key), &n);
    return s && strlen(s) == n ? s : NULL;
}

static kl_status operation_read(const kl_value *v, size_t i, operation *o, kl_err *err)
{
    static const char *const names[] = {"add", "remove", "replace", "move", "copy", "test"};
    bool known = false;
    o->op = whole_text(v, "op");
    o->path = whole_text(v, "path");
    o->from = whole_text(v, "from");
    o->value = kl_value_get(v, "value");
    for (size_t k = 0; o->op && k < sizeof names / sizeof *names; k++)
        known |= is(o, names[k]);
    if (!known)
        return malformed(i, "op must be one of add, remove, replace, move, copy, test", err);
    if (!kl_json_pointer_parse(o->path, &o->at))
        return malformed(i, "path must be a JSON pointer such as /metadata/labels/a~1b", err);
    if ((is(o, "move") || is(o, "copy")) && !kl_json_pointer_parse(o->from, &o->source))
        return malformed(i, "from must be a JSON pointer", err);
    if (is(o, "copy") && !o->source.len)
        return malformed(i, "from must name a part of the document", err);
    if (is(o, "add") && !o->value)
        o->value = KL__NULL;
    if ((is(o, "replace") || is(o, "test")) && !o->value)
        return malformed(i, "value is missing", err);
    return KL_OK;
}

static bool starts_with(const kl_json_pointer *p, const kl_json_pointer *prefix)
{
    if (p->len <= prefix->len)
        return false;
    for (size_t i = 0; i < prefix->len; i++)
        if (strcmp(p->steps[i], prefix->steps[i]))
            return false;
    return true;
}

/* The maximum number of members that all operations of a patch copy, which takes a second. An operation
 * copies each container on its path: without a limit, 200,000 insertions into one list take minutes. */
#define MEMBERS_MAX ((size_t)10 * 1000 * 1000)
#define MEMBERS_LEAST 50 /* the least cost of an operation */

/* The costs of one patch so far. */
typedef struct costs {
    size_t copied;  /* bytes, as JSON */
    size_t members; /* of containers on paths */
} costs;

/* The limit for all copies of one patch together, as JSON. Copies of copies double each time: forty
 * operations could make a document too large to walk. The API server's default (JSONPatchMaxCopyBytes). */
#define COPY_MAX ((size_t)3 * 1024 * 1024)

/* Adds the size of v to *copied; false above the bound. */
static bool may_copy(const kl_value *v, size_t *copied)
{
    kl_buf text;
    kl_buf_init(&text, COPY_MAX - *copied);
    bool fits = *copied < COPY_MAX && !kl_value_encode(v, &text);
    *copied += text.len;
    kl_buf_fini(&text);
    return fits;
}

/* The value to copy or to compare. It is null for a key that its object lacks. */
static const kl_value *read_from(const kl_value *doc, const kl_json_pointer *p)
{
    kl_json_pointer up = {p->steps, p->len - 1};
    const kl_value *there = find(doc, p);
    return there || kl_value_type(find(doc, &up)) != KL_OBJECT ? there : KL__NULL;
}

static bool may_walk(const kl_value *doc, const kl_json_pointer *p, costs *c)
{
    c->members += MEMBERS_LEAST;
    for (size_t i = 0; doc && i < p->len && c->members <= MEMBERS_MAX; i++) {
        c->members += kl_value_len(doc);
        doc = child(doc, p->steps[i]);
    }
    return c->members <= MEMBERS_MAX;
}

/* Applies one operation and replaces *doc. Returns NULL, or why not. */
static const char *operation_do(const operation *o, const kl_value **doc, costs *c)
{
    const kl_value *out = NULL, *moved;
    const char *why;
    if (!may_walk(*doc, &o->at, c) || !may_walk(*doc, &o->source, c))
        return "the operations of this patch change lists and objects of more than 10 million members "
               "together";
    if (is(o, "test")) {
        const kl_value *there = find(*doc, &o->at);
        bool null = kl_value_type(o->value) == KL_NULL;
        if (!there && null && o->at.len) /* as in Go's library: a key that its object lacks is null */
            there = read_from(*doc, &o->at);
        if (!there)
            return "the path does not exist";
        return kl_value_equal(there, o->value) ? NULL : "the value differs";
    }
    if (is(o, "move") || is(o, "copy")) {
        moved = is(o, "copy") ? read_from(*doc, &o->source) : find(*doc, &o->source);
        if (!moved)
            return "from does not exist";
        if (is(o, "copy")) {
            if (!may_copy(moved, &c->copied))
                return "the copies of this patch hold more than 3 MiB together";
            why = edit_at(*doc, o->at.steps, o->at.len, ADD, moved, &out);
        } else if (starts_with(&o->at, &o->source)) {
            return "a value cannot be moved into itself";
        } else {
            const kl_value *without = NULL;
            kl_value_ref(moved);
            why = o->source.len ? edit_at(*doc, o->source.steps, o->source.len, REMOVE, NULL, &without)
                                : NULL;
            if (!why)
                why = edit_at(o->source.len ? without : *doc, o->at.steps, o->at.len, ADD, moved, &out);
            kl_value_unref(without);
            kl_value_unref(moved);
        }
    } else {
        edit how = is(o, "add") ? ADD : is(o, "remove") ? REMOVE : REPLACE;
        why = edit_at(*doc, o->at.steps, o->at.len, how, o->value, &out);
    }
    if (why)
        return why;
    kl_value_unref(*doc);
    *doc = out;
    return NULL;
}

kl_status kl_json_patch_apply(const kl_value *doc, const kl_value *patch, const kl_value **out, kl_err *err)
{
    if (doc && kl_value_type(doc) != KL_OBJECT && kl_value_type(doc) != KL_ARRAY)
        return kl_fail(err, KL_EREJECTED,
            "a JSON patch changes an object or a list, not a document of type %s", kl_value_type_name(doc));
    if (kl_value_type(patch) != KL_ARRAY && kl_value_type(patch) != KL_NULL)
        return kl_fail(err, KL_EINVAL, "a JSON patch is a list of operations, not of type %s",
            kl_value_type_name(patch));
    const kl_value *now = doc ? kl_value_ref(doc) : KL__NULL;
    kl_status st = KL_OK;
    costs c = {0};
    for (size_t i = 0; !st && i < kl_value_len(patch); i++) {
        operation o = {0};
        st = operation_read(kl_value_item(patch, i), i, &o, err);
        const char *why = st ? NULL : operation_do(&o, &now, &c);
        if (why)
            st = kl_fail(err, KL_EREJECTED, "JSON patch operation %zu (%s %s) cannot be applied: %s", i + 1,
                o.op, o.path, why);
        operation_fini(&o);
    }
    if (!st)
        *out = now;
    else
        kl_value_unref(now);
    return st;
}
