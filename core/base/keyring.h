/* keyring.h - the certificate and key that a TLS server shows, replaceable while it serves. The only door to
 * GnuTLS, which libmicrohttpd uses for TLS.
 *
 * A connection keeps the pair that it began with; the next one sees the newest. Any thread. */
#ifndef KL_BASE_KEYRING_H
#define KL_BASE_KEYRING_H

#include <stdbool.h>
#include "base/err.h"

typedef struct kl_keyring kl_keyring;
typedef struct kl_keypair kl_keypair; /* one certificate chain with its key; counted */

kl_keyring *kl_keyring_new(void);    /* empty: handshakes fail until a pair is set */
void kl_keyring_free(kl_keyring *k); /* after the servers that use it; NULL is fine */
/* PEM texts, the server's certificate first. An invalid pair is refused with KL_ESYNTAX or KL_EINVAL, and the
 * old one stays. */
KL_NODISCARD kl_status kl_keyring_set(kl_keyring *k, const char *cert, const char *key, kl_err *err);
bool kl_keyring_empty(kl_keyring *k);

/* Asks clients for certificates of these authorities (PEM); a client may have none. Before the first pair.
 */
KL_NODISCARD kl_status kl_keyring_ask(kl_keyring *k, const char *authorities, kl_err *err);

/* For httpd.c, after the handshake: whether the client of a session (gnutls_session_t) has shown a
 * certificate, and a good one. KL_PEER_GOOD alone sets the CN, and the Os joined by commas; the caller frees
 * them. */
typedef enum kl_peer { KL_PEER_NONE, KL_PEER_GOOD, KL_PEER_BAD } kl_peer;
kl_peer kl_keyring_peer(void *session, char **cn, char **organizations);
/* For httpd.c. Shows the present pair to a TLS session (gnutls_session_t) that has not begun its
 * handshake; the pair must be unreffed after the session's end. NULL when there is none. */
kl_keypair *kl_keyring_show(kl_keyring *k, void *session);
void kl_keypair_unref(kl_keypair *p);

#endif
