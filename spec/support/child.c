/* child.c - keeps one child process for a spec, and never outlives the spec.
 *
 *   child PIDFILE RCFILE LOGFILE PROGRAM [ARG...]        (stdin: a pipe that the spec holds open)
 *
 *   starting --exec--> running (PIDFILE holds the pid) --exit--> gone (RCFILE holds the status, 128+n for signal n)
 *   running --stdin closed, so the spec ended--> TERM, after GRACE_SECONDS KILL --> gone
 *
 * Both files appear whole (written aside, then renamed). Stdout and stderr of the program go to LOGFILE. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Long enough for a controller to finish its running reconciles under a sanitizer. */
#define GRACE_SECONDS 20

static int wake[2];

static void on_sigchld(int sig)
{
    (void)sig;
    int saved = errno;
    ssize_t n = write(wake[1], "c", 1);
    (void)n; /* a full pipe already holds a wake-up */
    errno = saved;
}

static void die(const char *what)
{
    fprintf(stderr, "child: %s: %s\n", what, strerror(errno));
    exit(126);
}

static void write_number(const char *path, int number)
{
    char aside[4096];
    snprintf(aside, sizeof aside, "%s.new", path);
    FILE *f = fopen(aside, "w");
    if (!f)
        die(aside);
    fprintf(f, "%d\n", number);
    if (fclose(f) || rename(aside, path))
        die(path);
}

static pid_t start(const char *log, char **argv)
{
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid > 0)
        return pid;
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644), in = open("/dev/null", O_RDONLY);
    if (out < 0 || in < 0)
        die(log);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    setpgid(0, 0); /* ^C on the terminal goes to the runner, which ends us in order */
    signal(SIGCHLD, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigset_t none; /* the runner's libraries block SIGPIPE */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(argv[0], argv);
    fprintf(stderr, "child: %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: child PIDFILE RCFILE LOGFILE PROGRAM [ARG...]\n");
        return 2;
    }
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK))
        die("pipe");
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, on_sigchld);
    pid_t pid = start(argv[3], argv + 4);
    write_number(argv[1], (int)pid);

    struct pollfd fds[2] = {{wake[0], POLLIN, 0}, {0, POLLIN, 0}};
    int status, ending = 0;
    for (;;) {
        int n = poll(fds, ending ? 1 : 2, ending ? GRACE_SECONDS * 1000 : -1);
        if (waitpid(pid, &status, WNOHANG) == pid)
            break;
        if (n == 0 && ending)
            kill(pid, SIGKILL);
        if (fds[0].revents) {
            char drop[64];
            while (read(wake[0], drop, sizeof drop) > 0)
                ;
        }
        char byte;
        if (!ending && fds[1].revents && read(0, &byte, 1) <= 0) {
            ending = 1;
            kill(pid, SIGTERM);
        }
    }
    write_number(argv[2], WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    return 0;
}
