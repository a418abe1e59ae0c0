/* inspect.h - the control socket's view of managers: controllers with their queues, informers with their
 * contents. */
#ifndef KL_CONTROL_INSPECT_H
#define KL_CONTROL_INSPECT_H

#include "control/control.h"
#include "manager/manager.h"

/* Adds GET /v1/controllers, /v1/informers, /v1/failing and /v1/reloads. `m`: the manager, or the first of
 * several (kl_fleet); the answers cover all. The managers outlive kl_control_close. */
void kl_inspect_add(kl_control *c, kl_manager *m);
/* All of these answers as one value, with `now` in seconds of a monotonic clock; a new reference. Waits for
 * the manager's loop. */
const kl_value *kl_inspect_snapshot(kl_manager *m);

#endif
