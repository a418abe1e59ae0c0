/* finder.h - finds items of a list by a member, in constant time, so that merging two lists or finding a
 * repeated name takes linear time. Clients choose how long the lists of their objects are. Owner thread. */
#ifndef KL_VALUE_FINDER_H
#define KL_VALUE_FINDER_H

#include "value/value.h"

/* {0} is empty and compares whole items. Items are borrowed and must outlive the finder. */
typedef struct kl_finder {
    const char *key;         /* the member that is compared; NULL: the item itself */
    const char *const *more; /* further members that must be equal too, up to a NULL; NULL: none */
    bool empty_is_absent;    /* "" equals an absent text, as in Go's structs; otherwise only null does */
    const kl_value **v;
    uint32_t *next, *heads, *tails; /* chains through places, which count from 1 */
    size_t len, cap, mask;
} kl_finder;

void kl_finder_fini(kl_finder *f);
void kl_finder_add(kl_finder *f, const kl_value *item);
void kl_finder_add_all(kl_finder *f, const kl_value *list); /* its items; NULL: none */
/* The place of the first item that equals `like` in the members compared, from 0; -1: there is none. */
long kl_finder_find(const kl_finder *f, const kl_value *like);
/* The same for a text, for finders with one key or none. */
long kl_finder_find_text(const kl_finder *f, const char *text);
/* Whether an equal item was added before; adds `item` otherwise. */
bool kl_finder_repeats(kl_finder *f, const kl_value *item);

#endif
