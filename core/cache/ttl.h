/* ttl.h - a store whose objects expire after a time to live.
 *
 * Every put of a key restarts its time. The store has no timer: `now` comes from the caller (monotonic), and
 * each call frees the expired objects, so the store never holds more than was put within one time to live.
 * Any thread. */
#ifndef KL_CACHE_TTL_H
#define KL_CACHE_TTL_H

#include "base/clock.h"
#include "cache/informer.h"

typedef struct kl_ttl kl_ttl;

#define KL_TTL_MEASURED ((size_t)1 << 30)

kl_ttl *kl_ttl_new(kl_time ttl); /* ttl > 0 */
void kl_ttl_free(kl_ttl *t);     /* when no thread uses it any more */

/* Stores `o` under `key` for the time to live; takes a reference. */
void kl_ttl_put(kl_ttl *t, const char *key, const kl_value *o, kl_time now);
const kl_value *kl_ttl_lookup(kl_ttl *t, const char *key, kl_time now); /* a new reference or NULL */
bool kl_ttl_delete(kl_ttl *t, const char *key, kl_time now);            /* whether it was there */
size_t kl_ttl_count(kl_ttl *t, kl_time now);
/* Bytes of all objects. Parts that objects share count in each; an object counts at most about
 * KL_TTL_MEASURED. */
size_t kl_ttl_bytes(kl_ttl *t);
/* All objects, the next to expire first; the caller finishes *out. */
void kl_ttl_list(kl_ttl *t, kl_time now, kl_objects *out);

#endif
