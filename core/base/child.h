/* child.h - runs a program that we do not trust to its end: its output and its time are bounded, and none of
 * its processes is left behind. The only door to posix_spawn.
 *
 * The program gets no file descriptor of ours but the three standard ones, no blocked signal and no
 * ignored one. It leads a process group of its own and is killed with it, unless it shares our terminal (a
 * program in the background may not read from one). */
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
    /* our stdin and stderr are the program's; else /dev/null, and stderr is gathered */
    bool terminal;
    kl_time timeout; /* > 0 */
    /* bytes: more output ends the program, of stderr the last ones are kept */
    size_t out_max, err_max;
} kl_child_order;

typedef struct kl_child_result {
    kl_buf out, err; /* caller finishes both */
    int code;        /* exit status, or -1 */
    int signal;      /* that ended it, or 0 */
} kl_child_result;

kl_child *kl_child_new(void);
void kl_child_free(kl_child *c); /* no run may be going on */
/* Waits for the end. KL_ENOTFOUND: no such program; KL_EIO: it cannot be started; KL_ETIMEOUT, KL_ETOOBIG,
 * KL_ECANCELLED (by kl_child_stop): it was killed. KL_OK whatever its exit status was. *out is filled on
 * KL_OK and finished by us otherwise, but for out->err, which is the caller's in every case. */
KL_NODISCARD kl_status kl_child_run(kl_child *c, const kl_child_order *o, kl_child_result *out, kl_err *err);
/* any thread: the current run and all later ones end with KL_ECANCELLED */
void kl_child_stop(kl_child *c);
bool kl_child_terminal(void); /* our stdin is a terminal */

/* A program that talks with us: its standard input is the other end of *fd, which does not block here; it
 * has no other file, no environment, and a process group of its own. A debug build leaves it stderr, for
 * the sanitizers' reports. KL_EIO: it cannot be started. Any thread; the caller ends it with kl_child_end. */
KL_NODISCARD kl_status kl_child_talk(
    const char *program, const char *const *argv, int *fd, pid_t *pid, kl_err *err);
/* Kills what still runs of it, waits for its end and closes fd. *status: as waitpid reports it; SIGKILL when
 * we killed it; -1 when somebody else reaped it. */
void kl_child_end(int fd, pid_t pid, int *status);

#endif
