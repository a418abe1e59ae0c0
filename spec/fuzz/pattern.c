/* pattern.c - our matcher beside stock Lua's. The input is a pattern, a line break, and the subject. Both
 * find the same with the same captures, or say the same about the pattern. Stock Lua is not asked where
 * ours took so many steps that it might not come back. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <setjmp.h>

#include "base/mem.h"
#include "base/pattern.h"
#include "fuzz/fuzz.h"

#define STEPS_MAX 200000

typedef struct limit {
    jmp_buf out;
    size_t steps;
} limit;

static void spend(void *arg, size_t steps)
{
    limit *l = arg;
    l->steps += steps;
    if (l->steps > STEPS_MAX)
        longjmp(l->out, 1);
}

/* What string.find returned lies from `first` to the top. */
static void same(lua_State *L, int first, const kl_pattern *p, const kl_matching *m, const char *end)
{
    CLAIM(lua_gettop(L) - first + 1 == 2 + (int)kl_pattern_captures(p));
    CLAIM(lua_tointeger(L, first) == m->from - m->begin + 1);
    CLAIM(lua_tointeger(L, first + 1) == end - m->begin);
    for (size_t i = 0; i < kl_pattern_captures(p); i++) {
        const kl_capture *c = &m->captures[i];
        int at = first + 2 + (int)i;
        size_t n;
        if (c->len == KL_CAPTURE_POSITION) {
            CLAIM(lua_isinteger(L, at) && lua_tointeger(L, at) == c->at - m->begin + 1);
            continue;
        }
        CLAIM(lua_type(L, at) == LUA_TSTRING);
        const char *text = lua_tolstring(L, at, &n);
        CLAIM((ptrdiff_t)n == c->len && !memcmp(text, c->at, n));
    }
}

static bool is_open(const kl_pattern *p, const kl_matching *m)
{
    for (size_t i = 0; i < kl_pattern_captures(p); i++)
        if (m->captures[i].len == KL_CAPTURE_OPEN)
            return true;
    return false;
}

static void compare(lua_State *L, kl_pattern *p, kl_matching *m, const char *end)
{
    if (lua_pcall(L, 2, LUA_MULTRET, 0)) {
        const char *why = lua_tostring(L, -1);
        if (strstr(why, "too complex"))
            return;
        if (!strcmp(why, "unfinished capture")) {
            CLAIM(end && is_open(p, m));
            return;
        }
        CLAIM(!strcmp(why, m->error));
        return;
    }
    CLAIM(!m->error[0]);
    if (lua_isnil(L, 1))
        CLAIM(!end);
    else {
        CLAIM(end);
        same(L, 1, p, m, end);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;
    if (!L) {
        L = luaL_newstate();
        luaL_requiref(L, "string", luaopen_string, 1);
    }
    const char *text = (const char *)data, *cut = memchr(data, '\n', size);
    size_t n = cut ? (size_t)(cut - text) : size;
    lua_settop(L, 0);
    lua_getglobal(L, "string");
    lua_getfield(L, -1, "find");
    lua_remove(L, 1);
    const char *subject = lua_pushlstring(L, cut ? cut + 1 : "", cut ? size - n - 1 : 0);
    size_t len = lua_rawlen(L, -1);
    lua_pushlstring(L, text, n);

    size_t room = kl_pattern_size(text, n);
    void *memory = kl_alloc(room);
    CLAIM(!kl_pattern_init(memory, room - 1, text, n, true));
    kl_pattern *p = kl_pattern_init(memory, room, text, n, true);
    limit l = {.steps = 0};
    kl_matching m;
    kl_matching_init(&m, subject, len, spend, &l);
    if (!setjmp(l.out)) {
        const char *end = kl_pattern_search(p, &m, subject);
        if (!kl_pattern_plain(text, n))
            compare(L, p, &m, end);
        else
            CLAIM(m.error[0] || (end != NULL) == (memmem(subject, len, text, n) != NULL));
    }
    kl_free(memory);
    return 0;
}
