/* map.h - string to pointer, keys copied, insertion order irrelevant. Owner thread (or the owner's lock).
 * Hashes are seeded per process, so that names from the network cannot be chosen to collide. */
#ifndef KL_BASE_MAP_H
#define KL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kl_map kl_map;

kl_map *kl_map_new(void);
/* Frees the map; `free_value` (may be NULL) is called for every value. NULL map is fine. */
void kl_map_free(kl_map *m, void (*free_value)(void *));
size_t kl_map_len(const kl_map *m);
void *kl_map_get(const kl_map *m, const char *key); /* borrowed; NULL when absent */
void *kl_map_getn(const kl_map *m, const char *key, size_t n);
bool kl_map_has(const kl_map *m, const char *key);
void *kl_map_set(kl_map *m, const char *key, void *value); /* the value it replaced, or NULL */
/* removed and handed to the caller, or NULL */
void *kl_map_take(kl_map *m, const char *key);
/* Iterate: size_t it = 0; while (kl_map_next(m, &it, &key, &value)) ...  No adds inside; taking the
 * current key is fine. */
bool kl_map_next(const kl_map *m, size_t *it, const char **key, void **value);
/* NULL-terminated array the caller kl_free()s; the strings stay the map's */
char **kl_map_sorted_keys(const kl_map *m);
uint64_t kl_hash(const void *data, size_t n); /* the seeded hash itself */

#endif
