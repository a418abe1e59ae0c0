/* uuid.h - a version 4 UUID (RFC 9562) as text. Any thread. */
#ifndef KL_BASE_UUID_H
#define KL_BASE_UUID_H

#define KL_UUID_MAX 37 /* with the NUL */

/* Out of 16 random bytes. Returns out. */
char *kl_uuid_of(const unsigned char bytes[16], char out[KL_UUID_MAX]);
/* From the system's random numbers. Returns out. */
char *kl_uuid_new(char out[KL_UUID_MAX]);

#endif
