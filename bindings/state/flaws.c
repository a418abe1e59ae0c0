/* flaws.c - published bugs of Lua 5.4.4 that scripts could reach, and what is done about each.
 *
 * Debian's lua5.4 5.4.4-3 has the upstream fixes of CVE-2022-28805 (_ENV <const>) and CVE-2022-33099
 * (errors in error handling). The second one brought a worse bug: a __concat that makes the Lua stack grow
 * leaves the interpreter with a pointer into the old one. So there is no __concat, and for the two bugs of
 * weak tables no __mode: the interpreter's own word for each is changed, so that no table of a script can
 * have it. */
#include "state/flaws.h"

#include <ctype.h>
#include <stdbool.h>
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

/* --- chains ------------------------------------------------------------------------------- */

/* a.b.c[d].e: to name what was nil, Lua walks back along the chain, by recursion, and looks through the
 * function for each step. */
typedef struct scan {
    const char *at, *end;
    size_t line;
    size_t chain;      /* fields so far */
    size_t outer[256]; /* of what brackets are open: more are more than Lua compiles */
    size_t open;
    bool dot; /* the last token: what follows is a field's name */
} scan;

static void skip_to(scan *s, const char *to)
{
    for (; s->at < to; s->at++)
        s->line += *s->at == '\n';
}

/* The level of a long bracket that begins here, or -1. */
static int long_level(const scan *s)
{
    const char *p = s->at + 1;
    while (p < s->end && *p == '=')
        p++;
    return *s->at == '[' && p < s->end && *p == '[' ? (int)(p - s->at - 1) : -1;
}

static void skip_long(scan *s, int level)
{
    for (const char *p = s->at + level + 2; p < s->end; p++) {
        const char *q = p + 1;
        if (*p != ']')
            continue;
        while (q < s->end && *q == '=' && q - p - 1 < level)
            q++;
        if (q < s->end && *q == ']' && q - p - 1 == level) {
            skip_to(s, q + 1);
            return;
        }
    }
    skip_to(s, s->end);
}

static void skip_quoted(scan *s)
{
    char quote = *s->at;
    const char *p = s->at + 1;
    while (p < s->end && *p != quote && *p != '\n')
        p += *p == '\\' && p + 1 < s->end ? 2 : 1;
    skip_to(s, p < s->end ? p + 1 : s->end);
}

static void skip_comment(scan *s)
{
    s->at += 2;
    int level = s->at < s->end ? long_level(s) : -1;
    if (level >= 0) {
        skip_long(s, level);
        return;
    }
    while (s->at < s->end && *s->at != '\n')
        s->at++;
}

static void skip_word(scan *s)
{
    while (s->at < s->end && (isalnum((unsigned char)*s->at) || *s->at == '_'))
        s->at++;
}

static void open_bracket(scan *s)
{
    if (s->open < sizeof s->outer / sizeof *s->outer)
        s->outer[s->open] = s->chain;
    s->open++;
    s->chain = 0;
}

/* (a.b).c is one chain; of the arguments of a call the longest counts. */
static void close_bracket(scan *s, char c)
{
    if (s->open)
        s->open--;
    size_t outer = s->open < sizeof s->outer / sizeof *s->outer ? s->outer[s->open] : 0;
    if (c == ']')
        s->chain = outer + 1;
    else if (c == '}' || s->chain < outer)
        s->chain = outer;
}

static void step(scan *s)
{
    unsigned char c = (unsigned char)*s->at;
    bool dot = s->dot;
    s->dot = false;
    if (c == '-' && s->at + 1 < s->end && s->at[1] == '-') {
        skip_comment(s);
        s->dot = dot;
    } else if (isspace(c)) {
        skip_to(s, s->at + 1);
        s->dot = dot;
    } else if (isalpha(c) || c == '_') {
        skip_word(s);
        s->chain = dot ? s->chain : 0;
    } else if (isdigit(c)) {
        skip_word(s);
    } else if (c == '"' || c == '\'') {
        skip_quoted(s);
    } else if (c == '[' && long_level(s) >= 0) {
        skip_long(s, long_level(s));
    } else if (c == '[' || c == '(' || c == '{') {
        s->at++;
        open_bracket(s);
    } else if (c == ']' || c == ')' || c == '}') {
        s->at++;
        close_bracket(s, (char)c);
    } else {
        bool field = (c == '.' || c == ':') && s->at + 1 < s->end && s->at[1] != c;
        s->at += (c == '.' || c == ':') && !field && s->at + 1 < s->end ? 2 : 1;
        s->dot = field;
        s->chain = field ? s->chain + 1 : 0;
    }
}

size_t lkl_flaws_chain(const char *text, size_t n)
{
    scan s = {.at = text, .end = text + n, .line = 1};
    while (s.at < s.end && s.chain <= LKL_CHAIN_MAX)
        step(&s);
    return s.chain > LKL_CHAIN_MAX ? s.line : 0;
}
