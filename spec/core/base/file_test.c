/* file_test.c - files and pipes, named by paths of a command line. */
#include "support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/sync.h"

typedef struct writer {
    int fd;
    size_t n;
} writer;

/* In pieces, and then it closes. */
static void write_all(void *arg)
{
    writer *w = arg;
    for (size_t i = 0; i < w->n; i++)
        assert_int_equal(write(w->fd, "x", 1), 1);
    close(w->fd);
}

static char *path_of(int fd) { return kl_sprintf("/dev/fd/%d", fd); }

static void a_pipe_that_is_given_is_read_to_its_end(void **state)
{
    (void)state;
    int fds[2];
    kl_buf b = KL_BUF_INIT;
    kl_err err = KL_ERR_INIT;
    assert_int_equal(pipe(fds), 0);
    writer w = {fds[1], 100000};
    kl_thread *t = kl_thread_start("writer", write_all, &w);
    char *path = path_of(fds[0]);
    assert_ok(kl_file_read_given(path, "a text", &b, &err), &err);
    assert_int_equal(b.len, 100000);
    kl_thread_join(t);
    assert_fails(kl_file_read(path, "a text", &b, &err), KL_EINVAL, &err, "is a FIFO, not a regular file");
    kl_free(path);
    close(fds[0]);
    kl_buf_fini(&b);
    kl_err_fini(&err);
}

static kl_status read_pipe(size_t n, size_t max, kl_err *err)
{
    int fds[2];
    kl_buf b;
    assert_int_equal(pipe(fds), 0);
    writer w = {fds[1], n};
    write_all(&w);
    char *path = path_of(fds[0]);
    kl_buf_init(&b, max);
    kl_status st = kl_file_read_given(path, "a text", &b, err);
    kl_free(path);
    close(fds[0]);
    kl_buf_fini(&b);
    return st;
}

static void a_small_ceiling_is_one(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    assert_ok(read_pipe(1000, 1000, &err), &err);
    assert_fails(read_pipe(1001, 1000, &err), KL_ETOOBIG, &err, "a text may have at most 1000 bytes");
    kl_err_fini(&err);
}

static void devices_and_directories_are_refused(void **state)
{
    (void)state;
    kl_buf b = KL_BUF_INIT;
    kl_err err = KL_ERR_INIT;
    const char *no = "not a regular file";
    assert_fails(kl_file_read_given("/dev/zero", "a text", &b, &err), KL_EINVAL, &err, no);
    char dir[] = "/tmp/kl-file-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *fifo = kl_sprintf("%s/fifo", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_fails(
        kl_file_read_given(fifo, "a text", &b, &err), KL_EINVAL, &err, "is a FIFO, not a regular file");
    assert_int_equal(unlink(fifo), 0);
    assert_int_equal(rmdir(dir), 0);
    kl_free(fifo);
    assert_fails(kl_file_read_given("/", "a text", &b, &err), KL_EINVAL, &err, no);
    assert_fails(
        kl_file_read_given("/nowhere/x", "a text", &b, &err), KL_ENOTFOUND, &err, "/nowhere/x: No such");
    kl_buf_fini(&b);
    kl_err_fini(&err);
}

static void a_file_comes_in_pieces(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_file *f = NULL;
    char path[] = "/tmp/kl-file-XXXXXX", piece[4];
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "abcdefghij", 10), 10);
    close(fd);
    assert_ok(kl_file_open_given(path, &f, &err), &err);
    kl_buf b = KL_BUF_INIT;
    for (size_t n = 1; n;) {
        assert_ok(kl_file_next(f, piece, sizeof piece, &n, &err), &err);
        assert_true(n <= sizeof piece);
        kl_buf_add(&b, piece, n);
    }
    assert_string_equal(kl_buf_str(&b), "abcdefghij");
    kl_file_close(f);
    kl_file_close(NULL);
    assert_int_equal(unlink(path), 0);
    assert_fails(kl_file_open_given(path, &f, &err), KL_ENOTFOUND, &err, "No such");
    assert_fails(kl_file_open_given("/", &f, &err), KL_EINVAL, &err, "/ is a directory, not a regular file");
    kl_buf_fini(&b);
    kl_err_fini(&err);
}

static void a_fifo_comes_in_pieces_once_it_has_a_writer(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_file *f = NULL;
    char dir[] = "/tmp/kl-file-XXXXXX", piece[4];
    assert_non_null(mkdtemp(dir));
    char *fifo = kl_sprintf("%s/fifo", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_ok(kl_file_open_given(fifo, &f, &err), &err);
    pid_t writer = fork();
    if (!writer) {
        int fd = open(fifo, O_WRONLY);
        _exit(write(fd, "abcdef", 6) != 6);
    }
    kl_buf b = KL_BUF_INIT;
    for (size_t n = 1; n;) {
        assert_ok(kl_file_next(f, piece, sizeof piece, &n, &err), &err);
        kl_buf_add(&b, piece, n);
    }
    assert_string_equal(kl_buf_str(&b), "abcdef");
    int status;
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(status, 0);
    kl_file_close(f);
    kl_buf_fini(&b);
    kl_err_fini(&err);
    assert_int_equal(unlink(fifo), 0);
    assert_int_equal(rmdir(dir), 0);
    kl_free(fifo);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void a_secret_goes_into_a_private_file(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_buf b = KL_BUF_INIT;
    char dir[] = "/tmp/kl-file-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *path = kl_sprintf("%s/secret", dir), *link = kl_sprintf("%s/link", dir);
    int fd;
    assert_ok(kl_file_open_private(path, &fd, &err), &err);
    assert_int_equal(write(fd, "first and long", 14), 14);
    close(fd);
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(symlink("secret", link), 0); /* a link of ours is followed */
    assert_ok(kl_file_open_private(link, &fd, &err), &err);
    assert_int_equal(write(fd, "second", 6), 6);
    close(fd);
    assert_int_equal(mode_of(path), 0600);
    assert_ok(kl_file_read(path, "a text", &b, &err), &err);
    assert_string_equal(kl_buf_str(&b), "second");
    if (!geteuid()) {
        assert_int_equal(lchown(link, 1234, 1234), 0);
        assert_fails(kl_file_open_private(link, &fd, &err), KL_EFORBIDDEN, &err, "is a link of another user");
        assert_int_equal(chown(path, 1234, 1234), 0);
        assert_fails(kl_file_open_private(path, &fd, &err), KL_EFORBIDDEN, &err, "belongs to another user");
        kl_buf_clear(&b);
        assert_ok(kl_file_read(path, "a text", &b, &err), &err);
        assert_string_equal(kl_buf_str(&b), "second");
    }
    assert_ok(kl_file_open_private("/dev/null", &fd, &err), &err);
    close(fd);
    assert_fails(kl_file_open_private(dir, &fd, &err), KL_EIO, &err, "Is a directory");
    assert_int_equal(unlink(link) | unlink(path) | rmdir(dir), 0);
    kl_free(link);
    kl_free(path);
    kl_buf_fini(&b);
    kl_err_fini(&err);
}

static void a_log_is_appended_to_and_never_blocks(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_buf b = KL_BUF_INIT;
    char dir[] = "/tmp/kl-file-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *path = kl_sprintf("%s/log", dir), *fifo = kl_sprintf("%s/fifo", dir);
    int fd;
    for (int i = 0; i < 2; i++) {
        assert_ok(kl_file_open_log(path, &fd, &err), &err);
        assert_int_equal(write(fd, "line\n", 5), 5);
        close(fd);
    }
    assert_int_equal(mode_of(path), 0600);
    assert_ok(kl_file_read(path, "a text", &b, &err), &err);
    assert_string_equal(kl_buf_str(&b), "line\nline\n");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_fails(kl_file_open_log(fifo, &fd, &err), KL_EIO, &err, "is a socket, or a FIFO without a reader");
    assert_fails(
        kl_file_open_private(fifo, &fd, &err), KL_EIO, &err, "is a socket, or a FIFO without a reader");
    if (!geteuid()) {
        assert_int_equal(chown(path, 1234, 1234), 0);
        assert_fails(kl_file_open_log(path, &fd, &err), KL_EFORBIDDEN, &err, "belongs to another user");
    }
    assert_int_equal(unlink(path) | unlink(fifo) | rmdir(dir), 0);
    kl_free(fifo);
    kl_free(path);
    kl_buf_fini(&b);
}

KL_TESTS(cmocka_unit_test(a_secret_goes_into_a_private_file),
    cmocka_unit_test(a_log_is_appended_to_and_never_blocks),
    cmocka_unit_test(a_pipe_that_is_given_is_read_to_its_end), cmocka_unit_test(a_small_ceiling_is_one),
    cmocka_unit_test(devices_and_directories_are_refused), cmocka_unit_test(a_file_comes_in_pieces),
    cmocka_unit_test(a_fifo_comes_in_pieces_once_it_has_a_writer))
