/* bounds.h - the functions of `string` and `table` that could run for minutes or fill all memory in one
 * call, which no hook interrupts: the same functions by the manual, whose loops ask the budget of the run
 * (budget.h). Everything else of the two libraries takes time in proportion to what already is in memory,
 * and stays stock Lua's. */
#ifndef LKL_BOUNDS_H
#define LKL_BOUNDS_H

#include "state/lkl.h"

/* Puts them into the libraries `string` and `table` of the state, whose loops are counted from then on. */
void lkl_install_bounds(lua_State *L);
/* Puts `tostring` and `string.format` into the state that show no addresses and bound what %q quotes
 * (shown.c). */
void lkl_install_shown(lua_State *L);
/* Each adds its functions to the table on top of the stack. `counted`: the budget is asked. */
void lkl__set_pattern_functions(lua_State *L, bool counted);
void lkl__set_table_functions(lua_State *L, bool counted);

#endif
