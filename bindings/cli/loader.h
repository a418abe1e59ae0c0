/* loader.h - loads each script on its own thread, and abandons the thread when it hangs. Budgets normally end
 * a script; if one does not, signals, reloads and the end of the process still do not wait. Main thread. */
#ifndef KL_CLI_LOADER_H
#define KL_CLI_LOADER_H

#include <stdint.h>

#include "cli/cli.h"

typedef struct cli_loader cli_loader;

cli_loader *cli_loader_new(void);
void cli_loader_free(cli_loader *l); /* NULL is fine; running loads continue */

/* As lkl_program_load and lkl_program_load_texts. KL_ECANCELLED: the process got a signal to end meanwhile
 * (the next cli_wait reports it, too); KL_ETIMEOUT: the load was abandoned, now or before: while it hangs,
 * the same texts, or the same version of a path's files, are not loaded again. */
KL_NODISCARD kl_status cli_loader_file(
    cli_loader *l, const char *path, uint64_t version, kl_program **out, kl_err *err);
KL_NODISCARD kl_status cli_loader_texts(
    cli_loader *l, const char *name, const kl_value *texts, const char *main, kl_program **out, kl_err *err);

/* At the end: waits a moment for running loads. False: some hang; the log names them. */
bool cli_loader_end(cli_loader *l);

#endif
