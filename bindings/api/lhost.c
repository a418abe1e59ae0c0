/* lhost.c - what the library's own Lua files need of the machine: clocks, sleep, names of files. Scripts'
 * states get only the clocks. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "api/post.h"
#include "base/mem.h"

/* core.monotonic(): seconds on a clock that only runs forward */
static int monotonic(lua_State *L)
{
    lua_pushnumber(L, (double)kl_clock_now(kl_clock_real()) / 1e9);
    return 1;
}

/* core.wall(): seconds since 1970 with their fraction */
static int wall(lua_State *L)
{
    lua_pushnumber(L, (double)kl_clock_wall(kl_clock_real()) / 1e9);
    return 1;
}

/* core.rest(seconds): sleeps for one slice at most, so that ^C works between two slices; returns the seconds
 * that are left */
static int rest(lua_State *L)
{
    kl_time now = kl_clock_now(kl_clock_real()), until = kl_time_after(now, lkl_check_duration(L, 1, "rest")),
            slice = now + LKL_SLICE;
    kl_mutex mu;
    kl_cond never;
    kl_mutex_init(&mu);
    kl_cond_init(&never);
    kl_lock(&mu);
    while (kl_cond_wait_until(&never, &mu, slice < until ? slice : until))
        continue;
    kl_unlock(&mu);
    kl_cond_fini(&never);
    kl_mutex_fini(&mu);
    lua_pushnumber(L, (double)(until - kl_clock_now(kl_clock_real())) / 1e9);
    return 1;
}

/* --- files of a directory ----------------------------------------------------------------- */

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

typedef struct paths {
    char **v;
    size_t n;
} paths;

static void paths_free(void *ptr)
{
    paths *p = ptr;
    for (size_t i = 0; i < p->n; i++)
        kl_free(p->v[i]);
    kl_free(p->v);
    kl_free(p);
}

static const lkl_class paths_class = {.name = "kubelua.paths", .free = paths_free};

static bool is_manifest(const char *path)
{
    return kl_ends_with(path, ".yaml") || kl_ends_with(path, ".yml") || kl_ends_with(path, ".json");
}

static int visible(const struct dirent *e) { return e->d_name[0] != '.'; }

/* Files at any depth with that suffix, or (suffix NULL) the manifests right there; links to directories are
 * not followed. Below 0: the directory cannot be read. */
static int gather(paths *p, const char *path, const char *suffix)
{
    struct stat st;
    struct dirent **names;
    int n = scandir(path, &names, visible, NULL);
    for (int i = 0; i < n; i++) {
        char *full = kl_sprintf("%s%s%s", path, kl_ends_with(path, "/") ? "" : "/", names[i]->d_name);
        free(names[i]);
        bool directory = !lstat(full, &st) && S_ISDIR(st.st_mode);
        if (directory && suffix)
            (void)gather(p, full, suffix); /* a directory that cannot be read is skipped */
        if (!directory && (suffix ? kl_ends_with(full, suffix) : is_manifest(full))) {
            p->v = kl_realloc(p->v, (p->n + 1) * sizeof *p->v);
            p->v[p->n++] = full;
        } else {
            kl_free(full);
        }
    }
    if (n >= 0)
        free(names);
    return n;
}

/* Returns { path } for the file at 1; for a directory what it has, sorted; else nil and why. */
static int listed(lua_State *L, const char *suffix)
{
    const char *path = luaL_checkstring(L, 1);
    lkl_box *box = lkl_box_new(L, &paths_class, 0);
    paths *p = box->ptr = kl_new(paths);
    struct stat st;
    if (stat(path, &st) || (S_ISDIR(st.st_mode) && gather(p, path, suffix) < 0)) {
        lua_pushnil(L);
        lua_pushstring(L, strerror(errno));
        return 2;
    }
    lua_newtable(L);
    if (!S_ISDIR(st.st_mode)) {
        lua_pushvalue(L, 1);
        lua_rawseti(L, -2, 1);
    }
    if (p->n)
        qsort(p->v, p->n, sizeof *p->v, by_name);
    for (size_t i = 0; i < p->n; i++) {
        lua_pushstring(L, p->v[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* core.files(path): { path } for a file; for a directory its .yaml, .yml and .json files, sorted by name;
 * else nil and why */
static int files(lua_State *L) { return listed(L, NULL); }

/* core.tree(path, suffix): { path } for a file; for a directory all files below it with that suffix, sorted,
 * without hidden ones; else nil and why */
static int tree(lua_State *L) { return listed(L, luaL_checkstring(L, 2)); }

void lkl__open_clock(lua_State *L)
{
    static const luaL_Reg functions[] = {{"monotonic", monotonic}, {"wall", wall}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}

void lkl__open_host(lua_State *L)
{
    static const luaL_Reg functions[] = {{"tree", tree}, {"rest", rest}, {"files", files}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
