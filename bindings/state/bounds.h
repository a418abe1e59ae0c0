/* bounds.h - replacements for the functions of `string` and `table` that could run for minutes or fill all
 * memory in one call, which no hook interrupts. They follow the manual, but their loops check the budget of
 * the run (budget.h). The other functions of the two libraries take time in proportion to existing data, and
 * stay stock Lua's. */
#ifndef LKL_BOUNDS_H
#define LKL_BOUNDS_H

#include "state/lkl.h"

/* Puts them into the libraries `string` and `table` of the state; their loops are counted from then on. */
void lkl_install_bounds(lua_State *L);
/* Replaces `tostring` and `string.format` of the state by functions that show no addresses and limit the text
 * that %q quotes (shown.c). */
void lkl_install_shown(lua_State *L);
/* Each adds its functions to the table on top of the stack. `counted`: the budget is checked. */
void lkl__set_pattern_functions(lua_State *L, bool counted);
void lkl__set_table_functions(lua_State *L, bool counted);

#endif
