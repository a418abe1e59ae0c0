/* depth.c - the stack slots in use, computed from the calls under way. A call's record (`i_ci` of a
 * lua_Debug) begins with the address of its function on the stack, in every Lua 5.4; lkl_depth_known checks
 * it. */
#include "state/depth.h"

#include <limits.h>
#include <stdatomic.h>

/* Bytes of a value on the stack. */
#define SLOT 16
/* Lua's own limit always grants this many. */
#define FEW 1000

static atomic_int known; /* 0: not looked at; 1: yes; -1: no */

static const char *function_of(const lua_Debug *ar) { return *(const char *const *)(const void *)ar->i_ci; }

/* The outermost call of L, of which there is one. */
static void outermost(lua_State *L, lua_Debug *ar)
{
    int low = 0, high = 1;
    while (lua_getstack(L, high, ar)) {
        low = high;
        high *= 2;
    }
    while (low + 1 < high) {
        int middle = low + (high - low) / 2;
        if (lua_getstack(L, middle, ar))
            low = middle;
        else
            high = middle;
    }
    (void)lua_getstack(L, low, ar);
}

size_t lkl_depth_used(lua_State *L)
{
    lua_Debug top, bottom;
    if (!lua_getstack(L, 0, &top))
        return (size_t)lua_gettop(L);
    outermost(L, &bottom);
    return (size_t)(function_of(&top) - function_of(&bottom)) / SLOT + (size_t)lua_gettop(L) + 1;
}

/* The slots that Lua adds to each stack for its own use. */
#define EXTRA 5

/* A stack grows to twice its size, in place or in a new block. The extra slots make that an odd number of
 * slots, and in place one that is not twice as many as before, so that no part of a table looks like it.
 * What is in use is half of what is needed at least (a function may want as many slots for `...`), and
 * what is needed is more than there was. */
bool lkl_depth_passes(lua_State *L, const void *block, size_t had, size_t wanted)
{
    size_t slots = wanted / SLOT;
    if (atomic_load_explicit(&known, memory_order_relaxed) <= 0 || wanted % SLOT || slots % 2 == 0)
        return false;
    return block ? lkl_depth_in_place(block, had, wanted) : !had && slots <= 4 * lkl_depth_used(L) + FEW;
}

bool lkl_depth_in_place(const void *block, size_t had, size_t wanted)
{
    return block && had % SLOT == 0 && wanted % SLOT == 0 && wanted / SLOT + EXTRA == 2 * (had / SLOT);
}

bool lkl_depth_room(lua_State *L, size_t n)
{
    bool fits = n <= FEW || atomic_load_explicit(&known, memory_order_relaxed) <= 0;
    if (!fits)
        fits = n < LKL_DEPTH_MAX && lkl_depth_used(L) + n < LKL_DEPTH_MAX;
    return fits && n < INT_MAX && lua_checkstack(L, (int)n);
}

/* --- seeing for itself -------------------------------------------------------------------- */

/* Called without arguments, right above the three values of its caller. */
static int distance(lua_State *L)
{
    lua_Debug mine, callers;
    bool both = lua_getstack(L, 0, &mine) && lua_getstack(L, 1, &callers);
    lua_pushboolean(L, both && function_of(&mine) - function_of(&callers) == 4 * SLOT);
    return 1;
}

static int measure(lua_State *L)
{
    for (int i = 0; i < 3; i++)
        lua_pushnil(L);
    lua_pushcfunction(L, distance);
    lua_call(L, 0, 1);
    return 1;
}

bool lkl_depth_known(lua_State *L)
{
    if (!atomic_load(&known)) {
        lua_pushcfunction(L, measure);
        bool is = lua_pcall(L, 0, 1, 0) == LUA_OK && lua_toboolean(L, -1);
        lua_pop(L, 1);
        atomic_store(&known, is ? 1 : -1);
    }
    return atomic_load(&known) > 0;
}
