/* lbounds.c - string.rep, and what walks through a table: concat, insert, remove, move, sort.
 *
 * A length comes from __len and a range from arguments, so a loop over them may be endless; a table to
 * sort may fill the memory. The loops count their steps (bounds.h). string.rep of an empty text is empty,
 * however often; of another text, memory limits it. */
#include <limits.h>
#include <string.h>

#include "state/border.h"
#include "state/bounds.h"
#include "state/budget.h"
#include "state/depth.h"

/* --- strings ------------------------------------------------------------------------------ */

/* Fills `to` with copies of its first `unit` bytes. */
static void fill(char *to, size_t unit, size_t total)
{
    for (size_t have = unit; have < total;) {
        size_t more = have < total - have ? have : total - have;
        memcpy(to + have, to, more);
        have += more;
    }
}

static int rep(lua_State *L)
{
    size_t len, sep_len;
    const char *s = luaL_checklstring(L, 1, &len);
    lua_Integer n = luaL_checkinteger(L, 2);
    const char *sep = luaL_optlstring(L, 3, "", &sep_len);
    size_t unit = len + sep_len;
    if (n <= 0 || !unit) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (unit < len || unit > (size_t)INT_MAX / (size_t)n)
        return luaL_error(L, "resulting string too large");
    size_t total = unit * (size_t)n - sep_len;
    luaL_Buffer b;
    char *to = luaL_buffinitsize(L, &b, total);
    memcpy(to, s, len);
    if (n > 1) {
        memcpy(to + len, sep, sep_len);
        fill(to, unit, total);
    }
    luaL_pushresultsize(&b, total);
    return 1;
}

/* A position in a text of len bytes, as `string` counts: negative ones from the end. */
static lua_Integer place(lua_Integer at, size_t len)
{
    if (at >= 0)
        return at;
    return 0 - (size_t)at > len ? 0 : (lua_Integer)len + at + 1;
}

static int byte(lua_State *L)
{
    size_t len;
    const char *s = luaL_checklstring(L, 1, &len);
    lua_Integer from = luaL_optinteger(L, 2, 1);
    lua_Integer to = place(luaL_optinteger(L, 3, place(from, len)), len);
    from = place(from, len);
    if (from < 1)
        from = 1;
    if (to > (lua_Integer)len)
        to = (lua_Integer)len;
    if (from > to)
        return 0;
    size_t n = (size_t)(to - from) + 1;
    if (!lkl_depth_room(L, n))
        return luaL_error(L, "string slice too long");
    for (size_t i = 0; i < n; i++)
        lua_pushinteger(L, (unsigned char)s[(size_t)from - 1 + i]);
    return (int)n;
}

/* utf8.codepoint, the upvalue, for as many bytes as there is room for results. */
static int codepoint(lua_State *L)
{
    size_t len;
    (void)luaL_checklstring(L, 1, &len);
    lua_Integer from = luaL_optinteger(L, 2, 1), to = luaL_optinteger(L, 3, from);
    from = place(from, len);
    to = place(to, len);
    if (from >= 1 && to <= (lua_Integer)len && to >= from && !lkl_depth_room(L, (size_t)(to - from) + 1))
        return luaL_error(L, "string slice too long");
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* --- tables ------------------------------------------------------------------------------- */

enum { READ = 1, WRITE = 2, LENGTH = 4 };

/* A step of a loop: every few thousand steps it checks the budget. */
static inline void count(lua_State *L, size_t *steps)
{
    if (++*steps % LKL_BUDGET_STEPS == 0 && lua_toboolean(L, lua_upvalueindex(1)))
        lkl_budget_spend(L, LKL_BUDGET_STEPS);
}

static bool has_field(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    bool has = lua_rawget(L, -2) != LUA_TNIL;
    lua_pop(L, 1);
    return has;
}

/* Accepts a table, or a value with the metamethods for what is asked of it. */
static void check_table(lua_State *L, int idx, int uses)
{
    if (lua_istable(L, idx))
        return;
    /* nil has a metatable here, and is still not a table */
    bool good = !lua_isnil(L, idx) && lua_getmetatable(L, idx);
    if (good) {
        good = (!(uses & READ) || has_field(L, "__index")) && (!(uses & WRITE) || has_field(L, "__newindex"))
            && (!(uses & LENGTH) || has_field(L, "__len"));
        lua_pop(L, 1);
    }
    if (!good)
        luaL_checktype(L, idx, LUA_TTABLE);
}

static lua_Integer length(lua_State *L, int idx, int uses)
{
    check_table(L, idx, uses | LENGTH);
    return luaL_len(L, idx);
}

static void add_element(lua_State *L, luaL_Buffer *b, lua_Integer i)
{
    lua_geti(L, 1, i);
    if (!lua_isstring(L, -1))
        luaL_error(
            L, "invalid value (%s) at index %I in table for 'concat'", luaL_typename(L, -1), (LUAI_UACINT)i);
    luaL_addvalue(b);
}

static int concat(lua_State *L)
{
    lua_Integer n = length(L, 1, READ);
    size_t sep_len;
    const char *sep = luaL_optlstring(L, 2, "", &sep_len);
    lua_Integer i = luaL_optinteger(L, 3, 1), last = luaL_optinteger(L, 4, n);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (size_t steps = 0; i <= last; i++) {
        add_element(L, &b, i);
        if (i == last) /* `last` may be the largest integer */
            break;
        luaL_addlstring(&b, sep, sep_len);
        count(L, &steps);
    }
    luaL_pushresult(&b);
    return 1;
}

/* t[to .. to + n - 1] = from[f .. f + n - 1], the first one first, or the last. Places are unsigned: a
 * range may end at the last integer. */
static void move_range(
    lua_State *L, int from, lua_Unsigned f, int into, lua_Unsigned to, lua_Unsigned n, bool forward)
{
    lua_Unsigned step = forward ? 1 : -(lua_Unsigned)1;
    size_t steps = 0;
    if (!forward) {
        f += n - 1;
        to += n - 1;
    }
    for (; n > 0; n--, f += step, to += step) {
        lua_geti(L, from, (lua_Integer)f);
        lua_seti(L, into, (lua_Integer)to);
        count(L, &steps);
    }
}

static int insert(lua_State *L)
{
    if (lua_isnil(L, 1) && lua_gettop(L) == 2 && lkl__absent_insert(L, 2))
        return 0;
    lua_Integer end = (lua_Integer)((lua_Unsigned)length(L, 1, READ | WRITE) + 1), at = end;
    switch (lua_gettop(L)) {
    case 2: break;
    case 3:
        at = luaL_checkinteger(L, 2);
        luaL_argcheck(L, (lua_Unsigned)at - 1 < (lua_Unsigned)end, 2, "position out of bounds");
        if (at < end)
            move_range(
                L, 1, (lua_Unsigned)at, 1, (lua_Unsigned)at + 1, (lua_Unsigned)end - (lua_Unsigned)at, false);
        break;
    default: return luaL_error(L, "wrong number of arguments to 'insert'");
    }
    lua_seti(L, 1, at);
    return 0;
}

static int remove_at(lua_State *L)
{
    lua_Integer n = length(L, 1, READ | WRITE), at = luaL_optinteger(L, 2, n);
    luaL_argcheck(L, at == n || (lua_Unsigned)at - 1 <= (lua_Unsigned)n, 2, "position out of bounds");
    lua_geti(L, 1, at);
    if (at < n)
        move_range(L, 1, (lua_Unsigned)at + 1, 1, (lua_Unsigned)at, (lua_Unsigned)n - (lua_Unsigned)at, true);
    lua_pushnil(L);
    lua_seti(L, 1, at < n ? n : at);
    return 1;
}

/* next(t, key) of what pairs walks through. A draft may change on the way, so next(draft) only says whether
 * it has anything. */
static int next_of(lua_State *L)
{
    lua_settop(L, 2);
    if (!lua_isuserdata(L, 1) || luaL_getmetafield(L, 1, "__pairs") == LUA_TNIL) {
        luaL_checktype(L, 1, LUA_TTABLE);
        if (lua_next(L, 1))
            return 2;
        lua_pushnil(L);
        return 1;
    }
    if (!lua_isnil(L, 2) && lkl__is_draft(L, 1))
        return luaL_argerror(
            L, 2, "iterate over a draft with pairs(draft); next(draft) returns only its first field");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 2); /* a function, and what it walks through */
    lua_pushvalue(L, 2);
    lua_call(L, 2, 2);
    if (lua_isnil(L, -2)) {
        lua_pop(L, 1);
        return 1;
    }
    return 2;
}

static int move(lua_State *L)
{
    lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3), to = luaL_checkinteger(L, 4);
    int into = lua_isnoneornil(L, 5) ? 1 : 5;
    check_table(L, 1, READ);
    check_table(L, into, WRITE);
    if (last >= first) {
        luaL_argcheck(L, first > 0 || last < LUA_MAXINTEGER + first, 3, "too many elements to move");
        lua_Integer n = last - first + 1;
        luaL_argcheck(L, to <= LUA_MAXINTEGER - n + 1, 4, "destination wrap around");
        bool apart = to > last || to <= first || (into != 1 && !lua_compare(L, 1, into, LUA_OPEQ));
        move_range(L, 1, (lua_Unsigned)first, into, (lua_Unsigned)to, (lua_Unsigned)n, apart);
    }
    lua_pushvalue(L, into);
    return 1;
}

static int unpack(lua_State *L)
{
    lua_Integer from = luaL_optinteger(L, 2, 1), to = luaL_opt(L, luaL_checkinteger, 3, luaL_len(L, 1));
    if (from > to)
        return 0;
    size_t n = (size_t)to - (size_t)from;
    if (n >= INT_MAX || !lkl_depth_room(L, n + 1))
        return luaL_error(L, "too many results to unpack");
    for (size_t i = 0; i <= n; i++)
        lua_geti(L, 1, (lua_Integer)((size_t)from + i));
    return (int)n + 1;
}

/* --- sort --------------------------------------------------------------------------------- */

/* A bottom-up merge sort of the elements' indexes: few comparisons, no worst case, stable. A contradictory
 * order function gives a bad order and nothing worse. An error on the way leaves the table as it was. The
 * elements lie on the stack if they fit there, else in a table of ours. */
/* places on the stack; the last is the table, or the first element */
enum { FUNCTION = 2, NUMBERS, ELEMENTS };
#define STACK_MAX 10000
#define SMALL 32

typedef struct sorting {
    lua_State *L;
    /* the numbers, 0 for the first element, in the order so far; and the next */
    uint32_t *from, *into;
    lua_Integer n;
    size_t steps;
    bool on_stack, function;
} sorting;

static void push_element(sorting *s, uint32_t i)
{
    if (s->on_stack)
        lua_pushvalue(s->L, ELEMENTS + (int)i);
    else
        lua_rawgeti(s->L, ELEMENTS, (lua_Integer)i + 1);
}

static bool less(sorting *s, uint32_t a, uint32_t b)
{
    lua_State *L = s->L;
    if (s->on_stack && !s->function)
        return lua_compare(L, ELEMENTS + (int)a, ELEMENTS + (int)b, LUA_OPLT);
    if (s->function)
        lua_pushvalue(L, FUNCTION);
    push_element(s, a);
    push_element(s, b);
    bool is;
    if (s->function) {
        lua_call(L, 2, 1);
        is = lua_toboolean(L, -1);
    } else
        is = lua_compare(L, -2, -1, LUA_OPLT);
    lua_pop(L, s->function ? 1 : 2);
    return is;
}

/* into[a .. end) = the runs from[a .. b) and from[b .. end), merged. */
static void merge(sorting *s, lua_Integer a, lua_Integer b, lua_Integer end)
{
    const uint32_t *left = s->from + a, *right = s->from + b, *left_end = right, *right_end = s->from + end;
    uint32_t *to = s->into + a;
    while (left < left_end && right < right_end) {
        *to++ = less(s, *right, *left) ? *right++ : *left++;
        count(s->L, &s->steps);
    }
    memcpy(to, left, (size_t)(left_end - left) * sizeof *to);
    to += left_end - left;
    memcpy(to, right, (size_t)(right_end - right) * sizeof *to);
}

static void put_in_order(sorting *s)
{
    for (lua_Integer width = 1; width < s->n; width *= 2) {
        for (lua_Integer a = 0; a < s->n; a += 2 * width) {
            lua_Integer b = a + width < s->n ? a + width : s->n, end = b + width < s->n ? b + width : s->n;
            merge(s, a, b, end);
        }
        uint32_t *from = s->from;
        s->from = s->into;
        s->into = from;
    }
}

static void read_elements(sorting *s)
{
    lua_State *L = s->L;
    s->on_stack = s->n <= STACK_MAX && lkl_depth_room(L, (size_t)s->n + LUA_MINSTACK);
    if (!s->on_stack)
        lua_createtable(L, (int)s->n, 0);
    for (lua_Integer i = 0; i < s->n; i++) {
        s->from[i] = (uint32_t)i;
        lua_geti(L, 1, i + 1);
        if (!s->on_stack)
            lua_rawseti(L, ELEMENTS, i + 1);
        count(L, &s->steps);
    }
}

static int sort(lua_State *L)
{
    uint32_t small[2 * SMALL];
    sorting s = {.L = L, .n = length(L, 1, READ | WRITE), .from = small};
    if (s.n < 2)
        return 0;
    luaL_argcheck(L, s.n < INT_MAX, 1, "array too big");
    s.function = !lua_isnoneornil(L, FUNCTION);
    if (s.function)
        luaL_checktype(L, FUNCTION, LUA_TFUNCTION);
    lua_settop(L, FUNCTION);
    if (s.n > SMALL)
        s.from = lua_newuserdatauv(L, 2 * (size_t)s.n * sizeof *s.from, 0);
    else
        lua_pushnil(L);
    s.into = s.from + s.n;
    read_elements(&s);
    put_in_order(&s);
    for (lua_Integer i = 0; i < s.n; i++) {
        push_element(&s, s.from[i]);
        lua_seti(L, 1, i + 1);
        count(L, &s.steps);
    }
    return 0;
}

/* --- the libraries ------------------------------------------------------------------------ */

void lkl__set_table_functions(lua_State *L, bool counted)
{
    static const luaL_Reg functions[] = {{"concat", concat}, {"insert", insert}, {"remove", remove_at},
        {"move", move}, {"sort", sort}, {"unpack", unpack}, {NULL, NULL}};
    lua_pushboolean(L, counted);
    luaL_setfuncs(L, functions, 1);
}

static void set_string_functions(lua_State *L, bool counted)
{
    lua_pushcfunction(L, rep);
    lua_setfield(L, -2, "rep");
    lua_pushcfunction(L, byte);
    lua_setfield(L, -2, "byte");
    lkl__set_pattern_functions(L, counted);
}

void lkl_install_bounds(lua_State *L)
{
    lua_getglobal(L, "string");
    set_string_functions(L, true);
    lua_getglobal(L, "table");
    lkl__set_table_functions(L, true);
    lua_getglobal(L, "utf8");
    lua_getfield(L, -1, "codepoint");
    lua_pushcclosure(L, codepoint, 1);
    lua_setfield(L, -2, "codepoint");
    lua_pop(L, 3);
    lua_pushcfunction(L, next_of);
    lua_setglobal(L, "next");
    lkl__border(L)->counted = true;
}

/* core.bounds(): {string, table, next} of these functions alone, uncounted; any interpreter can compare them
 * with its own. */
static int bounds(lua_State *L)
{
    lua_newtable(L);
    lua_newtable(L);
    set_string_functions(L, false);
    lua_setfield(L, -2, "string");
    lua_newtable(L);
    lkl__set_table_functions(L, false);
    lua_setfield(L, -2, "table");
    lua_pushcfunction(L, next_of);
    lua_setfield(L, -2, "next");
    return 1;
}

void lkl__open_bounds(lua_State *L)
{
    lua_pushcfunction(L, bounds);
    lua_setfield(L, -2, "bounds");
}
