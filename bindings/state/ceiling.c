/* ceiling.c - counts the bytes between Lua and its allocator, and what C holds for Lua values.
 *
 * Lua's collector counts Lua's bytes alone: it does not see that a view of 40 bytes may hold megabytes. So
 * charges start collections: when they have grown by a part of the ceiling since the last one, and before
 * a block is refused. */
#include "state/ceiling.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "state/border.h"
#include "state/depth.h"

/* The part of the ceiling by which charges may grow between two collections, since they may be garbage. */
#define GARBAGE_MAX(c) ((c)->max / 8)

/* The record of a call is smaller than this in every Lua 5.4. */
#define CALL_MOST 128

static void refused(lkl_ceiling *c, const void *p, size_t had, size_t n)
{
    lua_State *L = atomic_load_explicit(c->running, memory_order_relaxed);
    /* a stack that unwinds has no current line: keep the last known one */
    if (L && !lkl_depth_in_place(p, had, n))
        (void)lkl__place(L, 0, c->where, sizeof c->where);
}

/* Whether one of our finalizers is running. It needs some stack, which is never refused: after each refusal
 * Lua would collect all garbage, and then drop the finalizer. */
static bool finalizes(const lkl_ceiling *c)
{
    lua_State *L = atomic_load_explicit(c->running, memory_order_relaxed);
    return L && lua_gc(L, LUA_GCISRUNNING) < 0; /* reports this since 5.4.4 */
}

/* In debug builds every block goes to `next`. */
static void set_deep(lkl_ceiling *c, bool deep)
{
    c->deep = deep;
    c->plain = deep || c->next ? 0 : LKL_CROWD_BYTES;
}

/* Whether the block is refused because the stack is too deep. A stack that grew for a finalizer is larger
 * than a script's may be: until less of it is used, blocks that may be the record of one more call are
 * checked. */
static bool too_deep(lkl_ceiling *c, lua_State *L, const void *p, size_t had, size_t n)
{
    if (n > LKL_DEPTH_BYTES && lkl_depth_passes(L, p, had, n)) {
        set_deep(c, finalizes(c));
        return !c->deep;
    }
    if (!c->deep || p || had || n > CALL_MOST || finalizes(c))
        return false;
    size_t slots = lkl_depth_used(L);
    set_deep(c, slots > LKL_DEPTH_MAX);
    return slots > LKL_DEPTH_STACK;
}

/* Why a block is refused for its likely use: the stack of an endless recursion, or the hash part of a table
 * whose keys collide. */
static const char *misfit(lkl_ceiling *c, const void *p, size_t had, size_t n)
{
    lua_State *L = atomic_load_explicit(c->running, memory_order_relaxed);
    if (L && too_deep(c, L, p, had, n))
        return "stack overflow: the active calls hold more than " LKL_DEPTH_TEXT
               " values; does the recursion end?";
    if (!p && !had && lkl_crowd_forms(&c->crowd, n))
        return "the numeric keys of a large table collide, so growing it would take very long; use other "
               "numbers, or strings";
    return NULL;
}

/* Checks large blocks, and all blocks while the stack is deep. False: this one is refused. */
static bool take_note(lkl_ceiling *c, void *p, size_t had, size_t n)
{
    const char *why = c->on && n > (p ? had : 0) ? misfit(c, p, had, n) : NULL;
    if (why) {
        refused(c, p, had, n);
        c->other = why;
    } else if (p) {
        lkl_crowd_forget(&c->crowd, p);
    }
    return !why;
}

/* Out of line, so that the short way below needs no frame of its size. For blocks that are large, that grow
 * or shrink, that do not fit, or that come while the stack is deep. */
__attribute__((noinline)) static void *count_any(lkl_ceiling *c, void *p, size_t had, size_t n)
{
    /* without a block, `had` is the type of the wanted object */
    size_t before = p ? had : 0, used = c->used - before + n;
    if (__builtin_expect(used + c->held > c->max, 0) && n > before && c->on && !finalizes(c)) {
        refused(c, p, had, n);
        c->other = NULL;
        return NULL;
    }
    bool large = n >= LKL_CROWD_BYTES || before >= LKL_CROWD_BYTES;
    if (__builtin_expect(large || c->deep, 0) && !take_note(c, p, had, n))
        return NULL;
    if (!n && !c->next) {
        free(p);
        c->used = used;
        return NULL;
    }
    void *q = c->next ? c->next(c->next_arg, p, had, n) : realloc(p, n);
    if (q || !n)
        c->used = used;
    else
        c->other = NULL;
    if (__builtin_expect(large, 0) && q && !p && !had)
        lkl_crowd_note(&c->crowd, q, n);
    return q;
}

/* --- spare blocks -------------------------------------------------------------------------
 *
 * A collection frees hundreds of small blocks, and the next keys want as many again. The C library keeps
 * seven of a size at hand; the others cost it a hundred instructions each way. So they wait here. Sizes are
 * those of glibc's blocks (24, 40, 56 ...); with another library a block may count as a smaller one. */

#define SPARE_MAX ((size_t)512 << 10)
#define SPARE_LEAST 24

static size_t spare_size(size_t i) { return SPARE_LEAST + 16 * i; }

static bool spare_put(lkl_ceiling *c, void *p)
{
    size_t usable = malloc_usable_size(p), i = (usable - SPARE_LEAST) / 16;
    if (usable < SPARE_LEAST || i >= LKL_SPARE_SIZES || c->spared + spare_size(i) > SPARE_MAX)
        return false;
    *(void **)p = c->spare[i];
    c->spare[i] = p;
    c->spared += spare_size(i);
    return true;
}

/* NULL: none is left */
static void *spare_take(lkl_ceiling *c, size_t n)
{
    size_t i = n <= SPARE_LEAST ? 0 : (n - SPARE_LEAST + 15) / 16;
    void *p = i < LKL_SPARE_SIZES ? c->spare[i] : NULL;
    if (p) {
        c->spare[i] = *(void **)p;
        c->spared -= spare_size(i);
    }
    return p;
}

/* What luaL_newstate's allocator does, in one step with counting it. Nearly all blocks take the short way. */
static void *count(void *arg, void *p, size_t had, size_t n)
{
    lkl_ceiling *c = arg;
    if (p && !n && had < c->plain) {
        c->used -= had;
        if (!spare_put(c, p))
            free(p);
        return NULL;
    }
    if (!p && n && n < c->plain && c->used + c->held + n <= c->max) {
        void *q = spare_take(c, n);
        if (!q)
            q = malloc(n);
        if (q) {
            c->used += n;
            return q;
        }
    }
    return count_any(c, p, had, n);
}

void lkl_ceiling_start(lua_State *L, lkl_ceiling *c, size_t max, lua_State *_Atomic *running)
{
#ifdef KL_DEBUG
    c->next = lua_getallocf(L, &c->next_arg);
#endif
    c->used = ((size_t)lua_gc(L, LUA_GCCOUNT) << 10) + (size_t)lua_gc(L, LUA_GCCOUNTB);
    c->max = max;
    c->held = c->held_before = 0;
    c->on = false;
    set_deep(c, false);
    c->other = NULL;
    c->crowd = (lkl_crowd){0};
    c->running = running;
    memset(c->spare, 0, sizeof c->spare);
    c->spared = 0;
    lua_setallocf(L, count, c);
}

void lkl_ceiling_end(lkl_ceiling *c)
{
    for (size_t i = 0; i < LKL_SPARE_SIZES; i++)
        for (void *p; (p = spare_take(c, spare_size(i)));)
            free(p);
    lkl_crowd_fini(&c->crowd);
}

char *lkl_ceiling_tell_other(const lkl_ceiling *c)
{
    return c->other ? kl_sprintf("%s%s%s", c->where, *c->where ? ": " : "", c->other) : NULL;
}

bool lkl_ceiling_is_worn(const lkl_ceiling *c) { return c->used + c->held > c->max / 2; }

/* --- what C holds ------------------------------------------------------------------------- */

lkl_ceiling *lkl_ceiling_of(lua_State *L)
{
    void *arg;
    return lua_getallocf(L, &arg) == count ? arg : NULL;
}

static size_t left(const lkl_ceiling *c)
{
    size_t taken = c->used + c->held;
    return taken < c->max ? c->max - taken : 0;
}

/* Runs finalisers, which Lua's own emergency collection does not. */
static void collect(lua_State *L, lkl_ceiling *c)
{
    lua_gc(L, LUA_GCCOLLECT);
    c->held_before = c->held;
}

/* Only the allocator can make Lua raise its memory error, so this asks it for a block that it has to
 * refuse. */
static void refuse(lua_State *L, const lkl_ceiling *c)
{
    if (c->on)
        lua_newuserdatauv(L, c->max, 0);
}

static void make_sure(lua_State *L, lkl_ceiling *c, size_t bytes)
{
    if (c->on && c->used + c->held + bytes > c->max)
        collect(L, c);
    if (c->on && c->used + c->held + bytes > c->max)
        refuse(L, c);
}

void lkl_ceiling_charge(lua_State *L, size_t *charged, size_t bytes)
{
    lkl_ceiling *c = lkl_ceiling_of(L);
    if (!c)
        return;
    bool more = bytes > *charged;
    c->held = c->held - *charged + bytes;
    *charged = bytes;
    if (more && c->held > c->held_before + GARBAGE_MAX(c))
        collect(L, c);
    if (more)
        make_sure(L, c, 0);
}

void lkl_ceiling_ask(lua_State *L, size_t bytes)
{
    lkl_ceiling *c = lkl_ceiling_of(L);
    if (c)
        make_sure(L, c, bytes);
}

size_t lkl_ceiling_max(lua_State *L)
{
    const lkl_ceiling *c = lkl_ceiling_of(L);
    return c && c->on ? c->max : SIZE_MAX;
}

size_t lkl_ceiling_left(lua_State *L, bool collected)
{
    lkl_ceiling *c = lkl_ceiling_of(L);
    if (!c || !c->on)
        return SIZE_MAX;
    if (collected)
        collect(L, c);
    return left(c);
}
