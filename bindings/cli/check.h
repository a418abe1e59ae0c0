/* check.h - what kubelua check has from C. */
#ifndef KL_CLI_CHECK_H
#define KL_CLI_CHECK_H

#include <lua.h>

/* Pushes env.programs (check.c). */
void cli_check_push(lua_State *L);

#endif
