/* file.c - opens without waiting, looks what it is, reads. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE 65536

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

static kl_status read_all(int fd, const char *path, const char *what, kl_buf *out, kl_err *err)
{
    for (;;) {
        char *room = kl_buf_reserve(out, PIECE);
        if (!room)
            return kl_fail(err, KL_ETOOBIG, "%s: %s may have %zu bytes at most", path, what, out->max);
        ssize_t n = read(fd, room, PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(path, err);
        if (!n)
            return KL_OK;
        out->len += (size_t)n;
    }
}

kl_status kl_file_read(const char *path, const char *what, kl_buf *out, kl_err *err)
{
    struct stat meta;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return failed(path, err);
    kl_status st = KL_OK;
    if (fstat(fd, &meta))
        st = failed(path, err);
    else if (!S_ISREG(meta.st_mode))
        st = kl_fail(err, KL_EINVAL, "%s is %s, not a regular file", path, kind_of(meta.st_mode));
    else
        st = read_all(fd, path, what, out, err);
    close(fd);
    return st;
}
