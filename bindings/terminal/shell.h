/* shell.h - the C part of `kubelua shell`. */
#ifndef KL_TERMINAL_SHELL_H
#define KL_TERMINAL_SHELL_H

#include <lua.h>

/* Pushes the function terminal(history, complete): see shell.c. */
void cli_shell_push(lua_State *L);

#endif
