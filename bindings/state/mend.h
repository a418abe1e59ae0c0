/* mend.h - what Lua 5.4.4 compiles wrong, put right or refused before a script's function runs. Owner
 * thread. */
#ifndef LKL_MEND_H
#define LKL_MEND_H

#include <lua.h>

/* For the function on top of the stack, which lua_load gave and whose upvalue is not set yet: in its place
 * stands one that is compiled right, or it stays. What cannot be put right is the result, with its line; NULL
 * when there is nothing. Static text; chunk: its name for lua_load. Raises when memory is short. */
const char *lkl_mend(lua_State *L, const char *chunk, int *line);

#endif
