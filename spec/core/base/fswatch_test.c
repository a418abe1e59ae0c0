/* fswatch_test.c - the ways in which files change: written, renamed over, swapped behind a link, removed. */
#include "support/test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fswatch.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"

#define BOUND KL_SECONDS(20)

typedef struct seat {
    char dir[64];
    kl_mutex mu;
    kl_cond called;
    int calls;
    kl_fswatch *w;
} seat;

static void on_change(void *arg)
{
    seat *s = arg;
    kl_lock(&s->mu);
    s->calls++;
    kl_cond_broadcast(&s->called);
    kl_unlock(&s->mu);
}

static void put(seat *s, const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static char *in(seat *s, const char *name) { return kl_sprintf("%s/%s", s->dir, name); }

static int start(void **state)
{
    seat *s = kl_new(seat);
    strcpy(s->dir, "/tmp/kl-fswatch-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    kl_mutex_init(&s->mu);
    kl_cond_init(&s->called);
    put(s, "a.lua", "one");
    *state = s;
    return 0;
}

static int stop(void **state)
{
    seat *s = *state;
    kl_fswatch_stop(s->w);
    char *rm = kl_sprintf("rm -rf %s", s->dir);
    assert_int_equal(system(rm), 0);
    kl_free(rm);
    kl_cond_fini(&s->called);
    kl_mutex_fini(&s->mu);
    kl_free(s);
    return 0;
}

static void watch(seat *s, const char *name)
{
    kl_err err = KL_ERR_INIT;
    char *path = in(s, name);
    const char *paths[] = {path};
    assert_ok(kl_fswatch_start(paths, 1, NULL, on_change, s, &s->w, &err), &err);
    kl_free(path);
}

/* Waits for one more call than before. */
static void wait_call(seat *s, int before)
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + BOUND;
    kl_lock(&s->mu);
    while (s->calls <= before && kl_cond_wait_until(&s->called, &s->mu, deadline))
        ;
    int calls = s->calls;
    kl_unlock(&s->mu);
    assert_true(calls > before);
}

static void sees_a_file_written_in_place(void **state)
{
    seat *s = *state;
    watch(s, "a.lua");
    put(s, "a.lua", "two");
    wait_call(s, 0);
    put(s, "a.lua", "six");
    wait_call(s, 1);
}

static void sees_an_editor_that_renames_over_the_file(void **state)
{
    seat *s = *state;
    watch(s, "a.lua");
    for (int i = 0; i < 3; i++) {
        int before = s->calls;
        put(s, ".a.lua.swp", "new");
        char *from = in(s, ".a.lua.swp"), *to = in(s, "a.lua");
        assert_int_equal(rename(from, to), 0);
        kl_free(from);
        kl_free(to);
        wait_call(s, before);
    }
}

static void sees_a_file_removed_and_made_again(void **state)
{
    seat *s = *state;
    watch(s, "a.lua");
    char *path = in(s, "a.lua");
    assert_int_equal(unlink(path), 0);
    kl_free(path);
    wait_call(s, 0);
    put(s, "a.lua", "back");
    wait_call(s, 1);
}

static void sees_the_data_link_of_a_config_map_volume_swapped(void **state)
{
    seat *s = *state;
    char *v1 = in(s, "..v1"), *v2 = in(s, "..v2"), *data = in(s, "..data"), *tmp = in(s, "..tmp"),
         *file = in(s, "c.lua");
    assert_int_equal(mkdir(v1, 0755), 0);
    assert_int_equal(mkdir(v2, 0755), 0);
    put(s, "..v1/c.lua", "one");
    put(s, "..v2/c.lua", "two");
    assert_int_equal(symlink("..v1", data), 0);
    assert_int_equal(symlink("..data/c.lua", file), 0);
    watch(s, "c.lua");
    assert_int_equal(symlink("..v2", tmp), 0);
    assert_int_equal(rename(tmp, data), 0);
    wait_call(s, 0);
    kl_free(v1);
    kl_free(v2);
    kl_free(data);
    kl_free(tmp);
    kl_free(file);
}

static void sees_modules_that_come_beside_a_file(void **state)
{
    seat *s = *state;
    kl_err err = KL_ERR_INIT;
    char *path = in(s, "a.lua");
    const char *files[] = {path};
    assert_ok(kl_fswatch_start(files, 1, ".lua", on_change, s, &s->w, &err), &err);
    put(s, "module.lua", "x");
    wait_call(s, 0);
    put(s, "a.lua", "six");
    wait_call(s, 1);
    kl_free(path);
}

static void finds_its_directory_again_after_it_was_replaced(void **state)
{
    seat *s = *state;
    char *sub = in(s, "sub"), *old = in(s, "old");
    assert_int_equal(mkdir(sub, 0755), 0);
    put(s, "sub/a.lua", "one");
    watch(s, "sub/a.lua");
    assert_int_equal(rename(sub, old), 0);
    wait_call(s, 0);
    assert_int_equal(mkdir(sub, 0755), 0);
    put(s, "sub/a.lua", "two");
    wait_call(s, 1);
    put(s, "sub/a.lua", "three");
    wait_call(s, 2);
    kl_free(sub);
    kl_free(old);
}

static void joins_many_writes_into_few_calls(void **state)
{
    seat *s = *state;
    watch(s, "a.lua");
    for (int i = 0; i < 500; i++)
        put(s, "a.lua", i % 2 ? "x" : "y");
    wait_call(s, 0);
    kl_fswatch_stop(s->w);
    s->w = NULL;
    assert_in_range(s->calls, 1, 100);
}

/* Puts a file that does not count, and then one that does. When the witness, who watches the first, has
 * spoken, both have judged it. */
static void counts_only(seat *s, const char *suffix, const char *other, const char *counted)
{
    kl_err err = KL_ERR_INIT;
    seat witness = {.calls = 0};
    kl_fswatch *w = NULL;
    char *mine = in(s, "a.lua"), *its = in(s, other), *from = in(s, "spare"), *to = in(s, counted);
    const char *files[] = {mine}, *paths[] = {its};
    kl_mutex_init(&witness.mu);
    kl_cond_init(&witness.called);
    put(s, "spare", "counts");
    assert_ok(kl_fswatch_start(files, 1, suffix, on_change, s, &s->w, &err), &err);
    assert_ok(kl_fswatch_start(paths, 1, NULL, on_change, &witness, &w, &err), &err);
    put(s, other, "other");
    wait_call(&witness, 0);
    assert_int_equal(rename(from, to), 0);
    wait_call(s, 0);
    kl_fswatch_stop(s->w);
    kl_fswatch_stop(w);
    s->w = NULL;
    assert_int_equal(s->calls, 1);
    kl_cond_fini(&witness.called);
    kl_mutex_fini(&witness.mu);
    kl_free(mine);
    kl_free(its);
    kl_free(from);
    kl_free(to);
}

static void ignores_other_files_beside_its_own(void **state) { counts_only(*state, NULL, "b.lua", "a.lua"); }

/* Among them the log of the very process, which each load of a script may write to. */
static void ignores_what_is_no_module(void **state) { counts_only(*state, ".lua", "a.log", "b.lua"); }

static void note(void *arg, kl_log_level level, const char *message, const char *fields)
{
    (void)level, (void)fields;
    *(bool *)arg |= !strcmp(message, "polling files for changes");
}

/* With room for one more descriptor there is one to be stopped by, and none for inotify. */
static void polls_where_inotify_is_refused_and_says_so(void **state)
{
    seat *s = *state;
    struct rlimit before, little;
    bool said = false;
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    little = (struct rlimit){(rlim_t)next + 1, before.rlim_max};
    kl_log_set_sink(note, &said);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &little), 0);
    watch(s, "a.lua");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    kl_log_set_sink(NULL, NULL);
    assert_true(said);
    put(s, "a.lua", "two, and longer");
    wait_call(s, 0);
    char *path = in(s, "a.lua");
    assert_int_equal(unlink(path), 0);
    wait_call(s, 1);
    kl_free(path);
    put(s, "a.lua", "back");
    wait_call(s, 2);
}

static void says_which_directory_is_missing(void **state)
{
    seat *s = *state;
    kl_err err = KL_ERR_INIT;
    kl_fswatch *w = NULL;
    const char *paths[] = {"/no/such/place/x.lua"};
    assert_fails(kl_fswatch_start(paths, 1, NULL, on_change, s, &w, &err), KL_EIO, &err,
        "directory /no/such/place does not exist");
    kl_fswatch_stop(NULL);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start, stop)
KL_TESTS(CASE(sees_a_file_written_in_place), CASE(sees_an_editor_that_renames_over_the_file),
    CASE(sees_a_file_removed_and_made_again), CASE(sees_the_data_link_of_a_config_map_volume_swapped),
    CASE(sees_modules_that_come_beside_a_file), CASE(finds_its_directory_again_after_it_was_replaced),
    CASE(joins_many_writes_into_few_calls), CASE(ignores_other_files_beside_its_own),
    CASE(ignores_what_is_no_module), CASE(polls_where_inotify_is_refused_and_says_so),
    CASE(says_which_directory_is_missing))
