/* progress.h - progress messages while controllers wait: changes of their states, and how far the caches are
 * filled. Main thread. */
#ifndef KL_CLI_PROGRESS_H
#define KL_CLI_PROGRESS_H

#include "cli/cli.h"

typedef struct cli_progress cli_progress;

/* Of n managers, borrowed; `names` are those of their clusters (NULL: there is one). On a terminal it
 * stands between the log and standard error until it is freed, so that lines do not mix. */
cli_progress *cli_progress_new(kl_manager *const *managers, size_t n, const char *const *names);
void cli_progress_free(cli_progress *p);

/* Prints on stderr what each controller waits for, when that changed; as a log record where logs are for
 * machines. True when it printed. */
bool cli_progress_states(cli_progress *p);

/* While caches are being filled: prints the number of received objects of each kind, on a terminal in one
 * line that is rewritten, otherwise in a log line from time to time. Returns the time of the next call,
 * KL_NEVER while no cache is being filled. */
kl_time cli_progress_caches(cli_progress *p, kl_time now);

#endif
