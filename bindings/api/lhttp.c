/* lhttp.c - rules of `http`, where the table of a controller is checked. */
#include "http/reach.h"
#include "state/border.h"

/* core.http_rule_problem(url): why it is not a rule, or nil */
static int rule_problem(lua_State *L)
{
    kl_err err = KL_ERR_INIT;
    const char *rule = lkl__text(L, 1);
    if (!kl_reach_rule_check(rule, &err))
        return 0;
    lkl__push_message(L, &err);
    return 1;
}

/* core.http_rule_for(url, rules): the rule that lets a URL pass, or nil */
static int rule_for(lua_State *L)
{
    const char *url = lkl__text(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    kl_reach at;
    if (kl_reach_parse(url, &at, NULL))
        return 0;
    for (lua_Integer i = 1; lua_rawgeti(L, 2, i) == LUA_TSTRING; i++) {
        char *const one[] = {(char *)lkl__text(L, -1), NULL};
        if (kl_reach_rule(one, &at))
            return 1;
        lua_pop(L, 1);
    }
    return 0;
}

void lkl__open_http(lua_State *L)
{
    lua_pushcfunction(L, rule_for);
    lua_setfield(L, -2, "http_rule_for");
    lua_pushcfunction(L, rule_problem);
    lua_setfield(L, -2, "http_rule_problem");
}
