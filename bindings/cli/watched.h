/* watched.h - watches an object of the cluster that configures the process: a script's ConfigMap, or the
 * params of a deployment. Pokes the main thread (cli_poke) when it, or the state of its watch, changes. Main
 * thread. */
#ifndef KL_CLI_WATCHED_H
#define KL_CLI_WATCHED_H

#include "cli/cli.h"
#include "informers/informers.h"

typedef struct cli_watched {
    const char *kind, *word; /* "v1/ConfigMap" and "configmap": its name on the command line */
    char *ns, *name;
    char *slot; /* "ns/name" */
    kl_informers *from;
    kl_informer *informer; /* borrowed */
    kl_subscription *sub;
} cli_watched;

/* Whether a word of the command line names such an object and not a file. */
bool cli_watched_meant(const char *text);
/* Parses "configmap/NS/NAME" and "secret/NS/NAME"; *rest is the text after a further slash, or NULL. False:
 * the text has another form. */
bool cli_watched_read(const char *text, cli_watched *out, char **rest);
void cli_watched_fini(cli_watched *w); /* after the informers have been stopped; zeroes it */

/* Begins to watch the object. `f` outlives w. */
KL_NODISCARD kl_status cli_watched_begin(cli_watched *w, kl_informers *f, kl_err *err);
/* No more pokes. */
void cli_watched_end(cli_watched *w);
/* Its present state, a new reference. KL_ENOTFOUND: there is none; KL_EAGAIN: it was not read yet, the
 * message tells why. */
KL_NODISCARD kl_status cli_watched_get(const cli_watched *w, const kl_value **out, kl_err *err);

#endif
