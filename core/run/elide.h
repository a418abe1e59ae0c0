/* elide.h - finds writes of a controller that would change nothing, proved from the cache, so that they need
 * not be sent.
 *
 * A cache is an earlier state of the server. A write that changes nothing in it may be skipped, as if it had
 * been made at that moment, unless the controller knows of a later state: by its own write (sent, failed
 * without an answer, or answered with a resourceVersion that the cache has not reached), or by reading the
 * object from the server. This is the record of that knowledge.
 *
 *   update, merge patch    the object is the same afterwards, by value
 *   apply                  the object has the resourceVersion with which the server answered the same apply
 *                          before; a change by another manager gives it another one
 *
 * No other write is ever skipped, and none of a kind of which the cache keeps only a part, except an apply
 * whose answer is not read. One for each controller, shared by its workers; any thread. */
#ifndef KL_RUN_ELIDE_H
#define KL_RUN_ELIDE_H

#include "client/client.h"

typedef struct kl_elide kl_elide;
typedef struct kl_elide_write kl_elide_write;

/* About `max` objects are remembered (0: 65536), the most recently used ones. */
kl_elide *kl_elide_new(size_t max);
void kl_elide_free(kl_elide *e); /* no write is under way */

/* Whether the cache is known to be behind on an object, which is `cached` (NULL: never provable). `ns` is
 * NULL for cluster scope. */
bool kl_elide_fresh(kl_elide *e, const char *kind, const char *ns, const char *name, const kl_value *cached);
/* Whether op, whose namespace is `ns`, would change nothing. */
bool kl_elide_proves(kl_elide *e, const kl_op *op, const char *ns, const kl_value *cached);

/* A write is sent, and answered: each begin needs one end, which frees its result. body is borrowed, NULL on
 * failure. */
kl_elide_write *kl_elide_begin(kl_elide *e, const kl_op *op, const char *ns);
void kl_elide_end(kl_elide_write *w, kl_status st, const kl_value *body);
/* A read was answered by the server. */
void kl_elide_saw(kl_elide *e, const kl_op *op, const char *ns, const kl_value *body);

#endif
