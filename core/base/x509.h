/* x509.h - what PEM text says: are there certificates in it, does a key belong to one. The only door to
 * OpenSSL. Any thread.
 *
 * Messages never show what the text holds. A key with a passphrase is refused: nobody is there to be
 * asked. */
#ifndef KL_BASE_X509_H
#define KL_BASE_X509_H

#include "base/clock.h"
#include "base/err.h"

/* One certificate at least, and all readable: KL_ESYNTAX otherwise. */
KL_NODISCARD kl_status kl_x509_check(const char *pem, kl_err *err);
/* The first certificate's key is `key`: KL_ESYNTAX when one of them cannot be read, KL_EINVAL when they
 * are no pair. */
KL_NODISCARD kl_status kl_x509_check_pair(const char *cert, const char *key, kl_err *err);
/* Wall time at which the first certificate ends. */
KL_NODISCARD kl_status kl_x509_not_after(const char *pem, kl_time *out, kl_err *err);

#endif
