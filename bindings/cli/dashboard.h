/* dashboard.h - the files of the dashboard, generated at build time from bindings/dashboard; ends with
 * path NULL. */
#ifndef KL_CLI_DASHBOARD_H
#define KL_CLI_DASHBOARD_H

#include "control/dashboard.h"

extern const kl_dashboard_file cli_dashboard_files[];
/* Serves the dashboard at `listen`. Returns 0, or the exit status after a message; 0 with *out NULL when
 * `listen` is NULL. token_file NULL: read-only. */
int cli_dashboard_start(const char *command, const char *listen, const char *token_file, kl_control *c,
    kl_manager *m, kl_dashboard **out);

#endif
