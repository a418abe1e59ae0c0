/* log.c - the lines that wait are one buffer; the writer takes all of it at once. */
#include "audit/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"

#define LINES_MAX ((size_t)64 << 20) /* bytes that may wait for a slow disk */

struct kl_audit_log {
    char *path;
    int fd; /* the writer's */
    kl_thread *writer;
    kl_mutex mu;
    kl_cond wake;
    kl_buf waiting KL_GUARDED_BY(mu);
    size_t lost KL_GUARDED_BY(mu); /* lines dropped since the last line that was written */
    bool closing KL_GUARDED_BY(mu);
};

static int open_file(const char *path) { return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600); }

/* Whether the log's name now belongs to another file, or to none. */
static bool moved(const kl_audit_log *l)
{
    struct stat here, there;
    return l->fd < 0 || fstat(l->fd, &here) || stat(l->path, &there) || here.st_ino != there.st_ino
        || here.st_dev != there.st_dev;
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

static size_t lines_of(const kl_buf *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++)
        n += b->data[i] == '\n';
    return n;
}

/* 0, or the error. */
static int put(kl_audit_log *l, const kl_buf *lines)
{
    if (moved(l)) {
        int fd = open_file(l->path);
        if (fd < 0)
            return errno;
        if (l->fd >= 0)
            close(l->fd);
        l->fd = fd;
    }
    return write_all(l->fd, lines->data, lines->len);
}

/* Logs when lines start to be lost, and when that ends. */
static void tell(kl_audit_log *l, size_t before, size_t lost, int error)
{
    if (error && !before)
        kl_warn(
            "audit events are lost: the log cannot be written", "file=%s why=%s", l->path, strerror(error));
    else if (!error && lost)
        kl_warn("the audit log can be written again; events were lost meanwhile", "file=%s events=%zu",
            l->path, lost);
}

static void write_lines(void *arg)
{
    kl_audit_log *l = arg;
    kl_lock(&l->mu);
    for (;;) {
        while (!l->waiting.len && !l->closing)
            kl_cond_wait(&l->wake, &l->mu);
        if (!l->waiting.len)
            break;
        kl_buf lines = l->waiting;
        kl_buf_init(&l->waiting, LINES_MAX);
        size_t before = l->lost;
        kl_unlock(&l->mu);
        int error = put(l, &lines);
        tell(l, before, before, error);
        size_t n = lines_of(&lines);
        kl_buf_fini(&lines);
        kl_lock(&l->mu);
        l->lost = error ? l->lost + n : l->lost - before;
    }
    kl_unlock(&l->mu);
}

kl_status kl_audit_log_open(const char *path, kl_audit_log **out, kl_err *err)
{
    int fd = open_file(path);
    if (fd < 0)
        return kl_fail(err, KL_EIO, "the audit log %s cannot be opened: %s", path, strerror(errno));
    kl_audit_log *l = kl_new(kl_audit_log);
    l->path = kl_strdup(path);
    l->fd = fd;
    kl_mutex_init(&l->mu);
    kl_cond_init(&l->wake);
    kl_buf_init(&l->waiting, LINES_MAX);
    l->writer = kl_thread_start("kl-audit", write_lines, l);
    *out = l;
    return KL_OK;
}

void kl_audit_log_close(kl_audit_log *l)
{
    if (!l)
        return;
    kl_lock(&l->mu);
    l->closing = true;
    kl_cond_signal(&l->wake);
    kl_unlock(&l->mu);
    kl_thread_join(l->writer);
    if (l->fd >= 0)
        close(l->fd);
    kl_buf_fini(&l->waiting);
    kl_cond_fini(&l->wake);
    kl_mutex_fini(&l->mu);
    kl_free(l->path);
    kl_free(l);
}

void kl_audit_log_add(kl_audit_log *l, const char *line, size_t n)
{
    kl_lock(&l->mu);
    if (l->waiting.len + n + 1 > LINES_MAX)
        l->lost++;
    else {
        kl_buf_add(&l->waiting, line, n);
        kl_buf_putc(&l->waiting, '\n');
        kl_cond_signal(&l->wake);
    }
    kl_unlock(&l->mu);
}
