/* mend.h - corrects or refuses code that Lua 5.4.4 compiles wrongly, before a script's function runs. Owner
 * thread. */
#ifndef LKL_MEND_H
#define LKL_MEND_H

#include <lua.h>

/* Checks the function on top of the stack, fresh from lua_load, whose upvalue is not set yet, and replaces it
 * by a corrected one if necessary. Returns the first mistake that cannot be corrected, a static text, with
 * its line; NULL when there is none. chunk: the function's name for lua_load. Raises when memory is short. */
const char *lkl_mend(lua_State *L, const char *chunk, int *line);

#endif
