/* scripts.h - loads the scripts of `run` and `dev`, passes them to the managers, watches them, and loads them
 * again. Main thread; a change of a file pokes it (cli_poke). */
#ifndef KL_CLI_SCRIPTS_H
#define KL_CLI_SCRIPTS_H

#include "cli/cli.h"
#include "cli/params.h"
#include "control/control.h"
#include "server/server.h"

typedef struct cli_scripts cli_scripts;

/* Loads the scripts that are files, with their params; words and params are borrowed. The caller frees *out
 * even after a failure. */
KL_NODISCARD kl_status cli_scripts_load(
    const cli_list *words, cli_params *params, cli_scripts **out, kl_err *err);
/* Loads the scripts from ConfigMaps (configmap/NAMESPACE/NAME) of the client's cluster, or all scripts if
 * params come from the cluster. Waits until each is loaded, and reports what it waits for. KL_ECANCELLED: the
 * process got a signal to end meanwhile. */
KL_NODISCARD kl_status cli_scripts_fetch(cli_scripts *s, kl_client *c, kl_err *err);
/* Loads the scripts' definitions into an embedded server, before other objects are loaded there. */
KL_NODISCARD kl_status cli_scripts_define_here(const cli_scripts *s, kl_server *server, kl_err *err);
/* Applies their definitions to each of n clusters, now and with each later generation; clients are borrowed
 * until cli_scripts_unwatch. */
KL_NODISCARD kl_status cli_scripts_define(cli_scripts *s, kl_client *const *clients, size_t n, kl_err *err);
const kl_program *cli_scripts_first(const cli_scripts *s); /* of the first script */
/* Adds the scripts to a manager, in the same order for each. Before cli_scripts_watch. */
KL_NODISCARD kl_status cli_scripts_add(cli_scripts *s, kl_manager *m, kl_err *err);
/* The scripts for a recording: [{"path": ..., "digest": ...}], a new reference; only loaded files. */
const kl_value *cli_scripts_say(const cli_scripts *s);
/* Watches the scripts' files; reloads go to these managers, and into the recording (or NULL); all
 * borrowed. */
struct kl_record;
void cli_scripts_watch(cli_scripts *s, kl_manager **managers, size_t n, struct kl_record *recording);
/* Loads changed scripts. A script that fails is refused: the old one keeps running, and the log has the
 * reason, once unless `asked`. */
void cli_scripts_reload(cli_scripts *s, bool asked);
/* Adds POST /v1/reload. It works until cli_scripts_unwatch; later requests get an error. s outlives
 * kl_control_close. */
void cli_scripts_route(cli_scripts *s, kl_control *c);
/* kl_manager_options.broken, arg being the cli_scripts: the next reload restores the previous logic. Any
 * thread. */
void cli_scripts_broken(void *arg, int slot, int generation, const char *controller, const char *why);
void cli_scripts_unwatch(cli_scripts *s); /* NULL is fine */
/* Call it at the end of the process. False: a load hangs; a message says so. */
bool cli_scripts_end(cli_scripts *s);
/* before the client of cli_scripts_fetch is freed */
void cli_scripts_free(cli_scripts *s);

#endif
