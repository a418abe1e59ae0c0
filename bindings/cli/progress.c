/* progress.c - states of controllers, and caches that are being filled.
 *
 * The line of a terminal has no newline: it is erased before anything else is written to standard error,
 * and drawn again at the next update. So log records pass through here, and one lock covers everything
 * that writes. */
#include "cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/escape.h"
#include "base/locks.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"

/* What is ready sooner needs no line. */
#define LINE_AFTER KL_MILLISECONDS(500)
#define LINE_EVERY KL_MILLISECONDS(200)
#define LOG_EVERY KL_SECONDS(5)
/* The width where the terminal does not report one. */
#define WIDTH_USUAL 80

struct cli_progress {
    kl_manager *const *managers;
    const char *const *names;
    size_t n;
    char **told; /* last line per controller */
    size_t n_told;
    bool terminal;
    kl_time since, due; /* the present wait began, and is looked at; since 0: nothing is waited for */
    kl_mutex mu;
    bool shown KL_GUARDED_BY(mu); /* the terminal's line stands there */
};

/* --- standard error ----------------------------------------------------------------------- */

static void wipe_locked(cli_progress *p) KL_REQUIRES(p->mu)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}

static void terminal_sink(void *arg, kl_log_level level, const char *message, const char *fields)
{
    cli_progress *p = arg;
    kl_lock(&p->mu);
    wipe_locked(p);
    kl_log_file_sink(NULL, level, message, fields);
    kl_unlock(&p->mu);
}

static void say(cli_progress *p, const char *line)
{
    kl_lock(&p->mu);
    wipe_locked(p);
    cli_print(stderr, line);
    fputc('\n', stderr);
    kl_unlock(&p->mu);
}

static int width(void)
{
    struct winsize w;
    return !ioctl(STDERR_FILENO, TIOCGWINSZ, &w) && w.ws_col ? w.ws_col : WIDTH_USUAL;
}

/* A line that the terminal wraps could not be erased, so it is cut. */
static void show(cli_progress *p, const char *line)
{
    kl_buf text = KL_BUF_INIT;
    kl_visible_escape(&text, line, strlen(line), true);
    const char *shown = kl_buf_str(&text);
    int room = width() - 1, dots = (int)text.len > room && room > 3 ? 3 : 0, n = room - dots;
    while (n > 0 && n < (int)text.len && ((unsigned char)shown[n] & 0xc0) == 0x80)
        n--; /* not within a character */
    kl_lock(&p->mu);
    fprintf(stderr, "\r\033[K%.*s%.*s", n, shown, dots, "...");
    fflush(stderr);
    p->shown = true;
    kl_unlock(&p->mu);
    kl_buf_fini(&text);
}

static void wipe(cli_progress *p)
{
    kl_lock(&p->mu);
    wipe_locked(p);
    kl_unlock(&p->mu);
}

/* --- life --------------------------------------------------------------------------------- */

static bool can_rewrite(void)
{
    const char *term = getenv("TERM");
    return !kl_log_detailed() && isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
}

cli_progress *cli_progress_new(kl_manager *const *managers, size_t n, const char *const *names)
{
    cli_progress *p = kl_new(cli_progress);
    p->managers = managers;
    p->n = n;
    p->names = names;
    p->terminal = can_rewrite();
    kl_mutex_init_as(&p->mu, KL_LOCK_SINK);
    if (p->terminal)
        kl_log_set_sink(terminal_sink, p);
    return p;
}

void cli_progress_free(cli_progress *p)
{
    if (p->terminal)
        kl_log_set_sink(kl_log_file_sink, NULL);
    wipe(p);
    kl_mutex_fini(&p->mu);
    for (size_t i = 0; i < p->n_told; i++)
        kl_free(p->told[i]);
    kl_free(p->told);
    kl_free(p);
}

/* --- controllers -------------------------------------------------------------------------- */

static void tell(cli_progress *p, const kl_controller_state *v, const char *line)
{
    if (!kl_log_detailed())
        say(p, line);
    else
        kl_info("controller state", "controller=%s state=%s%s%s", v->name, kl_log_quoted(v->state),
            v->message ? " reason=" : "", v->message ? kl_log_quoted(v->message) : "");
}

bool cli_progress_states(cli_progress *p)
{
    kl_controller_state *v;
    size_t n = kl_manager_controllers(p->managers[0], &v);
    bool said = false;
    if (n > p->n_told) {
        p->told = kl_realloc(p->told, n * sizeof *p->told);
        memset(p->told + p->n_told, 0, (n - p->n_told) * sizeof *p->told);
        p->n_told = n;
    }
    for (size_t i = 0; i < n; i++) {
        char *line = kl_sprintf(
            "%s: %s%s%s", v[i].name, v[i].state, v[i].message ? ": " : "", v[i].message ? v[i].message : "");
        if (!p->told[i] || strcmp(p->told[i], line)) {
            tell(p, &v[i], line);
            kl_free(p->told[i]);
            p->told[i] = line;
            said = true;
        } else {
            kl_free(line);
        }
    }
    kl_controller_states_free(v, n);
    return said;
}

/* --- caches ------------------------------------------------------------------------------- */

typedef struct filling {
    const char *cluster; /* NULL: there is one */
    kl_buf text;         /* caches that are being filled: "v1/Pod 500, v1/Node 12" */
    size_t n, there;
} filling;

static void look(void *arg, const char *kind, kl_informer *i)
{
    filling *f = arg;
    if (kl_informer_synced(i)) {
        f->there++;
        return;
    }
    kl_informer_stats s;
    kl_informer_stats_get(i, &s);
    if (!s.message) { /* those in trouble are reported by the controllers' states */
        kl_buf_printf(&f->text, "%s%s%s%s %llu", f->n ? ", " : "", f->cluster ? f->cluster : "",
            f->cluster ? "/" : "", kind, (unsigned long long)s.coming);
        f->n++;
    }
    kl_informer_stats_fini(&s);
}

static void tell_filling(cli_progress *p, filling *f, kl_time now)
{
    char *objects = kl_buf_take(&f->text);
    if (p->terminal) {
        char *line = kl_sprintf(
            "waiting for caches, objects so far: %s (%zu of %zu synced)", objects, f->there, f->there + f->n);
        show(p, line);
        kl_free(line);
    } else {
        kl_info("waiting for caches", "seconds=%lld objects=%s filling=%zu synced=%zu",
            (long long)((now - p->since) / KL_SECONDS(1)), kl_log_quoted(objects), f->n, f->there);
    }
    kl_free(objects);
}

kl_time cli_progress_caches(cli_progress *p, kl_time now)
{
    if (p->since && now < p->due)
        return p->due;
    filling f = {.text = KL_BUF_INIT};
    for (size_t i = 0; i < p->n; i++) {
        f.cluster = p->names ? p->names[i] : NULL;
        kl_manager_informers(p->managers[i], look, &f);
    }
    if (!f.n) {
        p->since = 0;
        wipe(p);
    } else if (!p->since) {
        p->since = now;
        p->due = now + (p->terminal ? LINE_AFTER : LOG_EVERY);
    } else {
        tell_filling(p, &f, now);
        p->due = now + (p->terminal ? LINE_EVERY : LOG_EVERY);
    }
    kl_buf_fini(&f.text);
    return p->since ? p->due : KL_NEVER;
}
