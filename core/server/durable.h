/* durable.h - objects of the server on disk (core/archive): restored at the start, written before a write is
 * answered. Without an archive these functions do nothing. */
#ifndef KL_SERVER_DURABLE_H
#define KL_SERVER_DURABLE_H

#include "server/state.h"

/* Opens the archive. *birth (0: none) is above every resourceVersion of earlier processes. Before
 * kl__store_begin. */
KL_NODISCARD kl_status kl__durable_open(kl_server *s, const char *dir, uint64_t *birth, kl_err *err);
/* Restores all objects. Under the lock, before the first change. */
KL_NODISCARD kl_status kl__durable_restore(kl_server *s, kl_err *err);
/* Writes what is queued; idempotent. Without the lock. */
void kl__durable_close(kl_server *s);

/* A change of the store, as it happens. Under the lock. */
void kl__durable_change(kl_server *s, const kl__bucket *b, const kl__change *c);
/* Delays the answer just given until all changes that it may show are on disk. If writing fails, the changes
 * are undone, and the answer becomes a 500 with the reason. Under the lock, inside the handler. */
void kl__durable_hold(kl_server *s, kl_httpd_request *http);
/* Waits until all changes so far are on disk; without the lock. */
KL_NODISCARD kl_status kl__durable_settle(kl_server *s, kl_err *err);

#endif
