/* progress.h - progress messages while controllers wait: changes of their states, and the numbers of objects
 * in their caches. Main thread. */
#ifndef KL_CLI_PROGRESS_H
#define KL_CLI_PROGRESS_H

#include "cli/cli.h"

typedef struct cli_progress cli_progress;

/* For n managers, borrowed; `names` are the names of their clusters (NULL: there is one cluster). On a
 * terminal the log passes through it until it is freed, so that lines do not mix. */
cli_progress *cli_progress_new(kl_manager *const *managers, size_t n, const char *const *names);
void cli_progress_free(cli_progress *p);

/* Prints on stderr what each controller waits for, if that has changed; as a log record if logs are for
 * machines. True when it printed. */
bool cli_progress_states(cli_progress *p);

/* While caches fill: prints the number of received objects of each kind, on a terminal in one line that it
 * rewrites, otherwise in a log line from time to time. Returns the time of the next call; KL_NEVER while no
 * cache fills. */
kl_time cli_progress_caches(cli_progress *p, kl_time now);

#endif
