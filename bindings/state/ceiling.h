/* ceiling.h - what one Lua state may hold (`memory` of a controller): the bytes of its allocator, and
 * those that C holds for it (decoded values, drafts, stores, keys under way), which are charged. While a
 * script's code runs, growth beyond the ceiling is refused: what is garbage is collected first, and then
 * the error is the key's alone. Our own code around it is counted and never refused. Objects of the cache
 * are shared and count nowhere. Owner thread. */
#ifndef LKL_CEILING_H
#define LKL_CEILING_H

#include <lua.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "state/crowd.h"

typedef struct lkl_ceiling {
    /* debug builds: the allocator that was there (stress.h); NULL: the C library's */
    lua_Alloc next;
    void *next_arg;
    size_t used, max;            /* used: Lua's bytes */
    size_t held;                 /* what was charged: C's bytes */
    size_t held_before;          /* `held` after the last collection that charges brought about */
    bool on;                     /* a script's code runs */
    lua_State *_Atomic *running; /* the coroutine whose code that is */
    struct lkl_box *boxes;       /* all that own something of C's (box.c) */
    char where[96];              /* the line that was last refused something, or "" */
    const char *other; /* that had room in memory: why it was refused, for people, static; or NULL */
    lkl_crowd crowd;   /* the large hash parts of its tables */
} lkl_ceiling;

/* Where the spec does not say, and while a script loads: so that a script that never stops to allocate
 * fails before the machine does. */
#define LKL_MEMORY_DEFAULT ((size_t)256 << 20)

/* From now on; c must live as long as the state. */
void lkl_ceiling_start(lua_State *L, lkl_ceiling *c, size_t max, lua_State *_Atomic *running);
void lkl_ceiling_end(lkl_ceiling *c); /* after the state's own end */
/* Why there was an error of memory last: a stack overflow, keys that crowd; for people, the caller's. NULL:
 * there was no memory. */
char *lkl_ceiling_tell_other(const lkl_ceiling *c);
/* The state is worn: after a full collection it holds more than half of what it may, and what fills it is
 * no key's. */
bool lkl_ceiling_is_worn(const lkl_ceiling *c);

/* The ceiling of a script's state; NULL: it has none. */
lkl_ceiling *lkl_ceiling_of(lua_State *L);

/* All of these do nothing in a state without a ceiling, such as a stock interpreter's.
 *
 * Says that C holds `bytes` for something of which *charged was said before; *charged is `bytes`
 * afterwards. Growth may collect, and raises a memory error when it does not fit; the thing is there and
 * stays charged, so it must be in a box. Less never collects nor raises. */
void lkl_ceiling_charge(lua_State *L, size_t *charged, size_t bytes);
/* Raises a memory error unless `bytes` more would fit: before a C function takes them for a while. May
 * collect. */
void lkl_ceiling_ask(lua_State *L, size_t bytes);
/* Nothing above it ever fits, so that measuring may stop there; SIZE_MAX where nothing is refused. */
size_t lkl_ceiling_max(lua_State *L);
/* What is left now, garbage not looked for; SIZE_MAX where nothing is refused. `collected`: garbage first. */
size_t lkl_ceiling_left(lua_State *L, bool collected);

#endif
