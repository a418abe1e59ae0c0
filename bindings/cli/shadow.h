/* shadow.h - a candidate beside the scripts of `run` and `dev` (lab/shadow.h): loads it from a file, reloads
 * it when that changes, and promotes it. */
#ifndef KL_CLI_SHADOW_H
#define KL_CLI_SHADOW_H

#include "cli/cli.h"
#include "cli/params.h"
#include "control/control.h"

typedef struct cli_shadow cli_shadow;

/* Borrows the manager and the params, which the candidate gets, too, and adds the routes below /v1/shadow. */
cli_shadow *cli_shadow_new(kl_manager *m, cli_params *params, kl_control *c);
/* Loads a candidate and starts its shadow; promote_after 0: it is promoted only on request. Any thread. */
KL_NODISCARD kl_status cli_shadow_begin(cli_shadow *s, const char *path, size_t promote_after, kl_err *err);
/* Main thread, after a poke: the candidate's file may have changed, or the candidate may be due for
 * promotion. */
void cli_shadow_news(cli_shadow *s);
/* after kl_control_close and the manager's stop. NULL is fine */
void cli_shadow_free(cli_shadow *s);

#endif
