/* fill.h - puts defaults into an object; present fields stay. Each function takes the caller's reference in
 * *o and leaves one there. Pure; any thread. */
#ifndef KL_BUILTIN_FILL_H
#define KL_BUILTIN_FILL_H

#include "value/value.h"

typedef void kl__edit_fn(const kl_value **v);

/* Whether the member is missing, or null: the zero value of a pointer without omitempty. */
static inline bool kl__absent(const kl_value *o, const char *key)
{
    return kl_value_type(kl_value_get(o, key)) == KL_NULL;
}
void kl__put_str(const kl_value **o, const char *key, const char *text);
void kl__put_int(const kl_value **o, const char *key, int64_t n);
void kl__put_bool(const kl_value **o, const char *key, bool b);
void kl__put_object(const kl_value **o, const char *key);     /* an empty one */
void kl__cut(const kl_value **o, const char *const *members); /* drops members; NULL-terminated */
/* Runs `edit` on the member `key` if it is present, or on each object of that list. */
void kl__inside(const kl_value **o, const char *key, kl__edit_fn *edit);
void kl__each_inside(const kl_value **o, const char *key, kl__edit_fn *edit);

#endif
