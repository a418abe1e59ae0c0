/* proto_wire.h - protobuf's encoding of numbers and fields (private to core/wire). Functions take a place and
 * return the place after what they read, or NULL when the bytes end first or are invalid. */
#ifndef KL_WIRE_PROTO_WIRE_H
#define KL_WIRE_PROTO_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KL__WIRE_VARINT = 0, KL__WIRE_FIXED64 = 1, KL__WIRE_BYTES = 2, KL__WIRE_FIXED32 = 5 };
#define KL__VARINT_MAX 10 /* bytes */

static inline const char *kl__varint(const char *p, const char *end, uint64_t *out)
{
    if (p < end && !(*p & 0x80)) {
        *out = (unsigned char)*p;
        return p + 1;
    }
    uint64_t v = 0;
    for (unsigned shift = 0; p < end && shift < 7 * KL__VARINT_MAX; shift += 7) {
        unsigned char c = (unsigned char)*p++;
        if (shift == 63 && c > 1)
            return NULL;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80)) {
            *out = v;
            return p;
        }
    }
    return NULL;
}

/* A field: number, wire type, and its content: a varint, a fixed number, or bytes. */
typedef struct kl__field {
    uint32_t number;
    unsigned wire;
    uint64_t num;
    const char *s; /* of bytes */
    size_t n;
} kl__field;

static inline const char *kl__fixed(const char *p, const char *end, size_t size, uint64_t *out)
{
    if ((size_t)(end - p) < size)
        return NULL;
    *out = 0;
    for (size_t i = size; i--;)
        *out = *out << 8 | (unsigned char)p[i];
    return p + size;
}

static inline const char *kl__field_next(const char *p, const char *end, kl__field *f)
{
    uint64_t tag;
    p = kl__varint(p, end, &tag);
    if (!p || tag >> 3 == 0 || tag >> 3 >= 1u << 29)
        return NULL;
    f->number = (uint32_t)(tag >> 3);
    f->wire = tag & 7;
    switch (f->wire) {
    case KL__WIRE_VARINT: return kl__varint(p, end, &f->num);
    case KL__WIRE_FIXED64: return kl__fixed(p, end, 8, &f->num);
    case KL__WIRE_FIXED32: return kl__fixed(p, end, 4, &f->num);
    case KL__WIRE_BYTES:
        p = kl__varint(p, end, &f->num);
        if (!p || f->num > (uint64_t)(end - p))
            return NULL;
        f->s = p;
        f->n = (size_t)f->num;
        return p + f->n;
    default: return NULL;
    }
}

#endif
