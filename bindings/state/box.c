/* box.c - a userdata that owns one C thing, and the border: what one Lua state knows of itself.
 *
 *   empty --ptr set--> full --__gc, __close or lkl_box_close--> empty
 *
 * Lua calls a finaliser once, and drops it when that call finds no stack or no memory; a script can arrange
 * that. So boxes are linked in a list of the script's state, outside their userdata. What no finaliser has
 * freed is freed after the state. Until then it stays charged, and marks the state as worn.
 *
 * Lua calls a finaliser once, and gives it up where that call finds no stack or no memory: a script can
 * arrange that. So boxes stand outside of the userdata that have them, in a list of the script's state, and
 * what no finaliser has freed is freed after the state. Until then it stays charged, and wears the state out.
 */
#include <stdint.h>
#include <string.h>
#include "base/mem.h"
#include "base/sync.h"
#include "state/border.h"
#include "state/ceiling.h"

static const char border_tag, border_key;

void *lkl__tagged(lua_State *L, int idx, const void *tag, size_t size)
{
    void *p = lua_touserdata(L, idx);
    /* light userdata has no length */
    return p && lua_rawlen(L, idx) >= size && *(const void **)p == tag ? p : NULL;
}

bool lkl__has_nul(lua_State *L, int idx)
{
    size_t n;
    const char *s = lua_tolstring(L, idx, &n);
    return strlen(s) < n;
}

const char *lkl__text(lua_State *L, int arg)
{
    const char *s = luaL_checkstring(L, arg);
    if (lkl__has_nul(L, arg))
        luaL_argerror(L, arg, "expected a string without NUL characters");
    return s;
}

const char *lkl__opt_text(lua_State *L, int arg, const char *dflt)
{
    return lua_isnoneornil(L, arg) ? dflt : lkl__text(L, arg);
}

void lkl__weaken(lua_State *L, const char *mode)
{
    lua_createtable(L, 0, 1);
    lua_pushstring(L, mode);
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
}

bool lkl__metatable(lua_State *L, const void *key, const char *name)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TTABLE)
        return false;
    lua_pop(L, 1);
    lua_createtable(L, 0, 12);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
    return true;
}

void lkl__keep_metatable(lua_State *L, const void *key)
{
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

/* --- the border --------------------------------------------------------------------------- */

static lkl_border *checked(lkl_border *b)
{
#ifdef KL_DEBUG
    if (b->owner != kl_thread_self())
        kl_mem_die("a Lua state was used by a thread that does not own it");
#endif
    return b;
}

/* The border ends with its state, but finalisers of the host may run after it. */
static int border_gc(lua_State *L)
{
    lkl_border *b = lua_touserdata(L, 1);
    b->closing = true;
    for (size_t i = 0; i < LKL__FIELDS; i++)
        if (b->fields[i].name)
            kl_lookup_fini(&b->fields[i].lookup);
    memset(b->fields, 0, sizeof b->fields);
    return 0;
}

lkl_border *lkl__border_push(lua_State *L)
{
    lkl_border *b;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &border_key) == LUA_TUSERDATA) {
        b = lua_touserdata(L, -1);
    } else {
        lua_pop(L, 1);
        b = lua_newuserdatauv(L, sizeof *b, BORDER_SLOTS);
        memset(b, 0, sizeof *b);
        b->tag = &border_tag;
        b->owner = kl_thread_self();
        lua_createtable(L, 0, 1);
        lua_pushcfunction(L, border_gc);
        lua_setfield(L, -2, "__gc");
        lua_setmetatable(L, -2);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &border_key);
    }
    return checked(b);
}

lkl_border *lkl__border_at(lua_State *L, int idx) { return checked(lua_touserdata(L, idx)); }

lkl_border *lkl__border(lua_State *L)
{
    lkl_border *b = lkl__border_push(L);
    lua_pop(L, 1); /* the registry keeps it */
    return b;
}

void lkl_adopt(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &border_key) == LUA_TUSERDATA)
        ((lkl_border *)lua_touserdata(L, -1))->owner = kl_thread_self();
    lua_pop(L, 1);
}

/* --- boxes -------------------------------------------------------------------------------- */

lkl_box *lkl__box_hold(lua_State *L, lkl_box *within, void (*free)(void *ptr))
{
    lkl_ceiling *c = lkl_ceiling_of(L);
    lkl_box *box = c ? kl_new(lkl_box) : within;
    *box = (lkl_box){.free = free};
    if (c) {
        box->next = c->boxes;
        box->at = &c->boxes;
        if (box->next)
            box->next->at = &box->next;
        c->boxes = box;
    }
    return box;
}

void lkl__box_empty(lua_State *L, lkl_box *box)
{
    void *ptr = box->ptr;
    box->ptr = NULL;
    lkl_ceiling_charge(L, &box->charged, 0);
    if (ptr)
        box->free(ptr);
}

static void unlink_box(lkl_box *box)
{
    *box->at = box->next;
    if (box->next)
        box->next->at = box->at;
    kl_free(box);
}

void lkl__box_release(lua_State *L, lkl_box *box)
{
    lkl__box_empty(L, box);
    if (box->at)
        unlink_box(box);
}

void lkl__boxes_free(lkl_ceiling *c)
{
    while (c->boxes) {
        lkl_box *box = c->boxes;
        if (box->ptr)
            box->free(box->ptr);
        unlink_box(box);
    }
}

/* The userdata. */
typedef struct holder {
    const void *tag;
    lkl_box *box; /* NULL once finalised */
    lkl_box within;
} holder;

void *lkl__box_of(const void *userdata)
{
    const holder *h = userdata;
    return h->box ? h->box->ptr : NULL;
}

static holder *finalised(lua_State *L)
{
    return lkl__tagged(L, 1, lua_touserdata(L, lua_upvalueindex(1)), sizeof(holder));
}

static int box_gc(lua_State *L)
{
    holder *h = finalised(L);
    lkl_box *box = h ? h->box : NULL;
    if (box) {
        h->box = NULL;
        lkl__box_release(L, box);
    }
    return 0;
}

static void fill_metatable(lua_State *L, const lkl_class *c)
{
    if (c->meta)
        luaL_setfuncs(L, c->meta, 0);
    lua_pushlightuserdata(L, (void *)c);
    lua_pushcclosure(L, box_gc, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__close");
    lua_setfield(L, -2, "__gc");
    if (c->methods) {
        lua_newtable(L);
        luaL_setfuncs(L, c->methods, 0);
        lua_setfield(L, -2, "__index");
    }
}

lkl_box *lkl_box_new(lua_State *L, const lkl_class *c, int slots)
{
    if (lkl__metatable(L, c, c->name)) {
        fill_metatable(L, c);
        lkl__keep_metatable(L, c);
    }
    holder *h = lua_newuserdatauv(L, sizeof *h, slots);
    *h = (holder){.tag = c};
    lua_rotate(L, -2, 1);
    lua_setmetatable(L, -2);
    h->box = lkl__box_hold(L, &h->within, c->free);
    return h->box;
}

void lkl_box_charge(lua_State *L, lkl_box *box, size_t bytes) { lkl_ceiling_charge(L, &box->charged, bytes); }

void *lkl_box_get(lua_State *L, int idx, const lkl_class *c)
{
    const holder *h = lkl__tagged(L, idx, c, sizeof *h);
    return h ? lkl__box_of(h) : NULL;
}

void *lkl_box_check(lua_State *L, int idx, const lkl_class *c)
{
    const holder *h = lkl__tagged(L, idx, c, sizeof *h);
    if (!h)
        luaL_typeerror(L, idx, c->name);
    void *ptr = lkl__box_of(h);
    if (!ptr)
        luaL_argerror(L, idx, "it has been closed");
    return ptr;
}

lkl_box *lkl_box_at(lua_State *L, int idx) { return ((const holder *)lua_touserdata(L, idx))->box; }

void lkl_box_close(lua_State *L, int idx)
{
    const holder *h = lua_type(L, idx) == LUA_TUSERDATA ? lua_touserdata(L, idx) : NULL;
    if (h && lua_rawlen(L, idx) >= sizeof *h && h->box)
        lkl__box_empty(L, h->box);
}

static void free_value(void *ptr) { kl_value_unref(ptr); }

static const lkl_class value_class = {.name = "kubelua.value", .free = free_value};

lkl_box *lkl_value_box(lua_State *L) { return lkl_box_new(L, &value_class, 0); }

void lkl_value_charge(lua_State *L, lkl_box *box)
{
    size_t max = lkl_ceiling_max(L);
    if (max < SIZE_MAX)
        lkl_box_charge(L, box, kl_value_held(box->ptr, max));
}
