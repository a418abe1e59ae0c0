/* intern.h - how values lie in memory (private to model/: everybody else uses value.h).
 *
 * A handle is a tagged word. Small integers, null, booleans and the empties live in the handle itself; everything else is
 * a node on the heap, and equal nodes are one node: strings by their bytes, containers by their children's handles. The
 * pods of one Deployment share their spec; a key such as "metadata" exists once per process.
 *
 * A node is in the table as long as its count is above zero, and the count reaches zero only under its shard's lock, so
 * whoever finds a node there may count it up. Children are counted once per place where they stand. */
#ifndef KL_MODEL_INTERN_H
#define KL_MODEL_INTERN_H

#include <stdatomic.h>
#include "model/value.h"

typedef struct kl__node {
    union {
        struct {
            _Atomic uint32_t rc;
            uint32_t hash;
        };
        struct kl__node *dead_next;      /* once out of the table: the list of nodes to reclaim */
    };
    uint32_t len;                        /* bytes, items or members */
    uint8_t type;                        /* kl_type: never NULL or BOOL */
    uint8_t spare;
    char bytes[];                        /* strings: from here, NUL-terminated */
} kl__node;

/* Numbers that do not fit a handle, and containers, keep 8-byte words after the header. */
typedef struct kl__wide {
    kl__node node;
    union { int64_t i; uint64_t u; double d; } number;
} kl__wide;

typedef struct kl__container {
    kl__node node;
    const kl_value *slots[];             /* array: items; object: key, value, key, value ... then the index, if any */
} kl__container;

#define KL__TAG_INT    1u                /* the low bit: the other 63 are the integer */
#define KL__IMMEDIATE(k) ((uintptr_t)((k) << 3 | 2))
enum { KL__K_NULL, KL__K_FALSE, KL__K_TRUE, KL__K_ARRAY, KL__K_OBJECT, KL__K_STRING };
#define KL__HANDLE(w)  ((const kl_value *)(uintptr_t)(w))
#define KL__NULL       KL__HANDLE(KL__IMMEDIATE(KL__K_NULL))
#define KL__FALSE      KL__HANDLE(KL__IMMEDIATE(KL__K_FALSE))
#define KL__TRUE       KL__HANDLE(KL__IMMEDIATE(KL__K_TRUE))
#define KL__EMPTY_ARRAY  KL__HANDLE(KL__IMMEDIATE(KL__K_ARRAY))
#define KL__EMPTY_OBJECT KL__HANDLE(KL__IMMEDIATE(KL__K_OBJECT))
#define KL__EMPTY_STRING KL__HANDLE(KL__IMMEDIATE(KL__K_STRING))

/* Above this an object carries an index: 2^k 32-bit words after its members, each 0 or 1 + a member's place. */
#define KL__INDEXED_ABOVE 16

static inline bool kl__is_int(const kl_value *v) { return (uintptr_t)v & KL__TAG_INT; }
static inline bool kl__is_node(const kl_value *v) { return v && !((uintptr_t)v & 7); }
static inline kl__node *kl__node_of(const kl_value *v) { return (kl__node *)(uintptr_t)v; }
static inline const kl_value *const *kl__slots(const kl_value *v) { return ((const kl__container *)kl__node_of(v))->slots; }

/* The bytes of a string handle. */
static inline const char *kl__str_bytes(const kl_value *v, size_t *n)
{
    if (kl__is_node(v)) {
        *n = kl__node_of(v)->len;
        return kl__node_of(v)->bytes;
    }
    *n = 0;
    return "";
}

/* Each returns a new reference. Strings must be valid UTF-8. A container takes over the references in `slots`: n items,
 * or n members as 2n slots with distinct keys. */
const kl_value *kl__intern_str(const char *s, size_t n);
const kl_value *kl__intern_int(int64_t i);
const kl_value *kl__intern_wide(kl_type type, uint64_t bits);
const kl_value *kl__intern_container(kl_type type, const kl_value *const *slots, size_t n);

uint32_t kl__hash(const void *data, size_t n);                 /* the table's own seeded hash */
const uint32_t *kl__index(const kl_value *object, uint32_t *mask);   /* only above KL__INDEXED_ABOVE members */
size_t kl__node_size(const kl__node *n);                       /* bytes of its allocation */

/* Decoding that may leave out metadata.managedFields of the object that lies `managed_at` levels below the root (0: the root
 * itself; 1: a watch frame's "object"; -1: keep). */
KL_NODISCARD kl_status kl__value_decode(const char *text, size_t n, int managed_at, const kl_value **out, kl_err *err);

/* A growing stack of handles, for those who assemble containers; entries are references. */
typedef struct kl__stack {
    const kl_value **v;
    size_t len, cap;
} kl__stack;
void kl__stack_push(kl__stack *s, const kl_value *v);
void kl__stack_cut(kl__stack *s, size_t len);                  /* unrefs what is above */
void kl__stack_fini(kl__stack *s);

/* Which keys an open object already has. Small objects are searched; big ones go through one table for all open
 * objects, told apart by a serial. */
typedef struct kl__seen_entry { uint64_t serial; const kl_value *key; size_t place; } kl__seen_entry;
typedef struct kl__seen { kl__seen_entry *v; size_t len, cap; } kl__seen;
/* Looks for `key` in the object whose members are s->v[base..]; enters it when absent. Returns the place (0-based member)
 * of the earlier one, or SIZE_MAX. Call before pushing the key. */
size_t kl__seen_check(kl__seen *seen, uint64_t serial, const kl__stack *s, size_t base, const kl_value *key);
void kl__seen_fini(kl__seen *seen);

#endif
