/* query.c - what a list out of a cache must say, as lua/kubelua/request.lua writes it down. */
#include <string.h>
#include "state/border.h"

static kl_selector_op op_of(lua_State *L, const char *text)
{
    for (kl_selector_op op = KL_SEL_EQ; op <= KL_SEL_NOT_EXISTS; op++)
        if (!strcmp(kl_selector_op_text(op), text))
            return op;
    return (kl_selector_op)luaL_error(L, "unknown operator %s", text);
}

const kl_index_term *lkl__read_terms(lua_State *L, size_t *n_terms)
{
    size_t room = 0, n = lua_rawlen(L, -1);
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        room += sizeof(kl_index_term) + lua_rawlen(L, -1) * sizeof(char *);
        lua_pop(L, 1);
    }
    kl_index_term *terms = lua_newuserdatauv(L, room, 0);
    const char **values = (const char **)(terms + n);
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        size_t len = lua_rawlen(L, -1);
        const char *word[2];
        for (size_t k = 0; k < len; k++) {
            lua_rawgeti(L, -1, (lua_Integer)k + 1);
            const char *s = lkl__text(L, -1);
            if (k < 2)
                word[k] = s;
            else
                values[k - 2] = s;
            lua_pop(L, 1);
        }
        luaL_argcheck(L, len >= 2, 2, "a term is {index, op, value ...}");
        values[len - 2] = NULL;
        terms[i] = (kl_index_term){word[0], op_of(L, word[1]), values};
        values += len - 1;
        lua_pop(L, 1);
    }
    *n_terms = n;
    return terms;
}
