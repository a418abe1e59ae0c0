/* base64.h - bytes as text and back: RFC 4648 with padding, as Go writes []byte into JSON. Any thread. */
#ifndef KL_BASE_BASE64_H
#define KL_BASE_BASE64_H

#include "base/buf.h"
#include "base/err.h"

/* The text of n bytes; caller frees. */
char *kl_base64_encode(const void *data, size_t n);
/* The bytes of a text, appended to out. Line breaks are skipped, as in Go. KL_ESYNTAX: the message ends with
 * the position of the first wrong byte, from 1. */
KL_NODISCARD kl_status kl_base64_decode(const char *text, size_t n, kl_buf *out, kl_err *err);

#endif
