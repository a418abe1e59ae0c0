/* mapscript.h - a script that lives in a ConfigMap of the cluster: configmap/NAMESPACE/NAME[/KEY]. Watches
 * it, and pokes the main thread (cli_poke) when it, or the state of its watch, changes. */
#ifndef KL_CLI_MAPSCRIPT_H
#define KL_CLI_MAPSCRIPT_H

#include "cli/cli.h"
#include "cli/loader.h"
#include "informers/informers.h"

typedef struct cli_mapscript cli_mapscript;

/* Whether a word of the command line names such a script and not a file. */
bool cli_mapscript_meant(const char *word);
/* KL_EINVAL names the mistake in the word. */
KL_NODISCARD kl_status cli_mapscript_new(const char *word, cli_mapscript **out, kl_err *err);
void cli_mapscript_free(cli_mapscript *m); /* NULL is fine; after the informers have been stopped */

/* Begins to watch the ConfigMap. `f` outlives m. */
KL_NODISCARD kl_status cli_mapscript_watch(cli_mapscript *m, kl_informers *f, kl_err *err);
/* No more pokes. */
void cli_mapscript_unwatch(cli_mapscript *m);
/* Loads the ConfigMap's present script. KL_ENOTFOUND: there is no ConfigMap; KL_EAGAIN: it was not read yet,
 * and the message tells why. */
KL_NODISCARD kl_status cli_mapscript_load(cli_mapscript *m, cli_loader *l, kl_program **out, kl_err *err);
/* The ConfigMap itself, for Events about its script; a new reference, or NULL. */
const kl_value *cli_mapscript_object(cli_mapscript *m);

#endif
