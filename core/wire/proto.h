/* proto.h - decodes built-in objects in an API server's protobuf into the values of their JSON.
 *
 * A body is "k8s\0" and a message runtime.Unknown that names apiVersion and kind and carries the object.
 * Tables made from Go's types (proto_table.h) give the fields' names and tell when a field is omitted. Values
 * equal those of the same server's JSON, key order included. Any thread. */
#ifndef KL_WIRE_PROTO_H
#define KL_WIRE_PROTO_H

#include <stdbool.h>
#include "value/value.h"

#define KL_PROTO_TYPE "application/vnd.kubernetes.protobuf"

/* Whether there are tables for objects of this kind ("apps/v1", "Deployment"), and so for their lists. */
bool kl_proto_has(const char *api_version, const char *kind);
/* Whether a body is in protobuf, by its first bytes, with which no JSON begins. */
bool kl_proto_is(const char *data, size_t n);

/* One object, or a whole list. KL_ESYNTAX names the byte and the field. *outdated (NULL allowed) is true when
 * the server set fields, or sent a kind, that the tables do not have; only JSON has them then. An unknown
 * kind is KL_ESYNTAX. err may be NULL. */
KL_NODISCARD kl_status kl_proto_decode(
    const char *data, size_t n, const kl_value **out, bool *outdated, kl_err *err);

/* A cache of look-ups for one thread that decodes many objects. NULL: no cache. */
typedef struct kl_proto_reader kl_proto_reader;
kl_proto_reader *kl_proto_reader_new(void);
void kl_proto_reader_free(kl_proto_reader *r);
/* As kl_proto_decode; `like` (borrowed, may be NULL) is a value that the result probably resembles, as for
 * kl_value_decode_like. */
KL_NODISCARD kl_status kl_proto_read(kl_proto_reader *r, const char *data, size_t n, const kl_value *like,
    const kl_value **out, bool *outdated, kl_err *err);

/* The functions below append to `out`, byte for byte as kube-apiserver encodes. KL_EINVAL names a field whose
 * value has the wrong type, or a kind without a table; discard `out` then. err may be NULL. kl_proto_write
 * encodes an object, whose kind and apiVersion may be absent, in its envelope. */
KL_NODISCARD kl_status kl_proto_write(
    const char *api_version, const char *kind, const kl_value *v, kl_buf *out, kl_err *err);
/* One item of a list, without envelope, and the list around the encoded `items`. `kind` is an item's. */
KL_NODISCARD kl_status kl_proto_write_item(
    const char *api_version, const char *kind, const kl_value *v, kl_buf *items, kl_err *err);
KL_NODISCARD kl_status kl_proto_write_list(const char *api_version, const char *list_kind,
    const kl_value *metadata, const kl_buf *items, kl_buf *out, kl_err *err);
/* A frame of a watch around an object in its envelope. */
KL_NODISCARD kl_status kl_proto_write_event(const char *type, const kl_buf *object, kl_buf *out);

#endif
