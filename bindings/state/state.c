/* state.c - a script's state: its load, under budgets; its errors as text; its end.
 *
 * The state is a closed set: nothing that is reachable in it touches files, processes or the network. The API
 * is reached through ctx, while a key is reconciled. spec/bindings/closed_spec.lua walks through everything
 * reachable and knows it by name. environment.c makes that set, require.c finds modules. */
#include "state/state.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "state/depth.h"
#include "state/environment.h"
#include "state/flaws.h"
#include "state/require.h"

/* The processor time for a load, which runs a script's top level: tables and functions, milliseconds. The
 * wall clock limits it too, for a machine that has no processor to give. */
static _Atomic kl_time load_max = KL_SECONDS(2);
#define LOAD_WALL_MAX KL_SECONDS(60)

static const char script_key, controllers_key;

/* The word beside each coroutine: the address of its state, and in the lowest bits its tags (lkl_tag). A new
 * coroutine copies the main thread's. */
static uintptr_t *word(lua_State *L) { return lua_getextraspace(L); }

lkl_state *lkl_state_of(lua_State *L)
{
    return (lkl_state *)(*word(L) & ~(uintptr_t)LKL_TAGS); /* NOLINT(performance-no-int-to-ptr) */
}

void lkl__tag(lua_State *co, lkl_tag tag, bool on)
{
    *word(co) = on ? *word(co) | tag : *word(co) & ~(uintptr_t)tag;
}

bool lkl__has_tag(lua_State *co, lkl_tag tag) { return *word(co) & tag; }

bool lkl__is_key(lua_State *L) { return lkl__has_tag(L, LKL_TAG_KEY) || L == lkl_state_of(L)->L; }

bool lkl__was_too_deep(lua_State *L)
{
    char *text = lkl_ceiling_tell_other(&lkl_state_of(L)->ceiling);
    if (!text)
        return false;
    char copy[256]; /* Lua may have no memory for a copy of its own */
    snprintf(copy, sizeof copy, "%s", text);
    kl_free(text);
    lua_pop(L, 1);
    lua_pushstring(L, copy);
    return true;
}

typedef struct loading {
    lkl_state *state;
    lua_CFunction describe;
    void *arg;
    bool loaded; /* the script has run; its controllers are being described */
} loading;

/* Everything in a new state, protected: libraries, environment, the script, its controllers. */
static int setup(lua_State *L)
{
    loading *load = lua_touserdata(L, 1);
    lkl_state *s = load->state;
    lkl__open_globals(L);
    lkl__open_library(L);
    lkl__open_environment(L);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "kubelua.script");
    lua_call(L, 1, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &script_key);
    lua_settop(L, 1);
#ifdef KL_DEBUG
    lkl_stress_stuck(s->bundle->sources[0].text);
#endif
    lkl__push_view_metatable(L); /* the last of our own weak tables */
    lua_settop(L, 1);
    lkl_flaws_close(L);
    lkl_state_push(L, "controllers");
    lkl__push_chunk(L, &s->bundle->sources[0]);
    lua_call(L, 0, 1);
    lua_pushstring(L, s->bundle->sources[0].path);
    lua_call(L, 2, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &controllers_key);
    load->loaded = true;
    if (load->describe) {
        lua_pushcfunction(L, load->describe);
        lua_pushlightuserdata(L, load->arg);
        lua_call(L, 1, 0);
    }
    return 0;
}

void lkl_state_push(lua_State *L, const char *what)
{
    if (!strcmp(what, "list")) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &controllers_key);
        return;
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &script_key);
    lua_getfield(L, -1, what);
    lua_remove(L, -2);
}

/* The library's Lua makes the best text of an error, once it is loaded. */
static int to_text(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &script_key) == LUA_TTABLE
        && lua_getfield(L, -1, "shown") == LUA_TFUNCTION) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
    } else {
        lkl__shown(L, 1, NULL);
    }
    return 1;
}

char *lkl_state_error(lua_State *co)
{
    lua_pushcfunction(co, to_text);
    lua_insert(co, -2);
    char *text;
    if (lua_pcall(co, 1, 1, 0) || !lua_tostring(co, -1))
        text = kl_strdup("an error that cannot be shown");
    else if (!(text = kl_log_cut(lua_tostring(co, -1))))
        text = kl_strdup(lua_tostring(co, -1));
    lua_pop(co, 1);
    return text;
}

static char *too_big(const lkl_state *s)
{
    char *other = lkl_ceiling_tell_other(&s->ceiling);
    if (other)
        return other;
    const char *where = s->ceiling.where;
    return kl_sprintf("%s%sloading needs more than %zuMi of memory: the top level only builds tables and "
                      "functions; do the work in reconcile",
        where, *where ? ": " : "", s->ceiling.max >> 20);
}

/* The message handler of the load: a text names its position; for any other error value this records it. */
static int note_place(lua_State *L)
{
    lkl_state *s = lkl_state_of(L);
    if (lua_type(L, 1) == LUA_TSTRING || !lkl__place(L, 1, s->raised_at, sizeof s->raised_at))
        *s->raised_at = '\0';
    return 1;
}

static char *load_error(lkl_state *s, const loading *load)
{
    char *text = lkl_state_error(s->L);
    if (!*s->raised_at && !load->loaded)
        return text;
    char *whole = load->loaded ? kl_sprintf("%s: %s", s->bundle->sources[0].path, text)
                               : kl_sprintf("%s: raised %s", s->raised_at, text);
    kl_free(text);
    return whole;
}

void lkl_state_set_load_max(kl_time cpu) { atomic_store(&load_max, cpu); }

kl_status lkl_state_new(lkl_bundle *bundle, lua_CFunction describe, void *arg, lkl_state **out, kl_err *err)
{
    lkl_state *s = kl_new(lkl_state);
    s->bundle = bundle;
    s->loading = describe;
    s->controller = "";
    s->L = luaL_newstate();
    if (!s->L) {
        kl_free(s);
        return kl_fail(err, KL_ESCRIPT, "%s: not enough memory for a Lua state", bundle->sources[0].path);
    }
#ifdef KL_DEBUG
    lkl_stress_start(s->L, &s->stress);
#endif
    *word(s->L) = (uintptr_t)s;
    lkl_budget_open(s);
    if (s->budget.way != LKL_BUDGET_NONE)
        lkl_ceiling_start(s->L, &s->ceiling, LKL_MEMORY_DEFAULT, &s->budget.running);
    (void)lkl_depth_known(s->L);
    (void)lkl_crowd_known(s->L, &s->ceiling.crowd);
    loading load = {.state = s, .describe = describe, .arg = arg};
    lkl_budget_enter(s, s->L,
        &(kl_terms){
            .cpu = atomic_load(&load_max), .deadline = kl_clock_now(kl_clock_real()) + LOAD_WALL_MAX});
    s->ceiling.on = true;
    lua_pushcfunction(s->L, note_place);
    lua_pushcfunction(s->L, setup);
    lua_pushlightuserdata(s->L, &load);
    int failed = lua_pcall(s->L, 1, 0, 1);
    s->ceiling.on = false;
    char *text = failed == LUA_ERRMEM ? too_big(s) : failed ? load_error(s, &load) : NULL;
    kl_over over = lkl_budget_leave(s);
    lkl_budget_clean(s, s->L);
    if (failed || over) {
        kl_status st = kl_fail(err, KL_ESCRIPT, "%s", over ? s->budget.message : text);
        kl_free(text);
        lkl_state_free(s);
        return st;
    }
    lua_settop(s->L, 0);
    s->loading = false;
    *out = s;
    return KL_OK;
}

void lkl_state_free(lkl_state *s)
{
    if (!s)
        return;
    lua_close(s->L);
    lkl__boxes_free(&s->ceiling);
    lkl_ceiling_end(&s->ceiling);
    lkl_budget_close(s);
    kl_free(s->traceback);
    kl_free(s);
}
