/* simulate.h - the scripts of controllers/simulate, which every binary carries: they stand in for a cluster's
 * controllers and kubelets on the embedded API server. Any thread. */
#ifndef LKL_SIMULATE_H
#define LKL_SIMULATE_H

#include "run/reconciler.h"

/* An upper limit of their number. */
#define LKL_SIMULATE_MOST 32

/* Their names, sorted: "pods" is controllers/simulate/pods.lua. Static. */
size_t lkl_simulate_names(const char *names[LKL_SIMULATE_MOST]);
/* The scripts named in "nodes,pods"; "" names all. KL_EINVAL names an unknown one, with a suggestion. */
KL_NODISCARD kl_status lkl_simulate_chosen(
    const char *words, const char *names[LKL_SIMULATE_MOST], size_t *n, kl_err *err);
KL_NODISCARD kl_status lkl_simulate_load(const char *name, kl_program **out, kl_err *err);

#endif
