/* check.h - the C part of kubelua check. */
#ifndef KL_CLI_CHECK_H
#define KL_CLI_CHECK_H

#include <lua.h>

/* Pushes env.programs (check.c). */
void cli_check_push(lua_State *L);

#endif
