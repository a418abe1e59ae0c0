/* tls_test.c - the HTTP client over TLS with `openssl s_server` and certificates made here: trusted and
 * rejected servers, and the messages. Skipped without an openssl program. */
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/mem.h"
#include "base/sync.h"
#include "http/http.h"
#include "auth/kubeconfig.h"

#define WAIT KL_SECONDS(30)

extern char **environ;
static char dir[64];
static bool have_openssl;

static char *file(const char *name)
{
    static char buffers[8][96];
    static int next;
    char *b = buffers[next++ % 8];
    snprintf(b, sizeof buffers[0], "%s/%s", dir, name);
    return b;
}

/* Two CAs; certificates of the first for 127.0.0.1 and kube.test: good, expired; and one for a client. */
static const char script[] =
    "cd '%s' && exec 2>/dev/null && key() { openssl ecparam -name prime256v1 -genkey -noout -out $1.key; } "
    "&& "
    "ca() { key $1 && openssl req -x509 -new -key $1.key -subj /CN=$1 -days 30 -out $1.crt; } && ca good && "
    "ca other && "
    "printf 'subjectAltName=IP:127.0.0.1,DNS:kube.test\n' > san && "
    "cert() { key $1 && openssl req -new -key $1.key -subj /CN=$1 -out $1.csr && openssl x509 -req -in "
    "$1.csr -CA good.crt -CAkey good.key -CAcreateserial -days $2 -extfile san -out $1.crt; } && "
    "cert server 30 && cert expired -1 && cert client 30";

static int make_certificates(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/kubelua-tls-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    have_openssl = !system("command -v openssl >/dev/null 2>&1");
    char *command = kl_sprintf(script, dir);
    int rc = have_openssl ? system(command) : 0;
    kl_free(command);
    return rc;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

typedef struct server {
    pid_t pid;
    int out;
    char url[64];
} server;

/* Waits for "ACCEPT 127.0.0.1:PORT". */
static void server_start(server *s, const char *cert, bool wants_client)
{
    int out[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    char crt[96], key[96], ca[96];
    snprintf(crt, sizeof crt, "%s/%s.crt", dir, cert);
    snprintf(key, sizeof key, "%s/%s.key", dir, cert);
    snprintf(ca, sizeof ca, "%s/good.crt", dir);
    char *argv[16] = {"openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", crt, "-key", key, "-www"};
    char *more[] = {"-Verify", "1", "-verify_return_error", "-CAfile", ca};
    if (wants_client)
        memcpy(argv + 9, more, sizeof more);
    posix_spawn_file_actions_t fa;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
    assert_int_equal(posix_spawnp(&s->pid, "openssl", &fa, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&fa);
    close(out[1]);
    s->out = out[0];
    char text[1024];
    size_t n = 0;
    unsigned port = 0;
    for (char *at; !port;) {
        ssize_t got = read(s->out, text + n, sizeof text - 1 - n);
        assert_true(got > 0);
        text[n += (size_t)got] = '\0';
        if ((at = strstr(text, "ACCEPT 127.0.0.1:")) && strchr(at, '\n'))
            port = (unsigned)atoi(at + 17);
    }
    snprintf(s->url, sizeof s->url, "https://127.0.0.1:%u/", port);
}

static void server_stop(server *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    close(s->out);
}

typedef struct outcome {
    kl_mutex mu;
    kl_cond ended;
    bool done;
    kl_status st;
    int code;
    bool sent;
    kl_err err;
} outcome;

static void on_done(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    outcome *o = arg;
    kl_lock(&o->mu);
    o->st = st;
    o->code = code;
    o->sent = sent;
    kl_err_move(&o->err, err);
    o->done = true;
    kl_cond_broadcast(&o->ended);
    kl_unlock(&o->mu);
}

/* One GET; the outcome's error is the caller's. */
static outcome get(const server *s, kl_tls tls)
{
    outcome o = {0};
    kl_http *h;
    kl_err err = KL_ERR_INIT;
    kl_mutex_init(&o.mu);
    kl_cond_init(&o.ended);
    assert_ok(kl_http_new(&(kl_http_options){.name = "tls"}, &h, &err), &err);
    kl_http_submit(h,
        &(kl_http_request){
            .method = "GET", .url = s->url, .proxy = "", .tls = tls, .on_done = on_done, .arg = &o});
    kl_time deadline = kl_clock_now(kl_clock_real()) + WAIT;
    kl_lock(&o.mu);
    for (bool in_time = true; !o.done && in_time;)
        in_time = kl_cond_wait_until(&o.ended, &o.mu, deadline);
    kl_unlock(&o.mu);
    kl_http_free(h);
    kl_cond_fini(&o.ended);
    kl_mutex_fini(&o.mu);
    return o;
}

static void is_refused(outcome o, kl_status st, const char *part)
{
    assert_int_equal(o.st, st);
    if (!strstr(kl_err_message(&o.err), part))
        fail_msg("\"%s\" lacks \"%s\"", kl_err_message(&o.err), part);
    kl_err_fini(&o.err);
}

static void is_answered(outcome o)
{
    if (o.st)
        fail_msg("%s", kl_err_message(&o.err));
    assert_int_equal(o.code, 200);
}

#define NEED_OPENSSL                                                                                         \
    do {                                                                                                     \
        (void)state;                                                                                         \
        if (!have_openssl)                                                                                   \
            skip();                                                                                          \
    } while (0)

static char *read_all(const char *path)
{
    kl_buf b = KL_BUF_INIT;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl__file_read(path, &b, &err), &err);
    return kl_buf_take(&b);
}

static void the_right_ca_is_accepted_from_file_and_from_memory(void **state)
{
    NEED_OPENSSL;
    server s;
    server_start(&s, "server", false);
    is_answered(get(&s, (kl_tls){.ca_file = file("good.crt")}));
    char *pem = read_all(file("good.crt"));
    is_answered(get(&s, (kl_tls){.ca_pem = pem}));
    kl_free(pem);
    is_answered(get(&s, (kl_tls){.insecure = true}));
    server_stop(&s);
}

static void a_wrong_ca_is_named(void **state)
{
    NEED_OPENSSL;
    server s;
    char want[256];
    server_start(&s, "server", false);
    snprintf(want, sizeof want, "is signed by an unknown authority, not by %s", file("other.crt"));
    outcome o = get(&s, (kl_tls){.ca_file = file("other.crt")});
    assert_false(o.sent);
    is_refused(o, KL_ECONNECT, want);
    is_refused(get(&s, (kl_tls){0}), KL_ECONNECT, "not by the system's CAs");
    is_refused(get(&s, (kl_tls){.ca_file = file("missing.crt")}), KL_ECONNECT, "missing.crt cannot be used");
    server_stop(&s);
}

static void an_expired_certificate_is_called_so(void **state)
{
    NEED_OPENSSL;
    server s;
    server_start(&s, "expired", false);
    is_refused(get(&s, (kl_tls){.ca_file = file("good.crt")}), KL_ECONNECT, "has expired");
    server_stop(&s);
}

static void the_name_may_differ_from_the_address(void **state)
{
    NEED_OPENSSL;
    server s;
    server_start(&s, "server", false);
    is_answered(get(&s, (kl_tls){.ca_file = file("good.crt"), .server_name = "kube.test"}));
    is_refused(get(&s, (kl_tls){.ca_file = file("good.crt"), .server_name = "prod.test"}), KL_ECONNECT,
        "is not for \"prod.test\": set tls-server-name");
    server_stop(&s);
}

static void a_client_certificate_is_shown(void **state)
{
    NEED_OPENSSL;
    server s;
    server_start(&s, "server", true);
    is_answered(get(&s,
        (kl_tls){
            .ca_file = file("good.crt"), .cert_file = file("client.crt"), .key_file = file("client.key")}));
    char *cert = read_all(file("client.crt")), *key = read_all(file("client.key"));
    is_answered(get(&s, (kl_tls){.ca_file = file("good.crt"), .cert_pem = cert, .key_pem = key}));
    is_refused(get(&s, (kl_tls){.ca_file = file("good.crt"), .cert_pem = cert, .key_pem = "nonsense"}),
        KL_EAUTH, "the client certificate or key is unusable");
    kl_free(cert);
    kl_free(key);
    is_refused(get(&s,
                   (kl_tls){.ca_file = file("good.crt"),
                       .cert_file = file("missing.crt"),
                       .key_file = file("client.key")}),
        KL_EAUTH, "missing.crt");
    is_refused(
        get(&s, (kl_tls){.ca_file = file("good.crt")}), KL_EAUTH, "did not accept our client certificate");
    server_stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_right_ca_is_accepted_from_file_and_from_memory),
        cmocka_unit_test(a_wrong_ca_is_named),
        cmocka_unit_test(an_expired_certificate_is_called_so),
        cmocka_unit_test(the_name_may_differ_from_the_address),
        cmocka_unit_test(a_client_certificate_is_shown),
    };
    return cmocka_run_group_tests(tests, make_certificates, remove_dir);
}
