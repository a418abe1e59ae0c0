/* config_test.c - the sources of the configuration, and the messages for mistakes. (The oracle's table
 * "kubeconfig" compares files and flags with clientcmd.) */
#include "support/test.h"

#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "auth/config.h"
#include "auth/auth.h"
#include "auth/kubeconfig.h"

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/kubelua-config-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static char *path(const char *name)
{
    static char buffers[8][128];
    static int next;
    char *b = buffers[next++ % 8];
    snprintf(b, sizeof buffers[0], "%s/%s", dir, name);
    return b;
}

static char *put(const char *name, const char *text)
{
    FILE *f = fopen(path(name), "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path(name);
}

#define CLUSTER(name, server) "clusters: [{name: " name ", cluster: {server: '" server "'}}]\n"
#define GOOD(server, ns)                                                                                     \
    "apiVersion: v1\nkind: Config\ncurrent-context: x\n" CLUSTER(                                            \
        "c", server) "users: [{name: u, user: {token: tok}}]\ncontexts:\n- {name: x, context: {cluster: c, " \
                     "user: u, namespace: " ns "}}\n- {name: other, context: {cluster: c, user: u}}\n"

static kl_config_sources sources(const char *explicit, const char *env, const char *home)
{
    return (kl_config_sources){.explicit_file = explicit, .env = env, .home_file = home, .o.insecure = -1};
}

static void the_flag_is_before_the_environment_before_home(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_config c;
    char *flag = put("flag", GOOD("https://flag:1/", "f")), *env = put("env", GOOD("https://env:1", "e")),
         *home = put("home", GOOD("https://home:1", "h"));
    kl_config_sources s = sources(flag, env, home);
    assert_ok(kl_config_load(&s, &c, &err), &err);
    assert_string_equal(c.server, "https://flag:1");
    assert_string_equal(c.context_namespace, "f");
    assert_string_equal(c.context, "x");
    assert_string_equal(c.source, flag);
    assert_string_equal(c.token, "tok");
    kl_config_fini(&c);
    s.explicit_file = NULL;
    assert_ok(kl_config_load(&s, &c, &err), &err);
    assert_string_equal(c.server, "https://env:1");
    kl_config_fini(&c);
    s.env = NULL;
    s.o.ns = "mine";
    s.o.timeout = "5s";
    assert_ok(kl_config_load(&s, &c, &err), &err);
    assert_string_equal(c.server, "https://home:1");
    assert_string_equal(c.context_namespace, "mine");
    assert_true(c.namespace_set);
    assert_int_equal(c.timeout, KL_SECONDS(5));
    kl_config copy;
    kl_config_copy(&copy, &c);
    kl_config_fini(&c);
    assert_string_equal(copy.server, "https://home:1");
    kl_config_fini(&copy);
}

static void the_environment_is_a_list_that_may_have_gaps(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_config c;
    char list[512];
    char *first = put("first", "current-context: yy\n"),
         *second = put(
             "second", CLUSTER("c", "https://two") "contexts: [{name: yy, context: {cluster: c}}]\n");
    snprintf(list, sizeof list, "%s:%s::%s", first, path("missing"), second);
    kl_config_sources s = sources(NULL, list, NULL);
    assert_ok(kl_config_load(&s, &c, &err), &err);
    assert_string_equal(c.server, "https://two");
    kl_config_fini(&c);
}

static void the_first_file_with_a_current_context_wins(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_config c;
    char list[512];
    char *first = put("first",
             "current-context: one\n" CLUSTER(
                 "c", "https://one") "contexts: [{name: one, context: {cluster: c}}]\n"),
         *second = put("second",
             "current-context: two\n" CLUSTER(
                 "d", "https://two") "contexts: [{name: two, context: {cluster: d}}]\n");
    snprintf(list, sizeof list, "%s:%s", first, second);
    kl_config_sources s = sources(NULL, list, NULL);
    assert_ok(kl_config_load(&s, &c, &err), &err);
    assert_string_equal(c.server, "https://one");
    kl_config_fini(&c);
}

static void without_any_configuration_the_error_has_advice(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_config c;
    kl_config_sources s = sources(NULL, NULL, path("missing"));
    assert_fails(kl_config_load(&s, &c, &err), KL_ENOTFOUND, &err,
        "no kubeconfig: give --kubeconfig FILE, set KUBECONFIG");
    s = sources(path("missing"), NULL, NULL);
    assert_fails(kl_config_load(&s, &c, &err), KL_ENOTFOUND, &err, "missing does not exist");
}

static void an_unknown_context_names_those_that_exist(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_config c;
    kl_config_sources s = sources(put("k", GOOD("https://h", "ns1")), NULL, NULL);
    s.o.context = "prod";
    assert_fails(kl_config_load(&s, &c, &err), KL_ENOTFOUND, &err,
        "context \"prod\" does not exist; known are: \"other\", \"x\"");
    s.o.context = NULL;
    s.o.user = "bob";
    assert_fails(
        kl_config_load(&s, &c, &err), KL_ENOTFOUND, &err, "user \"bob\" does not exist; known are: \"u\"");
    s.o.user = NULL;
    s.o.cluster = "z";
    assert_fails(
        kl_config_load(&s, &c, &err), KL_ENOTFOUND, &err, "cluster \"z\" does not exist; known are: \"c\"");
    s = sources(put("k", CLUSTER("c", "https://h")), NULL, NULL);
    assert_fails(
        kl_config_load(&s, &c, &err), KL_EINVAL, &err, "no current-context is set: name one with --context");
    s = sources(put("k",
                    "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, "
                    "cluster: {servr: 'https://h'}}]\n"),
        NULL, NULL);
    assert_fails(kl_config_load(&s, &c, &err), KL_EINVAL, &err, "cluster \"c\" has no server");
    s = sources(put("k", "current-context: x\ncontexts: [{name: x, context: {clustr: c}}]\n"), NULL, NULL);
    assert_fails(kl_config_load(&s, &c, &err), KL_EINVAL, &err, "the context names no cluster");
}

static void a_malformed_file_is_reported_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"clusters: [\n- name: x\n", "bad:2:1: "},
        {"a: b\n\tc: d\n", "bad:2:"},
        {"- a\n- b\n", "a kubeconfig is an object with clusters, users and contexts, this is array"},
        {"kind: Pod\napiVersion: v1\n", "this is a v1 Pod, not a kubeconfig"},
        {"users: {}\n", "users must be a list, not object"},
        {"users: [{name: u, user: {token: 123}}]\n",
            "users \"u\": token must be a string, not integer: put it in quotes"},
        {"users: [{name: u, user: 5}]\n", "users \"u\": user must be an object, not integer"},
        {"users: [a]\n", "users: each entry must be an object, not string"},
        {"users: [{name: u}, {name: u}]\n", "users: the name \"u\" occurs twice"},
        {"clusters: [{name: c, cluster: {insecure-skip-tls-verify: 'yes'}}]\n",
            "clusters \"c\": insecure-skip-tls-verify must be true or false, not string"},
        {"clusters: [{name: c, cluster: {certificate-authority-data: '?'}}]\n",
            "clusters \"c\": certificate-authority-data is not base64"},
        {"users: [{name: u, user: {as-groups: [1]}}]\n", "as-groups must be a list of strings"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_err err = KL_ERR_INIT;
        kl_config c;
        char *file = put("bad", cases[i].text);
        kl_config_sources s = sources(file, NULL, NULL);
        kl_status st = kl_config_load(&s, &c, &err);
        assert_int_equal(st, KL_ESYNTAX);
        if (!strstr(kl_err_message(&err), file) || !strstr(kl_err_message(&err), cases[i].part))
            fail_msg("\"%s\" lacks \"%s\" or the file's name", kl_err_message(&err), cases[i].part);
        kl_err_fini(&err);
    }
}

static void several_mistakes_are_reported_together(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_config c;
    kl_config_sources s = sources(
        put("k",
            "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
            "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: nope.crt, proxy-url: "
            "'ftp://p'}}]\n"
            "users: [{name: u, user: {token: a, password: b, client-certificate: a.crt}}]\n"),
        NULL, NULL);
    assert_int_equal(kl_config_load(&s, &c, &err), KL_EINVAL);
    const char *parts[] = {"both a token and a user name or password", "no client-key", "client-certificate ",
        "a.crt of \"u\" cannot be read: No such file", "proxy-url \"ftp://p\"",
        "nope.crt of \"c\" cannot be read"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(kl_err_message(&err), parts[i]))
            fail_msg("\"%s\" lacks \"%s\"", kl_err_message(&err), parts[i]);
    kl_err_fini(&err);
    s = sources(NULL, NULL, NULL);
    s.o.server = "https://h";
    s.o.ca_file = "nope.crt";
    assert_fails(kl_config_load(&s, &c, &err), KL_EINVAL, &err,
        "the options: certificate-authority nope.crt cannot be read: No such file");
}

static void a_file_that_would_block_is_rejected(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_config c;
    char *token = NULL;
    char *fifo = path("fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    kl_config_sources s = sources(fifo, NULL, NULL);
    assert_fails(kl_config_load(&s, &c, &err), KL_EIO, &err, "fifo is a FIFO, not a regular file");
    s = sources(NULL, NULL, NULL);
    s.o.server = "https://h";
    s.o.ca_file = fifo;
    assert_fails(kl_config_load(&s, &c, &err), KL_EINVAL, &err, "fifo is a FIFO, not a regular file");
    assert_fails(
        kl__auth_token_file(fifo, &token, &err), KL_EAUTH, &err, "fifo is a FIFO, not a regular file");
    assert_null(token);
}

static void a_server_must_be_a_valid_url(void **state)
{
    (void)state;
    static const struct {
        const char *server, *want;
    } cases[] = {
        {"h:8080", "http://h:8080"},
        {"https://h:6443/prefix/", "https://h:6443/prefix"},
        {"HTTPS://H", "HTTPS://H"},
        {"http://[::1]:80", "http://[::1]:80"},
        {"://bad", NULL},
        {"ftp://h", NULL},
        {"h:8080/x", NULL},
        {"https://", NULL},
        {"https://h?x", NULL},
        {"https://a b", NULL},
        {"unix:///x", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_err err = KL_ERR_INIT;
        kl_config c;
        kl_config_sources s = sources(NULL, NULL, NULL);
        s.o.server = cases[i].server;
        kl_status st = kl_config_load(&s, &c, &err);
        assert_int_equal(st, cases[i].want ? KL_OK : KL_EINVAL);
        if (!st) {
            assert_string_equal(c.server, cases[i].want);
            kl_config_fini(&c);
        }
        kl_err_fini(&err);
    }
}

static void a_server_without_tls_gets_no_credentials(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_config c;
    static const char text[] =
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: '%s', insecure-skip-tls-verify: true, tls-server-name: "
        "a.b}}]\n"
        "users: [{name: u, user: {token: t, client-certificate-data: YQ==, client-key-data: YQ==}}]\n";
    for (int plain = 0; plain < 2; plain++) {
        char *yaml = kl_sprintf(text, plain ? "http://h:1" : "https://h:1"), *file = put("plain", yaml);
        kl_config_sources s = sources(file, NULL, NULL);
        assert_ok(kl_config_load(&s, &c, &err), &err);
        assert_int_equal(c.insecure, !plain);
        assert_int_equal(c.token != NULL, !plain);
        assert_int_equal(c.cert_data != NULL, !plain);
        assert_int_equal(c.key_data != NULL, !plain);
        assert_int_equal(c.tls_server_name != NULL, !plain);
        kl_config_fini(&c);
        kl_free(yaml);
    }
}

static void tokens_and_contradictions_are_checked(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_config c;
    kl_config_sources s = sources(put("k", GOOD("https://h", "ns1")), NULL, NULL);
    s.o.token = "two\r\nX-Evil: 1";
    assert_fails(kl_config_load(&s, &c, &err), KL_EAUTH, &err, "the token has blanks or line breaks");
    s.o.token = NULL;
    s.o.timeout = "soon";
    assert_fails(kl_config_load(&s, &c, &err), KL_EINVAL, &err, "\"soon\" is not a time");
    s = sources(put("k",
                    "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
                    "clusters: [{name: c, cluster: {server: 'https://h', insecure-skip-tls-verify: true, "
                    "certificate-authority-data: QQ==}}]\n"),
        NULL, NULL);
    assert_fails(kl_config_load(&s, &c, &err), KL_EINVAL, &err,
        "insecure-skip-tls-verify together with a certificate-authority");
}

static void a_token_file_is_remembered_by_name(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_config c;
    put("tok", " abc\n");
    kl_config_sources s = sources(
        put("k",
            "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n" CLUSTER(
                "c", "https://h") "users: [{name: u, user: {tokenFile: tok}}]\n"),
        NULL, NULL);
    assert_ok(kl_config_load(&s, &c, &err), &err);
    assert_string_equal(c.token, "abc");
    assert_string_equal(c.token_file, path("tok"));
    kl_config_fini(&c);
}

static void in_cluster_reads_the_service_account(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    kl_config c;
    assert_fails(kl__config_in_cluster_from(dir, NULL, NULL, NULL, &c, &err), KL_ENOTFOUND, &err,
        "KUBERNETES_SERVICE_HOST");
    char *sa = path("sa");
    mkdir(sa, 0700);
    assert_fails(kl__config_in_cluster_from(sa, "10.0.0.1", "443", NULL, &c, &err), KL_EIO, &err,
        "sa/token cannot be read");
    put("sa/token", "sat\n");
    put("sa/namespace", "apps\n");
    assert_ok(kl__config_in_cluster_from(sa, "10.0.0.1", "443", NULL, &c, &err), &err);
    assert_string_equal(c.server, "https://10.0.0.1:443");
    assert_string_equal(c.context_namespace, "apps");
    assert_null(c.ca_file); /* unreadable: said in the log, not fatal */
    assert_true(c.in_cluster);
    kl_config_fini(&c);
    put("sa/ca.crt", "CA");
    assert_ok(kl__config_in_cluster_from(sa, "fd00::1", "443", "pod-ns", &c, &err), &err);
    assert_string_equal(c.server, "https://[fd00::1]:443");
    assert_string_equal(c.context_namespace, "pod-ns");
    assert_string_equal(c.ca_file, path("sa/ca.crt"));
    assert_string_equal(c.token, "sat");
    kl_config_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_flag_is_before_the_environment_before_home),
        cmocka_unit_test(the_environment_is_a_list_that_may_have_gaps),
        cmocka_unit_test(the_first_file_with_a_current_context_wins),
        cmocka_unit_test(without_any_configuration_the_error_has_advice),
        cmocka_unit_test(an_unknown_context_names_those_that_exist),
        cmocka_unit_test(a_malformed_file_is_reported_with_its_place),
        cmocka_unit_test(several_mistakes_are_reported_together),
        cmocka_unit_test(a_server_must_be_a_valid_url),
        cmocka_unit_test(a_server_without_tls_gets_no_credentials),
        cmocka_unit_test(tokens_and_contradictions_are_checked),
        cmocka_unit_test(a_token_file_is_remembered_by_name),
        cmocka_unit_test(a_file_that_would_block_is_rejected),
        cmocka_unit_test(in_cluster_reads_the_service_account),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

/* not in tsan: it starts no thread */
