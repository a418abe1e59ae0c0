/* https_test.c - our HTTP server over TLS, with certificates of our own CA, and our own client: trust, late
 * answers, and a certificate that is replaced under live connections. */
#include "support/test.h"

#include "base/clock.h"
#include "httpd/httpd.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/x509.h"
#include "base/x509_sign.h"
#include "http/http.h"

#define WAIT KL_SECONDS(30)
#define DAY KL_MINUTES(60 * 24)

typedef struct authority {
    char *cert, *key;
} authority;

static kl_time wall(void) { return kl_clock_wall(kl_clock_real()); }

static authority authority_new(const char *cn)
{
    authority a = {0};
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_x509_make_ca(cn, wall() - DAY, wall() + DAY, &a.cert, &a.key, &err), &err);
    return a;
}

static void authority_fini(authority *a)
{
    kl_free(a->cert);
    kl_x509_wipe(a->key);
}

static const char *const NAMES[] = {"hook.ns.svc", NULL}, *const IPS[] = {"127.0.0.1", NULL};

static void show(kl_keyring *k, const authority *ca)
{
    char *cert, *key;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_x509_make_server(&(kl_x509_wish){.cn = "hook.ns.svc", .dns = NAMES, .ips = IPS},
                  &(kl_x509_issue){ca->cert, ca->key, wall() - DAY, wall() + DAY}, &cert, &key, &err),
        &err);
    assert_ok(kl_keyring_set(k, cert, key, &err), &err);
    kl_free(cert);
    kl_x509_wipe(key);
}

static void late(void *arg) { kl_httpd_reply(arg, 200, "text/plain", NULL, "late", 4); }

static kl_thread *answering;

static void serve(void *arg, kl_httpd_request *r)
{
    (void)arg;
    size_t n;
    const char *body = kl_httpd_body(r, &n);
    if (!strcmp(kl_httpd_path(r), "/late"))
        answering = kl_thread_start("late", late, r);
    else
        kl_httpd_reply(r, 200, "text/plain", NULL, body, n);
}

typedef struct outcome {
    kl_mutex mu;
    kl_cond ended;
    bool done;
    kl_status st;
    int code;
    size_t bytes;
    kl_err err;
} outcome;

static kl_status on_data(void *arg, const char *data, size_t n, kl_err *err)
{
    (void)data, (void)err;
    ((outcome *)arg)->bytes += n;
    return KL_OK;
}

static void on_done(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    (void)sent;
    outcome *o = arg;
    kl_lock(&o->mu);
    o->st = st;
    o->code = code;
    kl_err_move(&o->err, err);
    o->done = true;
    kl_cond_broadcast(&o->ended);
    kl_unlock(&o->mu);
}

static kl_status post(
    kl_http *h, const char *url, const char *ca, const char *body, size_t n, size_t *bytes, kl_err *err)
{
    outcome o = {0};
    kl_mutex_init(&o.mu);
    kl_cond_init(&o.ended);
    kl_http_submit(h,
        &(kl_http_request){.method = "POST",
            .url = url,
            .proxy = "",
            .tls = {.ca_pem = ca},
            .body = body,
            .body_len = n,
            .on_data = on_data,
            .on_done = on_done,
            .arg = &o});
    kl_time deadline = kl_clock_now(kl_clock_real()) + WAIT;
    kl_lock(&o.mu);
    for (bool in_time = true; !o.done && in_time;)
        in_time = kl_cond_wait_until(&o.ended, &o.mu, deadline);
    kl_unlock(&o.mu);
    assert_true(o.done);
    if (!o.st)
        assert_int_equal(o.code, 200);
    *bytes = o.bytes;
    kl_err_move(err, &o.err);
    kl_cond_fini(&o.ended);
    kl_mutex_fini(&o.mu);
    return o.st;
}

typedef struct rig {
    kl_keyring *ring;
    kl_httpd *server;
    kl_http *http;
    char *url;
} rig;

static int start(void **state)
{
    rig *r = kl_new(rig);
    kl_err err = KL_ERR_INIT;
    r->ring = kl_keyring_new();
    assert_ok(kl_httpd_start(&(kl_httpd_options){.listen = "127.0.0.1:0", .tls = r->ring, .handler = serve},
                  &r->server, &err),
        &err);
    assert_ok(kl_http_new(&(kl_http_options){.name = "https"}, &r->http, &err), &err);
    r->url = kl_sprintf("https://%s/", kl_httpd_address(r->server));
    *state = r;
    return 0;
}

static int stop(void **state)
{
    rig *r = *state;
    kl_http_free(r->http);
    kl_thread_join(answering);
    answering = NULL;
    kl_httpd_stop(r->server);
    kl_keyring_free(r->ring);
    kl_free(r->url);
    kl_free(r);
    return 0;
}

static void clients_that_trust_the_ca_are_served_and_no_others(void **state)
{
    rig *r = *state;
    authority ca = authority_new("one"), other = authority_new("two");
    kl_err err = KL_ERR_INIT;
    size_t n;
    assert_true(kl_keyring_empty(r->ring));
    assert_int_not_equal(post(r->http, r->url, ca.cert, "hello", 5, &n, &err), KL_OK);
    kl_err_fini(&err);
    show(r->ring, &ca);
    assert_false(kl_keyring_empty(r->ring));
    assert_ok(post(r->http, r->url, ca.cert, "hello", 5, &n, &err), &err);
    assert_int_equal(n, 5);
    kl_http *stranger;
    assert_ok(kl_http_new(&(kl_http_options){.name = "stranger"}, &stranger, &err), &err);
    assert_fails(
        post(stranger, r->url, other.cert, "hello", 5, &n, &err), KL_ECONNECT, &err, "unknown authority");
    kl_http_free(stranger);
    authority_fini(&ca);
    authority_fini(&other);
}

static void large_bodies_and_late_answers_pass_through_tls(void **state)
{
    rig *r = *state;
    authority ca = authority_new("one");
    kl_err err = KL_ERR_INIT;
    size_t n, size = 7000000;
    show(r->ring, &ca);
    char *body = kl_zalloc(size), *url = kl_sprintf("%slate", r->url);
    memset(body, 'x', size);
    assert_ok(post(r->http, r->url, ca.cert, body, size, &n, &err), &err);
    assert_int_equal(n, size);
    assert_ok(post(r->http, url, ca.cert, "", 0, &n, &err), &err);
    assert_int_equal(n, 4);
    kl_free(body);
    kl_free(url);
    authority_fini(&ca);
}

static void a_new_pair_is_shown_to_new_connections_and_old_ones_live_on(void **state)
{
    rig *r = *state;
    authority one = authority_new("one"), two = authority_new("two");
    kl_err err = KL_ERR_INIT;
    size_t n;
    show(r->ring, &one);
    assert_ok(post(r->http, r->url, one.cert, "a", 1, &n, &err), &err);
    show(r->ring, &two);
    assert_ok(post(r->http, r->url, one.cert, "a", 1, &n, &err), &err); /* the same connection */
    kl_http *fresh;
    assert_ok(kl_http_new(&(kl_http_options){.name = "fresh"}, &fresh, &err), &err);
    assert_ok(post(fresh, r->url, two.cert, "a", 1, &n, &err), &err);
    kl_http_free(fresh);
    authority_fini(&one);
    authority_fini(&two);
}

static void a_keyring_without_a_pair_is_freed(void **state)
{
    (void)state;
    kl_keyring_free(kl_keyring_new());
    kl_keypair_unref(NULL);
}

static void an_invalid_pair_is_rejected_and_the_old_one_stays(void **state)
{
    rig *r = *state;
    authority one = authority_new("one"), two = authority_new("two");
    kl_err err = KL_ERR_INIT;
    size_t n;
    show(r->ring, &one);
    assert_fails(kl_keyring_set(r->ring, one.cert, two.key, &err), KL_EINVAL, &err,
        "the key does not belong to the certificate");
    assert_fails(kl_keyring_set(r->ring, "nonsense", two.key, &err), KL_ESYNTAX, &err,
        "does not contain a readable certificate");
    assert_ok(post(r->http, r->url, one.cert, "a", 1, &n, &err), &err);
    authority_fini(&one);
    authority_fini(&two);
}

static void a_signed_certificate_has_the_requested_fields(void **state)
{
    (void)state;
    authority ca = authority_new("one"), other = authority_new("two");
    char *cert, *key;
    kl_err err = KL_ERR_INIT;
    kl_x509_facts f;
    assert_ok(
        kl_x509_make_server(&(kl_x509_wish){.cn = "hook", .dns = NAMES, .ips = IPS},
            &(kl_x509_issue){ca.cert, ca.key, KL_SECONDS(1000), KL_SECONDS(2000000000)}, &cert, &key, &err),
        &err);
    assert_ok(kl_x509_facts_read(cert, &f, &err), &err);
    assert_string_equal(f.cn, "hook");
    assert_string_equal(f.dns[0], "hook.ns.svc");
    assert_string_equal(f.ips[0], "127.0.0.1");
    assert_int_equal(f.not_before, KL_SECONDS(1000));
    assert_int_equal(f.not_after, KL_SECONDS(2000000000));
    assert_ok(kl_x509_check_pair(cert, key, &err), &err);
    kl_x509_facts_fini(&f);
    kl_free(cert);
    kl_x509_wipe(key);
    assert_fails(kl_x509_make_server(&(kl_x509_wish){.cn = "hook"},
                     &(kl_x509_issue){ca.cert, other.key, 0, DAY}, &cert, &key, &err),
        KL_EINVAL, &err, "does not belong");
    assert_fails(kl_x509_make_server(&(kl_x509_wish){.cn = "hook"}, &(kl_x509_issue){"", other.key, 0, DAY},
                     &cert, &key, &err),
        KL_EINVAL, &err, "the CA's certificate cannot be read");
    authority_fini(&ca);
    authority_fini(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(clients_that_trust_the_ca_are_served_and_no_others, start, stop),
        cmocka_unit_test_setup_teardown(large_bodies_and_late_answers_pass_through_tls, start, stop),
        cmocka_unit_test_setup_teardown(
            a_new_pair_is_shown_to_new_connections_and_old_ones_live_on, start, stop),
        cmocka_unit_test_setup_teardown(an_invalid_pair_is_rejected_and_the_old_one_stays, start, stop),
        cmocka_unit_test(a_keyring_without_a_pair_is_freed),
        cmocka_unit_test(a_signed_certificate_has_the_requested_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
