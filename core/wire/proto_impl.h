/* proto_impl.h - internals of the protobuf decoder (private to core/wire).
 *
 * A decoder keeps its buffers between objects. Like the JSON decoder (value/decode.h) it compares each object
 * with a guide: parts equal to the guide are reused as a whole, without being looked up. Owner
 * thread. */
#ifndef KL_WIRE_PROTO_IMPL_H
#define KL_WIRE_PROTO_IMPL_H

#include "value/decode.h"
#include "wire/proto.h"
#include "wire/proto_table.h"
#include "wire/proto_wire.h"
#include "wire/stream.h"
#include "model/time.h"

/* Recent bytes and their value, so that parts that the objects of a list share are decoded once. The first
 * occurrence stores only the hash and the second the value, so unique parts cost no copy. */
typedef struct kl__memo {
    uint64_t hash;
    char *bytes;
    uint32_t len, cap;
    kl__h value; /* 0: none yet */
} kl__memo;
#define KL__MEMOS 512
#define KL__MEMO_RAW UINT32_MAX /* `what` for JSON text; for a message, its number */

typedef struct kl__proto {
    /* what the caller may set; all may be zero */
    const kl_projection *keep; /* borrowed; NULL: everything */
    bool alone;                /* containers with new strings stay out of the table (see value/intern.h) */
    bool many;                 /* objects of a list: remember parts of them */
    /* output: the server set fields that the tables do not have */
    bool outdated;
    /* its own */
    const char *text;         /* where offsets count from */
    kl__entries slots;        /* of the open messages, one after the other; 0 is absent */
    kl__entries values, keys; /* of the message that is being closed */
    kl__h *names;             /* of the tables, made on first use */
    bool made_new;            /* the value just read is KL__NEW */
    kl__recent recent;
    kl__memo *memos; /* KL__MEMOS of them, made on first use */
    kl_buf scratch;
    kl__decoder json; /* for JSON inside messages */
    int64_t second;   /* recent times, which soon recur */
    char second_text[KL_TIME_MAX];
    const char *what, *at; /* the first error, and where */
    char *story;           /* the message about JSON text inside */
    char path[200];        /* the path of the field with the error */
} kl__proto;

void kl__proto_fini(kl__proto *d); /* a zeroed one is ready for use */

/* The envelope of an object. Strings are in the text and not terminated; NULL and 0 when absent. */
typedef struct kl__unknown {
    const char *api_version, *kind, *raw;
    size_t api_version_n, kind_n, raw_n;
} kl__unknown;

/* Takes the envelope off: "k8s\0" and runtime.Unknown. */
KL_NODISCARD kl_status kl__unknown_read(const char *data, size_t n, kl__unknown *out, kl_err *err);
/* a TypeMeta; KL_ESYNTAX, with no message */
KL_NODISCARD kl_status kl__unknown_type(const char *p, size_t n, kl__unknown *out);
/* The kind's message, or NULL. */
const kl__proto_msg *kl__proto_find(const char *api_version, size_t an, const char *kind, size_t kn);

/* Decodes one message, with a guide (borrowed, may be NULL). `front`: up to two members, borrowed, to put
 * before the message's own. */
typedef struct kl__front {
    const kl_value *key[2], *value[2];
    size_t n;
} kl__front;
void kl__front_drop(kl__front *f); /* for a front that owns its references */
KL_NODISCARD kl_status kl__proto_message(kl__proto *d, const kl__proto_msg *m, const char *p, size_t n,
    const kl_value *guide, const kl__front *front, const kl_value **out, kl_err *err);
/* Whether a list's items carry apiVersion and kind in JSON; only PartialObjectMetadataList has such items. */
static inline bool kl__proto_items_typed(const char *kind, size_t n)
{
    return n == 25 && !memcmp(kind, "PartialObjectMetadataList", 25);
}
/* What an envelope carries: an object of a kind with a table, or a list of such. */
KL_NODISCARD kl_status kl__unknown_decode(
    kl__proto *d, const kl__unknown *u, const kl_value *guide, const kl_value **out, kl_err *err);
/* Namespace and name of an object, as far as the bytes go; NULL and 0 when absent. */
void kl__proto_name(
    const char *p, size_t n, const char **ns, size_t *nslen, const char **name, size_t *namelen);
/* The bytes of a watch frame's object, as far as they have arrived. */
bool kl__proto_frame_object(const char *p, size_t n, const char **s, size_t *sn);

/* --- proto_stream.c: a kl_stream of protobuf --------------------------------------------- */
typedef struct kl__proto_stream kl__proto_stream;
/* the handler is borrowed */
kl__proto_stream *kl__proto_stream_new(const kl_stream_handler *h, bool list);
void kl__proto_stream_free(kl__proto_stream *s);
KL_NODISCARD kl_status kl__proto_stream_feed(kl__proto_stream *s, const char *data, size_t n, kl_err *err);
KL_NODISCARD kl_status kl__proto_stream_finish(kl__proto_stream *s, const kl_value **envelope, kl_err *err);
bool kl__proto_stream_outdated(const kl__proto_stream *s);

/* --- proto_text.c: what is not a message of its own ------------------------------------------ */
/* All return false after recording the error. `out` is a new reference, or `like` itself, borrowed;
 * made_new, false before, becomes true if the value is new. */
/* The cache entry for these bytes of kind `what`; *value is a new reference when they occurred before, or 0.
 * NULL: not cached. */
kl__memo *kl__memo_find(kl__proto *d, uint32_t what, const char *s, size_t n, kl__h *value);
/* takes its own reference on the second call */
void kl__memo_keep(kl__memo *m, const char *s, size_t n, kl__h value);
bool kl__proto_fail(kl__proto *d, const char *at, const char *what);
bool kl__proto_string(kl__proto *d, const char *s, size_t n, kl__h like, kl__h *out);
/* a terminated static text */
bool kl__proto_ascii(kl__proto *d, const char *s, kl__h like, kl__h *out);
bool kl__proto_text(
    kl__proto *d, kl__proto_what what, const char *s, size_t n, kl__h like, const kl__cut *cut, kl__h *out);

#endif
