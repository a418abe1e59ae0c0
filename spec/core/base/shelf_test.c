/* shelf_test.c - an entry of a shelf is found again, complete or not at all. */
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/shelf.h"

#define NOW KL_SECONDS(1700000000)

typedef struct room {
    char dir[64];
    char *deep;
    kl_shelf *s;
} room;

static void room_open(room *r)
{
    snprintf(r->dir, sizeof r->dir, "/tmp/kl-shelf-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    r->deep = kl_sprintf("%s/a/b", r->dir);
    r->s = kl_shelf_new(r->deep);
}

static void room_close(room *r)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", r->dir);
    kl_shelf_free(r->s);
    kl_free(r->deep);
    assert_int_equal(system(command), 0);
}

static bool holds(room *r, const char *name, const char *tag, const char *text, kl_time age)
{
    kl_buf b = KL_BUF_INIT;
    char *found = NULL;
    kl_time old = -1;
    bool good = kl_shelf_get(r->s, name, NOW, &b, &found, &old);
    good = good && !strcmp(found, tag) && !strcmp(kl_buf_str(&b), text) && old == age;
    kl_free(found);
    kl_buf_fini(&b);
    return good;
}

static bool is_there(room *r, const char *name)
{
    kl_buf b = KL_BUF_INIT;
    bool found = kl_shelf_get(r->s, name, NOW, &b, NULL, NULL);
    if (!found)
        assert_int_equal(b.len, 0);
    kl_buf_fini(&b);
    return found;
}

static void a_stored_file_is_found_with_its_tag_and_age(void **state)
{
    (void)state;
    room r;
    room_open(&r);
    assert_false(is_there(&r, "x"));
    assert_true(kl_shelf_put(r.s, "x", NOW - KL_SECONDS(9), "\"a tag\"", "hello", 5));
    assert_true(holds(&r, "x", "\"a tag\"", "hello", KL_SECONDS(9)));
    kl_shelf_touch(r.s, "x", NOW);
    assert_true(holds(&r, "x", "\"a tag\"", "hello", 0));
    /* replaced; a clock that went back makes nothing old */
    assert_true(kl_shelf_put(r.s, "x", NOW + KL_SECONDS(9), "2", "", 0));
    assert_true(holds(&r, "x", "2", "", 0));
    kl_shelf_drop(r.s, "x");
    assert_false(is_there(&r, "x"));
    kl_shelf_touch(r.s, "x", NOW);
    assert_false(is_there(&r, "x"));
    room_close(&r);
}

static void only_the_owner_may_read_it(void **state)
{
    (void)state;
    room r;
    room_open(&r);
    assert_true(kl_shelf_put(r.s, "c/x", NOW, "t", "secretless", 10));
    char *file = kl_sprintf("%s/c/x", r.deep), *dir = kl_sprintf("%s/c", r.deep);
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    kl_free(file);
    kl_free(dir);
    room_close(&r);
}

static void names_stay_below_the_directory(void **state)
{
    (void)state;
    room r;
    room_open(&r);
    assert_true(kl_shelf_put(r.s, "../../up", NOW, "t", "x", 1));
    assert_true(holds(&r, "../../up", "t", "x", 0));
    char *up = kl_sprintf("%s/up", r.dir);
    assert_int_equal(access(up, F_OK), -1);
    kl_free(up);
    assert_true(kl_shelf_put(r.s, "q?hash=A B", NOW, "t", "y", 1));
    assert_true(holds(&r, "q?hash=A B", "t", "y", 0));
    room_close(&r);
}

/* Each byte of the file is changed, then the file is cut at each length: nothing of it is believed. */
static void a_torn_file_reads_as_absent_and_can_be_put_again(void **state)
{
    (void)state;
    room r;
    room_open(&r);
    assert_true(kl_shelf_put(r.s, "x", NOW, "tag", "some bytes", 10));
    char *path = kl_sprintf("%s/x", r.deep), text[256];
    FILE *f = fopen(path, "r");
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    for (size_t i = 0; i < 2 * n; i++) {
        char other[256];
        memcpy(other, text, n);
        if (i < n)
            other[i] ^= 1;
        f = fopen(path, "w");
        fwrite(other, 1, i < n ? n : i - n, f);
        fclose(f);
        assert_false(is_there(&r, "x"));
    }
    assert_true(kl_shelf_put(r.s, "x", NOW, "tag", "some bytes", 10));
    assert_true(is_there(&r, "x"));
    kl_free(path);
    room_close(&r);
}

static void an_unwritable_directory_stores_nothing(void **state)
{
    (void)state;
    room r;
    room_open(&r);
    char *blocked = kl_sprintf("%s/file", r.dir), *below = kl_sprintf("%s/file/deep", r.dir);
    fclose(fopen(blocked, "w"));
    kl_shelf *s = kl_shelf_new(below);
    assert_false(kl_shelf_put(s, "x", NOW, "t", "x", 1));
    assert_false(kl_shelf_put(s, "x", NOW, "t", "x", 1));
    kl_shelf_free(s);
    s = kl_shelf_new(NULL);
    assert_null(kl_shelf_dir(s));
    assert_false(kl_shelf_put(s, "x", NOW, "t", "x", 1));
    kl_buf b = KL_BUF_INIT;
    assert_false(kl_shelf_get(s, "x", NOW, &b, NULL, NULL));
    kl_shelf_free(s);
    kl_free(blocked);
    kl_free(below);
    assert_false(kl_shelf_put(r.s, "x", NOW, "a\nb", "x", 1));
    room_close(&r);
}

static void a_link_or_a_directory_is_not_followed(void **state)
{
    (void)state;
    room r;
    room_open(&r);
    assert_true(kl_shelf_put(r.s, "x", NOW, "t", "x", 1));
    char *x = kl_sprintf("%s/x", r.deep), *y = kl_sprintf("%s/y", r.deep), *z = kl_sprintf("%s/z", r.deep);
    assert_int_equal(symlink(x, y), 0);
    assert_int_equal(mkdir(z, 0700), 0);
    assert_false(is_there(&r, "y"));
    assert_false(is_there(&r, "z"));
    kl_free(x);
    kl_free(y);
    kl_free(z);
    room_close(&r);
}

static void the_environment_says_where_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *own, *cache, *home, *want;
    } cases[] = {
        {"/own", "/cache", "/home", "/own"},
        {"off", "/cache", "/home", NULL},
        {NULL, "/cache", "/home", "/cache/kubelua"},
        {"", "relative", "/home", "/home/.cache/kubelua"},
        {NULL, NULL, NULL, NULL},
    };
    static const char *const names[] = {"KUBELUA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *values[] = {cases[i].own, cases[i].cache, cases[i].home};
        for (int k = 0; k < 3; k++)
            assert_int_equal(values[k] ? setenv(names[k], values[k], 1) : unsetenv(names[k]), 0);
        char *home = kl_shelf_home();
        assert_true(cases[i].want ? home && !strcmp(home, cases[i].want) : !home);
        kl_free(home);
    }
}

KL_TESTS(cmocka_unit_test(a_stored_file_is_found_with_its_tag_and_age),
    cmocka_unit_test(only_the_owner_may_read_it), cmocka_unit_test(names_stay_below_the_directory),
    cmocka_unit_test(a_torn_file_reads_as_absent_and_can_be_put_again),
    cmocka_unit_test(an_unwritable_directory_stores_nothing),
    cmocka_unit_test(a_link_or_a_directory_is_not_followed),
    cmocka_unit_test(the_environment_says_where_it_is))

/* not in tsan: it starts no thread */
