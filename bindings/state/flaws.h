/* flaws.h - what is known of the Lua that runs scripts, and how its published bugs are kept from them.
 * Owner thread. */
#ifndef LKL_FLAWS_H
#define LKL_FLAWS_H

#include <lua.h>

/* A published bug of the interpreter: what it is, the first release without it, and what keeps scripts from
 * it. spec/bindings/flaws_spec.lua has a try, or a reason, for each. */
typedef struct lkl_flaw {
    const char *what, *mended, *answer;
} lkl_flaw;
extern const lkl_flaw lkl_flaws[]; /* ends with what NULL */

/* For a new state of a script, after everything of ours that has weak tables is there: metamethods that
 * Lua gets wrong are no metamethods from now on, whatever a table says. */
void lkl_flaws_close(lua_State *L);
/* What a metatable may not have, and why; ends with name NULL. */
typedef struct lkl_closed_field {
    const char *name, *why;
} lkl_closed_field;
extern const lkl_closed_field lkl_flaws_fields[];
/* Coroutines that close coroutines: so many deep. */
#define LKL_CLOSES_MAX 8

#endif
