/* depth.h - limits the number of values on the stack of a script's coroutine.
 *
 * Lua's own limit is a million. Some work in C, where no hook fires, grows with the square of that number: a
 * table that is its own `__call` has its arguments shifted once for each slot (five minutes), and each
 * protected call that passes an error on visits every call below it.
 *
 * LKL_DEPTH_MAX values always fit. A stack grows to twice its size, so it may hold almost twice as many
 * before growth is refused. The slowest case then takes a second or two.
 *
 * The allocator (ceiling.c) refuses a larger stack; code that needs many slots at once calls lkl_depth_room.
 * Owner thread. */
#ifndef LKL_DEPTH_H
#define LKL_DEPTH_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#define LKL_DEPTH_MAX 32768
#define LKL_DEPTH_TEXT "32768"
/* The values in the largest allowed stack. */
#define LKL_DEPTH_STACK ((size_t)LKL_DEPTH_MAX * 2)

/* Whether the allocation is for the stack of the running coroutine, which already has room for LKL_DEPTH_MAX
 * values. For requests above LKL_DEPTH_BYTES: twice as many, plus Lua's extra. */
#define LKL_DEPTH_BYTES ((LKL_DEPTH_STACK + 5) * 16)
bool lkl_depth_passes(lua_State *L, const void *block, size_t had, size_t wanted);
/* Whether a block looks like a stack that grows in place. Meanwhile Lua's calls contain no valid addresses
 * and must not be read. */
bool lkl_depth_in_place(const void *block, size_t had, size_t wanted);

/* The number of values that L's active calls hold. Its cost grows with the number of calls. */
size_t lkl_depth_used(lua_State *L);

/* lua_checkstack for a count that a script influences. */
bool lkl_depth_room(lua_State *L, size_t n);

/* Whether this Lua's calls have the expected layout; false: stacks are not limited. Once per process, on any
 * state. */
bool lkl_depth_known(lua_State *L);

#endif
