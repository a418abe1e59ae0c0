/* virtual.h - `--clock virtual`: an embedded API server whose time, and that of its stand-ins, stands still
 * until a request moves it.
 *
 *   GET  /kubelua/v1/clock                       {"now": "2026-01-01T00:00:00Z"}
 *   POST /kubelua/v1/clock  {"advance": "10m"}   the same, after all due work is done
 *
 * Main thread, except for the callbacks of the server. */
#ifndef KL_CLI_VIRTUAL_H
#define KL_CLI_VIRTUAL_H

#include "cli/simulate.h"

typedef struct cli_virtual cli_virtual;

/* The clock starts at the present time; sets the server's options for it. */
cli_virtual *cli_virtual_new(kl_server_options *o);
/* Starts the stand-ins on that clock; before, time does not move. Returns 0, or an exit status after a
 * message. */
int cli_virtual_start(
    const char *command, cli_virtual *v, const cli_simulate_options *simulate, kl_server *s);
void cli_virtual_stop(cli_virtual *v); /* before the server stops; NULL is fine */
void cli_virtual_free(cli_virtual *v); /* after that; NULL is fine */

#endif
