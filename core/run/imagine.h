/* imagine.h - runs whose writes are not sent: each is answered by what would come of it (run/simulate.h), and the run's later reads see it (run/view.h).
 *
 *   what is the object now? the run's own writes -> the cache, where that has all of it -> the server
 *   what would it be?       simulated, or (ask) the server's own word with dryRun=All
 *
 * Live reads go to the server, and show the run's own writes, too. Other clusters' objects are simulated likewise, but not remembered. */
#ifndef KL_RUN_IMAGINE_H
#define KL_RUN_IMAGINE_H

#include "run/overlay.h"
#include "run/reconciler.h"

typedef struct kl_imagined {           /* a write that was not sent; borrowed */
    const char *controller, *key;      /* of the run */
    const kl_op *op;
    const kl_resource *resource;
    const char *ns, *name;             /* ns NULL: cluster scope */
    const kl_value *was, *is;          /* NULL: it is not there */
    kl_status status;                  /* it would have failed: was and is say nothing */
    const kl_err *err;                 /* of that */
} kl_imagined;

typedef struct kl_recalled {           /* the caller has it: body a reference, err to be finished */
    kl_status status;
    int code;
    const kl_value *body;
    kl_err err;
} kl_recalled;

/* Of a worker's owner, which it outlives. Any thread, unless said otherwise. */
typedef struct kl_imagination {
    bool ask;                          /* the server is asked what it would do */
    /* One write, as it is answered. May be NULL. */
    void (*wrote)(void *arg, const kl_imagined *x);
    /* An answer from somewhere else, before anything is read or imagined; worker thread. false: there is none. May be NULL. */
    bool (*recall)(void *arg, kl_run *r, const kl_op *op, kl_recalled *out);
    /* The same for lists of the caches. May be NULL. */
    bool (*recall_list)(void *run, const char *kind, const kl_read_query *q, kl_objects *out);
    void *arg;
} kl_imagination;

/* What the run has written and was shown, from its beginning. Borrowed; NULL when its writes are sent. Worker thread. */
kl_overlay *kl_run_overlay(kl_run *r);

#endif
