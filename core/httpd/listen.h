/* listen.h - a listening TCP or Unix socket for an address as users write it. Any thread. */
#ifndef KL_HTTPD_LISTEN_H
#define KL_HTTPD_LISTEN_H

#include <stdbool.h>
#include <netinet/in.h>
#include <stdint.h>
#include "base/err.h"

/* "127.0.0.1:8080", "localhost:0", "[::1]:8080"; ":8080" means every address, both families; "unix:PATH" as
 * httpd/unixsock.h says. *fd is non-blocking and the caller's to close. Errors name the address and the
 * reason. A host name is resolved, which may wait. */
KL_NODISCARD kl_status kl_listen(const char *address, int *fd, kl_err *err);
/* Whether only this machine can reach an address to listen on: a loopback name, or a path. */
bool kl_listen_loopback(const char *address);
/* Whether a Host header names this machine's loopback: localhost, 127.x.y.z, [::1]; with or without a
 * port. */
bool kl_listen_loopback_name(const char *host);
/* The IPv4 address at which other machines would look for what listens at `address` (of kl_listen_address):
 * that, or for loopback, any and IPv6 an address of this machine. False: there is none. *port 0: it is a
 * path. */
bool kl_listen_elsewhere(const char *address, char ip[INET_ADDRSTRLEN], uint16_t *port);
/* Whether no web page of a stranger can have this Host: it is localhost, an address, or the name of a Service
 * ("web.default.svc"), which no stranger can lead to this machine. */
bool kl_listen_own_name(const char *host);
/* The address at which fd can be reached from this machine: "127.0.0.1:PORT" when it listens on every
 * address, "unix:PATH" (port 0) for a Unix socket. The caller frees. */
char *kl_listen_address(int fd, uint16_t *port);

#endif
