/* certdir.h - tls.crt and tls.key of a directory in a keyring, as cert-manager and mounted Secrets store
 * them; read again when they change. An invalid pair (half-written, say) is logged, and the old one stays in
 * use. */
#ifndef KL_BASE_CERTDIR_H
#define KL_BASE_CERTDIR_H

#include <stdbool.h>
#include "base/keyring.h"

typedef struct kl_certdir kl_certdir;

/* Reads the pair before it returns; an unusable one is an error that names the files. `what` is for the log:
 * "metrics". `read` is called after each attempt to read: here, and later on the watcher's thread. */
KL_NODISCARD kl_status kl_certdir_start(const char *dir, const char *what, kl_keyring *ring,
    void (*read)(void *arg, bool good), void *arg, kl_certdir **out, kl_err *err);
void kl_certdir_stop(kl_certdir *c); /* joins; before the keyring is freed. NULL is fine */

#endif
