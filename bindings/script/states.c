/* states.c - the controllers of a manager as tables. */
#include "script/states.h"

#include "base/mem.h"
#include "state/border.h"

typedef struct states {
    kl_controller_state *v;
    size_t n;
} states;
static void states_free(void *p)
{
    states *st = p;
    kl_controller_states_free(st->v, st->n);
    kl_free(st);
}
static const lkl_class states_class = {.name = "kubelua.states", .free = states_free};

void lkl__push_states(lua_State *L, kl_manager *m)
{
    lua_newtable(L);
    if (!m)
        return;
    int list = lua_gettop(L);
    lkl_box *box = lkl_box_new(L, &states_class, 0);
    states *st = box->ptr = kl_new(states);
    st->n = kl_manager_controllers(m, &st->v);
    for (size_t i = 0; i < st->n; i++) {
        const kl_controller_state *c = &st->v[i];
        const struct {
            const char *name, *text;
        } texts[] = {{"name", c->name}, {"state", c->state}, {"message", c->message}};
        const struct {
            const char *name;
            uint64_t n;
        } counts[] = {{"runs", c->runs}, {"errors", c->errors}, {"ready", c->ready}, {"delayed", c->delayed},
            {"running", c->running}, {"failing", c->failing}, {"generation", (uint64_t)c->generation}};
        lua_createtable(L, 0, 12);
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            lua_pushstring(L, texts[k].text);
            lua_setfield(L, -2, texts[k].name);
        }
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            lua_pushinteger(L, (lua_Integer)counts[k].n);
            lua_setfield(L, -2, counts[k].name);
        }
        lua_rawseti(L, list, (lua_Integer)i + 1);
    }
    lua_settop(L, list);
}
