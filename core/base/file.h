/* file.h - reads whole files whose paths a user gave, without ever waiting. A path may have become a FIFO, a
 * device, a socket or a directory since it was last read; only regular files are read. Any thread. */
#ifndef KL_BASE_FILE_H
#define KL_BASE_FILE_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

/* Appends the file's bytes to `out`, whose ceiling is the largest allowed size of `what` ("a script").
 * KL_ENOTFOUND: the file does not exist; KL_EINVAL: it is not a regular file; KL_ETOOBIG: it is larger;
 * KL_EIO: it cannot be read, with errno's text. The message starts with the path. */
KL_NODISCARD kl_status kl_file_read(const char *path, const char *what, kl_buf *out, kl_err *err);
/* The same for a path from a command line, where a shell may put a pipe: `<(command)`, /dev/stdin. Such a
 * pipe is read to its end, once: KL_ETIMEOUT when nothing comes for KL_FILE_PATIENCE. A FIFO with a name is
 * refused. Waits. */
KL_NODISCARD kl_status kl_file_read_given(const char *path, const char *what, kl_buf *out, kl_err *err);
#define KL_FILE_PATIENCE KL_SECONDS(30)

/* Opens a file to write a secret into it: creates it if it is missing, empties it, and makes it readable by
 * its owner alone (0600), even if others could read it before. A file or a link of another user is refused
 * with KL_EFORBIDDEN: others who may write into the directory can neither get the secret nor redirect it.
 * Anything but a regular file, such as /dev/stdout, is opened unchanged; a FIFO without a reader is KL_EIO.
 * The caller closes *fd. */
KL_NODISCARD kl_status kl_file_open_private(const char *path, int *fd, kl_err *err);

/* Opens a file to append to it, without waiting: creates it for its owner alone (0600) if it is missing. A
 * file of another user but root, a link of another user (KL_EFORBIDDEN) and a FIFO without a reader (KL_EIO)
 * are refused. Writes to a full pipe return EAGAIN. The caller closes *fd. */
KL_NODISCARD kl_status kl_file_open_log(const char *path, int *fd, kl_err *err);

/* A file of a command line that is read piece by piece because it is too large to hold: a regular file, a
 * shell's pipe, or a FIFO, which may have no writer yet. The path is borrowed. Failures are those of
 * kl_file_read_given. Owner thread. */
typedef struct kl_file kl_file;
KL_NODISCARD kl_status kl_file_open_given(const char *path, kl_file **out, kl_err *err);
void kl_file_close(kl_file *f); /* NULL: nothing */
/* The next bytes, at most `room`; *n is 0 at the end. Waits for a pipe, at most KL_FILE_PATIENCE. */
KL_NODISCARD kl_status kl_file_next(kl_file *f, char *piece, size_t room, size_t *n, kl_err *err);

#endif
