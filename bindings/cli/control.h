/* control.h - both ends of the control socket (control/control.h): in `kubelua run`, and in the commands that
 * talk to it. */
#ifndef KL_CLI_CONTROL_H
#define KL_CLI_CONTROL_H

#include <lua.h>

#include "cli/cli.h"
#include "control/control.h"

/* Adds the command and its scripts to GET /v1/. */
kl_control *cli_control_new(const char *command, const cli_list *scripts);
/* Listens at the path of --control. NULL: at the default path, with only a warning when that fails; "off":
 * nowhere. Returns the exit status, after a message. */
int cli_control_listen(kl_control *c, const char *command, const char *place);

/* Pushes a table for lua/kubelua/cli/control.lua:
 *   sockets()   sorted { path = , pid = } of living processes in the usual directory; the sockets of dead
 *               ones are removed
 *   call(path, method, target, body or nil, seconds or nil)
 *               the HTTP status and the answer's text; nil and why when there is none. 0 seconds: no limit */
void cli_control_push(lua_State *L);

#endif
