/* ceiling.h - the memory limit of one Lua state (`memory` of a controller): the bytes of its allocator, and
 * the charged bytes that C holds for it (decoded values, drafts, stores, running keys). While a script's code
 * runs, growth beyond the ceiling is refused: first garbage is collected, then only the key fails. Memory of
 * our own code around it is counted but never refused. Objects of the cache are shared and never counted.
 * Owner thread. */
#ifndef LKL_CEILING_H
#define LKL_CEILING_H

#include <lua.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "state/crowd.h"

#define LKL_SPARE_SIZES 64

typedef struct lkl_ceiling {
    /* debug builds: the previous allocator (stress.h); NULL: the C library's */
    lua_Alloc next;
    void *next_arg;
    size_t used, max;             /* used: Lua's bytes */
    size_t held;                  /* charged bytes of C */
    size_t held_before;           /* `held` after the last collection caused by charges */
    bool on;                      /* a script's code runs */
    bool deep;                    /* the stack may be larger than a script's own calls could make it */
    size_t plain;                 /* smaller blocks are only counted; 0: no block is plain */
    void *spare[LKL_SPARE_SIZES]; /* freed blocks of each size, linked, for the next ones; see ceiling.c */
    size_t spared;                /* their bytes, which are not among `used` */
    lua_State *_Atomic *running;  /* the coroutine whose code runs */
    struct lkl_box *boxes;        /* all boxes that own C data (box.c) */
    char where[96];               /* the line of the last refused allocation, or "" */
    const char *other; /* why memory below the ceiling was refused: a text for people, static; or NULL */
    lkl_crowd crowd;   /* the large hash parts of its tables */
} lkl_ceiling;

/* The default, and the limit while a script loads, so that a script that allocates without end fails before
 * the machine does. */
#define LKL_MEMORY_DEFAULT ((size_t)256 << 20)

/* From now on; c must live as long as the state. */
void lkl_ceiling_start(lua_State *L, lkl_ceiling *c, size_t max, lua_State *_Atomic *running);
void lkl_ceiling_end(lkl_ceiling *c); /* after the state's own end */
/* The reason of the last memory error, for people: a stack overflow, colliding keys; the caller frees it.
 * NULL: the memory was exhausted. */
char *lkl_ceiling_tell_other(const lkl_ceiling *c);
/* Whether the state is worn: after a full collection it holds more than half of its limit, and the memory
 * belongs to no key. */
bool lkl_ceiling_is_worn(const lkl_ceiling *c);

/* The ceiling of a script's state; NULL: it has none. */
lkl_ceiling *lkl_ceiling_of(lua_State *L);

/* All of these do nothing in a state without a ceiling, such as a stock interpreter's.
 *
 * Changes the bytes that C holds for an object from *charged to `bytes`, and updates *charged. Growth may
 * collect garbage, and raises a memory error when it does not fit; the object stays charged then, so it must
 * be in a box. Shrinking never collects or raises. */
void lkl_ceiling_charge(lua_State *L, size_t *charged, size_t bytes);
/* Raises a memory error unless `bytes` more would fit: for temporary memory of a C function. May collect. */
void lkl_ceiling_ask(lua_State *L, size_t bytes);
/* A larger value never fits, so measuring may stop there; SIZE_MAX if memory is never refused. */
size_t lkl_ceiling_max(lua_State *L);
/* The free bytes; SIZE_MAX if memory is never refused. `collected`: collects garbage first. */
size_t lkl_ceiling_left(lua_State *L, bool collected);

#endif
