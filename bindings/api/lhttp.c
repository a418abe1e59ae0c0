/* lhttp.c - rules of `http`, where the table of a controller is checked. */
#include "http/reach.h"
#include "state/border.h"

/* core.http_rule_problem(url): why it is no rule, or nil */
static int rule_problem(lua_State *L)
{
    kl_err err = KL_ERR_INIT;
    const char *rule = lkl__text(L, 1);
    if (!kl_reach_rule_check(rule, &err))
        return 0;
    lkl__push_message(L, &err);
    return 1;
}

void lkl__open_http(lua_State *L)
{
    lua_pushcfunction(L, rule_problem);
    lua_setfield(L, -2, "http_rule_problem");
}
