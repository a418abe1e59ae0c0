/* testing_test.c - functions of the server for tests of controllers: a state to return to, and marks. */
#include "support/test.h"

#include "http_help.h"
#include "value/value.h"

#define MAPS "/api/v1/namespaces/default/configmaps"

static kl_clock *ticks;

static kl_server *start(void)
{
    kl_server *s;
    kl_err err = KL_ERR_INIT;
    ticks = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1767225600));
    assert_ok(kl_server_start(&(kl_server_options){.listen = "127.0.0.1:0", .clock = ticks}, &s, &err), &err);
    return s;
}

static void stop(kl_server *s)
{
    kl_server_stop(s);
    kl_clock_fake_free(ticks);
}

static int code(kl_server *s, const char *method, const char *path, const char *body)
{
    const char *type = !strcmp(method, "PATCH") ? "application/merge-patch+json" : "application/json";
    char *answer;
    int n = http_finish(http_send(s, method, path, body ? type : NULL, body), &answer);
    kl_free(answer);
    return n;
}

static void a_kept_state_comes_back(void **state)
{
    (void)state;
    kl_server *s = start();
    assert_false(kl_server_reset(s)); /* nothing was kept */
    assert_int_equal(code(s, "POST", MAPS, "{\"metadata\":{\"name\":\"old\"},\"data\":{\"k\":\"1\"}}"), 201);
    kl_server_keep(s);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(
            code(s, "POST", MAPS, "{\"metadata\":{\"name\":\"new\",\"finalizers\":[\"example.com/x\"]}}"),
            201);
        assert_int_equal(code(s, "PATCH", MAPS "/old", "{\"data\":{\"k\":\"2\"}}"), 200);
        if (round == 1)
            assert_int_equal(code(s, "DELETE", MAPS "/old", NULL), 200);
        assert_true(kl_server_reset(s));
        assert_int_equal(code(s, "GET", MAPS "/new", NULL), 404);
        char *answer;
        assert_int_equal(http_finish(http_send(s, "GET", MAPS "/old", NULL, NULL), &answer), 200);
        assert_non_null(strstr(answer, "\"k\":\"1\""));
        kl_free(answer);
    }
    stop(s);
}

static void kinds_that_came_or_went_are_no_state_to_come_back_from(void **state)
{
    (void)state;
    static const char crd[] =
        "{\"apiVersion\":\"apiextensions.k8s.io/"
        "v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"things.example.com\"},"
        "\"spec\":{\"group\":\"example.com\",\"scope\":\"Namespaced\",\"names\":{\"kind\":\"Thing\","
        "\"plural\":\"things\"},\"versions\":[{\"name\":\"v1\",\"served\":true,"
        "\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\"}}}]}}";
    kl_server *s = start();
    kl_server_keep(s);
    assert_true(kl_server_reset(s));
    assert_int_equal(code(s, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd), 201);
    assert_false(kl_server_reset(s));
    kl_server_keep(s);
    assert_true(kl_server_reset(s));
    assert_int_equal(
        code(s, "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com", NULL),
        200);
    assert_false(kl_server_reset(s));
    stop(s);
}

static void a_mark_reaches_watches_with_bookmarks(void **state)
{
    (void)state;
    kl_server *s = start();
    kl_buf in = KL_BUF_INIT;
    uint64_t before = kl_server_rv(s);
    char *path = kl_sprintf(
        MAPS "?watch=true&allowWatchBookmarks=true&resourceVersion=%llu", (unsigned long long)before);
    int fd = http_send(s, "GET", path, NULL, NULL);
    http_wait_for(fd, &in, "200 OK", 1);
    uint64_t rv = kl_server_mark(s);
    assert_true(rv > before);
    assert_true(kl_server_rv(s) == rv);
    char *told = kl_sprintf("\"resourceVersion\":\"%llu\"", (unsigned long long)rv);
    http_wait_for(fd, &in, told, 1);
    assert_non_null(strstr(in.data, "BOOKMARK"));
    close(fd);
    kl_free(told);
    kl_free(path);
    kl_buf_fini(&in);
    stop(s);
}

KL_TESTS(cmocka_unit_test(a_kept_state_comes_back),
    cmocka_unit_test(kinds_that_came_or_went_are_no_state_to_come_back_from),
    cmocka_unit_test(a_mark_reaches_watches_with_bookmarks))
