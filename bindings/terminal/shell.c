/* shell.c - the terminal of `kubelua shell` for Lua (lua/kubelua/cli/shell.lua):
 *
 *   local t = env.terminal(history_file or nil, function(head) return candidates, from end)
 *   t:read(prompt)       a line; false after ^C; nil at the end
 *   t:remember(text)     into the history
 *   t:edits()            whether a person types
 *   t:run(fn, ...)       pcall under which ^C raises "interrupted" in fn
 *   t:close()            writes the history
 *
 * `candidates` is a sorted list of strings that could replace what stands from character `from` on to the
 * cursor. */
#include "terminal/shell.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <lauxlib.h>

#include "state/lkl.h"
#include "base/mem.h"
#include "terminal/prompt.h"

typedef struct terminal {
    cli_prompt *p;
    lua_State *L; /* the state that reads: completion runs there */
    int complete; /* the function, in the registry */
} terminal;

/* --- completion --------------------------------------------------------------------------- */

/* Below the line, in columns. */
static void show(lua_State *L, int list, size_t n)
{
    size_t longest = 0;
    for (size_t i = 1; i <= n; i++) {
        lua_rawgeti(L, list, (lua_Integer)i);
        size_t len = lua_rawlen(L, -1);
        longest = len > longest ? len : longest;
        lua_pop(L, 1);
    }
    struct winsize w = {0};
    size_t columns = ioctl(1, TIOCGWINSZ, &w) || !w.ws_col ? 80 : w.ws_col, across = columns / (longest + 2);
    if (!across)
        across = 1;
    size_t down = (n + across - 1) / across;
    putchar('\n');
    for (size_t row = 0; row < down; row++) {
        for (size_t i = row; i < n; i += down) {
            lua_rawgeti(L, list, (lua_Integer)i + 1);
            const char *s = lua_tostring(L, -1);
            printf("%-*s", i + down < n ? (int)longest + 2 : 0, s ? s : "");
            lua_pop(L, 1);
        }
        putchar('\n');
    }
    fflush(stdout);
}

/* How many bytes all candidates have in common. */
static size_t common(lua_State *L, int list, size_t n, const char **first)
{
    lua_rawgeti(L, list, 1);
    *first = lua_tostring(L, -1); /* the list keeps it */
    size_t len = *first ? strlen(*first) : 0;
    lua_pop(L, 1);
    for (size_t i = 2; i <= n; i++) {
        lua_rawgeti(L, list, (lua_Integer)i);
        const char *s = lua_tostring(L, -1);
        size_t k = 0;
        while (s && k < len && s[k] == (*first)[k])
            k++;
        len = k;
        lua_pop(L, 1);
    }
    return len;
}

/* More candidates than this are not listed. */
#define SHOWN_MAX 400

static int complete_protected(lua_State *L)
{
    terminal *t = lua_touserdata(L, 1);
    const char *head = lua_touserdata(L, 2);
    char **out = lua_touserdata(L, 3);
    lua_rawgeti(L, LUA_REGISTRYINDEX, t->complete);
    lua_pushstring(L, head);
    lua_call(L, 1, 2);
    lua_Integer from = luaL_optinteger(L, -1, 1);
    size_t n = lua_istable(L, -2) ? lua_rawlen(L, -2) : 0, len = strlen(head);
    if (!n || from < 1 || (size_t)from > len + 1)
        return 0;
    int list = lua_gettop(L) - 1;
    const char *first = NULL;
    size_t same = common(L, list, n, &first), typed = len - (size_t)from + 1;
    if (same > typed || n == 1)
        *out = kl_strndup(first + (same < typed ? same : typed), same > typed ? same - typed : 0);
    else if (n <= SHOWN_MAX)
        show(L, list, n);
    return 0;
}

static char *complete(void *arg, const char *head)
{
    terminal *t = arg;
    lua_State *L = t->L;
    char *out = NULL;
    int top = lua_gettop(L);
    lua_pushcfunction(L, complete_protected);
    lua_pushlightuserdata(L, t);
    lua_pushlightuserdata(L, (void *)head);
    lua_pushlightuserdata(L, &out);
    (void)lua_pcall(L, 3, 0, 0); /* a completion that fails offers nothing */
    lua_settop(L, top);
    return out;
}

/* --- ^C while something runs -------------------------------------------------------------- */

static _Atomic(lua_State *) running;

static void stop(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lua_sethook(L, NULL, 0, 0);
    luaL_error(L, "interrupted");
}

/* Called in a signal handler, where lua_sethook is allowed. */
static void interrupt(void)
{
    lua_State *L = atomic_load(&running);
    if (L)
        lua_sethook(L, stop, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer delivers a signal at the next call into the C library, and pure Lua makes none. */
static void breathe(lua_State *L, lua_Debug *ar)
{
    (void)L, (void)ar;
    (void)poll(NULL, 0, 0);
}
#endif

static terminal *self(lua_State *L);

static int run(lua_State *L)
{
    self(L);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    atomic_store(&running, L);
#ifdef __SANITIZE_THREAD__
    lua_sethook(L, breathe, LUA_MASKCOUNT, 1000);
#endif
    cli_prompt_on_interrupt(interrupt);
    int st = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
    cli_prompt_on_interrupt(NULL);
    atomic_store(&running, NULL);
    lua_sethook(L, NULL, 0, 0);
    lua_pushboolean(L, !st);
    lua_replace(L, 1);
    return lua_gettop(L);
}

/* --- the rest ----------------------------------------------------------------------------- */

static void terminal_free(void *p)
{
    terminal *t = p;
    cli_prompt_free(t->p);
    kl_free(t);
}

static int read_line(lua_State *L)
{
    terminal *t = self(L);
    const char *text = luaL_checkstring(L, 2);
    char *line = NULL;
    t->L = L;
    cli_line what = cli_prompt_read(t->p, text, &line);
    if (what == CLI_LINE)
        lua_pushstring(L, line); /* our own state: running out of memory ends the process anyway */
    else if (what == CLI_LINE_ABORTED)
        lua_pushboolean(L, false);
    else
        lua_pushnil(L);
    kl_free(line);
    return 1;
}

static int remember(lua_State *L)
{
    cli_prompt_remember(self(L)->p, luaL_checkstring(L, 2));
    return 0;
}

static int edits(lua_State *L)
{
    lua_pushboolean(L, cli_prompt_edits(self(L)->p));
    return 1;
}

static int close_terminal(lua_State *L)
{
    lkl_box_close(L, 1);
    return 0;
}

static const luaL_Reg methods[] = {{"read", read_line}, {"remember", remember}, {"edits", edits},
    {"run", run}, {"close", close_terminal}, {NULL, NULL}};
static const lkl_class terminal_class = {"kubelua.terminal", terminal_free, methods, NULL};

static terminal *self(lua_State *L) { return lkl_box_check(L, 1, &terminal_class); }

static int new_terminal(lua_State *L)
{
    const char *history = luaL_optstring(L, 1, NULL);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    lkl_box *box = lkl_box_new(L, &terminal_class, 0);
    lua_pushvalue(L, 2);
    int fn = luaL_ref(L, LUA_REGISTRYINDEX);
    terminal *t = kl_new(terminal);
    t->L = L;
    t->complete = fn;
    lkl_install_nil_index(L); /* whose messages name the field that is not there */
    t->p = cli_prompt_new(history, complete, t);
    box->ptr = t;
    return 1;
}

void cli_shell_push(lua_State *L) { lua_pushcfunction(L, new_terminal); }
