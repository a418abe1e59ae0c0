/* credentials_test.c - credentials over time: plugins and an OIDC issuer are called once for all users, when
 * due and after a 401; files are watched. The server is a peer that knows the valid token; the plugins are
 * scripts that count their runs. */
#include "support/test.h"
#include "core/http/peer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include "base/log.h"
#include "value/value.h"
#include "client/client.h"
#include "auth/credentials.h"
#include "auth/kubeconfig.h"

#define START KL_SECONDS(784111777) /* Sun, 06 Nov 1994 08:49:37 GMT */
#define MANY 20

static const char *const verbs[] = {"get", "list", "watch", NULL};
static const kl_resource nodes = {.group = "",
    .version = "v1",
    .kind = "Node",
    .plural = "nodes",
    .singular = "node",
    .verbs = (char **)verbs};

typedef struct world {
    peer p;
    kl_client *c;
    kl_clock *clock;
    kl_err err;
    kl_mutex mu;
    kl_cond changed;
    char good[256];              /* the token that is accepted */
    char form[2048], basic[256]; /* the last refresh */
    const char *refreshed;       /* the answer to it */
    int refresh_code, refused_basic, discoveries;
    int done, cancelled; /* calls */
    kl_status st;
} world;

static char dir[64];

static char *path(const char *name)
{
    static char buffers[4][128];
    static int next;
    char *b = buffers[next++ % 4];
    snprintf(b, sizeof buffers[0], "%s/%s", dir, name);
    return b;
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(path(name), "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static char *read_file(const char *name)
{
    kl_buf b = KL_BUF_INIT;
    if (kl__file_read(path(name), &b, NULL))
        kl_buf_clear(&b);
    kl_buf_puts(&b, "");
    return kl_buf_take(&b);
}

static int runs(void)
{
    char *text = read_file("runs");
    int n = 0;
    for (char *p = text; p && *p; p++)
        n += *p == '\n';
    kl_free(text);
    return n;
}

static bool answer(peer *p, int fd, const request *r)
{
    world *w = p->arg;
    const char *sent = peer_header(r, "authorization");
    char body[512];
    kl_lock(&w->mu);
    bool good = sent && !strncmp(sent, "Bearer ", 7) && !strcmp(sent + 7, w->good);
    int code = good ? 200 : 401;
    snprintf(body, sizeof body, "%s", good ? "{\"apiVersion\":\"v1\",\"kind\":\"Node\"}" : "");
    if (strstr(r->path, "openid-configuration")) {
        w->discoveries++;
        code = 200;
        snprintf(body, sizeof body, "{\"token_endpoint\":\"%s/token\"}", p->url);
    } else if (!strcmp(r->path, "/token")) {
        snprintf(w->form, sizeof w->form, "%s", r->body);
        if (sent)
            snprintf(w->basic, sizeof w->basic, "%s", sent);
        bool refuse = sent && w->refused_basic;
        code = refuse ? 401 : w->refresh_code;
        snprintf(body, sizeof body, "%s", refuse ? "{\"error\":\"invalid_client\"}" : w->refreshed);
    } else if (good && strstr(r->path, "watch="))
        snprintf(body, sizeof body,
            "{\"type\":\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":"
            "\"n\"}}}\n");
    kl_unlock(&w->mu);
    return peer_reply(fd, code, "", body);
}

static const kl_value *decode(const char *text)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

/* A plugin: `script` runs in a shell with $D, the test's directory, and $N, the number of this run. */
static void use_plugin(kl_config *c, const char *script)
{
    char *whole = kl_sprintf(
        "D=%s; echo run >> $D/runs; N=$(wc -l < $D/runs); N=$(echo $N); %s", dir, script);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", "client.authentication.k8s.io/v1");
    kl_build_kstr(b, "interactiveMode", "Never");
    kl_build_key(b, "args");
    kl_build_array(b);
    kl_build_str(b, "-c");
    kl_build_str(b, whole);
    kl_build_end(b);
    kl_build_end(b);
    c->exec = kl_builder_done(b);
    c->exec_command = kl_strdup("sh");
    kl_free(whole);
}

#define SAY(status)                                                                                          \
    "echo "                                                                                                  \
    "'{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{" status   \
    "}}'"

static void world_start(world *w, const char *script, void (*adjust)(world *w, kl_config *config))
{
    memset(w, 0, sizeof *w);
    kl_mutex_init(&w->mu);
    kl_cond_init(&w->changed);
    w->refresh_code = 200;
    strcpy(dir, "/tmp/kubelua-cred-XXXXXX");
    assert_non_null(mkdtemp(dir));
    peer_start(&w->p, answer, w);
    w->clock = kl_clock_fake_new(KL_SECONDS(1000), START);
    kl_client_options o = {.clock = w->clock};
    kl_config_for_server(w->p.url, &o.config);
    o.config.proxy_url = kl_strdup("");
    if (script)
        use_plugin(&o.config, script);
    if (adjust)
        adjust(w, &o.config);
    assert_ok(kl_client_new(&o, &w->c, &w->err), &w->err);
}

static void world_stop(world *w)
{
    kl_client_free(w->c);
    peer_stop(&w->p);
    kl_err_fini(&w->err);
    kl_cond_fini(&w->changed);
    kl_mutex_fini(&w->mu);
    kl_clock_fake_free(w->clock);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

static void accept_token(world *w, const char *token)
{
    kl_lock(&w->mu);
    snprintf(w->good, sizeof w->good, "%s", token);
    kl_unlock(&w->mu);
}

static kl_status get(world *w)
{
    kl_op op;
    const kl_value *v = NULL;
    kl_op_init(&op, KL_GET, NULL);
    op.resource = &nodes;
    op.name = "n";
    kl_err_fini(&w->err);
    kl_status st = kl_client_wait(w->c, &op, &v, &w->err);
    kl_value_unref(v);
    return st;
}

static void on_reply(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    world *w = arg;
    (void)code;
    (void)body;
    (void)err;
    kl_lock(&w->mu);
    w->done++;
    w->cancelled += st == KL_ECANCELLED;
    if (st)
        w->st = st;
    kl_cond_broadcast(&w->changed);
    kl_unlock(&w->mu);
}

static uint64_t begin(world *w)
{
    kl_op op;
    kl_op_init(&op, KL_GET, NULL);
    op.resource = &nodes;
    op.name = "n";
    return kl_client_do(w->c, &op, on_reply, w);
}

static bool wait_done(world *w, int n)
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    bool in_time = true;
    kl_lock(&w->mu);
    while (w->done < n && in_time)
        in_time = kl_cond_wait_until(&w->changed, &w->mu, deadline);
    kl_unlock(&w->mu);
    return in_time;
}

/* --- plugins ------------------------------------------------------------------------------ */

static void one_run_serves_all_waiting_calls(void **state)
{
    (void)state;
    world w;
    world_start(&w, "while [ ! -e $D/go ]; do sleep 0.02; done; " SAY("\"token\":\"t'$N'\""), NULL);
    accept_token(&w, "t1");
    for (int i = 0; i < MANY; i++)
        begin(&w);
    write_file("go", "");
    assert_true(wait_done(&w, MANY));
    assert_int_equal(w.st, KL_OK);
    assert_int_equal(runs(), 1);
    assert_ok(get(&w), &w.err);
    assert_int_equal(runs(), 1);
    world_stop(&w);
}

static void make_certificate(void)
{
    char *command = kl_sprintf(
        "cd '%s' && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
        "-nodes -keyout key -subj /CN=a -days 30 -out crt 2>openssl.log",
        dir);
    assert_int_equal(system(command), 0);
    kl_free(command);
}

static void with_certificate_files(world *w, kl_config *c)
{
    (void)w;
    make_certificate();
    c->cert_file = kl_strdup(path("crt"));
    c->key_file = kl_strdup(path("key"));
}

static void with_certificate_texts(world *w, kl_config *c)
{
    (void)w;
    make_certificate();
    c->cert_data = read_file("crt");
    c->key_data = read_file("key");
}

/* As in kubectl: a user with a certificate needs no plugin, which may not even be installed. */
static void a_certificate_comes_before_a_plugin(void **state)
{
    (void)state;
    void (*const given[])(world * w, kl_config * config) = {with_certificate_files, with_certificate_texts};
    if (system("command -v openssl >/dev/null 2>&1"))
        skip();
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        world w;
        world_start(&w, SAY("\"token\":\"t'$N'\""), given[i]);
        accept_token(&w, "t1");
        assert_int_not_equal(get(&w), KL_OK); /* the server wants the plugin's token */
        assert_int_equal(w.err.http_code, 401);
        assert_int_equal(runs(), 0);
        world_stop(&w);
    }
}

static void an_expired_credential_is_renewed(void **state)
{
    (void)state;
    world w;
    world_start(&w, SAY("\"token\":\"t'$N'\",\"expirationTimestamp\":\"1994-11-06T08:50:37Z\""), NULL);
    accept_token(&w, "t1");
    assert_ok(get(&w), &w.err);
    kl_clock_advance(w.clock, KL_SECONDS(60));
    assert_ok(get(&w), &w.err);
    assert_int_equal(runs(), 1);
    kl_clock_advance(w.clock, KL_SECONDS(1));
    accept_token(&w, "t2");
    assert_ok(get(&w), &w.err);
    assert_int_equal(runs(), 2);
    world_stop(&w);
}

static void a_401_runs_the_plugin_again_and_replays_once(void **state)
{
    (void)state;
    world w;
    world_start(&w, SAY("\"token\":\"t'$N'\""), NULL);
    accept_token(&w, "t2");
    assert_ok(get(&w), &w.err);
    assert_int_equal(runs(), 2);
    assert_int_equal(atomic_load(&w.p.requests), 2);
    accept_token(&w, "another");
    assert_int_equal(get(&w), KL_EAUTH);
    assert_int_equal(runs(), 3);
    assert_int_equal(atomic_load(&w.p.requests), 4);
    assert_non_null(strstr(kl_err_message(&w.err), "the credentials that \"sh\" gives"));
    assert_null(strstr(kl_err_message(&w.err), "t3"));
    world_stop(&w);
}

static void the_same_token_again_is_not_sent_again(void **state)
{
    (void)state;
    world w;
    world_start(&w, SAY("\"token\":\"same\""), NULL);
    assert_int_equal(get(&w), KL_EAUTH);
    assert_int_equal(runs(), 2);
    assert_int_equal(atomic_load(&w.p.requests), 1);
    assert_int_equal(get(&w), KL_EAUTH); /* it has just been asked for in vain */
    assert_int_equal(runs(), 2);
    kl_clock_advance(w.clock, KL_SECONDS(11));
    assert_int_equal(get(&w), KL_EAUTH);
    assert_int_equal(runs(), 3);
    world_stop(&w);
}

static void a_plugin_that_fails_fails_the_call_and_is_tried_again(void **state)
{
    (void)state;
    world w;
    world_start(&w, "[ $N != 1 ] || { echo 'no network' >&2; exit 5; }; " SAY("\"token\":\"t'$N'\""), NULL);
    accept_token(&w, "t2");
    assert_fails(get(&w), KL_EAUTH, &w.err,
        "get nodes n: the credential plugin \"sh\" failed with exit code 5: no network");
    assert_int_equal(atomic_load(&w.p.requests), 0);
    assert_ok(get(&w), &w.err);
    world_stop(&w);
}

static void a_call_does_not_wait_for_a_plugin_longer_than_its_timeout(void **state)
{
    (void)state;
    world w;
    world_start(&w, "sleep 100", NULL);
    kl_op op;
    const kl_value *v = NULL;
    kl_op_init(&op, KL_GET, NULL);
    op.resource = &nodes;
    op.name = "n";
    op.timeout = KL_MILLISECONDS(200);
    assert_fails(kl_client_wait(w.c, &op, &v, &w.err), KL_ETIMEOUT, &w.err,
        "its timeout expired while waiting for the credentials that \"sh\" gives");
    kl_client_cancel(w.c, begin(&w));
    assert_true(wait_done(&w, 1));
    assert_int_equal(w.cancelled, 1);
    begin(&w);
    /* kills it: or this would take 100 s, and leave a child */
    world_stop(&w);
    assert_int_equal(w.cancelled, 2);
}

/* --- streams ------------------------------------------------------------------------------ */

static kl_status on_event(void *arg, const char *type, const kl_value *o, kl_err *err)
{
    world *w = arg;
    (void)type;
    (void)err;
    kl_value_unref(o);
    kl_lock(&w->mu);
    w->cancelled++; /* counts events here */
    kl_unlock(&w->mu);
    return KL_OK;
}

static void on_stream_done(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    (void)envelope;
    on_reply(arg, st, code, NULL, err);
}

static void begin_watch(void *arg)
{
    world *w = arg;
    kl_op op;
    kl_op_init(&op, KL_WATCH, NULL);
    op.resource = &nodes;
    kl_client_stream(w->c, &op,
        &(kl_stream_call){.event = on_event, .done = on_stream_done, .arg = w, .max_object = 1 << 20});
}

static void a_watch_gets_its_credentials_as_a_call_does(void **state)
{
    (void)state;
    world w;
    world_start(&w, SAY("\"token\":\"t'$N'\""), NULL);
    accept_token(&w, "t2");
    kl_http_post(kl_client_watch_http(w.c), begin_watch, &w);
    assert_true(wait_done(&w, 1));
    assert_int_equal(w.st, KL_OK);
    assert_int_equal(w.cancelled, 1);
    assert_int_equal(runs(), 2);
    accept_token(&w, "none");
    kl_http_post(kl_client_watch_http(w.c), begin_watch, &w);
    assert_true(wait_done(&w, 2));
    assert_int_equal(w.st, KL_EAUTH);
    world_stop(&w);
}

static void a_watch_that_waits_ends_with_the_client(void **state)
{
    (void)state;
    world w;
    world_start(&w, "sleep 100", NULL);
    kl_http_post(kl_client_watch_http(w.c), begin_watch, &w);
    world_stop(&w);
    assert_int_equal(w.done, 1);
    assert_int_equal(w.st, KL_ECANCELLED);
}

/* --- OIDC --------------------------------------------------------------------------------- */

/* Claims {"exp":784115377}, an hour after START; {"exp":784118977}, two hours; {"exp":1} */
#define HOUR "x.eyJleHAiOjc4NDExNTM3N30.one"
#define TWO_HOURS "x.eyJleHAiOjc4NDExODk3N30.two"
#define OLD "x.eyJleHAiOjF9.old"

static const char file_head[] = "# keep this\nusers:\n- name: other\n  user: {token: x}\n- name: u   # that "
                                "one\n  user:\n    auth-provider:\n      name: oidc\n      config:\n";

static void with_oidc(world *w, kl_config *c, const char *id_token)
{
    char *settings = kl_sprintf(
        "{\"idp-issuer-url\":\"%s/"
        "\",\"client-id\":\"me&\",\"client-secret\":\"s3cret\",\"refresh-token\":\"r3fresh\"%s%s%s}",
        w->p.url, id_token ? ",\"id-token\":\"" : "", id_token ? id_token : "", id_token ? "\"" : "");
    char *file = kl_sprintf(
        "%s        idp-issuer-url: i\n        refresh-token: r3fresh # soon another\n%s%s%s", file_head,
        id_token ? "        id-token: '" : "", id_token ? id_token : "", id_token ? "'\n" : "");
    write_file("config", file);
    assert_int_equal(chmod(path("config"), 0640), 0);
    c->auth_provider = kl_strdup("oidc");
    c->auth_provider_config = decode(settings);
    c->user = kl_strdup("u");
    c->user_file = kl_strdup(path("config"));
    kl_free(settings);
    kl_free(file);
}

static void with_fresh(world *w, kl_config *c) { with_oidc(w, c, HOUR); }
static void with_old(world *w, kl_config *c) { with_oidc(w, c, OLD); }
static void with_none(world *w, kl_config *c) { with_oidc(w, c, NULL); }

static void an_id_token_is_used_until_just_before_its_end(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL, with_fresh);
    w.refreshed = "{\"id_token\":\"" TWO_HOURS "\",\"refresh_token\":\"n3xt\"}";
    accept_token(&w, HOUR);
    assert_ok(get(&w), &w.err);
    kl_clock_advance(w.clock, KL_SECONDS(3600 - 10));
    assert_ok(get(&w), &w.err);
    assert_int_equal(w.discoveries, 0);
    kl_clock_advance(w.clock, KL_SECONDS(1));
    accept_token(&w, TWO_HOURS);
    assert_ok(get(&w), &w.err);
    assert_int_equal(w.discoveries, 1);
    assert_string_equal(w.form, "grant_type=refresh_token&refresh_token=r3fresh");
    assert_string_equal(w.basic, "Basic bWUlMjY6czNjcmV0"); /* me%26:s3cret */
    char *now = read_file("config"),
         *want = kl_sprintf("%s        idp-issuer-url: i\n        refresh-token: \"n3xt\" # soon another\n   "
                            "     id-token: \"%s\"\n",
             file_head, TWO_HOURS);
    assert_string_equal(now, want);
    struct stat s;
    assert_int_equal(stat(path("config"), &s), 0);
    assert_int_equal(s.st_mode & 0777, 0640);
    assert_int_equal(access(path("config.lock"), F_OK), -1);
    kl_free(now);
    kl_free(want);
    world_stop(&w);
}

static void a_provider_that_refuses_the_header_gets_a_form(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL, with_none);
    w.refreshed = "{\"id_token\":\"" HOUR "\"}";
    w.refused_basic = 1;
    accept_token(&w, HOUR);
    write_file("config.lock", ""); /* somebody writes: we go on without */
    assert_ok(get(&w), &w.err);
    assert_string_equal(
        w.form, "grant_type=refresh_token&refresh_token=r3fresh&client_id=me%26&client_secret=s3cret");
    char *now = read_file("config");
    assert_null(strstr(now, HOUR));
    kl_free(now);
    world_stop(&w);
}

static void tokens_that_others_refreshed_are_taken_from_the_file(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL, with_old);
    char *file = kl_sprintf("%s        refresh-token: n3xt\n        id-token: %s\n", file_head, HOUR);
    write_file("config", file);
    accept_token(&w, HOUR);
    assert_ok(get(&w), &w.err);
    assert_int_equal(w.discoveries, 0);
    w.refreshed = "{\"id_token\":\"" TWO_HOURS "\"}";
    accept_token(&w, TWO_HOURS);
    assert_ok(get(&w), &w.err); /* a 401, and nothing newer in the file */
    assert_string_equal(w.form, "grant_type=refresh_token&refresh_token=n3xt");
    kl_free(file);
    world_stop(&w);
}

static void a_401_refreshes_once(void **state)
{
    (void)state;
    world w;
    world_start(&w, NULL, with_fresh);
    w.refreshed = "{\"id_token\":\"" TWO_HOURS "\"}";
    accept_token(&w, TWO_HOURS);
    assert_ok(get(&w), &w.err);
    assert_int_equal(w.discoveries, 1);
    world_stop(&w);
}

static void a_failed_refresh_is_reported_without_secrets(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *answer, *says;
    } cases[] = {
        {400, "{\"error\":\"invalid_grant\",\"error_description\":\"expired\\nlong ago\"}",
            "the refresh returned HTTP 400: invalid_grant: expired long ago; log in again"},
        {500, "<html>r3fresh</html>", "the refresh returned HTTP 500"},
        {200, "<html>", "without an id_token"},
        {200, "{\"access_token\":\"s3cret\"}", "without an id_token"},
        {200, "{\"id_token\":\"s3cret\"}", "the id_token is unusable: it is not a JWT"},
        {200, "{\"id_token\":\"a.!.c\"}", "its claims cannot be read"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        world_start(&w, NULL, with_old);
        w.refresh_code = cases[i].code;
        w.refreshed = cases[i].answer;
        kl_status st = get(&w);
        assert_null(strstr(kl_err_message(&w.err), "s3cret"));
        assert_null(strstr(kl_err_message(&w.err), "r3fresh"));
        assert_non_null(
            strstr(kl_err_message(&w.err), "get nodes n: no token from the OIDC issuer http://127.0.0.1:"));
        assert_fails(st, KL_EAUTH, &w.err, cases[i].says);
        world_stop(&w);
    }
}

/* --- secrets ------------------------------------------------------------------------------ */

typedef struct logged {
    kl_buf text;
} logged;

static void on_log(void *arg, kl_log_level level, const char *message, const char *fields)
{
    logged *l = arg;
    (void)level;
    kl_buf_printf(&l->text, "%s %s\n", message, fields);
}

static void no_secret_is_logged(void **state)
{
    (void)state;
    logged l = {KL_BUF_INIT};
    kl_log_set_level(KL_LOG_DEBUG);
    kl_log_set_sink(on_log, &l);
    world w;
    world_start(
        &w, "echo 'eyJs3cret.s3cret' >&2; [ $N != 3 ] || exit 1; " SAY("\"token\":\"s3cret'$N'\""), NULL);
    accept_token(&w, "s3cret2");
    assert_ok(get(&w), &w.err);
    accept_token(&w, "none");
    assert_int_equal(get(&w), KL_EAUTH);
    world_stop(&w);
    world_start(&w, NULL, with_old);
    w.refreshed = "{\"id_token\":\"" TWO_HOURS "\",\"refresh_token\":\"s3cret\"}";
    accept_token(&w, TWO_HOURS);
    assert_ok(get(&w), &w.err);
    world_stop(&w);
    kl_log_set_sink(NULL, NULL);
    assert_non_null(strstr(kl_buf_str(&l.text), "no credentials")); /* the log was on */
    assert_null(strstr(kl_buf_str(&l.text), "s3cret"));
    assert_null(strstr(kl_buf_str(&l.text), "r3fresh"));
    assert_null(strstr(kl_buf_str(&l.text), TWO_HOURS));
    kl_buf_fini(&l.text);
}

KL_TESTS(cmocka_unit_test(one_run_serves_all_waiting_calls),
    cmocka_unit_test(a_certificate_comes_before_a_plugin), cmocka_unit_test(an_expired_credential_is_renewed),
    cmocka_unit_test(a_401_runs_the_plugin_again_and_replays_once),
    cmocka_unit_test(the_same_token_again_is_not_sent_again),
    cmocka_unit_test(a_plugin_that_fails_fails_the_call_and_is_tried_again),
    cmocka_unit_test(a_call_does_not_wait_for_a_plugin_longer_than_its_timeout),
    cmocka_unit_test(a_watch_gets_its_credentials_as_a_call_does),
    cmocka_unit_test(a_watch_that_waits_ends_with_the_client),
    cmocka_unit_test(an_id_token_is_used_until_just_before_its_end),
    cmocka_unit_test(a_provider_that_refuses_the_header_gets_a_form),
    cmocka_unit_test(tokens_that_others_refreshed_are_taken_from_the_file),
    cmocka_unit_test(a_401_refreshes_once), cmocka_unit_test(a_failed_refresh_is_reported_without_secrets),
    cmocka_unit_test(no_secret_is_logged))
