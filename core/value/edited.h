/* edited.h - an object whose members change one after the other, made anew once: linear in members and
 * changes, while kl_value_with for each change copies the object each time. Owner thread. */
#ifndef KL_VALUE_EDITED_H
#define KL_VALUE_EDITED_H

#include "base/map.h"
#include "value/value.h"

/* {.base = v} is v unchanged. */
typedef struct kl_edited {
    const kl_value *base; /* borrowed; NULL reads as {} */
    struct kl_edit {
        char *key;
        const kl_value *x; /* NULL: removed */
    } * v;
    size_t len;
    kl_map *places; /* of keys in v, from 1 */
} kl_edited;

const kl_value *kl_edited_get(const kl_edited *e, const char *key);   /* borrowed until the next put */
void kl_edited_put(kl_edited *e, const char *key, const kl_value *x); /* x NULL removes the member */
void kl_edited_put_all(kl_edited *e, const kl_value *map);            /* each of its members; NULL: none */
void kl_edited_fill(kl_edited *e, const kl_value *map);               /* those that are not there yet */
/* The object: members that stayed or got another value in their places, then new ones. A new reference, of
 * the base itself when nothing was put. `e` is empty afterwards. */
const kl_value *kl_edited_done(kl_edited *e);

#endif
