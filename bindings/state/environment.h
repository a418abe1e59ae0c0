/* environment.h - the environment of a script, and the globals of the library's own files. On the state's
 * thread; each may raise. */
#ifndef LKL_ENVIRONMENT_H
#define LKL_ENVIRONMENT_H

#include "state/border.h"

/* Opens the globals: the parts of Lua that the library's files need, and none that reads files, writes to the
 * terminal, runs bytecode or ends the process. */
void lkl__open_globals(lua_State *L);
/* Makes the script's environment; after lkl__open_library, whose `require` it uses. */
void lkl__open_environment(lua_State *L);
void lkl__push_env(lua_State *L);
/* Pushes a shallow copy of the table at idx. */
void lkl__push_copy(lua_State *L, int idx);

#endif
