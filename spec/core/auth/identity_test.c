/* identity_test.c - CAs and certificates in files: checked when read, read again after a change, and kept
 * when the new ones are invalid. Skipped without an openssl program. */
#include "support/test.h"
#include "core/http/peer.h"

#include <unistd.h>
#include "base/buf.h"
#include "base/locks.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/x509.h"
#include "client/client.h"
#include "auth/credentials.h"
#include "auth/kubeconfig.h"

#define WAIT KL_SECONDS(20)

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

static int make_certificates(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/kubelua-identity-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    have_openssl = !system("command -v openssl >/dev/null 2>&1");
    char *command = kl_sprintf(
        "cd '%s' && exec 2>/dev/null && for n in a b; do openssl req -x509 -newkey ec -pkeyopt "
        "ec_paramgen_curve:prime256v1 -nodes -keyout $n.key -subj /CN=$n -days 30 -out $n.crt || exit 1; "
        "done; "
        "openssl pkey -in a.key -aes128 -passout pass:x -out locked.key && echo garbage > bad && cat a.crt "
        "b.crt > both && { cat a.crt; echo -----BEGIN CERTIFICATE-----; } > cut",
        dir);
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

static char *text_of(const char *name)
{
    kl_buf b = KL_BUF_INIT;
    assert_int_equal(kl__file_read(file(name), &b, NULL), KL_OK);
    return kl_buf_take(&b);
}

/* As a rotation does it: the whole file at once. */
static void copy(const char *from, const char *to)
{
    char *command = kl_sprintf(
        "cp '%s' '%s.new' && mv '%s.new' '%s'", file(from), file(to), file(to), file(to));
    assert_int_equal(system(command), 0);
    kl_free(command);
}

static void pem_text_is_checked(void **state)
{
    (void)state;
    if (!have_openssl)
        skip();
    kl_err err = KL_ERR_INIT;
    char *a = text_of("a.crt"), *both = text_of("both"), *cut = text_of("cut"), *ka = text_of("a.key"),
         *kb = text_of("b.key"), *locked = text_of("locked.key");
    assert_ok(kl_x509_check(a, &err), &err);
    assert_ok(kl_x509_check(both, &err), &err);
    assert_fails(kl_x509_check(cut, &err), KL_ESYNTAX, &err, "does not contain a readable certificate");
    assert_fails(kl_x509_check("", &err), KL_ESYNTAX, &err, "does not contain a readable certificate");
    assert_fails(kl_x509_check(ka, &err), KL_ESYNTAX, &err, "does not contain a readable certificate");
    assert_ok(kl_x509_check_pair(a, ka, &err), &err);
    assert_fails(
        kl_x509_check_pair(a, kb, &err), KL_EINVAL, &err, "the key does not belong to the certificate");
    assert_fails(kl_x509_check_pair(a, a, &err), KL_ESYNTAX, &err, "does not contain a readable private key");
    assert_fails(kl_x509_check_pair(a, locked, &err), KL_ESYNTAX, &err, "needs a passphrase");
    assert_fails(
        kl_x509_check_pair(ka, ka, &err), KL_ESYNTAX, &err, "does not contain a readable certificate");
    kl_time end = 0;
    assert_ok(kl_x509_not_after(a, &end, &err), &err);
    kl_time left = end - kl_clock_wall(kl_clock_real());
    assert_true(left > KL_SECONDS(29 * 86400) && left < KL_SECONDS(31 * 86400));
    kl_free(a);
    kl_free(both);
    kl_free(cut);
    kl_free(ka);
    kl_free(kb);
    kl_free(locked);
}

static void unusable_files_are_named(void **state)
{
    (void)state;
    if (!have_openssl)
        skip();
    static const struct {
        const char *ca, *cert, *key, *says;
    } cases[] = {
        {"nothing", NULL, NULL, "certificate-authority: "},
        {"bad", NULL, NULL, "the CA ("},
        {NULL, "a.crt", "b.key", "b.key): the key does not belong"},
        {NULL, "bad", "a.key", "bad) and its key ("},
        {NULL, "a.crt", "nothing", "client-key: "},
        {NULL, "a.crt", "locked.key", "passphrase"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kl_config c;
        kl_err err = KL_ERR_INIT;
        kl__identity *id = NULL;
        kl_config_for_server("https://h", &c);
        c.ca_file = cases[i].ca ? kl_strdup(file(cases[i].ca)) : NULL;
        c.cert_file = cases[i].cert ? kl_strdup(file(cases[i].cert)) : NULL;
        c.key_file = cases[i].key ? kl_strdup(file(cases[i].key)) : NULL;
        assert_fails(kl__identity_load(&c, NULL, NULL, &id, &err), KL_EAUTH, &err, cases[i].says);
        kl_config_fini(&c);
    }
}

typedef struct watcher {
    kl_mutex mu;
    kl_cond changed;
    int moves, warnings;
} watcher;

static void on_moved(void *arg)
{
    watcher *w = arg;
    kl_lock(&w->mu);
    w->moves++;
    kl_cond_broadcast(&w->changed);
    kl_unlock(&w->mu);
}

static void on_log(void *arg, kl_log_level level, const char *message, const char *fields)
{
    watcher *w = arg;
    (void)fields;
    if (level != KL_LOG_WARN || !strstr(message, "the old ones stay"))
        return;
    kl_lock(&w->mu);
    w->warnings++;
    kl_cond_broadcast(&w->changed);
    kl_unlock(&w->mu);
}

static bool wait_for(watcher *w, int *count, int n)
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + WAIT;
    bool in_time = true;
    kl_lock(&w->mu);
    while (*count < n && in_time)
        in_time = kl_cond_wait_until(&w->changed, &w->mu, deadline);
    kl_unlock(&w->mu);
    return in_time;
}

static void take_credential(void *arg, kl_status st, kl__credential *cred, kl_err *err)
{
    assert_ok(st, err);
    *(kl__credential **)arg = kl__credential_ref(cred);
}

static void files_that_change_take_over_and_bad_ones_do_not(void **state)
{
    (void)state;
    if (!have_openssl)
        skip();
    watcher w = {0};
    kl_mutex_init_as(&w.mu, KL_LOCK_SINK);
    kl_cond_init(&w.changed);
    kl_config c;
    kl_config_for_server("https://h", &c);
    copy("a.crt", "ca");
    copy("a.crt", "crt");
    copy("a.key", "key");
    c.ca_file = kl_strdup(file("ca"));
    c.cert_file = kl_strdup(file("crt"));
    c.key_file = kl_strdup(file("key"));
    kl_log_set_sink(on_log, &w);
    kl__credentials *cs = kl__credentials_new(&c, kl_clock_real(), NULL, on_moved, &w);
    kl__credential *first = NULL, *now = NULL;
    assert_int_equal(kl__credentials_get(cs, NULL, NULL, take_credential, &first), 0);
    char *a = text_of("a.crt"), *b = text_of("b.crt");
    assert_string_equal(first->identity->cert, a);
    copy("b.crt", "ca");
    assert_true(wait_for(&w, &w.moves, 1));
    kl__credentials_get(cs, NULL, NULL, take_credential, &now);
    assert_string_equal(now->identity->ca, b);
    assert_string_equal(now->identity->cert, a);
    assert_true(now->identity->generation != first->identity->generation);
    assert_string_equal(first->identity->ca, a); /* who holds the old one keeps it */
    kl__credential_unref(first);
    kl__credential_unref(now);
    copy("b.crt", "crt"); /* half a rotation: no pair */
    assert_true(wait_for(&w, &w.warnings, 1));
    kl__credentials_get(cs, NULL, NULL, take_credential, &now);
    assert_string_equal(now->identity->cert, a);
    kl__credential_unref(now);
    copy("b.key", "key");
    assert_true(wait_for(&w, &w.moves, 2));
    kl__credentials_get(cs, NULL, NULL, take_credential, &now);
    assert_string_equal(now->identity->cert, b);
    kl__credential_unref(now);
    assert_int_equal(unlink(file("ca")), 0);
    assert_true(wait_for(&w, &w.warnings, 2));
    kl__identity *id = kl__credentials_identity(cs);
    assert_string_equal(id->ca, b);
    kl__identity_unref(id);
    kl__credentials_free(cs);
    kl_log_set_sink(NULL, NULL);
    assert_int_equal(w.moves, 2);
    kl_free(a);
    kl_free(b);
    kl_config_fini(&c);
    kl_cond_fini(&w.changed);
    kl_mutex_fini(&w.mu);
}

/* --- a watch moves ------------------------------------------------------------------------ */

static const char *const verbs[] = {"list", "watch", NULL};
static const kl_resource pods = {.group = "",
    .version = "v1",
    .kind = "Pod",
    .plural = "pods",
    .singular = "pod",
    .verbs = (char **)verbs,
    .namespaced = true};

/* A watch that stays open with an event in it; a list that is slow to end. */
static bool answer(peer *p, int fd, const request *r)
{
    (void)p;
    if (strstr(r->path, "watch="))
        return peer_send(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n58\r\n%s\n\r\n",
            "{\"type\":\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":"
            "\"abcdef\"}}}");
    return peer_send(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3b\r\n%s\r\n",
        "{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"metadata\":{},\"items\":[");
}

typedef struct mover {
    watcher w;
    kl_client *c;
    int opened, watch_ends, list_ends;
    kl_status watch_st;
} mover;

static kl_status on_event(void *arg, const char *type, const kl_value *o, kl_err *err)
{
    (void)arg;
    (void)type;
    (void)err;
    kl_value_unref(o);
    return KL_OK;
}

static kl_status on_item(void *arg, const kl_value *o, kl_err *err) { return on_event(arg, "", o, err); }

static void on_opened(void *arg)
{
    mover *m = arg;
    kl_lock(&m->w.mu);
    m->opened++;
    kl_cond_broadcast(&m->w.changed);
    kl_unlock(&m->w.mu);
}

static void on_watch_done(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    mover *m = arg;
    (void)code;
    (void)envelope;
    (void)err;
    kl_lock(&m->w.mu);
    m->watch_ends++;
    m->watch_st = st;
    kl_cond_broadcast(&m->w.changed);
    kl_unlock(&m->w.mu);
}

static void on_list_done(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    mover *m = arg;
    (void)st;
    (void)code;
    (void)envelope;
    (void)err;
    m->list_ends++;
}

static void begin(void *arg)
{
    mover *m = arg;
    kl_op op;
    kl_op_init(&op, KL_WATCH, NULL);
    op.resource = &pods;
    kl_client_stream(m->c, &op,
        &(kl_stream_call){
            .event = on_event, .opened = on_opened, .done = on_watch_done, .arg = m, .max_object = 1 << 20});
    op.verb = KL_LIST;
    kl_client_stream(m->c, &op,
        &(kl_stream_call){
            .item = on_item, .opened = on_opened, .done = on_list_done, .arg = m, .max_object = 1 << 20});
}

static void watches_move_over_cleanly_and_lists_finish(void **state)
{
    (void)state;
    if (!have_openssl)
        skip();
    mover m = {0};
    peer p;
    kl_err err = KL_ERR_INIT;
    kl_mutex_init(&m.w.mu);
    kl_cond_init(&m.w.changed);
    peer_start(&p, answer, NULL);
    kl_client_options o = {0};
    kl_config_for_server(p.url, &o.config);
    copy("a.crt", "ca");
    o.config.proxy_url = kl_strdup("");
    o.config.ca_file = kl_strdup(file("ca"));
    assert_ok(kl_client_new(&o, &m.c, &err), &err);
    kl_http_post(kl_client_watch_http(m.c), begin, &m);
    assert_true(wait_for(&m.w, &m.opened, 2));
    copy("b.crt", "ca");
    assert_true(wait_for(&m.w, &m.watch_ends, 1));
    assert_int_equal(m.watch_st, KL_OK);
    assert_int_equal(m.list_ends, 0);
    kl_client_free(m.c);
    assert_int_equal(m.list_ends, 1);
    peer_stop(&p);
    kl_cond_fini(&m.w.changed);
    kl_mutex_fini(&m.w.mu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pem_text_is_checked),
        cmocka_unit_test(unusable_files_are_named),
        cmocka_unit_test(files_that_change_take_over_and_bad_ones_do_not),
        cmocka_unit_test(watches_move_over_cleanly_and_lists_finish),
    };
    return cmocka_run_group_tests(tests, make_certificates, remove_dir);
}
