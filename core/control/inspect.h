/* inspect.h - the control socket's view of managers: controllers with their queues, informers with their
 * contents. */
#ifndef KL_CONTROL_INSPECT_H
#define KL_CONTROL_INSPECT_H

#include "control/control.h"
#include "manager/manager.h"

/* Adds GET /v1/controllers, /v1/informers, /v1/failing and /v1/reloads. Of several managers (kl_fleet) the
 * first is given, and speaks for all. The managers outlive the control's kl_control_close. */
void kl_inspect_add(kl_control *c, kl_manager *m);
/* All of it, with `now` in seconds of a clock that only counts; a new reference. Asks the manager's loop. */
const kl_value *kl_inspect_snapshot(kl_manager *m);

#endif
