/* stream.c - objects out of a growing stream of bytes, one at a time.
 *
 * A scanner that knows brackets, quotes and escapes, and nothing else, finds where each object ends; only
 * then the decoder sees it. At most one object is held, in `part`, and only if the network cut it: a piece
 * of input that holds a whole object is decoded where it lies.
 *
 *   list:   before --{--> envelope --"items": [--> between --{--> object --}--> between --]--> envelope --}--> after
 *   watch:  between --{--> object --}--> between
 *
 * The envelope's own bytes gather in `envelope`, with the items left out, and are decoded at the end. */
#include "wire/stream.h"

#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "value/decode.h"
#include "wire/proto_impl.h"
#include "value/scan.h"

typedef enum place { BEFORE, ENVELOPE, BETWEEN, OBJECT, AFTER } place;

struct kl_stream {
    kl_stream_handler h;
    bool list;
    place place;
    bool failed;
    kl_err why;      /* of the failure; every later call repeats it */
    uint64_t offset; /* bytes before the present piece */
    size_t objects;  /* delivered */

    /* when the bytes are protobuf, the rest is idle; it borrows the handler's projection */
    kl__proto_stream *proto;
    kl__decoder decoder;
    const kl_value *before; /* the object before, which the next one resembles */
    size_t size_before;

    kl__brackets in; /* where we are in the object, or in the envelope */

    kl_buf part;      /* the beginning of the present object, from earlier pieces */
    bool skipping;    /* the present object is too large: `part` has what tells its name */
    uint64_t part_at; /* where the present object began */

    kl_buf envelope;
    kl_buf key;    /* the envelope's key that is being read */
    bool key_next; /* the next string is a key of the envelope */
    bool in_key;
    bool items_key;   /* the last key was "items": its colon comes */
    bool items_value; /* then its value comes */
    bool need_comma;  /* between items: one was delivered since the last comma */
    bool after_comma;
};

static kl_stream *stream_new(const kl_stream_handler *h, bool list)
{
    kl_stream *s = kl_new(kl_stream);
    s->h = *h;
    s->list = list;
    s->place = list ? BEFORE : BETWEEN;
    if (!s->h.max_object || s->h.max_object > KL_BUF_MAX)
        s->h.max_object = KL_BUF_MAX;
    kl_projection *keep = h->keep ? kl_projection_ref(h->keep)
        : h->drop_managed_fields  ? kl_projection_without_managed_fields()
                                  : NULL;
    s->h.keep = keep;
    s->decoder.keep = keep;
    s->decoder.alone = true;
    if (list && h->api_version && h->kind) {
        s->decoder.fill[0] = kl_value_of_str(h->api_version);
        s->decoder.fill[1] = kl_value_of_str(h->kind);
    }
    s->proto = h->protobuf ? kl__proto_stream_new(&s->h, list) : NULL;
    kl_buf_init(&s->part, s->h.max_object);
    kl_buf_init(&s->envelope, s->h.max_object);
    kl_buf_init(&s->key, 64);
    return s;
}

kl_stream *kl_stream_list_new(const kl_stream_handler *h) { return stream_new(h, true); }

kl_stream *kl_stream_watch_new(const kl_stream_handler *h) { return stream_new(h, false); }

void kl_stream_free(kl_stream *s)
{
    if (!s)
        return;
    kl__proto_stream_free(s->proto);
    kl_buf_fini(&s->part);
    kl_buf_fini(&s->envelope);
    kl_buf_fini(&s->key);
    kl_err_fini(&s->why);
    kl_value_unref(s->before);
    kl_value_unref(s->decoder.fill[0]);
    kl_value_unref(s->decoder.fill[1]);
    kl__decoder_fini(&s->decoder);
    kl_projection_unref(s->h.keep);
    kl_free(s);
}

/* --- naming an object by its first bytes -------------------------------------------------- */

typedef struct text {
    const char *p;
    size_t n;
} text;

/* Reads metadata.name and metadata.namespace out of JSON that may be cut anywhere. `level` is the depth of
 * metadata's key. */
static void find_name(const char *p, size_t n, size_t level, text *ns, text *name)
{
    const char *end = p + n;
    size_t depth = 0;
    bool in_metadata = false;
    text key = {NULL, 0};
    for (; p < end; p++) {
        if (*p == '{' || *p == '[') {
            if (++depth == level + 1)
                in_metadata = key.n == 8 && !memcmp(key.p, "metadata", 8) && *p == '{';
            key.n = 0;
        } else if (*p == '}' || *p == ']') {
            if (depth-- == level + 1)
                in_metadata = false;
        } else if (*p == '"') {
            const char *from = ++p;
            while (p < end && *p != '"')
                p += *p == '\\' && end - p > 1 ? 2 : 1;
            if (p >= end)
                return;
            text word = {from, (size_t)(p - from)};
            const char *q = p + 1;
            while (q < end && (*q == ' ' || *q == '\n' || *q == '\t' || *q == '\r'))
                q++;
            if (q < end && *q == ':') {
                key = word;
                p = q;
            } else if (in_metadata && depth == level + 1) {
                if (key.n == 4 && !memcmp(key.p, "name", 4))
                    *name = word;
                else if (key.n == 9 && !memcmp(key.p, "namespace", 9))
                    *ns = word;
            }
        }
    }
}

/* "list item 3 (default/web)" into out. */
static void describe(const kl_stream *s, const char *p, size_t n, char *out, size_t size)
{
    text ns = {"", 0}, name = {"", 0};
    find_name(p, n, s->list ? 1 : 2, &ns, &name);
    int len = snprintf(out, size, s->list ? "list item %zu" : "watch event %zu", s->objects + 1);
    if (name.n)
        snprintf(out + len, size - (size_t)len, " (%.*s%s%.*s)", (int)(ns.n > 253 ? 253 : ns.n), ns.p,
            ns.n ? "/" : "", (int)(name.n > 253 ? 253 : name.n), name.p);
    else if (ns.n)
        snprintf(out + len, size - (size_t)len, " (in namespace %.*s)", (int)(ns.n > 253 ? 253 : ns.n), ns.p);
}

/* --- failures ----------------------------------------------------------------------------- */

/* Fails the stream with err; from now on it only repeats that. */
static kl_status give_up(kl_stream *s, kl_status st, kl_err *err)
{
    s->failed = true;
    kl_err_copy(&s->why, err);
    s->why.status = st;
    kl_buf_fini(&s->part);
    kl_buf_fini(&s->envelope);
    return st;
}

static kl_status unexpected(
    kl_stream *s, const char *p, size_t n, uint64_t at, const char *wanted, kl_err *err)
{
    char shown[41];
    size_t len = n < sizeof shown - 1 ? n : sizeof shown - 1;
    for (size_t i = 0; i < len; i++)
        shown[i] = p[i] >= ' ' && p[i] < 0x7f ? p[i] : '.';
    shown[len] = '\0';
    return kl_fail(err, KL_ESYNTAX, "the %s is malformed at byte %llu: `%s` where %s is expected",
        s->list ? "list" : "watch stream", (unsigned long long)at, shown, wanted);
}

/* Fails for an object that is too large; `p` has its first bytes. */
static kl_status too_big(kl_stream *s, const char *p, size_t n, kl_err *err)
{
    char who[600];
    describe(s, p, n, who, sizeof who);
    return kl_fail(err, KL_ETOOBIG,
        "%s is larger than %zu bytes; raise --max-object-bytes or make the object smaller", who,
        s->h.max_object);
}

/* --- objects ------------------------------------------------------------------------------ */

/* Hands over an object (its reference), which becomes the guide of the next. */
static kl_status hand_over(kl_stream *s, const char *type, const kl_value *object, size_t size, kl_err *err)
{
    kl_value_unref(s->before);
    s->before = kl_value_ref(object);
    s->size_before = size;
    s->objects++;
    if (s->list ? !s->h.item : !s->h.event) {
        kl_value_unref(object);
        return KL_OK;
    }
    return s->list ? s->h.item(s->h.arg, object, err) : s->h.event(s->h.arg, type, object, err);
}

static kl_status deliver_frame(kl_stream *s, const kl_value *frame, const char *p, size_t size, kl_err *err);

/* Decodes an error's Status again, whole: it was cut like one of the objects. */
static kl_status again_whole(kl_stream *s, const char *p, size_t size, kl_err *err)
{
    const kl_value *frame;
    s->decoder.keep = kl_projection_of_errors(s->h.keep);
    kl_status st = kl__decode(&s->decoder, p, size, NULL, &frame, err);
    if (!st) {
        st = deliver_frame(s, frame, p, size, err);
        kl_value_unref(frame);
    }
    s->decoder.keep = s->h.keep;
    return st;
}

static kl_status deliver_frame(kl_stream *s, const kl_value *frame, const char *p, size_t size, kl_err *err)
{
    const char *type = kl_value_str(kl_value_get(frame, "type"));
    const kl_value *object = kl_value_get(frame, "object");
    if (type && !strcmp(type, "ERROR") && s->decoder.keep != kl_projection_of_errors(s->h.keep))
        return again_whole(s, p, size, err);
    if (!type || kl_value_type(object) != KL_OBJECT)
        return kl_fail(err, KL_ESYNTAX,
            "watch event %zu at byte %llu is invalid: it needs a string \"type\" and an object \"object\"",
            s->objects + 1, (unsigned long long)s->part_at);
    return hand_over(s, type, kl_value_ref(object), size, err);
}

#define TYPE_MAX 16
static const char frame_begin[] = "{\"type\":\"", frame_middle[] = "\",\"object\":";

/* Reads a frame as every API server writes it: {"type":"...","object":. Gives the type and where the object
 * begins, or NULL. */
static const char *frame_object(const char *p, size_t n, char type[TYPE_MAX])
{
    const char *end = p + n, *from = p + sizeof frame_begin - 1;
    if (n < sizeof frame_begin + TYPE_MAX + sizeof frame_middle
        || memcmp(p, frame_begin, sizeof frame_begin - 1))
        return NULL;
    for (p = from; *p >= 'A' && *p <= 'Z' && p - from < TYPE_MAX - 1;)
        p++;
    size_t len = (size_t)(p - from);
    memcpy(type, from, len);
    type[len] = '\0';
    if ((size_t)(end - p) < sizeof frame_middle || memcmp(p, frame_middle, sizeof frame_middle - 1))
        return NULL;
    p += sizeof frame_middle - 1;
    return *p == '{' ? p : NULL;
}

#define PEEK 512 /* bytes in which servers that write metadata in Go's order have name and namespace */

/* The last state of the object whose text begins here: what the owner knows under its name, or else the
 * object before. */
static const kl_value *guide_of(kl_stream *s, const char *p, size_t n)
{
    text ns = {NULL, 0}, name = {NULL, 0};
    if (!s->h.known)
        return kl_value_ref(s->before);
    find_name(p, n < PEEK ? n : PEEK, 1, &ns, &name);
    const kl_value *known = name.n ? s->h.known(s->h.arg, ns.p, ns.n, name.p, name.n) : NULL;
    return known ? known : kl_value_ref(s->before);
}

/* Decodes the object of a frame as servers write it, without the frame. False: it is no such frame, not
 * whole, or malformed. */
static bool quick_frame(
    kl_stream *s, const char *p, size_t n, size_t *used, char type[TYPE_MAX], const kl_value **object)
{
    const char *from = frame_object(p, n, type), *end = p + n;
    if (!from)
        return false;
    const kl_value *guide = guide_of(s, from, (size_t)(end - from));
    s->decoder.frame = false;
    s->decoder.guide = guide;
    s->decoder.keep = strcmp(type, "ERROR") ? s->h.keep : kl_projection_of_errors(s->h.keep);
    kl_status st = kl__decode(&s->decoder, from, (size_t)(end - from), used, object, NULL);
    s->decoder.keep = s->h.keep;
    s->decoder.guide = NULL;
    kl_value_unref(guide);
    if (st)
        return false;
    from += *used;
    if (from == end || *from != '}') {
        kl_value_unref(*object);
        *object = NULL;
        return false;
    }
    *used = (size_t)(from + 1 - p);
    return true;
}

/* `p` is what is known of an object that is too large. */
static kl_status skip(kl_stream *s, const char *p, size_t n, kl_err *err)
{
    text ns = {"", 0}, name = {"", 0};
    char type[TYPE_MAX] = "";
    kl_err story = KL_ERR_INIT;
    if (!s->list)
        (void)frame_object(p, n, type);
    if (!s->h.skipped || !strcmp(type, "ERROR"))
        return too_big(s, p, n, err);
    (void)too_big(s, p, n, &story);
    find_name(p, n, s->list ? 1 : 2, &ns, &name);
    s->objects++;
    kl_status st = s->h.skipped(s->h.arg,
        &(kl_stream_skipped){.type = type,
            .ns = ns.p,
            .name = name.p,
            .nslen = ns.n,
            .namelen = name.n,
            .message = story.message},
        err);
    kl_err_fini(&story);
    return st;
}

/* Decodes and hands over the text of one whole object. */
static kl_status deliver(kl_stream *s, const char *p, size_t n, kl_err *err)
{
    char who[600], type[TYPE_MAX];
    const kl_value *v = NULL;
    size_t used;
    if (n > s->h.max_object)
        return skip(s, p, n, err);
    if (!s->list && quick_frame(s, p, n, &used, type, &v) && used == n)
        return hand_over(s, type, v, n, err);
    kl_value_unref(v);
    const kl_value *guide = s->list ? guide_of(s, p, n) : NULL;
    s->decoder.frame = !s->list;
    s->decoder.guide = guide;
    kl_status st = kl__decode(&s->decoder, p, n, NULL, &v, err);
    s->decoder.guide = NULL;
    kl_value_unref(guide);
    if (st) {
        describe(s, p, n, who, sizeof who);
        kl_err_prefix(err, "%s, which starts at byte %llu", who, (unsigned long long)s->part_at);
        return st;
    }
    if (s->list)
        return hand_over(s, NULL, v, n, err);
    st = deliver_frame(s, v, p, n, err);
    kl_value_unref(v);
    return st;
}

/* Decodes an object that probably lies in this piece whole, without looking for its end first. *taken says
 * whether it did. */
static kl_status deliver_at_once(kl_stream *s, const char **at, const char *end, bool *taken, kl_err *err)
{
    size_t n = (size_t)(end - *at), used;
    char type[TYPE_MAX] = "";
    const kl_value *v;
    *taken = false;
    if (n < s->size_before - s->size_before / (s->list ? 8 : 2))
        return KL_OK;
    n = n > s->h.max_object ? s->h.max_object : n;
    if (s->list) {
        const kl_value *guide = guide_of(s, *at, n);
        s->decoder.guide = guide;
        *taken = !kl__decode(&s->decoder, *at, n, &used, &v, NULL);
        s->decoder.guide = NULL;
        kl_value_unref(guide);
    } else {
        *taken = quick_frame(s, *at, n, &used, type, &v);
    }
    if (!*taken)
        return KL_OK;
    *at += used;
    return hand_over(s, type, v, used, err);
}

/* Ends an object: the stream is ready for the next. */
static void object_done(kl_stream *s)
{
    kl_buf_clear(&s->part);
    s->skipping = false;
    s->place = BETWEEN;
    s->need_comma = true;
    s->after_comma = false;
}

/* Keeps a piece of the present object; of one that is too large, what fits is kept for its name. */
static kl_status gather(kl_stream *s, const char *from, size_t n, kl_err *err)
{
    size_t room = s->h.max_object - s->part.len;
    if (s->skipping)
        return KL_OK;
    s->skipping = n > room;
    kl_buf_add(&s->part, from, s->skipping ? room : n);
    return s->skipping && !s->h.skipped ? too_big(s, kl_buf_str(&s->part), s->part.len, err) : KL_OK;
}

static kl_status in_object(kl_stream *s, const char **at, const char *end, kl_err *err)
{
    bool whole;
    kl_status st;
    if (!s->in.depth) {
        bool taken;
        st = deliver_at_once(s, at, end, &taken, err);
        if (taken)
            object_done(s);
        if (taken || st)
            return st;
    }
    const char *from = *at;
    *at = kl__brackets_close(&s->in, from, end, &whole);
    size_t n = (size_t)(*at - from);
    st = s->part.len || !whole ? gather(s, from, n, err) : KL_OK;
    if (st || !whole)
        return st;
    if (s->skipping)
        st = skip(s, kl_buf_str(&s->part), s->part.len, err);
    else if (s->part.len)
        st = deliver(s, s->part.data, s->part.len, err);
    else
        st = deliver(s, from, n, err);
    object_done(s);
    return st;
}

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/* Reads between two items, or two frames. `*at` is no white space. */
static kl_status between(kl_stream *s, const char **at, const char *end, uint64_t offset, kl_err *err)
{
    char c = **at;
    if (s->list && s->need_comma && c == ',') {
        s->need_comma = false;
        s->after_comma = true;
        ++*at;
        return KL_OK;
    }
    if (s->list && c == ']' && !s->after_comma) {
        kl_buf_putc(&s->envelope, c);
        s->place = ENVELOPE;
        s->in = (kl__brackets){.depth = 1};
        ++*at;
        return KL_OK;
    }
    if (c == '{' && !(s->list && s->need_comma)) {
        s->place = OBJECT;
        s->in = (kl__brackets){0};
        s->part_at = offset;
        return KL_OK;
    }
    const char *wanted = !s->list ? "a watch event (a JSON object)"
        : s->need_comma           ? "',' or ']' after a list item"
                                  : "a list item (a JSON object)";
    return unexpected(s, *at, (size_t)(end - *at), offset, wanted, err);
}

/* --- the envelope of a list --------------------------------------------------------------- */

/* Whether the key is "items", which may be spelt with escapes. */
static bool key_is_items(const kl_stream *s)
{
    const kl_value *key = NULL;
    char quoted[72];
    if (s->key.failed || !s->key.len)
        return false;
    if (!memchr(s->key.data, '\\', s->key.len))
        return s->key.len == 5 && !memcmp(s->key.data, "items", 5);
    int n = snprintf(quoted, sizeof quoted, "\"%s\"", s->key.data);
    bool is = !kl_value_decode(quoted, (size_t)n, &key, NULL) && kl_value_len(key) == 5
        && !strcmp(kl_value_str(key), "items");
    kl_value_unref(key);
    return is;
}

static kl_status in_envelope(kl_stream *s, const char **at, kl_err *err)
{
    char c = *(*at)++;
    if (kl_buf_putc(&s->envelope, c))
        return kl_fail(err, KL_ETOOBIG,
            "the list's envelope (all but its items) is larger than %zu bytes; raise --max-object-bytes",
            s->h.max_object);
    if (s->in.in_string) {
        if (s->in.escaped) {
            s->in.escaped = false;
        } else if (c == '\\') {
            s->in.escaped = true;
        } else if (c == '"') {
            s->in.in_string = false;
            s->items_key = s->in_key && key_is_items(s);
            s->in_key = false;
            return KL_OK;
        }
        if (s->in_key)
            (void)!kl_buf_putc(&s->key, c); /* a key beyond 64 bytes fails, and is not "items" */
        return KL_OK;
    }
    if (is_space(c))
        return KL_OK;
    if (s->items_value && c == '[') {
        s->items_value = false;
        s->place = BETWEEN;
        s->need_comma = s->after_comma = false;
        return KL_OK;
    }
    s->items_value = s->items_key && c == ':';
    s->items_key = false;
    switch (c) {
    case '"':
        s->in.in_string = true;
        s->in_key = s->in.depth == 1 && s->key_next;
        s->key_next = false;
        kl_buf_clear(&s->key);
        break;
    case ',': s->key_next = s->in.depth == 1; break;
    case '{':
    case '[': s->in.depth++; break;
    case '}':
    case ']':
        if (!--s->in.depth)
            s->place = AFTER;
        break;
    default: break;
    }
    return KL_OK;
}

static kl_status piece(kl_stream *s, const char *data, size_t n, kl_err *err)
{
    const char *p = data, *end = data + n;
    kl_status st = KL_OK;
    while (!st && p < end) {
        uint64_t at = s->offset + (uint64_t)(p - data);
        switch (s->place) {
        case OBJECT: st = in_object(s, &p, end, err); break;
        case ENVELOPE: st = in_envelope(s, &p, err); break;
        default:
            if (is_space(*p)) {
                p++;
            } else if (s->place == BETWEEN) {
                st = between(s, &p, end, at, err);
            } else if (s->place == BEFORE && *p == '{') {
                s->place = ENVELOPE;
                s->in.depth = 1;
                s->key_next = true;
                kl_buf_putc(&s->envelope, *p++);
            } else {
                st = unexpected(
                    s, p, (size_t)(end - p), at, s->place == BEFORE ? "a JSON object" : "nothing more", err);
            }
        }
    }
    s->offset += n;
    return st;
}

static kl_status repeat(const kl_stream *s, kl_err *err)
{
    kl_err_copy(err, &s->why);
    return s->why.status;
}

kl_status kl_stream_feed(kl_stream *s, const char *data, size_t n, kl_err *err)
{
    if (s->failed)
        return repeat(s, err);
    kl_err own = KL_ERR_INIT;
    kl_status st = s->proto ? kl__proto_stream_feed(s->proto, data, n, &own) : piece(s, data, n, &own);
    if (st)
        give_up(s, st, &own);
    if (st)
        kl_err_move(err, &own);
    kl_err_fini(&own);
    return st;
}

/* Decodes the envelope without its items. */
static kl_status open_envelope(kl_stream *s, const kl_value **out, kl_err *err)
{
    const kl_value *v = NULL;
    kl_status st = kl_value_decode(kl_buf_str(&s->envelope), s->envelope.len, &v, err);
    if (st)
        return kl_err_prefix(err, "the list's envelope, its %zu items left out", s->objects);
    const kl_value *items = kl_value_get(v, "items");
    if (items && kl_value_type(items) != KL_ARRAY && kl_value_type(items) != KL_NULL) {
        st = kl_fail(
            err, KL_ESYNTAX, "the list's `items` is of type %s, not an array", kl_value_type_name(items));
    } else {
        *out = kl_value_with(v, "items", NULL);
    }
    kl_value_unref(v);
    return st;
}

static kl_status end_of_stream(kl_stream *s, const kl_value **envelope, kl_err *err)
{
    char who[600];
    if (s->place == OBJECT) {
        describe(s, kl_buf_str(&s->part), s->part.len, who, sizeof who);
        return kl_fail(err, KL_ESYNTAX, "the %s is truncated at byte %llu, inside %s",
            s->list ? "list" : "watch stream", (unsigned long long)s->offset, who);
    }
    if (!s->list)
        return KL_OK;
    if (s->place != AFTER)
        return kl_fail(err, KL_ESYNTAX, "the list is truncated at byte %llu, after %zu items",
            (unsigned long long)s->offset, s->objects);
    return open_envelope(s, envelope, err);
}

kl_status kl_stream_finish(kl_stream *s, const kl_value **envelope, kl_err *err)
{
    if (s->failed)
        return repeat(s, err);
    kl_err own = KL_ERR_INIT;
    const kl_value *v = NULL;
    kl_status st = s->proto ? kl__proto_stream_finish(s->proto, &v, &own) : end_of_stream(s, &v, &own);
    if (st) {
        give_up(s, st, &own);
        kl_err_move(err, &own);
    } else if (envelope && s->list) {
        *envelope = kl_value_ref(v);
    }
    kl_value_unref(v);
    kl_err_fini(&own);
    return st;
}

bool kl_stream_outdated(const kl_stream *s) { return s->proto && kl__proto_stream_outdated(s->proto); }
