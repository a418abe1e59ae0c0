/* lstream.c - sessions (session/session.h) for any Lua state: begun, read and written in slices, so that ^C
 * and other hooks work.
 *
 *   client:session{...} --> s:read() --> false (nothing yet), channel and bytes ..., then nil and the exit status, or a raised error
 *
 * A session that is collected or closed releases its connection. Closing the client ends its sessions;
 * they report "cancelled". */
#include <string.h>
#include "api/post.h"
#include "api/stream.h"
#include "base/mem.h"
#include "session/forward.h"
#include "session/session.h"

#define READ_SIZE ((size_t)64 << 10)
#define WORDS_MAX 1024

enum { USER_CLIENT = 1, USER_OPTIONS, USER_SLOTS = USER_OPTIONS };

static void free_session(void *ptr) { kl_session_free(ptr); }

static const char *string_field(lua_State *L, const char *name)
{
    if (lua_getfield(L, 2, name) != LUA_TNIL && lua_type(L, -1) != LUA_TSTRING)
        luaL_argerror(L, 2, lua_pushfstring(L, "%s: expected a string, got %s", name, luaL_typename(L, -1)));
    const char *s = lua_tostring(L, -1);
    lua_pop(L, 1); /* the table keeps it */
    return s;
}

static int64_t number_field(lua_State *L, const char *name, int64_t otherwise)
{
    lua_getfield(L, 2, name);
    int64_t n = lua_isnil(L, -1) ? otherwise : luaL_checkinteger(L, -1);
    lua_pop(L, 1);
    return n;
}

/* The words of opts.command, in a userdata that stays on the stack. */
static const char **command_field(lua_State *L)
{
    lua_getfield(L, 2, "command");
    lua_Integer n = lua_istable(L, -1) ? luaL_len(L, -1) : 0;
    if (n > WORDS_MAX)
        luaL_argerror(L, 2, "command: too many words");
    const char **words = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *words, 0);
    for (lua_Integer i = 0; i < n; i++) {
        if (lua_rawgeti(L, -2, i + 1) != LUA_TSTRING)
            luaL_argerror(L, 2,
                lua_pushfstring(
                    L, "command: word %d is not a string but %s", (int)i + 1, luaL_typename(L, -1)));
        words[i] = lua_tostring(L, -1);
        if (strlen(words[i]) != lua_rawlen(L, -1))
            luaL_argerror(L, 2, lua_pushfstring(L, "command: word %d holds a zero byte", (int)i + 1));
        lua_pop(L, 1);
    }
    words[n] = NULL;
    return words;
}

/* What an error message will need is put on the stack before there is an error: raising must find nothing to
 * leak. */
typedef struct blame {
    const char *verb, *key;
} blame;

static blame blame_prepare(lua_State *L, int options)
{
    luaL_checkstack(L, 8, NULL);
    lua_getfield(L, options, "verb");
    lua_getfield(L, options, "ns");
    lua_getfield(L, options, "pod");
    const char *ns = lua_tostring(L, -2), *pod = lua_tostring(L, -1);
    return (blame){lua_tostring(L, -3), lua_pushfstring(L, "%s/%s", ns ? ns : "?", pod ? pod : "?")};
}

/* client:session{ verb = "logs"|"exec"|"attach"|"port_forward", ns =, pod =, container =, ... }: options
 * are checked by stream.lua */
int lkl__client_session(lua_State *L)
{
    static const char *const kinds[] = {"logs", "exec", "attach", "port_forward", NULL};
    lkl_hub *h = lkl_box_check(L, 1, &lkl__client_class);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    kl_session_request r;
    lua_getfield(L, 2, "verb");
    kl_session_request_init(&r, (kl_session_kind)luaL_checkoption(L, -1, NULL, kinds));
    r.ns = string_field(L, "ns");
    r.pod = string_field(L, "pod");
    r.container = string_field(L, "container");
    r.protocol = string_field(L, "protocol");
    r.since_time = string_field(L, "since_time");
    r.input = lkl__field_flag(L, 2, "input");
    r.tty = lkl__field_flag(L, 2, "tty");
    r.follow = lkl__field_flag(L, 2, "follow");
    r.previous = lkl__field_flag(L, 2, "previous");
    r.timestamps = lkl__field_flag(L, 2, "timestamps");
    r.since_seconds = number_field(L, "since_seconds", -1);
    r.tail = number_field(L, "tail", -1);
    r.limit_bytes = number_field(L, "limit_bytes", -1);
    r.port = (int)number_field(L, "port", 0);
    r.command = command_field(L);
    blame who = blame_prepare(L, 2);
    lua_pushinteger(L, (lua_Integer)kl_clock_now(kl_clock_real()));
    lua_rawsetp(L, 2, &lkl__session_class); /* when it began */
    lkl_box *box = lkl_box_new(L, &lkl__session_class, USER_SLOTS);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, USER_CLIENT);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, USER_OPTIONS);
    kl_session *s = NULL;
    kl_err err = KL_ERR_INIT;
    if (kl_session_start(h->client, &r, &s, &err))
        return lkl_raise(L, &err, who.verb, "v1/Pod", who.key);
    box->ptr = s;
    return 1;
}

static kl_session *self(lua_State *L) { return lkl_box_check(L, 1, &lkl__session_class); }

static kl_time slice(void) { return kl_clock_now(kl_clock_real()) + LKL_SLICE; }

/* s:read([now]): false while nothing came; a channel and bytes; nil and the exit status; or a raised
 * error. `now`: without waiting */
static int session_read(lua_State *L)
{
    kl_session *s = self(L);
    bool look = lua_toboolean(L, 2);
    lua_settop(L, 1);
    luaL_Buffer b;
    char *to = luaL_buffinitsize(L, &b, READ_SIZE);
    size_t n;
    int channel;
    kl_status st = kl_session_read(s, look ? 0 : slice(), &channel, to, READ_SIZE, &n, NULL);
    if (st == KL_EAGAIN) {
        lua_pushboolean(L, false);
        return 1;
    }
    if (st) {
        kl_err err = KL_ERR_INIT;
        lua_getiuservalue(L, 1, USER_OPTIONS);
        blame who = blame_prepare(L, lua_gettop(L));
        /* an ended session repeats how it ended */
        if (!kl_session_read(s, 0, &channel, NULL, 0, &n, &err))
            err.status = st;
        return lkl_raise(L, &err, who.verb, "v1/Pod", who.key);
    }
    if (!n) {
        lua_pushnil(L);
        lua_pushinteger(L, kl_session_exit(s));
        return 2;
    }
    luaL_pushresultsize(&b, n);
    lua_pushinteger(L, channel);
    lua_insert(L, -2);
    return 2;
}

/* s:write(bytes, from[, now]): how many of the bytes from `from` on were taken, which may be none */
static int session_write(lua_State *L)
{
    kl_session *s = self(L);
    size_t n, taken;
    const char *data = luaL_checklstring(L, 2, &n);
    lua_Integer from = luaL_optinteger(L, 3, 1);
    luaL_argcheck(L, from >= 1 && (lua_Unsigned)from <= n + 1, 3, "outside the bytes");
    kl_session_write(s, lua_toboolean(L, 4) ? 0 : slice(), data + from - 1, n - (size_t)(from - 1), &taken);
    lua_pushinteger(L, (lua_Integer)taken);
    return 1;
}

static int session_close_input(lua_State *L)
{
    kl_session_close_input(self(L));
    return 0;
}

/* s:resize(columns, rows) */
static int session_resize(lua_State *L)
{
    lua_Integer columns = luaL_checkinteger(L, 2), rows = luaL_checkinteger(L, 3);
    luaL_argcheck(L, columns >= 1 && columns <= 65535, 2, "columns are 1 to 65535");
    luaL_argcheck(L, rows >= 1 && rows <= 65535, 3, "rows are 1 to 65535");
    kl_session_resize(self(L), (int)columns, (int)rows);
    return 0;
}

/* s:opened(): whether it is (or was) open, waited for one slice */
static int session_opened(lua_State *L)
{
    lua_pushboolean(L, kl_session_opened(self(L), slice()));
    return 1;
}

/* s:age(): seconds since it was begun */
static int session_age(lua_State *L)
{
    self(L);
    lua_getiuservalue(L, 1, USER_OPTIONS);
    lua_rawgetp(L, -1, &lkl__session_class);
    lua_pushnumber(L, (double)(kl_clock_now(kl_clock_real()) - (kl_time)lua_tointeger(L, -1)) / 1e9);
    return 1;
}

static int session_protocol(lua_State *L)
{
    lua_pushstring(L, kl_session_protocol(self(L)));
    return 1;
}

kl_session *lkl__session_at(lua_State *L, int idx) { return lkl_box_check(L, idx, &lkl__session_class); }

static const luaL_Reg session_methods[] = {
    {"read", session_read},
    {"write", session_write},
    {"close_input", session_close_input},
    {"resize", session_resize},
    {"opened", session_opened},
    {"age", session_age},
    {"protocol", session_protocol},
    {"close", lkl__box_close},
    {NULL, NULL},
};
const lkl_class lkl__session_class = {"kubelua.session", free_session, session_methods, NULL};

/* --- forwarded ports ---------------------------------------------------------------------- */

static void free_forward(void *ptr) { kl_forward_free(ptr); }

/* client:forward{ ns =, pod =, port =, listen = "127.0.0.1:0" } */
int lkl__client_forward(lua_State *L)
{
    lkl_hub *h = lkl_box_check(L, 1, &lkl__client_class);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    const char *ns = string_field(L, "ns"), *pod = string_field(L, "pod"),
               *listen = string_field(L, "listen");
    int port = (int)number_field(L, "port", 0);
    blame who = blame_prepare(L, 2);
    lkl_box *box = lkl_box_new(L, &lkl__forward_class, USER_SLOTS);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, USER_CLIENT);
    kl_forward *f = NULL;
    kl_err err = KL_ERR_INIT;
    if (kl_forward_start(h->client, ns, pod, port, listen, &f, &err))
        return lkl_raise(L, &err, who.verb, "v1/Pod", who.key);
    box->ptr = f;
    return 1;
}

/* f:port(): where it listens */
static int forward_port(lua_State *L)
{
    lua_pushinteger(L, kl_forward_port(lkl_box_check(L, 1, &lkl__forward_class)));
    return 1;
}

/* f:state(): connections open now, connections so far, and the last failure's text or nil */
static int forward_state(lua_State *L)
{
    kl_forward *f = lkl_box_check(L, 1, &lkl__forward_class);
    int open, total;
    char *failure = kl_forward_state(f, &open, &total);
    lua_pushinteger(L, open);
    lua_pushinteger(L, total);
    if (failure)
        lkl__push_text(L, failure);
    else
        lua_pushnil(L);
    return 3;
}

static const luaL_Reg forward_methods[] = {
    {"port", forward_port}, {"state", forward_state}, {"close", lkl__box_close}, {NULL, NULL}};
const lkl_class lkl__forward_class = {"kubelua.forward", free_forward, forward_methods, NULL};
