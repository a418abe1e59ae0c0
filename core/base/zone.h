/* zone.h - time zones by their IANA names, from the machine's zone files (RFC 8536). */
#ifndef KL_BASE_ZONE_H
#define KL_BASE_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kl_zone kl_zone; /* immutable; any thread */

/* Whether `name` can be a zone's name: its path does not leave the directory of zone files. */
bool kl_zone_named(const char *name);
/* The zone "Europe/Berlin", or NULL if the machine lacks the file. Reads a file of some kilobytes. The
 * caller frees. */
kl_zone *kl_zone_open(const char *name);
void kl_zone_free(kl_zone *z);
/* Why a zone cannot be opened, as Go says it; NULL if the machine lacks the file. */
const char *kl_zone_fault(const char *name);
/* Seconds east of UTC at a moment, in seconds since 1970. */
int64_t kl_zone_offset(const kl_zone *z, int64_t sec);

#endif
