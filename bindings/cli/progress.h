/* progress.h - what is told while controllers wait: the state of each when it changes, and how far the
 * caches have come. Main thread. */
#ifndef KL_CLI_PROGRESS_H
#define KL_CLI_PROGRESS_H

#include "cli/cli.h"

typedef struct cli_progress cli_progress;

/* Of n managers, borrowed; `names` are those of their clusters (NULL: there is one). On a terminal it
 * stands between the log and standard error until it is freed, so that lines do not mix. */
cli_progress *cli_progress_new(kl_manager *const *managers, size_t n, const char *const *names);
void cli_progress_free(cli_progress *p);

/* Says on stderr what each controller waits for, when that changed; as a record where logs are for
 * machines. True when something was said. */
bool cli_progress_states(cli_progress *p);

/* While caches are being filled: says how many objects of each kind have come, on a terminal in one line
 * that is written again, else in a log line now and then. Returns when it wants to be called next,
 * KL_NEVER while no cache is being filled. */
kl_time cli_progress_caches(cli_progress *p, kl_time now);

#endif
