/* schema_impl.h - the layout of a schema in memory and on disk. Inside model.
 *
 *   header | nodes | fields | kinds | names
 *
 * All are arrays of 32-bit numbers but the last, which is text; all references are indexes, so loading
 * changes nothing. Node 0 allows anything. Recursive definitions are recursive nodes. */
#ifndef KL_MODEL_SCHEMA_IMPL_H
#define KL_MODEL_SCHEMA_IMPL_H

#include <stdatomic.h>
#include "model/schema.h"

/* The allowed types of a value; 0: any. */
enum {
    KL__STRING = 1,
    KL__INTEGER = 2,
    KL__NUMBER = 4,
    KL__BOOLEAN = 8,
    KL__ARRAY = 16,
    KL__OBJECT = 32,
    KL__TYPES = 63
};
/* OPEN: fields that are not listed stay. EMBEDDED: apiVersion, kind and metadata are there too */
enum { KL__OPEN = 1, KL__EMBEDDED = 2 };

#define KL__NO_NODE UINT32_MAX
/* "ksc1", also says the byte order; another form gets another number. */
#define KL__SCHEMA_MAGIC 0x6b736331u

typedef struct kl__snode {
    uint16_t types, flags;
    uint32_t first, n; /* its fields, sorted by name (strcmp) */
    /* of a list's items, or of fields that are not listed; NO_NODE: none */
    uint32_t items;
} kl__snode;

typedef struct kl__sfield {
    uint32_t name, node;
} kl__sfield; /* name: offset into names */
typedef struct kl__skind {
    uint32_t text, node;
} kl__skind; /* "group/version/Kind", sorted */
typedef struct kl__shead {
    uint32_t magic, size, nodes, fields, kinds, names;
} kl__shead;

struct kl_schema {
    atomic_uint refs;
    const kl__shead *head; /* all of it, owned */
    const kl__snode *nodes;
    const kl__sfield *fields;
    const kl__skind *kinds;
    const char *names;
};

/* The root of a kind, NO_NODE when there is none. */
uint32_t kl__schema_root(const kl_schema *s, const char *group, const char *version, const char *kind);
/* Validates the piece; on KL_OK the schema owns it. */
KL_NODISCARD kl_status kl__schema_adopt(kl__shead *piece, size_t n, kl_schema **out, kl_err *err);

#endif
