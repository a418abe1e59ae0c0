/* scripts.h - the scripts of `run` and `dev`: loaded, given to the managers, watched, and loaded again.
 * Main thread; a change of a file pokes it (cli_poke). */
#ifndef KL_CLI_SCRIPTS_H
#define KL_CLI_SCRIPTS_H

#include "cli/cli.h"
#include "cli/params.h"
#include "control/control.h"
#include "server/server.h"

typedef struct cli_scripts cli_scripts;

/* Loads each that is a file, with its params; words and params are borrowed. *out must be freed even when one
 * of them fails. */
KL_NODISCARD kl_status cli_scripts_load(
    const cli_list *words, cli_params *params, cli_scripts **out, kl_err *err);
/* Loads those that live in ConfigMaps (configmap/NAMESPACE/NAME) of the client's cluster, and all when params
 * do, and waits until each is loaded, reporting what it waits for. KL_OK; KL_ECANCELLED when the process got
 * a signal to end meanwhile. */
KL_NODISCARD kl_status cli_scripts_fetch(cli_scripts *s, kl_client *c, kl_err *err);
/* Loads the definitions that they bring into an embedded server, before what else is loaded there. */
KL_NODISCARD kl_status cli_scripts_define_here(const cli_scripts *s, kl_server *server, kl_err *err);
/* Applies their definitions to each of n clusters, now and with each later generation; clients are borrowed
 * until cli_scripts_unwatch. */
KL_NODISCARD kl_status cli_scripts_define(cli_scripts *s, kl_client *const *clients, size_t n, kl_err *err);
const kl_program *cli_scripts_first(const cli_scripts *s); /* of the first script */
/* Before that, and in the same order to each manager. */
KL_NODISCARD kl_status cli_scripts_add(cli_scripts *s, kl_manager *m, kl_err *err);
/* The scripts for a recording: [{"path": ..., "digest": ...}], a new reference; only loaded files. */
const kl_value *cli_scripts_say(const cli_scripts *s);
/* Watches their files; reloaded scripts go to these managers, and into the recording (or NULL); all
 * borrowed. */
struct kl_record;
void cli_scripts_watch(cli_scripts *s, kl_manager **managers, size_t n, struct kl_record *recording);
/* Loads changed scripts. A script that fails is refused: the old one keeps running, and the log tells why,
 * once unless `asked`. */
void cli_scripts_reload(cli_scripts *s, bool asked);
/* POST /v1/reload. Until cli_scripts_unwatch; later requests get an error. s outlives the control's
 * kl_control_close. */
void cli_scripts_route(cli_scripts *s, kl_control *c);
/* kl_manager_options.broken, arg being the cli_scripts: the next reload restores the previous logic. Any
 * thread. */
void cli_scripts_broken(void *arg, int slot, int generation, const char *controller, const char *why);
void cli_scripts_unwatch(cli_scripts *s); /* NULL is fine */
/* At the end of the process: false after a message when a load hangs. */
bool cli_scripts_end(cli_scripts *s);
/* before the client that they were fetched with */
void cli_scripts_free(cli_scripts *s);

#endif
