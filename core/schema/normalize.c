/* normalize.c - one walk over value and schema. What did not change is shared with the input. */
#include "schema/normalize.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "model/quantity.h"
#include "model/time.h"
#include "schema/edit.h"
#include "schema/status.h"

/* The path from the root to the present value: a chain on the C stack. Only messages make a text of it. */
struct step {
    const struct step *above;
    const kl__schema *owner; /* NULL: of a list */
    const char *key;         /* NULL: item n of a list */
    size_t n;                /* of the key */
};

/* The schemas of the members of objects with one set of keys, all known and with all defaults: mostly, items
 * of a list are alike. */
struct alike {
    const kl__schema *s;
    uint32_t shape;
    const kl__schema **below; /* of each member; NULL: a key is unknown, or a default is missing */
};

struct walk {
    bool fill, custom;
    struct alike alike[16];
    size_t n_alike;
    size_t filled;  /* fields that were absent and got their default */
    size_t glances; /* of stays(), that failed above the present value */
    kl__unknown *unknown;
    const struct step *at;
    kl_err *err;
};

void kl__unknown_fini(kl__unknown *u)
{
    for (size_t i = 0; i < u->count; i++)
        kl_free(u->paths[i]);
    kl_free(u->paths);
    *u = (kl__unknown){0};
}

char *kl__unknown_text(const kl__unknown *u)
{
    kl_buf out = KL_BUF_INIT;
    kl_buf_puts(&out, "");
    for (size_t i = 0; i < u->count; i++)
        kl_buf_printf(&out, "%sunknown field \"%s\"", i ? ", " : "", u->paths[i]);
    return kl_buf_take(&out);
}

static bool is_metadata(const char *path) { return !strncmp(path, "metadata.", 9); }

static int by_name(const void *x, const void *y)
{
    const char *a = *(char *const *)x, *b = *(char *const *)y;
    return is_metadata(a) != is_metadata(b) ? is_metadata(b) - is_metadata(a) : strcmp(a, b);
}

/* The steps from the root on; how many. */
static size_t steps_of(const struct step *at, const struct step **steps)
{
    size_t n = 0;
    for (const struct step *s = at; s && n < KL_VALUE_DEPTH_MAX; s = s->above)
        n++;
    for (size_t i = n; i--; at = at->above)
        steps[i] = at;
    return n;
}

/* "spec.containers[0].image" */
static void add_path(const struct step *at, kl_buf *out)
{
    const struct step *steps[KL_VALUE_DEPTH_MAX];
    for (size_t i = 0, n = steps_of(at, steps); i < n; i++) {
        const struct step *s = steps[i];
        if (s->key) /* a key may hold NUL */
            kl_buf_printf(out, "%s%.*s", i && *s->key != '[' ? "." : "", (int)s->n, s->key);
        else
            kl_buf_printf(out, "[%zu]", s->n);
    }
}

/* The maximum number of unknown fields of a built-in kind that are noted, as in Go's decoder; and of bytes of
 * all paths. */
#define UNKNOWN_MAX 100
#define UNKNOWN_BYTES_MAX ((size_t)64 << 10)

static void note_unknown(struct walk *w, const char *key, size_t n)
{
    kl__unknown *u = w->unknown;
    if (!u || u->bytes > UNKNOWN_BYTES_MAX || (!w->custom && u->count >= UNKNOWN_MAX))
        return;
    kl_buf path = KL_BUF_INIT;
    add_path(w->at, &path);
    kl_buf_printf(&path, "%s%.*s", path.len ? "." : "", (int)n, key);
    if (u->count == u->cap) {
        u->cap = u->cap ? u->cap * 2 : 4;
        u->paths = kl_realloc(u->paths, u->cap * sizeof *u->paths);
    }
    u->bytes += path.len;
    u->paths[u->count++] = kl_buf_take(&path);
}

/* The name that the type of a text has in Go, if it is not "string". */
static const char *go_text(const struct step *at)
{
    while (at && !at->key)
        at = at->above;
    const kl__field *f = at && at->owner && at->owner->type == KL_S_STRUCT && !at->owner->custom
        ? kl__schema_field(at->owner, at->key, at->n)
        : NULL;
    return f && f->go ? f->go : "string";
}

/* The type of the field in Go, where its schema tells: "[]v1.Container". `text`: that of a text in it. */
static void add_go_type(const kl__schema *s, const char *text, kl_buf *out)
{
    const char *name = s->name;
    for (const char *p = name; p && (p = strchr(p, '.')); p++)
        if (strchr(p + 1, '.'))
            name = p + 1;
    switch (s->type) {
    case KL_S_STRING: kl_buf_puts(out, text); return;
    case KL_S_BYTES: kl_buf_puts(out, "[]uint8"); return;
    case KL_S_INT: kl_buf_puts(out, s->narrow ? "int32" : "int64"); return;
    case KL_S_NUMBER: kl_buf_puts(out, "float64"); return;
    case KL_S_BOOL: kl_buf_puts(out, "bool"); return;
    case KL_S_QUANTITY: kl_buf_puts(out, "resource.Quantity"); return;
    case KL_S_INT_OR_STRING: kl_buf_puts(out, "int32"); return; /* a string would not have failed */
    case KL_S_TIME:
    case KL_S_MICROTIME: kl_buf_puts(out, "string"); return;
    case KL_S_STRUCT: kl_buf_puts(out, name ? name : "struct"); return;
    case KL_S_ANY: kl_buf_puts(out, "interface {}"); return;
    case KL_S_LIST:
        kl_buf_puts(out, "[]");
        add_go_type(s->items, text, out);
        return;
    case KL_S_MAP:
        if (s->items->type == KL_S_QUANTITY) {
            kl_buf_puts(out, "v1.ResourceList");
            return;
        }
        kl_buf_puts(out, "map[string]");
        add_go_type(s->items, text, out);
        return;
    }
}

const char *kl__json_type(const kl_value *v)
{
    const char *name = kl_value_type_name(v);
    return !strcmp(name, "boolean") ? "bool" : !strcmp(name, "integer") ? "number" : name;
}

/* The field as Go names it: its struct, then the names of fields on the way, without indexes and keys of
 * maps. A custom resource has no Go names: below it the names begin anew. */
static void add_go_field(const struct step *at, kl_buf *out)
{
    const kl__schema *owner = NULL;
    kl_buf path = KL_BUF_INIT;
    const struct step *steps[KL_VALUE_DEPTH_MAX];
    for (size_t i = 0, n = steps_of(at, steps); i < n; i++) {
        const struct step *s = steps[i];
        if (!s->owner || s->owner->type != KL_S_STRUCT)
            continue;
        if (s->owner->custom) {
            kl_buf_clear(&path);
            continue;
        }
        owner = s->owner;
        kl_buf_printf(&path, ".%.*s", (int)s->n, s->key);
    }
    const char *dot = owner && owner->name ? strrchr(owner->name, '.') : NULL;
    kl_buf_printf(out, "%s%s", dot ? dot + 1 : "", kl_buf_str(&path));
    kl_buf_fini(&path);
}

static kl_status mismatch(struct walk *w, const kl__schema *s, const kl_value *v)
{
    kl_type t = kl_value_type(v);
    bool number = t == KL_INT || t == KL_UINT || t == KL_DOUBLE;
    kl_buf type = KL_BUF_INIT, field = KL_BUF_INIT;
    char *digits = number && (s->type == KL_S_INT || s->type == KL_S_INT_OR_STRING) ? kl_value_to_json(v)
                                                                                    : NULL;
    add_go_type(s, go_text(w->at), &type);
    add_go_field(w->at, &field);
    kl_status st = kl__fail_bad_request(w->err,
        "json: cannot unmarshal %s%s%s into Go struct field %s of type %s", kl__json_type(v),
        digits ? " " : "", digits ? digits : "", kl_buf_str(&field), kl_buf_str(&type));
    kl_free(digits);
    kl_buf_fini(&type);
    kl_buf_fini(&field);
    return st;
}

static kl_status walk(struct walk *w, const kl__schema *s, const kl_value *in, const kl_value **out);

/* One child of `owner` under `key`, or item n of a list (no key); sets *out NULL when the child goes away. */
static kl_status child(struct walk *w, const kl__schema *owner, const kl__schema *s, const char *key,
    size_t n, const kl_value *in, const kl_value **out)
{
    struct step step = {.above = w->at, .owner = owner, .key = key, .n = n};
    w->at = &step;
    kl_status st = walk(w, s, in, out);
    w->at = step.above;
    return st;
}

static bool is_zero(const kl_value *v)
{
    int64_t n;
    if (kl_value_type(v) == KL_STRING)
        return !kl_value_len(v);
    return kl_value_type(v) == KL_BOOL ? !kl_value_bool(v, true) : kl_value_int(v, &n) && !n;
}

/* Values of built-in kinds that Go's omitempty leaves out. */
static bool dropped_when_empty(const kl__schema *owner, const kl__field *f, const kl_value *v)
{
    if (owner->custom || !f)
        return false;
    if (f->omitted)
        return is_zero(v);
    bool collection = f->schema->type == KL_S_MAP || f->schema->type == KL_S_LIST;
    if (f->null && kl_value_type(v) == KL_ARRAY)
        return false;
    return collection && (!f->present || f->null) && !kl_value_len(v);
}

/* Walks the metadata of an embedded resource, whose unknown fields are dropped silently. */
static kl_status embedded_metadata(
    struct walk *w, const kl__schema *s, const kl_value *in, const kl_value **out)
{
    kl__unknown *unknown = w->unknown;
    w->unknown = NULL;
    kl_status st = child(w, s, s->meta, "metadata", 8, in, out);
    w->unknown = unknown;
    return st;
}

static kl_status must_be_text(struct walk *w, const char *key, const kl_value *v)
{
    if (kl_value_type(v) == KL_STRING)
        return KL_OK;
    char *text = kl_value_to_json(v);
    kl_buf path = KL_BUF_INIT;
    add_path(w->at, &path);
    kl_status st = kl__fail_bad_request(
        w->err, "%s.%s: Invalid value: %s: must be a string", kl_buf_str(&path), key, text);
    kl_buf_fini(&path);
    kl_free(text);
    return st;
}

/* The maximum number of defaults: an object with more of them fits neither a request nor etcd. */
#define FILLED_MAX 1000000u

static kl_status count_filled(struct walk *w)
{
    if (++w->filled <= FILLED_MAX)
        return KL_OK;
    kl_buf path = KL_BUF_INIT;
    add_path(w->at, &path);
    kl_status st = kl__api_fail(w->err, 413, "RequestEntityTooLarge", NULL,
        "Request entity too large: %.200s: the schema's defaults fill more than %u fields of it",
        path.len ? kl_buf_str(&path) : "the object", FILLED_MAX);
    kl_buf_fini(&path);
    return st;
}

/* The result for an object or a list. Nothing is built until the first part differs from the input. */
typedef struct result {
    const kl_value *in;
    kl_builder *b; /* NULL: nothing differs so far */
} result;

/* Begins to build the result: everything before `upto` equals the input. */
static void differ(result *r, size_t upto)
{
    if (r->b)
        return;
    bool list = kl_value_type(r->in) == KL_ARRAY;
    r->b = kl_builder_new();
    if (list)
        kl_build_array(r->b);
    else
        kl_build_object(r->b);
    for (size_t i = 0; i < upto; i++) {
        const char *key;
        size_t n;
        if (!list) {
            (void)kl_value_member(r->in, i, &key, &n);
            kl_build_keyn(r->b, key, n);
        }
        kl_build_value(r->b, list ? kl_value_item(r->in, i) : kl_value_member(r->in, i, &key, &n));
    }
}

/* Adds member i, whose value was v and is x (taken; NULL: it is left out). */
static void member(result *r, size_t i, const char *key, size_t n, const kl_value *v, const kl_value *x)
{
    if (x != v)
        differ(r, i);
    if (r->b && x) {
        kl_build_keyn(r->b, key, n);
        kl_build_value(r->b, x);
    }
    kl_value_unref(x);
}

static kl_status done(result *r, kl_status st, const kl_value **out)
{
    if (!r->b) {
        if (!st)
            *out = kl_value_ref(r->in);
        return st;
    }
    kl_build_end(r->b);
    if (st)
        kl_builder_free(r->b);
    else
        *out = kl_builder_done(r->b);
    return st;
}

/* What Go's JSON has for a field that is missing. */
static const kl_value *zero_value(const kl__field *f)
{
    if (f->null)
        return kl_value_null();
    switch (f->schema->type) {
    case KL_S_STRING: return kl_value_of_str("");
    case KL_S_QUANTITY: return kl_value_of_str("0");
    case KL_S_BOOL: return kl_value_of_bool(false);
    default: return kl_value_of_int(0);
    }
}

/* What Go has for null in a map. */
static const kl_value *zero_item(const kl__schema *s)
{
    return s->type == KL_S_STRING || s->type == KL_S_BYTES ? kl_value_of_str("")
        : s->type == KL_S_QUANTITY                         ? kl_value_of_str("0")
                                                           : kl_value_null();
}

/* Walks one member of an object. *x: its new value; NULL: it is left out. */
static kl_status walk_member(
    struct walk *w, const kl__schema *s, const char *key, size_t n, const kl_value *v, const kl_value **x)
{
    kl_status st = KL_OK;
    const kl__schema *below = kl__schema_child(s, key, n);
    if (s->embedded && !strcmp(key, "metadata"))
        return embedded_metadata(w, s, v, x);
    if (s->embedded && (!strcmp(key, "apiVersion") || !strcmp(key, "kind"))) {
        st = must_be_text(w, key, v);
        below = below ? below : &kl__schema_any;
    }
    if (!below) {
        note_unknown(w, key, n);
        return st;
    }
    if (w->fill && kl_value_type(v) == KL_NULL && below->custom && !below->nullable)
        return st; /* null is not allowed: the default replaces it, or it is removed */
    if (w->fill && s->type == KL_S_MAP && !s->custom && kl_value_type(v) == KL_NULL)
        *x = zero_item(below); /* a map has the zero value under the key */
    else if (!st)
        st = child(w, s, below, key, n, v, x);
    const kl__field *f = w->fill && !s->custom ? kl__schema_field(s, key, n) : NULL;
    if (*x && dropped_when_empty(s, f, *x)) {
        kl_value_unref(*x);
        *x = NULL;
    }
    return st;
}

static const kl__schema **learn(const struct walk *w, const kl__schema *s, const kl_value *in)
{
    size_t len = kl_value_len(in);
    for (size_t i = 0; w->fill && i < s->nfields; i++)
        if (s->fields[i].schema->dflt && !kl_value_get(in, s->fields[i].name))
            return NULL;
    const kl__schema **below = kl_new_array(const kl__schema *, len);
    for (size_t i = 0; i < len; i++) {
        const char *key;
        size_t n;
        (void)kl_value_member(in, i, &key, &n);
        below[i] = kl__schema_child(s, key, n);
        if (!below[i]) {
            kl_free((void *)below);
            return NULL;
        }
    }
    return below;
}

static const kl__schema **members_of(struct walk *w, const kl__schema *s, const kl_value *in)
{
    const size_t most = sizeof w->alike / sizeof *w->alike;
    uint32_t shape = kl_value_shape(in);
    if (!shape || !s->custom || s->embedded || s->type == KL_S_LIST)
        return NULL;
    for (size_t i = 0; i < w->n_alike; i++)
        if (w->alike[i].s == s && w->alike[i].shape == shape)
            return w->alike[i].below;
    if (w->n_alike == most) /* callers up the stack read what is there */
        return NULL;
    w->alike[w->n_alike] = (struct alike){s, shape, learn(w, s, in)};
    return w->alike[w->n_alike++].below;
}

/* Whether a part of a custom resource is seen at a glance to stay as it is: false does not mean that it
 * changes. No nulls are in it, so that no default replaces one. */
static bool stays(struct walk *w, const kl__schema *s, const kl_value *in)
{
    kl_type t = kl_value_type(in);
    size_t len = kl_value_len(in);
    if (t == KL_NULL || (!s->custom && s != &kl__schema_any))
        return false;
    if (s == &kl__schema_any || (t != KL_OBJECT && t != KL_ARRAY))
        return true;
    if (t == KL_OBJECT && !len && s->nfields)
        return false;
    for (size_t i = 0; t == KL_ARRAY && i < len; i++)
        if (s->type != KL_S_LIST || !stays(w, s->items, kl_value_item(in, i)))
            return false;
    const kl__schema *const *below = t == KL_OBJECT ? members_of(w, s, in) : NULL;
    for (size_t i = 0; t == KL_OBJECT && i < len; i++) {
        const char *key;
        size_t n;
        if (!below || !stays(w, below[i], kl_value_member(in, i, &key, &n)))
            return false;
    }
    return true;
}

static kl_status walk_object(struct walk *w, const kl__schema *s, const kl_value *in, const kl_value **out)
{
    kl_status st = KL_OK;
    result r = {.in = in};
    size_t len = kl_value_len(in);
    for (size_t i = 0; !st && i < len; i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(in, i, &key, &n), *x = NULL;
        st = walk_member(w, s, key, n, v, &x);
        member(&r, i, key, n, v, x);
    }
    for (size_t i = 0; !st && w->fill && i < s->nfields; i++) {
        const kl__field *f = &s->fields[i];
        bool made = f->filled && f->schema->type == KL_S_STRUCT, zero = f->zero || f->null;
        if (!made && !zero && (!f->schema->dflt || kl_value_type(f->schema->dflt) == KL_NULL))
            continue;
        const kl_value *have = kl_value_get(in, f->name), *x = NULL;
        if (have && !(kl_value_type(have) == KL_NULL && (!s->custom || !f->schema->nullable))
            && !dropped_when_empty(s, f, have))
            continue;
        if (made) {
            const kl_value *none = kl_value_empty(KL_OBJECT);
            st = child(w, s, f->schema, f->name, strlen(f->name), none, &x);
            kl_value_unref(none);
        } else if (zero)
            x = zero_value(f);
        else if (!(st = count_filled(w)))
            st = child(w, s, f->schema, f->name, strlen(f->name), f->schema->dflt, &x);
        if (x)
            member(&r, len, f->name, strlen(f->name), NULL, x);
    }
    return done(&r, st, out);
}

/* How often a value is looked at: in the list that holds it, and in the lists around that one. More would
 * cost its size times its depth. */
#define GLANCES_MAX 3

static kl_status walk_list(struct walk *w, const kl__schema *items, const kl_value *in, const kl_value **out)
{
    kl_status st = KL_OK;
    result r = {.in = in};
    for (size_t i = 0; !st && i < kl_value_len(in); i++) {
        const kl_value *have = kl_value_item(in, i), *v = have, *x = NULL;
        if (w->fill && kl_value_type(v) == KL_NULL && items->custom && items->dflt && !items->nullable)
            v = items->dflt;
        if (v == items->dflt)
            st = count_filled(w);
        if (st)
            break;
        bool glance = w->glances < GLANCES_MAX;
        if (glance && stays(w, items, v))
            x = kl_value_ref(v);
        else {
            w->glances += glance;
            st = child(w, NULL, items, NULL, i, v, &x);
            w->glances -= glance;
        }
        if (!x && !st && items->type == KL_S_STRUCT) { /* a null item is a zero value in Go */
            const kl_value *none = kl_value_empty(KL_OBJECT);
            st = child(w, NULL, items, NULL, i, none, &x);
            kl_value_unref(none);
        } else if (!x && !st)
            x = kl_value_of_str("");
        if (x != have)
            differ(&r, i);
        if (r.b && x)
            kl_build_value(r.b, x);
        kl_value_unref(x);
    }
    return done(&r, st, out);
}

/* Sets *out to `text` (taken), shared with `in` when equal. */
static kl_status as_text(const kl_value *in, char *text, const kl_value **out)
{
    const char *have = kl_value_str(in);
    *out = have && !strcmp(have, text) ? kl_value_ref(in) : kl_value_of_str(text);
    kl_free(text);
    return KL_OK;
}

static kl_status walk_quantity(struct walk *w, const kl_value *in, const kl_value **out)
{
    size_t n;
    const char *text = kl_value_strn(in, &n);
    if (text && kl_quantity_is_canonical(text, n)) {
        *out = kl_value_ref(in);
        return KL_OK;
    }
    char *printed = text ? NULL : kl_value_to_json(in);
    kl_quantity *q;
    kl_err why = KL_ERR_INIT;
    kl_status st = kl_quantity_parse(text ? text : printed, &q, &why);
    if (st)
        st = kl__fail_bad_request(w->err,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    else {
        st = as_text(in, kl_quantity_canonical(q, NULL, NULL), out);
        kl_quantity_free(q);
    }
    kl_err_fini(&why);
    kl_free(printed);
    return st;
}

static kl_status walk_time(struct walk *w, const kl__schema *s, const kl_value *in, const kl_value **out)
{
    const char *text = kl_value_str(in);
    int64_t sec;
    int32_t nsec;
    char buf[KL_TIME_MAX];
    if (!text)
        return mismatch(w, s, in);
    const char *fraction = strchr(text, '.');
    bool micro = s->type == KL_S_MICROTIME;
    if ((micro && (!fraction || strspn(fraction + 1, "0123456789") != 6))
        || kl_time_parse(text, &sec, &nsec, NULL)) {
        char *why = kl_time_why_not(text, micro);
        kl_status st = kl__fail_bad_request(w->err, "%s", why);
        kl_free(why);
        return st;
    }
    return as_text(in,
        kl_strdup(s->type == KL_S_TIME ? kl_time_format(sec, buf) : kl_time_format_micro(sec, nsec, buf)),
        out);
}

/* Checks base64. Go counts the bytes from 0. */
static kl_status check_base64(struct walk *w, const kl_value *in)
{
    size_t n;
    const char *text = kl_value_strn(in, &n);
    kl_buf bytes = KL_BUF_INIT;
    kl_err why = KL_ERR_INIT;
    kl_status st = kl_base64_decode(text, n, &bytes, &why);
    if (st) {
        const char *at = strrchr(kl_err_message(&why), ' ');
        long byte = at ? strtol(at, NULL, 10) : 1;
        st = kl__fail_bad_request(w->err, "illegal base64 data at input byte %ld", byte > 0 ? byte - 1 : 0);
    }
    kl_err_fini(&why);
    kl_buf_fini(&bytes);
    return st;
}

static kl_status walk(struct walk *w, const kl__schema *s, const kl_value *in, const kl_value **out)
{
    kl_type t = kl_value_type(in);
    int64_t whole;
    *out = NULL;
    /* validation reports wrong types in custom resources */
    if (s->custom || s->type == KL_S_ANY) {
        static const kl__schema nothing = {.type = KL_S_STRUCT, .custom = true};
        bool list = s->type == KL_S_LIST, keeps = s->preserve || s->type == KL_S_ANY;
        if (t == KL_OBJECT && (s->nfields || s->items || s->custom))
            return walk_object(w, list ? &nothing : s, in, out);
        if (t == KL_ARRAY && (list || (s->custom && !keeps)))
            return walk_list(w, list ? s->items : &nothing, in, out);
        *out = kl_value_ref(in);
        return KL_OK;
    }
    if (t == KL_NULL) {
        if (!w->fill) /* its applier owns it */
            *out = kl_value_ref(in);
        return KL_OK;
    }
    switch (s->type) {
    case KL_S_STRUCT:
    case KL_S_MAP: return t == KL_OBJECT ? walk_object(w, s, in, out) : mismatch(w, s, in);
    case KL_S_LIST: return t == KL_ARRAY ? walk_list(w, s->items, in, out) : mismatch(w, s, in);
    case KL_S_STRING:
        if (t != KL_STRING)
            return mismatch(w, s, in);
        break;
    case KL_S_BYTES: {
        kl_status st = t == KL_STRING ? check_base64(w, in) : mismatch(w, s, in);
        if (st)
            return st;
        break;
    }
    case KL_S_INT:
        if (!kl_value_int(in, &whole) || (s->narrow && whole != (int32_t)whole))
            return mismatch(w, s, in);
        break;
    case KL_S_NUMBER:
        if (t != KL_INT && t != KL_UINT && t != KL_DOUBLE)
            return mismatch(w, s, in);
        break;
    case KL_S_BOOL:
        if (t != KL_BOOL)
            return mismatch(w, s, in);
        break;
    case KL_S_INT_OR_STRING:
        if (t != KL_STRING && !kl_value_int(in, &whole))
            return mismatch(w, s, in);
        break;
    case KL_S_QUANTITY: return walk_quantity(w, in, out);
    case KL_S_TIME:
    case KL_S_MICROTIME: return walk_time(w, s, in, out);
    case KL_S_ANY: break;
    }
    *out = kl_value_ref(in);
    return KL_OK;
}

kl_status kl__normalize(const kl__schema *s, const kl_value *in, bool fill, kl__unknown *unknown,
    const kl_value **out, kl_err *err)
{
    struct walk w = {.fill = fill, .custom = s->custom, .unknown = unknown, .err = err};
    kl_status st = walk(&w, s, in, out);
    if (s->custom && unknown && unknown->count > 1)
        qsort(unknown->paths, unknown->count, sizeof *unknown->paths, by_name);
    for (size_t i = 0; i < w.n_alike; i++)
        kl_free((void *)w.alike[i].below);
    return st;
}

const kl_value *kl__normalize_custom(const kl__schema *s, const kl_value *in)
{
    const kl_value *out;
    kl_err err = KL_ERR_INIT;
    if (kl__normalize(s, in, true, NULL, &out, &err))
        out = kl_value_ref(in);
    kl_err_fini(&err);
    return out;
}
