/* simulate.h - `--simulate`: the stand-ins for a cluster (controllers/simulate), in a manager of their own
 * beside the embedded API server. Main thread. */
#ifndef KL_CLI_SIMULATE_H
#define KL_CLI_SIMULATE_H

#include "cli/cli.h"
#include "script/simulate.h"
#include "server/server.h"

typedef struct cli_simulate_options {
    const char *words; /* "nodes,pods", "" for all; NULL: none run */
    long nodes;        /* the number of nodes to create if there are none; CLI_SIMULATE_NODES by default */
} cli_simulate_options;
#define CLI_SIMULATE_NODES 3

/* The rows of the table of options that fill it. */
#define CLI_SIMULATE_ROWS(o)                                                                                 \
    {"--simulate", "NAME,NAME",                                                                              \
        "run stand-ins for a cluster beside the server: pods are scheduled and become ready, workloads "     \
        "roll "                                                                                              \
        "out, jobs complete; all of them, or those that are named",                                          \
        CLI_MAYBE, &(o)->words},                                                                             \
    {                                                                                                        \
        "--simulate-nodes", "N", "nodes that --simulate creates if there are none (3)", CLI_COUNT,           \
            &(o)->nodes                                                                                      \
    }

/* Whether each name exists; false after a message. */
bool cli_simulate_known(const char *command, const cli_simulate_options *o);

/* For the stand-ins: a client with all rights, and their programs, which the caller unrefs even after a
 * failure. */
KL_NODISCARD kl_status cli_simulate_client(kl_server *s, kl_client **out, kl_err *err);
KL_NODISCARD kl_status cli_simulate_load(
    const cli_simulate_options *o, kl_program *programs[LKL_SIMULATE_MOST], size_t *n, kl_err *err);

typedef struct cli_simulation cli_simulation;
/* Returns 0, with *out NULL if no stand-ins were requested; or an exit status after a message. The server
 * outlives *out. */
int cli_simulate_start(
    const char *command, const cli_simulate_options *o, kl_server *s, cli_simulation **out);
void cli_simulate_stop(cli_simulation *s); /* waits for runs under way; NULL is fine */

#endif
