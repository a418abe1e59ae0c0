/* intern.h - the representation of values (private to core/value: other code uses value.h).
 *
 * A value is a handle of 32 bits. Integers of 31 bits, null, booleans and the empties are the handle itself;
 * everything else is a node in the arena, and equal nodes are one node: strings by their bytes, containers by
 * their children's handles. The pods of one Deployment share their spec; a key such as "metadata" exists once
 * per process. An object is its values and a shape, the node that holds its keys in order, so that all pods
 * share the keys of "spec" and a key's place, found once for a shape, is its place in all of them.
 *
 *   handle  0 absent | 1..63 constants | 64.. nodes: arena + 8 * handle | 2^31.. integers
 *   string  rc|type len   bytes NUL, zeroed up to 8         array   rc|type len     item ...
 *   number  rc|type 0     8 bytes                           object  rc|type shape   value ...
 *                                                           shape   rc|type len     key ... and an index*
 *   * only with many keys
 *
 * Containers of a streamed object that hold a new string are the exception: nothing can be equal to them yet,
 * so they stay out of the table, which would otherwise be twice as long. A decoder of the same object uses it
 * as the guide, and gets the same nodes. So equal handles are equal values, and equal containers mostly have
 * equal handles; strings and numbers always do.
 *
 * A node is in the table as long as its count is above zero, and the count reaches zero only under its
 * shard's lock, so a thread that finds a node there may increment its count. A child is counted once for each
 * place where it stands. */
#ifndef KL_VALUE_INTERN_H
#define KL_VALUE_INTERN_H

#include <stdatomic.h>
#include <string.h>
#include "value/arena.h"
#include "value/value.h"

typedef uint32_t kl__h; /* a handle */

typedef struct kl__node {
    _Atomic uint32_t rc; /* count * KL__ONE + KL__PLAIN + type */
    uint32_t len;        /* bytes, items or keys; an object's shape */
    union {
        char bytes[1]; /* of a string; NUL-terminated */
        kl__h v[1];    /* items, values or keys */
        struct {
            uint32_t lo, hi;
        } number;
    };
} kl__node;

#define KL__HEAD 8u /* bytes before the contents */
#define KL__TYPE 7u
#define KL__PLAIN 8u /* a string that JSON writes as it is: no quote, backslash or control character */
#define KL__ALONE 8u /* a container that is not in the table: see kl__make_alone */
#define KL__ONE 16u
#define KL__FOREVER ((uint32_t)1 << 31) /* a saturated count: the node stays */
#define KL__SHAPE ((kl_type)0)          /* the type of a shape's node: no value has it */

#define KL__INT_BIT ((kl__h)1 << 31)
enum {
    KL__H_NULL = 1,
    KL__H_FALSE,
    KL__H_TRUE,
    KL__H_EMPTY_ARRAY,
    KL__H_EMPTY_OBJECT,
    KL__H_EMPTY_STRING,
    KL__H_NODES = 64
};

#define KL__VALUE(h) ((const kl_value *)(uintptr_t)(h))
#define KL__NULL KL__VALUE(KL__H_NULL)
#define KL__FALSE KL__VALUE(KL__H_FALSE)
#define KL__TRUE KL__VALUE(KL__H_TRUE)
#define KL__EMPTY_ARRAY KL__VALUE(KL__H_EMPTY_ARRAY)
#define KL__EMPTY_OBJECT KL__VALUE(KL__H_EMPTY_OBJECT)
#define KL__EMPTY_STRING KL__VALUE(KL__H_EMPTY_STRING)

/* Above this many keys a shape carries an index: 2^k words after its keys, each 0 or 1 + a key's place. */
#define KL__INDEXED_ABOVE 16

static inline kl__h kl__handle(const kl_value *v) { return (kl__h)(uintptr_t)v; }
static inline bool kl__is_int(kl__h h) { return h & KL__INT_BIT; }
static inline int32_t kl__small(kl__h h) { return (int32_t)(h << 1) >> 1; }
static inline bool kl__is_node(kl__h h) { return h - KL__H_NODES < KL__INT_BIT - KL__H_NODES; }
static inline kl__node *kl__at(kl__h h) { return kl__arena_at(h); }
static inline kl_type kl__node_type(const kl__node *n)
{
    return (kl_type)(atomic_load_explicit(&n->rc, memory_order_relaxed) & KL__TYPE);
}
static inline bool kl__is(kl__h h, kl_type t) { return kl__is_node(h) && kl__node_type(kl__at(h)) == t; }

/* --- containers that are nodes ------------------------------------------------------------ */
static inline const kl__node *kl__shape_of(const kl__node *object) { return kl__at(object->len); }
static inline size_t kl__count(const kl__node *n)
{
    return kl__node_type(n) == KL_OBJECT ? kl__shape_of(n)->len : n->len;
}

static inline const kl_value *kl__item(const kl_value *array, size_t i)
{
    return KL__VALUE(kl__at(kl__handle(array))->v[i]);
}
static inline const kl_value *kl__key(const kl_value *object, size_t i)
{
    return KL__VALUE(kl__shape_of(kl__at(kl__handle(object)))->v[i]);
}
static inline const kl_value *kl__val(const kl_value *object, size_t i)
{
    return KL__VALUE(kl__at(kl__handle(object))->v[i]);
}

/* The bytes of a string handle. */
static inline const char *kl__bytes(kl__h h, size_t *n)
{
    if (kl__is_node(h)) {
        *n = kl__at(h)->len;
        return kl__at(h)->bytes;
    }
    *n = 0;
    return "";
}

static inline const char *kl__str_bytes(const kl_value *v, size_t *n) { return kl__bytes(kl__handle(v), n); }

/* The place of a key, or SIZE_MAX. */
size_t kl__shape_find(const kl__node *shape, const char *key, size_t n);
size_t kl__shape_find_key(const kl__node *shape, kl__h key); /* the key's own handle */
/* words of the index of a shape with so many; 0: it has none */
uint32_t kl__index_cap(size_t keys);
void kl__index_fill(kl__node *shape);

/* --- making: each returns a new reference. Strings must be valid UTF-8 -------------------- */
kl__h kl__intern_str(const char *s, size_t n);
kl__h kl__intern_str_new(const char *s, size_t n, bool *is_new);
kl__h kl__intern_int(int64_t i);
kl__h kl__intern_wide(kl_type type, uint64_t bits);

/* Drops a reference that is known not to be the last. */
static inline void kl__spare(kl__h h)
{
    if (kl__is_node(h) && atomic_load_explicit(&kl__at(h)->rc, memory_order_relaxed) < KL__FOREVER)
        atomic_fetch_sub_explicit(&kl__at(h)->rc, KL__ONE, memory_order_release);
}

/* A handle on the way into a container: we own its reference, or it is borrowed from an owner that outlives
 * the call. */
typedef uint64_t kl__entry;
#define KL__OWNED ((kl__entry)1 << 32)
#define KL__NEW ((kl__entry)1 << 33) /* it is new in this text, so its containers are new, too */
static inline kl__entry kl__owned(kl__h h) { return h | KL__OWNED; }

/* An array, or a shape of distinct keys. Owned entries are taken over. */
kl__h kl__intern_list(kl_type type, const kl__entry *e, size_t n);
/* The shape with these keys if there is one, or 0. Then the owned entries are taken over. */
kl__h kl__find_shape(const kl__entry *e, size_t n);
/* An object of a shape with n > 0 keys. */
kl__h kl__intern_object(kl__entry shape, const kl__entry *e, size_t n);

/* An array or object with a new child, without asking the table and without entering it. */
kl__h kl__make_alone(kl_type type, kl__entry head, const kl__entry *e, size_t n);

/* The same for callers that gather key, value, key, value ... (or items) as references: all are taken over;
 * keys are distinct. */
const kl_value *kl__intern_container(kl_type type, const kl_value *const *slots, size_t n);

size_t kl__node_size(const kl__node *n); /* bytes of its slot */

/* A growing stack of references, for code that assembles containers. */
typedef struct kl__stack {
    const kl_value **v;
    size_t len, cap;
} kl__stack;
void kl__stack_push(kl__stack *s, const kl_value *v);
void kl__stack_cut(kl__stack *s, size_t len); /* unrefs what is above */
void kl__stack_fini(kl__stack *s);

/* Which keys an open object already has. Small objects are searched; big ones go through one table for all
 * open objects, told apart by a serial. */
typedef struct kl__seen_entry {
    uint64_t serial;
    const kl_value *key;
    size_t place;
} kl__seen_entry;
typedef struct kl__seen {
    kl__seen_entry *v;
    size_t len, cap;
} kl__seen;
/* Looks for `key` in the object whose members are s->v[base..]; enters it when absent. Returns the place
 * (0-based member) of the earlier one, or SIZE_MAX. Call before pushing the key. */
size_t kl__seen_check(kl__seen *seen, uint64_t serial, const kl__stack *s, size_t base, const kl_value *key);
void kl__seen_fini(kl__seen *seen);

#endif
