/* proto_stream.c - objects out of a growing stream of protobuf, one at a time.
 *
 *   list:   "k8s\0" -> envelope: TypeMeta, then raw, whose length opens the list
 *                   -> list: metadata, item, item ... -> envelope -> end
 *   watch:  4 bytes of length, most significant first -> a WatchEvent of so many bytes -> again
 *
 * At the begin of each field its tag and length gather in `head`; then its bytes are decoded where they
 * lie, or, when the network cut them, gather in `part`. At most one object is held. A 200 that is not a list
 * is held whole and decoded at the end. */
#include "wire/proto_impl.h"

#include <stdio.h>
#include "base/mem.h"

#define HEAD_MAX (2 * KL__VARINT_MAX)
#define NAMED_BY ((size_t)4096) /* bytes of an object that is too big, within which its name stands */

typedef enum place { MAGIC, ENVELOPE, LIST, FRAME } place;
typedef enum body { NO_BODY, TYPE, META, ITEM, WHOLE, EVENT, SKIPPED } body;

struct kl__proto_stream {
    kl_stream_handler h;
    bool list;
    place place;
    uint64_t offset, part_at; /* bytes consumed; where the present field began */
    size_t objects;
    kl__proto d;
    const kl_value *before; /* the object before, which the next one resembles */

    char head[HEAD_MAX];
    size_t head_n;
    body body; /* the body that is being read, and its missing bytes */
    uint64_t body_left;
    uint64_t list_left; /* of the list */
    bool too_big;       /* the body is only read as far as its name */
    uint64_t rest;      /* the bytes of the body that are skipped then */
    kl_buf part;

    kl_buf api_version, kind; /* of the envelope, or of the event before */
    const kl__proto_msg *m;   /* of the objects */
    kl__front front;
    const kl_value *meta;  /* the list's */
    const kl_value *whole; /* the object that came instead of a list */
    bool raw;              /* the envelope had its content */
};

kl__proto_stream *kl__proto_stream_new(const kl_stream_handler *h, bool list)
{
    kl__proto_stream *s = kl_new(kl__proto_stream);
    s->h = *h;
    s->list = list;
    s->place = list ? MAGIC : FRAME;
    s->d.keep = h->keep;
    s->d.alone = true;
    s->d.many = list;
    s->d.json.alone = true;
    kl_buf_init(&s->part, s->h.max_object);
    return s;
}

void kl__proto_stream_free(kl__proto_stream *s)
{
    if (!s)
        return;
    kl__front_drop(&s->front);
    kl_value_unref(s->before);
    kl_value_unref(s->meta);
    kl_value_unref(s->whole);
    kl_buf_fini(&s->part);
    kl_buf_fini(&s->api_version);
    kl_buf_fini(&s->kind);
    kl__proto_fini(&s->d);
    kl_free(s);
}

bool kl__proto_stream_outdated(const kl__proto_stream *s) { return s->d.outdated; }

/* --- failures ----------------------------------------------------------------------------- */

static const char *noun(const kl__proto_stream *s) { return s->list ? "list" : "watch stream"; }

/* "list item 3 (default/web)" into out; p: what is known of the present object. */
static void describe(const kl__proto_stream *s, const char *p, size_t n, char *out, size_t size)
{
    const char *ns = NULL, *name = NULL;
    size_t nslen = 0, namelen = 0;
    if (s->list || kl__proto_frame_object(p, n, &p, &n))
        kl__proto_name(p, n, &ns, &nslen, &name, &namelen);
    int len = snprintf(out, size, s->list ? "list item %zu" : "watch event %zu", s->objects + 1);
    if (namelen && kl_utf8_valid(name, namelen) && (!nslen || kl_utf8_valid(ns, nslen)))
        snprintf(out + len, size - (size_t)len, " (%.*s%s%.*s)", (int)(nslen > 253 ? 253 : nslen),
            nslen ? ns : "", nslen ? "/" : "", (int)(namelen > 253 ? 253 : namelen), name);
}

static kl_status malformed(const kl__proto_stream *s, const char *wanted, kl_err *err)
{
    return kl_fail(err, KL_ESYNTAX, "the protobuf %s is malformed at byte %llu: %s is expected", noun(s),
        (unsigned long long)s->part_at, wanted);
}

static kl_status too_big(const kl__proto_stream *s, const char *p, size_t n, kl_err *err)
{
    char who[600];
    describe(s, p, n, who, sizeof who);
    return kl_fail(err, KL_ETOOBIG,
        "%s is larger than %zu bytes; raise --max-object-bytes or make the object smaller", who,
        s->h.max_object);
}

/* --- objects ------------------------------------------------------------------------------ */

static void remember(kl_buf *b, const char *s, size_t n)
{
    kl_buf_clear(b);
    (void)!kl_buf_add(b, s, n);
}

static bool is_remembered(const kl_buf *b, const char *s, size_t n)
{
    return b->len == n && (!n || !memcmp(b->data, s, n));
}

/* The last state of the object with these bytes: what the owner knows under its name, or else the object
 * before. */
static const kl_value *guide_of(kl__proto_stream *s, const char *p, size_t n)
{
    const char *ns, *name;
    size_t nslen, namelen;
    if (!s->h.known)
        return kl_value_ref(s->before);
    kl__proto_name(p, n, &ns, &nslen, &name, &namelen);
    const kl_value *known = namelen ? s->h.known(s->h.arg, ns, nslen, name, namelen) : NULL;
    return known ? known : kl_value_ref(s->before);
}

/* Hands over the object of a message. `type` is a watch's. */
static kl_status deliver(
    kl__proto_stream *s, const char *type, const kl__proto_msg *m, const char *p, size_t n, kl_err *err)
{
    const kl_value *guide = guide_of(s, p, n), *v = NULL;
    kl_status st = kl__proto_message(&s->d, m, p, n, guide, &s->front, &v, err);
    kl_value_unref(guide);
    if (st)
        return st;
    if (s->d.outdated) {
        kl_value_unref(v);
        return kl_fail(err, KL_ESYNTAX,
            "the server sends fields in protobuf that this version of kubelua does not know");
    }
    kl_value_unref(s->before);
    s->before = kl_value_ref(v);
    s->objects++;
    if (s->list ? !s->h.item : !s->h.event) {
        kl_value_unref(v);
        return KL_OK;
    }
    return s->list ? s->h.item(s->h.arg, v, err) : s->h.event(s->h.arg, type, v, err);
}

static kl_status about(const kl__proto_stream *s, kl_status st, const char *p, size_t n, kl_err *err)
{
    char who[600];
    if (st == KL_ESYNTAX) {
        describe(s, p, n, who, sizeof who);
        kl_err_prefix(err, "%s, which starts at byte %llu", who, (unsigned long long)s->part_at);
    }
    return st;
}

/* apiVersion and kind in front of objects: a list's as the caller wants them, a watch's as its JSON has
 * them. */
static void make_front(
    kl__proto_stream *s, const char *key0, const kl_value *value0, const char *key1, const kl_value *value1)
{
    kl__front_drop(&s->front);
    s->front = (kl__front){
        .key = {kl_value_of_str(key0), kl_value_of_str(key1)}, .value = {value0, value1}, .n = 2};
}

static kl_status event(kl__proto_stream *s, const char *p, size_t n, kl_err *err)
{
    char type[16] = "";
    const char *end = p + n, *object = NULL;
    size_t object_n = 0;
    kl__field f;
    kl__unknown u;
    while (p < end) {
        p = kl__field_next(p, end, &f);
        if (!p || (f.number <= 2 && f.wire != KL__WIRE_BYTES))
            return kl_fail(
                err, KL_ESYNTAX, "the protobuf has a malformed field where type and object belong");
        if (f.number == 1)
            snprintf(type, sizeof type, "%.*s", (int)(f.n < sizeof type ? f.n : sizeof type - 1), f.s);
        if (f.number != 2)
            continue;
        for (const char *q = f.s, *last = f.s + f.n; q < last;) {
            kl__field in;
            q = kl__field_next(q, last, &in);
            if (!q || (in.number == 1 && in.wire != KL__WIRE_BYTES))
                return kl_fail(err, KL_ESYNTAX, "the protobuf has a malformed object");
            if (in.number == 1) {
                object = in.s;
                object_n = in.n;
            }
        }
    }
    if (!*type || !object)
        return kl_fail(err, KL_ESYNTAX, "invalid event: it needs a type and an object");
    kl_status st = kl__unknown_read(object, object_n, &u, err);
    if (st)
        return st;
    if (!s->m || !is_remembered(&s->kind, u.kind, u.kind_n)
        || !is_remembered(&s->api_version, u.api_version, u.api_version_n)) {
        s->m = kl__proto_find(u.api_version, u.api_version_n, u.kind, u.kind_n);
        if (!s->m) {
            s->d.outdated = true;
            return kl_fail(err, KL_ESYNTAX, "the protobuf is of a kind without a table here: %.*s",
                (int)(u.kind_n < 80 ? u.kind_n : 80), u.kind ? u.kind : "");
        }
        remember(&s->kind, u.kind, u.kind_n);
        remember(&s->api_version, u.api_version, u.api_version_n);
        make_front(s, "kind", kl_value_of_strn(u.kind, u.kind_n), "apiVersion",
            kl_value_of_strn(u.api_version, u.api_version_n));
    }
    s->d.keep = strcmp(type, "ERROR") ? s->h.keep : kl_projection_of_errors(s->h.keep);
    st = deliver(s, type, s->m, u.raw ? u.raw : "", u.raw_n, err);
    s->d.keep = s->h.keep;
    return st;
}

/* --- fields ------------------------------------------------------------------------------- */

/* Takes the first bytes of an object that is too large. */
static kl_status skip(kl__proto_stream *s, const char *p, size_t n, kl_err *err)
{
    kl_stream_skipped x = {.type = ""};
    const char *from = p, *end = p + n, *object = p;
    char type[16] = "";
    size_t object_n = n;
    kl__field f;
    kl_err story = KL_ERR_INIT;
    if (s->list || kl__proto_frame_object(p, n, &object, &object_n))
        kl__proto_name(object, object_n, &x.ns, &x.nslen, &x.name, &x.namelen);
    if (!s->list && kl__field_next(from, end, &f) && f.number == 1 && f.wire == KL__WIRE_BYTES)
        snprintf(type, sizeof type, "%.*s", (int)(f.n < sizeof type ? f.n : sizeof type - 1), f.s);
    if (!s->h.skipped || !x.namelen || !strcmp(type, "ERROR"))
        return too_big(s, p, n, err);
    (void)too_big(s, p, n, &story);
    x.type = type;
    x.message = story.message;
    s->objects++;
    kl_status st = s->h.skipped(s->h.arg, &x, err);
    kl_err_fini(&story);
    return st;
}

/* Takes a complete body. */
static kl_status take(kl__proto_stream *s, const char *p, size_t n, kl_err *err)
{
    kl__unknown u = {0};
    kl_status st;
    switch (s->body) {
    case TYPE:
        if (kl__unknown_type(p, n, &u))
            return malformed(s, "a TypeMeta", err);
        remember(&s->api_version, u.api_version, u.api_version_n);
        remember(&s->kind, u.kind, u.kind_n);
        return KL_OK;
    case META: /* cuts apply only to items */
        kl_value_unref(s->meta);
        s->meta = NULL;
        s->d.keep = NULL;
        st = kl__proto_message(
            &s->d, &kl__proto_msgs[kl__proto_count.list_meta], p, n, NULL, NULL, &s->meta, err);
        s->d.keep = s->h.keep;
        return st ? kl_err_prefix(err, "the list's metadata") : st;
    case ITEM:
        return s->too_big ? skip(s, p, n, err) : about(s, deliver(s, NULL, s->m, p, n, err), p, n, err);
    case EVENT: return s->too_big ? skip(s, p, n, err) : about(s, event(s, p, n, err), p, n, err);
    case WHOLE:
        u = (kl__unknown){
            kl_buf_str(&s->api_version), kl_buf_str(&s->kind), p, s->api_version.len, s->kind.len, n};
        s->d.keep = NULL;
        return kl__unknown_decode(&s->d, &u, NULL, &s->whole, err);
    default: return KL_OK;
    }
}

static void begin(kl__proto_stream *s, body what, uint64_t n)
{
    s->body = what;
    s->body_left = n;
    s->too_big = (what == ITEM || what == EVENT) && n > s->h.max_object;
    size_t named_by = s->h.max_object < NAMED_BY ? s->h.max_object : NAMED_BY;
    if (s->too_big)
        s->body_left = named_by;
    s->rest = n - s->body_left;
}

/* Begins raw: a list of a kind that has a table, or another object. */
static kl_status open_raw(kl__proto_stream *s, uint64_t n)
{
    const char *kind = kl_buf_str(&s->kind);
    size_t kn = s->kind.len;
    s->raw = true;
    s->m = kn > 4 && !memcmp(kind + kn - 4, "List", 4)
        ? kl__proto_find(kl_buf_str(&s->api_version), s->api_version.len, kind, kn - 4)
        : NULL;
    if (!s->m) {
        begin(s, WHOLE, n);
        return KL_OK;
    }
    if (kl__proto_items_typed(kind, kn))
        make_front(s, "kind", kl_value_of_strn(kind, kn - 4), "apiVersion",
            kl_value_of_strn(kl_buf_str(&s->api_version), s->api_version.len));
    else if (s->h.api_version && s->h.kind)
        make_front(s, "apiVersion", kl_value_of_str(s->h.api_version), "kind", kl_value_of_str(s->h.kind));
    s->place = LIST;
    s->list_left = n;
    return KL_OK;
}

/* Whether head holds a whole tag, with the length or number behind it. */
static kl_status head_ready(kl__proto_stream *s, bool *ready, kl_err *err)
{
    uint64_t tag, num = 0;
    const char *end = s->head + s->head_n, *p = kl__varint(s->head, end, &tag);
    unsigned wire = tag & 7;
    *ready = false;
    if (!p)
        return s->head_n < KL__VARINT_MAX ? KL_OK : malformed(s, "a field's tag", err);
    if (wire == KL__WIRE_FIXED64 || wire == KL__WIRE_FIXED32)
        num = wire == KL__WIRE_FIXED64 ? 8 : 4;
    else if (wire != KL__WIRE_VARINT && wire != KL__WIRE_BYTES)
        return malformed(s, "a field's tag", err);
    else if (!kl__varint(p, end, &num))
        return s->head_n < HEAD_MAX && end - p < KL__VARINT_MAX ? KL_OK
                                                                : malformed(s, "a field's length", err);
    *ready = true;
    s->head_n = 0;
    uint64_t number = tag >> 3;
    if (wire == KL__WIRE_VARINT)
        return KL_OK;
    if (s->place == LIST && num > s->list_left)
        return malformed(s, "a field that ends inside the list", err);
    if (wire != KL__WIRE_BYTES || number == 0 || number > 3 - (s->place == LIST))
        begin(s, SKIPPED, num);
    else if (s->place == LIST)
        begin(s, number == 1 ? META : ITEM, num);
    else if (number == 1)
        begin(s, TYPE, num);
    else if (number == 2)
        return open_raw(s, num);
    else if (num)
        return malformed(s, "content that is not encoded", err);
    if (s->body != ITEM && s->body != SKIPPED && num > s->h.max_object)
        return kl_fail(err, KL_ETOOBIG,
            "the list's envelope (all but its items) is larger than %zu bytes; raise --max-object-bytes",
            s->h.max_object);
    return KL_OK;
}

static void ate(kl__proto_stream *s, const char **p, size_t n)
{
    *p += n;
    s->offset += n;
    if (s->place == LIST)
        s->list_left -= n;
}

static kl_status in_body(kl__proto_stream *s, const char **p, const char *end, kl_err *err)
{
    size_t there = (size_t)(end - *p), n = there < s->body_left ? there : (size_t)s->body_left;
    const char *from = *p;
    bool whole = n == s->body_left;
    kl_status st = KL_OK;
    if (s->body != SKIPPED && (s->part.len || !whole) && kl_buf_add(&s->part, from, n))
        return too_big(s, kl_buf_str(&s->part), s->part.len, err);
    if (whole)
        st = s->part.len ? take(s, s->part.data, s->part.len, err) : take(s, from, n, err);
    s->body_left -= n;
    ate(s, p, n);
    if (whole) {
        s->body = s->rest ? SKIPPED : NO_BODY;
        s->body_left = s->rest;
        s->rest = 0;
        kl_buf_clear(&s->part);
    }
    return st;
}

static kl_status in_head(kl__proto_stream *s, const char **p, kl_err *err)
{
    static const char magic[4] = {'k', '8', 's', '\0'};
    bool ready;
    if (!s->head_n)
        s->part_at = s->offset;
    s->head[s->head_n++] = **p;
    ate(s, p, 1);
    if (s->place == MAGIC) {
        if (s->head[s->head_n - 1] != magic[s->head_n - 1])
            return malformed(s, "\"k8s\" and a zero byte", err);
        if (s->head_n < sizeof magic)
            return KL_OK;
        s->head_n = 0;
        s->place = ENVELOPE;
        return KL_OK;
    }
    if (s->place == FRAME) {
        uint64_t n = 0;
        if (s->head_n < 4)
            return KL_OK;
        for (size_t i = 0; i < 4; i++)
            n = n << 8 | (unsigned char)s->head[i];
        s->head_n = 0;
        begin(s, EVENT, n);
        return KL_OK;
    }
    return head_ready(s, &ready, err);
}

kl_status kl__proto_stream_feed(kl__proto_stream *s, const char *data, size_t n, kl_err *err)
{
    const char *p = data, *end = data + n;
    kl_status st = KL_OK;
    while (!st && p < end) {
        if (s->place == LIST && !s->list_left && !s->head_n && s->body == NO_BODY)
            s->place = ENVELOPE;
        if (s->place == LIST && !s->list_left && s->body == NO_BODY)
            return malformed(s, "a field that ends inside the list", err);
        st = s->body != NO_BODY ? in_body(s, &p, end, err) : in_head(s, &p, err);
        if (!st && s->body != NO_BODY && !s->body_left) { /* an empty body */
            st = take(s, "", 0, err);
            s->body = NO_BODY;
        }
    }
    return st;
}

static const kl_value *list_envelope(const kl__proto_stream *s)
{
    kl_builder *b = kl_builder_new();
    const kl_value *kind = kl_value_of_strn(kl_buf_str(&s->kind), s->kind.len),
                   *api_version = kl_value_of_strn(kl_buf_str(&s->api_version), s->api_version.len);
    kl_build_object(b);
    kl_build_kvalue(b, "kind", kind);
    kl_build_kvalue(b, "apiVersion", api_version);
    kl_build_key(b, "metadata");
    kl_build_value(b, s->meta ? s->meta : KL__EMPTY_OBJECT);
    kl_build_end(b);
    kl_value_unref(kind);
    kl_value_unref(api_version);
    return kl_builder_done(b);
}

kl_status kl__proto_stream_finish(kl__proto_stream *s, const kl_value **envelope, kl_err *err)
{
    char who[600];
    if (s->body == ITEM || s->body == EVENT || (!s->list && s->head_n)) {
        describe(s, kl_buf_str(&s->part), s->part.len, who, sizeof who);
        return kl_fail(err, KL_ESYNTAX, "the %s is truncated at byte %llu, inside %s", noun(s),
            (unsigned long long)s->offset, who);
    }
    if (!s->list)
        return KL_OK;
    if (s->body != NO_BODY || s->head_n || s->place == MAGIC || !s->raw || (s->place == LIST && s->list_left))
        return kl_fail(err, KL_ESYNTAX, "the list is truncated at byte %llu, after %zu items",
            (unsigned long long)s->offset, s->objects);
    *envelope = s->m ? list_envelope(s) : kl_value_ref(s->whole);
    return KL_OK;
}
