/* flaws.c - published bugs of Lua 5.4.4 that scripts could reach, and what is done about each.
 *
 * Debian's lua5.4 5.4.4-3 has the upstream fixes of CVE-2022-28805 (_ENV <const>) and CVE-2022-33099
 * (errors in error handling). The second one brought a worse bug: a __concat that makes the Lua stack grow
 * leaves the interpreter with a pointer into the old one. So there is no __concat, and for the two bugs of
 * weak tables no __mode: the interpreter's own word for each is changed, so that no table of a script can
 * have it. */
#include "state/flaws.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include <lauxlib.h>

#include "base/mem.h"

const lkl_flaw lkl_flaws[] = {
    {"a __concat that makes the stack grow leaves a pointer into the old stack (Debian's 5.4.4-3, not 5.4.4 "
     "itself)",
        "5.4.5", "refused: metatables of scripts have no __concat"},
    {"the collector frees a weak metatable's __newindex while it is used", "5.4.8",
        "refused: metatables of scripts have no __mode"},
    {"the collector misses a new metatable of a weak table", "5.5.0",
        "refused: metatables of scripts have no __mode"},
    {"coroutines that close coroutines overflow the C stack", "5.4.5", "bounded: 8 deep"},
    {"an error in a long chain of fields overflows the C stack", "5.4.7",
        "bounded: a chain has at most 250 fields"},
    {"an error in error handling may raise where nothing catches it", "5.4.8",
        "worked around: its text is there from the start"},
    {"closing a coroutine may overwrite the message handler of a protected call in it", "5.4.8",
        "not used: xpcall of scripts keeps its handler elsewhere"},
    {"a corrupt binary chunk crashes the loader", "5.4.5",
        "refused: scripts are text, wherever they are loaded"},
    {"a gmatch that failed overflows the C stack when it goes on", "no release up to 5.5.0",
        "not used: patterns are matched by kubelua"},
    {"`break` may close the variables of a `for` loop late", "5.4.5", "known: nothing is done about it"},
    {"bitwise operations may compute wrong values in a function of more than 255 constants", "5.4.5",
        "known: nothing is done about it"},
    {"a comparison as an index, t[a < b], may read the wrong table", "5.4.8",
        "known: nothing is done about it"},
    {NULL, NULL, NULL},
};

/* --- metamethods that are none ------------------------------------------------------------ */

const lkl_closed_field lkl_flaws_fields[] = {
    {"__concat", LUA_RELEASE " may crash in it; use __tostring and tostring(x) .. y"},
    {"__mode", LUA_RELEASE " may crash in weak tables; use ctx.memo for what is remembered"},
    {NULL, NULL},
};

/* The interpreter looks for the string that it made when the state began, by its address, and short
 * strings are found again by their bytes. With other bytes in it nobody finds that string any more, and a
 * script's "__concat" is another one. They are bytes that nobody can guess; none is NUL, for then the
 * string, which Lua remembers by our text's address, would begin like an empty one. */
static void change_word(lua_State *L, const char *name)
{
    char *word = (char *)(uintptr_t)lua_pushstring(L, name);
    size_t n = strlen(name);
    if (lua_rawlen(L, -1) == n) {
        if (getrandom(word, n, 0) != (ssize_t)n)
            kl_mem_die("getrandom");
        for (size_t i = 0; i < n; i++)
            word[i] |= 1;
    }
    lua_pop(L, 1);
}

static const char in_handler;

void lkl_flaws_close(lua_State *L)
{
    lua_pushliteral(L, "error in error handling"); /* kept, so that nothing is allocated for it then */
    lua_rawsetp(L, LUA_REGISTRYINDEX, &in_handler);
    for (const lkl_closed_field *f = lkl_flaws_fields; f->name; f++)
        change_word(L, f->name);
}
