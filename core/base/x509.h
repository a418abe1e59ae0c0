/* x509.h - checks PEM text: whether it contains certificates, whether a key belongs to one. The only door to
 * OpenSSL. Any thread.
 *
 * Messages never show the text. A key with a passphrase is rejected, since no user can be asked for it. */
#ifndef KL_BASE_X509_H
#define KL_BASE_X509_H

#include "base/clock.h"
#include "base/err.h"

/* At least one certificate, and all readable: KL_ESYNTAX otherwise. */
KL_NODISCARD kl_status kl_x509_check(const char *pem, kl_err *err);
/* The first certificate's key is `key`: KL_ESYNTAX when one of them cannot be read, KL_EINVAL when they do
 * not match. */
KL_NODISCARD kl_status kl_x509_check_pair(const char *cert, const char *key, kl_err *err);
/* Wall time at which the first certificate ends. */
KL_NODISCARD kl_status kl_x509_not_after(const char *pem, kl_time *out, kl_err *err);

#endif
