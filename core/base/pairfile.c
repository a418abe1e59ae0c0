/* pairfile.c - files of certificate pairs: written beside, then linked (pairfile.h). */
#include "base/pairfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/mem.h"

#define PAIR_MAX ((size_t)1 << 20) /* a chain and a key are some KB */

static char *path_of(const char *dir, const char *name, const char *what)
{
    return kl_sprintf("%s/%s-%s.pem", dir, name, what);
}

char *kl_pairfile_path(const char *dir, const char *name) { return path_of(dir, name, "current"); }

static kl_status io(kl_err *err, const char *what, const char *path)
{
    return kl_fail(err, KL_EIO, "cannot %s %s: %s", what, path, strerror(errno));
}

static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static bool is_absent(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0 && errno == ENOENT;
}

/* --- reading ------------------------------------------------------------------------------ */

/* Reads without reallocation, so that no copy of a key stays in freed memory. */
static kl_status read_all(int fd, const char *path, char **out, kl_err *err)
{
    struct stat st;
    if (fstat(fd, &st))
        return io(err, "read", path);
    if (!S_ISREG(st.st_mode) || (size_t)st.st_size > PAIR_MAX)
        return kl_fail(err, KL_EIO, "cannot read %s: it is not a file of at most %zu bytes", path, PAIR_MAX);
    size_t size = (size_t)st.st_size, n = 0;
    char *text = kl_zalloc(size + 1);
    ssize_t got = 1;
    while (n < size && (got = read(fd, text + n, size - n)) > 0)
        n += (size_t)got;
    if (got < 0) {
        kl_status status = io(err, "read", path);
        explicit_bzero(text, size);
        kl_free(text);
        return status;
    }
    *out = text;
    return KL_OK;
}

kl_status kl_pairfile_read(const char *dir, const char *name, char **out, kl_err *err)
{
    char *current = kl_pairfile_path(dir, name), *updated = path_of(dir, name, "updated");
    kl_status st = KL_OK;
    if (is_absent(current) && is_link(updated) && rename(updated, current))
        st = io(err, "finish the move of", updated);
    int fd = st ? -1 : open(current, O_RDONLY | O_CLOEXEC);
    if (!st && fd < 0)
        st = errno == ENOENT ? kl_fail(err, KL_ENOTFOUND, "there is no certificate at %s yet", current)
                             : io(err, "read", current);
    if (!st)
        st = read_all(fd, current, out, err);
    if (fd >= 0)
        close(fd);
    kl_free(updated);
    kl_free(current);
    return st;
}

/* --- writing ------------------------------------------------------------------------------ */

static kl_status make_dirs(const char *dir, kl_err *err)
{
    char *path = kl_strdup(dir);
    kl_status st = KL_OK;
    for (char *p = path + 1; !st; p++) {
        if (*p && *p != '/')
            continue;
        bool end = !*p;
        *p = '\0';
        if (mkdir(path, 0755) && errno != EEXIST)
            st = io(err, "make the directory", path);
        if (end)
            break;
        *p = '/';
    }
    kl_free(path);
    return st;
}

static kl_status write_file(const char *path, const char *pem, kl_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return io(err, "write", path);
    size_t n = strlen(pem), done = 0;
    ssize_t put = 1;
    while (done < n && (put = write(fd, pem + done, n - done)) > 0)
        done += (size_t)put;
    bool bad = put < 0 || fsync(fd) != 0;
    kl_status st = bad ? io(err, "write", path) : KL_OK;
    close(fd);
    if (bad)
        unlink(path);
    return st;
}

/* An unused name: two pairs may be stored within a second. */
static char *fresh_name(const char *dir, const char *name, kl_time now)
{
    time_t seconds = (time_t)(now / KL_SECONDS(1));
    struct tm tm;
    char stamp[32];
    gmtime_r(&seconds, &tm);
    strftime(stamp, sizeof stamp, "%Y-%m-%d-%H-%M-%S", &tm);
    for (int i = 0;; i++) {
        char *word = i ? kl_sprintf("%s-%d", stamp, i) : kl_strdup(stamp), *path = path_of(dir, name, word);
        kl_free(word);
        if (is_absent(path))
            return path;
        struct stat st;
        if (lstat(path, &st))
            return path; /* the write will fail and report why */
        kl_free(path);
    }
}

/* The file that the link points to, if it is one of ours beside the link; caller frees. */
static char *linked(const char *dir, const char *name, const char *current)
{
    char target[PATH_MAX];
    ssize_t n = readlink(current, target, sizeof target - 1);
    if (n < 0)
        return NULL;
    target[n] = '\0';
    const char *slash = strrchr(target, '/'), *file = slash ? slash + 1 : target;
    size_t len = strlen(name);
    if ((slash && target[0] != '/') || strncmp(file, name, len) || file[len] != '-')
        return NULL;
    return kl_sprintf("%s/%s", dir, file);
}

static kl_status move_link(const char *dir, const char *name, const char *path, kl_err *err)
{
    char *current = kl_pairfile_path(dir, name), *updated = path_of(dir, name, "updated"), *before = NULL;
    kl_status st = KL_OK;
    if (!is_absent(current) && !is_link(current))
        st = kl_fail(err, KL_EEXISTS,
            "%s is a file, not a link: move it away so that new certificates can take its place", current);
    else if (is_link(updated) && unlink(updated))
        st = io(err, "remove", updated);
    if (!st && symlink(strrchr(path, '/') + 1, updated))
        st = io(err, "make the link", updated);
    if (!st) {
        before = linked(dir, name, current);
        if (rename(updated, current))
            st = io(err, "move", updated);
    }
    if (!st && before && strcmp(before, path))
        (void)unlink(before); /* its key is no longer used */
    kl_free(before);
    kl_free(updated);
    kl_free(current);
    return st;
}

static void sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); /* not supported by some file systems */
        close(fd);
    }
}

kl_status kl_pairfile_write(const char *dir, const char *name, const char *pem, kl_time now, kl_err *err)
{
    kl_status st = make_dirs(dir, err);
    if (st)
        return st;
    char *path = fresh_name(dir, name, now);
    st = write_file(path, pem, err);
    if (!st) {
        st = move_link(dir, name, path, err);
        if (st)
            (void)unlink(path);
        else
            sync_dir(dir);
    }
    kl_free(path);
    return st;
}
