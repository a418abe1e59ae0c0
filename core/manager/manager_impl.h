/* manager_impl.h - the inside of a manager, for manager.c (its parts), manager_programs.c (what each slot
 * runs), manager_stop.c (how it stops), manager_shadow.c (a candidate), manager_look.c (views for people,
 * probes and metrics) and manager_turns.c (manager/turns.h). */
#ifndef KL_MANAGER_MANAGER_IMPL_H
#define KL_MANAGER_MANAGER_IMPL_H

#include "base/sync.h"
#include "controller/controller.h"
#include "manager/endpoints.h"
#include "manager/manager.h"
#include "events/recorder.h"
#include "webhook/webhooks.h"

typedef struct kl__slot {
    kl_program *program; /* the newest generation */
    int generation;
    kl_controller **controllers;
    size_t n;
} kl__slot;

/* A controller that the newest generation of its script does not have. If it has a successor, of the same
 * name but for another resource, it runs until that is ready. Then it drains, and it is freed when its last
 * run has ended. */
typedef struct kl__retiree {
    kl_controller *c, *successor; /* successor NULL: drained */
    kl__slot *slot;
} kl__retiree;

struct kl_manager {
    kl_manager_options o;
    kl_clock *clock;
    kl_loop *loop, *mapper;
    kl_caches *caches;
    kl_metrics *metrics;
    kl_door *door;
    kl_recorder *recorder;
    struct kl_shadow *shadow;
    kl__slot *shadowed;       /* loop only: the slot that the candidate shadows */
    struct kl_dryrun *dryrun; /* NULL: writes are sent */
    kl_offices *offices;
    kl_endpoints *endpoints;
    kl_webhooks *webhooks;
    kl_reloads *reloads;
    kl_commons *commons;
    struct kl_tally *tally;
    struct kl_flight *flight;
    kl_witnesses witnesses;
    kl_controller_env env;
    /* changed on the loop under mu, read on the loop freely and elsewhere under mu: */
    kl_mutex mu;
    kl__slot **slots;
    size_t n_slots;
    kl__retiree *retired;
    size_t n_retired;
    uint64_t stop_timer; /* loop only */
    bool hurried;        /* likewise */
    bool started, stopping;
    char **webhook_texts; /* of o.webhooks */
    /* copies of o's borrowed texts, because a reload frees the script that named the lease */
    char *ns, *lease, *metrics_address, *health_address, *metrics_cert_dir;
};

/* --- manager.c: on the loop --------------------------------------------------------------- */
void kl__manager_advance(void *manager); /* lets every controller take its next step after a change */
/* Calls fn for the controllers of all slots and for those that retire. */
void kl__manager_each(kl_manager *m, void (*fn)(kl_controller *c));

/* --- manager_programs.c: on the loop ------------------------------------------------------ */
/* The arguments and result of adding or replacing a program. */
typedef struct kl__change {
    kl_manager *m;
    kl__slot *slot; /* NULL: a new one */
    kl_program *program;
    kl_status status;
    kl_err *err;
    int number;
} kl__change;
void kl__manager_apply(void *change);
/* KL_EINVAL if the spec needs namespaces that this process does not watch. */
kl_status kl__manager_check_namespaces(
    const kl_manager *m, const kl_program *p, const kl_controller_spec *s, kl_err *err);
/* Tells the owner which slot's generation is much worse than the one before. */
void kl__manager_broken(void *manager, const char *controller, int generation, const char *why);
/* Drains retired controllers whose successor runs, and frees those that have ended. */
void kl__manager_advance_retired(kl_manager *m);
/* Joins and frees all controllers, which have been drained. */
void kl__manager_free_slots(kl_manager *m);

#endif
