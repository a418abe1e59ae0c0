/* tokens.h - users, in authentication.k8s.io's form (username, uid, groups), and their tokens. */
#ifndef KL_RBAC_TOKENS_H
#define KL_RBAC_TOKENS_H

#include "base/map.h"
#include "value/value.h"

/* groups with commas between; a new reference */
const kl_value *kl__user_new(const char *name, const char *uid, const char *groups);
/* A file as kube-apiserver's --token-auth-file: token,user,uid,"group,group" a line; each user is in
 * system:authenticated, too. A map from token to user. Errors name the line. */
KL_NODISCARD kl_status kl__tokens_read(const char *path, kl_map **out, kl_err *err);
void kl__tokens_free(kl_map *tokens); /* NULL is fine */

#endif
