/* converse.h - a session on this process's standard streams. */
#ifndef KL_TERMINAL_CONVERSE_H
#define KL_TERMINAL_CONVERSE_H

#include <lua.h>

/* env.converse(session, input, tty): runs a session of stream.h to its end and returns the exit status;
 * raises its error. */
int cli_converse(lua_State *L);

#endif
