/* value.h - an immutable JSON value, shared by every thread and every Lua state.
 *
 * A handle is opaque: never dereference it, never compare contents through it; equal handles are equal values
 * but not the other way round (use kl_value_equal). Values are refcounted with atomics; a root's reference
 * keeps all of its subtrees alive, so subtrees are *borrowed* from the root: kl_value_ref a subtree only to
 * keep it beyond the root.
 *
 * Numbers: int64 and uint64 are exact, other numbers are doubles that round-trip. Objects keep key order.
 * `{}` and `[]` stay distinct. Strings are UTF-8, may hold NUL, and are NUL-terminated for convenience. Any
 * thread may read. */
#ifndef KL_VALUE_VALUE_H
#define KL_VALUE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

typedef struct kl_value kl_value;

typedef enum kl_type { KL_NULL, KL_BOOL, KL_INT, KL_UINT, KL_DOUBLE, KL_STRING, KL_ARRAY, KL_OBJECT } kl_type;
/* KL_UINT is used only for integers above INT64_MAX. */

#define KL_VALUE_DEPTH_MAX 512 /* deeper input is an error */

/* --- reading: borrowed, NULL-safe: NULL and wrong types read as absent -------------------- */
kl_type kl_value_type(const kl_value *v); /* NULL handle: KL_NULL */
/* "absent" for a NULL handle, "null", "boolean", "integer", "number", "string", "array", "object" */
const char *kl_value_type_name(const kl_value *v);
bool kl_value_bool(const kl_value *v, bool dflt);
/* true for KL_INT, and doubles that are integral and in range */
bool kl_value_int(const kl_value *v, int64_t *out);
uint64_t kl_value_uint(const kl_value *v);              /* KL_UINT only */
double kl_value_double(const kl_value *v, double dflt); /* any number */
const char *kl_value_str(const kl_value *v);            /* NULL when not a string */
const char *kl_value_strn(const kl_value *v, size_t *n);
size_t kl_value_len(const kl_value *v);                     /* items, members or bytes; 0 otherwise */
const kl_value *kl_value_item(const kl_value *v, size_t i); /* array, from 0; NULL outside */
bool kl_value_has_str(const kl_value *v, const char *text); /* whether an item of the array is this text */
/* object, in key order of the text. NULL, with the key "", outside and if v is not an object */
const kl_value *kl_value_member(const kl_value *v, size_t i, const char **key, size_t *keylen);
const kl_value *kl_value_get(const kl_value *v, const char *key); /* NULL when absent */
const kl_value *kl_value_getn(const kl_value *v, const char *key, size_t n);
/* The value at nested keys: kl_value_at(o, "metadata", "name", NULL). */
const kl_value *kl_value_at(const kl_value *v, ...) __attribute__((sentinel));
/* Shorthands of kl_value_at for strings and integers. */
const char *kl_value_str_at(const kl_value *v, ...) __attribute__((sentinel));
int64_t kl_value_int_at(const kl_value *v, int64_t dflt, ...) __attribute__((sentinel));
/* Deep equality by value: 1 and 1.0 are equal, key order does not count. */
bool kl_value_equal(const kl_value *a, const kl_value *b);
/* Whether b differs from a only in texts that are not empty, in small integers, and in the lengths of lists:
 * each item of a list of b is alike an item of the same list of a. Members with the key `except` (a text) are
 * the same. False does not mean that there are other differences. */
bool kl_value_alike(const kl_value *a, const kl_value *b, const kl_value *except);
/* memory the whole tree takes (shared parts counted once per occurrence) */
size_t kl_value_bytes(const kl_value *v);

/* What is left of the limits for a walk over a value: parts (a member of an object counts as two), bytes of
 * text, levels of containers. A shared part counts each time it occurs. */
typedef struct kl_room {
    size_t nodes, bytes;
    unsigned depth;
} kl_room;
typedef enum kl_fit { KL_FIT, KL_FIT_MANY, KL_FIT_LONG, KL_FIT_DEEP } kl_fit;
/* Whether v is within the limits; if so, nodes and bytes are subtracted. Visits at most room->nodes parts. */
kl_fit kl_value_fit(const kl_value *v, kl_room *room);

/* The memory that v would need alone, keys of objects included; recurring parts mostly count once. Stops
 * above `max` and then returns a number above it. */
size_t kl_value_held(const kl_value *v, size_t max);

/* The memory of all values of the process, shared parts once: nodes, and bytes with their table. First frees
 * the rest of large dead values. */
void kl_value_memory(size_t *nodes, size_t *bytes);

/* A number for a value, valid while a reference is held: values with the same number are equal, and equal
 * strings have the same number. 0 for NULL. */
static inline uint32_t kl_value_id(const kl_value *v) { return (uint32_t)(uintptr_t)v; }

/* A number for the keys of an object, valid while a reference is held: objects with the same number have the
 * same keys in the same order. 0 for {} and for values that are not objects. */
uint32_t kl_value_shape(const kl_value *v);

/* For code that reads one field again and again: caches the position of the field in objects with the same
 * keys. Owner thread. `key` may be read; the rest is its own. */
typedef struct kl_lookup {
    const kl_value *key;
    uint32_t shape, place;
} kl_lookup;
void kl_lookup_init(kl_lookup *l, const char *key, size_t n);
void kl_lookup_fini(kl_lookup *l);
const kl_value *kl_value_find(const kl_value *v, kl_lookup *l); /* as kl_value_get */

/* --- references --------------------------------------------------------------------------- */
const kl_value *kl_value_ref(const kl_value *v); /* returns v; NULL is fine */
/* any depth; NULL is fine. A very large value is freed in steps, by later unrefs */
void kl_value_unref(const kl_value *v);

/* --- decoding and encoding ---------------------------------------------------------------- */
/* One JSON document, nothing but white space after it. Invalid UTF-8, duplicate keys, depth, truncation:
 * KL_ESYNTAX with the byte offset, line and column in the message. */
KL_NODISCARD kl_status kl_value_decode(const char *text, size_t n, const kl_value **out, kl_err *err);
/* The same for one of many similar texts: `like` (borrowed, may be NULL) is such a value, and parts equal to
 * it cost little. */
KL_NODISCARD kl_status kl_value_decode_like(
    const char *text, size_t n, const kl_value *like, const kl_value **out, kl_err *err);
/* As kl_value_decode, but a key that comes again replaces the earlier member, as Go's encoding/json reads
 * text that people wrote into annotations and ConfigMaps. */
KL_NODISCARD kl_status kl_value_decode_last(const char *text, size_t n, const kl_value **out, kl_err *err);
/* Compact JSON. Integral doubles are written as integers when below 2^53. */
kl_status kl_value_encode(const kl_value *v, kl_buf *out);
/* doubles that are whole numbers are written as 1.0, so that they are read back as doubles */
kl_status kl_value_encode_exact(const kl_value *v, kl_buf *out);
kl_status kl_value_encode_pretty(const kl_value *v, kl_buf *out); /* two spaces */
/* compact, with the keys of each object sorted, as Go writes maps; v is at most KL_VALUE_DEPTH_MAX deep */
kl_status kl_value_encode_sorted(const kl_value *v, kl_buf *out);
/* Appends compact JSON to `out` in lines, with two spaces for each level. */
void kl_json_indent(const char *text, size_t n, kl_buf *out);
char *kl_value_to_json(const kl_value *v); /* caller kl_free()s */

/* --- making: each returns a new reference ------------------------------------------------- */
const kl_value *kl_value_null(void);
const kl_value *kl_value_empty(kl_type type); /* KL_ARRAY or KL_OBJECT, without items or members */
const kl_value *kl_value_of_bool(bool b);
const kl_value *kl_value_of_int(int64_t i);
const kl_value *kl_value_of_uint(uint64_t u);
const kl_value *kl_value_of_double(double d);
const kl_value *kl_value_of_str(const char *s);
/* bytes that are not UTF-8 become U+FFFD, as in Go */
const kl_value *kl_value_of_strn(const char *s, size_t n);
/* well-formed: no surrogates, nothing overlong */
bool kl_utf8_valid(const char *s, size_t n);

/* A builder makes nested values from the outside in. Owner thread.
 *   kl_builder *b = kl_builder_new();
 *   kl_build_object(b); kl_build_key(b, "kind"); kl_build_str(b, "Pod"); kl_build_end(b);
 *   v = kl_builder_done(b);        frees b
 * A duplicate key replaces the earlier one. Misuse (a value without key, an unclosed container) asserts. */
typedef struct kl_builder kl_builder;
kl_builder *kl_builder_new(void);
void kl_builder_free(kl_builder *b);            /* gives up */
const kl_value *kl_builder_done(kl_builder *b); /* the root, a new reference */
void kl_build_object(kl_builder *b);
void kl_build_array(kl_builder *b);
void kl_build_end(kl_builder *b);
void kl_build_key(kl_builder *b, const char *key);
void kl_build_keyn(kl_builder *b, const char *key, size_t n);
void kl_build_value(kl_builder *b, const kl_value *v); /* takes its own reference */
void kl_build_null(kl_builder *b);
void kl_build_bool(kl_builder *b, bool x);
void kl_build_int(kl_builder *b, int64_t x);
void kl_build_uint(kl_builder *b, uint64_t x);
void kl_build_double(kl_builder *b, double x);
void kl_build_str(kl_builder *b, const char *s);
void kl_build_strn(kl_builder *b, const char *s, size_t n);
/* key and string; nothing when s is NULL */
void kl_build_kstr(kl_builder *b, const char *key, const char *s);
void kl_build_kint(kl_builder *b, const char *key, int64_t x);
void kl_build_kvalue(kl_builder *b, const char *key, const kl_value *v); /* nothing when v is NULL */

/* An object with the keys of `like` (an object that has some), in its order, and a value for each; takes over
 * the values. It is its own node even if an equal one exists: for objects that hold something new each
 * time. */
const kl_value *kl_value_like(const kl_value *like, const kl_value *const *values);

/* --- functional updates: a new root that shares what did not change ----------------------- */
/* Object `v` (NULL reads as {}) with key set; x NULL removes the key. */
const kl_value *kl_value_with(const kl_value *v, const char *key, const kl_value *x);
/* The same at a path of keys that ends in NULL; missing or non-object steps become objects (removal
 * creates nothing). */
const kl_value *kl_value_with_at(const kl_value *v, const kl_value *x, ...) __attribute__((sentinel));

#endif
