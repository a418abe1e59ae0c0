/* options.h - checks of the options of calls, as kube-apiserver makes them before anything else. Pure; any
 * thread. */
#ifndef KL_VERBS_OPTIONS_H
#define KL_VERBS_OPTIONS_H

#include "schema/status.h"

/* A dry run is "All" of the stages of a call. */
void kl__dry_run_check(const kl_value *stages, kl__causes *causes);
/* The options of a deletion: 422. */
KL_NODISCARD kl_status kl__delete_check(const kl_value *options, kl_err *err);

#endif
