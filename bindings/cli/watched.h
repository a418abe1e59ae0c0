/* watched.h - one object of the cluster that tells the process what to run: a script's ConfigMap, or the
 * params of a deployment. It is watched, and the main thread is poked (cli_poke) when it, or what is known of
 * it, changes. Main thread. */
#ifndef KL_CLI_WATCHED_H
#define KL_CLI_WATCHED_H

#include "cli/cli.h"
#include "informers/informers.h"

typedef struct cli_watched {
    const char *kind, *word; /* "v1/ConfigMap" and "configmap": what the command line calls it */
    char *ns, *name;
    char *slot; /* "ns/name" */
    kl_informers *from;
    kl_informer *informer; /* borrowed */
    kl_subscription *sub;
} cli_watched;

/* Whether a word on the command line means such an object rather than a file. */
bool cli_watched_meant(const char *text);
/* "configmap/NS/NAME" and "secret/NS/NAME" as an object to be watched; what is behind another slash is
 * `rest`, NULL: nothing. False: the text has another form. */
bool cli_watched_read(const char *text, cli_watched *out, char **rest);
void cli_watched_fini(cli_watched *w); /* after the informers have been stopped; zeroes it */

/* Begins to watch it. `f` outlives w. */
KL_NODISCARD kl_status cli_watched_begin(cli_watched *w, kl_informers *f, kl_err *err);
/* No more pokes. */
void cli_watched_end(cli_watched *w);
/* As it is now, a new reference. KL_ENOTFOUND: there is none; KL_EAGAIN: nothing is known yet, the message
 * says why. */
KL_NODISCARD kl_status cli_watched_get(const cli_watched *w, const kl_value **out, kl_err *err);

#endif
