/* spec_diff.h - describes for people how the specs of a new generation differ from the old ones: "answers:
 * workers 1 -> 4, new informer v1/Secret". The behaviour of functions cannot be compared. Any thread. */
#ifndef KL_CONTROLLER_SPEC_DIFF_H
#define KL_CONTROLLER_SPEC_DIFF_H

#include "base/buf.h"
#include "run/reconciler.h"

/* Appends the differences; nothing when the specs are equal. */
void kl_spec_diff(const kl_program *old, const kl_program *now, kl_buf *out);
/* The same for one controller, without its name. */
void kl_spec_diff_controller(const kl_controller_spec *old, const kl_controller_spec *now, kl_buf *out);

#endif
