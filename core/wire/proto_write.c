/* proto_write.c - values of the built-in kinds as protobuf messages: the decoder's tables, read the other
 * way.
 *
 * Bytes are those that Go's generated code writes: fields in the order of their numbers; what is not a
 * pointer, list or map is there even when it is zero. A message is written behind one byte for its length; a
 * longer length moves it. What a table does not have is left out, as Go's structs leave it out. */
#include "wire/proto_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include "base/base64.h"
#include "base/mem.h"

typedef struct writer {
    kl_buf *out;
    const char *wanted; /* what the first wrong value should be, or NULL */
    const kl_value *got;
    char path[200]; /* of that value */
} writer;

static bool message(writer *w, const kl__proto_msg *m, const kl_value *v, size_t depth);

/* --- bytes -------------------------------------------------------------------------------- */

static size_t varint_bytes(uint64_t v, char out[KL__VARINT_MAX])
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        out[n++] = (char)(v | 0x80);
    out[n++] = (char)v;
    return n;
}

static void put_varint(kl_buf *out, uint64_t v)
{
    char bytes[KL__VARINT_MAX];
    kl_buf_add(out, bytes, varint_bytes(v, bytes));
}

static void put_number(kl_buf *out, uint32_t field, uint64_t v)
{
    put_varint(out, (uint64_t)field << 3 | KL__WIRE_VARINT);
    put_varint(out, v);
}

static void put_bytes(kl_buf *out, uint32_t field, const char *s, size_t n)
{
    put_varint(out, (uint64_t)field << 3 | KL__WIRE_BYTES);
    put_varint(out, n);
    kl_buf_add(out, s, n);
}

/* Begins a field whose length is written at its end. Returns where its content begins. */
static size_t begin(kl_buf *out, uint32_t field)
{
    put_varint(out, (uint64_t)field << 3 | KL__WIRE_BYTES);
    kl_buf_putc(out, 0);
    return out->len;
}

static void end(kl_buf *out, size_t from)
{
    char bytes[KL__VARINT_MAX];
    size_t n = out->len - from, len = varint_bytes(n, bytes);
    if (kl_buf_status(out) || !kl_buf_reserve(out, len - 1))
        return;
    memmove(out->data + from + len - 1, out->data + from, n + 1);
    memcpy(out->data + from - 1, bytes, len);
    out->len += len - 1;
}

/* --- values ------------------------------------------------------------------------------- */

/* Records a wrong value. Always false. */
static bool is_not(writer *w, const char *wanted, const kl_value *got)
{
    w->wanted = wanted;
    w->got = got;
    return false;
}

static bool inside(writer *w, const char *name, size_t n)
{
    char rest[sizeof w->path];
    memcpy(rest, w->path, sizeof rest);
    rest[sizeof rest - 82] = '\0';
    snprintf(w->path, sizeof w->path, "%.*s%s%s", (int)(n < 80 ? n : 80), name, *rest ? "." : "", rest);
    return false;
}

static bool text_of(writer *w, const kl_value *v, const char **s, size_t *n)
{
    *s = kl_value_strn(v, n);
    return *s || is_not(w, "a string", v);
}

static bool absent(const kl_value *v) { return kl_value_type(v) == KL_NULL; }

static bool put_time(writer *w, kl__proto_what what, const kl_value *v)
{
    int64_t second;
    int32_t nano;
    const char *text = kl_value_str(v);
    if (absent(v))
        return true;
    if (!text
        || (what == KL__PROTO_TIME ? kl_time_parse(text, &second, &nano, NULL)
                                   : kl_time_parse_micro(text, &second, &nano, NULL)))
        return is_not(w, "a time", v);
    if (second == KL_TIME_ZERO_SEC && !nano)
        return true;
    put_number(w->out, 1, (uint64_t)second);
    put_number(w->out, 2, what == KL__PROTO_TIME ? 0 : (uint64_t)nano);
    return true;
}

static bool put_duration(writer *w, const kl_value *v)
{
    kl_time d = 0;
    const char *text = kl_value_str(v);
    if (!absent(v) && (!text || kl_duration_parse(text, &d, NULL)))
        return is_not(w, "a duration", v);
    put_number(w->out, 1, (uint64_t)d);
    return true;
}

/* Writes a quantity; a number counts as one. */
static bool put_quantity(writer *w, const kl_value *v)
{
    size_t n;
    const char *s = kl_value_strn(v, &n);
    kl_type t = kl_value_type(v);
    if (s)
        put_bytes(w->out, 1, s, n);
    else if (t == KL_NULL)
        put_bytes(w->out, 1, "0", 1);
    else if (t == KL_INT || t == KL_UINT || t == KL_DOUBLE) {
        char *text = kl_value_to_json(v);
        put_bytes(w->out, 1, text, strlen(text));
        kl_free(text);
    } else
        return is_not(w, "a quantity", v);
    return true;
}

static bool put_int_or_string(writer *w, const kl_value *v)
{
    size_t n = 0;
    int64_t number = 0;
    const char *s = kl_value_strn(v, &n);
    if (!s && !absent(v) && !kl_value_int(v, &number))
        return is_not(w, "an integer or a string", v);
    put_number(w->out, 1, s != NULL);
    put_number(w->out, 2, (uint64_t)number);
    put_bytes(w->out, 3, s ? s : "", n);
    return true;
}

static void put_json(writer *w, const kl_value *v)
{
    if (absent(v))
        return;
    size_t at = begin(w->out, 1);
    kl_value_encode(v, w->out);
    end(w->out, at);
}

static bool put_strings(writer *w, const kl_value *v)
{
    if (!absent(v) && kl_value_type(v) != KL_ARRAY)
        return is_not(w, "a list", v);
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *s;
        size_t n;
        if (!text_of(w, kl_value_item(v, i), &s, &n))
            return false;
        put_bytes(w->out, 1, s, n);
    }
    return true;
}

static bool put_base64(writer *w, const kl_value *v)
{
    size_t n = 0;
    const char *s = kl_value_strn(v, &n);
    if (!absent(v) && (!s || kl_base64_decode(s, n, w->out, NULL)))
        return is_not(w, "bytes in base64", v);
    return true;
}

/* Writes the content of a field, between its length and its end. */
static bool content(writer *w, const kl__proto_slot *s, const kl_value *v, size_t depth)
{
    switch (s->what) {
    case KL__PROTO_MESSAGE: return message(w, &kl__proto_msgs[s->msg], v, depth + 1);
    case KL__PROTO_TIME:
    case KL__PROTO_MICROTIME: return put_time(w, s->what, v);
    case KL__PROTO_DURATION: return put_duration(w, v);
    case KL__PROTO_QUANTITY: return put_quantity(w, v);
    case KL__PROTO_INTORSTR: return put_int_or_string(w, v);
    case KL__PROTO_STRINGS: return put_strings(w, v);
    case KL__PROTO_BYTES: return put_base64(w, v);
    default: /* KL__PROTO_RAW */ put_json(w, v); return true;
    }
}

/* Writes one value; an absent one is written as zero. */
static bool one(writer *w, const kl__proto_slot *s, uint32_t field, const kl_value *v, size_t depth)
{
    int64_t number = 0;
    const char *text = "";
    size_t n = 0;
    switch (s->what) {
    case KL__PROTO_STRING:
        if (!absent(v) && !text_of(w, v, &text, &n))
            return false;
        put_bytes(w->out, field, text, n);
        return true;
    case KL__PROTO_BOOL:
        if (!absent(v) && kl_value_type(v) != KL_BOOL)
            return is_not(w, "a boolean", v);
        put_number(w->out, field, kl_value_bool(v, false));
        return true;
    case KL__PROTO_INT:
        if (!absent(v) && !kl_value_int(v, &number))
            return is_not(w, "an integer", v);
        put_number(w->out, field, (uint64_t)number);
        return true;
    default: break;
    }
    size_t at = begin(w->out, field);
    bool ok = content(w, s, v, depth);
    end(w->out, at);
    return ok;
}

static bool list(writer *w, const kl__proto_slot *s, uint32_t field, const kl_value *v, size_t depth)
{
    if (kl_value_type(v) != KL_ARRAY)
        return is_not(w, "a list", v);
    for (size_t i = 0; i < kl_value_len(v); i++)
        if (!one(w, s, field, kl_value_item(v, i), depth))
            return false;
    return true;
}

typedef struct entry {
    const char *key;
    size_t n;
    const kl_value *value;
} entry;

static int by_key(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int c = memcmp(x->key, y->key, x->n < y->n ? x->n : y->n);
    return c ? c : (x->n > y->n) - (x->n < y->n);
}

static bool map(writer *w, const kl__proto_slot *s, uint32_t field, const kl_value *v, size_t depth)
{
    size_t n = kl_value_len(v);
    bool ok = true;
    if (kl_value_type(v) != KL_OBJECT)
        return is_not(w, "a map", v);
    entry *e = kl_zalloc_array(sizeof *e, n + 1);
    for (size_t i = 0; i < n; i++)
        e[i].value = kl_value_member(v, i, &e[i].key, &e[i].n);
    qsort(e, n, sizeof *e, by_key);
    for (size_t i = 0; i < n && ok; i++) {
        size_t at = begin(w->out, field);
        put_bytes(w->out, 1, e[i].key, e[i].n);
        ok = one(w, s, 2, e[i].value, depth) || inside(w, e[i].key, e[i].n);
        end(w->out, at);
    }
    kl_free(e);
    return ok;
}

static bool slot(writer *w, const kl__proto_slot *s, uint32_t field, const kl_value *object, size_t depth)
{
    const char *name = kl__proto_names[s->name];
    const kl_value *v = kl_value_get(object, name);
    bool ok,
        none = s->flags & (KL__PROTO_POINTER | KL__PROTO_REPEATED | KL__PROTO_MAP)
        || s->what == KL__PROTO_BYTES || s->what == KL__PROTO_STRINGS;
    if (s->what == KL__PROTO_CONST || (none && absent(v)))
        return true;
    if (s->flags & KL__PROTO_REPEATED)
        ok = list(w, s, field, v, depth);
    else if (s->flags & KL__PROTO_MAP)
        ok = map(w, s, field, v, depth);
    else
        ok = one(w, s, field, v, depth);
    return ok || inside(w, name, strlen(name));
}

/* --- messages ----------------------------------------------------------------------------- */

static bool message(writer *w, const kl__proto_msg *m, const kl_value *v, size_t depth)
{
    if ((!absent(v) && kl_value_type(v) != KL_OBJECT) || depth > KL_VALUE_DEPTH_MAX)
        return is_not(w, "an object", v);
    for (uint32_t field = 1; field <= m->wires; field++) {
        unsigned place = kl__proto_wire[m->wire + field - 1];
        bool ok = true;
        if (place >= KL__PROTO_INLINES) {
            const kl__proto_inline *in = &kl__proto_inlines[m->inlines + place - KL__PROTO_INLINES];
            size_t at = begin(w->out, field);
            ok = message(w, &kl__proto_msgs[in->msg], v, depth + 1);
            end(w->out, at);
        } else if (place)
            ok = slot(w, &kl__proto_slots[m->slots + place - 1], field, v, depth);
        if (!ok)
            return false;
    }
    return true;
}

static kl_status written(writer *w, bool ok, kl_err *err)
{
    if (!ok)
        return kl_fail(err, KL_EINVAL, "%s is %s, but its protobuf needs %s", w->path,
            kl_value_type_name(w->got), w->wanted);
    kl_status st = kl_buf_status(w->out);
    return st ? kl_fail(err, st, "the protobuf is too large") : KL_OK;
}

static kl_status put_message(
    const kl__proto_msg *m, uint32_t field, const kl_value *v, kl_buf *out, kl_err *err)
{
    writer w = {.out = out};
    size_t at = begin(out, field);
    bool ok = message(&w, m, v, 1);
    end(out, at);
    return written(&w, ok, err);
}

/* --- what stands around an object --------------------------------------------------------- */

static const char magic[4] = {'k', '8', 's', '\0'};

static void envelope_head(const char *api_version, const char *kind, kl_buf *out)
{
    kl_buf_add(out, magic, sizeof magic);
    size_t at = begin(out, 1);
    put_bytes(out, 1, api_version, strlen(api_version));
    put_bytes(out, 2, kind, strlen(kind));
    end(out, at);
}

/* Ends the envelope: no content encoding, no content type. */
static void envelope_tail(kl_buf *out)
{
    put_bytes(out, 3, "", 0);
    put_bytes(out, 4, "", 0);
}

kl_status kl_proto_write(
    const char *api_version, const char *kind, const kl_value *v, kl_buf *out, kl_err *err)
{
    const kl__proto_msg *m = kl__proto_find(api_version, strlen(api_version), kind, strlen(kind));
    if (!m)
        return kl_fail(err, KL_EINVAL, "%s %s has no protobuf here", api_version, kind);
    envelope_head(api_version, kind, out);
    kl_status st = put_message(m, 2, v, out, err);
    envelope_tail(out);
    return st;
}

kl_status kl_proto_write_item(
    const char *api_version, const char *kind, const kl_value *v, kl_buf *items, kl_err *err)
{
    const kl__proto_msg *m = kl__proto_find(api_version, strlen(api_version), kind, strlen(kind));
    return m ? put_message(m, 2, v, items, err)
             : kl_fail(err, KL_EINVAL, "%s %s has no protobuf here", api_version, kind);
}

kl_status kl_proto_write_list(const char *api_version, const char *list_kind, const kl_value *metadata,
    const kl_buf *items, kl_buf *out, kl_err *err)
{
    envelope_head(api_version, list_kind, out);
    size_t at = begin(out, 2);
    kl_status st = put_message(&kl__proto_msgs[kl__proto_count.list_meta], 1, metadata, out, err);
    kl_buf_add(out, kl_buf_str(items), items->len);
    end(out, at);
    envelope_tail(out);
    return st;
}

kl_status kl_proto_write_event(const char *type, const kl_buf *object, kl_buf *out)
{
    size_t at = out->len + 4;
    kl_buf_add(out, "\0\0\0\0", 4);
    put_bytes(out, 1, type, strlen(type));
    size_t raw = begin(out, 2);
    put_bytes(out, 1, kl_buf_str(object), object->len);
    end(out, raw);
    if (kl_buf_status(out))
        return KL_ETOOBIG;
    for (size_t i = 0, n = out->len - at; i < 4; i++)
        out->data[at - 4 + i] = (char)(n >> (24 - 8 * i));
    return KL_OK;
}
