/* fswatch.c - reports that a watched file may have changed.
 *
 * Directories are watched, not files: an editor writes a new file and renames it, and a ConfigMap volume
 * swaps its ..data link beside the file's own name. An event that names one of our files, or after which a
 * file's fingerprint (device, inode, size, mtime through links) differs, makes the watch dirty; after 50 ms
 * of quiet (at most 1 s) it calls once. Directories that inotify cannot serve (refused, or remote: other
 * hosts' writes are not announced) are polled. */
#include "base/fswatch.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"

#define QUIET KL_MILLISECONDS(50)
#define QUIET_MAX KL_SECONDS(1) /* constant writes must not prevent the call */
#define POLL_EVERY KL_SECONDS(1)
#define EVENTS                                                                                               \
    (IN_CREATE | IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE            \
        | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

typedef struct fingerprint {
    bool there;
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime, ctime;
} fingerprint;

typedef struct target {
    char *path;
    char *dir;
    const char *name; /* within dir */
    int wd, real_wd;  /* of dir, and of the directory that links lead to; -1 when inotify has none */
    fingerprint seen, seen_dir;
} target;

struct kl_fswatch {
    target *targets;
    size_t n;
    char *suffix;      /* of the other files that count; NULL: none */
    int inotify, stop; /* inotify -1: everything is polled */
    bool polling;      /* some directory must be polled */
    void (*changed)(void *arg);
    void *arg;
    kl_thread *thread;
};

static fingerprint look(const char *path)
{
    struct stat s;
    if (stat(path, &s))
        return (fingerprint){0};
    return (fingerprint){true, s.st_dev, s.st_ino, s.st_size, s.st_mtim, s.st_ctim};
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same(const fingerprint *a, const fingerprint *b)
{
    return a->there == b->there && a->dev == b->dev && a->ino == b->ino && a->size == b->size
        && same_time(a->mtime, b->mtime) && same_time(a->ctime, b->ctime);
}

static bool differs(const char *path, fingerprint *seen)
{
    fingerprint before = *seen;
    *seen = look(path);
    return !same(seen, &before);
}

/* Takes fresh fingerprints; true when any differs. That of a directory differs when any file comes or goes,
 * so it counts only where there are no events, which have names. */
static bool refresh(kl_fswatch *w)
{
    bool any = false;
    for (size_t i = 0; i < w->n; i++) {
        target *t = &w->targets[i];
        any |= differs(t->path, &t->seen);
        any |= w->suffix && t->wd < 0 && differs(t->dir, &t->seen_dir);
    }
    return any;
}

/* Whether writes by others are announced on this file system. */
static bool is_local(const char *dir)
{
    static const unsigned long remote[] = {0x6969 /* NFS */, 0xff534d42 /* CIFS */, 0xfe534d42 /* SMB2 */,
        0x517b /* SMB */, 0x65735546 /* FUSE */, 0x01021997 /* 9p */, 0x00c36400 /* Ceph */};
    struct statfs fs;
    if (statfs(dir, &fs))
        return true;
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
        if (((unsigned long)fs.f_type & 0xffffffffu) == remote[i])
            return false;
    return true;
}

static int watch_dir(kl_fswatch *w, const char *dir)
{
    return w->inotify >= 0 && is_local(dir) ? inotify_add_watch(w->inotify, dir, EVENTS) : -1;
}

/* (Re)attaches every directory; adding one twice is no change. Links may lead elsewhere after each swap. */
static void attach(kl_fswatch *w)
{
    w->polling = false;
    for (size_t i = 0; i < w->n; i++) {
        target *t = &w->targets[i];
        t->wd = watch_dir(w, t->dir);
        t->real_wd = -1;
        w->polling |= t->wd < 0;
        char *real = realpath(t->path, NULL);
        if (real) {
            t->real_wd = watch_dir(w, dirname(real));
            w->polling |= t->real_wd < 0;
        }
        free(real);
    }
}

/* Reads all events of inotify; true when one concerns a target by name. *lost: a directory itself went
 * away. */
static bool drain(kl_fswatch *w, bool *lost)
{
    char bytes[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)] __attribute__((aligned(8)));
    bool ours = false;
    ssize_t got;
    while ((got = read(w->inotify, bytes, sizeof bytes)) > 0)
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *ev = (const struct inotify_event *)(bytes + at);
            at += (ssize_t)(sizeof *ev + ev->len);
            *lost |= (ev->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) != 0;
            ours |= (ev->mask & IN_Q_OVERFLOW) != 0;
            for (size_t i = 0; i < w->n && !ours; i++) {
                const target *t = &w->targets[i];
                ours = ev->wd == t->wd && ev->len && !(ev->mask & IN_ISDIR)
                    && (!strcmp(ev->name, t->name) || (w->suffix && kl_ends_with(ev->name, w->suffix)));
            }
        }
    return ours;
}

static int wait_ms(kl_time until, kl_time now)
{
    if (until == KL_NEVER)
        return -1;
    return until <= now ? 0 : (int)((until - now + KL_MILLISECONDS(1) - 1) / KL_MILLISECONDS(1));
}

static void watch_loop(void *arg)
{
    kl_fswatch *w = arg;
    kl_clock *clock = kl_clock_real();
    bool dirty = false;
    kl_time quiet_at = KL_NEVER, first = 0;
    for (;;) {
        kl_time now = kl_clock_now(clock);
        kl_time until = dirty ? quiet_at : w->polling ? now + POLL_EVERY : KL_NEVER;
        struct pollfd fds[2] = {{.fd = w->stop, .events = POLLIN}, {.fd = w->inotify, .events = POLLIN}};
        int rc = poll(fds, 2, wait_ms(until, now));
        if (fds[0].revents)
            return;
        now = kl_clock_now(clock);
        bool lost = false, touched = rc > 0 && fds[1].revents && drain(w, &lost);
        if (refresh(w) || touched) {
            if (!dirty)
                first = now;
            dirty = true;
            quiet_at = now + QUIET < first + QUIET_MAX ? now + QUIET : first + QUIET_MAX;
        }
        if (lost || w->polling)
            attach(w);
        if (dirty && now >= quiet_at) {
            dirty = false;
            attach(w);
            w->changed(w->arg);
        }
    }
}

static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? kl_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : kl_strdup(".");
}

static kl_status target_init(target *t, const char *path, kl_err *err)
{
    struct stat s;
    const char *slash = strrchr(path, '/');
    t->wd = t->real_wd = -1;
    t->path = kl_strdup(path);
    t->dir = directory_of(path);
    t->name = t->path + (slash ? slash + 1 - path : 0);
    if (stat(t->dir, &s) || !S_ISDIR(s.st_mode))
        return kl_fail(err, KL_EIO, "cannot watch %s: directory %s does not exist", path, t->dir);
    t->seen = look(path);
    t->seen_dir = look(t->dir);
    return KL_OK;
}

static void fswatch_free(kl_fswatch *w)
{
    for (size_t i = 0; i < w->n; i++) {
        kl_free(w->targets[i].path);
        kl_free(w->targets[i].dir);
    }
    if (w->inotify >= 0)
        close(w->inotify);
    if (w->stop >= 0)
        close(w->stop);
    kl_free(w->targets);
    kl_free(w->suffix);
    kl_free(w);
}

kl_status kl_fswatch_start(const char *const *files, size_t n, const char *suffix, void (*changed)(void *arg),
    void *arg, kl_fswatch **out, kl_err *err)
{
    kl_fswatch *w = kl_new(kl_fswatch);
    w->targets = kl_new_array(target, n);
    w->n = n;
    w->suffix = kl_strdup(suffix);
    w->changed = changed;
    w->arg = arg;
    w->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    /* fails beyond fs.inotify.max_user_instances */
    w->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    kl_status st = w->stop < 0 ? kl_fail(err, KL_EIO, "cannot watch files: %s", strerror(errno)) : KL_OK;
    for (size_t i = 0; !st && i < n; i++)
        st = target_init(&w->targets[i], files[i], err);
    if (st) {
        fswatch_free(w);
        return st;
    }
    attach(w);
    if (w->polling)
        kl_info("polling files for changes",
            "every=1s files=%zu why=\"inotify is refused here or the file system is remote\"", n);
    w->thread = kl_thread_start("kl-fswatch", watch_loop, w);
    *out = w;
    return KL_OK;
}

void kl_fswatch_stop(kl_fswatch *w)
{
    if (!w)
        return;
    eventfd_write(w->stop, 1);
    kl_thread_join(w->thread);
    fswatch_free(w);
}
