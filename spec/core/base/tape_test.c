/* tape_test.c - lines go into files of bounded size, and the oldest files are deleted. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/tape.h"

typedef struct room {
    char dir[64];
    char *path;
} room;

static void room_open(room *r)
{
    snprintf(r->dir, sizeof r->dir, "/tmp/kl-tape-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    r->path = kl_sprintf("%s/tape", r->dir);
}

static void room_close(room *r)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", r->dir);
    kl_free(r->path);
    assert_int_equal(system(command), 0);
}

/* What FILE.n holds; "" when there is none. */
static char *content(const room *r, int n)
{
    char *name = n ? kl_sprintf("%s.%d", r->path, n) : kl_strdup(r->path);
    FILE *f = fopen(name, "rb");
    char *text = kl_zalloc_array(1, 8192);
    if (f) {
        assert_true(fread(text, 1, 8191, f) < 8191);
        fclose(f);
    }
    kl_free(name);
    return text;
}

static void assert_content(const room *r, int n, const char *want)
{
    char *text = content(r, n);
    assert_string_equal(text, want);
    kl_free(text);
}

static void add(kl_tape *t, const char *line) { kl_tape_add(t, line, strlen(line)); }

static kl_tape *begin(const room *r, size_t max)
{
    kl_tape *t = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_tape_new(r->path, max, NULL, &t, &err), &err);
    return t;
}

static void a_file_follows_another_and_four_are_kept(void **state)
{
    (void)state;
    room r;
    room_open(&r);
    kl_tape *t = begin(&r, 4 * 8);
    for (char c = 'a'; c < 'g'; c++) {
        char line[] = {c, '2', '3', '4', '5', '6', '7', '\n', '\0'};
        assert_false(kl_tape_full(t));
        add(t, line);
        assert_true(kl_tape_full(t));
        assert_int_equal(kl_tape_here(t), 8);
        if (c < 'f')
            kl_tape_next(t);
    }
    kl_tape_free(t);
    assert_content(&r, 0, "f234567\n");
    assert_content(&r, 1, "e234567\n");
    assert_content(&r, 3, "c234567\n");
    assert_content(&r, 4, "");
    room_close(&r);
}

static void existing_files_are_kept_and_private(void **state)
{
    (void)state;
    room r;
    struct stat s;
    room_open(&r);
    kl_tape *t = begin(&r, 1000);
    add(t, "old\n");
    kl_tape_free(t);
    t = begin(&r, 1000);
    add(t, "new\n");
    assert_content(&r, 0, "");
    kl_tape_flush(t);
    assert_content(&r, 0, "new\n");
    assert_content(&r, 1, "old\n");
    assert_int_equal(stat(r.path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    kl_tape_free(t);
    room_close(&r);
}

static int told;
static void on_log(void *arg, kl_log_level level, const char *message, const char *fields)
{
    (void)arg, (void)message;
    told += level == KL_LOG_ERROR && strstr(fields, "because");
}

static void an_end_is_reported_once_and_nothing_follows(void **state)
{
    (void)state;
    room r;
    room_open(&r);
    kl_tape *t = begin(&r, 1000);
    add(t, "one\n");
    kl_tape_flush(t);
    kl_log_set_sink(on_log, NULL);
    kl_tape_end(t, "because");
    kl_tape_end(t, "because");
    kl_log_set_sink(NULL, NULL);
    assert_int_equal(told, 1);
    assert_true(kl_tape_ended(t));
    add(t, "two\n");
    kl_tape_flush(t);
    kl_tape_next(t);
    kl_tape_free(t);
    assert_content(&r, 0, "one\n");
    assert_content(&r, 1, "");
    room_close(&r);
}

static void a_file_that_cannot_be_made_is_named(void **state)
{
    (void)state;
    kl_tape *t = NULL;
    kl_err err = KL_ERR_INIT;
    assert_fails(
        kl_tape_new("/nowhere/tape", 1000, NULL, &t, &err), KL_EIO, &err, "cannot write /nowhere/tape");
}

static void assert_left_alone(const room *r, const char *begins, const char *why)
{
    kl_tape *t = NULL;
    kl_err err = KL_ERR_INIT;
    assert_fails(kl_tape_new(r->path, 1000, begins, &t, &err), KL_EEXISTS, &err, why);
}

static void a_file_that_is_not_a_tape_is_left_alone(void **state)
{
    (void)state;
    room r;
    room_open(&r);
    assert_int_equal(mkdir(r.path, 0700), 0);
    assert_left_alone(&r, NULL, "/tape is a directory: name a file");
    assert_int_equal(rmdir(r.path), 0);
    assert_int_equal(symlink("/dev/null", r.path), 0);
    assert_left_alone(&r, NULL, "/tape is a symbolic link: name a file");
    assert_int_equal(unlink(r.path), 0);
    kl_tape *t = begin(&r, 1000);
    add(t, "return 7\n");
    kl_tape_free(t);
    assert_left_alone(&r, "{\"t\":", "/tape exists and is not a kubelua recording");
    assert_content(&r, 0, "return 7\n");
    char *last = kl_sprintf("%s.3", r.path);
    assert_int_equal(rename(r.path, last), 0);
    assert_left_alone(&r, "{\"t\":", "/tape.3 exists and is not a kubelua recording");
    kl_free(last);
    room_close(&r);
}

KL_TESTS(cmocka_unit_test(a_file_follows_another_and_four_are_kept),
    cmocka_unit_test(existing_files_are_kept_and_private),
    cmocka_unit_test(an_end_is_reported_once_and_nothing_follows),
    cmocka_unit_test(a_file_that_cannot_be_made_is_named),
    cmocka_unit_test(a_file_that_is_not_a_tape_is_left_alone))

/* not in tsan: it starts no thread */
