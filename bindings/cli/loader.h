/* loader.h - scripts are loaded on a thread each, which is left behind when it does not come back: budgets
 * end what a script does, and should one fail to, signals, reloads and the end of the process wait for
 * nobody. Main thread. */
#ifndef KL_CLI_LOADER_H
#define KL_CLI_LOADER_H

#include <stdint.h>

#include "cli/cli.h"

typedef struct cli_loader cli_loader;

cli_loader *cli_loader_new(void);
void cli_loader_free(cli_loader *l); /* NULL is fine; loads that are under way stay as they are */

/* As lkl_program_load and lkl_program_load_texts. KL_ECANCELLED: the process was told to end meanwhile
 * (the next cli_wait says so, too); KL_ETIMEOUT: the load was left behind, now or before: the same texts,
 * or the same version of a path's files, are not tried again while that lasts. */
KL_NODISCARD kl_status cli_loader_file(
    cli_loader *l, const char *path, uint64_t version, kl_program **out, kl_err *err);
KL_NODISCARD kl_status cli_loader_texts(
    cli_loader *l, const char *name, const kl_value *texts, const char *main, kl_program **out, kl_err *err);

/* At the end: waits a moment for loads under way; those that do not come back are named in the log. False:
 * there are some. */
bool cli_loader_end(cli_loader *l);

#endif
