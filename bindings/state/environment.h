/* environment.h - what a script can see, and the globals that the library's own files run in. On the state's
 * thread; each may raise. */
#ifndef LKL_ENVIRONMENT_H
#define LKL_ENVIRONMENT_H

#include "state/border.h"

/* The globals: what the library's files need of Lua, and nothing that reads files, writes to the terminal,
 * runs bytecode or ends the process. */
void lkl__open_globals(lua_State *L);
/* The script's environment; after lkl__open_library, whose `require` it has. */
void lkl__open_environment(lua_State *L);
void lkl__push_env(lua_State *L);
/* Pushes a shallow copy of the table at idx. */
void lkl__push_copy(lua_State *L, int idx);

#endif
