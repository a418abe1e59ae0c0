/* unixsock.c - a path that only its owner can connect to: the mode is set before the name exists. */
#include "httpd/unixsock.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/mem.h"

#define BACKLOG 64

static kl_status address_of(const char *path, struct sockaddr_un *out, kl_err *err)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!*path)
        return kl_fail(err, KL_EINVAL, "a socket needs a path, for example unix:/run/user/1000/kubelua.sock");
    if (strlen(path) >= sizeof out->sun_path)
        return kl_fail(err, KL_EINVAL,
            "the path of a socket has at most %zu bytes, and %s has %zu: choose a shorter one",
            sizeof out->sun_path - 1, path, strlen(path));
    memcpy(out->sun_path, path, strlen(path));
    return KL_OK;
}

bool kl_unixsock_peer(int fd, pid_t *pid, uid_t *uid)
{
    struct ucred c;
    struct sockaddr_un sa;
    socklen_t n = sizeof c, len = sizeof sa;
    if (getsockname(fd, (struct sockaddr *)&sa, &len) || sa.sun_family != AF_UNIX
        || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n))
        return false;
    if (pid)
        *pid = c.pid;
    if (uid)
        *uid = c.uid;
    return true;
}

bool kl_unixsock_alive(const char *path, pid_t *pid)
{
    struct sockaddr_un sa;
    if (address_of(path, &sa, NULL))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    /* EAGAIN: its backlog is full */
    bool alive = !connect(fd, (struct sockaddr *)&sa, sizeof sa) || errno == EAGAIN;
    if (pid && (!alive || !kl_unixsock_peer(fd, pid, NULL)))
        *pid = 0;
    close(fd);
    return alive;
}

/* A user who may change names in there could replace our socket. */
static kl_status check_directory(const char *dir, kl_err *err)
{
    struct stat st;
    if (mkdir(dir, 0700) && errno != EEXIST)
        return kl_fail(err, KL_EIO, "cannot make the directory %s: %s", dir, strerror(errno));
    if (lstat(dir, &st))
        return kl_fail(err, KL_EIO, "cannot read the directory %s: %s", dir, strerror(errno));
    if (S_ISLNK(st.st_mode) && st.st_uid != geteuid() && st.st_uid != 0)
        return kl_fail(err, KL_EIO,
            "%s is a link of another user (uid %u): choose another place for the socket", dir,
            (unsigned)st.st_uid);
    if (stat(dir, &st))
        return kl_fail(err, KL_EIO, "cannot read the directory %s: %s", dir, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return kl_fail(err, KL_EIO, "%s is not a directory", dir);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return kl_fail(err, KL_EIO,
            "the directory %s belongs to another user (uid %u): choose another place for the socket", dir,
            (unsigned)st.st_uid);
    if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX))
        return kl_fail(err, KL_EIO,
            "other users may write into the directory %s (mode %o): chmod 700, or choose another place for "
            "the socket",
            dir, (unsigned)st.st_mode & 07777);
    return KL_OK;
}

static kl_status check_place(const char *path, kl_err *err)
{
    const char *slash = strrchr(path, '/');
    char *dir = !slash ? kl_strdup(".") : kl_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    kl_status st = check_directory(dir, err);
    kl_free(dir);
    return st;
}

/* Removes a socket at the path that no process listens on. */
static kl_status clear_place(const char *path, kl_err *err)
{
    struct stat st;
    pid_t pid;
    if (lstat(path, &st))
        return KL_OK;
    if (!S_ISSOCK(st.st_mode))
        return kl_fail(
            err, KL_EEXISTS, "%s exists and is not a socket: remove it, or choose another path", path);
    if (kl_unixsock_alive(path, &pid))
        return kl_fail(
            err, KL_EEXISTS, "process %ld already listens at %s: choose another path", (long)pid, path);
    if (unlink(path) && errno != ENOENT)
        return kl_fail(err, KL_EIO, "cannot replace the dead socket %s: %s", path, strerror(errno));
    return KL_OK;
}

kl_status kl_unixsock_listen(const char *path, int *out, kl_err *err)
{
    struct sockaddr_un sa;
    kl_status st = address_of(path, &sa, err);
    if (!st)
        st = check_place(path, err);
    if (!st)
        st = clear_place(path, err);
    if (st)
        return st;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return kl_fail(err, KL_EIO, "cannot make a socket: %s", strerror(errno));
    /* On Linux the name gets the mode of the socket, so that it is never open to others. */
    if (fchmod(fd, 0600) || bind(fd, (struct sockaddr *)&sa, sizeof sa) || chmod(path, 0600)
        || listen(fd, BACKLOG)) {
        st = kl_fail(err, KL_EIO, "cannot listen at %s: %s", path, strerror(errno));
        close(fd);
        return st;
    }
    *out = fd;
    return KL_OK;
}
