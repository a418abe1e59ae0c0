/* secret.c - the type of ctx.secret: a text that a script may pass on but not read. A text that is formatted
 * with a secret is a secret; a printed secret is "***"; only core.unsealed gives the text. It has no __concat
 * (see state/flaws.c). */
#include <string.h>
#include "state/border.h"

static const char secret_tag, secret_mt;

typedef struct secret {
    const void *tag;
    size_t n;
    char text[];
} secret;

const char *lkl__secret_text(lua_State *L, int idx, size_t *n)
{
    const secret *s = lkl__tagged(L, idx, &secret_tag, sizeof *s);
    if (s)
        *n = s->n;
    return s ? s->text : NULL;
}

/* Text, number or secret number `which` of secret:format(format, ...); raises for the rest. */
static const char *part(lua_State *L, int which, size_t *n)
{
    int idx = which ? which + 2 : 1;
    const char *text = lkl__secret_text(L, idx, n);
    if (!text && lua_isstring(L, idx))
        text = lua_tolstring(L, idx, n);
    if (!text)
        lkl__error(L, "secret:format: %%s number %d must be a string or a secret, got %s", which + 1,
            luaL_typename(L, idx));
    return text;
}

/* Writes the result of `format`, or only counts its bytes (out NULL); `given` is the number of texts for its
 * %s. */
static size_t fill(lua_State *L, const char *format, int given, char *out)
{
    size_t len = 0, n;
    int which = 0;
    for (const char *c = format; *c; c++) {
        const char *text = c;
        n = 1;
        if (*c == '%' && *++c == 's')
            text = part(L, which++, &n);
        else if (text != c && *c != '%')
            lkl__error(L, "secret:format: %%s stands for the secret, and %%%% for a %%");
        if (out)
            memcpy(out + len, text, n);
        len += n;
    }
    if (!which)
        lkl__error(L, "secret:format: the text has no %%s, where the secret goes");
    if (which < given)
        lkl__error(L, "secret:format: more arguments than %%s");
    return len;
}

/* secret:format("Bearer %s", ...): a secret; each %s is one of secret, ... */
static int secret_format(lua_State *L)
{
    size_t n;
    if (!lkl__secret_text(L, 1, &n))
        return luaL_typeerror(L, 1, "kubelua.secret");
    const char *format = lkl__text(L, 2);
    int given = lua_gettop(L) - 1;
    size_t len = fill(L, format, given, NULL);
    (void)fill(L, format, given, lkl__push_secret(L, NULL, len));
    return 1;
}

static int secret_tostring(lua_State *L)
{
    lua_pushliteral(L, "***");
    return 1;
}

char *lkl__push_secret(lua_State *L, const char *text, size_t n)
{
    secret *s = lua_newuserdatauv(L, sizeof *s + n + 1, 0);
    *s = (secret){&secret_tag, n};
    memset(s->text, 0, n + 1);
    if (text)
        memcpy(s->text, text, n);
    if (lkl__metatable(L, &secret_mt, "kubelua.secret")) {
        lua_pushcfunction(L, secret_tostring);
        lua_setfield(L, -2, "__tostring");
        lua_createtable(L, 0, 1);
        lua_pushcfunction(L, secret_format);
        lua_setfield(L, -2, "format");
        lua_setfield(L, -2, "__index");
        lkl__keep_metatable(L, &secret_mt);
    }
    lua_setmetatable(L, -2);
    return s->text;
}

/* core.unsealed(x): the text of a secret; nil for anything else. For the library, where secrets are used. */
static int unsealed(lua_State *L)
{
    size_t n;
    const char *text = lkl__secret_text(L, 1, &n);
    if (!text)
        return 0;
    lua_pushlstring(L, text, n);
    return 1;
}

void lkl__open_secret(lua_State *L)
{
    lua_pushcfunction(L, unsealed);
    lua_setfield(L, -2, "unsealed");
}
