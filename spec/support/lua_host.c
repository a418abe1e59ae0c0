/* lua_host.c - runs a Lua script as stock lua5.4 does, in a process that was linked with a sanitizer.
 *
 * Debian's lua5.4 cannot load a module that wants a sanitizer's runtime; this host can. It preloads
 * nothing and closes its state at the end, so LeakSanitizer sees what a module forgot. Scripts that call
 * os.exit(code, true), as busted does, close it too. keep_loaded(path) is for modules of others that hold
 * memory in static variables: such a module stays until after the last look for leaks. With
 * KUBELUA_GC_STRESS=N in the environment each N-th allocation collects everything first. */
#include <dlfcn.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

#include "state/stress.h"

static int traceback(lua_State *L)
{
    const char *msg = luaL_tolstring(L, 1, NULL);
    luaL_traceback(L, L, msg, 1);
    return 1;
}

static int keep_loaded(lua_State *L)
{
    if (!dlopen(luaL_checkstring(L, 1), RTLD_LAZY | RTLD_NODELETE))
        return luaL_error(L, "%s", dlerror());
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s SCRIPT [ARG...]\n", argv[0]);
        return 2;
    }
    lua_State *L = luaL_newstate();
    if (!L) {
        fprintf(stderr, "%s: no memory for a Lua state\n", argv[0]);
        return 1;
    }
    static lkl_stress stress;
    lkl_stress_start(L, &stress);
    luaL_openlibs(L);
    lua_register(L, "keep_loaded", keep_loaded);
    lua_createtable(L, argc, 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - 1); /* arg[0] is the script */
    }
    lua_setglobal(L, "arg");
    lua_pushcfunction(L, traceback);
    int failed = luaL_loadfile(L, argv[1]);
    if (!failed) {
        for (int i = 2; i < argc; i++)
            lua_pushstring(L, argv[i]);
        failed = lua_pcall(L, argc - 2, 0, 1);
    }
    if (failed)
        fprintf(stderr, "%s: %s\n", argv[0], lua_tostring(L, -1));
    lua_close(L);
    return failed ? 1 : 0;
}
