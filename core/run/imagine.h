/* imagine.h - the interface of dry-run writes for a worker: each write is answered with its simulated result,
 * and the run's later reads see it. controller/dry_writes.h implements it. */
#ifndef KL_RUN_IMAGINE_H
#define KL_RUN_IMAGINE_H

#include "run/overlay.h"
#include "run/reconciler.h"

typedef struct kl_imagined {      /* a write that was not sent; borrowed */
    const char *controller, *key; /* of the run */
    const kl_op *op;
    const kl_resource *resource;
    const char *ns, *name;    /* ns NULL: cluster scope */
    const kl_value *was, *is; /* NULL: it does not exist */
    kl_status status;         /* it would have failed: was and is are unset */
    const kl_err *err;        /* of that */
} kl_imagined;

typedef struct kl_recalled { /* owned by the caller: body is a reference, err must be finished */
    kl_status status;
    int code;
    const kl_value *body;
    kl_err err;
} kl_recalled;

/* The operations (implemented by controller/dry_writes.h), since this room does not know the caches. Worker
 * thread. */
typedef struct kl_imagine_ops {
    /* The call of such a run; at KL_FLEET_NONE: of its own cluster. As kl_door_write. */
    uint64_t (*submit)(kl_run *r, const kl_op *op, size_t at, kl_reply_fn *done, void *arg);
    /* The run's view of the caches over `of`, which outlives it; the caller frees it with view_free. */
    kl_reader *(*view)(kl_run *r, kl_reader *of);
    void (*view_free)(kl_reader *view); /* NULL is fine */
} kl_imagine_ops;

/* Of a worker's owner, which it outlives. Any thread, unless said otherwise. */
typedef struct kl_imagination {
    const kl_imagine_ops *ops;
    bool ask; /* the server computes the result */
    /* One write, as it is answered. May be NULL. */
    void (*wrote)(void *arg, const kl_imagined *x);
    /* An answer from elsewhere, before anything is read or simulated; worker thread. false: none. May be
     * NULL. */
    bool (*recall)(void *arg, kl_run *r, const kl_op *op, kl_recalled *out);
    /* The same for lists of the caches. May be NULL. */
    bool (*recall_list)(void *run, const char *kind, const kl_read_query *q, kl_objects *out);
    void *arg;
} kl_imagination;

/* The writes and reads of the run, from its beginning. Borrowed; NULL when its writes are sent. Worker
 * thread. */
kl_overlay *kl_run_overlay(kl_run *r);

#endif
