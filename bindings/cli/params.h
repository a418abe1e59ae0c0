/* params.h - the params that a deployment sets for its scripts: --param, --param-env and --params, which may
 * name files, ConfigMaps and Secrets to watch. Single params override --params, and later options override
 * earlier ones. Main thread, but for cli_params_set. */
#ifndef KL_CLI_PARAMS_H
#define KL_CLI_PARAMS_H

#include "cli/cli.h"
#include "informers/informers.h"
#include "run/reconciler.h"

typedef struct cli_params_words {
    cli_list texts; /* NAME=TEXT */
    cli_list env;   /* NAME=VARIABLE */
    cli_list from;  /* FILE.yaml, configmap/NS/NAME, secret/NS/NAME */
} cli_params_words;
#define CLI_PARAMS_OPTIONS 3
/* Writes the options into `out`, their values into `w`. */
void cli_params_options(cli_params_words *w, cli_option *out);
void cli_params_words_free(cli_params_words *w);

typedef struct cli_params cli_params;
/* KL_EINVAL names the mistake in a word. The words outlive it. */
KL_NODISCARD kl_status cli_params_new(const cli_params_words *w, cli_params **out, kl_err *err);
void cli_params_free(cli_params *p); /* NULL is fine; after the informers have been stopped */

bool cli_params_in_cluster(const cli_params *p); /* whether some are read from the cluster */
KL_NODISCARD kl_status cli_params_watch(cli_params *p, kl_informers *f, kl_err *err);
void cli_params_unwatch(cli_params *p);
/* Writes the files among the sources to `out`, which has room for all, or is NULL. Returns their number. */
size_t cli_params_files(const cli_params *p, const char **out);

/* Reads the present state of all sources, once before cli_params_set. KL_EAGAIN and KL_ENOTFOUND: an object
 * of the cluster was not read yet, or does not exist. `local`: skips sources in the cluster. */
KL_NODISCARD kl_status cli_params_read(cli_params *p, bool local, kl_err *err);
/* A number that grows when the values have changed. Any thread. */
uint64_t cli_params_changes(cli_params *p);
/* Sets the values in a program that does not run yet. `all`: required params must have values. KL_EINVAL
 * names source, controller and param. Any thread. */
KL_NODISCARD kl_status cli_params_set(cli_params *p, kl_program *program, bool all, kl_err *err);
/* KL_EINVAL names the first param that none of the programs has. */
KL_NODISCARD kl_status cli_params_known(
    const cli_params *p, kl_program *const *programs, size_t n, kl_err *err);

#endif
