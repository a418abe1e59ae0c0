/* gzip.h - bytes in gzip's form, for answers to clients that take it. Any thread. */
#ifndef KL_BASE_GZIP_H
#define KL_BASE_GZIP_H

#include "base/buf.h"

/* Adds the bytes to `out`, compressed at the fastest level. KL_ETOOBIG above out's ceiling. */
KL_NODISCARD kl_status kl_gzip(const void *data, size_t n, kl_buf *out);

#endif
