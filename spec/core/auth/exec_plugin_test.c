/* exec_plugin_test.c - credential plugins: their input, their valid output, and their failures. The programs
 * are scripts. */
#include "support/test.h"

#include "base/mem.h"
#include "value/value.h"
#include "auth/exec_plugin.h"

#define V1 "client.authentication.k8s.io/v1"
#define BETA "client.authentication.k8s.io/v1beta1"
#define CRED(status) "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\"" status "}"

static kl__exec_credential cred;
static kl_err err;

static kl_status parse(const char *text)
{
    return kl__exec_plugin_parse(text, strlen(text), V1, &cred, &err);
}

static void a_token_and_a_pair_with_an_end_are_taken(void **state)
{
    (void)state;
    assert_ok(parse(CRED(",\"status\":{\"token\":\"t\"}")), &err);
    assert_string_equal(cred.token, "t");
    assert_false(cred.expires);
    kl__exec_credential_fini(&cred);
    assert_ok(parse(CRED(",\"status\":{\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\","
                         "\"expirationTimestamp\":\"1970-01-01T00:01:00Z\",\"token\":\"\"}")),
        &err);
    assert_null(cred.token);
    assert_string_equal(cred.cert, "C");
    assert_string_equal(cred.key, "K");
    assert_true(cred.expires);
    assert_int_equal(cred.expiration, KL_SECONDS(60));
    kl__exec_credential_fini(&cred);
    assert_ok(parse("apiVersion: " V1
                    "\nkind: ExecCredential\nstatus:\n  token: yaml\n  expirationTimestamp: null\n"),
        &err);
    assert_string_equal(cred.token, "yaml");
    assert_false(cred.expires);
    kl__exec_credential_fini(&cred);
}

static void an_invalid_credential_is_reported_but_not_shown(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"s3cret", "it is not an ExecCredential"},
        {"", "it is not an ExecCredential"},
        {"{\"s3cret", "neither JSON nor YAML (8 bytes)"},
        {"[]", "it is not an ExecCredential"},
        {"{\"kind\":\"ExecCredential\"}", "the plugin answered with another"},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" BETA "\",\"status\":{\"token\":\"s3cret\"}}",
            "apiVersion " V1 " is configured, but the plugin answered with " BETA},
        {"{\"kind\":\"TokenReview\",\"apiVersion\":\"" V1 "\",\"status\":{\"token\":\"s3cret\"}}",
            "it is not an ExecCredential"},
        {CRED(""), "it has no status"},
        {CRED(",\"status\":null"), "it has no status"},
        {CRED(",\"status\":\"s3cret\""), "status must be an object"},
        {CRED(",\"status\":{}"), "neither a token nor"},
        {CRED(",\"status\":{\"token\":5}"), "status.token must be a string, not integer"},
        {CRED(",\"status\":{\"clientKeyData\":\"s3cret\"}"), "only one of"},
        {CRED(",\"status\":{\"clientCertificateData\":\"s3cret\"}"), "only one of"},
        {CRED(",\"status\":{\"token\":\"s3cret\",\"expirationTimestamp\":\"s3cret\"}"), "is not a time"},
        {CRED(",\"status\":{\"token\":\"s3cret\\r\\nX: y\"}"), "blanks or control characters"},
        {CRED(",\"status\":{\"token\":\"s3 cret\"}"), "blanks or control characters"},
        {CRED(",\"status\":{\"token\":\"s3cret\\u007f\"}"), "blanks or control characters"},
        {CRED(",\"status\":{\"token\":\"s3cret\\u0000x\"}"), "NUL"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_status st = parse(cases[i][0]);
        assert_null(strstr(kl_err_message(&err), "s3cret"));
        assert_fails(st, KL_ESYNTAX, &err, cases[i][1]);
    }
}

/* --- runs --------------------------------------------------------------------------------- */

static const kl_value *exec_of(const char *version, const char *script, const char *more)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", version);
    kl_build_key(b, "args");
    kl_build_array(b);
    kl_build_str(b, "-c");
    kl_build_str(b, script);
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b), *extra = NULL;
    assert_ok(kl_value_decode(more, strlen(more), &extra, &err), &err);
    for (size_t i = 0; i < kl_value_len(extra); i++) {
        const char *key;
        const kl_value *x = kl_value_member(extra, i, &key, NULL), *next = kl_value_with(v, key, x);
        kl_value_unref(v);
        v = next;
    }
    kl_value_unref(extra);
    return v;
}

static kl_status run(const char *script, const char *more, kl_time timeout)
{
    kl_config c;
    kl_config_for_server("https://h:1", &c);
    c.exec = exec_of(V1, script, more);
    c.exec_command = kl_strdup("sh");
    kl_child *child = kl_child_new();
    kl_status st = kl__exec_plugin_run(&c, child, timeout, &cred, &err);
    kl_child_free(child);
    kl_config_fini(&c);
    return st;
}

static void a_plugin_gets_its_arguments_environment_and_the_info(void **state)
{
    (void)state;
    setenv("KUBELUA_A", "ours", 1);
    setenv("KUBELUA_B", "ours", 1);
    assert_ok(
        run("printf '" CRED(
                ",\"status\":{\"token\":\"%s-%s-%s\"}") "' \"$KUBELUA_A\" \"$KUBELUA_B\" \"$(printf %s "
                                                        "\"$KUBERNETES_EXEC_INFO\" | tr -dc a-zA-Z0-9)\"",
            "{\"env\":[{\"name\":\"KUBELUA_B\",\"value\":\"theirs\"}],\"interactiveMode\":\"Never\"}", 0),
        &err);
    assert_string_equal(cred.token,
        "ours-theirs-kindExecCredentialapiVersionclientauthenticationk8siov1specinteractivefalse");
    kl__exec_credential_fini(&cred);
}

static void the_info_names_the_cluster_when_asked_to(void **state)
{
    (void)state;
    kl_config c;
    kl_config_for_server("https://h:1", &c);
    c.exec = exec_of(BETA, "", "{\"provideClusterInfo\":true}");
    char *info = kl__exec_plugin_info(&c, true);
    assert_string_equal(info,
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" BETA
        "\",\"spec\":{\"cluster\":{\"server\":\"https://h:1\",\"config\":null},\"interactive\":true}}");
    kl_free(info);
    c.ca_data = kl_strdup("PEM");
    c.tls_server_name = kl_strdup("n");
    c.proxy_url = kl_strdup("http://p");
    c.insecure = c.disable_compression = true;
    assert_ok(kl_value_decode("{\"audience\":\"x\"}", 16, &c.exec_cluster, &err), &err);
    info = kl__exec_plugin_info(&c, false);
    assert_string_equal(info,
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" BETA
        "\",\"spec\":{\"cluster\":{\"server\":\"https://h:1\",\"tls-server-name\":\"n\","
        "\"insecure-skip-tls-verify\":true,\"certificate-authority-data\":\"UEVN\",\"proxy-url\":\"http://"
        "p\",\"disable-compression\":true,\"config\":{\"audience\":\"x\"}},\"interactive\":false}}");
    kl_free(info);
    kl_config_fini(&c);
}

static void a_failing_plugin_is_reported_with_its_message_and_without_secrets(void **state)
{
    (void)state;
    static const struct {
        const char *script, *says;
    } cases[] = {
        {"echo 'please run: login' >&2; exit 3",
            "the credential plugin \"sh\" failed with exit code 3: please run: login"},
        {"echo s3cret; kill -TERM $$", "was killed by signal 15"},
        {"echo 'got eyJs3cret.s3cret.s3cret from idp' >&2; exit 1", "exit code 1: got *** from idp"},
        {"printf -- '-----BEGIN PRIVATE KEY-----\\ns3cret\\n-----END PRIVATE KEY-----\\nbad\\n' >&2; exit 1",
            "exit code 1: *** bad"},
        {"echo s3cret", "printed no usable credential: it is not an ExecCredential"},
        {"printf '\\n\\t\\001'; head -c 100 /dev/urandom", "printed no usable credential"},
        {"while :; do echo s3crets3crets3crets3cret; done",
            "gave no credentials: sh wrote more than 1024 KiB"},
        {"echo waiting >&2; sleep 100", "did not end within"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_status st = run(cases[i].script, "{\"interactiveMode\":\"Never\"}",
            strstr(cases[i].script, "sleep") ? KL_MILLISECONDS(300) : KL_SECONDS(60));
        assert_null(strstr(kl_err_message(&err), "s3cret"));
        assert_fails(st, KL_EAUTH, &err, cases[i].says);
    }
}

static void a_missing_plugin_is_reported_with_its_hint(void **state)
{
    (void)state;
    kl_config c;
    kl_config_for_server("https://h:1", &c);
    c.exec = exec_of(V1, "", "{\"installHint\":\"get it at example.com\",\"interactiveMode\":\"Never\"}");
    c.exec_command = kl_strdup("kubelua-no-such");
    kl_child *child = kl_child_new();
    assert_fails(kl__exec_plugin_run(&c, child, 0, &cred, &err), KL_EAUTH, &err,
        "\"kubelua-no-such\" is not installed: kubelua-no-such does not exist (looked for in PATH); get it "
        "at "
        "example.com");
    kl_child_free(child);
    kl_config_fini(&c);
}

static void a_plugin_that_must_ask_needs_a_terminal(void **state)
{
    (void)state;
    if (!kl_child_terminal())
        assert_fails(run("exit 0", "{\"interactiveMode\":\"Always\"}", 0), KL_EAUTH, &err,
            "its interactiveMode is Always, but standard input is not a terminal");
}

KL_TESTS(cmocka_unit_test(a_token_and_a_pair_with_an_end_are_taken),
    cmocka_unit_test(an_invalid_credential_is_reported_but_not_shown),
    cmocka_unit_test(a_plugin_gets_its_arguments_environment_and_the_info),
    cmocka_unit_test(the_info_names_the_cluster_when_asked_to),
    cmocka_unit_test(a_failing_plugin_is_reported_with_its_message_and_without_secrets),
    cmocka_unit_test(a_missing_plugin_is_reported_with_its_hint),
    cmocka_unit_test(a_plugin_that_must_ask_needs_a_terminal))

/* not in tsan: it starts no thread */
