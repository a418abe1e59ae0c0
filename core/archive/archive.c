/* archive.c - group commit over SQLite in WAL mode.
 *
 *   queue --the thread takes all of it--> batch --COMMIT--> on disk: wakes waiting callers
 *                                               --fails---> ROLLBACK, failed(): returns batch and queue to
 *                                                           the owner under its lock, then wakes
 *                                                           waiting callers with the reason
 *
 * synchronous=FULL: COMMIT returns after the fsync of the log. The exclusive lock keeps a second process out
 * and needs no shared memory file. Each change has a number; a caller waits for one of them. */
#include "archive/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"

#define FILE_NAME "objects.db"
#define APPLICATION 0x6b6c7561 /* "klua", in the file's head */
#define FORMAT 1

typedef struct change {
    struct change *next;
    uint64_t number, rv;
    char *group, *plural, *key;
    const kl_value *old, *now;
} change;

typedef struct waiter {
    struct waiter *next;
    uint64_t number;
    kl_archive_done *done;
    void *arg;
} waiter;

struct kl_archive {
    char *path;
    sqlite3 *db; /* the opener's, then the thread's */
    sqlite3_stmt *put, *cut, *touch;
    uint64_t rv;
    void (*failed)(void *arg);
    void *arg;
    kl_thread *thread;
    kl_mutex mu;
    kl_cond news;
    change *queue KL_GUARDED_BY(mu), **tail KL_GUARDED_BY(mu);
    change *batch KL_GUARDED_BY(mu); /* the failed batch, until it is given back */
    waiter *waiters KL_GUARDED_BY(mu);
    uint64_t added KL_GUARDED_BY(mu); /* number of the last change */
    uint64_t over KL_GUARDED_BY(mu);  /* changes up to this number are on disk, or given back */
    char *why KL_GUARDED_BY(mu);      /* of the last failure */
    bool stopping KL_GUARDED_BY(mu);
};

/* ------------------------------------------------------------------ the file */

/* SQLite's error as a kl_status, with advice. */
static kl_status fail(const kl_archive *a, int rc, kl_err *err)
{
    const char *said = a->db ? sqlite3_errmsg(a->db) : sqlite3_errstr(rc);
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return kl_fail(
            err, KL_EIO, "%s: another process uses it; give each server its own directory", a->path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return kl_fail(err, KL_EIO,
            "%s: the file is damaged (%s): nothing was changed; restore a copy, or move the file away to "
            "start empty",
            a->path, said);
    case SQLITE_FULL:
        return kl_fail(err, KL_EIO, "%s: no space is left on the disk; make room and try again", a->path);
    case SQLITE_IOERR: {
        int error = a->db ? sqlite3_system_errno(a->db) : 0;
        return kl_fail(err, KL_EIO, "%s: %s%s%s; make room, or look at the disk, and try again", a->path,
            said, error ? ": " : "", error ? strerror(error) : "");
    }
    default: return kl_fail(err, KL_EIO, "%s: %s", a->path, said);
    }
}

static kl_status run(const kl_archive *a, const char *sql, kl_err *err)
{
    int rc = sqlite3_exec(a->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? KL_OK : fail(a, rc, err);
}

static kl_status prepare(const kl_archive *a, const char *sql, sqlite3_stmt **out, kl_err *err)
{
    int rc = sqlite3_prepare_v2(a->db, sql, -1, out, NULL);
    return rc == SQLITE_OK ? KL_OK : fail(a, rc, err);
}

/* The first column of the first row, as a number and as a text (caller frees). */
static kl_status ask(const kl_archive *a, const char *sql, int64_t *number, char **text, kl_err *err)
{
    sqlite3_stmt *s = NULL;
    kl_status st = prepare(a, sql, &s, err);
    if (st)
        return st;
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        const char *t = (const char *)sqlite3_column_text(s, 0);
        if (number)
            *number = sqlite3_column_int64(s, 0);
        if (text)
            *text = kl_strdup(t ? t : "");
    } else
        st = fail(a, rc, err);
    sqlite3_finalize(s);
    return st;
}

#define OBJECTS                                                                                              \
    "objects (grp TEXT NOT NULL, plural TEXT NOT NULL, key TEXT NOT NULL,"                                   \
    " rv INTEGER NOT NULL, object TEXT NOT NULL, PRIMARY KEY (grp, plural, key)) WITHOUT ROWID"
#define RESOURCES                                                                                            \
    "resources (grp TEXT NOT NULL, plural TEXT NOT NULL, rv INTEGER NOT NULL,"                               \
    " PRIMARY KEY (grp, plural)) WITHOUT ROWID"

/* Checks that the file is ours and undamaged. An empty file becomes ours. A view or a trigger of somebody
 * else would run when it is read or written. */
static kl_status check_file(const kl_archive *a, kl_err *err)
{
    int64_t application = 0, format = 0, tables = 0, foreign = 0;
    char *verdict = NULL;
    kl_status st = ask(a, "PRAGMA application_id", &application, NULL, err);
    if (!st)
        st = ask(a, "PRAGMA user_version", &format, NULL, err);
    if (!st)
        st = ask(a, "SELECT count(*) FROM sqlite_master", &tables, NULL, err);
    if (!st)
        st = ask(a,
            "SELECT count(*) FROM sqlite_master WHERE sql NOT IN ('CREATE TABLE " OBJECTS
            "', 'CREATE TABLE " RESOURCES "')",
            &foreign, NULL, err);
    if (st || (!application && !tables))
        return st;
    if (application != APPLICATION || format != FORMAT || foreign)
        return kl_fail(err, KL_EIO,
            "%s: the file has another format than this version writes (application %lld, format %lld): give "
            "--data another directory",
            a->path, (long long)application, (long long)format);
    st = ask(a, "PRAGMA quick_check(1)", NULL, &verdict, err);
    if (!st && strcmp(verdict, "ok"))
        st = kl_fail(err, KL_EIO,
            "%s: the file is damaged (%s): nothing was changed; restore a copy, or move the file away to "
            "start empty",
            a->path, verdict);
    kl_free(verdict);
    return st;
}

static kl_status begin_file(const kl_archive *a, kl_err *err)
{
    char *marks = kl_sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION, FORMAT);
    kl_status st = run(a,
        "BEGIN IMMEDIATE;"
        "CREATE TABLE IF NOT EXISTS " OBJECTS ";"
        "CREATE TABLE IF NOT EXISTS " RESOURCES ";",
        err);
    if (!st)
        st = run(a, marks, err);
    if (!st)
        st = run(a, "COMMIT", err);
    kl_free(marks);
    return st;
}

static kl_status foreign(const char *path, kl_err *err)
{
    return kl_fail(err, KL_EIO,
        "%s belongs to another user, or is not a regular file: give --data a directory that only this user "
        "writes to",
        path);
}

static bool is_ours(uid_t uid) { return uid == geteuid() || !uid; }

/* SQLite opens these files by name. */
static kl_status check_beside(const kl_archive *a, kl_err *err)
{
    static const char *const endings[] = {"-wal", "-journal", "-shm"};
    kl_status st = KL_OK;
    for (size_t i = 0; i < sizeof endings / sizeof *endings && !st; i++) {
        char *path = kl_sprintf("%s%s", a->path, endings[i]);
        struct stat s;
        if (!lstat(path, &s) && (!S_ISREG(s.st_mode) || !is_ours(s.st_uid)))
            st = foreign(path, err);
        kl_free(path);
    }
    return st;
}

/* Makes the file readable by its owner only; SQLite's other files inherit the mode. */
static kl_status make_file(const kl_archive *a, kl_err *err)
{
    struct stat s;
    int fd = open(a->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return kl_fail(err, KL_EIO, "%s: cannot be opened: %s", a->path, strerror(errno));
    kl_status st = KL_OK;
    if (fstat(fd, &s) || !S_ISREG(s.st_mode) || !is_ours(s.st_uid))
        st = foreign(a->path, err);
    else if (fchmod(fd, 0600) || fsync(fd))
        st = kl_fail(err, KL_EIO, "%s: %s", a->path, strerror(errno));
    close(fd);
    return st;
}

/* Volumes of a pod are root's; root takes the directory that it is given, as in a container. */
static kl_status make_place(const kl_archive *a, const char *dir, kl_err *err)
{
    struct stat s;
    if (mkdir(dir, 0700) && errno != EEXIST)
        return kl_fail(err, KL_EIO, "%s: the directory cannot be made: %s", dir, strerror(errno));
    int place = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place < 0)
        return kl_fail(err, KL_EIO, "%s: %s", dir, strerror(errno));
    kl_status st = fstat(place, &s) || (geteuid() && !is_ours(s.st_uid)) ? foreign(dir, err) : KL_OK;
    if (!st)
        st = check_beside(a, err);
    if (!st)
        st = make_file(a, err);
    if (!st && fsync(place))
        st = kl_fail(err, KL_EIO, "%s: %s", dir, strerror(errno));
    close(place);
    return st;
}

static kl_status open_file(kl_archive *a, const char *dir, kl_err *err)
{
    kl_status st = make_place(a, dir, err);
    if (st)
        return st;
    int rc = sqlite3_open_v2(a->path, &a->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK)
        return fail(a, rc, err);
    st = run(a, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL", err);
    if (!st)
        st = check_file(a, err);
    if (!st)
        st = begin_file(a, err);
    if (!st)
        st = prepare(a, "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", &a->put, err);
    if (!st)
        st = prepare(a, "DELETE FROM objects WHERE grp = ? AND plural = ? AND key = ?", &a->cut, err);
    if (!st)
        st = prepare(a, "INSERT OR REPLACE INTO resources VALUES (?, ?, ?)", &a->touch, err);
    int64_t rv = 0;
    if (!st)
        st = ask(a, "SELECT coalesce(max(rv), 0) FROM resources", &rv, NULL, err);
    a->rv = (uint64_t)rv;
    return st;
}

uint64_t kl_archive_rv(const kl_archive *a) { return a->rv; }

/* ------------------------------------------------------------------ what is there */

static const char *column(sqlite3_stmt *s, int i)
{
    const char *t = (const char *)sqlite3_column_text(s, i);
    return t ? t : "";
}

static kl_status row(const kl_archive *a, sqlite3_stmt *s,
    kl_status (*fn)(void *, const kl_archive_item *, kl_err *), void *arg, kl_err *err)
{
    const kl_value *object = NULL;
    const char *text = column(s, 4);
    kl_status st = kl_value_decode(text, (size_t)sqlite3_column_bytes(s, 4), &object, err);
    if (st) {
        kl_err_prefix(err, "%s: %s %s is damaged", a->path, column(s, 1), column(s, 2));
        return st;
    }
    st = fn(arg,
        &(kl_archive_item){.group = column(s, 0),
            .plural = column(s, 1),
            .key = column(s, 2),
            .rv = (uint64_t)sqlite3_column_int64(s, 3),
            .now = object},
        err);
    kl_value_unref(object);
    return st;
}

kl_status kl_archive_each(kl_archive *a, kl_status (*fn)(void *arg, const kl_archive_item *item, kl_err *err),
    void *arg, kl_err *err)
{
    sqlite3_stmt *s = NULL;
    kl_status st = prepare(a,
        "SELECT grp, plural, key, rv, object FROM objects"
        " ORDER BY plural <> 'customresourcedefinitions', grp, plural, key",
        &s, err);
    int rc = SQLITE_DONE;
    while (!st && (rc = sqlite3_step(s)) == SQLITE_ROW)
        st = row(a, s, fn, arg, err);
    if (!st && rc != SQLITE_DONE)
        st = fail(a, rc, err);
    sqlite3_finalize(s);
    return st;
}

kl_status kl_archive_resources(
    kl_archive *a, void (*fn)(void *arg, const kl_archive_item *item), void *arg, kl_err *err)
{
    sqlite3_stmt *s = NULL;
    kl_status st = prepare(a, "SELECT grp, plural, rv FROM resources", &s, err);
    int rc = SQLITE_DONE;
    while (!st && (rc = sqlite3_step(s)) == SQLITE_ROW)
        fn(arg,
            &(kl_archive_item){
                .group = column(s, 0), .plural = column(s, 1), .rv = (uint64_t)sqlite3_column_int64(s, 2)});
    if (!st && rc != SQLITE_DONE)
        st = fail(a, rc, err);
    sqlite3_finalize(s);
    return st;
}

/* ------------------------------------------------------------------ writing */

static int step(sqlite3_stmt *s)
{
    int rc = sqlite3_step(s);
    sqlite3_reset(s);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int write_change(kl_archive *a, const change *c, kl_buf *text)
{
    sqlite3_stmt *s = c->now ? a->put : a->cut;
    sqlite3_bind_text(s, 1, c->group, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, c->plural, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 3, c->key, -1, SQLITE_STATIC);
    if (c->now) {
        kl_buf_clear(text);
        if (kl_value_encode_exact(c->now, text))
            return SQLITE_TOOBIG;
        sqlite3_bind_int64(s, 4, (sqlite3_int64)c->rv);
        sqlite3_bind_text64(s, 5, text->data, text->len, SQLITE_STATIC, SQLITE_UTF8);
    }
    int rc = step(s);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_bind_text(a->touch, 1, c->group, -1, SQLITE_STATIC);
    sqlite3_bind_text(a->touch, 2, c->plural, -1, SQLITE_STATIC);
    sqlite3_bind_int64(a->touch, 3, (sqlite3_int64)c->rv);
    return step(a->touch);
}

static kl_status write_batch(kl_archive *a, const change *first, kl_buf *text, kl_err *err)
{
    int rc = sqlite3_exec(a->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    for (const change *c = first; c && rc == SQLITE_OK; c = c->next)
        rc = write_change(a, c, text);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(a->db, "COMMIT", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return KL_OK;
    kl_status st = fail(a, rc, err);
    if (!sqlite3_get_autocommit(a->db))
        sqlite3_exec(a->db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

static void free_changes(change *c)
{
    for (change *next; c; c = next) {
        next = c->next;
        kl_value_unref(c->old);
        kl_value_unref(c->now);
        kl_free(c->group);
        kl_free(c->plural);
        kl_free(c->key);
        kl_free(c);
    }
}

/* Removes the waiters for changes up to `number` from the list. */
static waiter *ready_locked(kl_archive *a, uint64_t number) KL_REQUIRES(a->mu)
{
    waiter *ready = NULL;
    for (waiter **p = &a->waiters; *p;) {
        waiter *w = *p;
        if (w->number > number) {
            p = &w->next;
            continue;
        }
        *p = w->next;
        w->next = ready;
        ready = w;
    }
    return ready;
}

static void tell(waiter *w, const char *failure)
{
    for (waiter *next; w; w = next) {
        next = w->next;
        w->done(w->arg, failure);
        kl_free(w);
    }
}

/* Writes one batch; the caller does not hold the lock. */
static void write_all(kl_archive *a, change *batch, uint64_t last, kl_buf *text)
{
    kl_err err = KL_ERR_INIT;
    waiter *ready = NULL;
    if (!write_batch(a, batch, text, &err)) {
        free_changes(batch);
        kl_lock(&a->mu);
        a->over = last;
        ready = ready_locked(a, last);
        kl_unlock(&a->mu);
        tell(ready, NULL);
        return;
    }
    kl_error("changes could not be saved and were undone", "error=%s", kl_log_quoted(kl_err_message(&err)));
    kl_lock(&a->mu);
    kl_free(a->why);
    a->why = kl_strdup(kl_err_message(&err));
    a->batch = batch;
    kl_unlock(&a->mu);
    kl_err_fini(&err);
    a->failed(a->arg);
}

static void work(void *arg)
{
    kl_archive *a = arg;
    kl_buf text = KL_BUF_INIT;
    kl_lock(&a->mu);
    for (;;) {
        while (!a->queue && !a->stopping)
            kl_cond_wait(&a->news, &a->mu);
        if (!a->queue)
            break;
        change *batch = a->queue;
        uint64_t last = a->added;
        a->queue = NULL;
        a->tail = &a->queue;
        kl_unlock(&a->mu);
        write_all(a, batch, last, &text);
        kl_lock(&a->mu);
    }
    kl_unlock(&a->mu);
    kl_buf_fini(&text);
}

void kl_archive_add(kl_archive *a, const kl_archive_item *item)
{
    change *c = kl_new(change);
    *c = (change){.rv = item->rv,
        .group = kl_strdup(item->group),
        .plural = kl_strdup(item->plural),
        .key = kl_strdup(item->key),
        .old = kl_value_ref(item->old),
        .now = kl_value_ref(item->now)};
    kl_lock(&a->mu);
    c->number = ++a->added;
    *a->tail = c;
    a->tail = &c->next;
    kl_cond_signal(&a->news);
    kl_unlock(&a->mu);
}

bool kl_archive_when(kl_archive *a, kl_archive_done *done, void *arg)
{
    kl_lock(&a->mu);
    bool there = a->over == a->added;
    if (!there) {
        waiter *w = kl_new(waiter);
        *w = (waiter){.next = a->waiters, .number = a->added, .done = done, .arg = arg};
        a->waiters = w;
    }
    kl_unlock(&a->mu);
    return there;
}

void kl_archive_take_lost(kl_archive *a, kl_archive_lost *out)
{
    *out = (kl_archive_lost){0};
    kl_lock(&a->mu);
    change *all = a->batch, **end = &all;
    for (; *end; end = &(*end)->next)
        out->n++;
    *end = a->queue;
    for (const change *c = a->queue; c; c = c->next)
        out->n++;
    a->batch = a->queue = NULL;
    a->tail = &a->queue;
    a->over = a->added;
    kl_unlock(&a->mu);
    out->hold = all;
    out->v = kl_new_array(kl_archive_item, out->n + 1);
    size_t i = 0;
    for (const change *c = all; c; c = c->next)
        out->v[i++] = (kl_archive_item){c->group, c->plural, c->key, c->rv, c->old, c->now};
}

void kl_archive_free_lost(kl_archive *a, kl_archive_lost *lost)
{
    uint64_t last = 0;
    for (const change *c = lost->hold; c; c = c->next)
        last = c->number;
    kl_lock(&a->mu);
    waiter *ready = ready_locked(a, last);
    char *why = kl_strdup(a->why ? a->why : "");
    kl_unlock(&a->mu);
    tell(ready, why);
    kl_free(why);
    free_changes(lost->hold);
    kl_free(lost->v);
    *lost = (kl_archive_lost){0};
}

typedef struct settling {
    kl_mutex mu;
    kl_cond over;
    bool is_over;
    char *failure;
} settling;

static void settled(void *arg, const char *failure)
{
    settling *w = arg;
    kl_lock(&w->mu);
    w->failure = failure ? kl_strdup(failure) : NULL;
    w->is_over = true;
    kl_cond_signal(&w->over);
    kl_unlock(&w->mu);
}

kl_status kl_archive_settle(kl_archive *a, kl_err *err)
{
    settling w = {.is_over = false};
    kl_status st = KL_OK;
    kl_mutex_init(&w.mu);
    kl_cond_init(&w.over);
    if (!kl_archive_when(a, settled, &w)) {
        kl_lock(&w.mu);
        while (!w.is_over)
            kl_cond_wait(&w.over, &w.mu);
        kl_unlock(&w.mu);
        if (w.failure)
            st = kl_fail(err, KL_EIO, "%s", w.failure);
        kl_free(w.failure);
    }
    kl_cond_fini(&w.over);
    kl_mutex_fini(&w.mu);
    return st;
}

/* ------------------------------------------------------------------ begin and end */

static void archive_free(kl_archive *a)
{
    sqlite3_finalize(a->put);
    sqlite3_finalize(a->cut);
    sqlite3_finalize(a->touch);
    sqlite3_close(a->db);
    free_changes(a->queue);
    free_changes(a->batch);
    kl_cond_fini(&a->news);
    kl_mutex_fini(&a->mu);
    kl_free(a->path);
    kl_free(a->why);
    kl_free(a);
}

kl_status kl_archive_open(const kl_archive_options *o, kl_archive **out, kl_err *err)
{
    kl_archive *a = kl_new(kl_archive);
    a->path = kl_sprintf("%s/%s", o->dir, FILE_NAME);
    a->failed = o->failed;
    a->arg = o->arg;
    a->tail = &a->queue;
    kl_mutex_init(&a->mu);
    kl_cond_init(&a->news);
    /* a file size limit must be an error of a write, not the end of the process */
    signal(SIGXFSZ, SIG_IGN);
    kl_status st = open_file(a, o->dir, err);
    if (st) {
        archive_free(a);
        return st;
    }
    a->thread = kl_thread_start("kl-archive", work, a);
    *out = a;
    return KL_OK;
}

void kl_archive_close(kl_archive *a)
{
    if (!a)
        return;
    kl_lock(&a->mu);
    a->stopping = true;
    kl_cond_signal(&a->news);
    kl_unlock(&a->mu);
    kl_thread_join(a->thread);
    archive_free(a);
}
