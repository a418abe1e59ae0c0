/* persist.c - renewed tokens go back into the kubeconfig file. */
#include "auth/persist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "yaml/yaml.h"
#include "auth/kubeconfig.h"

#define FILE_MAX ((size_t)16 << 20)

static bool write_all(int fd, const kl_buf *b)
{
    for (size_t at = 0; at < b->len;) {
        ssize_t n = write(fd, b->data + at, b->len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

/* Writes a new file beside `path`, then renames it over `path`. */
static kl_status replace(const char *path, const kl_buf *text, kl_err *err)
{
    struct stat s;
    char *temporary = kl_sprintf("%s.XXXXXX", path);
    int fd = mkostemp(temporary, O_CLOEXEC);
    kl_status st = KL_OK;
    bool good = fd >= 0 && !stat(path, &s) && !fchmod(fd, s.st_mode & 0777);
    if (good && (s.st_uid != geteuid() || s.st_gid != getegid()))
        good = !fchown(fd, s.st_uid, s.st_gid);
    good = good && write_all(fd, text) && !fsync(fd) && !rename(temporary, path);
    if (!good)
        st = kl_fail(err, KL_EIO, "%s cannot be replaced: %s", path, strerror(errno));
    if (fd >= 0) {
        if (!good)
            unlink(temporary);
        close(fd);
    }
    kl_free(temporary);
    return st;
}

static kl_status edit(
    const char *path, const char *user, const kl__persist_entry *entries, size_t n, kl_err *err)
{
    kl_buf text, next;
    kl_buf_init(&text, FILE_MAX);
    kl_status st = kl__file_read(path, &text, err);
    char *item = kl_sprintf("name=%s", user);
    for (size_t i = 0; !st && i < n; i++) {
        if (!entries[i].value)
            continue;
        const char *steps[] = {"users", item, "user", "auth-provider", "config", entries[i].key, NULL};
        kl_buf_init(&next, FILE_MAX);
        st = kl_yaml_set_string(path, kl_buf_str(&text), text.len, steps, entries[i].value, &next, err);
        if (text.data)
            explicit_bzero(text.data, text.len);
        kl_buf_fini(&text);
        text = next;
    }
    kl_free(item);
    if (!st)
        st = replace(path, &text, err);
    if (text.data)
        explicit_bzero(text.data, text.len);
    kl_buf_fini(&text);
    return st;
}

kl_status kl__persist_auth_provider(
    const char *file, const char *user, const kl__persist_entry *entries, size_t n, kl_err *err)
{
    char *path = realpath(file, NULL);
    if (!path)
        return kl_fail(err, KL_EIO, "%s cannot be written: %s", file, strerror(errno));
    char *lock = kl_sprintf("%s.lock", file);
    int fd = open(lock, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0600);
    kl_status st = KL_OK;
    if (fd < 0)
        st = errno == EEXIST ? kl_fail(err, KL_EAGAIN,
                 "%s exists: another program is changing the file (or died while doing so: then remove it)",
                 lock)
                             : kl_fail(err, KL_EIO, "%s cannot be made: %s", lock, strerror(errno));
    else {
        close(fd);
        st = edit(path, user, entries, n, err);
        unlink(lock);
    }
    kl_free(lock);
    free(path);
    return st;
}
