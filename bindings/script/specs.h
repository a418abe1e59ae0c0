/* specs.h - the load phase of a program: its controllers and webhooks as kl_controller_spec and
 * kl_webhook_spec. Owner thread of the state. */
#ifndef LKL_SPECS_H
#define LKL_SPECS_H

#include <lua.h>
#include "run/reconciler.h"

typedef struct lkl_specs {
    kl_program *program;    /* gets specs and hooks, even when reading raises; its free frees them */
    const kl_value *tables; /* the tables as data for commands; owned by the caller */
    char *description;      /* the output of `kubelua check`; owned by the caller */
} lkl_specs;

/* The `describe` of lkl_state_new, with a lkl_specs as argument: reads every spec of the script, and raises
 * if a field has a wrong type, or if the script already uses too much of its memory. */
int lkl__read_specs(lua_State *L);

#endif
