/* gnostic.h - gnostic's protobuf of OpenAPI documents: tables map members of JSON objects to fields of
 * messages (private to the room). Any thread. */
#ifndef KL_OPENAPI_GNOSTIC_H
#define KL_OPENAPI_GNOSTIC_H

#include "base/buf.h"
#include "schema/kinds.h"

/* How a field is written. AS_YAML: as JSON, which is YAML; SCALAR: a message with one field each for a
 * number, a boolean and a text; NAMED: each member of an object is a message of its key and its value. */
typedef enum kl__how {
    TEXT,
    TEXTS,
    NUMBER,
    INTEGER,
    YES,
    AS_YAML,
    EACH_AS_YAML,
    SCALAR,
    ONE,
    EACH,
    NAMED
} kl__how;

/* key NULL: the field wraps the value itself. `in`: only for a parameter in that location. */
typedef struct kl__member {
    const char *key;
    unsigned number;
    kl__how how;
    const struct kl__message *of;
    const char *in;
    enum { KL_ANY, KL_WITH_REF, KL_WITHOUT_REF } when; /* only for values that are, or are not, a $ref */
} kl__member;

typedef struct kl__message {
    const kl__member *members;
    size_t len;
    unsigned extensions; /* number of the field for x-...; 0: none */
} kl__message;

#define MESSAGE(name, extensions)                                                                            \
    static const kl__message name = {                                                                        \
        name##_members, sizeof name##_members / sizeof *name##_members, extensions}

/* These append a message; a field `number` of n bytes; a field with a key and a message. */
void kl__gnostic_fill(kl_buf *out, const kl__message *of, const kl_value *v);
void kl__gnostic_bytes(kl_buf *out, unsigned number, const void *data, size_t n);
void kl__gnostic_named(
    kl_buf *out, unsigned number, const char *name, const kl__message *of, const kl_value *v);

#endif
