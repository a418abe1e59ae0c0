/* file.h - whole files that somebody named: read at once, and never waited for. A path may have become a
 * FIFO, a device, a socket or a directory since it was last read; only regular files are read. Any thread. */
#ifndef KL_BASE_FILE_H
#define KL_BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

/* Appends the file's bytes to `out`, whose ceiling is the most that `what` ("a script") may have.
 * KL_ENOTFOUND: there is no such file; KL_EINVAL: it is no regular file; KL_ETOOBIG; KL_EIO: errno's
 * words. The message begins with the path. */
KL_NODISCARD kl_status kl_file_read(const char *path, const char *what, kl_buf *out, kl_err *err);

#endif
