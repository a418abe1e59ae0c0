/* fail.c - a kl_err as the table that Lua code sees raised: code, kind, reason, message, details,
 * conflicts, retry_after, verb, resource, key.
 *
 * Such a table reports what the world did; a mistake of the caller is an ordinary argument error. kube.try
 * in lua/kubelua/init.lua tells the two apart by lkl_is_error. */
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "state/border.h"

static const char error_mt;

static bool begins_with_word(const char *text, const char *word)
{
    size_t n = word ? strlen(word) : 0;
    return n && text && strncmp(text, word, n) == 0 && text[n] == ' ';
}

/* "get v1/Pod default/x: pods "x" not found (404 NotFound)" */
static int error_tostring(lua_State *L)
{
    static const char *const lead[] = {"verb", "resource", "key"};
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    luaL_Buffer b;
    int n = 0;
    for (int i = 0; i < 3; i++) { /* stack: 2, 3, 4 */
        lua_getfield(L, 1, lead[i]);
        n += lua_isstring(L, -1);
    }
    lua_getfield(L, 1, "message"); /* 5 */
    if (begins_with_word(lua_tostring(L, 5), lua_tostring(L, 2)))
        n = 0;                    /* the message itself names what was tried */
    lua_getfield(L, 1, "code");   /* 6 */
    lua_getfield(L, 1, "reason"); /* 7 */
    luaL_buffinit(L, &b);
    for (int i = 2; i <= 4 && n; i++)
        if (lua_isstring(L, i)) {
            luaL_addstring(&b, lua_tostring(L, i));
            luaL_addstring(&b, --n ? " " : ": ");
        }
    luaL_addstring(&b, lua_isstring(L, 5) ? lua_tostring(L, 5) : "failed");
    if (lua_isinteger(L, 6) || lua_isstring(L, 7)) {
        luaL_addstring(&b, " (");
        if (lua_isinteger(L, 6)) {
            lua_pushfstring(L, "%d", (int)lua_tointeger(L, 6));
            luaL_addvalue(&b);
        }
        if (lua_isstring(L, 7)) {
            if (lua_isinteger(L, 6))
                luaL_addchar(&b, ' ');
            luaL_addstring(&b, lua_tostring(L, 7));
        }
        luaL_addchar(&b, ')');
    }
    luaL_pushresult(&b);
    return 1;
}

static void push_error_metatable(lua_State *L)
{
    if (lkl__metatable(L, &error_mt, "kubelua.error")) {
        lua_pushcfunction(L, error_tostring);
        lua_setfield(L, -2, "__tostring");
        lkl__keep_metatable(L, &error_mt);
    }
}

bool lkl_is_error(lua_State *L, int idx)
{
    if (lua_type(L, idx) != LUA_TTABLE || !lua_getmetatable(L, idx))
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &error_mt);
    bool same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same;
}

static void set_string(lua_State *L, const char *field, const char *s)
{
    if (s && *s) {
        lua_pushstring(L, s);
        lua_setfield(L, -2, field);
    }
}

/* The owners of the fields that an apply wanted: conflicts = {{ manager =, field = }, ...}. The server
 * reports them as text: `conflict with "NAME" using apps/v1`. */
static void set_conflicts(lua_State *L, const kl_value *details)
{
    const kl_value *causes = kl_value_get(details, "causes");
    lua_Integer n = 0;
    for (size_t i = 0; i < kl_value_len(causes); i++) {
        const kl_value *cause = kl_value_item(causes, i);
        const char *reason = kl_value_str_at(cause, "reason", NULL),
                   *message = kl_value_str_at(cause, "message", NULL);
        if (!reason || strcmp(reason, "FieldManagerConflict") != 0)
            continue;
        if (!n++)
            lua_newtable(L);
        lua_createtable(L, 0, 2);
        const char *from = message ? strchr(message, '"') : NULL, *to = from ? strchr(from + 1, '"') : NULL;
        lua_pushlstring(L, to ? from + 1 : "", to ? (size_t)(to - from - 1) : 0);
        lua_setfield(L, -2, "manager");
        set_string(L, "field", kl_value_str_at(cause, "field", NULL));
        lua_rawseti(L, -2, n);
    }
    if (n)
        lua_setfield(L, -2, "conflicts");
}

/* Details come from a server: details that do not decode are left out. */
static void set_details(lua_State *L, const char *json)
{
    const kl_value *details = NULL;
    if (!json)
        return;
    lkl_box *box = lkl_value_box(L);
    if (!kl_value_decode(json, strlen(json), &details, NULL)) {
        box->ptr = (void *)details;
        lkl_push_value(L, details);
        lua_setfield(L, -3, "details");
    }
    lua_pop(L, 1);
    set_conflicts(L, details); /* the view keeps them */
}

/* A server's message may say that it got {} where a list belongs. It does not know the way out in Lua: this
 * adds it. */
static void set_message(lua_State *L, const char *message)
{
    bool list = strstr(message, "must be of type array: \"object\"") || strstr(message, "expected list, got")
        || (strstr(message, "cannot unmarshal object into Go ")
            && (strstr(message, "slice") || strstr(message, "of type []")));
    if (list)
        lua_pushfstring(
            L, "%s; an empty Lua table is sent as {}: write kube.array {} for an empty list", message);
    else
        lua_pushstring(L, message);
    lua_setfield(L, -2, "message");
}

void lkl_push_error(lua_State *L, const kl_err *err, const char *verb, const char *resource, const char *key)
{
    lua_createtable(L, 0, 9);
    push_error_metatable(L);
    lua_setmetatable(L, -2);
    set_string(L, "kind", kl_status_name(err->status));
    set_message(L, kl_err_message(err));
    set_string(L, "reason", err->reason);
    set_string(L, "verb", verb);
    set_string(L, "resource", resource);
    set_string(L, "key", key);
    if (err->http_code) {
        lua_pushinteger(L, err->http_code);
        lua_setfield(L, -2, "code");
    }
    if (err->retry_after_ns > 0) {
        lua_pushnumber(L, (double)err->retry_after_ns / 1e9);
        lua_setfield(L, -2, "retry_after");
    }
    set_details(L, err->details);
}

typedef struct story {
    const kl_err *err;
    const char *verb, *resource, *key;
    int arg;
} story;

static int push_story(lua_State *L)
{
    const story *s = lua_touserdata(L, 1);
    lkl_push_error(L, s->err, s->verb, s->resource, s->key);
    return 1;
}

/* Runs fn(story) so that running out of memory does not leak err; leaves its result, or Lua's own error, on
 * the stack. */
static int tell(lua_State *L, lua_CFunction fn, const story *s, kl_err *err)
{
    lua_pushcfunction(L, fn);
    lua_pushlightuserdata(L, (void *)s);
    int failed = lua_pcall(L, 1, 1, 0);
    kl_err_fini(err);
    return failed;
}

static int push_message(lua_State *L)
{
    const story *s = lua_touserdata(L, 1);
    lua_pushstring(L, kl_err_message(s->err));
    return 1;
}

void lkl__push_message(lua_State *L, kl_err *err)
{
    if (tell(L, push_message, &(story){.err = err}, err))
        lua_error(L);
}

int lkl__fail(lua_State *L, kl_err *err)
{
    lkl__push_message(L, err);
    return lkl__error(L, "%s", lua_tostring(L, -1));
}

int lkl__given(lua_State *L, kl_status st, kl_err *err) { return st ? lkl__fail(L, err) : 0; }

/* A body that does not fit its schema is the caller's mistake, so the error has the caller's line. */
int lkl_raise(lua_State *L, kl_err *err, const char *verb, const char *resource, const char *key)
{
    bool mistake = err->reason && !err->http_code && !strcmp(err->reason, KL_REASON_SCHEMA);
    (void)tell(L, mistake ? push_message : push_story, &(story){err, verb, resource, key, 0}, err);
    return mistake ? lkl__error(L, "%s", lua_tostring(L, -1)) : lua_error(L);
}

int lkl__argerror(lua_State *L, int arg, kl_err *err)
{
    (void)tell(L, push_message, &(story){.err = err, .arg = arg}, err);
    return luaL_argerror(L, arg, lua_tostring(L, -1));
}

static int push_text(lua_State *L)
{
    lua_pushstring(L, lua_touserdata(L, 1));
    return 1;
}

void lkl__push_text(lua_State *L, char *taken)
{
    lua_pushcfunction(L, push_text);
    lua_pushlightuserdata(L, taken);
    int failed = lua_pcall(L, 1, 1, 0);
    kl_free(taken);
    if (failed)
        lua_error(L);
}

/* --- whose mistake ------------------------------------------------------------------------ */

/* Whether `at`, inside source, comes right behind `before`. */
static bool comes_behind(const char *source, const char *at, const char *before)
{
    size_t n = strlen(before);
    return (size_t)(at - source) >= n && strncmp(at - n, before, n) == 0;
}

/* The library's own Lua files, from a checkout, an installation or our binary ("@kubelua/client.lua"). A
 * chunk that load made from text has a name without '@', and is a script's whatever it is called. */
static bool ours(const char *source)
{
    const char *at = *source == '@' ? source : "";
    while ((at = strstr(at, "kubelua/"))) {
        if (at == source + 1 || comes_behind(source, at, "lua/") || comes_behind(source, at, "5.4/"))
            return strchr(at + 8, '/') == NULL;
        at += 8;
    }
    return false;
}

/* The most calls of our own that may lie between a script's line and the failure. Lua counts each level from
 * the innermost call, so walking a whole deep stack would take the square of its calls. */
#define OUR_CALLS_MAX 200

bool lkl__place(lua_State *L, int level, char *out, size_t size)
{
    lua_Debug ar;
    for (int end = level + OUR_CALLS_MAX; level < end && lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline > 0 && !ours(ar.source)) {
            snprintf(out, size, "%s:%d", ar.short_src, ar.currentline);
            return true;
        }
    }
    return false;
}

void lkl__where_from(lua_State *L, int level)
{
    char place[LUA_IDSIZE + 16];
    if (lkl__place(L, level, place, sizeof place))
        lua_pushfstring(L, "%s: ", place);
    else
        lua_pushliteral(L, "");
}

void lkl__where(lua_State *L) { lkl__where_from(L, 1); }

/* A frame is a line: "\n\tkubelua/context.lua:155: in method 'get'". */
#define OURS "\n\tkubelua/"

char *lkl__traceback(lua_State *L)
{
    luaL_traceback(L, L, NULL, 1);
    const char *text = lua_tostring(L, -1);
    char *out = kl_strdup(text), *to = out;
    for (const char *from = text; *from;) {
        size_t n = strcspn(from + 1, "\n") + 1; /* from one newline up to the next */
        if (strncmp(from, OURS, strlen(OURS)) != 0) {
            memmove(to, from, n);
            to += n;
        }
        from += n;
    }
    *to = '\0';
    lua_pop(L, 1);
    return out;
}

int lkl__error(lua_State *L, const char *fmt, ...)
{
    va_list ap;
    lkl__where(L);
    va_start(ap, fmt);
    lua_pushvfstring(L, fmt, ap);
    va_end(ap);
    lua_concat(L, 2);
    return lua_error(L);
}

/* core.blame(message): raises it with the place of the library's caller */
static int blame(lua_State *L) { return lkl__error(L, "%s", luaL_checkstring(L, 1)); }

/* core.is_error(x) */
static int is_error(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, lkl_is_error(L, 1));
    return 1;
}

/* core.error{ kind =, message =, ... }: a structured error made by the library's Lua files */
static int make_error(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    push_error_metatable(L);
    lua_setmetatable(L, 1);
    return 1;
}

void lkl__open_error(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"is_error", is_error}, {"error", make_error}, {"blame", blame}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
