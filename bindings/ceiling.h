/* ceiling.h - what one Lua state may hold (`memory` of a controller): the bytes of its allocator are counted, and while a script's code runs, growth beyond the
 * ceiling is refused: Lua collects everything and asks again, and then the error is the key's alone. Our own code around it is never refused.
 * Objects of the cache are shared and count nowhere; drafts and copies count as far as they are Lua's. Owner thread. */
#ifndef LKL_CEILING_H
#define LKL_CEILING_H

#include <lua.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct lkl_ceiling {
    lua_Alloc next;                /* debug builds: the allocator that was there (stress.h); NULL: the C library's */
    void *next_arg;
    size_t used, max;
    bool on;                       /* a script's code runs */
    lua_State *_Atomic *running;   /* the coroutine whose code that is */
    char where[96];                /* the line that was last refused something, or "" */
    bool deep;                     /* that was a stack (depth.h), and no room in memory */
} lkl_ceiling;

/* Where the spec does not say: so that a script that never stops to allocate fails before the machine does. */
#define LKL_MEMORY_DEFAULT ((size_t)256 << 20)

/* From now on; c must live as long as the state. */
void lkl_ceiling_start(lua_State *L, lkl_ceiling *c, size_t max, lua_State *_Atomic *running);
/* What was refused, for people; the caller's. NULL: memory was. */
char *lkl_ceiling_tell_deep(const lkl_ceiling *c);
/* The state is worn: after a full collection it holds more than half of what it may, and what fills it is no key's. */
bool lkl_ceiling_is_worn(const lkl_ceiling *c);

#endif
