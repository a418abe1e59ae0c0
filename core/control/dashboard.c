/* dashboard.c - the page's files, its stream of snapshots, and access to the control API.
 *
 * One thread makes a snapshot each second while a client is connected, and sends it to all that have taken
 * the previous one: slow clients skip snapshots. */
#include "control/dashboard.h"

#include <string.h>

#include "httpd/httpd.h"
#include "httpd/listen.h"
#include "base/locks.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "control/inspect.h"

#define EVERY KL_SECONDS(1)
#define VIEWERS_MAX 64
/* A snapshot of hundreds of controllers has some 100 KB. */
#define QUEUED_MAX ((size_t)8 << 20)

typedef struct viewer {
    kl_httpd_stream *stream;
    bool fresh;
} viewer; /* fresh: no snapshot was sent to it yet */

struct kl_dashboard {
    kl_dashboard_options o;
    char *token;
    bool loopback;
    kl_httpd *httpd;
    kl_thread *thread;
    kl_bell bell;
    kl_mutex mu;
    viewer viewers[VIEWERS_MAX] KL_GUARDED_BY(mu);
    size_t n KL_GUARDED_BY(mu);
    bool stopping KL_GUARDED_BY(mu);
};

#define TEXT "text/plain; charset=utf-8"
#define NO_SNIFF "X-Content-Type-Options: nosniff\r\n"
#define PAGE_HEADERS                                                                                         \
    NO_SNIFF "Cache-Control: no-cache\r\nReferrer-Policy: no-referrer\r\n"                                   \
             "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "            \
             "connect-src 'self'; img-src data:; "                                                           \
             "base-uri 'none'; form-action 'self'; frame-ancestors 'none'\r\n"

static void reply(kl_httpd_request *r, int code, const char *headers, const char *text)
{
    kl_httpd_reply(r, code, TEXT, headers, text, strlen(text));
}

/* Refuses a request in the control API's form. */
static void refuse(kl_httpd_request *r, int code, const char *headers, const char *message)
{
    char *text = kl_sprintf("{\"error\":\"%s\"}\n", message);
    kl_httpd_reply(r, code, "application/json", headers, text, strlen(text));
    kl_free(text);
}

/* --- who asks ----------------------------------------------------------------------------- */

/* Takes the same time wherever `said` differs. */
static bool same_secret(const char *said, const char *secret)
{
    size_t n = strlen(secret), k = strlen(said);
    unsigned char differs = n != k;
    for (size_t i = 0; i < k; i++)
        differs |= (unsigned char)(said[i] ^ secret[n ? i % n : 0]);
    return !differs;
}

typedef enum right { MAY, NO_TOKEN_HERE, NO_TOKEN_SAID, WRONG_TOKEN } right;

static right right_of(const kl_dashboard *d, const kl_httpd_request *r)
{
    const char *said = kl_httpd_header(r, "Authorization");
    if (!d->token)
        return NO_TOKEN_HERE;
    if (!said || strncmp(said, "Bearer ", 7))
        return NO_TOKEN_SAID;
    return same_secret(said + 7, d->token) ? MAY : WRONG_TOKEN;
}

static void refuse_right(kl_httpd_request *r, right why)
{
    static const char ASK[] = NO_SNIFF "WWW-Authenticate: Bearer realm=\"kubelua\"\r\n";
    if (why == NO_TOKEN_HERE)
        refuse(r, 403, NO_SNIFF,
            "this dashboard is read-only and hides the contents of objects: the process was started without "
            "--dashboard-token-file");
    else
        refuse(r, 401, ASK,
            why == NO_TOKEN_SAID
                ? "changes and the contents of objects need the token: Authorization: Bearer TOKEN"
                : "wrong token");
}

/* --- the stream --------------------------------------------------------------------------- */

static void begin_stream(kl_dashboard *d, kl_httpd_request *r)
{
    kl_lock(&d->mu);
    bool room = d->n < VIEWERS_MAX && !d->stopping;
    kl_unlock(&d->mu);
    if (!room) {
        reply(r, 503, NO_SNIFF "Retry-After: 5\r\n", "too many viewers: try again later\n");
        return;
    }
    kl_httpd_stream *s = kl_httpd_reply_stream(
        r, 200, "text/event-stream; charset=utf-8", NO_SNIFF "Cache-Control: no-store\r\n");
    static const char RETRY[] = "retry: 1000\n\n";
    (void)kl_httpd_stream_write(s, RETRY, sizeof RETRY - 1);
    kl_lock(&d->mu);
    room = d->n < VIEWERS_MAX && !d->stopping;
    if (room)
        d->viewers[d->n++] = (viewer){s, true};
    kl_unlock(&d->mu);
    if (room)
        kl_bell_ring(&d->bell);
    else
        kl_httpd_stream_close(s);
}

/* Drops disconnected clients; returns the number left. */
static size_t sweep(kl_dashboard *d)
{
    kl_lock(&d->mu);
    for (size_t i = 0; i < d->n;)
        if (kl_httpd_stream_gone(d->viewers[i].stream)) {
            kl_httpd_stream_close(d->viewers[i].stream);
            d->viewers[i] = d->viewers[--d->n];
        } else {
            i++;
        }
    size_t n = d->n;
    kl_unlock(&d->mu);
    return n;
}

static void show(kl_dashboard *d)
{
    const kl_value *v = kl_inspect_snapshot(d->o.manager);
    kl_buf text = KL_BUF_INIT;
    kl_buf_puts(&text, "event: snapshot\ndata: ");
    kl_value_encode(v, &text); /* on one line: control characters are escaped in JSON */
    kl_buf_puts(&text, "\n\n");
    kl_value_unref(v);
    kl_lock(&d->mu);
    for (size_t i = 0; i < d->n; i++) {
        viewer *w = &d->viewers[i];
        if (w->fresh || !kl_httpd_stream_queued(w->stream))
            (void)kl_httpd_stream_write(w->stream, text.data, text.len);
        w->fresh = false;
    }
    kl_unlock(&d->mu);
    kl_buf_fini(&text);
}

static bool stopping(kl_dashboard *d)
{
    kl_lock(&d->mu);
    bool is = d->stopping;
    kl_unlock(&d->mu);
    return is;
}

static void live(void *arg)
{
    kl_dashboard *d = arg;
    for (;;) {
        unsigned look = kl_bell_look(&d->bell);
        if (stopping(d))
            return;
        size_t n = sweep(d);
        if (n)
            show(d);
        kl_bell_wait(&d->bell, look, n ? kl_clock_now(kl_clock_real()) + EVERY : KL_NEVER);
    }
}

/* --- requests ----------------------------------------------------------------------------- */

static bool serve_file(kl_dashboard *d, kl_httpd_request *r, const char *path)
{
    const char *wanted = strcmp(path, "/") ? path : "/index.html";
    for (const kl_dashboard_file *f = d->o.files; f->path; f++)
        if (!strcmp(f->path, wanted)) {
            kl_httpd_reply(r, 200, f->type, PAGE_HEADERS, f->text, f->len);
            return true;
        }
    return false;
}

static void serve_control(kl_dashboard *d, kl_httpd_request *r, bool change)
{
    right may = right_of(d, r);
    bool guarded = kl_control_guarded(d->o.control, kl_httpd_path(r));
    if ((change || guarded) && may != MAY) {
        refuse_right(r, may);
        return;
    }
    /* The answer would show a line of any file of this machine that the client names. */
    if (change && !strcmp(kl_httpd_method(r), "POST") && !strcmp(kl_httpd_path(r), "/v1/shadow")) {
        refuse(r, 403, NO_SNIFF,
            "a candidate is a file of the machine that runs the process: start it there, with kubelua shadow "
            "CANDIDATE.lua");
        return;
    }
    if (change)
        kl_info("dashboard command", "method=%s path=%s loopback=%s", kl_httpd_method(r),
            kl_log_quoted(kl_httpd_path(r)), kl_httpd_from_loopback(r) ? "yes" : "no");
    kl_control_serve(d->o.control, r, "dashboard", change || guarded);
}

static void handle(void *arg, kl_httpd_request *r)
{
    kl_dashboard *d = arg;
    const char *method = kl_httpd_method(r), *path = kl_httpd_path(r);
    bool get = !strcmp(method, "GET"), api = !strncmp(path, "/v1/", 4);
    const char *foreign = d->loopback ? kl_httpd_foreign(r) : NULL;
    if (foreign && !strcmp(foreign, "Host"))
        refuse(r, 403, NO_SNIFF,
            "this dashboard listens on the loopback address and answers only to its names: localhost, "
            "127.0.0.1, [::1]");
    else if (foreign)
        refuse(r, 403, NO_SNIFF,
            "this dashboard listens on the loopback address and does not answer pages of other origins");
    else if (!api && !get && strcmp(method, "HEAD"))
        reply(r, 405, NO_SNIFF "Allow: GET, HEAD\r\n", "only GET is supported here\n");
    else if (get && !strcmp(path, "/v1/events"))
        begin_stream(d, r);
    else if (get && !strcmp(path, "/v1/token") && right_of(d, r) == MAY)
        kl_httpd_reply(r, 200, "application/json", NO_SNIFF, "{}\n", 3);
    else if (get && !strcmp(path, "/v1/token"))
        refuse_right(r, right_of(d, r));
    else if (api)
        serve_control(d, r, !get);
    else if (!serve_file(d, r, path))
        reply(r, 404, NO_SNIFF, "try /\n");
}

/* --- start and stop ----------------------------------------------------------------------- */

kl_status kl_dashboard_start(const kl_dashboard_options *o, kl_dashboard **out, kl_err *err)
{
    kl_dashboard *d = kl_new(kl_dashboard);
    d->o = *o;
    d->token = kl_strdup(o->token);
    kl_mutex_init_as(&d->mu, KL_LOCK_DASHBOARD);
    kl_bell_init(&d->bell);
    char *listen = *o->listen == ':' ? kl_sprintf("127.0.0.1%s", o->listen) : kl_strdup(o->listen);
    d->loopback = kl_listen_loopback(listen);
    kl_status st = kl_httpd_start(
        &(kl_httpd_options){.listen = listen, .max_queued = QUEUED_MAX, .handler = handle, .arg = d},
        &d->httpd, err);
    kl_free(listen);
    if (st) {
        kl_err_prefix(err, "--dashboard %s", o->listen);
        kl_dashboard_stop(d);
        return st;
    }
    d->thread = kl_thread_start("kl-dashboard", live, d);
    if (!d->loopback)
        kl_warn(d->token ? "the dashboard listens beyond this machine without TLS: its token and all it "
                           "shows cross the network in clear text; put a TLS proxy before it"
                         : "the dashboard listens beyond this machine without TLS or authentication: anyone "
                           "who reaches it sees objects; put a TLS proxy before it",
            "listen=%s", o->listen);
    kl_info("serving the dashboard", "url=http://%s/ changes=%s", kl_httpd_address(d->httpd),
        d->token ? "token" : "no");
    *out = d;
    return KL_OK;
}

const char *kl_dashboard_address(const kl_dashboard *d) { return kl_httpd_address(d->httpd); }

void kl_dashboard_stop(kl_dashboard *d)
{
    if (!d)
        return;
    kl_lock(&d->mu);
    d->stopping = true;
    kl_unlock(&d->mu);
    kl_bell_ring(&d->bell);
    kl_thread_join(d->thread);
    kl_httpd_stop(d->httpd);
    for (size_t i = 0; i < d->n; i++)
        kl_httpd_stream_close(d->viewers[i].stream);
    kl_mutex_fini(&d->mu);
    kl_free(d->token);
    kl_free(d);
}
