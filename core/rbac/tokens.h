/* tokens.h - users, in authentication.k8s.io's form (username, uid, groups), and their tokens, from a file or
 * issued by the server. Owner thread, or under its lock. */
#ifndef KL_RBAC_TOKENS_H
#define KL_RBAC_TOKENS_H

#include "base/clock.h"
#include "base/map.h"
#include "value/value.h"

/* `groups` are separated by commas; a new reference */
const kl_value *kl__user_new(const char *name, const char *uid, const char *groups);
/* Reads a file in the form of kube-apiserver's --token-auth-file, with token,user,uid,"group,group" on each
 * line, into a map from token to user. Each user is in system:authenticated, too. Errors name the line. */
KL_NODISCARD kl_status kl__tokens_read(const char *path, kl_map **out, kl_err *err);
void kl__tokens_free(kl_map *tokens); /* NULL is fine */

/* The audience of the API server. */
#define KL_AUDIENCE "https://kubernetes.default.svc"
/* The key that signs tokens. The first use makes it, which takes a tenth of a second, or a few tenths on a
 * busy machine. Any thread. */
typedef struct kl__issuer kl__issuer;
kl__issuer *kl__issuer_new(void);
void kl__issuer_free(kl__issuer *i); /* NULL is fine */
/* Whether the key exists. If not, starts a thread that makes it and then calls `ready`. */
bool kl__issuer_await(kl__issuer *i, void (*ready)(void *arg), void *arg);
/* Waits for that thread. Afterwards `ready` is never called, and a caller that needs the key makes it. */
void kl__issuer_stop(kl__issuer *i);
/* A JWT of the claims; the caller frees. */
char *kl__token_new(kl__issuer *i, const kl_value *claims);
/* The public key that verifies its signatures, as a JSON Web Key Set (RFC 7517). */
void kl__issuer_keys(kl__issuer *i, kl_buf *out);
/* Stores a token in a map from token to claims, and drops expired ones. */
void kl__issued_add(kl_map *issued, kl_time wall, const char *token, const kl_value *claims);
/* The claims of a token that has not expired, borrowed; NULL otherwise. */
const kl_value *kl__issued_claims(const kl_map *issued, kl_time wall, const char *token);

#endif
