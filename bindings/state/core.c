/* core.c - the module kubelua.core: one table of C functions per Lua state, on which lua/kubelua builds
 * what people use.
 *
 * Two tables: a script's state gets what computes, a program's own state everything. What reaches files,
 * processes or the network does not exist in a script's state, so nothing has to keep a script away from
 * it. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "state/border.h"

static const char module_key;

void lkl__push_script_core(lua_State *L)
{
    lua_newtable(L);
    lkl__open_scalars(L);
    lkl__open_values(L);
    lkl__open_dig(L);
    lkl__open_tally(L);
    lkl__open_convert(L);
    lkl__open_codec(L);
    lkl__open_base64(L);
    lkl__open_draft(L);
    lkl__open_nil(L);
    lkl__open_error(L);
    lkl__open_quantity(L);
    lkl__open_time(L);
    lkl__open_clock(L);
    lkl__open_selector(L);
    lkl__open_patch(L);
    lkl__open_op(L);
    lkl__open_suggest(L);
    lkl__open_kinds(L);
    lkl__open_http(L);
    lkl__open_secret(L);
}

/* What only a program's own state may call: clients, files, certificates, stores without a bound, servers for
 * tests. */
static void open_host(lua_State *L)
{
    lkl__open_client(L);
    lkl__open_web(L);
    lkl__open_informer(L);
    lkl__open_host(L);
    lkl__open_visible(L);
    lkl__open_ttl(L);
    lkl__open_cert(L);
    lkl__open_bell(L);
    lkl__open_manager(L);
    lkl__open_stage(L);
    lkl__open_sim(L);
    lkl__open_samples(L);
    lkl__open_nodes(L);
    lkl__open_gpus(L);
    lkl__open_patched(L);
    lkl__open_bounds(L);
}

int lkl_open(lua_State *L)
{
    luaL_checkversion(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &module_key) == LUA_TTABLE)
        return 1;
    lua_pop(L, 1);
    lkl__push_script_core(L);
    open_host(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &module_key);
    return 1;
}

int luaopen_kubelua_core(lua_State *L) { return lkl_open(L); }

/* --- our own states carry the library in the binary --------------------------------------- */

/* A source is compiled once per process: every script has several states, and compiling is most of the time
 * that a new state takes. Debug information is kept, so errors show lines. */
typedef struct lkl_compiled {
    size_t len;
    char code[];
} lkl_compiled;

static int add_code(lua_State *L, const void *part, size_t n, void *arg)
{
    (void)L;
    return kl_buf_add(arg, part, n) ? 1 : 0;
}

/* Keeps the function on top of the stack as the code of the source. Any thread: the first one wins. */
static void keep_code(lua_State *L, lkl_embedded_source *s)
{
    kl_buf code = KL_BUF_INIT;
    lkl_compiled *none = NULL;
    if (!lua_dump(L, add_code, &code, 0)) {
        lkl_compiled *c = kl_alloc(sizeof *c + code.len);
        c->len = code.len;
        memcpy(c->code, code.data, code.len);
        if (!atomic_compare_exchange_strong(&s->compiled, &none, c))
            kl_free(c);
    }
    kl_buf_fini(&code);
}

/* Pushes the chunk of an embedded source, compiled. */
static void push_embedded(lua_State *L, lkl_embedded_source *s)
{
    char chunk[128];
    const lkl_compiled *c = atomic_load(&s->compiled);
    snprintf(
        chunk, sizeof chunk, "@kubelua/%s.lua", strchr(s->name, '.') ? strchr(s->name, '.') + 1 : "init");
    if (luaL_loadbufferx(L, c ? c->code : s->text, c ? c->len : s->len, chunk, c ? "b" : "t"))
        lua_error(L);
    if (!c)
        keep_code(L, s);
}

static int load_embedded(lua_State *L)
{
    lkl_embedded_source *s = lua_touserdata(L, lua_upvalueindex(1));
    push_embedded(L, s);
    lua_pushstring(L, s->name);
    lua_call(L, 1, 1);
    return 1;
}

bool lkl__push_embedded(lua_State *L, const char *name)
{
    for (lkl_embedded_source *s = lkl_embedded; s->name; s++)
        if (!strcmp(s->name, name)) {
            push_embedded(L, s);
            return true;
        }
    return false;
}

void lkl_preload_embedded(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, luaopen_kubelua_core);
    lua_setfield(L, -2, "kubelua.core");
    for (lkl_embedded_source *s = lkl_embedded; s->name; s++) {
        lua_pushlightuserdata(L, s);
        lua_pushcclosure(L, load_embedded, 1);
        lua_setfield(L, -2, s->name);
    }
    lua_pop(L, 1);
}
