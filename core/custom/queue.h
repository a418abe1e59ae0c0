/* queue.h - the changes for one watch whose version needs conversion, in order; an entry leaves once its
 * converted object is known. Owner's lock. */
#ifndef KL_CUSTOM_QUEUE_H
#define KL_CUSTOM_QUEUE_H

#include "custom/convert.h"
#include "store/store.h"

typedef struct kl_convert_queue kl_convert_queue;

/* An entry: a change with its objects converted, or a mark. */
typedef struct kl_convert_entry {
    kl__change change; /* only rv is set for a mark */
    bool mark, initial_end;
} kl_convert_entry;

/* `k` has a conversion webhook and outlives the queue. `olds`: the state before a change is converted, too.
 * `calls`: the webhook can be called; if not, each conversion fails. */
kl_convert_queue *kl_convert_queue_new(const kl__kind *k, bool olds, bool calls);
void kl_convert_queue_free(kl_convert_queue *q); /* NULL is fine */
void kl_convert_queue_push(kl_convert_queue *q, const kl__change *c);
void kl_convert_queue_mark(kl_convert_queue *q, uint64_t rv, bool initial_end);
size_t kl_convert_queue_len(const kl_convert_queue *q);

/* KL_OK: *out is the next entry, borrowed until the next call. KL_ENOTFOUND: there is none. KL_EAGAIN: a
 * webhook call is needed first, see kl_convert_queue_conversions. Other failures: it cannot be converted. */
KL_NODISCARD kl_status kl_convert_queue_next(kl_convert_queue *q, const kl_convert_entry **out, kl_err *err);
kl_conversions *kl_convert_queue_conversions(kl_convert_queue *q); /* borrowed */

#endif
