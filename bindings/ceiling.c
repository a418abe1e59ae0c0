/* ceiling.c - counts between Lua and its allocator. */
#include "ceiling.h"

static void *count(void *arg, void *p, size_t had, size_t n)
{
    lkl_ceiling *c = arg;
    size_t before = p ? had : 0;       /* without a block `had` is the kind of thing that is wanted */
    if (n > before && c->on && c->used + (n - before) > c->max)
        return NULL;
    void *q = c->next(c->next_arg, p, had, n);
    if (q || !n)
        c->used += n - before;
    return q;
}

void lkl_ceiling_start(lua_State *L, lkl_ceiling *c, size_t max)
{
    c->next = lua_getallocf(L, &c->next_arg);
    c->used = ((size_t)lua_gc(L, LUA_GCCOUNT) << 10) + (size_t)lua_gc(L, LUA_GCCOUNTB);
    c->max = max;
    c->on = false;
    lua_setallocf(L, count, c);
}
