/* ceiling.h - what one Lua state may hold (`memory` of a controller): the bytes of its allocator are counted, and while a script's code runs, growth beyond the
 * ceiling is refused: Lua collects everything and asks again, and then the error is the key's alone. Our own code around it is never refused.
 * Objects of the cache are shared and count nowhere; drafts and copies count as far as they are Lua's. Owner thread. */
#ifndef LKL_CEILING_H
#define LKL_CEILING_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct lkl_ceiling {
    lua_Alloc next;                /* the allocator that was there */
    void *next_arg;
    size_t used, max;
    bool on;                       /* a script's code runs */
} lkl_ceiling;

/* From now on; c must live as long as the state. */
void lkl_ceiling_start(lua_State *L, lkl_ceiling *c, size_t max);

#endif
