/* crowd.h - detects number keys of a table that would all collide in one place of its hash part.
 *
 * Lua hashes numbers without a secret: an attacker can choose a million that are spread in a table of a
 * million places, but form one chain in a table of two million. The assignment that makes the table grow
 * walks that chain once for each key, in C, where no budget ends it: 2 s for 32,768 keys, 37 minutes for a
 * million. So the allocator (ceiling.c) remembers the large hash parts of a state, and before it allocates a
 * new one it counts how their keys would collide. Owner thread. */
#ifndef LKL_CROWD_H
#define LKL_CROWD_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct lkl_crowd {
    struct lkl_part *parts;
    size_t n, cap;
} lkl_crowd;

/* A hash part of 4,096 places; smaller ones take 35 ms at the most. */
#define LKL_CROWD_BYTES ((size_t)4096 * 24)

/* Records that an untyped block of LKL_CROWD_BYTES or more was allocated; that a block is about to be
 * freed. */
void lkl_crowd_note(lkl_crowd *c, void *block, size_t bytes);
void lkl_crowd_forget(lkl_crowd *c, const void *block);
void lkl_crowd_fini(lkl_crowd *c);

/* Whether a block of this size may become a hash part in which the keys of a known one would collide. */
bool lkl_crowd_forms(const lkl_crowd *c, size_t bytes);

/* Whether this Lua's tables have the expected layout; false: no collision is ever found. Once per process, on
 * a state whose allocator records its blocks in c. */
bool lkl_crowd_known(lua_State *L, const lkl_crowd *c);

#endif
