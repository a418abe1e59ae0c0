/* mend.h - code that Lua 5.4.4 compiles wrongly: corrected or refused before a script's function runs. Owner
 * thread. */
#ifndef LKL_MEND_H
#define LKL_MEND_H

#include <lua.h>

/* Checks the function on top of the stack, fresh from lua_load, whose upvalue is not set yet, and replaces it
 * by a corrected one if necessary. Returns the mistake that cannot be corrected, with its line; NULL when
 * there is none. Static text; chunk: its name for lua_load. Raises when memory is short. */
const char *lkl_mend(lua_State *L, const char *chunk, int *line);

#endif
