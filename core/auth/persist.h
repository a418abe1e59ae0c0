/* persist.h - renewed tokens go back into the kubeconfig file they came from. It does file I/O. */
#ifndef KL_AUTH_PERSIST_H
#define KL_AUTH_PERSIST_H

#include <stddef.h>
#include "base/err.h"

/* value NULL: stays as it is */
typedef struct kl__persist_entry {
    const char *key, *value;
} kl__persist_entry;

/* Sets entries of users[name == user].user.auth-provider.config in `file`: as kubectl does, under
 * FILE.lock and by renaming a finished file over it (through links, mode kept); but every other byte of
 * it, comments included, stays. KL_EAGAIN: another process holds the lock. */
KL_NODISCARD kl_status kl__persist_auth_provider(
    const char *file, const char *user, const kl__persist_entry *entries, size_t n, kl_err *err);

#endif
