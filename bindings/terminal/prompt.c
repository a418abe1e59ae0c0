/* prompt.c - the only file that includes libedit.
 *
 * libedit restarts a read that a signal interrupted, so characters are read here: a ^C ends the read, and
 * with it the line. Text is read as the terminal sends it, in UTF-8 when the locale says so. */
#include "terminal/prompt.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/file.h"
#include "base/mem.h"

#define HISTORY_MAX 1000

struct cli_prompt {
    EditLine *el; /* NULL: no terminal */
    History *history;
    char *file;
    const char *text; /* the prompt now */
    cli_complete_fn *complete;
    void *arg;
    char *buffer; /* of getline */
    size_t room;
};

static _Atomic(void (*)(void)) on_interrupt;
static volatile sig_atomic_t interrupted;

static void handle(int sig)
{
    (void)sig;
    void (*fn)(void) = atomic_load(&on_interrupt);
    if (fn)
        fn();
    else
        interrupted = 1;
}

void cli_prompt_on_interrupt(void (*fn)(void)) { atomic_store(&on_interrupt, fn); }

static cli_prompt *self(EditLine *el)
{
    void *p = NULL;
    el_get(el, EL_CLIENTDATA, &p);
    return p;
}

static char *prompt_text(EditLine *el) { return (char *)self(el)->text; }

/* SIGINT is blocked while a line is read, except in this wait: so none is lost between check and wait. True:
 * ^C came. */
static bool wait_for_input(void)
{
    sigset_t open;
    sigprocmask(SIG_SETMASK, NULL, &open);
    sigdelset(&open, SIGINT);
    struct pollfd in = {0, POLLIN, 0};
    while (!interrupted && ppoll(&in, 1, NULL, &open) < 0 && errno == EINTR)
        continue;
    return interrupted;
}

/* One character, or -1 when ^C or the end of the input comes first. */
static int read_character(EditLine *el, wchar_t *out)
{
    (void)el;
    mbstate_t state = {0};
    for (int n = 0; n < 8;) {
        char c;
        if (wait_for_input())
            return -1;
        ssize_t got = read(0, &c, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return (int)got;
        n++;
        size_t len = mbrtowc(out, &c, 1, &state);
        if (len == (size_t)-1) {
            memset(&state, 0, sizeof state);
            *out = L'?';
            return 1;
        }
        if (len != (size_t)-2)
            return 1;
    }
    return -1;
}

static unsigned char complete_key(EditLine *el, int ch)
{
    (void)ch;
    cli_prompt *p = self(el);
    const LineInfo *li = el_line(el);
    char *head = kl_strndup(li->buffer, (size_t)(li->cursor - li->buffer)),
         *more = p->complete ? p->complete(p->arg, head) : NULL;
    kl_free(head);
    if (!more)
        return CC_REDISPLAY;
    int failed = *more ? el_insertstr(el, more) : 0;
    kl_free(more);
    return failed ? CC_ERROR : CC_REFRESH;
}

static void edit_start(cli_prompt *p)
{
    setlocale(LC_CTYPE, "");
    p->el = el_init("kubelua", stdin, stdout, stderr);
    if (!p->el)
        return;
    HistEvent ev;
    p->history = history_init();
    history(p->history, &ev, H_SETSIZE, HISTORY_MAX);
    history(p->history, &ev, H_SETUNIQUE, 1);
    if (p->file)
        history(p->history, &ev, H_LOAD, p->file);
    el_set(p->el, EL_CLIENTDATA, p);
    el_set(p->el, EL_EDITOR, "emacs");
    el_set(p->el, EL_HIST, history, p->history);
    el_set(p->el, EL_PROMPT, prompt_text);
    el_set(p->el, EL_GETCFN, read_character);
    /* el_set would leak its copies */
    el_wset(p->el, EL_ADDFN, L"kubelua-complete", L"what could stand here", complete_key);
    el_set(p->el, EL_BIND, "^I", "kubelua-complete", NULL);
    el_set(p->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_set(p->el, EL_BIND, "\033[H", "ed-move-to-beg", NULL);
    el_set(p->el, EL_BIND, "\033[F", "ed-move-to-end", NULL);
    el_set(p->el, EL_BIND, "\033[3~", "ed-delete-next-char", NULL);
    el_source(p->el, NULL);
}

cli_prompt *cli_prompt_new(const char *file, cli_complete_fn *complete, void *arg)
{
    cli_prompt *p = kl_new(cli_prompt);
    p->file = kl_strdup(file);
    p->complete = complete;
    p->arg = arg;
    if (isatty(0) && isatty(1))
        edit_start(p);
    struct sigaction a = {.sa_handler = handle}; /* without SA_RESTART: a read ends */
    if (p->el)
        sigaction(SIGINT, &a, NULL);
    return p;
}

bool cli_prompt_edits(const cli_prompt *p) { return p->el; }

void cli_prompt_free(cli_prompt *p)
{
    if (!p)
        return;
    if (p->el) {
        signal(SIGINT, SIG_DFL);
        HistEvent ev;
        /* What was typed may be a secret: only the owner may read the file. */
        int fd;
        if (p->file && !kl_file_open_private(p->file, &fd, NULL)) {
            close(fd);
            history(p->history, &ev, H_SAVE, p->file);
        }
        el_end(p->el);
        history_end(p->history);
    }
    free(p->buffer);
    kl_free(p->file);
    kl_free(p);
}

static cli_line read_plain(cli_prompt *p, char **line)
{
    ssize_t n = getline(&p->buffer, &p->room, stdin);
    if (n < 0)
        return CLI_LINE_END;
    if (n && p->buffer[n - 1] == '\n')
        n--;
    *line = kl_strndup(p->buffer, (size_t)n);
    return CLI_LINE;
}

cli_line cli_prompt_read(cli_prompt *p, const char *text, char **line)
{
    if (!p->el)
        return read_plain(p, line);
    int n = 0;
    sigset_t shut, before;
    sigemptyset(&shut);
    sigaddset(&shut, SIGINT);
    p->text = text;
    fflush(stdout);
    sigprocmask(SIG_BLOCK, &shut, &before);
    /* before the prompt is seen: what is typed then is no ^D of the terminal's own any more */
    el_set(p->el, EL_PREP_TERM, 1);
    const char *got = el_gets(p->el, &n);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (interrupted) {
        interrupted = 0;
        el_reset(p->el);
        printf("^C\n");
        return CLI_LINE_ABORTED;
    }
    if (!got || n <= 0) {
        printf("\n");
        return CLI_LINE_END;
    }
    while (n && (got[n - 1] == '\n' || got[n - 1] == '\r'))
        n--;
    *line = kl_strndup(got, (size_t)n);
    return CLI_LINE;
}

void cli_prompt_remember(cli_prompt *p, const char *text)
{
    HistEvent ev;
    if (p->el && *text)
        history(p->history, &ev, H_ENTER, text);
}
