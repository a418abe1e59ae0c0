/* archive_test.c - objects on disk: they are there after the next start, unwritten ones are returned in
 * order, and a foreign file is rejected. */
#include "support/json.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/buf.h"
#include "base/locks.h"
#include "base/sync.h"

typedef struct room {
    char dir[64];
    kl_archive *a;
    kl_mutex mu; /* stands for the owner's lock */
    kl_cond changed;
    size_t lost, told; /* changes given back; waiters that heard of a failure */
    char *order;       /* keys that were given back, first to last */
    char *why;
    bool calm; /* a waiter heard that all is well */
} room;

static void failed(void *arg)
{
    room *r = arg;
    kl_archive_lost lost;
    kl_buf keys = KL_BUF_INIT;
    kl_lock(&r->mu);
    kl_archive_take_lost(r->a, &lost);
    for (size_t i = 0; i < lost.n; i++)
        kl_buf_printf(&keys, "%s%s", i ? " " : "", lost.v[i].key);
    r->lost += lost.n;
    kl_free(r->order);
    r->order = kl_strdup(kl_buf_str(&keys));
    kl_unlock(&r->mu);
    kl_buf_fini(&keys);
    kl_archive_free_lost(r->a, &lost);
}

static void heard(void *arg, const char *failure)
{
    room *r = arg;
    kl_lock(&r->mu);
    if (failure) {
        kl_free(r->why);
        r->why = kl_strdup(failure);
        r->told++;
    } else {
        r->calm = true;
    }
    kl_cond_signal(&r->changed);
    kl_unlock(&r->mu);
}

static kl_status try_open(room *r, kl_err *err)
{
    return kl_archive_open(&(kl_archive_options){.dir = r->dir, .failed = failed, .arg = r}, &r->a, err);
}

static void room_enter(room *r)
{
    kl_err err = KL_ERR_INIT;
    assert_ok(try_open(r, &err), &err);
}

static void room_open(room *r)
{
    *r = (room){.lost = 0};
    kl_mutex_init_as(&r->mu, KL_LOCK_SERVER);
    kl_cond_init(&r->changed);
    snprintf(r->dir, sizeof r->dir, "/tmp/kl-archive-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
}

static void room_close(room *r)
{
    char command[128];
    kl_archive_close(r->a);
    kl_cond_fini(&r->changed);
    kl_mutex_fini(&r->mu);
    kl_free(r->order);
    kl_free(r->why);
    snprintf(command, sizeof command, "rm -rf %s", r->dir);
    assert_int_equal(system(command), 0);
}

static void put(room *r, const char *plural, const char *key, uint64_t rv, const char *text)
{
    const kl_value *v = text ? json(text) : NULL;
    kl_archive_add(r->a,
        &(kl_archive_item){
            .group = !strcmp(plural, "pods") ? "" : "g", .plural = plural, .key = key, .rv = rv, .now = v});
    kl_value_unref(v);
}

static void settle(room *r)
{
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_archive_settle(r->a, &err), &err);
}

static kl_status note(void *arg, const kl_archive_item *item, kl_err *err)
{
    (void)err;
    kl_buf_printf(arg, "%s/%s@%d=", item->plural, item->key, (int)item->rv);
    assert_int_equal(kl_value_encode_exact(item->now, arg), KL_OK);
    kl_buf_putc(arg, '\n');
    return KL_OK;
}

static void assert_holds(room *r, const char *want)
{
    kl_err err = KL_ERR_INIT;
    kl_buf all = KL_BUF_INIT;
    assert_ok(kl_archive_each(r->a, note, &all, &err), &err);
    assert_string_equal(all.len ? kl_buf_str(&all) : "", want);
    kl_buf_fini(&all);
}

static void reopen(room *r)
{
    kl_archive_close(r->a);
    r->a = NULL;
    room_enter(r);
}

static void objects_are_restored_definitions_first(void **state)
{
    (void)state;
    room r;
    room_open(&r);
    room_enter(&r);
    assert_int_equal(kl_archive_rv(r.a), 0);
    put(&r, "pods", "a/two", 7, "{'x':2}");
    put(&r, "pods", "a/one", 5, "{'x':1.0}");
    put(&r, "customresourcedefinitions", "w", 6, "{'d':true}");
    put(&r, "pods", "a/two", 9, "{'x':'\\u0000\\u00e9'}");
    put(&r, "pods", "a/gone", 8, "{}");
    put(&r, "pods", "a/gone", 10, NULL);
    settle(&r);
    assert_true(kl_archive_when(r.a, heard, &r)); /* nothing to wait for */
    reopen(&r);
    assert_int_equal(kl_archive_rv(r.a), 10);
    assert_holds(&r,
        "customresourcedefinitions/w@6={\"d\":true}\npods/a/one@5={\"x\":1.0}\n"
        "pods/a/two@9={\"x\":\"\\u0000\xc3\xa9\"}\n");
    room_close(&r);
}

static void latest(void *arg, const kl_archive_item *item)
{
    kl_buf_printf(arg, "%s:%d ", item->plural, (int)item->rv);
}

static void each_resource_has_its_latest_version_deletions_too(void **state)
{
    (void)state;
    room r;
    kl_err err = KL_ERR_INIT;
    kl_buf all = KL_BUF_INIT;
    room_open(&r);
    room_enter(&r);
    put(&r, "pods", "a", 3, "{}");
    put(&r, "pods", "a", 4, NULL);
    put(&r, "things", "b", 2, "{}");
    reopen(&r); /* closing writes what is queued */
    assert_ok(kl_archive_resources(r.a, latest, &all, &err), &err);
    assert_string_equal(kl_buf_str(&all), "pods:4 things:2 ");
    kl_buf_fini(&all);
    room_close(&r);
}

static kl_status refuse(void *arg, const kl_archive_item *item, kl_err *err)
{
    (void)item;
    ++*(int *)arg;
    return kl_fail(err, KL_EINVAL, "enough");
}

static void a_failing_reader_ends_the_reading(void **state)
{
    (void)state;
    room r;
    int asked = 0;
    kl_err err = KL_ERR_INIT;
    room_open(&r);
    room_enter(&r);
    put(&r, "pods", "a", 1, "{}");
    put(&r, "pods", "b", 2, "{}");
    reopen(&r);
    assert_fails(kl_archive_each(r.a, refuse, &asked, &err), KL_EINVAL, &err, "enough");
    assert_int_equal(asked, 1);
    room_close(&r);
}

static void a_directory_belongs_to_one_process_at_a_time(void **state)
{
    (void)state;
    room r, other;
    kl_err err = KL_ERR_INIT;
    room_open(&r);
    room_enter(&r);
    room_open(&other);
    assert_int_equal(rmdir(other.dir), 0);
    memcpy(other.dir, r.dir, sizeof r.dir);
    assert_fails(try_open(&other, &err), KL_EIO, &err, "another process uses it");
    assert_null(other.a);
    kl_cond_fini(&other.changed);
    kl_mutex_fini(&other.mu);
    room_close(&r);
}

static void write_file(const room *r, const char *text)
{
    char *path = kl_sprintf("%s/objects.db", r->dir);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(fwrite(text, 1, strlen(text), f) == strlen(text));
    assert_int_equal(fclose(f), 0);
    kl_free(path);
}

static void a_file_that_is_not_a_database_is_unchanged(void **state)
{
    (void)state;
    static const char text[] =
        "this is a letter, and long enough to be mistaken for the head of a database file:"
        " a hundred bytes and more of it";
    room r;
    kl_err err = KL_ERR_INIT;
    struct stat st;
    room_open(&r);
    write_file(&r, text);
    assert_fails(try_open(&r, &err), KL_EIO, &err, "the file is damaged");
    char *path = kl_sprintf("%s/objects.db", r.dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, sizeof text - 1);
    kl_free(path);
    room_close(&r);
}

/* What somebody else may have put into a directory where others may write. */
static void a_prepared_directory_is_refused(void **state)
{
    (void)state;
    room r;
    kl_err err = KL_ERR_INIT;
    room_open(&r);
    char *file = kl_sprintf("%s/objects.db", r.dir), *log = kl_sprintf("%s-wal", file);
    assert_int_equal(mkfifo(file, 0666), 0);
    assert_fails(try_open(&r, &err), KL_EIO, &err, "not a regular file");
    assert_int_equal(unlink(file) | mkdir(file, 0700), 0);
    assert_fails(try_open(&r, &err), KL_EIO, &err, "cannot be opened");
    assert_int_equal(rmdir(file) | symlink("/dev/null", file), 0);
    assert_fails(try_open(&r, &err), KL_EIO, &err, "cannot be opened");
    assert_int_equal(unlink(file) | symlink("/tmp/somewhere", log), 0);
    assert_fails(
        try_open(&r, &err), KL_EIO, &err, "objects.db-wal belongs to another user, or is not a regular file");
    assert_int_equal(access(file, F_OK), -1); /* nothing was made */
    assert_int_equal(unlink(log), 0);
    if (!geteuid()) {
        assert_int_equal(seteuid(1234), 0);
        assert_int_equal(chmod(r.dir, 0777), -1);
        assert_int_equal(seteuid(0) | chmod(r.dir, 0777) | chown(r.dir, 1235, 1235) | seteuid(1234), 0);
        kl_status st = try_open(&r, &err);
        assert_int_equal(seteuid(0), 0);
        assert_fails(st, KL_EIO, &err, "give --data a directory that only this user writes to");
        write_file(&r, "");
        assert_int_equal(chown(file, 1235, 1235), 0);
        assert_fails(try_open(&r, &err), KL_EIO, &err, "objects.db belongs to another user");
    }
    kl_free(file);
    kl_free(log);
    room_close(&r);
}

static void the_files_are_for_the_owner_alone(void **state)
{
    (void)state;
    room r;
    struct stat st;
    room_open(&r);
    room_enter(&r);
    put(&r, "pods", "a", 1, "{}");
    settle(&r);
    static const char *const names[] = {"objects.db", "objects.db-wal"};
    for (size_t i = 0; i < 2; i++) {
        char *path = kl_sprintf("%s/%s", r.dir, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        kl_free(path);
    }
    room_close(&r);
}

/* A limit of the size of files stands for a disk that is full. */
static void failed_writes_are_returned_in_order_and_logged(void **state)
{
    (void)state;
    room r;
    struct rlimit old, small;
    kl_err err = KL_ERR_INIT;
    room_open(&r);
    room_enter(&r);
    put(&r, "pods", "kept", 1, "{}");
    settle(&r);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 1;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    kl_lock(&r.mu); /* as the owner has it: what fails is given back when we let go of it */
    put(&r, "pods", "first", 2, "{}");
    put(&r, "pods", "second", 3, "{}");
    bool there = kl_archive_when(r.a, heard, &r);
    kl_unlock(&r.mu);
    assert_false(there);
    kl_lock(&r.mu);
    while (!r.told && !r.calm)
        kl_cond_wait(&r.changed, &r.mu);
    kl_unlock(&r.mu);
    assert_false(r.calm);
    assert_int_equal(r.lost, 2);
    assert_string_equal(r.order, "first second");
    assert_non_null(strstr(r.why, r.dir));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    put(&r, "pods", "third", 4, "{}"); /* it goes on */
    assert_ok(kl_archive_settle(r.a, &err), &err);
    reopen(&r);
    assert_holds(&r, "pods/kept@1={}\npods/third@4={}\n");
    room_close(&r);
}

KL_TESTS(cmocka_unit_test(objects_are_restored_definitions_first),
    cmocka_unit_test(each_resource_has_its_latest_version_deletions_too),
    cmocka_unit_test(a_failing_reader_ends_the_reading),
    cmocka_unit_test(a_directory_belongs_to_one_process_at_a_time),
    cmocka_unit_test(a_file_that_is_not_a_database_is_unchanged),
    cmocka_unit_test(a_prepared_directory_is_refused), cmocka_unit_test(the_files_are_for_the_owner_alone),
    cmocka_unit_test(failed_writes_are_returned_in_order_and_logged))
