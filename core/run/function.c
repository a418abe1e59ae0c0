/* function.c - wraps one C function as a program: a run starts and ends in the same call. */
#include "run/function.h"

#include <string.h>

#include "base/mem.h"

typedef struct function_program {
    kl_program base; /* first */
    char *name;
    kl_controller_spec spec;
    kl_reconcile_fn *fn;
    void *arg;
} function_program;

static function_program *self(kl_program *p) { return (function_program *)(void *)p; }

static void *open_state(kl_program *p, size_t controller, const atomic_bool *stop, kl_err *err)
{
    (void)controller, (void)err, (void)stop;
    return p;
}

static void close_state(void *state) { (void)state; }

/* Whether a conflict is about an old resourceVersion: the next run has a fresh one. Fields of another manager
 * stay a conflict. */
static bool is_stale(const kl_err *err)
{
    return err->status == KL_ECONFLICT && !(err->details && strstr(err->details, "FieldManagerConflict"));
}

static kl_run_state start(void *state, kl_run *run)
{
    function_program *p = self(state);
    kl_err err = KL_ERR_INIT;
    kl_time after = 0;
    kl_status st = p->fn(run, p->arg, &after, &err);
    if (st)
        kl_run_finish(
            run, is_stale(&err) ? KL_RESULT_CONFLICT : KL_RESULT_ERROR, 0, kl_err_message(&err), NULL);
    else
        kl_run_finish(run, after > 0 ? KL_RESULT_AFTER : KL_RESULT_DONE, after, NULL, NULL);
    kl_err_fini(&err);
    return KL_RUN_DONE;
}

static void program_free(kl_program *base)
{
    function_program *p = self(base);
    kl_controller_spec_fini(&p->spec);
    kl_free(p->name);
    kl_free(p);
}

kl_program *kl_program_of_function(const char *name, kl_controller_spec *spec, kl_reconcile_fn *fn, void *arg)
{
    /* A run never waits, so there is nothing to resume or abandon; and no spec of ours names functions for
     * the mapper. */
    static const kl_program_ops ops = {
        .open = open_state, .close = close_state, .start = start, .free = program_free};
    function_program *p = kl_new(function_program);
    p->name = kl_strdup(name);
    p->spec = *spec;
    *spec = (kl_controller_spec){0};
    p->fn = fn;
    p->arg = arg;
    p->base.ops = &ops;
    p->base.name = p->name;
    p->base.specs = &p->spec;
    p->base.n_specs = 1;
    atomic_init(&p->base.refs, 1);
    return &p->base;
}
