/* cli.h - the command line of kubelua: options, commands, and what they share. The only code here that may print, exit and
 * handle signals: it owns the process. */
#ifndef KL_CLI_H
#define KL_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include "base/clock.h"
#include "base/err.h"
#include "net/config.h"
#include "run/manager.h"

typedef enum cli_type { CLI_FLAG, CLI_STRING, CLI_INT, CLI_DURATION, CLI_SIZE, CLI_LIST } cli_type;

typedef struct cli_list { const char **v; size_t n; } cli_list;

typedef struct cli_option {
    const char *name;          /* "--workers" */
    const char *arg;           /* "N", NULL for a flag */
    const char *help;
    cli_type type;
    void *out;                 /* bool, const char *, long, kl_time, size_t, cli_list */
} cli_option;

typedef struct cli_command {
    const char *name, *usage, *summary, *more;         /* more: paragraphs after the options, or NULL */
    int (*run)(int argc, char **argv);
} cli_command;
extern const cli_command cli_commands[];               /* ends with name NULL */

/* Parses argv[1..]; words that are no options go to `words`. --help prints and exits 0; a mistake prints what is wrong and
 * what was perhaps meant, and exits 2. --x=v and --x v are the same. Options end with name NULL. */
void cli_parse(const cli_command *c, const cli_option *options, int argc, char **argv, cli_list *words);
void cli_help(const cli_command *c, const cli_option *options);
/* "kubelua run: message" on stderr; returns `code`. */
int cli_fail(int code, const char *command, const char *fmt, ...) KL_PRINTF(3, 4);
int cli_fail_err(int code, const char *command, kl_err *err);      /* and finishes err */
/* Sets the level and the sink of the log; false after a message. */
bool cli_log(const char *command, const char *level);

/* Blocks the signals that cli_wait reads; before any thread starts. */
void cli_signals_block(void);
typedef enum cli_news { CLI_TERMINATE, CLI_HANGUP, CLI_POKED, CLI_MOVED, CLI_TIMEOUT } cli_news;
/* Waits for SIGTERM/SIGINT, SIGHUP, cli_poke, cli_move or the timeout (KL_NEVER: none). Several pokes, or moves, may be one. */
cli_news cli_wait(kl_time timeout);
void cli_poke(void);                                   /* any thread: something changed outside */
void cli_move(void);                                   /* any thread: something changed within */
/* From now on another SIGTERM or SIGINT exits with status 1 at once. */
void cli_second_signal_exits(void);

int cli_run(int argc, char **argv);
int cli_dev(int argc, char **argv);
int cli_apiserver(int argc, char **argv);
int cli_check(int argc, char **argv);

#endif
