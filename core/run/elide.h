/* elide.h - proves from the cache that a write of a controller would change nothing: such a write is skipped.
 *
 * A cache shows an earlier state of the server. A write that would have changed nothing in that state may be
 * skipped, unless the controller knows of a later state. It knows one from its own writes (under way, failed
 * without an answer, or answered with a resourceVersion that the cache has not reached), and from reading the
 * object from the server. A kl_elide records these later states. The proof depends on the write:
 *
 *   update, merge patch    the object stays the same, by value
 *   apply                  the server answered the same apply before, with the resourceVersion that the
 *                          object still has; a change by another manager gives it another version
 *
 * No other write is skipped. Where the cache keeps only some fields of a kind, only an apply whose answer
 * nobody reads is skipped. A controller has one kl_elide, which its workers share. Any thread. */
#ifndef KL_RUN_ELIDE_H
#define KL_RUN_ELIDE_H

#include "client/client.h"

typedef struct kl_elide kl_elide;
typedef struct kl_elide_write kl_elide_write;

/* Remembers about `max` objects (0: 65536), the most recently used ones. */
kl_elide *kl_elide_new(size_t max);
void kl_elide_free(kl_elide *e); /* after the last kl_elide_end */

/* Whether `cached` is the latest state of the object that the controller knows of; false for NULL. `ns` is
 * NULL for cluster scope. */
bool kl_elide_fresh(kl_elide *e, const char *kind, const char *ns, const char *name, const kl_value *cached);
/* Whether op, in the namespace `ns`, provably changes nothing. `cached`: the object in the cache, or NULL. */
bool kl_elide_proves(kl_elide *e, const kl_op *op, const char *ns, const kl_value *cached);

/* Records that a write is sent, and then its answer. Each begin needs one end, which frees w. `body` is
 * borrowed, and NULL on failure. */
kl_elide_write *kl_elide_begin(kl_elide *e, const kl_op *op, const char *ns);
void kl_elide_end(kl_elide_write *w, kl_status st, const kl_value *body);
/* Records the server's answer to a read: an object, or a list when op has no name. */
void kl_elide_saw(kl_elide *e, const kl_op *op, const char *ns, const kl_value *body);

#endif
