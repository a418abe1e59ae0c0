/* remote.h - the other side of runs whose queue, caches and door are in another process (core/isolate).
 *
 * A worker whose owner has a kl_remote forwards calls of kl_run, kl_reader and kl_shared to these functions.
 * Each has the contract of its namesake in reconciler.h or shared.h. */
#ifndef KL_RUN_REMOTE_H
#define KL_RUN_REMOTE_H

#include "run/reconciler.h"
#include "run/shared.h"

/* Called on the thread of the runs. It outlives readers and stores that refer to it. */
typedef struct kl_remote kl_remote;
struct kl_remote {
    /* of a run */
    void (*call)(kl_run *r, const kl_op *op);
    void (*resolve)(kl_run *r, const char *kind);
    void (*sleep)(kl_run *r, kl_time d);
    void (*log)(kl_run *r, kl_log_level level, const char *message, const char *format, const char *fields);
    void (*spent)(kl_run *r, kl_spent what);
    void (*elided)(kl_run *r);
    void (*count)(kl_run *r, const kl_figure *f);
    const kl_value *(*memo)(kl_run *r);
    kl_status (*memo_set)(kl_run *r, const char *field, const kl_value *v, kl_err *err);
    kl_shared *(*shared)(const kl_remote *o);
    /* of the caches; cluster KL_FLEET_NONE: the run's own */
    const kl_resource *(*resource)(const kl_remote *o, size_t cluster, const char *kind);
    kl_status (*get)(const kl_remote *o, const char *kind, const char *ns, const char *name,
        const kl_value **out, kl_err *err);
    kl_status (*list)(
        const kl_remote *o, const char *kind, const kl_read_query *q, kl_objects *out, kl_err *err);
    /* of kube.shared */
    const kl_value *(*shared_get)(const kl_remote *o, const char *name);
    kl_status (*shared_set)(const kl_remote *o, const char *name, const kl_value *v, kl_err *err);
    kl_status (*shared_add)(
        const kl_remote *o, const char *name, const kl_value *by, const kl_value **out, kl_err *err);
    kl_status (*shared_swap)(const kl_remote *o, const char *name, const kl_value *was, const kl_value *v,
        bool *done, const kl_value **is, kl_err *err);
    char **(*shared_names)(const kl_remote *o, const char *prefix);
};

/* A reader that sends its reads to the other process (controller/reader.c). It is never freed. */
kl_reader *kl_reader_new_remote(const kl_remote *o);

#endif
