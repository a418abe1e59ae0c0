/* ceiling.c - counts between Lua and its allocator. */
#include "ceiling.h"

#include <stdlib.h>

#include "base/mem.h"
#include "border.h"
#include "depth.h"

static void refused(lkl_ceiling *c)
{
    lua_State *L = atomic_load_explicit(c->running, memory_order_relaxed);
    if (L)                             /* while a stack unwinds there is no line; the one before stays */
        (void)lkl__place(L, 0, c->where, sizeof c->where);
}

/* It would be the stack of a recursion without end. */
static bool too_deep(lkl_ceiling *c, const void *p, size_t had, size_t n)
{
    lua_State *L = atomic_load_explicit(c->running, memory_order_relaxed);
    if (!L || !lkl_depth_passes(L, p, had, n))
        return false;
    refused(c);
    c->deep = true;
    return true;
}

/* What luaL_newstate's allocator does, in one step with counting it. */
static void *count(void *arg, void *p, size_t had, size_t n)
{
    lkl_ceiling *c = arg;
    size_t before = p ? had : 0, used = c->used - before + n;      /* without a block `had` is the kind of thing that is wanted */
    if (__builtin_expect(used > c->max, 0) && n > before && c->on) {
        refused(c);
        c->deep = false;
        return NULL;
    }
    if (__builtin_expect(n > LKL_DEPTH_BYTES, 0) && n > before && c->on && too_deep(c, p, had, n))
        return NULL;
    if (!n) {
        free(p);
        c->used = used;
        return NULL;
    }
    void *q = c->next ? c->next(c->next_arg, p, had, n) : realloc(p, n);
    if (q)
        c->used = used;
    return q;
}

void lkl_ceiling_start(lua_State *L, lkl_ceiling *c, size_t max, lua_State *_Atomic *running)
{
#ifdef KL_DEBUG
    c->next = lua_getallocf(L, &c->next_arg);
#endif
    c->used = ((size_t)lua_gc(L, LUA_GCCOUNT) << 10) + (size_t)lua_gc(L, LUA_GCCOUNTB);
    c->max = max;
    c->on = false;
    c->running = running;
    lua_setallocf(L, count, c);
}

char *lkl_ceiling_tell_deep(const lkl_ceiling *c)
{
    if (!c->deep)
        return NULL;
    return kl_sprintf("%s%sstack overflow: the calls under way hold more than %d values; is there an end to that recursion?", c->where, *c->where ? ": " : "",
        LKL_DEPTH_MAX);
}

bool lkl_ceiling_is_worn(const lkl_ceiling *c)
{
    return c->used > c->max / 2;
}
