/* auth.h - the headers that say who we are: bearer token (from text or a file that rotates), basic, impersonation.
 * Inside net; any thread. */
#ifndef KL_NET_AUTH_H
#define KL_NET_AUTH_H

#include "net/config.h"

typedef struct kl__auth kl__auth;

/* `config` is borrowed for the life of the result. */
kl__auth *kl__auth_new(const kl_config *config, kl_clock *clock);
void kl__auth_free(kl__auth *a);
/* The Authorization header line, NULL when there is none to send; caller frees. Reads the token file when its content is
 * older than 50 s. A file that cannot be read leaves the last good token in use; without one it is KL_EAUTH. */
KL_NODISCARD kl_status kl__auth_header(kl__auth *a, char **out, kl_err *err);
/* After a 401 to `used`: reads the token file again. True when there is another token now, so that a replay makes sense. */
bool kl__auth_renewed(kl__auth *a, const char *used);
/* NULL-terminated "Impersonate-..." lines; borrowed for a's life. */
const char *const *kl__auth_impersonation(const kl__auth *a);
/* "the token in /path", "client certificate /path", "no credentials": for messages. Caller frees. */
char *kl__auth_describe(const kl__auth *a);

#endif
