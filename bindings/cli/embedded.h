/* embedded.h - starting and filling the embedded API server, for `dev` and `apiserver`. */
#ifndef KL_CLI_EMBEDDED_H
#define KL_CLI_EMBEDDED_H

#include "cli/cli.h"
#include "server/server.h"

/* Starts a server that can call webhooks (it sets o->webhook) and loads CRDs. Returns 0, or an exit status
 * after a message. */
int cli_server_start(const char *command, const kl_server_options *o, const cli_list *crds, kl_server **out);
/* Loads files and directories of objects, in order. 0, or an exit status after a message. */
int cli_server_load(const char *command, kl_server *s, const cli_list *paths);
void cli_server_stop(kl_server *s); /* NULL is fine */
/* Writes its kubeconfig; false after a message. */
bool cli_server_write_kubeconfig(const char *command, kl_server *s, const char *path);

#endif
