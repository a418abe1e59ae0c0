/* stream.h - decodes objects from a stream of bytes, one at a time, so that a LIST body is never held whole.
 *
 * Feed bytes as they arrive: JSON or, for built-in kinds, protobuf (wire/proto.h). A list calls `item` for
 * every element of `items` and `list_end` with the list's other members ({kind, apiVersion, metadata}); a
 * watch calls `event` for every {"type","object"} frame. Callbacks own the reference they get. After an error
 * the decoder stays failed. Owner thread. */
#ifndef KL_WIRE_STREAM_H
#define KL_WIRE_STREAM_H

#include "value/projection.h"
#include "value/value.h"

typedef struct kl_stream kl_stream;

/* What the first bytes of an object show that was too large. The texts are not NUL-terminated. */
typedef struct kl_stream_skipped {
    const char *type; /* a watch's: "ADDED"...; "" when not known */
    const char *ns, *name;
    size_t nslen, namelen;
    const char *message; /* which object, and what to do */
} kl_stream_skipped;

typedef struct kl_stream_handler {
    /* list: one element; a non-zero status stops */
    kl_status (*item)(void *arg, const kl_value *object, kl_err *err);
    /* watch: one frame */
    kl_status (*event)(void *arg, const char *type, const kl_value *object, kl_err *err);
    void *arg;
    /* the maximum bytes of one element or frame; above: `skipped`, or KL_ETOOBIG. The message names the
     * object as far as its metadata was seen, and the flag --max-object-bytes */
    size_t max_object;
    /* Called for an object above max_object, which is skipped; a non-zero status stops the stream. NULL: the
     * stream fails with KL_ETOOBIG. Not called for an ERROR frame or protobuf without a name; both fail. */
    kl_status (*skipped)(void *arg, const kl_stream_skipped *object, kl_err *err);
    /* the parts of each object to decode; NULL: all. The stream takes its own reference */
    kl_projection *keep;
    bool drop_managed_fields; /* when keep is NULL: all but metadata.managedFields */
    bool protobuf;            /* the bytes are protobuf; the values are those that JSON would give */
    /* list: put in front of items that carry neither; NULL: not put */
    const char *api_version, *kind;
    /* Returns the last known state of an object, a new reference or NULL; it makes decoding the next state
     * faster. May be NULL. Texts are not NUL-terminated. */
    const kl_value *(*known)(void *arg, const char *ns, size_t nslen, const char *name, size_t namelen);
} kl_stream_handler;

kl_stream *kl_stream_list_new(const kl_stream_handler *h);
kl_stream *kl_stream_watch_new(const kl_stream_handler *h);
void kl_stream_free(kl_stream *s);
KL_NODISCARD kl_status kl_stream_feed(kl_stream *s, const char *data, size_t n, kl_err *err);
/* The stream ended. KL_ESYNTAX when inside an object. For a list, *envelope gets the other members (a new
 * reference); a list body without `items` (a Status, a Table) gives its members and no items. envelope may
 * be NULL. */
KL_NODISCARD kl_status kl_stream_finish(kl_stream *s, const kl_value **envelope, kl_err *err);
/* After an error: whether the server set fields in protobuf, or sent a kind, that our tables do not have;
 * only JSON has them then. */
bool kl_stream_outdated(const kl_stream *s);

#endif
