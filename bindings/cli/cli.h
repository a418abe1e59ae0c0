/* cli.h - the command line of kubelua: options, commands, and their common functions. Only this code may
 * print, exit and handle signals, because it owns the process. */
#ifndef KL_CLI_H
#define KL_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "base/clock.h"
#include "base/err.h"
#include "auth/config.h"
#include "manager/manager.h"

/* CLI_INT: 1 to 10000. CLI_COUNT: 0 and more. CLI_MAYBE: a text that may be left out ("--x" gives "",
 * "--x=v" gives v). CLI_PERIOD: a CLI_DURATION above zero. */
typedef enum cli_type {
    CLI_FLAG,
    CLI_STRING,
    CLI_INT,
    CLI_DURATION,
    CLI_PERIOD,
    CLI_SIZE,
    CLI_LIST,
    CLI_COUNT,
    CLI_MAYBE
} cli_type;

typedef struct cli_list {
    const char **v;
    size_t n;
} cli_list;

typedef struct cli_option {
    const char *name; /* "--workers" */
    const char *arg;  /* "N", NULL for a flag */
    const char *help;
    cli_type type;
    void *out;         /* bool, const char *, long, kl_time, size_t, cli_list; long; const char * */
    const char *brief; /* "-w", or NULL: -w 3, -w3 and -w=3 are the same, and switches join: -it */
    /* the allowed values, "plain tap junit" ("path=": a prefix); NULL: any */
    const char *values;
} cli_option;
#define CLI_LEVELS "debug info warn error off"
/* A row that is not an option but the heading of the following options. */
#define CLI_HEADING(text)                                                                                    \
    {                                                                                                        \
        "", NULL, text, CLI_FLAG, NULL, NULL                                                                 \
    }

typedef struct cli_command {
    const char *name, *usage, *summary;
    const char *more;     /* paragraphs after the options, a line each, or NULL */
    const char *examples; /* one command line per line */
    const char *exits;    /* its exit statuses; the numbers are in spec/e2e/exits_spec.lua */
    const char *words; /* the type of words, for completion: "scripts", "files", "kinds", "commands", "=a b"
                        */
    int (*run)(int argc, char **argv);
    const char *group; /* the heading under which --help lists it */
} cli_command;
#define CLI_EXITS "0, 1 when it failed, 2 for a mistake on the command line."
extern const cli_command cli_commands[];                /* ends with name NULL */
const cli_command *cli_command_named(const char *name); /* `name` must exist */

/* Parses argv[1..]; puts words that are not options into `words`. --help prints and exits 0; a mistake prints
 * a message with a suggestion, and exits 2. --x=v and --x v are the same. Options end with name NULL. */
void cli_parse(const cli_command *c, const cli_option *options, int argc, char **argv, cli_list *words);
/* What a command does after its options are parsed: its work, nothing (the line is only checked), or
 * completion of the last word. Set before the command's `run`. */
typedef enum cli_purpose { CLI_WORK, CLI_LOOK_AT, CLI_COMPLETE } cli_purpose;
extern cli_purpose cli_purpose_now;
/* help.c: prints a command's description and options on stdout. `format`: "plain", "man" (a page for man),
 * "json". */
void cli_help(const cli_command *c, const cli_option *options, const char *format);
void cli_help_all(FILE *to, const char *format);
/* complete.c: prints the completions of argv's last word; see there. */
void cli_complete(const cli_command *c, const cli_option *options, int argc, char **argv);
void cli_complete_commands(const char *begin);
/* Prints text that may come from scripts, servers or files; control characters are escaped. */
void cli_print(FILE *to, const char *text);
/* "kubelua run: message" on stderr; returns `code`. */
int cli_fail(int code, const char *command, const char *fmt, ...) KL_PRINTF(3, 4);
int cli_fail_err(int code, const char *command, kl_err *err); /* and finishes err */
/* Sets the level and the sink of the log, format "text", "json" or NULL (text); false after a message. */
bool cli_log(const char *command, const char *level, const char *format);

/* Blocks the signals that cli_wait reads; before any thread starts. */
void cli_signals_block(void);
typedef enum cli_news { CLI_TERMINATE, CLI_HANGUP, CLI_POKED, CLI_MOVED, CLI_TIMEOUT } cli_news;
/* Waits for SIGTERM/SIGINT, SIGHUP, cli_poke, cli_move or the timeout (KL_NEVER: none). Several pokes, or
 * moves, may be one. */
cli_news cli_wait(kl_time timeout);
/* Waits until *done is true; the thread that sets it calls cli_wake. False: the time passed or, with
 * *told_to_end, the process got a signal to end. The next cli_wait reports that signal again, and pokes,
 * moves and SIGHUP that came meanwhile. */
bool cli_wait_until(const atomic_bool *done, kl_time timeout, bool *told_to_end);
void cli_wake(void); /* any thread: cli_wait_until checks again; not an event */
void cli_poke(void); /* any thread: something changed outside */
void cli_move(void); /* any thread: something changed within */
/* Prints a message that code which cannot be ended is still running, and exits with status 1. Any thread. */
void cli_leave_stuck(void *arg);
/* From now on another SIGTERM or SIGINT exits with status 1 at once. Main thread. */
void cli_second_signal_exits(void);
/* If the process still lives after this time, it prints a message and exits with status 1, whatever its
 * threads do, because the kernel's alarm ends it. Main thread. */
void cli_leave_after(kl_time time);

/* --- cluster and credentials: the options of every command that talks to a cluster (cluster.c) --- */
#define CLI_CLUSTER_MAX 32
#define CLI_CLUSTER_HEADING "Cluster and credentials"
typedef struct cli_cluster {
    /* as given, by the place of the option in the table; NULL: not given */
    const char *text[CLI_CLUSTER_MAX];
    bool flag[CLI_CLUSTER_MAX];
    cli_list list[CLI_CLUSTER_MAX];
} cli_cluster;
/* Writes the options into `out` (room for CLI_CLUSTER_MAX), their values into `values`; returns how many. */
size_t cli_cluster_options(cli_cluster *values, cli_option *out);
void cli_cluster_free(cli_cluster *values);
/* The disk cache of discovery: --cache-dir or kl_shelf_home(); NULL: none. Caller frees. */
char *cli_cluster_cache(const cli_cluster *values);
/* The same for C: the values of the options, borrowed from `values`. */
void cli_cluster_sources(cli_cluster *values, kl_config_sources *out);
/* kube.connect's name of the option at this place, "kubeconfig"; NULL after the last. */
const char *cli_cluster_key(size_t place);

/* Runs a command written in Lua: lua/kubelua/cli/NAME.lua (lua.c describes such a module). */
int cli_lua(int argc, char **argv);

int cli_run(int argc, char **argv);
int cli_dev(int argc, char **argv);
int cli_apiserver(int argc, char **argv);
int cli_replay(int argc, char **argv);
int cli_help_command(int argc, char **argv);
int cli_completion(int argc, char **argv);

#endif
