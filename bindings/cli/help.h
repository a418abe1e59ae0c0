/* help.h - what help, completion and the finding of commands share. */
#ifndef KL_CLI_HELP_H
#define KL_CLI_HELP_H

#include "cli/cli.h"

/* An option of the table that another one of the same name, before it, stands for. */
bool cli_option_hidden(const cli_option *options, const cli_option *o);
/* Says that there is no such command, and which one is near; returns 2. */
int cli_unknown_command(const char *name);

#endif
