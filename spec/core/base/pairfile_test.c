/* pairfile_test.c - pairs on disk: whole, private, replaced at once, and whole again after a crash. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/pairfile.h"

static char dir[64];

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/kl-pair-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    char *command = kl_sprintf("rm -rf %s", dir);
    int rc = system(command);
    kl_free(command);
    return rc;
}

static void assert_current(const char *where, const char *want)
{
    char *text;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_pairfile_read(where, "node", &text, &err), &err);
    assert_string_equal(text, want);
    kl_free(text);
}

static size_t count_files(const char *where)
{
    char *command = kl_sprintf("ls -A %s | wc -l", where);
    FILE *f = popen(command, "r");
    size_t n = 0;
    assert_int_equal(fscanf(f, "%zu", &n), 1);
    pclose(f);
    kl_free(command);
    return n;
}

#define NOON (KL_SECONDS(1) * 1767268800) /* 2026-01-01T12:00:00Z */

static void a_pair_is_private_and_the_next_takes_its_place(void **state)
{
    (void)state;
    char *deep = kl_sprintf("%s/a/b", dir), *text = NULL;
    kl_err err = KL_ERR_INIT;
    assert_int_equal(kl_pairfile_read(deep, "node", &text, &err), KL_ENOTFOUND);
    kl_err_fini(&err);
    assert_ok(kl_pairfile_write(deep, "node", "first\n", NOON, &err), &err);
    assert_current(deep, "first\n");
    char *file = kl_sprintf("%s/node-2026-01-01-12-00-00.pem", deep);
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    char *current = kl_pairfile_path(deep, "node");
    assert_int_equal(lstat(current, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    /* Within the same second; the one before goes. */
    assert_ok(kl_pairfile_write(deep, "node", "second\n", NOON, &err), &err);
    assert_current(deep, "second\n");
    assert_int_not_equal(stat(file, &st), 0);
    assert_ok(kl_pairfile_write(deep, "node", "third\n", NOON + KL_SECONDS(5), &err), &err);
    assert_current(deep, "third\n");
    assert_int_equal(count_files(deep), 2);
    kl_free(current);
    kl_free(file);
    kl_free(deep);
}

static void a_move_that_was_cut_short_is_ended(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_pairfile_write(dir, "node", "whole\n", NOON, &err), &err);
    char *current = kl_pairfile_path(dir, "node"), *updated = kl_sprintf("%s/node-updated.pem", dir);
    assert_int_equal(rename(current, updated), 0);
    assert_current(dir, "whole\n");
    /* One that stands in the way of the next is of no use. */
    assert_int_equal(symlink("nowhere", updated), 0);
    assert_ok(kl_pairfile_write(dir, "node", "next\n", NOON + KL_SECONDS(1), &err), &err);
    assert_current(dir, "next\n");
    kl_free(current);
    kl_free(updated);
}

static void foreign_files_are_left_alone_and_named(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    char *current = kl_pairfile_path(dir, "node"), *text = NULL;
    FILE *f = fopen(current, "w");
    fputs("somebody's\n", f);
    fclose(f);
    assert_int_equal(kl_pairfile_write(dir, "node", "new\n", NOON, &err), KL_EEXISTS);
    assert_non_null(strstr(kl_err_message(&err), current));
    kl_err_fini(&err);
    assert_current(dir, "somebody's\n");
    assert_int_equal(count_files(dir), 1);
    /* A link to a file elsewhere: the link moves, the file stays. */
    assert_int_equal(remove(current), 0);
    char *other = kl_sprintf("%s/other.pem", dir);
    f = fopen(other, "w");
    fputs("other\n", f);
    fclose(f);
    assert_int_equal(symlink("other.pem", current), 0);
    assert_ok(kl_pairfile_write(dir, "node", "new\n", NOON, &err), &err);
    assert_current(dir, "new\n");
    assert_int_equal(access(other, R_OK), 0);
    assert_int_equal(kl_pairfile_write("/dev/null/x", "node", "new\n", NOON, &err), KL_EIO);
    assert_non_null(strstr(kl_err_message(&err), "/dev/null"));
    kl_err_fini(&err);
    assert_int_equal(kl_pairfile_read("/dev/null", "node", &text, &err), KL_EIO);
    kl_err_fini(&err);
    kl_free(other);
    kl_free(current);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pair_is_private_and_the_next_takes_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(a_move_that_was_cut_short_is_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(foreign_files_are_left_alone_and_named, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* not in tsan: it starts no thread */
