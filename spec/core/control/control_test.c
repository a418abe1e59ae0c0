/* control_test.c - the control socket over a real socket: permissions, routes, late answers, and foreign
 * files in its place. */
#include "support/test.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/locks.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "httpd/unixsock.h"
#include "http/http.h"
#include "control/control.h"

typedef struct rig {
    char dir[64];
    char *path;
    kl_control *c;
    kl_http *http;
    kl_thread *late;
    _Atomic(kl_control_request *) owed;
} rig;

/* --- a client ----------------------------------------------------------------------------- */

typedef struct reply {
    kl_mutex mu;
    kl_cond over;
    bool done;
    kl_status status;
    int code;
    kl_buf text;
} reply;

static kl_status on_data(void *arg, const char *data, size_t n, kl_err *err)
{
    (void)err;
    return kl_buf_add(&((reply *)arg)->text, data, n);
}

static void on_done(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    (void)sent;
    (void)err;
    reply *r = arg;
    kl_lock(&r->mu);
    r->status = st;
    r->code = code;
    r->done = true;
    kl_cond_signal(&r->over);
    kl_unlock(&r->mu);
}

/* "200 {...}", or "failed" when no answer came. Caller frees. */
static char *ask_at(rig *t, const char *path, const char *method, const char *target, const char *body)
{
    reply r = {0};
    kl_mutex_init(&r.mu);
    kl_cond_init(&r.over);
    char *url = kl_sprintf("http://kubelua%s", target);
    kl_http_submit(t->http,
        &(kl_http_request){.method = method,
            .url = url,
            .body = body,
            .body_len = body ? strlen(body) : 0,
            .proxy = "",
            .unix_socket = path,
            .on_data = on_data,
            .on_done = on_done,
            .arg = &r});
    kl_lock(&r.mu);
    while (!r.done)
        kl_cond_wait(&r.over, &r.mu);
    kl_unlock(&r.mu);
    char *text = r.status ? kl_strdup("failed") : kl_sprintf("%d %s", r.code, kl_buf_str(&r.text));
    kl_buf_fini(&r.text);
    kl_cond_fini(&r.over);
    kl_mutex_fini(&r.mu);
    kl_free(url);
    return text;
}

static void assert_answer(
    rig *t, const char *method, const char *target, const char *body, const char *expected)
{
    char *got = ask_at(t, t->path, method, target, body);
    if (strcmp(got, expected))
        fail_msg("%s %s: %s instead of %s", method, target, got, expected);
    kl_free(got);
}

static void assert_holds(rig *t, const char *target, const char *part)
{
    char *got = ask_at(t, t->path, "GET", target, NULL);
    if (!strstr(got, part))
        fail_msg("GET %s: %s does not hold %s", target, got, part);
    kl_free(got);
}

/* --- routes ------------------------------------------------------------------------------- */

static void echo(void *arg, kl_control_request *q)
{
    (void)arg;
    const char *x = kl_control_query(q, "x");
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "x", x);
    kl_build_kvalue(b, "body", kl_control_body(q));
    kl_build_end(b);
    kl_control_reply(q, 200, kl_builder_done(b));
}

static void who(void *arg, kl_control_request *q)
{
    (void)arg;
    kl_control_refuse(q, 418, "%s", kl_control_who(q));
}

static void answer_late(void *arg)
{
    kl_err err = KL_ERR_INIT;
    (void)kl_fail(&err, KL_ENOTFOUND, "later");
    kl_control_fail(arg, &err);
    kl_err_fini(&err);
}

static void late(void *arg, kl_control_request *q)
{
    rig *t = arg;
    t->late = kl_thread_start("late", answer_late, q);
}

static void never(void *arg, kl_control_request *q) { atomic_store(&((rig *)arg)->owed, q); }

static int start(void **state)
{
    rig *t = kl_new(rig);
    kl_err err = KL_ERR_INIT;
    strcpy(t->dir, "/tmp/kubelua-control.XXXXXX");
    assert_non_null(mkdtemp(t->dir));
    t->path = kl_sprintf("%s/run/a.sock", t->dir);
    const kl_value *about;
    assert_ok(kl_value_decode("{\"scripts\":[\"a.lua\"]}", 21, &about, &err), &err);
    t->c = kl_control_new(about);
    kl_value_unref(about);
    kl_control_route(t->c, "POST", "/v1/echo", "says it again", echo, t);
    kl_control_route(t->c, "GET", "/v1/who", "who asks", who, t);
    kl_control_route(t->c, "GET", "/v1/late", "answers later", late, t);
    kl_control_route(t->c, "GET", "/v1/never", "answers after the end", never, t);
    assert_ok(kl_control_listen(t->c, t->path, &err), &err);
    assert_ok(kl_http_new(&(kl_http_options){.name = "calls", .http1 = true}, &t->http, &err), &err);
    *state = t;
    return 0;
}

static int stop(void **state)
{
    rig *t = *state;
    kl_http_free(t->http);
    kl_thread_join(t->late);
    kl_control_free(t->c);
    char *run = kl_sprintf("%s/run", t->dir);
    rmdir(run);
    rmdir(t->dir);
    kl_free(run);
    kl_free(t->path);
    kl_free(t);
    return 0;
}

static void answers_routes_in_json(void **state)
{
    rig *t = *state;
    assert_answer(t, "POST", "/v1/echo?x=a%20b", "{\"n\": [1, true]}",
        "200 {\"x\":\"a b\",\"body\":{\"n\":[1,true]}}\n");
    assert_answer(t, "POST", "/v1/echo", NULL, "200 {}\n");
    assert_answer(t, "GET", "/v1/late", NULL, "404 {\"error\":\"later\"}\n");
    assert_holds(t, "/v1/", "\"scripts\":[\"a.lua\"],\"routes\":[{\"method\":\"GET\",\"path\":\"/v1/\"");
    assert_holds(t, "/v1/", "{\"method\":\"POST\",\"path\":\"/v1/echo\",\"help\":\"says it again\"}");
}

typedef struct ear {
    kl_mutex mu;
    kl_buf heard;
} ear;

static void hear(void *arg, kl_log_level level, const char *message, const char *fields)
{
    ear *e = arg;
    (void)level;
    kl_lock(&e->mu);
    kl_buf_printf(&e->heard, "%s %s\n", message, fields);
    kl_unlock(&e->mu);
}

static void the_log_names_the_fields_of_a_body_without_values(void **state)
{
    rig *t = *state;
    ear e = {0};
    kl_mutex_init_as(&e.mu, KL_LOCK_SINK);
    kl_log_set_level(KL_LOG_INFO);
    kl_log_set_sink(hear, &e);
    char *got = ask_at(t, t->path, "POST", "/v1/echo",
        "{\"controller\":\"app\",\"params\":{\"token\":\"s3cret\",\"n\":4711},\"list\":[\"s3cret\"],\"dry\":"
        "true}");
    kl_free(got);
    got = ask_at(t, t->path, "POST", "/v1/echo", "{\"s3cret");
    kl_free(got);
    kl_log_set_sink(NULL, NULL);
    const char *heard = kl_buf_str(&e.heard);
    if (!strstr(heard, "body=\"controller=app params={token,n} list dry\"") || strstr(heard, "s3cret")
        || strstr(heard, "4711"))
        fail_msg("%s", heard);
    kl_buf_fini(&e.heard);
    kl_mutex_fini(&e.mu);
}

static void suggests_the_nearest_name(void **state)
{
    rig *t = *state;
    assert_answer(
        t, "GET", "/v1/ecko", NULL, "404 {\"error\":\"there is no /v1/ecko; did you mean /v1/echo?\"}\n");
    assert_answer(t, "GET", "/elsewhere", NULL,
        "404 {\"error\":\"there is no /elsewhere; GET /v1/ lists the paths\"}\n");
    assert_answer(t, "GET", "/v1/echo", NULL, "405 {\"error\":\"/v1/echo is for POST, not for GET\"}\n");
    char *got = ask_at(t, t->path, "POST", "/v1/echo", "{\"n\": ");
    assert_non_null(strstr(got, "400 {\"error\":\"the body is not JSON: "));
    kl_free(got);
    assert_answer(t, "POST", "/v1/echo", "{\"controller\":\"web\\u0000site\"}",
        "400 {\"error\":\"controller contains a NUL character\"}\n");
}

static void identifies_the_caller(void **state)
{
    char *expected = kl_sprintf(
        "418 {\"error\":\"uid=%lu pid=%ld\"}\n", (unsigned long)geteuid(), (long)getpid());
    assert_answer(*state, "GET", "/v1/who", NULL, expected);
    kl_free(expected);
}

static void the_socket_is_for_its_owner_alone(void **state)
{
    rig *t = *state;
    struct stat st;
    assert_int_equal(stat(t->path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0600);
    char *run = kl_sprintf("%s/run", t->dir);
    assert_int_equal(stat(run, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    kl_free(run);
}

static void a_place_that_is_taken_is_refused_with_the_pid(void **state)
{
    rig *t = *state;
    kl_err err = KL_ERR_INIT;
    kl_control *second = kl_control_new(NULL);
    assert_int_equal(kl_control_listen(second, t->path, &err), KL_EEXISTS);
    char *expected = kl_sprintf(
        "process %ld already listens at %s: choose another path", (long)getpid(), t->path);
    assert_string_equal(kl_err_message(&err), expected);
    kl_free(expected);
    kl_err_fini(&err);
    kl_control_free(second);
    assert_answer(t, "POST", "/v1/echo", NULL, "200 {}\n");
}

static void a_dead_socket_is_replaced(void **state)
{
    rig *t = *state;
    kl_err err = KL_ERR_INIT;
    char *path = kl_sprintf("%s/run/dead.sock", t->dir);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    strcpy(sa.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    close(fd);
    assert_false(kl_unixsock_alive(path, NULL));
    kl_control *second = kl_control_new(NULL);
    assert_ok(kl_control_listen(second, path, &err), &err);
    assert_true(kl_unixsock_alive(path, NULL));
    kl_control_close(second);
    assert_int_equal(access(path, F_OK), -1);
    kl_control_free(second);
    kl_free(path);
}

static void a_file_that_is_not_a_socket_stays(void **state)
{
    rig *t = *state;
    kl_err err = KL_ERR_INIT;
    char *path = kl_sprintf("%s/run/notes.txt", t->dir);
    fclose(fopen(path, "w"));
    kl_control *second = kl_control_new(NULL);
    assert_int_equal(kl_control_listen(second, path, &err), KL_EEXISTS);
    assert_non_null(strstr(kl_err_message(&err), "exists and is not a socket"));
    kl_err_fini(&err);
    kl_control_free(second);
    assert_int_equal(unlink(path), 0);
    kl_free(path);
}

static void a_place_that_others_may_write_to_is_refused(void **state)
{
    rig *t = *state;
    kl_err err = KL_ERR_INIT;
    char *path = kl_sprintf("%s/a.sock", t->dir);
    assert_int_equal(chmod(t->dir, 0777), 0);
    kl_control *second = kl_control_new(NULL);
    assert_int_equal(kl_control_listen(second, path, &err), KL_EIO);
    assert_non_null(strstr(kl_err_message(&err), "other users may write into the directory"));
    kl_err_fini(&err);
    assert_int_equal(chmod(t->dir, 01777), 0); /* as /tmp */
    assert_ok(kl_control_listen(second, path, &err), &err);
    kl_control_free(second);
    kl_free(path);
}

static void a_path_that_is_too_long_is_reported(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    char path[200] = "/tmp/";
    memset(path + 5, 'x', sizeof path - 6);
    kl_control *c = kl_control_new(NULL);
    assert_int_equal(kl_control_listen(c, path, &err), KL_EINVAL);
    assert_non_null(strstr(kl_err_message(&err), "at most 107 bytes"));
    kl_err_fini(&err);
    kl_control_free(c);
}

static void nobody_hears(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    (void)arg, (void)st, (void)code, (void)sent, (void)err;
}

static void late_answers_after_a_stop_are_dropped(void **state)
{
    rig *t = *state;
    /* Its answer does not come: the request ends when we let go of the client. */
    (void)kl_http_submit(t->http,
        &(kl_http_request){
            .url = "http://kubelua/v1/never", .proxy = "", .unix_socket = t->path, .on_done = nobody_hears});
    while (!atomic_load(&t->owed))
        assert_holds(t, "/v1/", "routes");
    kl_control_close(t->c);
    kl_control_refuse(atomic_load(&t->owed), 503, "too late");
    char *got = ask_at(t, t->path, "GET", "/v1/", NULL);
    assert_string_equal(got, "failed");
    kl_free(got);
}

/* --- another door ------------------------------------------------------------------------- */

static void other_door(void *arg, kl_httpd_request *r)
{
    kl_control_serve(((rig *)arg)->c, r, "a browser", kl_httpd_header(r, "Authorization") != NULL);
}

static void another_door_may_be_for_looking_only(void **state)
{
    rig *t = *state;
    kl_err err = KL_ERR_INIT;
    kl_httpd *h;
    char *path = kl_sprintf("%s/run/door.sock", t->dir), *address = kl_sprintf("unix:%s", path);
    assert_ok(
        kl_httpd_start(&(kl_httpd_options){.listen = address, .handler = other_door, .arg = t}, &h, &err),
        &err);
    assert_string_equal(kl_httpd_address(h), address);
    char *got = ask_at(t, path, "GET", "/v1/who", NULL);
    assert_string_equal(got, "418 {\"error\":\"a browser\"}\n");
    kl_free(got);
    got = ask_at(t, path, "POST", "/v1/echo", NULL);
    assert_string_equal(
        got, "403 {\"error\":\"POST /v1/echo makes a change, and this endpoint is read-only\"}\n");
    kl_free(got);
    kl_control_guard(t->c, "/v1/who");
    got = ask_at(t, path, "GET", "/v1/who", NULL);
    assert_string_equal(got,
        "403 {\"error\":\"/v1/who shows the contents of objects, Secrets included: not available on this "
        "endpoint\"}\n");
    kl_free(got);
    kl_httpd_stop(h);
    assert_int_equal(unlink(path), 0);
    kl_free(path);
    kl_free(address);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_routes_in_json, start, stop),
        cmocka_unit_test_setup_teardown(the_log_names_the_fields_of_a_body_without_values, start, stop),
        cmocka_unit_test_setup_teardown(suggests_the_nearest_name, start, stop),
        cmocka_unit_test_setup_teardown(identifies_the_caller, start, stop),
        cmocka_unit_test_setup_teardown(the_socket_is_for_its_owner_alone, start, stop),
        cmocka_unit_test_setup_teardown(a_place_that_is_taken_is_refused_with_the_pid, start, stop),
        cmocka_unit_test_setup_teardown(a_dead_socket_is_replaced, start, stop),
        cmocka_unit_test_setup_teardown(a_file_that_is_not_a_socket_stays, start, stop),
        cmocka_unit_test_setup_teardown(a_place_that_others_may_write_to_is_refused, start, stop),
        cmocka_unit_test_setup_teardown(a_path_that_is_too_long_is_reported, start, stop),
        cmocka_unit_test_setup_teardown(late_answers_after_a_stop_are_dropped, start, stop),
        cmocka_unit_test_setup_teardown(another_door_may_be_for_looking_only, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
