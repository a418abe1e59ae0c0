/* help.h - functions shared by help, completion and command look-up. */
#ifndef KL_CLI_HELP_H
#define KL_CLI_HELP_H

#include "cli/cli.h"

/* Whether an earlier option of the table has the same name. */
bool cli_option_hidden(const cli_option *options, const cli_option *o);
/* Reports an unknown command, with a suggestion; returns 2. */
int cli_unknown_command(const char *name);

#endif
