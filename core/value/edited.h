/* edited.h - collects changes of an object's members, then makes the new object once. The cost is linear in
 * members and changes, while kl_value_with copies the object for each change. Owner thread. */
#ifndef KL_VALUE_EDITED_H
#define KL_VALUE_EDITED_H

#include "base/map.h"
#include "value/value.h"

/* {.base = v} stands for v unchanged. */
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
void kl_edited_put_all(kl_edited *e, const kl_value *map);            /* each member of map; NULL: none */
void kl_edited_fill(kl_edited *e, const kl_value *map);               /* only the missing members */
/* The object: kept and changed members in their old places, then new ones. A new reference, of the base
 * itself when nothing was put. `e` is empty afterwards. */
const kl_value *kl_edited_done(kl_edited *e);

#endif
