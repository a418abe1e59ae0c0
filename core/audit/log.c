/* log.c - the lines that wait are one buffer; the writer takes all of it at once. */
#include "audit/log.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"

#define LINES_MAX ((size_t)64 << 20) /* bytes that may wait for a slow disk */
#define LOOK_EVERY 100               /* ms: whether the log is closed, while a pipe is full */
#define AT_END 30                    /* that many looks later a closed log gives up its lines */

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

/* Whether the log's name now belongs to another file, or to none. */
static bool moved(const kl_audit_log *l)
{
    struct stat here, there;
    return l->fd < 0 || fstat(l->fd, &here) || stat(l->path, &there) || here.st_ino != there.st_ino
        || here.st_dev != there.st_dev;
}

/* Waits until a pipe takes more; at the end of the log for a short time only. */
static int await(kl_audit_log *l)
{
    for (int left = AT_END;; left--) {
        struct pollfd p = {.fd = l->fd, .events = POLLOUT};
        if (poll(&p, 1, LOOK_EVERY))
            return 0;
        kl_lock(&l->mu);
        bool closing = l->closing;
        kl_unlock(&l->mu);
        if (!closing)
            left = AT_END;
        else if (!left)
            return ETIMEDOUT;
    }
}

static int write_all(kl_audit_log *l, const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(l->fd, p, n);
        int error = done >= 0 || errno == EINTR ? 0 : errno == EAGAIN ? await(l) : errno;
        if (error)
            return error;
        if (done < 0)
            continue;
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

static kl_status put(kl_audit_log *l, const kl_buf *lines, kl_err *err)
{
    if (moved(l)) {
        int fd;
        kl_status st = kl_file_open_log(l->path, &fd, err);
        if (st)
            return st;
        if (l->fd >= 0)
            close(l->fd);
        l->fd = fd;
    }
    int error = write_all(l, lines->data, lines->len);
    return error ? kl_fail(err, KL_EIO, "%s", strerror(error)) : KL_OK;
}

/* Logs when lines start to be lost, and when that ends. */
static void tell(kl_audit_log *l, size_t before, size_t lost, const kl_err *err)
{
    if (err->status && !before)
        kl_warn("audit events are lost: the log cannot be written", "file=%s why=%s", l->path,
            kl_log_quoted(kl_err_message(err)));
    else if (!err->status && lost)
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
        kl_err err = KL_ERR_INIT;
        kl_status st = put(l, &lines, &err);
        tell(l, before, before, &err);
        kl_err_fini(&err);
        size_t n = lines_of(&lines);
        kl_buf_fini(&lines);
        kl_lock(&l->mu);
        l->lost = st ? l->lost + n : l->lost - before;
    }
    kl_unlock(&l->mu);
}

kl_status kl_audit_log_open(const char *path, kl_audit_log **out, kl_err *err)
{
    int fd;
    kl_status st = kl_file_open_log(path, &fd, err);
    if (st)
        return kl_err_prefix(err, "the audit log cannot be opened");
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
