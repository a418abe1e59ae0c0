/* controller_impl.h - a controller, for controller.c, crew.c and controller_look.c. */
#ifndef KL_CONTROLLER_CONTROLLER_IMPL_H
#define KL_CONTROLLER_CONTROLLER_IMPL_H

#include <stdatomic.h>

#include "base/sync.h"
#include "controller/batch.h"
#include "controller/controller.h"
#include "controller/probation.h"
#include "controller/rehearse.h"
#include "controller/trigger.h"

#define KL_WORKERS_DEFAULT 1

/* Members without a named guard belong to the manager's loop. */
struct kl_controller {
    kl_controller_env env;
    char *name, *resource;
    kl_workqueue *queue;
    kl_controller_metrics *metrics;
    kl_elide *elide;
    kl_own_writes *own_writes;
    kl_shared *memos;
    kl_mutex mu;
    kl_wiring *current KL_GUARDED_BY(mu);  /* workers take it from any thread */
    _Atomic(const kl_logic *) present;     /* its logic, to compare with */
    kl_worker **workers KL_GUARDED_BY(mu); /* changed on the loop, poked from any thread */
    size_t n_workers KL_GUARDED_BY(mu);
    atomic_size_t crew;  /* n_workers, readable without the lock */
    kl_worker **leaving; /* draining, too many after a reload */
    size_t n_leaving;
    kl_wiring *next;
    /* the number of wirings not freed yet, retired ones too: each points to our queue */
    size_t wirings;
    kl_batch batch;          /* of wake-ups */
    _Atomic(kl_gate *) gate; /* the office's; NULL: all keys are ours */
    /* its office; the next one, once its workers have ended, or NULL */
    kl_office *office, *moving;
    uint64_t terms; /* how often it began to work */
    bool working;   /* it has workers, leaving ones included */
    bool drained, stopped;
    uint64_t resync_timer;
    kl_time resync;
    uint64_t resync_count;
    /* NULL: no detector of write loops */
    kl_fights *fights;
    kl_probation *probation;   /* NULL: its generations are not compared */
    kl_triggers *triggers;     /* `every` and `cron` of the current generation */
    kl_rehearsal **rehearsals; /* loop only */
    size_t n_rehearsals;
    const kl_value *params; /* params set manually for a generation, or NULL */
    int params_of;
    char *told;         /* why the next generation waits, as last logged */
    atomic_bool paused; /* see kl_controller_pause */
    atomic_bool turn;   /* with turns: a key may be taken */
};

/* wanted: the number of workers of a spec; fit: starts or drains workers to reach `want`; reap: joins ended
 * workers in `leaving`, or all. Loop. */
size_t kl__controller_wanted(kl_controller *c, const kl_controller_spec *s);
void kl__controller_fit(kl_controller *c, size_t want);
void kl__controller_reap(kl_controller *c, bool all);
/* Ends the dry runs that have finished, or all. Loop. */
void kl__controller_reap_rehearsals(kl_controller *c, bool all);
/* No worker runs any more, so its office may be released. Loop. */
void kl__controller_rest(kl_controller *c);

#endif
