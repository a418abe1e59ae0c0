/* tape.c - one descriptor, one buffer, and renames. */
#include "base/tape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#define BUFFER ((size_t)256 << 10)

struct kl_tape {
    char *path;
    int fd;            /* -1: ended */
    size_t room, here; /* of the present file; here counts the buffer, too */
    kl_buf out;
};

static char *name_of(const char *path, int number)
{
    return number ? kl_sprintf("%s.%d", path, number) : kl_strdup(path);
}

/* FILE -> FILE.1 -> FILE.2 ...; the oldest is removed. */
static void shift(const char *path)
{
    for (int i = KL_TAPE_FILES - 1; i > 0; i--) {
        char *from = name_of(path, i - 1), *to = name_of(path, i);
        (void)rename(from, to);
        kl_free(from);
        kl_free(to);
    }
}

static kl_status begin(kl_tape *t, kl_err *err)
{
    shift(t->path);
    t->here = 0;
    t->fd = open(t->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (t->fd < 0)
        return kl_fail(err, KL_EIO, "cannot write %s: %s", t->path, strerror(errno));
    return KL_OK;
}

static bool begins_so(const char *name, const char *begins)
{
    char head[64];
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, head, sizeof head);
    close(fd);
    size_t want = strlen(begins);
    return n >= 0 && !memcmp(head, begins, (size_t)n < want ? (size_t)n : want);
}

/* With a wrong file name we would rename a foreign file, and remove it a few starts later. */
static kl_status check(const char *path, const char *begins, kl_err *err)
{
    kl_status st = KL_OK;
    for (int i = 0; i < KL_TAPE_FILES && !st; i++) {
        char *name = name_of(path, i);
        struct stat s;
        if (lstat(name, &s))
            ;
        else if (!S_ISREG(s.st_mode))
            st = kl_fail(err, KL_EEXISTS, "%s is %s: name a file", name,
                S_ISDIR(s.st_mode)       ? "a directory"
                    : S_ISLNK(s.st_mode) ? "a symbolic link"
                                         : "not a regular file");
        else if (s.st_size && begins && !begins_so(name, begins))
            st = kl_fail(err, KL_EEXISTS,
                "%s exists and is not a kubelua recording; it would be renamed: name another file", name);
        kl_free(name);
    }
    return st;
}

kl_status kl_tape_new(const char *path, size_t max, const char *begins, kl_tape **out, kl_err *err)
{
    kl_status checked = check(path, begins, err);
    if (checked)
        return checked;
    kl_tape *t = kl_new(kl_tape);
    t->path = kl_strdup(path);
    t->room = max / KL_TAPE_FILES;
    kl_status st = begin(t, err);
    if (st) {
        kl_free(t->path);
        kl_free(t);
        return st;
    }
    *out = t;
    return KL_OK;
}

void kl_tape_end(kl_tape *t, const char *why)
{
    if (t->fd < 0)
        return;
    kl_error("nothing more is written to this file", "file=%s error=%s", t->path, kl_log_quoted(why));
    close(t->fd);
    t->fd = -1;
    kl_buf_fini(&t->out);
}

void kl_tape_flush(kl_tape *t)
{
    for (size_t at = 0; t->fd >= 0 && at < t->out.len;) {
        ssize_t n = write(t->fd, t->out.data + at, t->out.len - at);
        if (n > 0) {
            at += (size_t)n;
        } else if (errno != EINTR) {
            kl_tape_end(t, strerror(errno));
            return;
        }
    }
    kl_buf_clear(&t->out);
}

void kl_tape_add(kl_tape *t, const char *line, size_t n)
{
    if (t->fd < 0)
        return;
    kl_buf_add(&t->out, line, n);
    t->here += n;
    if (t->out.len >= BUFFER)
        kl_tape_flush(t);
}

bool kl_tape_full(const kl_tape *t) { return t->here >= t->room; }
bool kl_tape_ended(const kl_tape *t) { return t->fd < 0; }
size_t kl_tape_here(const kl_tape *t) { return t->here; }
size_t kl_tape_room(const kl_tape *t) { return t->room; }

void kl_tape_next(kl_tape *t)
{
    kl_tape_flush(t);
    if (t->fd < 0)
        return;
    close(t->fd);
    kl_err err = KL_ERR_INIT;
    if (begin(t, &err))
        kl_error("nothing more is written to this file", "file=%s error=%s", t->path,
            kl_log_quoted(kl_err_message(&err)));
    kl_err_fini(&err);
}

void kl_tape_free(kl_tape *t)
{
    if (!t)
        return;
    kl_tape_flush(t);
    if (t->fd >= 0)
        close(t->fd);
    kl_buf_fini(&t->out);
    kl_free(t->path);
    kl_free(t);
}
