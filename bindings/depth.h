/* depth.h - how many values the stack of a script's coroutine may hold.
 *
 * Lua's own limit is a million. What it does in C, without a hook, grows with the square of that: a table that is its own `__call` has its arguments shifted
 * once for each slot there is (five minutes), and each protected call that passes an error on looks at every call below it. With 32,768 values the longest
 * of these takes a third of a second.
 *
 * The allocator (ceiling.c) refuses a stack that would be larger; who asks for many slots at once asks lkl_depth_room. Owner thread. */
#ifndef LKL_DEPTH_H
#define LKL_DEPTH_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#define LKL_DEPTH_MAX 32768

/* Whether the allocator is asked for a stack of that coroutine, the one that runs, with more than LKL_DEPTH_MAX values. For requests above LKL_DEPTH_BYTES. */
#define LKL_DEPTH_BYTES ((size_t)LKL_DEPTH_MAX * 16)
bool lkl_depth_passes(lua_State *L, const void *block, size_t had, size_t wanted);

/* lua_checkstack for a count that a script has a say in. */
bool lkl_depth_room(lua_State *L, size_t n);

/* Whether this Lua keeps its calls where we look for them; false: stacks are Lua's own business. Once per process, on any state. */
bool lkl_depth_known(lua_State *L);

#endif
