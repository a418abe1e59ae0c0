/* unixsock.h - listening Unix sockets, for the user who owns the process. Any thread. */
#ifndef KL_HTTPD_UNIXSOCK_H
#define KL_HTTPD_UNIXSOCK_H

#include <stdbool.h>
#include <sys/types.h>
#include "base/err.h"

/* A non-blocking socket at `path`, mode 0600, the caller's to close and to unlink. A missing directory is
 * created (0700); one in which others may change names is refused, unless it is sticky (/tmp). A socket on
 * which no process listens any more is replaced; one in use is KL_EEXISTS, with its pid in the message. */
KL_NODISCARD kl_status kl_unixsock_listen(const char *path, int *fd, kl_err *err);
/* Whether a process listens at `path`; *pid (may be NULL) is its pid, 0 when the kernel does not tell. Never
 * waits. */
bool kl_unixsock_alive(const char *path, pid_t *pid);
/* The process and user at the other end of fd; false when fd is not a Unix socket. */
bool kl_unixsock_peer(int fd, pid_t *pid, uid_t *uid);

#endif
