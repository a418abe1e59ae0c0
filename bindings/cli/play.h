/* play.h - a Lua program beside running controllers (`kubelua dev --play FILE`): a demo, an agent, a
 * scenario. It runs in its own thread and Lua state, with the standard libraries, `require "kubelua"`, and a
 * table `dev`:
 *
 *   dev.server               URL of the embedded server, for kube.connect{server = dev.server}
 *   dev.tty                  whether standard output is a terminal
 *   dev.idle()               nothing queued, running or failing, all caches synced
 *   dev.controllers()        list of {name, state, message, generation, ready, running, runs, errors}
 *   dev.wait(seconds)        sleeps; returns false at once when the process must stop
 *   dev.scripts              list of the scripts that run
 *
 * When it returns, the process ends with status 0, or with the integer it returned; an error ends it with
 * status 1. */
#ifndef KL_CLI_PLAY_H
#define KL_CLI_PLAY_H

#include "cli/cli.h"

typedef struct cli_play cli_play;

cli_play *cli_play_start(const char *path, kl_manager *m, const char *server, const cli_list *scripts);
bool cli_play_over(cli_play *p, int *code); /* whether it has returned */
/* dev.wait returns false; joins; frees; NULL is fine */
void cli_play_stop(cli_play *p);

#endif
