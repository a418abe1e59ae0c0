/* lpattern.c - string.find, match, gmatch and gsub over core/base/pattern.
 *
 * A compiled pattern is kept for reuse, since a script uses a few of them over and over: in a userdata,
 * found by the address of its text in Lua. The userdata keeps the text alive, so the address can mean no
 * other text. A pattern that is used once is compiled on the C stack. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/pattern.h"
#include "state/bounds.h"
#include "state/budget.h"

#define KEPT 64
#define KEPT_TEXT_MAX 256 /* longer patterns are compiled each time: they are probably generated */

/* p NULL: the text was seen once, and may be gone. */
typedef struct kept {
    const char *text;
    size_t n;
    kl_pattern *p;
    bool anchors;
} kept;
typedef union scratch {
    max_align_t aligned;
    char bytes[1024];
} scratch;
/* The first upvalue of each function; user value i + 1 is the userdata of slots[i]. */
typedef struct patterns {
    bool counted;
    kept slots[KEPT];
} patterns;

static void spend(void *L, size_t steps) { lkl_budget_spend(L, steps); }
static void spend_nothing(void *L, size_t steps) { (void)L, (void)steps; }

static patterns *patterns_of(lua_State *L) { return lua_touserdata(L, lua_upvalueindex(1)); }

/* Pushes the userdata of the pattern whose text is at idx. */
static kl_pattern *make(lua_State *L, int idx, const char *text, size_t n, bool anchors)
{
    void *memory = lua_newuserdatauv(L, kl_pattern_size(text, n), 1);
    lua_pushvalue(L, idx);
    lua_setiuservalue(L, -2, 1);
    return kl_pattern_init(memory, lua_rawlen(L, -1), text, n, anchors);
}

/* The pattern at idx. Pushes its userdata, or false when it is in `here`, which may be NULL. */
static kl_pattern *pattern_at(lua_State *L, int idx, bool anchors, scratch *here)
{
    patterns *all = patterns_of(L);
    size_t n;
    const char *text = lua_tolstring(L, idx, &n);
    if (n > KEPT_TEXT_MAX)
        return make(L, idx, text, n, anchors);
    kl_pattern *p;
    int i = (int)((((uintptr_t)text >> 4) ^ ((uintptr_t)text >> 10)) % KEPT);
    kept *k = &all->slots[i];
    bool again = k->text == text && k->n == n && k->anchors == anchors;
    if (again && k->p) {
        lua_getiuservalue(L, lua_upvalueindex(1), i + 1);
        return k->p;
    }
    if (!again && here && (p = kl_pattern_init(here, sizeof *here, text, n, anchors))) {
        *k = (kept){text, n, NULL, anchors};
        lua_pushboolean(L, false);
        return p;
    }
    p = make(L, idx, text, n, anchors);
    k->p = NULL;
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, lua_upvalueindex(1), i + 1);
    *k = (kept){text, n, p, anchors};
    return p;
}

static void begin(lua_State *L, kl_matching *m, const char *s, size_t n)
{
    kl_matching_init(m, s, n, patterns_of(L)->counted ? spend : spend_nothing, L);
}

static void check_pattern(lua_State *L, const kl_matching *m)
{
    if (m->error[0])
        luaL_error(L, "%s", m->error);
}

/* Capture i of a match that ends at `end`; the match itself is the first where there are none. */
static void push_capture(lua_State *L, const kl_pattern *p, const kl_matching *m, size_t i, const char *end)
{
    if (i >= kl_pattern_captures(p)) {
        if (i)
            luaL_error(L, "invalid capture index %%%d", (int)i + 1);
        lua_pushlstring(L, m->from, (size_t)(end - m->from));
        return;
    }
    const kl_capture *c = &m->captures[i];
    if (c->len == KL_CAPTURE_OPEN)
        luaL_error(L, "unfinished capture");
    if (c->len == KL_CAPTURE_POSITION)
        lua_pushinteger(L, c->at - m->begin + 1);
    else
        lua_pushlstring(L, c->at, (size_t)c->len);
}

static int push_captures(lua_State *L, const kl_pattern *p, const kl_matching *m, const char *end)
{
    size_t n = kl_pattern_captures(p);
    luaL_checkstack(L, (int)n + 1, "too many captures");
    for (size_t i = 0; i < n; i++)
        push_capture(L, p, m, i, end);
    return (int)n;
}

/* Where a search begins, as the argument at idx says: 0 is the first character. */
static size_t begin_at(lua_State *L, int idx, size_t n)
{
    lua_Integer at = luaL_optinteger(L, idx, 1);
    if (at > 0)
        return (size_t)at - 1;
    return at == 0 || at < -(lua_Integer)n ? 0 : n - (size_t)-at;
}

/* --- find, match -------------------------------------------------------------------------- */

/* memmem has a start-up cost; in a short text no search takes long. */
static const char *plain(const char *s, size_t n, const char *what, size_t len)
{
    if (n > 1024 || len < 2)
        return memmem(s, n, what, len);
    for (const char *at = s, *last = s + n - len; n >= len && at <= last; at++) {
        at = memchr(at, *what, (size_t)(last - at) + 1);
        if (!at || !memcmp(at, what, len))
            return at;
    }
    return NULL;
}

static int find_plain(lua_State *L, const char *s, size_t n, size_t from, const char *what, size_t len)
{
    const char *at = plain(s + from, n - from, what, len);
    if (!at) {
        luaL_pushfail(L);
        return 1;
    }
    lua_pushinteger(L, at - s + 1);
    lua_pushinteger(L, at - s + (lua_Integer)len);
    return 2;
}

static int search(lua_State *L, bool find)
{
    size_t n, len;
    const char *s = luaL_checklstring(L, 1, &n), *text = luaL_checklstring(L, 2, &len);
    size_t from = begin_at(L, 3, n);
    if (from > n) {
        luaL_pushfail(L);
        return 1;
    }
    if (find && (lua_toboolean(L, 4) || kl_pattern_plain(text, len)))
        return find_plain(L, s, n, from, text, len);
    scratch here;
    kl_pattern *p = pattern_at(L, 2, true, &here);
    kl_matching m;
    begin(L, &m, s, n);
    const char *end = kl_pattern_search(p, &m, s + from);
    if (!end) {
        check_pattern(L, &m);
        luaL_pushfail(L);
        return 1;
    }
    if (find) {
        lua_pushinteger(L, m.from - s + 1);
        lua_pushinteger(L, end - s);
        return 2 + push_captures(L, p, &m, end);
    }
    if (kl_pattern_captures(p))
        return push_captures(L, p, &m, end);
    push_capture(L, p, &m, 0, end);
    return 1;
}

static int find(lua_State *L) { return search(L, true); }
static int match(lua_State *L) { return search(L, false); }

/* --- gmatch ------------------------------------------------------------------------------- */

typedef struct iteration {
    kl_pattern *p;
    kl_matching m;
    /* the start of the next search; the end of the last match, where an empty match does not count */
    const char *at, *last;
} iteration;

static int next_match(lua_State *L)
{
    iteration *it = lua_touserdata(L, lua_upvalueindex(1));
    it->m.arg = L; /* any coroutine may go on with it */
    while (it->at && it->at <= it->m.end) {
        const char *end = kl_pattern_search(it->p, &it->m, it->at);
        if (!end) {
            check_pattern(L, &it->m);
            it->at = NULL;
        } else if (end == it->last)
            it->at = it->m.from + 1;
        else {
            it->at = it->last = end;
            if (kl_pattern_captures(it->p))
                return push_captures(L, it->p, &it->m, end);
            push_capture(L, it->p, &it->m, 0, end);
            return 1;
        }
    }
    return 0;
}

static int gmatch(lua_State *L)
{
    size_t n;
    const char *s = luaL_checklstring(L, 1, &n);
    luaL_checkstring(L, 2);
    size_t from = begin_at(L, 3, n);
    lua_settop(L, 2);
    kl_pattern *p = pattern_at(L, 2, false, NULL);
    iteration *it = lua_newuserdatauv(L, sizeof *it, 2);
    begin(L, &it->m, s, n);
    it->p = p;
    it->at = s + (from > n ? n + 1 : from);
    it->last = NULL;
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, 3);
    lua_setiuservalue(L, -2, 2);
    lua_pushcclosure(L, next_match, 1);
    return 1;
}

/* --- gsub --------------------------------------------------------------------------------- */

static void add_text(lua_State *L, luaL_Buffer *b, const kl_pattern *p, const kl_matching *m, const char *end)
{
    size_t n;
    const char *t = lua_tolstring(L, 3, &n), *behind = t + n;
    for (const char *mark; (mark = memchr(t, '%', (size_t)(behind - t))); t = mark + 2) {
        luaL_addlstring(b, t, (size_t)(mark - t));
        char c = mark[1]; /* may be the NUL after the text */
        if (c == '%')
            luaL_addchar(b, '%');
        else if (c == '0')
            luaL_addlstring(b, m->from, (size_t)(end - m->from));
        else if (c >= '1' && c <= '9') {
            push_capture(L, p, m, (size_t)(c - '1'), end);
            luaL_addvalue(b);
        } else
            luaL_error(L, "invalid use of '%%' in replacement string");
    }
    luaL_addlstring(b, t, (size_t)(behind - t));
}

/* Pushes what the function or the table gives as the replacement of a match. */
static void push_answer(lua_State *L, int type, const kl_pattern *p, const kl_matching *m, const char *end)
{
    if (type == LUA_TTABLE) {
        push_capture(L, p, m, 0, end);
        lua_gettable(L, 3);
        return;
    }
    lua_pushvalue(L, 3);
    int n = push_captures(L, p, m, end);
    if (!n) {
        push_capture(L, p, m, 0, end);
        n = 1;
    }
    lua_call(L, n, 1);
}

/* Adds the replacement of a match; false: the match stays. */
static bool replace(
    lua_State *L, luaL_Buffer *b, int type, const kl_pattern *p, const kl_matching *m, const char *end)
{
    if (type != LUA_TFUNCTION && type != LUA_TTABLE) {
        add_text(L, b, p, m, end);
        return true;
    }
    push_answer(L, type, p, m, end);
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(b, m->from, (size_t)(end - m->from));
        return false;
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    luaL_addvalue(b);
    return true;
}

static int gsub(lua_State *L)
{
    size_t n;
    const char *s = luaL_checklstring(L, 1, &n), *last = NULL;
    luaL_checkstring(L, 2);
    int type = lua_type(L, 3);
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)n + 1), done = 0;
    luaL_argexpected(L,
        type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
        "string/function/table");
    lua_settop(L, 3);
    scratch here;
    kl_pattern *p = pattern_at(L, 2, true, &here);
    kl_matching m;
    begin(L, &m, s, n);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    bool changed = false;
    const char *at = s;
    while (done < most) {
        const char *end = kl_pattern_search(p, &m, at);
        if (!end) {
            check_pattern(L, &m);
            break;
        }
        luaL_addlstring(&b, at, (size_t)(m.from - at));
        at = m.from;
        if (end != last) {
            done++;
            changed |= replace(L, &b, type, p, &m, end);
            at = last = end;
        } else if (at < m.end)
            luaL_addchar(&b, *at++);
        else
            break;
        if (kl_pattern_anchored(p))
            break;
    }
    if (!changed)
        lua_pushvalue(L, 1);
    else {
        luaL_addlstring(&b, at, (size_t)(m.end - at));
        luaL_pushresult(&b);
    }
    lua_pushinteger(L, done);
    return 2;
}

void lkl__set_pattern_functions(lua_State *L, bool counted)
{
    static const luaL_Reg functions[] = {
        {"find", find}, {"match", match}, {"gmatch", gmatch}, {"gsub", gsub}, {NULL, NULL}};
    patterns *all = lua_newuserdatauv(L, sizeof *all, KEPT);
    memset(all, 0, sizeof *all);
    all->counted = counted;
    luaL_setfuncs(L, functions, 1);
}
