/* hostile_test.c - servers with answers that no API server gives: each call and stream ends in an error that
 * names the URL and the fact, in bounded time and memory. */
#include "support/test.h"
#include "core/http/peer.h"

#include "client/client.h"

static const char *const all_verbs[] = {
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch", NULL};
static const kl_resource pods = {.group = "",
    .version = "v1",
    .kind = "Pod",
    .plural = "pods",
    .singular = "pod",
    .verbs = (char **)all_verbs,
    .namespaced = true};

/* --- what a server may do ----------------------------------------------------------------- */

typedef bool trick(peer *p, int fd);

/* Sends the same bytes until the other side has enough. A client without a bound would be fed 64 MB. */
static bool flood(peer *p, int fd, const char *head, const char *again)
{
    size_t n = strlen(again), sent = 0;
    peer_send(fd, "%s", head);
    while (
        sent < (size_t)64 << 20 && !atomic_load(&p->stop) && send(fd, again, n, MSG_NOSIGNAL) == (ssize_t)n)
        sent += n;
    return false;
}

static bool html(peer *p, int fd)
{
    (void)p;
    return peer_send(fd,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 27\r\n\r\n<html>please log "
        "in</html>\n");
}
static bool half(peer *p, int fd)
{
    (void)p;
    peer_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"kind\":\"PodList\",\"items\":[");
    return false;
}
static bool unfinished(peer *p, int fd)
{
    (void)p;
    return peer_reply(fd, 200, "", "{\"kind\":\"PodList\",\"items\":[");
}
static bool more_than_said(peer *p, int fd)
{
    (void)p;
    peer_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n{\"kind\":\"PodList\",\"items\":[]}");
    return false;
}
static bool strange_length(peer *p, int fd)
{
    (void)p;
    peer_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}");
    return false;
}
static bool negative_length(peer *p, int fd)
{
    (void)p;
    peer_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}");
    return false;
}
static bool endless_headers(peer *p, int fd)
{
    return flood(p, fd, "HTTP/1.1 200 OK\r\n", "X-More: and more and more and more\r\n");
}
static bool endless_hints(peer *p, int fd)
{
    return flood(p, fd, "", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
}
static bool endless_continue(peer *p, int fd) { return flood(p, fd, "", "HTTP/1.1 100 Continue\r\n\r\n"); }
static bool endless_line(peer *p, int fd)
{
    return flood(p, fd, "HTTP/1.1 200 OK\r\nX-Long: ", "more and more and more and more ");
}
static bool endless_trailers(peer *p, int fd)
{
    return flood(p, fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
        "X-More: and more and more and more\r\n");
}
static bool bad_chunks(peer *p, int fd)
{
    (void)p;
    peer_send(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n{}\r\n");
    return false;
}
static bool bad_gzip(peer *p, int fd)
{
    (void)p;
    return peer_send(fd, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\nno gzip at");
}
static bool no_http(peer *p, int fd)
{
    (void)p;
    peer_send(fd, "SSH-2.0-OpenSSH_9.2\r\n");
    return false;
}
static bool empty(peer *p, int fd)
{
    (void)p;
    return peer_reply(fd, 200, "", "");
}
static bool other_json(peer *p, int fd)
{
    (void)p;
    return peer_reply(fd, 200, "", "{\"error\":\"session expired\"}");
}
static bool no_object(peer *p, int fd)
{
    (void)p;
    return peer_reply(fd, 200, "", "[1,2,3]");
}
static bool no_list(peer *p, int fd)
{
    (void)p;
    return peer_reply(fd, 200, "", "{\"kind\":\"PodList\",\"items\":{\"a\":1}}");
}
static bool deep(peer *p, int fd)
{
    (void)p;
    char body[4001];
    memset(body, '[', 4000);
    body[4000] = 0;
    return peer_reply(fd, 200, "", body);
}
static bool silent(peer *p, int fd)
{
    (void)p;
    (void)fd;
    return true;
}
static bool drip(peer *p, int fd)
{
    peer_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{\"a\":\"");
    while (!atomic_load(&p->stop) && send(fd, "x", 1, MSG_NOSIGNAL) == 1) {
        struct pollfd pf = {.fd = fd, .events = POLLIN}; /* until the client hangs up */
        if (poll(&pf, 1, 5) > 0)
            break;
    }
    return false;
}
static bool redirect_here(peer *p, int fd)
{
    char *to = kl_sprintf("Location: %s/api/v1/namespaces/ns/pods/a\r\n", p->url);
    bool keep = peer_reply(fd, 302, to, "");
    kl_free(to);
    return keep;
}
static bool redirect_away(peer *p, int fd)
{
    (void)p;
    return peer_reply(
        fd, 307, "Location: https://user:pass@elsewhere.example/login?token=secret#there\r\n", "");
}
static bool redirect_nowhere(peer *p, int fd)
{
    (void)p;
    return peer_reply(fd, 301, "", "moved");
}

/* For calls (GET of an object) and lists as streams; NULL: the one that matters to both. `of_list` NULL:
 * not asked. */
static const struct {
    const char *name;
    trick *does;
    kl_status st;
    const char *says, *says_of_list;
    kl_status list_st;
} tricks[] = {
    {"HTML", html, KL_ESERVER,
        "/pods/a is not the JSON it should be: ", "/pods is not the JSON it should be: ", KL_ESERVER},
    {"half a body", half, KL_ECLOSED, "ended early", "ended early", KL_ECLOSED},
    {"a body that ends too soon", unfinished, KL_ESERVER, "/pods/a is not the JSON", "/pods is not the JSON",
        KL_ESERVER},
    {"more than Content-Length says", more_than_said, KL_ESERVER, "is not the JSON", "is not the JSON",
        KL_ESERVER},
    {"a Content-Length that is not a number", strange_length, KL_ESERVER, "is not valid HTTP",
        "is not valid HTTP", KL_ESERVER},
    {"a negative Content-Length", negative_length, KL_ESERVER, "is not valid HTTP", "is not valid HTTP",
        KL_ESERVER},
    {"endless headers", endless_headers, KL_ETOOBIG, "more than 256 KiB of headers",
        "more than 256 KiB of headers", KL_ETOOBIG},
    {"endless early hints", endless_hints, KL_ETOOBIG, "more than 256 KiB of headers",
        "more than 256 KiB of headers", KL_ETOOBIG},
    {"endless 100 Continue", endless_continue, KL_ETOOBIG, "more than 256 KiB of headers",
        "more than 256 KiB of headers", KL_ETOOBIG},
    {"a header line without end", endless_line, KL_ETOOBIG, "a header line that is too long",
        "a header line that is too long", KL_ETOOBIG},
    {"endless trailers", endless_trailers, KL_ETOOBIG, "more than 256 KiB of headers",
        "more than 256 KiB of headers", KL_ETOOBIG},
    {"chunks that are none", bad_chunks, KL_ESERVER, "is not valid HTTP", "is not valid HTTP", KL_ESERVER},
    {"gzip that is none", bad_gzip, KL_ESERVER, NULL, "is not valid HTTP", KL_ESERVER},
    {"a protocol other than WebSocket", no_http, KL_ESERVER, "does not answer in HTTP",
        "does not answer in HTTP", KL_ESERVER},
    {"nothing", empty, KL_ESERVER, "/pods/a is empty", "/pods is not the JSON it should be", KL_ESERVER},
    {"somebody else's JSON", other_json, KL_ESERVER, "is not a Kubernetes object: it has no kind",
        "is not a Kubernetes object: it has no kind", KL_ESERVER},
    {"no object", no_object, KL_ESERVER, "is not a Kubernetes object", "is not the JSON it should be",
        KL_ESERVER},
    {"items that are no list", no_list, KL_OK, NULL, "", KL_ESERVER},
    {"brackets without end", deep, KL_ESERVER, "is not the JSON it should be", "is not the JSON it should be",
        KL_ESERVER},
    {"a redirect to itself", redirect_here, KL_ESERVER,
        "/pods/a (HTTP 302) to 127.0.0.1:", "the server redirects GET", KL_ESERVER},
    {"a redirect to another host", redirect_away, KL_ESERVER,
        "(HTTP 307) to elsewhere.example/login: redirects are not followed",
        "(HTTP 307) to elsewhere.example/login: ", KL_ESERVER},
    {"a redirect to nowhere", redirect_nowhere, KL_ESERVER, "(HTTP 301): redirects are not followed",
        "(HTTP 301): redirects are not followed", KL_ESERVER},
};

static bool play(peer *p, int fd, const request *r)
{
    (void)r;
    trick *t = *(trick **)p->arg;
    return t(p, fd);
}

/* --- calls -------------------------------------------------------------------------------- */

/* Less than the second after which a broken GET would be sent again: each trick is met once. */
#define PATIENCE KL_MILLISECONDS(900)

static kl_client *client_of(peer *p)
{
    kl_client_options o = {0};
    kl_client *c = NULL;
    kl_err err = KL_ERR_INIT;
    kl_config_for_server(p->url, &o.config);
    kl_free(o.config.proxy_url);
    o.config.proxy_url = kl_strdup("");
    kl_free(o.config.token);
    o.config.token = kl_strdup("s3cr3t");
    assert_ok(kl_client_new(&o, &c, &err), &err);
    return c;
}

static void assert_says(const char *trick, const kl_err *err, const char *says)
{
    const char *message = kl_err_message(err);
    if (!strstr(message, says) || strstr(message, "s3cr3t") || strstr(message, "secret")
        || strstr(message, "user:pass")) {
        print_error("%s: \"%s\" should say \"%s\" and no secret\n", trick, message, says);
        fail();
    }
}

static void a_call_ends_in_an_error_that_names_url_and_fact(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tricks / sizeof *tricks; i++) {
        if (!tricks[i].says)
            continue;
        trick *does = tricks[i].does;
        peer p;
        peer_start(&p, play, &does);
        kl_client *c = client_of(&p);
        kl_err err = KL_ERR_INIT;
        kl_op op;
        kl_op_init(&op, KL_GET, NULL);
        op.resource = &pods;
        op.ns = "ns";
        op.name = "a";
        op.timeout = PATIENCE;
        kl_status st = kl_client_wait(c, &op, NULL, &err);
        if (st != tricks[i].st)
            print_error(
                "%s: status %d, not %d: %s\n", tricks[i].name, st, tricks[i].st, kl_err_message(&err));
        assert_int_equal(st, tricks[i].st);
        assert_says(tricks[i].name, &err, tricks[i].says);
        assert_says(tricks[i].name, &err, "get pods ns/a");
        assert_int_equal(atomic_load(&p.requests), 1);
        kl_err_fini(&err);
        kl_client_free(c);
        peer_stop(&p);
    }
}

/* Every write meets HTML, nothing and a redirect as a read does, and is sent once. */
static void a_write_is_sent_once_whatever_comes_back(void **state)
{
    (void)state;
    static const struct {
        trick *does;
        const char *says;
    } answers[] = {
        {html, "is not the JSON it should be"},
        {redirect_away, "redirects are not followed"},
        {half, "ended early"},
        {endless_headers, "of headers"},
    };
    static const kl_verb verbs[] = {
        KL_CREATE, KL_UPDATE, KL_PATCH, KL_APPLY, KL_DELETE, KL_DELETE_COLLECTION};
    const kl_value *body = NULL;
    static const char text[] = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}";
    assert_int_equal(kl_value_decode(text, sizeof text - 1, &body, NULL), KL_OK);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        trick *does = answers[i].does;
        peer p;
        peer_start(&p, play, &does);
        kl_client *c = client_of(&p);
        for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++) {
            kl_err err = KL_ERR_INIT;
            kl_op op;
            kl_op_init(&op, verbs[v], NULL);
            op.resource = &pods;
            op.ns = "ns";
            op.name = verbs[v] == KL_DELETE_COLLECTION ? NULL : "a";
            op.body = verbs[v] == KL_DELETE || verbs[v] == KL_DELETE_COLLECTION ? NULL : body;
            op.timeout = KL_SECONDS(20);
            assert_true(kl_client_wait(c, &op, NULL, &err) != KL_OK);
            assert_says(kl_verb_name(verbs[v]), &err, answers[i].says);
            assert_says(kl_verb_name(verbs[v]), &err, kl_verb_name(verbs[v]));
            kl_err_fini(&err);
        }
        assert_int_equal(atomic_load(&p.requests), sizeof verbs / sizeof *verbs);
        kl_client_free(c);
        peer_stop(&p);
    }
    kl_value_unref(body);
}

static void silence_and_drops_end_at_the_timeout(void **state)
{
    (void)state;
    trick *const slow[] = {silent, drip};
    for (size_t i = 0; i < 2; i++) {
        trick *does = slow[i];
        peer p;
        peer_start(&p, play, &does);
        kl_client *c = client_of(&p);
        kl_err err = KL_ERR_INIT;
        kl_op op;
        kl_op_init(&op, KL_GET, NULL);
        op.resource = &pods;
        op.ns = "ns";
        op.name = "a";
        op.timeout = KL_MILLISECONDS(200);
        assert_int_equal(kl_client_wait(c, &op, NULL, &err), KL_ETIMEOUT);
        assert_says("slow", &err, "get pods ns/a: no whole answer from 127.0.0.1:");
        kl_err_fini(&err);
        kl_client_free(c);
        peer_stop(&p);
    }
}

/* --- streams ------------------------------------------------------------------------------ */

typedef struct ended {
    kl_client *c;
    kl_op op;
    kl_mutex mu;
    kl_cond changed;
    bool done;
    kl_status st;
    kl_err err;
    kl_stream_call call;
} ended;

static kl_status drop(void *arg, const kl_value *o, kl_err *err)
{
    (void)arg;
    (void)err;
    kl_value_unref(o);
    return KL_OK;
}
static kl_status drop_event(void *arg, const char *type, const kl_value *o, kl_err *err)
{
    (void)arg;
    (void)type;
    (void)err;
    kl_value_unref(o);
    return KL_OK;
}

static void on_end(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    ended *e = arg;
    (void)code;
    (void)envelope;
    kl_lock(&e->mu);
    e->st = st;
    kl_err_move(&e->err, err);
    e->done = true;
    kl_cond_broadcast(&e->changed);
    kl_unlock(&e->mu);
}

static void begin(void *arg)
{
    ended *e = arg;
    kl_client_stream(e->c, &e->op, &e->call);
}

static void stream_to_its_end(kl_client *c, kl_verb verb, ended *e)
{
    *e = (ended){.c = c, .call = {.item = drop, .event = drop_event, .done = on_end, .max_object = 1 << 20}};
    e->call.arg = e;
    kl_op_init(&e->op, verb, NULL);
    e->op.resource = &pods;
    e->op.ns = "ns";
    e->op.timeout = PATIENCE;
    kl_mutex_init(&e->mu);
    kl_cond_init(&e->changed);
    kl_http_post(kl_client_watch_http(c), begin, e);
    kl_time until = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    kl_lock(&e->mu);
    while (!e->done && kl_cond_wait_until(&e->changed, &e->mu, until))
        continue;
    kl_unlock(&e->mu);
    assert_true(e->done);
}

static void ended_fini(ended *e)
{
    kl_err_fini(&e->err);
    kl_cond_fini(&e->changed);
    kl_mutex_fini(&e->mu);
}

static void a_list_and_a_watch_end_in_an_error_too(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tricks / sizeof *tricks; i++) {
        trick *does = tricks[i].does;
        peer p;
        peer_start(&p, play, &does);
        kl_client *c = client_of(&p);
        ended e;
        stream_to_its_end(c, KL_LIST, &e);
        if (e.st != tricks[i].list_st)
            print_error("%s, list: status %d, not %d: %s\n", tricks[i].name, e.st, tricks[i].list_st,
                kl_err_message(&e.err));
        assert_int_equal(e.st, tricks[i].list_st);
        assert_says(tricks[i].name, &e.err, tricks[i].says_of_list);
        assert_says(tricks[i].name, &e.err, "list pods ns");
        ended_fini(&e);
        /* an empty watch ended cleanly */
        if (does != empty && does != other_json && does != no_list) {
            stream_to_its_end(c, KL_WATCH, &e);
            if (!e.st)
                print_error("%s, watch: no error\n", tricks[i].name);
            assert_true(e.st != KL_OK);
            assert_says(tricks[i].name, &e.err, "watch pods ns");
            ended_fini(&e);
        }
        kl_client_free(c);
        peer_stop(&p);
    }
}

KL_TESTS(cmocka_unit_test(a_call_ends_in_an_error_that_names_url_and_fact),
    cmocka_unit_test(a_write_is_sent_once_whatever_comes_back),
    cmocka_unit_test(silence_and_drops_end_at_the_timeout),
    cmocka_unit_test(a_list_and_a_watch_end_in_an_error_too))
