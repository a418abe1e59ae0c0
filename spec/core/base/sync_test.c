/* sync_test.c - threads, conditions, clocks and the log. */
#include "support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"

typedef struct shared {
    kl_mutex mu;
    kl_cond cond;
    int n;
    uint64_t self;
    char name[16];
    bool blocked;
} shared;

static void count(void *arg)
{
    shared *s = arg;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    kl_lock(&s->mu);
    s->n++;
    s->self = kl_thread_self();
    s->blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT) && sigismember(&mask, SIGUSR1);
    pthread_getname_np(pthread_self(), s->name, sizeof s->name);
    kl_cond_broadcast(&s->cond);
    kl_unlock(&s->mu);
}

static void threads_have_names_and_block_signals(void **state)
{
    (void)state;
    shared s = {.n = 0};
    kl_mutex_init(&s.mu);
    kl_cond_init(&s.cond);
    kl_thread *t = kl_thread_start("a-name-that-is-too-long", count, &s);
    kl_lock(&s.mu);
    while (!s.n)
        assert_true(kl_cond_wait_until(&s.cond, &s.mu, kl_clock_now(kl_clock_real()) + KL_SECONDS(20)));
    kl_unlock(&s.mu);
    kl_thread_join(t);
    assert_string_equal(s.name, "a-name-that-is-");
    assert_true(s.blocked);
    assert_true(s.self != kl_thread_self() && s.self);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM)); /* the starter's own mask is as before */
    kl_thread_join(NULL);
    kl_cond_fini(&s.cond);
    kl_mutex_fini(&s.mu);
}

static void a_wait_ends_at_its_deadline(void **state)
{
    (void)state;
    kl_mutex mu = KL_MUTEX_INIT;
    kl_cond cond;
    kl_cond_init(&cond);
    kl_time start = kl_clock_now(kl_clock_real());
    kl_lock(&mu);
    while (kl_cond_wait_until(&cond, &mu, start + KL_MILLISECONDS(20)))
        ;
    assert_false(kl_cond_wait_until(&cond, &mu, -5));
    kl_unlock(&mu);
    assert_true(kl_clock_now(kl_clock_real()) >= start + KL_MILLISECONDS(20));
    kl_cond_fini(&cond);
}

static void a_fake_clock_stands_until_advanced(void **state)
{
    (void)state;
    kl_clock *c = kl_clock_fake_new(100, KL_SECONDS(1000));
    assert_int_equal(kl_clock_now(c), 100);
    assert_int_equal(kl_clock_boot(c), 100);
    assert_int_equal(kl_clock_wall(c), KL_SECONDS(1000));
    kl_clock_advance(c, KL_MILLISECONDS(5));
    assert_int_equal(kl_clock_now(c), 5000100);
    assert_int_equal(kl_clock_wall(c), KL_SECONDS(1000) + 5000000);
    kl_clock_fake_free(c);
    kl_clock_fake_free(NULL);
    kl_clock *real = kl_clock_real();
    kl_time a = kl_clock_now(real);
    kl_clock_advance(real, KL_SECONDS(1000000)); /* not ours to move */
    assert_in_range(kl_clock_now(real) - a, 0, KL_SECONDS(1000));
    assert_true(kl_clock_boot(real) >= a);
    assert_true(kl_clock_wall(real) > KL_SECONDS(1700000000));
    assert_true(kl_clock_thread_cpu() >= 0);
    kl_clock_fake_free(real); /* static: nothing happens */
}

typedef struct records {
    int n;
    kl_log_level level;
    char message[64];
    char fields[4096];
} records;

static void keep(void *arg, kl_log_level level, const char *message, const char *fields)
{
    records *r = arg;
    r->n++;
    r->level = level;
    snprintf(r->message, sizeof r->message, "%s", message);
    snprintf(r->fields, sizeof r->fields, "%s", fields);
}

static void the_log_goes_to_its_sink_from_its_level_up(void **state)
{
    (void)state;
    records r = {0};
    kl_warn("nobody listens", "a=%d", 1);
    assert_false(kl_log_enabled(KL_LOG_ERROR));
    kl_log_set_sink(keep, &r);
    kl_debug("too low", "a=%d", 1);
    assert_int_equal(r.n, 0);
    kl_info("started", "port=%d name=%s", 80, "x");
    assert_int_equal(r.n, 1);
    assert_int_equal(r.level, KL_LOG_INFO);
    assert_string_equal(r.message, "started");
    assert_string_equal(r.fields, "port=80 name=x");
    kl_log_set_level(KL_LOG_DEBUG);
    char big[3000];
    memset(big, 'b', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    kl_debug("long", "v=%s", big);
    assert_int_equal(strlen(r.fields), 3001);
    kl_log_set_level(KL_LOG_OFF);
    kl_error("off", "a=%d", 1);
    assert_int_equal(r.n, 2);
    kl_log_set_level(KL_LOG_INFO);
    kl_log_set_sink(NULL, NULL);
    kl_error("nobody again", "a=%d", 1);
    assert_int_equal(r.n, 2);
}

static void log_levels_have_words(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_log_level l;
    static const char *const words[] = {"debug", "info", "warn", "error", "off"};
    for (int i = 0; i < 5; i++) {
        assert_ok(kl_log_level_parse(words[i], &l, &err), &err);
        assert_int_equal(l, i);
    }
    assert_fails(kl_log_level_parse("loud", &l, &err), KL_EINVAL, &err,
        "unknown log level \"loud\": use debug, info, warn, error or off");
    assert_fails(kl_log_level_parse(NULL, &l, &err), KL_EINVAL, &err, "use debug");
}

static void log_fields_are_quoted_when_they_must(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"plain/x-1", "plain/x-1"}, {"", "\"\""},
        {"two words", "\"two words\""}, {"q\"b\\", "\"q\\\"b\\\\\""}, {"l\n\x01", "\"l\\n\\x01\""},
        {"k=v", "\"k=v\""}};
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(kl_log_quote(cases[i][0], out, sizeof out), cases[i][1]);
    assert_string_equal(kl_log_quote(NULL, out, sizeof out), "\"\"");
    assert_string_equal(kl_log_quote("cut short here", out, 8), "\"cut s\"");
    assert_string_equal(kl_log_quote("a b", out, 2), "");
}

static void the_file_sink_writes_lines(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    kl_log_file_sink(f, KL_LOG_WARN, "message here", "k=v");
    kl_log_file_sink(f, KL_LOG_INFO, "bare", "");
    fclose(f);
    assert_int_equal(text[4], '-');
    assert_int_equal(text[10], 'T');
    assert_int_equal(text[23], 'Z');
    assert_non_null(strstr(text, "Z WARN  message here k=v\n"));
    assert_non_null(strstr(text, "Z INFO  bare\n"));
    free(text);
}

KL_TESTS(cmocka_unit_test(threads_have_names_and_block_signals),
    cmocka_unit_test(a_wait_ends_at_its_deadline), cmocka_unit_test(a_fake_clock_stands_until_advanced),
    cmocka_unit_test(the_log_goes_to_its_sink_from_its_level_up), cmocka_unit_test(log_levels_have_words),
    cmocka_unit_test(log_fields_are_quoted_when_they_must), cmocka_unit_test(the_file_sink_writes_lines))
