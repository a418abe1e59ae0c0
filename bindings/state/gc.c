/* gc.c - when the garbage of a worker's state is collected: between keys, and rather while nothing waits.
 *
 * The collector is generational, as in the stock interpreter: what a reconcile makes dies young, and a
 * young collection costs what was made since the last one, not what the state holds. It stays switched on,
 * with its own thresholds set far out: a single key that makes more than the state holds is collected in
 * its middle, as ever.
 *
 *   key --rest--> little was made: nothing
 *                 more than young_at: a young collection
 *                 old garbage in it, too: a full one
 *
 * An idle worker does either sooner than a busy one. */
#include "state/state.h"

/* Bytes made since the last collection that are worth another: big enough that its fixed cost (some
 * microseconds) is small per key, small enough that sweeping them is not a pause (some 50 us). A young
 * collection also walks each table that was written to, however large: a table with an entry for each key
 * makes it as dear as the state is large. So a large state has a larger limit. */
#define YOUNG_IDLE ((size_t)32 << 10)
#define YOUNG_BUSY ((size_t)64 << 10)
#define YOUNG_PART 64
/* The old generation is collected when the state has grown by this part of what the last full collection
 * left. */
#define OLD_IDLE(left) ((left) / 4)
#define OLD_BUSY(left) (left)
/* Per cent of the state's size after which Lua collects by itself; 100 is the most it takes. */
#define BY_ITSELF 100

static size_t young_at(const lkl_state *s, bool idle)
{
    size_t least = idle ? YOUNG_IDLE : YOUNG_BUSY, part = s->gc_last / YOUNG_PART;
    return part > least ? part : least;
}

/* The bytes of Lua and those that C holds for it. */
static size_t bytes(const lkl_state *s)
{
    return ((size_t)lua_gc(s->L, LUA_GCCOUNT) << 10) + (size_t)lua_gc(s->L, LUA_GCCOUNTB) + s->ceiling.held;
}

void lkl_gc_start(lkl_state *s)
{
    lua_gc(s->L, LUA_GCGEN, BY_ITSELF, BY_ITSELF); /* this collects everything */
    s->gc_last = s->gc_full = bytes(s);
}

bool lkl_gc_rest(lkl_state *s, bool idle)
{
    size_t now = bytes(s);
    if (now < s->gc_last) /* Lua has collected by itself */
        s->gc_last = now;
    if (now - s->gc_last < young_at(s, idle))
        return false;
    if (s->gc_last - s->gc_full > (idle ? OLD_IDLE(s->gc_full) : OLD_BUSY(s->gc_full))
        && s->gc_last > s->gc_full) {
        lua_gc(s->L, LUA_GCCOLLECT);
        s->gc_full = bytes(s);
        s->worn |= lkl_ceiling_is_worn(&s->ceiling);
    } else {
        lua_gc(s->L, LUA_GCSTEP, 0);
    }
    s->gc_last = bytes(s);
    return true;
}
