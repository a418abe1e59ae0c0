/* decode.h - JSON text to values, for callers that decode many similar texts (private to core/value).
 *
 * A decoder keeps its buffers between texts. Its guide is a value that the next text probably resembles: the
 * previous object of a list, the object's last state in a watch. Parts equal to the guide are compared, not
 * looked up, and reused as a whole. Owner thread. */
#ifndef KL_VALUE_DECODE_H
#define KL_VALUE_DECODE_H

#include "base/buf.h"
#include "value/gather.h"
#include "value/projection.h"

typedef struct kl__decoder {
    /* what the caller may set; all may be zero */
    const kl_value *guide;     /* borrowed */
    const kl_projection *keep; /* borrowed; NULL: everything */
    const kl__cut *cut;        /* borrowed; NULL: as keep says */
    bool frame;                /* the text is a watch's frame: keep is about its "object" */
    /* borrowed strings: apiVersion and kind, put in front of a root that has neither */
    const kl_value *fill[2];
    bool alone;     /* containers with new strings stay out of the table (see value/intern.h) */
    bool last_wins; /* a key that comes again replaces the earlier member */
    /* its own */
    const char *text, *end;
    kl_err *err;
    kl__entries values, keys;
    size_t *key_at, key_at_cap; /* for each of keys: where it stands in the text */
    kl_buf scratch;             /* a string whose escapes are undone */
    kl__h fill_keys[2];
    bool made_new; /* about the value just read: KL__NEW */
    kl__recent recent;
    bool refill; /* the root had its own apiVersion or kind: decode again without filling */
} kl__decoder;

void kl__decoder_fini(kl__decoder *d); /* a zeroed one is ready for use */
/* Decodes a whole text, or, with `used`, the value at its beginning; *used is then its length in bytes. err
 * may be NULL. */
KL_NODISCARD kl_status kl__decode(
    kl__decoder *d, const char *text, size_t n, size_t *used, const kl_value **out, kl_err *err);

#endif
