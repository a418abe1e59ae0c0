/* simulate.h - the scripts of controllers/simulate, which every binary carries: they play a cluster's
 * controllers and kubelets for the embedded API server. Any thread. */
#ifndef LKL_SIMULATE_H
#define LKL_SIMULATE_H

#include "run/reconciler.h"

/* More than there are. */
#define LKL_SIMULATE_MOST 32

/* Their names, sorted: "pods" is controllers/simulate/pods.lua. Static. */
size_t lkl_simulate_names(const char *names[LKL_SIMULATE_MOST]);
/* Those that "nodes,pods" names; "" names all. KL_EINVAL says which name there is not, and what was perhaps
 * meant. */
KL_NODISCARD kl_status lkl_simulate_chosen(
    const char *words, const char *names[LKL_SIMULATE_MOST], size_t *n, kl_err *err);
KL_NODISCARD kl_status lkl_simulate_load(const char *name, kl_program **out, kl_err *err);

#endif
