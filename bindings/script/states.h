/* states.h - the controllers of a manager as tables. */
#ifndef LKL_STATES_H
#define LKL_STATES_H

#include <lua.h>
#include "manager/manager.h"

/* Pushes {{ name, state, message, generation, runs, errors, ready, delayed, running, failing }, ...}; an
 * empty list for NULL. */
void lkl__push_states(lua_State *L, kl_manager *m);

#endif
