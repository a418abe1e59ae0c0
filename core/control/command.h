/* command.h - commands of the control socket for `kubelua attach`: read caches, run and pause controllers,
 * run one key.
 *
 *   GET  /v1/object?kind=&key=        GET /v1/list?kind=&namespace=&labels=&fields=&index=&value=&limit=
 *   GET  /v1/params?controller=       POST /v1/params {controller, params}
 *   POST /v1/run {kind or controller, key, dry: true}
 *   POST /v1/reconcile {kind or controller, key}      POST /v1/pause, /v1/resume {controller} */
#ifndef KL_CONTROL_COMMAND_H
#define KL_CONTROL_COMMAND_H

#include "control/control.h"
#include "manager/manager.h"

/* As kl_inspect_add. */
void kl_command_add(kl_control *c, kl_manager *m);

#endif
