/* lsuggest.c - "did you mean" in Lua: one rule (base/suggest.h) for the library's messages in both languages.
 */
#include "base/suggest.h"
#include "state/border.h"
#include "state/budget.h"

/* Words that are compared before the budget is asked, and the steps of one comparison at most. */
#define BATCH 32
#define WORD_STEPS 16384

/* core.nearest(word, words): the nearest of a list of strings, or nil when none is near */
static int nearest(lua_State *L)
{
    const char *word = luaL_checkstring(L, 1), *some[BATCH + 1] = {0};
    luaL_checktype(L, 2, LUA_TTABLE);
    bool counted = lkl__border(L)->counted;
    size_t n = lua_rawlen(L, 2), kept = 0;
    for (size_t i = 1; i <= n; i++) {
        /* the texts stay the table's, which nobody changes meanwhile */
        if (lua_rawgeti(L, 2, (lua_Integer)i) == LUA_TSTRING)
            some[kept++] = lua_tostring(L, -1);
        lua_pop(L, 1);
        if (kept > BATCH || i == n) {
            if (counted)
                lkl_budget_spend(L, kept * WORD_STEPS);
            some[0] = kl_suggest(word, some, kept);
            kept = some[0] ? 1 : 0;
        }
    }
    lua_pushstring(L, kept ? some[0] : NULL);
    return 1;
}

void lkl__open_suggest(lua_State *L)
{
    lua_pushcfunction(L, nearest);
    lua_setfield(L, -2, "nearest");
}
