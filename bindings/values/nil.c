/* nil.c - what indexing nil does in a state of ours: a message that names the absent field, and writing below
 * absent fields.
 *
 * Absent fields read as nil, in views and in drafts, so `x or 0` and `if not x` work as usual. Each absent
 * read is remembered, and nil has a metatable:
 *
 *   pod.spec.nodeSelector.zone      raises "... the last absent field is spec.nodeSelector of Pod default/a"
 *   n.status.counts.ready = 1       (a draft, no status.counts) creates status.counts
 *   table.insert(n.spec.taints, x)  (no spec.taints) creates the list, and #n.spec.taints is 0
 *
 * For the second, a *chain* is remembered per absent read of a draft: the draft and the keys below it, the
 * function that reads and its line. Reading below nil on that line makes the chain longer, assigning below
 * nil uses it up. Lua does not tell which expression gave the nil. The only chain of a function counts when
 * it began on the line of the assignment; otherwise the compiled function is asked (statement.c) which reads
 * gave the table, and the one chain of those reads counts. So a statement may have several lines and read
 * other absent fields; where two chains remain it is refused, never guessed. */
#include <string.h>
#include "state/border.h"
#include "values/statement.h"

/* Chains that a coroutine remembers; when there are more, the older half is forgotten. */
#define CHAINS_MAX 32
/* Assignments on one line that are examined. */
#define TARGETS_MAX 8

static const char nil_mt;

/* --- remembering -------------------------------------------------------------------------- */

void lkl__absent_at(lua_State *L, int border_idx, int in_idx, int key_idx)
{
    lua_pushvalue(L, in_idx);
    lua_setiuservalue(L, border_idx, BORDER_ABSENT_IN);
    lua_pushvalue(L, key_idx);
    lua_setiuservalue(L, border_idx, BORDER_ABSENT_KEY);
}

void lkl__absent(lua_State *L, int in_idx, int key_idx)
{
    in_idx = lua_absindex(L, in_idx);
    key_idx = lua_absindex(L, key_idx);
    lkl_border *b = lkl__border_push(L);
    if (b->nil_index)
        lkl__absent_at(L, lua_gettop(L), in_idx, key_idx);
    lua_pop(L, 1);
}

void lkl__absent_forget(lua_State *L)
{
    const lkl_border *b = lkl__border_push(L);
    if (b->nil_index) {
        lua_pushnil(L);
        lua_setiuservalue(L, -2, BORDER_ABSENT_KEY);
    }
    lua_pop(L, 1);
}

/* Pushes the table from coroutine (weakly) to its chains. */
static void push_all_chains(lua_State *L)
{
    lkl__border_push(L);
    if (lua_getiuservalue(L, -1, BORDER_CHAINS) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lkl__weaken(L, "k");
        lua_pushvalue(L, -1);
        lua_setiuservalue(L, -3, BORDER_CHAINS);
    }
    lua_remove(L, -2);
}

/* Pushes the list of this coroutine's chains, or nil where it has none and none is made. */
static bool push_chains(lua_State *L, bool make)
{
    push_all_chains(L);
    lua_pushthread(L);
    if (lua_rawget(L, -2) != LUA_TTABLE && make) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushthread(L);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    lua_remove(L, -2);
    return lua_istable(L, -1);
}

/* Pushes the Lua function that indexes, or nothing when C does; returns its line. */
static int push_reader(lua_State *L, lua_Debug *ar)
{
    if (!lua_getstack(L, 1, ar))
        return 0;
    lua_getinfo(L, "lf", ar);
    if (ar->currentline > 0)
        return ar->currentline;
    lua_pop(L, 1);
    return 0;
}

/* Whether chain i belongs to this function; gives its line. */
static bool is_of(lua_State *L, int list, lua_Integer i, int fn, int *line)
{
    lua_rawgeti(L, list, i);
    lua_getfield(L, -1, "fn");
    lua_getfield(L, -2, "line");
    bool same = lua_rawequal(L, -2, fn);
    *line = (int)lua_tointeger(L, -1);
    lua_pop(L, 3);
    return same;
}

/* Drops the first `old` chains, and the chains of the function at `fn`. */
static void keep_chains(lua_State *L, int list, int fn, lua_Integer old)
{
    lua_Integer n = (lua_Integer)lua_rawlen(L, list), kept = 0;
    for (lua_Integer i = 1; i <= n; i++) {
        int line;
        if (i <= old || (fn && is_of(L, list, i, fn, &line)))
            continue;
        lua_rawgeti(L, list, i);
        lua_rawseti(L, list, ++kept);
    }
    while (n > kept) {
        lua_pushnil(L);
        lua_rawseti(L, list, n--);
    }
}

void lkl__forget_chains(lua_State *L)
{
    push_all_chains(L);
    lua_pushthread(L);
    lua_pushnil(L);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

void lkl__statement_over(lua_State *L)
{
    int top = lua_gettop(L);
    lua_Debug ar;
    if (push_chains(L, false)) {
        if (push_reader(L, &ar))
            keep_chains(L, top + 1, top + 2, 0);
        else
            lkl__forget_chains(L);
    }
    lua_settop(L, top);
}

/* A chain is {draft, key, key..., fn =, line =}. */
void lkl__draft_absent(lua_State *L, int draft_idx, int key_idx)
{
    int top = lua_gettop(L);
    draft_idx = lua_absindex(L, draft_idx);
    key_idx = lua_absindex(L, key_idx);
    if (!lkl__border(L)->nil_index || lua_isnil(L, key_idx))
        return;
    lkl__absent(L, draft_idx, key_idx);
    lua_Debug ar;
    int line = push_reader(L, &ar);
    if (!line)
        return;
    (void)push_chains(L, true);
    if (lua_rawlen(L, top + 2) >= CHAINS_MAX)
        keep_chains(L, top + 2, 0, CHAINS_MAX / 2);
    lua_createtable(L, 2, 2);
    lua_pushvalue(L, draft_idx);
    lua_rawseti(L, -2, 1);
    lua_pushvalue(L, key_idx);
    lua_rawseti(L, -2, 2);
    lua_pushvalue(L, top + 1);
    lua_setfield(L, -2, "fn");
    lua_pushinteger(L, line);
    lua_setfield(L, -2, "line");
    lua_rawseti(L, top + 2, (lua_Integer)lua_rawlen(L, top + 2) + 1);
    lua_settop(L, top);
}

/* --- which chain an assignment means ------------------------------------------------------ */

typedef struct search { /* stack indexes */
    lkl__use use;
    lua_Debug ar;
    int line, list, fn, key;
    lua_Integer found; /* 0: none */
    bool is_unclear;
} search;

typedef struct dump {
    bool begun; /* lua_dump wants the function on top until it writes */
    luaL_Buffer text;
} dump;

static int add_dump(lua_State *L, const void *p, size_t n, void *arg)
{
    dump *d = arg;
    if (!d->begun)
        luaL_buffinit(L, &d->text);
    d->begun = true;
    luaL_addlstring(&d->text, p, n);
    return 0;
}

static bool key_matches(lua_State *L, int idx, const lkl__key *k)
{
    size_t n;
    if (k->kind == LKL__KEY_ANY)
        return true;
    if (k->kind == LKL__KEY_INDEX)
        return lua_isinteger(L, idx) && lua_tointeger(L, idx) == k->index;
    if (lua_type(L, idx) != LUA_TSTRING)
        return false;
    const char *text = lua_tolstring(L, idx, &n);
    return n == k->len && !memcmp(text, k->name, n);
}

/* Whether the expression begins at the draft. A plain table that does not hold the draft has absent fields of
 * its own. A computed expression may be anything. */
static bool begins_at(lua_State *L, const search *s, const lkl__target *t, int draft)
{
    int top = lua_gettop(L);
    const char *name = t->root == LKL__ROOT_LOCAL ? lua_getlocal(L, &s->ar, t->root_number)
        : t->root == LKL__ROOT_UPVALUE            ? lua_getupvalue(L, s->fn, t->root_number)
                                                  : NULL;
    if (!name)
        return t->root == LKL__ROOT_OTHER;
    for (size_t i = t->n; i-- > 0 && lua_istable(L, -1) && t->reads[i].key.kind == LKL__KEY_NAME;) {
        lua_pushlstring(L, t->reads[i].key.name, t->reads[i].key.len);
        lua_rawget(L, -2);
    }
    bool same = lkl__draft_kin(L, -1, draft);
    lua_settop(L, top);
    return same;
}

static bool is_meant(lua_State *L, const search *s, const lkl__target *t, int chain, int line)
{
    size_t n = lua_rawlen(L, chain) - 1;
    if (n > t->n || t->reads[n - 1].line != line || (s->key && !key_matches(L, s->key, &t->key)))
        return false;
    bool same = true;
    for (size_t i = 0; i < n && same; i++) {
        lua_rawgeti(L, chain, (lua_Integer)(n + 1 - i));
        same = key_matches(L, -1, &t->reads[i].key);
        lua_pop(L, 1);
    }
    lua_rawgeti(L, chain, 1);
    same = same && begins_at(L, s, t, lua_gettop(L));
    lua_pop(L, 1);
    return same;
}

/* Whether two chains lead to the same place: then either may be taken. */
static bool same_chain(lua_State *L, int a, int b)
{
    int top = lua_gettop(L);
    lua_Integer n = (lua_Integer)lua_rawlen(L, a);
    lua_rawgeti(L, a, 1);
    lua_rawgeti(L, b, 1);
    bool same = n == (lua_Integer)lua_rawlen(L, b) && lkl__draft_same(L, -1, -2);
    for (lua_Integer i = 2; i <= n && same; i++) {
        lua_rawgeti(L, a, i);
        lua_rawgeti(L, b, i);
        same = lua_rawequal(L, -1, -2);
        lua_settop(L, top);
    }
    lua_settop(L, top);
    return same;
}

static void look_for(lua_State *L, search *s, const lkl__target *t)
{
    int top = lua_gettop(L);
    for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(L, s->list); i++) {
        int line;
        if (!is_of(L, s->list, i, s->fn, &line))
            continue;
        lua_rawgeti(L, s->list, i);
        if (is_meant(L, s, t, top + 1, line)) {
            lua_rawgeti(L, s->list, s->found ? s->found : i);
            s->is_unclear = s->is_unclear || !same_chain(L, top + 1, top + 2);
            s->found = i;
        }
        lua_settop(L, top);
    }
}

static void ask_function(lua_State *L, search *s)
{
    lkl__target targets[TARGETS_MAX];
    dump d = {.begun = false};
    size_t len;
    luaL_checkstack(L, LUA_MINSTACK, "too much on the stack");
    int top = lua_gettop(L);
    lua_pushvalue(L, s->fn);
    (void)!lua_dump(L, add_dump, &d, false); /* cannot fail for a Lua function */
    luaL_pushresult(&d.text);
    const char *text = lua_tolstring(L, -1, &len);
    size_t n = lkl__targets(text, len, s->line, s->use, targets, TARGETS_MAX);
    for (size_t i = 0; i < n; i++)
        look_for(L, s, &targets[i]);
    lua_settop(L, top);
}

/* Fills in the chain below which the key at `key` is assigned, if there is one; pushes list and function. */
static void find_chain(lua_State *L, search *s, int key)
{
    *s = (search){.list = lua_gettop(L) + 1, .fn = lua_gettop(L) + 2, .key = key};
    if (!push_chains(L, false))
        return;
    s->line = push_reader(L, &s->ar);
    if (!s->line)
        return;
    lua_Integer n = (lua_Integer)lua_rawlen(L, s->list), of_it = 0;
    int line = 0;
    for (lua_Integer i = 1; i <= n; i++)
        if (is_of(L, s->list, i, s->fn, &line)) {
            of_it++;
            s->found = line == s->line ? i : 0;
        }
    if (of_it == 1 && s->found)
        return;
    s->found = 0;
    if (of_it)
        ask_function(L, s);
}

/* The same for `#` and for a call, whose expression the compiled function always tells. */
static void find_used(lua_State *L, search *s, lkl__use use)
{
    *s = (search){.use = use, .list = lua_gettop(L) + 1, .fn = lua_gettop(L) + 2};
    if (!push_chains(L, false))
        return;
    s->line = push_reader(L, &s->ar);
    if (!s->line)
        return;
    lua_Integer n = (lua_Integer)lua_rawlen(L, s->list);
    bool any = false;
    int line;
    for (lua_Integer i = 1; i <= n && !any; i++)
        any = is_of(L, s->list, i, s->fn, &line);
    if (any)
        ask_function(L, s);
}

/* --- nil's metatable ---------------------------------------------------------------------- */

static int complain(lua_State *L, const char *doing)
{
    const char *key = lkl__shown(L, 2, NULL);
    lkl__border_push(L);
    lua_getiuservalue(L, -1, BORDER_ABSENT_KEY);
    lua_getiuservalue(L, -2, BORDER_ABSENT_IN);
    if (lua_isnil(L, -2))
        return lkl__error(L, "attempt to %s a nil value (key '%s')", doing, key);
    if (lkl_view_value(L, -1))
        lkl__view_describe(L, -1, -2);
    else
        lkl__draft_describe(L, -1, -2);
    return lkl__error(L,
        "attempt to %s a nil value (key '%s'); the last absent field is %s; object(\"a.b.c\") reads nil-safe",
        doing, key, lua_tostring(L, -1));
}

static int nil_index(lua_State *L)
{
    lua_Debug ar;
    int line, of_chain;
    lua_settop(L, 2);
    if (!lua_isnil(L, 1)) /* called by hand */
        return luaL_argerror(L, 1, "nil expected");
    if (!push_chains(L, false) || !(line = push_reader(L, &ar)))
        return complain(L, "index");
    lua_Integer last = (lua_Integer)lua_rawlen(L, 3); /* the read just made */
    if (!last || !is_of(L, 3, last, 4, &of_chain) || of_chain != line)
        return complain(L, "index");
    lua_rawgeti(L, 3, last);
    lua_pushvalue(L, 2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pushnil(L);
    return 1;
}

static int nil_newindex(lua_State *L)
{
    search s;
    lua_settop(L, 3);
    if (!lua_isnil(L, 1))
        return luaL_argerror(L, 1, "nil expected");
    find_chain(L, &s, 2);
    if (s.is_unclear)
        return lkl__error(L,
            "this statement reads more than one absent field of a draft and assigns '%s' below one of them; "
            "use two statements, or assign the whole map: n.status.x = { y = 1 }",
            lkl__shown(L, 2, NULL));
    if (!s.found)
        return complain(L, "set a field of");
    lua_rawgeti(L, s.list, s.found); /* {draft, key...} */
    int chain = lua_gettop(L);
    lua_pushvalue(L, 2);
    lua_rawseti(L, chain, (lua_Integer)lua_rawlen(L, chain) + 1);
    lkl__statement_over(L);
    lkl__draft_assign(L, chain, 3);
    return 0;
}

/* #draft.a.b: an absent list has length 0. */
static int nil_len(lua_State *L)
{
    search s;
    lua_settop(L, 1);
    if (!lua_isnil(L, 1))
        return luaL_argerror(L, 1, "nil expected");
    find_used(L, &s, LKL__MEASURED);
    if (s.found && !s.is_unclear) {
        lua_pushinteger(L, 0);
        return 1;
    }
    lua_settop(L, 1);
    lkl__border_push(L);
    lua_getiuservalue(L, -1, BORDER_ABSENT_KEY);
    lua_getiuservalue(L, -2, BORDER_ABSENT_IN);
    if (lua_isnil(L, -2))
        return lkl__error(L, "attempt to get length of a nil value");
    if (lkl_view_value(L, -1))
        lkl__view_describe(L, -1, -2);
    else
        lkl__draft_describe(L, -1, -2);
    return lkl__error(L,
        "attempt to get length of a nil value; the last absent field is %s; write #(x or {})",
        lua_tostring(L, -1));
}

bool lkl__absent_insert(lua_State *L, int value_idx)
{
    search s;
    int top = lua_gettop(L);
    value_idx = lua_absindex(L, value_idx);
    if (!lkl__border(L)->nil_index)
        return false;
    find_used(L, &s, LKL__PASSED);
    bool good = s.found && !s.is_unclear;
    if (good) {
        lua_rawgeti(L, s.list, s.found);
        int chain = lua_gettop(L);
        lua_createtable(L, 1, 0);
        lua_pushvalue(L, value_idx);
        lua_rawseti(L, -2, 1);
        lkl__statement_over(L);
        lkl__draft_assign(L, chain, chain + 1);
    }
    lua_settop(L, top);
    return good;
}

void lkl_install_nil_index(lua_State *L)
{
    lkl__border(L)->nil_index = true;
    lua_pushnil(L);
    if (lkl__metatable(L, &nil_mt, "nil")) {
        lua_pushcfunction(L, nil_index);
        lua_setfield(L, -2, "__index");
        lua_pushcfunction(L, nil_newindex);
        lua_setfield(L, -2, "__newindex");
        lua_pushcfunction(L, nil_len);
        lua_setfield(L, -2, "__len");
        lkl__keep_metatable(L, &nil_mt);
    }
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
    push_all_chains(L); /* while there are weak tables (flaws.h) */
    lua_pop(L, 1);
}

/* --- a state that is not ours: for the time of one function ------------------------------- */

/* core.nil_swap(x): gives nil our metatable (true), the table x, or none (false). Returns what nil had, in
 * the same form, so a second call restores it. */
static int nil_swap(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &nil_mt); /* 2 */
    lua_pushnil(L);
    if (!lua_getmetatable(L, 3))
        lua_pushboolean(L, false); /* 4: what it has */
    if (lua_istable(L, 2) && lua_rawequal(L, 2, 4)) {
        lua_pushboolean(L, true);
        lua_replace(L, 4);
    }
    if (lua_isboolean(L, 1) && lua_toboolean(L, 1)) {
        lkl_install_nil_index(L);
    } else {
        lkl__border(L)->nil_index = false;
        lkl__forget_chains(L);
        if (lua_istable(L, 1))
            lua_pushvalue(L, 1);
        else
            lua_pushnil(L);
        lua_setmetatable(L, 3);
    }
    lua_settop(L, 4);
    return 1;
}

void lkl__open_nil(lua_State *L)
{
    static const luaL_Reg functions[] = {{"nil_swap", nil_swap}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
