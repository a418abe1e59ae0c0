/* durable.h - objects of the server on disk (core/archive): restored at the start, written before a write is
 * answered. Without an archive nothing of it happens. */
#ifndef KL_SERVER_DURABLE_H
#define KL_SERVER_DURABLE_H

#include "server/state.h"

/* Opens the archive. *birth (0: none) rises above every version that was given in earlier lives. Before
 * kl__store_begin. */
KL_NODISCARD kl_status kl__durable_open(kl_server *s, const char *dir, uint64_t *birth, kl_err *err);
/* Everything that was there is there again. Under the lock, before the first change. */
KL_NODISCARD kl_status kl__durable_restore(kl_server *s, kl_err *err);
/* Writes what is queued; idempotent. Without the lock. */
void kl__durable_close(kl_server *s);

/* A change of the store, as it happens. Under the lock. */
void kl__durable_change(kl_server *s, const kl__bucket *b, const kl__change *c);
/* The answer just given leaves when all that it may speak of is on disk; if that fails the changes are undone
 * and it is a 500 that says why. Under the lock, inside the handler. */
void kl__durable_hold(kl_server *s, kl_httpd_request *http);
/* Waits for the same; without the lock. */
KL_NODISCARD kl_status kl__durable_settle(kl_server *s, kl_err *err);

#endif
