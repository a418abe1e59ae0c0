/* depth.h - how many values the stack of a script's coroutine may hold.
 *
 * Lua's own limit is a million. What it does in C, without a hook, grows with the square of that: a table
 * that is its own `__call` has its arguments shifted once for each slot there is (five minutes), and each
 * protected call that passes an error on looks at every call below it.
 *
 * LKL_DEPTH_MAX values always fit. A stack grows to twice its size, so it may come to hold almost twice as
 * many before it is refused: then the longest of these takes a second or two.
 *
 * The allocator (ceiling.c) refuses a stack that would be larger; who asks for many slots at once asks
 * lkl_depth_room. Owner thread. */
#ifndef LKL_DEPTH_H
#define LKL_DEPTH_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#define LKL_DEPTH_MAX 32768
#define LKL_DEPTH_TEXT "32768"

/* Whether the allocator is asked for a stack of that coroutine, the one that runs, that already has room
 * for LKL_DEPTH_MAX values. For requests above LKL_DEPTH_BYTES: twice as many, and what Lua adds. */
#define LKL_DEPTH_BYTES (((size_t)LKL_DEPTH_MAX * 2 + 5) * 16)
bool lkl_depth_passes(lua_State *L, const void *block, size_t had, size_t wanted);
/* Whether a block looks like a stack that grows where it is. A Lua that does so has no addresses in its
 * calls meanwhile: nobody may look at them. */
bool lkl_depth_in_place(const void *block, size_t had, size_t wanted);

/* lua_checkstack for a count that a script has a say in. */
bool lkl_depth_room(lua_State *L, size_t n);

/* Whether this Lua keeps its calls where we look for them; false: stacks are Lua's own business. Once per
 * process, on any state. */
bool lkl_depth_known(lua_State *L);

#endif
