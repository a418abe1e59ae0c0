/* flaws.c - published bugs of Lua 5.4.4, and what is done about each: bugs that lua.org lists, bugs that were
 * found in later releases but are in 5.4.4 too, and one of Debian's. mend.c answers two of them.
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
    {"lua.c assumes that it has a name", "5.4.5", "not used: kubelua has its own program"},
    {"`local _ENV <const>` generates code that reads outside of the stack (CVE-2022-28805)", "5.4.5",
        "mended in Debian's 5.4.4-2"},
    {"an error in error handling overflows the stack (CVE-2022-33099)", "5.4.5",
        "mended in Debian's 5.4.4-3"},
    {"a __concat that makes the stack grow leaves a pointer into the old stack (Debian's 5.4.4-3, not 5.4.4 "
     "itself)",
        "5.4.5", "refused: metatables of scripts have no __concat"},
    {"lua_settop may use a pointer into an old stack", "5.4.5",
        "not used: nothing in C has variables to be closed"},
    {"`break` may leave the closing value of a `for` loop on the list of variables to close, and the next "
     "one then writes outside the stack",
        "5.4.5", "worked around: the loop's code is corrected at load time"},
    {"bitwise operations may compute wrong values in a function of more than 255 constants", "5.4.5",
        "known: wrong numbers, no workaround"},
    {"a generational collector may wait too long after a full collection", "5.4.5",
        "bounded: a state has a ceiling, and kubelua collects between keys"},
    {"utf8.codes takes continuation bytes where none belong", "5.4.5", "known: no workaround"},
    {"coroutines that close coroutines overflow the C stack", "5.4.5", "bounded: 8 deep"},
    {"an error of arithmetic may name a wrong line", "5.4.5", "known: no workaround"},
    {"a corrupt binary chunk crashes the loader", "5.4.5",
        "refused: scripts are text, wherever they are loaded"},
    {"a comparison of strings reads too far if the locale treats different ones as equal", "5.4.7",
        "not used: strings are compared by their bytes, and scripts cannot set a locale"},
    {"a hook for calls is called twice after a hook that yielded", "5.4.7",
        "not used: a coroutine that a hook ended is not resumed"},
    {"an error of a call may name a wrong line", "5.4.7", "known: no workaround"},
    {"an error in a long chain of fields overflows the C stack", "5.4.7",
        "bounded: a chain has at most 250 fields"},
    {"the length of joined strings overflows", "5.4.7", "bounded: a state has a ceiling far below it"},
    {"a coroutine that a hook yielded stands at a wrong instruction", "5.4.7",
        "not used: a coroutine that a hook ended is not resumed"},
    {"the lines of a stripped vararg function are wrong", "5.4.7", "not used: scripts have no debug library"},
    {"the compiler copies parts of a union over each other", "5.4.7",
        "harmless: compilers generate the intended code"},
    {"a traceback needs more of the stack than there may be", "5.4.7",
        "not used: tracebacks are made in separate calls, which have room"},
    {"a comparison as an index, t[a < b], may read a value of another function in place of t", "5.4.8",
        "refused: where t is a variable of an outer function"},
    {"an error in error handling may raise where nothing catches it", "5.4.8",
        "worked around: its message is allocated at the start"},
    {"closing a coroutine may overwrite the message handler of a protected call in it", "5.4.8",
        "not used: xpcall of scripts keeps its handler elsewhere"},
    {"the collector frees a weak metatable's __newindex while it is used", "5.4.8",
        "refused: metatables of scripts have no __mode"},
    {"an error with a field of a string that is called _ENV names a global", "5.4.8", "known: no workaround"},
    {"a panic function may see no status", "5.4.8", "not used: everything of a script runs protected"},
    {"a constructor of 2^30 fields overflows a count", "5.4.8",
        "bounded: a source has at most 4 MiB, a state its ceiling"},
    {"the collector misses a new metatable of a weak table", "5.5.0",
        "refused: metatables of scripts have no __mode"},
    {"a gmatch that failed overflows the C stack when it is resumed", "no release up to 5.5.0",
        "not used: patterns are matched by kubelua"},
    {"loading binary chunks does not let the collector work", "no release up to 5.5.0",
        "refused: scripts are text, wherever they are loaded"},
    {"lua_load moves what its reader has on the stack", "no release up to 5.5.0",
        "not used: readers of kubelua leave the stack alone"},
    {NULL, NULL, NULL},
};

/* --- metamethods that are none ------------------------------------------------------------ */

const lkl_closed_field lkl_flaws_fields[] = {
    {"__concat", LUA_RELEASE " may crash in it; use __tostring and tostring(x) .. y"},
    {"__mode", LUA_RELEASE " may crash in weak tables; use ctx.memo to remember values"},
    {NULL, NULL},
};

/* The interpreter finds the metamethod's name by the address of the string that it made at its start; short
 * strings are interned by their bytes. With other bytes the interned string is never found, so a script's
 * "__concat" is a different string. The new bytes cannot be guessed. None is NUL: Lua remembers the string by
 * our text's address, and would take it for an empty one. */
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
    lua_pushliteral(L, "error in error handling"); /* kept in the registry, so that nothing is allocated when
                                                      it is needed */
    lua_rawsetp(L, LUA_REGISTRYINDEX, &in_handler);
    for (const lkl_closed_field *f = lkl_flaws_fields; f->name; f++)
        change_word(L, f->name);
}
