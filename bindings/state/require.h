/* require.h - modules of a script and of the library. On the state's thread; each may raise. */
#ifndef LKL_REQUIRE_H
#define LKL_REQUIRE_H

#include "state/border.h"
#include "state/bundle.h"

/* Sets the library's global `require`, and the core that it finds. */
void lkl__open_library(lua_State *L);
/* Pushes the script's `require`. */
void lkl__push_require(lua_State *L);
/* Pushes a source compiled with the script's environment; raises a syntax error. */
void lkl__push_chunk(lua_State *L, const lkl_source *s);

#endif
