/* file.c - opens without waiting, checks the type, reads. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"

#define PIECE 16384

static const char *kind_of(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a directory";
    if (S_ISFIFO(mode))
        return "a FIFO";
    if (S_ISSOCK(mode))
        return "a socket";
    return "a device";
}

static kl_status failed(const char *path, kl_err *err)
{
    int why = errno;
    struct stat meta;
    if (why == ENXIO && !stat(path, &meta) && S_ISSOCK(meta.st_mode))
        return kl_fail(err, KL_EINVAL, "%s is a socket, not a regular file", path);
    return kl_fail(err, why == ENOENT ? KL_ENOTFOUND : KL_EIO, "%s: %s", path, strerror(why));
}

/* A regular file never waits. */
static kl_status await(int fd, const char *path, kl_err *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    do
        n = poll(&p, 1, (int)(KL_FILE_PATIENCE / KL_MILLISECONDS(1)));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return failed(path, err);
    return n ? KL_OK
             : kl_fail(err, KL_ETIMEOUT, "%s: no data arrived through the pipe for %d seconds", path,
                 (int)(KL_FILE_PATIENCE / KL_SECONDS(1)));
}

/* The next bytes; *n is 0 at the end. */
static kl_status read_some(int fd, const char *path, char *piece, size_t room, size_t *n, kl_err *err)
{
    for (;;) {
        kl_status st = await(fd, path, err);
        if (st)
            return st;
        ssize_t got = read(fd, piece, room);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return failed(path, err);
        *n = (size_t)got;
        return KL_OK;
    }
}

static kl_status read_all(int fd, const char *path, const char *what, kl_buf *out, kl_err *err)
{
    char piece[PIECE];
    for (size_t n;;) {
        kl_status st = read_some(fd, path, piece, sizeof piece, &n, err);
        if (st || !n)
            return st;
        if (kl_buf_add(out, piece, n))
            return kl_fail(err, KL_ETOOBIG, "%s: %s may have at most %zu bytes", path, what,
                out->max ? out->max : KL_BUF_MAX);
    }
}

/* What may be there besides a regular file. */
typedef enum others { NONE, ANONYMOUS_PIPES, FIFOS } others;

/* A shell's anonymous pipe has a writer; a FIFO may never have one. */
static bool is_allowed(int fd, mode_t mode, others o)
{
    struct statfs fs;
    return S_ISREG(mode) || (o == FIFOS && S_ISFIFO(mode))
        || (o == ANONYMOUS_PIPES && !fstatfs(fd, &fs) && fs.f_type == PIPEFS_MAGIC);
}

/* *fd is the caller's to close. */
static kl_status open_path(const char *path, others o, int *fd, kl_err *err)
{
    struct stat meta;
    *fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*fd < 0)
        return failed(path, err);
    kl_status st = KL_OK;
    if (fstat(*fd, &meta))
        st = failed(path, err);
    else if (!is_allowed(*fd, meta.st_mode, o))
        st = kl_fail(err, KL_EINVAL, "%s is %s, not a regular file", path, kind_of(meta.st_mode));
    if (st)
        close(*fd);
    return st;
}

static kl_status read_path(const char *path, const char *what, others o, kl_buf *out, kl_err *err)
{
    int fd;
    kl_status st = open_path(path, o, &fd, err);
    if (st)
        return st;
    st = read_all(fd, path, what, out, err);
    close(fd);
    return st;
}

kl_status kl_file_read(const char *path, const char *what, kl_buf *out, kl_err *err)
{
    return read_path(path, what, NONE, out, err);
}

kl_status kl_file_read_given(const char *path, const char *what, kl_buf *out, kl_err *err)
{
    return read_path(path, what, ANONYMOUS_PIPES, out, err);
}

struct kl_file {
    int fd;
    const char *path;
};

kl_status kl_file_open_given(const char *path, kl_file **out, kl_err *err)
{
    int fd;
    kl_status st = open_path(path, FIFOS, &fd, err);
    if (st)
        return st;
    *out = kl_new(kl_file);
    **out = (kl_file){fd, path};
    return KL_OK;
}

void kl_file_close(kl_file *f)
{
    if (f)
        close(f->fd);
    kl_free(f);
}

kl_status kl_file_next(kl_file *f, char *piece, size_t room, size_t *n, kl_err *err)
{
    return read_some(f->fd, f->path, piece, room, n, err);
}

/* --- writing ------------------------------------------------------------------------------ */

static bool is_ours(uid_t uid) { return uid == geteuid() || uid == 0; }

/* Opens it without waiting for the reader of a FIFO. A regular file is empty afterwards, and only its
 * owner's, if `empties`. */
static kl_status open_to_write(const char *path, int how, bool empties, int *fd, kl_err *err)
{
    struct stat st;
    how |= O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int f = open(path, how | O_NOFOLLOW, 0600);
    /* Where others may write, nobody replaces a link of ours: /tmp has the sticky bit. */
    if (f < 0 && errno == ELOOP && !lstat(path, &st) && is_ours(st.st_uid))
        f = open(path, how, 0600);
    else if (f < 0 && errno == ELOOP)
        return kl_fail(err, KL_EFORBIDDEN, "%s is a link of another user: choose another path", path);
    if (f < 0 && errno == ENXIO)
        return kl_fail(err, KL_EIO, "%s is a socket, or a FIFO without a reader: choose another path", path);
    if (f < 0 || fstat(f, &st))
        goto failed;
    if (S_ISREG(st.st_mode) && (empties ? st.st_uid != geteuid() : !is_ours(st.st_uid))) {
        close(f);
        return kl_fail(err, KL_EFORBIDDEN, "%s belongs to another user: choose another place", path);
    }
    if (S_ISREG(st.st_mode) && empties && (fchmod(f, 0600) || ftruncate(f, 0)))
        goto failed;
    *fd = f;
    return KL_OK;
failed:
    kl_fail(err, KL_EIO, "%s: %s", path, strerror(errno));
    if (f >= 0)
        close(f);
    return KL_EIO;
}

kl_status kl_file_open_private(const char *path, int *fd, kl_err *err)
{
    kl_status st = open_to_write(path, 0, true, fd, err);
    if (!st)
        fcntl(*fd, F_SETFL, O_WRONLY); /* writes wait */
    return st;
}

kl_status kl_file_open_log(const char *path, int *fd, kl_err *err)
{
    return open_to_write(path, O_APPEND, false, fd, err);
}
