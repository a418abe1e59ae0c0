/* spec_diff.h - what a new generation changes in the specs of the old one, for people: "answers: workers 1 ->
 * 4, new informer v1/Secret". The behaviour of functions cannot be compared. Any thread. */
#ifndef KL_CONTROLLER_SPEC_DIFF_H
#define KL_CONTROLLER_SPEC_DIFF_H

#include "base/buf.h"
#include "run/reconciler.h"

/* Appends them; nothing when the tables say the same. */
void kl_spec_diff(const kl_program *old, const kl_program *now, kl_buf *out);
/* The same of one controller, without its name. */
void kl_spec_diff_controller(const kl_controller_spec *old, const kl_controller_spec *now, kl_buf *out);

#endif
