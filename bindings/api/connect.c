/* connect.c - the table of kube.connect as sources of a configuration. It can say everything that a
 * kubeconfig can, so a program needs none.
 *
 * lua/kubelua/client.lua has checked names and types; this file turns its lists into C arrays. The arrays
 * are userdata on the stack and live as long as the caller's frame. */
#include "api/post.h"

const char *lkl__field_text(lua_State *L, int t, const char *key)
{
    lua_getfield(L, t, key);
    const char *s = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    lua_pop(L, 1); /* the table keeps it */
    return s;
}

bool lkl__field_flag(lua_State *L, int t, const char *key)
{
    lua_getfield(L, t, key);
    bool on = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return on;
}

/* Pops the string on top of the stack and returns it; its table keeps it alive. */
static const char *take_string(lua_State *L, const char *key)
{
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "kube.connect: %s must hold strings, got %s", key, luaL_typename(L, -1));
    const char *s = lua_tostring(L, -1);
    lua_pop(L, 1);
    return s;
}

static const char **room(lua_State *L, size_t n)
{
    const char **list = lua_newuserdatauv(L, (n + 1) * sizeof *list, 0);
    list[n] = NULL;
    return list;
}

static const char *const *groups(lua_State *L, int t)
{
    const char **list = NULL;
    if (lua_getfield(L, t, "as_groups") == LUA_TTABLE) {
        size_t n = lua_rawlen(L, -1);
        int from = lua_gettop(L);
        list = room(L, n);
        for (size_t i = 0; i < n; i++) {
            lua_rawgeti(L, from, (lua_Integer)i + 1);
            list[i] = take_string(L, "as_groups");
        }
    }
    return list; /* table and userdata stay on the stack */
}

static size_t count_values(lua_State *L)
{
    size_t n = lua_istable(L, -1) ? lua_rawlen(L, -1) : 1;
    return 2 * n;
}

/* Turns { key = "value" or { "value", ... } } into key, value, key, value. */
static const char *const *extra(lua_State *L, int t)
{
    if (lua_getfield(L, t, "as_extra") != LUA_TTABLE)
        return NULL;
    int from = lua_gettop(L);
    size_t n = 0, at = 0;
    for (lua_pushnil(L); lua_next(L, from); lua_pop(L, 1))
        n += count_values(L);
    const char **list = room(L, n);
    for (lua_pushnil(L); lua_next(L, from); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        const char *key = take_string(L, "as_extra's keys");
        size_t values = lua_istable(L, -1) ? lua_rawlen(L, -1) : 1;
        for (size_t i = 0; i < values; i++) {
            if (lua_istable(L, -1))
                lua_rawgeti(L, -1, (lua_Integer)i + 1);
            else
                lua_pushvalue(L, -1);
            list[at++] = key;
            list[at++] = take_string(L, "as_extra");
        }
    }
    return list;
}

void lkl__connect_sources(lua_State *L, int t, kl_config_sources *s)
{
    luaL_checkstack(L, 16, "kube.connect");
    kl_config_sources_default(s);
    s->explicit_file = lkl__field_text(L, t, "kubeconfig");
    s->o = (kl_config_overrides){.context = lkl__field_text(L, t, "context"),
        .cluster = lkl__field_text(L, t, "cluster"),
        .user = lkl__field_text(L, t, "user"),
        .ns = lkl__field_text(L, t, "namespace"),
        .server = lkl__field_text(L, t, "server"),
        .tls_server_name = lkl__field_text(L, t, "tls_server_name"),
        .timeout = lkl__field_text(L, t, "timeout"),
        .proxy = lkl__field_text(L, t, "proxy"),
        .token = lkl__field_text(L, t, "token"),
        .token_file = lkl__field_text(L, t, "token_file"),
        .username = lkl__field_text(L, t, "username"),
        .password = lkl__field_text(L, t, "password"),
        .ca_file = lkl__field_text(L, t, "ca_file"),
        .ca_data = lkl__field_text(L, t, "ca_data"),
        .cert_file = lkl__field_text(L, t, "cert_file"),
        .cert_data = lkl__field_text(L, t, "cert_data"),
        .key_file = lkl__field_text(L, t, "key_file"),
        .key_data = lkl__field_text(L, t, "key_data"),
        .impersonate = lkl__field_text(L, t, "as"),
        .impersonate_uid = lkl__field_text(L, t, "as_uid"),
        .impersonate_groups = groups(L, t),
        .impersonate_extra = extra(L, t),
        .insecure = lkl__field_flag(L, t, "insecure") ? 1 : -1,
        .disable_compression = lkl__field_flag(L, t, "disable_compression")};
    /* A server alone, without any file or context, needs none of what the environment offers. */
    if (s->o.server && !s->explicit_file && !s->o.context) {
        s->env = NULL;
        s->home_file = NULL;
        s->try_in_cluster = false;
    }
}
