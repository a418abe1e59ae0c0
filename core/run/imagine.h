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
    const kl_err *err;        /* the failure, when status is not KL_OK */
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
    /* Performs a call of a dry run in cluster `at` (KL_FLEET_NONE: its own), as kl_door_write. */
    uint64_t (*submit)(kl_run *r, const kl_op *op, size_t at, kl_reply_fn *done, void *arg);
    /* The run's view of the caches over `of`, which outlives it; the caller frees it with view_free. */
    kl_reader *(*view)(kl_run *r, kl_reader *of);
    void (*view_free)(kl_reader *view); /* NULL is fine */
} kl_imagine_ops;

/* Outlives the worker's owner, which refers to it. Any thread, unless stated otherwise. */
typedef struct kl_imagination {
    const kl_imagine_ops *ops;
    bool ask; /* the server computes the result */
    /* Called for each write when it is answered. May be NULL. */
    void (*wrote)(void *arg, const kl_imagined *x);
    /* Answers a call (a shadow: from the live run) before it is read or simulated; worker thread. False:
     * there is no answer. May be NULL. */
    bool (*recall)(void *arg, kl_run *r, const kl_op *op, kl_recalled *out);
    /* Answers a list of the caches likewise. May be NULL. */
    bool (*recall_list)(void *run, const char *kind, const kl_read_query *q, kl_objects *out);
    void *arg;
} kl_imagination;

/* The writes and reads of the run, from its beginning. Borrowed; NULL when its writes are sent. Worker
 * thread. */
kl_overlay *kl_run_overlay(kl_run *r);

#endif
