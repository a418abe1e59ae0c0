/* elide.h - proves from the cache that a write of a controller would change nothing, so that it need not be
 * sent.
 *
 * A cache is an earlier state of the server. A write that changes nothing in it may be skipped, as if it had
 * been made at that moment, unless the controller knows of a later state: by its own write (sent, failed
 * without an answer, or answered with a resourceVersion that the cache has not reached), or by reading the
 * object from the server. A kl_elide records these later states.
 *
 *   update, merge patch    the object is the same afterwards, by value
 *   apply                  the object has the resourceVersion with which the server answered the same apply
 *                          before; a change by another manager gives it another one
 *
 * No other write is ever skipped. For kinds of which the cache keeps only some fields, only an apply whose
 * answer is not read is. One for each controller, shared by its workers; any thread. */
#ifndef KL_RUN_ELIDE_H
#define KL_RUN_ELIDE_H

#include "client/client.h"

typedef struct kl_elide kl_elide;
typedef struct kl_elide_write kl_elide_write;

/* About `max` objects are remembered (0: 65536), the most recently used ones. */
kl_elide *kl_elide_new(size_t max);
void kl_elide_free(kl_elide *e); /* after the last kl_elide_end */

/* Whether `cached` (NULL: no) is the latest state of the object that the controller knows of. `ns` is NULL
 * for cluster scope. */
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
