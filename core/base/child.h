/* child.h - runs an untrusted program: its output and its time are bounded, and it leaves no process behind.
 * The only door to posix_spawn.
 *
 * The program gets no file descriptor of ours but the three standard ones, no blocked signal and no ignored
 * one. It leads its own process group, which is killed as a whole, unless the program shares our terminal (a
 * background group may not read from a terminal). */
#ifndef KL_BASE_CHILD_H
#define KL_BASE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

typedef struct kl_child kl_child; /* a place to run one program at a time */

typedef struct kl_child_order {           /* borrowed for the call */
    const char *program;                  /* a path; without "/" it is looked for in PATH */
    const char *const *argv, *const *env; /* NULL-terminated; argv[0] is the program's name */
    /* the program gets our stdin and stderr; else stdin is /dev/null, and stderr is gathered */
    bool terminal;
    kl_time timeout; /* > 0 */
    /* bytes: more output than out_max ends the program; the last err_max of stderr are kept */
    size_t out_max, err_max;
} kl_child_order;

typedef struct kl_child_result {
    kl_buf out, err; /* caller finishes both */
    int code;        /* exit status, or -1 */
    int signal;      /* the signal that ended it, or 0 */
} kl_child_result;

kl_child *kl_child_new(void);
void kl_child_free(kl_child *c); /* no run may be in progress */
/* Waits for the end. KL_ENOTFOUND: no such program; KL_EIO: it cannot be started; KL_ETIMEOUT, KL_ETOOBIG,
 * KL_ECANCELLED (by kl_child_stop): it was killed. KL_OK whatever its exit status was. After a failure,
 * out->out is finished already; the caller finishes out->err in every case. */
KL_NODISCARD kl_status kl_child_run(kl_child *c, const kl_child_order *o, kl_child_result *out, kl_err *err);
/* any thread: the current run and all later ones end with KL_ECANCELLED */
void kl_child_stop(kl_child *c);
bool kl_child_terminal(void); /* whether our stdin is a terminal */

/* Starts a program that talks with us: its standard input is the other end of *fd, which is non-blocking on
 * our side. The program has no other file, no environment, and its own process group. A debug build leaves it
 * stderr, for the sanitizers' reports. KL_EIO: it cannot be started. Any thread; the caller ends it with
 * kl_child_end. */
KL_NODISCARD kl_status kl_child_talk(
    const char *program, const char *const *argv, int *fd, pid_t *pid, kl_err *err);
/* Kills the program if it still runs, waits for its end and closes fd. *status: as waitpid reports it;
 * SIGKILL when we killed it; -1 when other code reaped it. */
void kl_child_end(int fd, pid_t pid, int *status);

#endif
