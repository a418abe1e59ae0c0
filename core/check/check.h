/* check.h - how the checks of built-in kinds read objects and complain.
 *
 * A place ("spec.containers[0].name") is a chain on the stacks of the checks; only a complaint makes text of
 * it, so a valid object costs no text. Like Go's structs, these checks treat an empty text as absent. Pure;
 * any thread. */
#ifndef KL_CHECK_CHECK_H
#define KL_CHECK_CHECK_H

#include "model/quantity.h"
#include "schema/status.h"
#include "value/finder.h"

typedef struct kl__place {
    const struct kl__place *up; /* NULL: the object itself */
    const char *name;           /* a member, or the key of a map; NULL: an item */
    size_t n;                   /* the key's length, or the item's index */
    bool key;
} kl__place;

/* The places live as long as the enclosing block. */
#define KL_IN(place, member) (&(const kl__place){(place), (member), 0, false})
#define KL_ITEM(place, i) (&(const kl__place){(place), NULL, (i), false})
#define KL_KEYED(place, text, length) (&(const kl__place){(place), (text), (length), true})

/* "spec.containers[0].name"; the caller frees it. */
char *kl__place_text(const kl__place *at);

/* --- complaints, as field.Error words them ------------------------------------------------- */
void kl__say_required(kl__causes *c, const kl__place *at, const char *why); /* why may be "" */
/* a valid value that deserves a warning */
void kl__say_odd(kl__causes *c, const kl__place *at, const char *fmt, ...) KL_PRINTF(3, 4);
/* The fault is said to be the server's, as kube-apiserver says it of some. */
void kl__say_internal(kl__causes *c, const kl__place *at, const char *why);
void kl__say_forbidden(kl__causes *c, const kl__place *at, const char *fmt, ...) KL_PRINTF(3, 4);
/* `bad` NULL shows as null */
void kl__say_invalid(kl__causes *c, const kl__place *at, const kl_value *bad, const char *fmt, ...)
    KL_PRINTF(4, 5);
void kl__say_invalid_text(kl__causes *c, const kl__place *at, const char *bad, const char *fmt, ...)
    KL_PRINTF(4, 5);
void kl__say_invalid_int(kl__causes *c, const kl__place *at, int64_t bad, const char *fmt, ...)
    KL_PRINTF(4, 5);
/* without the value */
void kl__say_invalid_bare(kl__causes *c, const kl__place *at, const char *why);
/* `words` are separated by spaces, in the order of the message */
void kl__say_unsupported(kl__causes *c, const kl__place *at, const kl_value *bad, const char *words);
void kl__say_duplicate(kl__causes *c, const kl__place *at, const kl_value *bad);
void kl__say_duplicate_because(kl__causes *c, const kl__place *at, const kl_value *bad, const char *why);
void kl__say_not_found(kl__causes *c, const kl__place *at, const char *bad);
void kl__say_too_long(kl__causes *c, const kl__place *at, unsigned most);
void kl__say_too_many(kl__causes *c, const kl__place *at, size_t have, unsigned most);

/* --- looking -------------------------------------------------------------------------------- */
const char *kl__text(const kl_value *o, const char *member); /* "" when absent; borrowed */
const char *kl__item_text(const kl_value *list, size_t i);   /* the same for an item */
bool kl__is(const kl_value *o, const char *member, const char *word);
bool kl__true(const kl_value *o, const char *member);
/* whether `word` is one of `words`, which are separated by spaces */
bool kl__one_of(const char *word, const char *words);

/* A map's members sorted by key, the order in which Go shows them. Borrowed from the map; the caller frees
 * the array. */
typedef struct kl__sorted {
    struct kl__member {
        const char *key;
        const kl_value *v;
    } * v;
    size_t len;
} kl__sorted;
kl__sorted kl__members(const kl_value *map);

/* --- checks of one member: `at` is the place of `o` ------------------------------------------ */
/* a present number is at least 0 */
void kl__check_natural(kl__causes *c, const kl_value *o, const kl__place *at, const char *member);
void kl__check_naturals(kl__causes *c, const kl_value *o, const kl__place *at, const char *members);
/* a present number is within min..max */
void kl__check_range(
    kl__causes *c, const kl_value *o, const kl__place *at, const char *member, int64_t min, int64_t max);
/* the text is present */
void kl__check_present(kl__causes *c, const kl_value *o, const kl__place *at, const char *member);
/* The text is one of `words`; absent or empty is a complaint only if it is required. */
void kl__check_word(kl__causes *c, const kl_value *o, const kl__place *at, const char *member, bool required,
    const char *words);
/* Equal to that of `old`, or "field is immutable". */
void kl__check_same(
    kl__causes *c, const kl_value *old, const kl_value *o, const kl__place *at, const char *member);

/* The quantity, which the caller owns; NULL for a text that is absent, empty or not a quantity. */
kl_quantity *kl__quantity_of(const char *text);

/* Appends the differences of two objects, a line for each member: "- name: old", "+ name: new".
 * kube-apiserver prints its own structs there. */
void kl__show_difference(const kl_value *old, const kl_value *now, kl_buf *out);

/* `o` as Go prints its struct: these members in their order, under their Go names, with "" for absent ones.
 * After a name: "=NAME" is the object's name for it if that is not like Go's; '?' shows null for an absent
 * member, '#' 0, '!' false; {...} is a struct with these members ("?{" a pointer to one), [...] a list of
 * such, <...> a map to such. The caller owns the result. */
const kl_value *kl__as_go(const kl_value *o, const char *members);

#endif
