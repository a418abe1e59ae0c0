/* flaws.h - published bugs of the Lua that runs scripts, and the protection from them. Owner thread. */
#ifndef LKL_FLAWS_H
#define LKL_FLAWS_H

#include <lua.h>

/* A published bug of the interpreter: a description, the first release without it, and our protection.
 * spec/bindings/flaws_spec.lua has a test, or a reason, for each. */
typedef struct lkl_flaw {
    const char *what, *mended, *answer;
} lkl_flaw;
extern const lkl_flaw lkl_flaws[]; /* ends with what NULL */

/* For a new state of a script, after our own weak tables were created: disables the metamethods that Lua
 * handles wrongly. */
void lkl_flaws_close(lua_State *L);
/* Forbidden fields of a metatable, and why; ends with name NULL. */
typedef struct lkl_closed_field {
    const char *name, *why;
} lkl_closed_field;
extern const lkl_closed_field lkl_flaws_fields[];
/* The maximum depth of coroutines that close coroutines. */
#define LKL_CLOSES_MAX 8

#endif
