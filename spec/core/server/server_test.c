/* server_test.c - the whole server over HTTP, with a clock of our own: watches, bookmarks, the end of
 * history, loading. */
#include "http_help.h"

#include "model/object.h"
#include "server/state.h"

static kl_clock *ticks;

static kl_server *start(size_t history)
{
    kl_server *s;
    kl_err err = KL_ERR_INIT;
    ticks = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1767225600)); /* 2026-01-01T00:00:00Z */
    assert_ok(kl_server_start(&(kl_server_options){.listen = "127.0.0.1:0",
                                  .clock = ticks,
                                  .history = history,
                                  .bookmark_every = KL_SECONDS(10),
                                  .max_body = 1 << 20},
                  &s, &err),
        &err);
    return s;
}

static void stop(kl_server *s)
{
    kl_server_stop(s);
    kl_clock_fake_free(ticks);
}

static void pass(kl_server *s, kl_time by)
{
    kl_clock_advance(ticks, by);
    kl_server_tick(s);
}

#define MAPS "/api/v1/namespaces/default/configmaps"

static char *create(kl_server *s, const char *name)
{
    char *body = kl_sprintf("{'metadata':{'name':'%s'}}", name);
    int code;
    const kl_value *o = http(s, "POST", MAPS, body, &code);
    assert_int_equal(code, 201);
    char *rv = kl_strdup(kl_object_rv(o));
    kl_value_unref(o);
    kl_free(body);
    return rv;
}

static void a_new_server_has_its_namespaces_and_the_time_of_its_clock(void **state)
{
    (void)state;
    kl_server *s = start(0);
    int code;
    const kl_value *list = http(s, "GET", "/api/v1/namespaces", NULL, &code);
    assert_int_equal(code, 200);
    assert_int_equal(kl_value_len(kl_value_get(list, "items")), 4);
    assert_string_equal(
        kl_value_str_at(kl_value_item(kl_value_get(list, "items"), 0), "metadata", "creationTimestamp", NULL),
        "2026-01-01T00:00:00Z");
    assert_string_equal(
        kl_value_str_at(kl_value_item(kl_value_get(list, "items"), 0), "status", "phase", NULL), "Active");
    kl_value_unref(list);
    char *config = kl_server_kubeconfig(s);
    assert_non_null(strstr(config, kl_server_url(s)));
    kl_free(config);
    stop(s);
}

/* What a scheduler says of the pod in the binding is the pod's afterwards, as in kube-apiserver. */
static void a_binding_gives_its_pod_a_node_labels_and_annotations(void **state)
{
    (void)state;
    kl_server *s = start(0);
    int code;
    kl_value_unref(http(s, "POST", "/api/v1/namespaces/default/pods",
        "{'metadata':{'name':'p','annotations':{'own':'1'}},'spec':{'containers':[{'name':'c','image':'i'}]}"
        "}",
        &code));
    assert_int_equal(code, 201);
    kl_value_unref(http(s, "POST", "/api/v1/namespaces/default/pods/p/binding",
        "{'metadata':{'name':'p','annotations':{'a':'2'},'labels':{'l':'3'}},"
        "'target':{'kind':'Node','name':'n'}}",
        &code));
    assert_int_equal(code, 201);
    const kl_value *pod = http(s, "GET", "/api/v1/namespaces/default/pods/p", NULL, &code);
    assert_int_equal(code, 200);
    assert_string_equal(kl_value_str_at(pod, "spec", "nodeName", NULL), "n");
    assert_string_equal(kl_value_str_at(pod, "metadata", "annotations", "own", NULL), "1");
    assert_string_equal(kl_value_str_at(pod, "metadata", "annotations", "a", NULL), "2");
    assert_string_equal(kl_value_str_at(pod, "metadata", "labels", "l", NULL), "3");
    kl_value_unref(pod);
    stop(s);
}

static void a_watch_gets_changes_bookmarks_and_an_end(void **state)
{
    (void)state;
    kl_server *s = start(0);
    char *rv = create(s, "a"),
         *path = kl_sprintf(
             MAPS "?watch=true&allowWatchBookmarks=true&timeoutSeconds=30&resourceVersion=%s", rv);
    kl_buf in = KL_BUF_INIT;
    int fd = http_send(s, "GET", path, NULL, NULL);
    http_wait_for(fd, &in, "200 OK", 1);
    assert_int_equal(http_code(s, "PATCH", MAPS "/a", "{'data':{'k':'v'}}"), 200);
    http_wait_for(fd, &in, "\"type\":\"MODIFIED\"", 1);
    pass(s, KL_SECONDS(1));
    assert_null(strstr(in.data, "BOOKMARK")); /* nothing new to tell */
    assert_int_equal(
        http_code(s, "POST", "/api/v1/namespaces/default/secrets", "{'metadata':{'name':'s'}}"), 201);
    pass(s, KL_SECONDS(10));
    http_wait_for(fd, &in, "\"type\":\"BOOKMARK\"", 1);
    char *told = kl_sprintf("\"resourceVersion\":\"%d\"", atoi(rv) + 2);
    assert_non_null(strstr(strstr(in.data, "BOOKMARK"), told));
    pass(s, KL_SECONDS(19));
    while (http_more(fd, &in)) {}
    assert_null(strstr(in.data, "ERROR"));
    close(fd);
    kl_free(told);
    kl_free(path);
    kl_free(rv);
    kl_buf_fini(&in);
    stop(s);
}

static void a_watch_of_a_forgotten_version_gets_410_inside_200(void **state)
{
    (void)state;
    kl_server *s = start(3);
    char *rv = create(s, "a"), *path = kl_sprintf(MAPS "?watch=true&resourceVersion=%s", rv), *body;
    for (int i = 0; i < 4; i++) {
        char *patch = kl_sprintf("{'data':{'k':'%d'}}", i);
        assert_int_equal(http_code(s, "PATCH", MAPS "/a", patch), 200);
        kl_free(patch);
    }
    assert_int_equal(http_finish(http_send(s, "GET", path, NULL, NULL), &body), 200);
    const kl_value *event = NULL;
    assert_int_equal(kl_value_decode(body, strlen(body), &event, NULL), KL_OK);
    assert_string_equal(kl_value_str_at(event, "type", NULL), "ERROR");
    assert_string_equal(kl_value_str_at(event, "object", "reason", NULL), "Expired");
    assert_int_equal(kl_value_int_at(event, 0, "object", "code", NULL), 410);
    kl_value_unref(event);
    kl_free(body);
    kl_free(path);
    path = kl_sprintf(MAPS "?resourceVersionMatch=Exact&resourceVersion=%s", rv);
    assert_int_equal(http_code(s, "GET", path, NULL), 410);
    kl_free(path);
    kl_free(rv);
    stop(s);
}

static void a_page_whose_snapshot_is_forgotten_is_410(void **state)
{
    (void)state;
    kl_server *s = start(3);
    int code;
    kl_free(create(s, "a"));
    kl_free(create(s, "b"));
    const kl_value *page = http(s, "GET", MAPS "?limit=1", NULL, &code);
    const char *token = kl_value_str_at(page, "metadata", "continue", NULL);
    char *next = kl_sprintf(MAPS "?limit=1&continue=%s", token);
    assert_int_equal(http_code(s, "GET", next, NULL), 200);
    for (int i = 0; i < 6; i++) {
        char *patch = kl_sprintf("{'data':{'k':'%d'}}", i);
        assert_int_equal(http_code(s, "PATCH", MAPS "/a", patch), 200);
        kl_free(patch);
    }
    const kl_value *refusal = http(s, "GET", next, NULL, &code);
    assert_int_equal(code, 410);
    assert_string_equal(kl_value_str_at(refusal, "reason", NULL), "Expired");
    /* Who can live with a list that is not a snapshot goes on from where it was, with what there is now. */
    kl_free(next);
    next = kl_sprintf(MAPS "?limit=1&continue=%s", kl_value_str_at(refusal, "metadata", "continue", NULL));
    kl_free(create(s, "c"));
    kl_value_unref(page);
    page = http(s, "GET", next, NULL, &code);
    assert_int_equal(code, 200);
    assert_string_equal(kl_object_name(kl_value_item(kl_value_get(page, "items"), 0)), "b");
    assert_true(kl_value_len(kl_value_at(page, "metadata", "continue", NULL)) > 0); /* and then to c */
    kl_value_unref(refusal);
    kl_free(next);
    kl_value_unref(page);
    stop(s);
}

static void a_reader_that_hangs_up_costs_nothing_more(void **state)
{
    (void)state;
    kl_server *s = start(0);
    kl_buf in = KL_BUF_INIT;
    int fd = http_send(s, "GET", MAPS "?watch=true", NULL, NULL);
    http_wait_for(fd, &in, "200 OK", 1);
    close(fd);
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        kl_free(create(s, name));
        pass(s, KL_SECONDS(10));
    }
    kl_buf_fini(&in);
    stop(s);
}

/* More than sockets hold on their way. */
#define CHANGES 60
#define CHANGE_BYTES 500000

static void a_reader_that_does_not_read_is_cut(void **state)
{
    (void)state;
    kl_server *s = start(0);
    kl_buf in = KL_BUF_INIT, text = KL_BUF_INIT;
    int fd = http_send(s, "GET", MAPS "?watch=true", NULL, NULL);
    http_wait_for(fd, &in, "200 OK", 1);
    kl_free(create(s, "a"));
    for (int i = 0; i < CHANGES; i++) {
        kl_buf_clear(&text);
        kl_buf_printf(&text, "{'data':{'k':'%0*d'}}", CHANGE_BYTES, i);
        assert_int_equal(http_code(s, "PATCH", MAPS "/a", kl_buf_str(&text)), 200);
    }
    while (http_more(fd, &in)) {} /* there is an end, and the server goes on */
    assert_true(in.len > CHANGE_BYTES);
    assert_true(in.len < (size_t)CHANGES * CHANGE_BYTES);
    assert_int_equal(http_code(s, "GET", MAPS "/a", NULL), 200);
    close(fd);
    kl_buf_fini(&text);
    kl_buf_fini(&in);
    stop(s);
}

static void a_stop_ends_open_watches(void **state)
{
    (void)state;
    kl_server *s = start(0);
    kl_buf in = KL_BUF_INIT;
    int fd = http_send(s, "GET", MAPS "?watch=true", NULL, NULL);
    http_wait_for(fd, &in, "200 OK", 1);
    stop(s);
    while (http_more(fd, &in)) {}
    close(fd);
    kl_buf_fini(&in);
}

static void bad_requests_name_field_and_reason(void **state)
{
    (void)state;
    kl_server *s = start(0);
    static const struct {
        const char *method, *path, *body;
        int code;
        const char *says;
    } rows[] = {
        {"POST", MAPS, "{'metadata':{'name':'a'},}", 400, "looking for beginning of object key"},
        {"POST", MAPS, "[]", 400, "cannot unmarshal array into Go value of type struct"},
        {"POST", MAPS, "{'kind':'Pod','apiVersion':'v1'}", 400, "cannot be handled as a ConfigMap"},
        {"POST", MAPS "?fieldValidation=Strict", "{'metadata':{'name':'a'},'metadata':{}}", 400, "duplicate"},
        {"GET", "/api/v1/namespaces/default/sprockets", NULL, 404,
            "the server could not find the requested resource"},
        {"GET", "/apis/apps/v9/things", NULL, 404, "the server could not find the requested resource"},
        {"GET", "/api/v1/namespaces/default/pods/a/b/c/d/e/f/g/h/i", NULL, 404, "could not find"},
        {"PUT", MAPS, "{}", 405, "does not allow this method"},
        {"BREW", MAPS "/a", NULL, 405, "does not allow this method"},
        {"PATCH", MAPS "/a", "[{'op':'fly'}]", 404, "configmaps \"a\" not found"},
        {"GET", "/api/v1/namespaces/default/pods/a/exec", NULL, 404, "pods \"a\" not found"},
        {"DELETE", "/api/v1/namespaces/kube-system", NULL, 403, "this namespace may not be deleted"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int code;
        const kl_value *r = http(s, rows[i].method, rows[i].path, rows[i].body, &code);
        const char *message = kl_value_str_at(r, "message", NULL);
        if (code != rows[i].code || !message || !strstr(message, rows[i].says))
            fail_msg("%s %s: %d %s, wanted %d %s", rows[i].method, rows[i].path, code, message, rows[i].code,
                rows[i].says);
        assert_string_equal(kl_value_str_at(r, "kind", NULL), "Status");
        kl_value_unref(r);
    }
    char *body;
    assert_int_equal(
        http_finish(http_send(s, "POST", MAPS, "application/vnd.kubernetes.protobuf", "k8s"), &body), 400);
    assert_non_null(strstr(body, "does not appear to be a protobuf message"));
    kl_free(body);
    assert_int_equal(http_finish(http_send(s, "POST", MAPS, "application/cbor", "x"), &body), 415);
    kl_free(body);
    stop(s);
}

static void yaml_is_read_where_json_is(void **state)
{
    (void)state;
    kl_server *s = start(0);
    char *body;
    assert_int_equal(
        http_finish(http_send(s, "POST", MAPS, "application/yaml",
                        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: why}\ndata:\n  a: 'b'\n"),
            &body),
        201);
    assert_non_null(strstr(body, "\"data\":{\"a\":\"b\"}"));
    kl_free(body);
    stop(s);
}

/* ------------------------------------------------------------------ loading */

static char *write_file(const char *dir, const char *name, const char *text)
{
    char *path = kl_sprintf("%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static const char crd[] =
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: "
    "toys.x.io}\nspec:\n  group: x.io\n  scope: Cluster\n"
    "  names: {plural: toys, kind: Toy}\n  versions:\n  - {name: v1, served: true, storage: true, "
    "subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, "
    "x-kubernetes-preserve-unknown-fields: true}}}\n  - {name: v1beta1, served: true, storage: false, "
    "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n";

static void a_directory_is_loaded_with_definitions_first(void **state)
{
    (void)state;
    kl_server *s = start(0);
    char dir[] = "/tmp/kl-load-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *a = write_file(dir, "a.yaml",
        "apiVersion: x.io/v1\nkind: Toy\nmetadata: {name: t, resourceVersion: '77', uid: u}\nspec: {size: "
        "1}\nstatus: {done: true}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: fresh}\nspec: {nodeName: node-1, "
        "containers: [{name: c, image: i}]}\nstatus: {phase: Running}\n");
    char *b = write_file(dir, "b.yml", crd), *c = write_file(dir, "ignored.txt", "{");
    size_t n = 0;
    int code;
    kl_err err = KL_ERR_INIT;
    for (int again = 0; again < 2; again++) {
        assert_ok(kl_server_load_path(s, dir, &n, &err), &err);
        assert_int_equal(n, 3);
    }
    const kl_value *toy = http(s, "GET", "/apis/x.io/v1/toys/t", NULL, &code),
                   *pod = http(s, "GET", "/api/v1/namespaces/fresh/pods/p", NULL, &code);
    assert_true(kl_value_bool(kl_value_at(toy, "status", "done", NULL), false));
    assert_string_equal(kl_value_str_at(pod, "status", "phase", NULL), "Running");
    kl_value_unref(toy);
    kl_value_unref(pod);
    toy = http(s, "GET", "/apis/x.io/v1beta1/toys/t", NULL, &code);
    assert_string_equal(kl_object_api_version(toy), "x.io/v1beta1");
    kl_value_unref(toy);
    unlink(a);
    unlink(b);
    unlink(c);
    kl_free(a);
    kl_free(b);
    kl_free(c);
    rmdir(dir);
    stop(s);
}

static void an_unloadable_file_is_named(void **state)
{
    (void)state;
    kl_server *s = start(0);
    kl_err err = KL_ERR_INIT;
    const kl_value *unknown = v("{'apiVersion':'x.io/v1','kind':'Toy','metadata':{'name':'t'}}"),
                   *nothing = v("{'a':1}"),
                   *wrong = v("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'T_T'}}");
    assert_fails(kl_server_load(s, unknown, &err), KL_EINVAL, &err,
        "x.io/v1 Toy \"t\" cannot be loaded: the server has no such kind; load its CustomResourceDefinition "
        "first (--crds)");
    assert_fails(kl_server_load(s, nothing, &err), KL_EINVAL, &err, "no apiVersion and kind");
    assert_fails(kl_server_load(s, wrong, &err), KL_EREJECTED, &err, "ConfigMap \"T_T\": ");
    assert_fails(kl_server_load_path(s, "/nowhere/x.yaml", NULL, &err), KL_EIO, &err,
        "/nowhere/x.yaml: cannot be read");
    kl_value_unref(unknown);
    kl_value_unref(nothing);
    kl_value_unref(wrong);
    stop(s);
}

/* The code and text of an answer: "200 ok". */
static char *asked(kl_server *s, const char *path)
{
    char *body, *text;
    int code = http_finish(http_send(s, "GET", path, NULL, NULL), &body);
    text = kl_sprintf("%d %s", code, body);
    kl_free(body);
    return text;
}

#define assert_asked(s, path, want)                                                                          \
    do {                                                                                                     \
        char *got_ = asked(s, path);                                                                         \
        if (!strstr(got_, want))                                                                             \
            fail_msg("%s: %s", path, got_);                                                                  \
        kl_free(got_);                                                                                       \
    } while (0)

static void a_server_that_loads_is_not_ready(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_server *s;
    assert_ok(kl_server_start(&(kl_server_options){.loads = true}, &s, &err), &err);
    assert_asked(s, "/livez", "200 ok");
    assert_asked(s, "/readyz", "500 [+]ping ok\n");
    assert_asked(s, "/readyz", "\n[-]informer-sync failed: reason withheld\n");
    assert_asked(s, "/readyz", "\nreadyz check failed\n");
    assert_asked(s, "/readyz/informer-sync", "500 internal server error: objects are being loaded");
    assert_asked(s, "/readyz/shutdown", "200 ok");
    assert_asked(s, "/readyz?exclude=informer-sync", "200 ok");
    kl_server_loaded(s);
    assert_asked(s, "/readyz", "200 ok");
    kl_server_stop(s);
}

static void a_namespace_takes_its_content_along(void **state)
{
    (void)state;
    kl_server *s = start(0);
    int code;
    assert_int_equal(http_code(s, "POST", "/api/v1/namespaces", "{'metadata':{'name':'n'}}"), 201);
    assert_int_equal(
        http_code(s, "POST", "/api/v1/namespaces/n/configmaps", "{'metadata':{'name':'a'}}"), 201);
    assert_int_equal(http_code(s, "POST", "/api/v1/namespaces/n/secrets",
                         "{'metadata':{'name':'b','finalizers':['x.io/hold']}}"),
        201);
    assert_int_equal(http_code(s, "DELETE", "/api/v1/namespaces/n", NULL), 200);
    assert_int_equal(http_code(s, "GET", "/api/v1/namespaces/n/configmaps/a", NULL), 404);
    const kl_value *ns = http(s, "GET", "/api/v1/namespaces/n", NULL, &code);
    assert_string_equal(kl_value_str_at(ns, "status", "phase", NULL), "Terminating");
    kl_value_unref(ns);
    const kl_value *r = http(
        s, "POST", "/api/v1/namespaces/n/configmaps", "{'metadata':{'name':'late'}}", &code);
    assert_int_equal(code, 403);
    assert_non_null(strstr(kl_value_str_at(r, "message", NULL),
        "unable to create new content in namespace n because it is being terminated"));
    kl_value_unref(r);
    assert_int_equal(
        http_code(s, "PATCH", "/api/v1/namespaces/n/secrets/b", "{'metadata':{'finalizers':null}}"), 200);
    assert_int_equal(http_code(s, "GET", "/api/v1/namespaces/n", NULL), 404);
    stop(s);
}

KL_TESTS(cmocka_unit_test(a_new_server_has_its_namespaces_and_the_time_of_its_clock),
    cmocka_unit_test(a_binding_gives_its_pod_a_node_labels_and_annotations),
    cmocka_unit_test(a_watch_gets_changes_bookmarks_and_an_end),
    cmocka_unit_test(a_watch_of_a_forgotten_version_gets_410_inside_200),
    cmocka_unit_test(a_page_whose_snapshot_is_forgotten_is_410),
    cmocka_unit_test(a_reader_that_hangs_up_costs_nothing_more),
    cmocka_unit_test(a_reader_that_does_not_read_is_cut), cmocka_unit_test(a_stop_ends_open_watches),
    cmocka_unit_test(bad_requests_name_field_and_reason), cmocka_unit_test(yaml_is_read_where_json_is),
    cmocka_unit_test(a_directory_is_loaded_with_definitions_first),
    cmocka_unit_test(a_server_that_loads_is_not_ready), cmocka_unit_test(an_unloadable_file_is_named),
    cmocka_unit_test(a_namespace_takes_its_content_along))
