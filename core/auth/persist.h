/* persist.h - writes renewed tokens back into their kubeconfig file. It does file I/O. */
#ifndef KL_AUTH_PERSIST_H
#define KL_AUTH_PERSIST_H

#include <stddef.h>
#include "base/err.h"

/* value NULL: stays as it is */
typedef struct kl__persist_entry {
    const char *key, *value;
} kl__persist_entry;

/* Sets entries of users[name == user].user.auth-provider.config in `file`: as kubectl does, it holds
 * FILE.lock and renames a finished file over the old one (through links, mode kept). Every other byte,
 * comments included, stays. KL_EAGAIN: another process holds the lock. */
KL_NODISCARD kl_status kl__persist_auth_provider(
    const char *file, const char *user, const kl__persist_entry *entries, size_t n, kl_err *err);

#endif
