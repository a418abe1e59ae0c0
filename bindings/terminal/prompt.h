/* prompt.h - reads lines: from a terminal with editing, history and completion, or unchanged from a file or
 * pipe. One prompt at a time, main thread. */
#ifndef KL_TERMINAL_PROMPT_H
#define KL_TERMINAL_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_prompt cli_prompt;

/* Completion at the cursor. `head` is the text before it, NUL-terminated; returns the text to insert (caller
 * frees with kl_free), or NULL after printing the choices, if any, below the line. */
typedef char *cli_complete_fn(void *arg, const char *head);

/* On a terminal lines are edited; `history` names the file that keeps them (0600), or NULL for none. The
 * prompt handles SIGINT from now on. */
cli_prompt *cli_prompt_new(const char *history, cli_complete_fn *complete, void *arg);
void cli_prompt_free(cli_prompt *p); /* writes the history */
bool cli_prompt_edits(const cli_prompt *p);

typedef enum cli_line { CLI_LINE, CLI_LINE_ABORTED, CLI_LINE_END } cli_line;
/* The next line without its newline; the caller kl_free()s. ABORTED: ^C. END: ^D on an empty line, or no
 * more input. */
cli_line cli_prompt_read(cli_prompt *p, const char *text, char **line);
void cli_prompt_remember(cli_prompt *p, const char *text);

/* While a command runs, ^C calls `fn` in the signal handler. NULL: ^C aborts the line again. */
void cli_prompt_on_interrupt(void (*fn)(void));

#endif
