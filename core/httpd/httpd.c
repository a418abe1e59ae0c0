/* httpd.c - the only door to libmicrohttpd.
 *
 * A request gathers its body, then meets the handler once:
 *   reading --body complete--> handled --reply--> queued --sent--> completed
 *   handled without reply: parked (suspended) --reply, any thread--> queued
 * libmicrohttpd does not poll a suspended connection, therefore kl_hangup watches its socket. It must not be
 * stopped while anything is suspended: stopping marks and resumes all, and from then on nothing suspends any
 * more.
 *
 * A request with an arriving body is watched by kl_hangup as well: libmicrohttpd does not see an end of the
 * connection that came together with data (0.9.75, edge-triggered), and would hold both for as long as an
 * idle connection may live. Once the reading side is shut down by us it looks again. What all bodies hold
 * together is bounded.
 *
 * Answers that go on are stream.c, what a request says is request.c, how long a connection may take
 * connection.c. */
#include "httpd/httpd_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/locks.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "httpd/listen.h"

#define MAX_BODY ((size_t)16 << 20)
#define MAX_QUEUED ((size_t)256 << 20)
#define CONN_MEMORY                                                                                          \
    ((size_t)96 << 10) /* headers and the block being sent: URLs with long selectors must fit */
#define MAX_BODIES ((size_t)256 << 20) /* of all requests together */
#define IDLE_SECONDS 600u              /* keep-alive connections; suspended ones do not count */
#define READ_SECONDS 32u               /* of a head in all, and of a body or an answer that stands still */
#define WHOLE_TIMES 2u /* times READ_SECONDS: a whole body, or an answer beyond the time of its length */
#define SEND_RATE ((size_t)32 << 10) /* bytes a second, at which a client reads a large answer at least */
#define CONNECTIONS                                                                                          \
    16384u /* libmicrohttpd's own default is for select(); the process' file limit decides first */

/* After all received data was read, libmicrohttpd is woken, and finds the end; woken earlier, it would stop
 * at the last piece again. The socket is open as long as the request is listed. */
static void body_ended_locked(kl_httpd *h, kl_httpd_request *r) KL_REQUIRES(h->mu)
{
    (void)h; /* only for KL_REQUIRES */
    char any;
    if (r->ended && recv(r->fd, &any, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
        shutdown(r->fd, SHUT_RD);
}

static void end_of_body_locked(kl_httpd *h, uint64_t id) KL_REQUIRES(h->mu)
{
    for (kl_list *l = h->coming.next; l != &h->coming; l = l->next) {
        kl_httpd_request *r = KL_CONTAINER(l, kl_httpd_request, link);
        if (r->id != id)
            continue;
        r->ended = true;
        body_ended_locked(h, r);
    }
}

/* Hang-up thread. */
static void peer_gone(void *arg, uint64_t id)
{
    kl_httpd *h = arg;
    kl_lock(&h->mu);
    if (id == KL_HANGUP_TIME) {
        kl__connections_look_locked(h);
        kl_unlock(&h->mu);
        return;
    }
    end_of_body_locked(h, id);
    for (kl_list *l = h->streams.next; l != &h->streams; l = l->next) {
        kl_httpd_stream *s = KL_CONTAINER(l, kl_httpd_stream, link);
        if (s->id != id)
            continue;
        kl_lock(&s->mu);
        s->gone = true;
        kl__stream_wake_locked(s);
        kl_unlock(&s->mu);
        break;
    }
    kl_unlock(&h->mu);
}

static void httpd_unref(kl_httpd *h)
{
    if (atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) != 1)
        return;
    kl_map_free(h->peers, NULL);
    kl_cond_fini(&h->sent);
    kl_mutex_fini(&h->mu);
    kl_free(h->address);
    kl_free(h);
}

/* --- bodies: what they hold is counted, in all and by address ----------------------------- */

/* Room for n bytes more of the request's body. */
static bool body_count(kl_httpd_request *r, size_t n)
{
    kl_httpd *h = r->h;
    kl_lock(&h->mu);
    size_t mine = (uintptr_t)kl_map_get(h->peers, r->peer);
    bool room = n <= h->max_bodies - h->bodies && mine + n <= h->max_bodies / 2;
    if (room) {
        r->counted += n;
        h->bodies += n;
        kl_map_set(h->peers, r->peer, (void *)(uintptr_t)(mine + n));
    }
    kl_unlock(&h->mu);
    return room;
}

static void body_uncount_locked(kl_httpd *h, kl_httpd_request *r) KL_REQUIRES(h->mu)
{
    if (!r->counted)
        return;
    size_t mine = (uintptr_t)kl_map_get(h->peers, r->peer) - r->counted;
    h->bodies -= r->counted;
    if (mine)
        kl_map_set(h->peers, r->peer, (void *)(uintptr_t)mine);
    else
        kl_map_take(h->peers, r->peer);
    r->counted = 0;
}

/* A body is arriving: watches for the end of the connection. */
static void body_begins(kl_httpd *h, kl_httpd_request *r)
{
    r->peer = kl__peer_of(r->conn);
    r->fd = MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    kl_lock(&h->mu);
    r->id = h->next_id++;
    kl_list_push(&h->coming, &r->link);
    kl_unlock(&h->mu);
    kl_hangup_add(h->hangup, r->fd, r->id);
}

static void body_over(kl_httpd *h, kl_httpd_request *r)
{
    if (!r->id)
        return;
    kl_lock(&h->mu);
    kl_list_remove(&r->link);
    kl_unlock(&h->mu);
    kl_hangup_remove(h->hangup, r->fd);
    r->id = 0;
}

static void request_free(kl_httpd_request *r)
{
    if (r->response)
        MHD_destroy_response(r->response);
    if (r->held)
        MHD_destroy_response(r->held);
    if (r->stream)
        kl__stream_unref(r->stream);
    if (r->witness)
        r->witness->ended(r->witness_arg);
    kl_free(r->uri);
    kl_free(r->method);
    kl_free(r->path);
    kl_free(r->mark);
    kl_free(r->peer);
    kl_buf_fini(&r->body);
    kl_free(r);
}

bool kl_httpd_again(kl_httpd_request *r)
{
    kl_httpd *h = r->h;
    kl_lock(&h->mu);
    bool there = r->conn && !h->stopping;
    r->again = there;
    if (there && r->parked) {
        kl_list_remove(&r->link);
        r->parked = false;
        MHD_resume_connection(r->conn);
    }
    kl_unlock(&h->mu);
    return there;
}

/* Hands the response to the connection's thread, now or by waking it. */
static void answer(kl_httpd_request *r, int code, struct MHD_Response *response, kl_httpd_stream *s)
{
    kl_httpd *h = r->h;
    kl_lock(&h->mu);
    r->response = response;
    r->stream = s;
    r->code = code;
    r->owed = false;
    r->unsent = !s && r->conn;
    h->unsent += r->unsent;
    bool orphan = !r->conn; /* stopped meanwhile: no other thread knows r */
    if (r->parked && !orphan) {
        kl_list_remove(&r->link);
        r->parked = false;
        MHD_resume_connection(r->conn);
    }
    kl_unlock(&h->mu);
    if (orphan) {
        request_free(r);
        httpd_unref(h);
    }
}

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    if (MHD_add_response_header(response, name, value) != MHD_YES)
        kl_warn("response header refused", "name=%s", name);
}

static void add_headers(
    const kl_httpd_request *r, struct MHD_Response *response, const char *content_type, const char *lines)
{
    const kl_httpd *h = r->h;
    if (r->mark)
        add_header(response, h->mark, r->mark);
    if (content_type)
        add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    if (h->cache_control && !(lines && strstr(lines, "Cache-Control:")))
        add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, h->cache_control);
    for (const char *p = lines; p && *p;) {
        size_t n = strcspn(p, "\r\n");
        char *line = kl_strndup(p, n), *colon = strchr(line, ':');
        if (colon) {
            *colon++ = '\0';
            colon += strspn(colon, " ");
            if (*colon)
                add_header(response, line, colon);
        }
        kl_free(line);
        p += n + strspn(p + n, "\r\n");
    }
}

struct MHD_Response *kl__response_must(struct MHD_Response *response)
{
    if (!response)
        kl_mem_die("memory (HTTP response)");
    return response;
}

void kl_httpd_attend(kl_httpd_request *r, const kl_httpd_witness *w, void *arg)
{
    r->witness = w;
    r->witness_arg = arg;
}

void *kl_httpd_attended(const kl_httpd_request *r) { return r->witness_arg; }

static void tell(
    kl_httpd_request *r, int code, const char *content_type, const void *body, size_t len, bool goes_on)
{
    if (r->witness)
        r->witness->answered(r->witness_arg, code, content_type, body, len, goes_on);
}

void kl_httpd_halve(kl_httpd_request *r) { r->halved = true; }

typedef struct half {
    size_t len;
    char data[];
} half;

static ssize_t half_read(void *arg, uint64_t pos, char *out, size_t max)
{
    const half *x = arg;
    if (pos >= x->len)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t n = x->len - (size_t)pos < max ? x->len - (size_t)pos : max;
    memcpy(out, x->data + pos, n);
    return (ssize_t)n;
}

/* Says that it has `len` bytes, and ends after half of them. */
static struct MHD_Response *half_response(const void *body, size_t len)
{
    half *x = kl_zalloc(sizeof *x + len / 2);
    x->len = len / 2;
    if (x->len)
        memcpy(x->data, body, x->len);
    return kl__response_must(MHD_create_response_from_callback(len, KL__HTTPD_BLOCK, half_read, x, kl_free));
}

void kl_httpd_reply(kl_httpd_request *r, int code, const char *content_type, const char *headers,
    const void *body, size_t len)
{
    tell(r, code, content_type, body, len, false);
    r->size = len;
    struct MHD_Response *response = r->halved ? half_response(body, len)
                                              : kl__response_must(MHD_create_response_from_buffer(
                                                  len, (void *)(len ? body : ""), MHD_RESPMEM_MUST_COPY));
    add_headers(r, response, content_type, headers);
    answer(r, code, response, NULL);
}

void kl_httpd_reply_take(
    kl_httpd_request *r, int code, const char *content_type, const char *headers, kl_buf *body)
{
    size_t len = body->len;
    if (r->halved) {
        kl_httpd_reply(r, code, content_type, headers, body->data, len);
        kl_buf_fini(body);
        return;
    }
    tell(r, code, content_type, body->data, len, false);
    r->size = len;
    struct MHD_Response *response = kl__response_must(
        MHD_create_response_from_buffer_with_free_callback(len, kl_buf_take(body), kl_free));
    add_headers(r, response, content_type, headers);
    answer(r, code, response, NULL);
}

void kl_httpd_hold(kl_httpd_request *r)
{
    kl_httpd *h = r->h;
    kl_lock(&h->mu);
    r->held = r->response;
    r->response = NULL;
    r->owed = true;
    h->unsent -= r->unsent;
    r->unsent = false;
    kl_unlock(&h->mu);
}

static struct MHD_Response *take_held(kl_httpd_request *r)
{
    kl_httpd *h = r->h;
    kl_lock(&h->mu);
    struct MHD_Response *held = r->held;
    r->held = NULL;
    kl_unlock(&h->mu);
    return held;
}

void kl_httpd_release(kl_httpd_request *r) { answer(r, r->code, take_held(r), NULL); }

void kl_httpd_retract(kl_httpd_request *r) { MHD_destroy_response(take_held(r)); }

kl_httpd_stream *kl_httpd_reply_stream(
    kl_httpd_request *r, int code, const char *content_type, const char *headers)
{
    kl_httpd *h = r->h;
    tell(r, code, content_type, NULL, 0, true);
    struct MHD_Response *response;
    kl_httpd_stream *s = kl__stream_new(h->max_queued, &response);
    add_headers(r, response, content_type, headers);
    kl__stream_attach(h, s, r->conn);
    answer(r, code, response, s);
    return s;
}

unsigned kl_httpd_send_seconds(const kl_httpd *h, size_t len)
{
    return h->read_seconds * WHOLE_TIMES + (unsigned)(len / h->send_rate);
}

static enum MHD_Result queue_response(kl_httpd_request *r)
{
    struct MHD_Response *response = r->response;
    r->response = NULL;
    kl_httpd *h = r->h;
    /* A client that does not read a whole answer, or in drops, would keep it in our memory. Streams have a
     * bound of their own. */
    if (!r->stream) {
        MHD_set_connection_option(r->conn, MHD_CONNECTION_OPTION_TIMEOUT, h->read_seconds);
        kl__connection_expect(h, kl__connection_of(r->conn), kl_httpd_send_seconds(h, r->size));
    }
    enum MHD_Result rc = MHD_queue_response(r->conn, (unsigned)r->code, response);
    MHD_destroy_response(response);
    return rc;
}

static enum MHD_Result too_big(kl_httpd_request *r)
{
    char text[160];
    r->handled = true;
    int n = snprintf(text, sizeof text, "request body is larger than %zu bytes\n", r->h->max_body);
    kl_httpd_reply(r, MHD_HTTP_CONTENT_TOO_LARGE, "text/plain", NULL, text, (size_t)n);
    return queue_response(r);
}

static enum MHD_Result refuse(kl_httpd_request *r, int code, const char *text)
{
    r->handled = true;
    kl_httpd_reply(r, code, "text/plain", code == MHD_HTTP_SERVICE_UNAVAILABLE ? "Retry-After: 1\r\n" : NULL,
        text, strlen(text));
    return queue_response(r);
}

static const char crowded[] = "the bodies of all requests together take too much memory: try again later\n";

static void *on_uri(void *arg, const char *uri, struct MHD_Connection *conn)
{
    kl_httpd_request *r = kl_new(kl_httpd_request);
    r->h = arg;
    r->conn = conn;
    r->uri = kl_strdup(uri);
    r->cut = strstr(uri, "%00") != NULL;
    kl_list_init(&r->link);
    kl_buf_init(&r->body, r->h->max_body);
    return r;
}

static enum MHD_Result begin(
    kl_httpd *h, struct MHD_Connection *conn, const char *path, const char *method, kl_httpd_request *r)
{
    r->method = kl_strdup(method);
    r->path = kl_strdup(path);
    r->owed = true;
    if (h->mark) {
        const char *given = kl_httpd_header(r, h->mark);
        char made[KL_UUID_MAX];
        r->mark = kl_strdup(given && *given ? given : kl_uuid_new(made));
    }
    const char *length = kl_httpd_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
    bool coming = kl_httpd_header(r, MHD_HTTP_HEADER_TRANSFER_ENCODING)
        || (length && strtoull(length, NULL, 10));
    enum MHD_Result rc = MHD_YES;
    if (coming)
        MHD_set_connection_option(conn, MHD_CONNECTION_OPTION_TIMEOUT, h->read_seconds);
    kl__connection_expect(h, kl__connection_of(conn), coming ? h->read_seconds * WHOLE_TIMES : 0);
    if (r->cut)
        rc = refuse(r, MHD_HTTP_BAD_REQUEST, "the path or query contains a NUL (%00)\n");
    else if (coming && h->no_bodies)
        rc = refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "this endpoint accepts no request body\n");
    else if (length && strtoull(length, NULL, 10) > h->max_body)
        rc = too_big(r);
    else if (coming)
        body_begins(h, r);
    return rc;
}

/* A piece of a body that does not fit is dropped; the answer tells so when the whole body has arrived. */
static void body_add(kl_httpd_request *r, const char *data, size_t n)
{
    if (r->body.failed || r->crowded || r->handled)
        return;
    r->crowded = !body_count(r, n);
    if (!r->crowded && !kl_buf_add(&r->body, data, n))
        return;
    kl_httpd *h = r->h;
    kl_lock(&h->mu);
    body_uncount_locked(h, r);
    kl_unlock(&h->mu);
    if (r->crowded)
        kl_buf_fini(&r->body);
}

/* Calls the handler, again while that is requested, and parks the request when there was no reply. */
static enum MHD_Result handle(kl_httpd *h, kl_httpd_request *r)
{
    bool again, ready, stopping;
    r->handled = true;
    do {
        kl_lock(&h->mu);
        r->again = false;
        kl_unlock(&h->mu);
        /* a reply on another thread does not free r: conn is ours until completed */
        h->handler(h->arg, r);
        kl_lock(&h->mu);
        stopping = h->stopping;
        again = r->again && !stopping;
        if (r->owed && !again && !stopping) {
            r->parked = true;
            kl_list_push(&h->parked, &r->link);
            MHD_suspend_connection(r->conn);
        }
        ready = r->response != NULL;
        kl_unlock(&h->mu);
    } while (again);
    if (ready)
        return queue_response(r);
    return stopping ? MHD_NO : MHD_YES;
}

/* libmicrohttpd: once when headers are in, once per piece of body, once when all is in, and again after
 * each resume. */
static enum MHD_Result on_access(void *arg, struct MHD_Connection *conn, const char *path, const char *method,
    const char *version, const char *data, size_t *size, void **state)
{
    (void)version;
    kl_httpd *h = arg;
    kl_httpd_request *r = *state;
    if (!r->method)
        return begin(h, conn, path, method, r);
    if (*size) {
        body_add(r, data, *size);
        *size = 0;
        kl_lock(&h->mu);
        body_ended_locked(h, r);
        kl_unlock(&h->mu);
        return MHD_YES;
    }
    if (r->id) {
        body_over(h, r);
        MHD_set_connection_option(conn, MHD_CONNECTION_OPTION_TIMEOUT, IDLE_SECONDS);
        kl__connection_expect(h, kl__connection_of(conn), 0);
    }
    if (r->crowded && !r->handled)
        return refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, crowded);
    if (r->body.failed && !r->handled)
        return too_big(r);
    if (!r->handled)
        return handle(h, r);
    kl_lock(&h->mu);
    bool ready = r->response != NULL, stopping = h->stopping, again = r->again && !stopping;
    kl_unlock(&h->mu);
    if (again)
        return handle(h, r);
    if (ready)
        return queue_response(r);
    return stopping ? MHD_NO : MHD_YES;
}

static void on_completed(
    void *arg, struct MHD_Connection *conn, void **state, enum MHD_RequestTerminationCode why)
{
    kl_httpd *h = arg;
    kl_httpd_request *r = *state;
    *state = NULL;
    if (!r)
        return;
    body_over(h, r);
    /* it has shown what it is: it may rest between its requests */
    if (why == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
        MHD_set_connection_option(conn, MHD_CONNECTION_OPTION_TIMEOUT, IDLE_SECONDS);
        kl__connection_expect(h, kl__connection_of(conn), IDLE_SECONDS);
    }
    if (r->stream)
        kl__stream_detach(h, r->stream);
    kl_lock(&h->mu);
    body_uncount_locked(h, r);
    h->unsent -= r->unsent;
    r->unsent = false;
    if (!h->unsent)
        kl_cond_broadcast(&h->sent);
    kl_list_remove(&r->link);
    r->parked = false;
    r->conn = NULL;
    bool owed = r->owed && r->handled; /* a reply will still come, and frees r then */
    if (owed)
        atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
    kl_unlock(&h->mu);
    if (!owed)
        request_free(r);
}

/* --- start and stop ----------------------------------------------------------------------- */

static void on_log(void *arg, const char *fmt, va_list ap)
{
    (void)arg;
    if (!kl_log_enabled(KL_LOG_DEBUG))
        return;
    char text[256], quoted[320];
    vsnprintf(text, sizeof text, fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    kl_log(KL_LOG_DEBUG, "http server", "text=%s", kl_log_quote(text, quoted, sizeof quoted));
}

static void on_panic(void *arg, const char *file, unsigned int line, const char *reason)
{
    (void)arg;
    char text[256];
    snprintf(text, sizeof text, "libmicrohttpd gave up at %s:%u: %s", file, line, reason ? reason : "");
    kl_mem_die(text);
}

/* libmicrohttpd needs a certificate or a callback; kl__connection_notify comes before either. Without a pair
 * this ends the handshake. */
static int no_certificate(void) { return -1; }

kl_status kl_httpd_start(const kl_httpd_options *o, kl_httpd **out, kl_err *err)
{
    int fd = -1;
    kl_status st = kl_listen(o->listen, &fd, err);
    if (st)
        return st;
    kl_httpd *h = kl_new(kl_httpd);
    atomic_init(&h->refs, 1);
    h->handler = o->handler;
    h->arg = o->arg;
    h->max_body = o->max_body ? o->max_body : MAX_BODY;
    h->max_queued = o->max_queued ? o->max_queued : MAX_QUEUED;
    h->max_bodies = o->max_bodies ? o->max_bodies : MAX_BODIES;
    h->no_bodies = o->no_bodies;
    h->cache_control = o->cache_control;
    h->mark = o->mark;
    h->read_seconds = o->read_seconds ? o->read_seconds : READ_SECONDS;
    h->send_rate = o->send_rate ? o->send_rate : SEND_RATE;
    h->next_id = 1;
    h->peers = kl_map_new();
    kl_cond_init(&h->sent);
    kl_list_init(&h->coming);
    h->tls = o->tls;
    kl_mutex_init_as(&h->mu, KL_LOCK_HTTPD);
    kl_list_init(&h->streams);
    kl_list_init(&h->parked);
    kl_list_init(&h->connections);
    h->look_at = KL_NEVER;
    h->address = kl_listen_address(fd, &h->port);
    st = kl_hangup_start(peer_gone, h, &h->hangup, err);
    if (!st) {
        kl_signal_mask old;
        kl_signals_block(&old); /* its thread inherits the mask */
        MHD_set_panic_func(on_panic, NULL);
        const struct MHD_OptionItem tls[] = {
            {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)(intptr_t)no_certificate},
            {MHD_OPTION_END, 0, NULL},
        };
        h->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC
                | MHD_USE_ERROR_LOG | (h->tls ? MHD_USE_TLS : 0),
            h->port, NULL, NULL, on_access, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_ARRAY,
            h->tls ? tls : &tls[1], MHD_OPTION_NOTIFY_CONNECTION, kl__connection_notify, h,
            MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK, on_uri, h, MHD_OPTION_NOTIFY_COMPLETED,
            on_completed, h, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
            CONN_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, h->read_seconds, MHD_OPTION_END);
        kl_signals_restore(&old);
        if (!h->daemon)
            st = kl_fail(err, KL_EIO, "cannot serve HTTP on %s: %s", h->address, strerror(errno));
    }
    if (st) {
        close(fd);
        kl_hangup_stop(h->hangup);
        httpd_unref(h);
        return st;
    }
    *out = h;
    return KL_OK;
}

void kl_httpd_drain(kl_httpd *h, kl_time deadline)
{
    if (!h)
        return;
    kl_lock(&h->mu);
    while (h->unsent && kl_cond_wait_until(&h->sent, &h->mu, deadline))
        continue;
    kl_unlock(&h->mu);
}

void kl_httpd_stop(kl_httpd *h)
{
    if (!h)
        return;
    kl_lock(&h->mu);
    h->stopping = true;
    for (kl_list *l = h->streams.next; l != &h->streams; l = l->next) {
        kl_httpd_stream *s = KL_CONTAINER(l, kl_httpd_stream, link);
        kl_lock(&s->mu);
        s->gone = true;
        kl__stream_wake_locked(s);
        kl_unlock(&s->mu);
    }
    while (!kl_list_empty(&h->parked)) {
        kl_httpd_request *r = KL_CONTAINER(kl_list_shift(&h->parked), kl_httpd_request, link);
        r->parked = false;
        MHD_resume_connection(r->conn);
    }
    kl_unlock(&h->mu);
    MHD_stop_daemon(h->daemon);
    kl_hangup_stop(h->hangup);
    httpd_unref(h);
}

uint16_t kl_httpd_port(const kl_httpd *h) { return h->port; }

const char *kl_httpd_address(const kl_httpd *h) { return h->address; }
