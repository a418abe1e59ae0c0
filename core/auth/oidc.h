/* oidc.h - the auth-provider "oidc" of kubeconfig: an id token that is used until it expires, then refreshed
 * with the issuer and written back into the file that held it. kl__oidc_token waits, so do not call it on an
 * http thread. */
#ifndef KL_AUTH_OIDC_H
#define KL_AUTH_OIDC_H

#include "auth/config.h"
#include "http/http.h"

typedef struct kl__oidc kl__oidc;

/* KL_EAUTH, with the way out, when config's auth-provider is not supported. */
KL_NODISCARD kl_status kl__oidc_check(const kl_config *config, kl_err *err);
/* `config` is borrowed; `http` carries the requests to the issuer. */
kl__oidc *kl__oidc_new(const kl_config *config, kl_clock *clock, kl_http *http);
void kl__oidc_free(kl__oidc *o); /* NULL is fine */
/* The id token, and the wall time until which it may be used; caller frees. It is refreshed when it is about
 * to expire, or when the server `refused` it. One thread at a time. KL_EAUTH names the issuer; tokens and
 * secrets are in no message. KL_ECANCELLED when stopped. */
KL_NODISCARD kl_status kl__oidc_token(kl__oidc *o, bool refused, char **token, kl_time *until, kl_err *err);
/* any thread: the running call and all later ones end with KL_ECANCELLED */
void kl__oidc_stop(kl__oidc *o);
/* When a JWT expires (wall time); KL_ESYNTAX when it is not a JWT. The signature is left to the server. */
KL_NODISCARD kl_status kl__jwt_expiry(const char *token, kl_time *out, kl_err *err);

#endif
