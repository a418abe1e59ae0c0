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

struct walk {
    bool fill;
    kl__unknown *unknown;
    kl_buf path; /* "spec.containers[0].image" */
    kl_err *err;
};

void kl__unknown_fini(kl__unknown *u)
{
    kl_buf_fini(&u->names);
    kl_buf_fini(&u->warnings);
    u->count = 0;
}

static void note_unknown(struct walk *w, const char *key, size_t n)
{
    if (!w->unknown)
        return;
    kl__unknown *u = w->unknown;
    kl_buf_printf(&u->names, "%sunknown field \"%s%s%.*s\"", u->count ? ", " : "", kl_buf_str(&w->path),
        w->path.len ? "." : "", (int)n, key);
    kl_buf_printf(&u->warnings, "Warning: 299 - \"unknown field \\\"%s%s%.*s\\\"\"\r\n", kl_buf_str(&w->path),
        w->path.len ? "." : "", (int)n, key);
    u->count++;
}

static const char *go_type(kl__stype t)
{
    switch (t) {
    case KL_S_STRING:
    case KL_S_BYTES: return "string";
    case KL_S_INT: return "int64";
    case KL_S_NUMBER: return "float64";
    case KL_S_BOOL: return "bool";
    case KL_S_LIST: return "slice";
    case KL_S_MAP: return "map";
    case KL_S_TIME:
    case KL_S_MICROTIME: return "Time";
    default: return "struct";
    }
}

static const char *json_type(const kl_value *v)
{
    const char *name = kl_value_type_name(v);
    return !strcmp(name, "boolean") ? "bool" : !strcmp(name, "integer") ? "number" : name;
}

static kl_status mismatch(struct walk *w, const kl__schema *s, const kl_value *v)
{
    return kl__fail_bad_request(w->err, "json: cannot unmarshal %s into Go struct field %s of type %s",
        json_type(v), kl_buf_str(&w->path), go_type(s->type));
}

static kl_status walk(struct walk *w, const kl__schema *s, const kl_value *in, const kl_value **out);

/* One child under path piece `key`; sets *out NULL when the child goes away. */
static kl_status child(
    struct walk *w, const kl__schema *s, const char *key, size_t n, const kl_value *in, const kl_value **out)
{
    size_t mark = w->path.len;
    kl_buf_printf(&w->path, "%s%.*s", mark && *key != '[' ? "." : "", (int)n, key);
    kl_status st = walk(w, s, in, out);
    w->path.len = mark;
    if (w->path.data)
        w->path.data[mark] = 0;
    return st;
}

static const kl_value *empty_object(void)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* What Go's omitempty leaves out: empty maps and lists of built-in kinds, empty strings of their metadata. */
static bool dropped_when_empty(const kl__schema *owner, const kl__field *f, const kl_value *v)
{
    if (owner->custom || !f || f->present || kl_value_len(v))
        return false;
    if (f->schema->type == KL_S_MAP || f->schema->type == KL_S_LIST)
        return true;
    return f->schema->type == KL_S_STRING && owner->name && !strcmp(owner->name, "meta.v1.ObjectMeta");
}

/* Its unknown fields go without a word. */
static kl_status embedded_metadata(
    struct walk *w, const kl__schema *s, const kl_value *in, const kl_value **out)
{
    kl__unknown *unknown = w->unknown;
    w->unknown = NULL;
    kl_status st = child(w, s->meta, "metadata", 8, in, out);
    w->unknown = unknown;
    return st;
}

static kl_status must_be_text(struct walk *w, const char *key, const kl_value *v)
{
    if (kl_value_type(v) == KL_STRING)
        return KL_OK;
    char *text = kl_value_to_json(v);
    kl_status st = kl__fail_bad_request(
        w->err, "%s.%s: Invalid value: %s: must be a string", kl_buf_str(&w->path), key, text);
    kl_free(text);
    return st;
}

static kl_status walk_object(struct walk *w, const kl__schema *s, const kl_value *in, const kl_value **out)
{
    kl_status st = KL_OK;
    bool same = true;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; !st && i < kl_value_len(in); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(in, i, &key, &n), *x = NULL;
        const kl__schema *below = kl__schema_child(s, key, n);
        const kl__field *f = kl__schema_field(s, key, n);
        if (s->embedded && !strcmp(key, "metadata")) {
            st = embedded_metadata(w, s, v, &x);
            same &= x == v;
            if (x)
                kl_build_kvalue(b, key, x);
            kl_value_unref(x);
            continue;
        }
        if (s->embedded && (!strcmp(key, "apiVersion") || !strcmp(key, "kind"))) {
            st = must_be_text(w, key, v);
            below = below ? below : &kl__schema_any;
        }
        if (!below) {
            note_unknown(w, key, n);
            same = false;
            continue;
        }
        if (w->fill && kl_value_type(v) == KL_NULL && below->custom && !below->nullable) {
            same = false; /* it may not be null: its default takes its place, or nothing does */
            continue;
        }
        if (!st)
            st = child(w, below, key, n, v, &x);
        if (x && w->fill && dropped_when_empty(s, f, x)) {
            kl_value_unref(x);
            x = NULL;
        }
        if (x != v)
            same = false;
        if (x) {
            kl_build_keyn(b, key, n);
            kl_build_value(b, x);
        }
        kl_value_unref(x);
    }
    for (size_t i = 0; !st && w->fill && i < s->nfields; i++) {
        const kl__field *f = &s->fields[i];
        const kl_value *have = kl_value_get(in, f->name), *x = NULL;
        if (have && !(kl_value_type(have) == KL_NULL && (!s->custom || !f->schema->nullable)))
            continue;
        if (f->filled && f->schema->type == KL_S_STRUCT) {
            const kl_value *none = empty_object();
            st = child(w, f->schema, f->name, strlen(f->name), none, &x);
            kl_value_unref(none);
        } else if (f->schema->dflt && kl_value_type(f->schema->dflt) != KL_NULL)
            st = child(w, f->schema, f->name, strlen(f->name), f->schema->dflt, &x);
        if (x) {
            same = false;
            kl_build_key(b, f->name);
            kl_build_value(b, x);
        }
        kl_value_unref(x);
    }
    if (st || same) {
        kl_build_end(b);
        kl_builder_free(b);
        if (!st)
            *out = kl_value_ref(in);
        return st;
    }
    kl_build_end(b);
    *out = kl_builder_done(b);
    return KL_OK;
}

static kl_status walk_list(struct walk *w, const kl__schema *items, const kl_value *in, const kl_value **out)
{
    kl_status st = KL_OK;
    bool same = true;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; !st && i < kl_value_len(in); i++) {
        char key[24];
        const kl_value *v = kl_value_item(in, i), *x = NULL;
        if (w->fill && kl_value_type(v) == KL_NULL && items->custom && items->dflt && !items->nullable)
            v = items->dflt;
        int n = snprintf(key, sizeof key, "[%zu]", i);
        st = child(w, items, key, (size_t)n, v, &x);
        if (x != kl_value_item(in, i))
            same = false;
        if (x)
            kl_build_value(b, x);
        else if (!st) { /* a null item is a zero value in Go */
            const kl_value *zero = items->type == KL_S_STRUCT ? empty_object() : kl_value_of_str("");
            kl_build_value(b, zero);
            kl_value_unref(zero);
        }
        kl_value_unref(x);
    }
    kl_build_end(b);
    if (st || same) {
        kl_builder_free(b);
        if (!st)
            *out = kl_value_ref(in);
        return st;
    }
    *out = kl_builder_done(b);
    return KL_OK;
}

/* `text` (taken) as *out, shared with `in` when equal. */
static kl_status as_text(const kl_value *in, char *text, const kl_value **out)
{
    const char *have = kl_value_str(in);
    *out = have && !strcmp(have, text) ? kl_value_ref(in) : kl_value_of_str(text);
    kl_free(text);
    return KL_OK;
}

static kl_status walk_quantity(struct walk *w, const kl_value *in, const kl_value **out)
{
    const char *text = kl_value_str(in);
    char *printed = text ? NULL : kl_value_to_json(in);
    kl_quantity *q;
    kl_err why = KL_ERR_INIT;
    kl_status st = kl_quantity_parse(text ? text : printed, &q, &why);
    if (st)
        st = kl__fail_bad_request(w->err,
            "%s: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            kl_buf_str(&w->path));
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
    if (s->type == KL_S_MICROTIME && (!fraction || strspn(fraction + 1, "0123456789") != 6))
        return kl__fail_bad_request(w->err,
            "parsing time \"%s\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"%s\" as \".000000\"",
            text, fraction ? fraction : text + strlen(text) - (*text ? 1 : 0));
    kl_err why = KL_ERR_INIT;
    if (kl_time_parse(text, &sec, &nsec, &why)) {
        kl_err_fini(&why);
        return kl__fail_bad_request(w->err, "parsing time \"%s\" as \"%s\": cannot parse \"%s\" at %s", text,
            s->type == KL_S_TIME ? "2006-01-02T15:04:05Z07:00" : "2006-01-02T15:04:05.000000Z07:00", text,
            kl_buf_str(&w->path));
    }
    return as_text(in,
        kl_strdup(s->type == KL_S_TIME ? kl_time_format(sec, buf) : kl_time_format_micro(sec, nsec, buf)),
        out);
}

/* Go counts the bytes from 0. */
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
    /* wrong types in custom resources are told by validation */
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
    if (t == KL_NULL)
        return KL_OK;
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
        if (!kl_value_int(in, &whole))
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
            return kl__fail_bad_request(w->err,
                "json: cannot unmarshal %s into Go struct field %s of type int32", json_type(in),
                kl_buf_str(&w->path));
        break;
    case KL_S_QUANTITY:
        return t == KL_STRING || t == KL_INT || t == KL_DOUBLE || t == KL_UINT ? walk_quantity(w, in, out)
                                                                               : mismatch(w, s, in);
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
    struct walk w = {.fill = fill, .unknown = unknown, .err = err};
    kl_status st = walk(&w, s, in, out);
    kl_buf_fini(&w.path);
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
