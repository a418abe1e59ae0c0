/* httpd.c - the only door to libmicrohttpd.
 *
 * A request gathers its body, then meets the handler once:
 *   reading --body complete--> handled --reply--> queued --sent--> completed
 *   handled without reply: parked (suspended) --reply, any thread--> queued
 * A stream is an open answer: the reader, on the server's thread, takes queued bytes and suspends the
 * connection when there are none; a writer resumes it. `conn` is set exactly while libmicrohttpd may be told
 * about the connection: request_completed clears it under the stream's lock, so a writer never touches a dead
 * connection. libmicrohttpd does not poll a suspended connection, therefore kl_hangup watches its socket.
 * libmicrohttpd must not be stopped while anything is suspended: stopping marks and resumes all, and from
 * then on nothing suspends any more.
 *
 * A request with an arriving body is watched by kl_hangup as well: libmicrohttpd does not see an end of the
 * connection that came together with data (0.9.75, edge-triggered), and would hold both for as long as an
 * idle connection may live. Once the reading side is shut down by us it looks again. What all bodies hold
 * together is bounded.
 *
 * Each connection has a time by which what it sends has to be whole, be it in drops: libmicrohttpd's own
 * timeout begins anew with each byte. The thread of kl_hangup shuts down what is late.
 *
 * Locks: registry (h->mu) before stream (s->mu) before libmicrohttpd's own. */
#include "httpd/httpd.h"

#include <errno.h>
#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/hangup.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/locks.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "httpd/listen.h"
#include "httpd/unixsock.h"

#define MAX_BODY ((size_t)16 << 20)
#define MAX_QUEUED ((size_t)256 << 20)
#define BLOCK_SIZE ((size_t)32 << 10) /* what one read of a stream may take */
#define CONN_MEMORY                                                                                          \
    ((size_t)96 << 10) /* headers and the block being sent: URLs with long selectors must fit */
#define MAX_BODIES ((size_t)256 << 20) /* of all requests together */
#define IDLE_SECONDS 600u              /* keep-alive connections; suspended ones do not count */
#define READ_SECONDS 32u      /* of a head in all, and of a body that stands still: kube-apiserver's */
#define BODY_TIMES 2u         /* so many of these has a body in all */
#define LATE_BY KL_SECONDS(1) /* between two looks for who is late */
#define CONNECTIONS                                                                                          \
    16384u /* libmicrohttpd's own default is for select(); the process' file limit decides first */
#define SPARE_QUEUE ((size_t)64 << 10) /* an empty queue keeps at most this */

struct kl_httpd {
    /* the owner's, and one per request that is still owed a reply after its connection went */
    _Atomic int refs;
    struct MHD_Daemon *daemon;
    kl_hangup *hangup;
    kl_httpd_handler *handler;
    void *arg;
    size_t max_body, max_queued, max_bodies;
    kl_keyring *tls; /* NULL: plain HTTP */
    uint16_t port;
    char *address;
    unsigned read_seconds;
    bool no_bodies;
    kl_mutex mu; /* the registry */
    bool stopping KL_GUARDED_BY(mu);
    uint64_t next_id KL_GUARDED_BY(mu);
    kl_list streams KL_GUARDED_BY(mu); /* attached to a connection */
    kl_list parked KL_GUARDED_BY(mu);  /* requests whose handler has returned without a reply */
    size_t unsent KL_GUARDED_BY(mu);   /* complete answers that were given and not sent yet */
    kl_cond sent;                      /* there are none */
    kl_list coming KL_GUARDED_BY(mu);  /* requests whose body is incomplete */
    size_t bodies KL_GUARDED_BY(mu);   /* bytes of all bodies in memory */
    /* address -> its part of that, in bytes (the pointer is the number) */
    kl_map *peers KL_GUARDED_BY(mu);
    kl_list connections KL_GUARDED_BY(mu);
    kl_time look_at KL_GUARDED_BY(mu); /* for who is late; KL_NEVER: nobody can be */
};

/* From MHD_CONNECTION_NOTIFY_STARTED to CLOSED, after which its socket is closed. */
typedef struct connection {
    kl_list link; /* under h->mu */
    int fd;
    kl_time due;      /* what it sends is whole by then; KL_NEVER: nothing is expected; under h->mu */
    kl_keypair *pair; /* that its TLS session needs until its end, or NULL */
} connection;

struct kl_httpd_stream {
    _Atomic int refs; /* the caller's and the response's */
    kl_list link;     /* in h->streams, under h->mu */
    uint64_t id;
    int fd;
    size_t max_queued;
    kl_mutex mu;
    struct MHD_Connection *conn KL_GUARDED_BY(mu); /* NULL once completed */
    bool suspended KL_GUARDED_BY(mu);
    bool closed KL_GUARDED_BY(mu); /* by the caller: ends when the queue is empty */
    bool gone KL_GUARDED_BY(mu);   /* by the peer, by overflow or by stop: end now */
    kl_buf queue KL_GUARDED_BY(mu);
    size_t sent KL_GUARDED_BY(mu); /* bytes at the front of queue that are already gone */
};

struct kl_httpd_request {
    kl_httpd *h;
    kl_list link; /* in h->coming, later perhaps in h->parked */
    /* NULL when stopped before the reply came; under h->mu once parked */
    struct MHD_Connection *conn;
    /* method and path NULL: its head is incomplete; then only uri and cut are set */
    char *uri, *method, *path;
    bool cut;                        /* the decoded URI contains a NUL, and would be cut there */
    const kl_httpd_witness *witness; /* or NULL */
    void *witness_arg;
    kl_buf body;
    uint64_t id; /* while it is coming, for kl_hangup; 0: it has no body */
    int fd;
    char *peer; /* its address, once it has a body */
    /* nothing more will arrive; under h->mu, apart from the HTTP thread's data */
    bool ended;
    size_t counted; /* of h->bodies */
    bool crowded;   /* its body did not fit */
    bool handled;   /* the handler has been called */
    bool again;     /* and is to be called again; under h->mu */
    bool halved;    /* see kl_httpd_halve */
    void *user;
    bool parked;                   /* under h->mu */
    bool unsent;                   /* one of h->unsent; under h->mu */
    bool owed;                     /* no reply yet; under h->mu */
    struct MHD_Response *response; /* to be queued by the server's thread; under h->mu */
    int code;
    struct MHD_Response *held; /* taken back by kl_httpd_hold; under h->mu */
    kl_httpd_stream *stream;   /* of the response, a reference: detached on completion */
};

/* --- streams ------------------------------------------------------------------------------ */

static void stream_unref(kl_httpd_stream *s)
{
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    kl_buf_fini(&s->queue);
    kl_mutex_fini(&s->mu);
    kl_free(s);
}

static size_t queued_locked(const kl_httpd_stream *s) KL_REQUIRES(s->mu) { return s->queue.len - s->sent; }

static void wake_locked(kl_httpd_stream *s) KL_REQUIRES(s->mu)
{
    if (!s->suspended || !s->conn)
        return;
    s->suspended = false;
    MHD_resume_connection(s->conn);
}

/* libmicrohttpd asks for bytes. Server thread. */
static ssize_t stream_read(void *arg, uint64_t pos, char *out, size_t max)
{
    (void)pos;
    kl_httpd_stream *s = arg;
    ssize_t n = 0;
    kl_lock(&s->mu);
    size_t have = queued_locked(s);
    if (s->gone) {
        n = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (have) {
        n = (ssize_t)(have < max ? have : max);
        memcpy(out, s->queue.data + s->sent, (size_t)n);
        s->sent += (size_t)n;
        if (s->sent == s->queue.len) {
            s->sent = 0;
            if (s->queue.cap > SPARE_QUEUE)
                kl_buf_fini(&s->queue);
            else
                kl_buf_clear(&s->queue);
        }
    } else if (s->closed) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else if (s->conn) {
        MHD_suspend_connection(s->conn);
        s->suspended = true;
    } else {
        n = MHD_CONTENT_READER_END_WITH_ERROR;
    }
    kl_unlock(&s->mu);
    return n;
}

static void response_freed(void *arg) { stream_unref(arg); }

/* The connection is about to close, or to serve its next request. Server thread. */
static void stream_detach(kl_httpd *h, kl_httpd_stream *s)
{
    kl_lock(&h->mu);
    kl_list_remove(&s->link);
    kl_unlock(&h->mu);
    kl_hangup_remove(h->hangup, s->fd);
    kl_lock(&s->mu);
    s->conn = NULL;
    s->suspended = false;
    s->gone = true;
    kl_buf_fini(&s->queue);
    s->sent = 0;
    kl_unlock(&s->mu);
}

/* After all received data was read, libmicrohttpd is woken, and finds the end; woken earlier, it would stop
 * at the last piece again. The socket is open as long as the request is listed. */
static void body_ended_locked(kl_httpd *h, kl_httpd_request *r) KL_REQUIRES(h->mu)
{
    (void)h; /* for the contract */
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

static void look_locked(kl_httpd *h, kl_time when) KL_REQUIRES(h->mu)
{
    if (when >= h->look_at)
        return;
    h->look_at = when;
    kl_hangup_at(h->hangup, when);
}

/* What the connection sends next has so many seconds in all; 0: nothing is expected of it. */
static void expect(kl_httpd *h, connection *c, unsigned seconds)
{
    kl_time due = seconds ? kl_clock_now(kl_clock_real()) + KL_SECONDS(seconds) : KL_NEVER;
    kl_lock(&h->mu);
    c->due = due;
    look_locked(h, due);
    kl_unlock(&h->mu);
}

static connection *connection_of(struct MHD_Connection *conn)
{
    return MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void hang_up_on_who_is_late_locked(kl_httpd *h) KL_REQUIRES(h->mu)
{
    kl_time now = kl_clock_now(kl_clock_real()), next = KL_NEVER;
    for (kl_list *l = h->connections.next; l != &h->connections; l = l->next) {
        connection *c = KL_CONTAINER(l, connection, link);
        if (c->due <= now) {
            shutdown(c->fd, SHUT_RDWR);
            c->due = KL_NEVER;
        }
        if (c->due < next)
            next = c->due;
    }
    h->look_at = KL_NEVER;
    if (next < KL_NEVER)
        look_locked(h, next > now + LATE_BY ? next : now + LATE_BY);
}

/* Hang-up thread. */
static void peer_gone(void *arg, uint64_t id)
{
    kl_httpd *h = arg;
    kl_lock(&h->mu);
    if (id == KL_HANGUP_TIME) {
        hang_up_on_who_is_late_locked(h);
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
        wake_locked(s);
        kl_unlock(&s->mu);
        break;
    }
    kl_unlock(&h->mu);
}

/* A peer that does not read would keep its connection and its queue until the connection times out. */
static void cut_locked(kl_httpd_stream *s) KL_REQUIRES(s->mu)
{
    s->gone = true;
    kl_buf_fini(&s->queue);
    s->sent = 0;
    if (s->conn)
        shutdown(s->fd, SHUT_RDWR);
    wake_locked(s);
}

void kl_httpd_stream_cut(kl_httpd_stream *s)
{
    kl_lock(&s->mu);
    cut_locked(s);
    kl_unlock(&s->mu);
}

bool kl_httpd_stream_write(kl_httpd_stream *s, const void *data, size_t len)
{
    kl_lock(&s->mu);
    bool ok = !s->gone && !s->closed;
    if (ok && len) {
        /* more was sent than waits: compact, at no amortized cost */
        if (s->sent > s->queue.len / 2) {
            kl_buf_consume(&s->queue, s->sent);
            s->sent = 0;
        }
        ok = len <= s->max_queued - queued_locked(s) && !kl_buf_add(&s->queue, data, len);
        if (ok)
            wake_locked(s);
        else
            cut_locked(s);
    }
    kl_unlock(&s->mu);
    return ok;
}

size_t kl_httpd_stream_queued(kl_httpd_stream *s)
{
    kl_lock(&s->mu);
    size_t n = queued_locked(s);
    kl_unlock(&s->mu);
    return n;
}

bool kl_httpd_stream_gone(kl_httpd_stream *s)
{
    kl_lock(&s->mu);
    bool gone = s->gone;
    kl_unlock(&s->mu);
    return gone;
}

void kl_httpd_stream_close(kl_httpd_stream *s)
{
    if (!s)
        return;
    kl_lock(&s->mu);
    s->closed = true;
    wake_locked(s);
    kl_unlock(&s->mu);
    stream_unref(s);
}

/* --- requests ----------------------------------------------------------------------------- */

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

static char *peer_of(struct MHD_Connection *conn)
{
    char text[INET6_ADDRSTRLEN] = "";
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *a = info ? info->client_addr : NULL;
    if (a && a->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, text, sizeof text);
    else if (a && a->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, text, sizeof text);
    return kl_strdup(text);
}

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
    r->peer = peer_of(r->conn);
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
        stream_unref(r->stream);
    if (r->witness)
        r->witness->ended(r->witness_arg);
    kl_free(r->uri);
    kl_free(r->method);
    kl_free(r->path);
    kl_free(r->peer);
    kl_buf_fini(&r->body);
    kl_free(r);
}

const char *kl_httpd_method(const kl_httpd_request *r) { return r->method; }

const char *kl_httpd_path(const kl_httpd_request *r) { return r->path; }

const char *kl_httpd_uri(const kl_httpd_request *r) { return r->uri; }

char *kl_httpd_source(const kl_httpd_request *r) { return r->conn ? peer_of(r->conn) : NULL; }

static const char *lookup(const kl_httpd_request *r, enum MHD_ValueKind kind, const char *name)
{
    const char *value = NULL;
    size_t n;
    if (!r->conn || MHD_lookup_connection_value_n(r->conn, kind, name, strlen(name), &value, &n) != MHD_YES)
        return NULL;
    return value ? value : "";
}

const char *kl_httpd_query(const kl_httpd_request *r, const char *name)
{
    return lookup(r, MHD_GET_ARGUMENT_KIND, name);
}

typedef struct each_value {
    const char *name;
    void (*fn)(void *arg, const char *value);
    void *arg;
} each_value;

static enum MHD_Result on_value(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
    (void)kind;
    const each_value *e = arg;
    if (!strcmp(key, e->name))
        e->fn(e->arg, value ? value : "");
    return MHD_YES;
}

void kl_httpd_query_each(
    const kl_httpd_request *r, const char *name, void (*fn)(void *arg, const char *value), void *arg)
{
    if (r->conn)
        MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, on_value, &(each_value){name, fn, arg});
}

static enum MHD_Result add_value(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
    (void)kind;
    kl_buf *b = arg;
    kl_buf_printf(b, "%s%s%s%s", b->len ? "&" : "", key, value ? "=" : "", value ? value : "");
    return MHD_YES;
}

char *kl_httpd_query_text(const kl_httpd_request *r)
{
    kl_buf b = KL_BUF_INIT;
    kl_buf_puts(&b, "");
    if (r->conn)
        MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, add_value, &b);
    return kl_buf_take(&b);
}

bool kl_httpd_peer(const kl_httpd_request *r, pid_t *pid, uid_t *uid)
{
    const union MHD_ConnectionInfo *info = r->conn
        ? MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_CONNECTION_FD)
        : NULL;
    return info && kl_unixsock_peer(info->connect_fd, pid, uid);
}

bool kl_httpd_from_loopback(const kl_httpd_request *r)
{
    const union MHD_ConnectionInfo *info = r->conn
        ? MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
        : NULL;
    const struct sockaddr *a = info ? info->client_addr : NULL;
    if (a && a->sa_family == AF_UNIX)
        return true;
    if (a && a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    if (!a || a->sa_family != AF_INET6)
        return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

kl_peer kl_httpd_client(const kl_httpd_request *r, char **cn, char **organizations)
{
    const union MHD_ConnectionInfo *info = r->conn && r->h->tls
        ? MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_GNUTLS_SESSION)
        : NULL;
    return info ? kl_keyring_peer(info->tls_session, cn, organizations) : KL_PEER_NONE;
}

const char *kl_httpd_header(const kl_httpd_request *r, const char *name)
{
    return lookup(r, MHD_HEADER_KIND, name);
}

typedef struct each_header {
    void (*fn)(void *arg, const char *name, const char *value);
    void *arg;
} each_header;

static enum MHD_Result on_header(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
    (void)kind;
    const each_header *e = arg;
    e->fn(e->arg, key, value ? value : "");
    return MHD_YES;
}

void kl_httpd_header_each(
    const kl_httpd_request *r, void (*fn)(void *arg, const char *name, const char *value), void *arg)
{
    if (r->conn)
        MHD_get_connection_values(r->conn, MHD_HEADER_KIND, on_header, &(each_header){fn, arg});
}

const char *kl_httpd_body(const kl_httpd_request *r, size_t *len)
{
    if (len)
        *len = r->body.len;
    return kl_buf_str(&r->body);
}

void kl_httpd_set_user(kl_httpd_request *r, void *user) { r->user = user; }

void *kl_httpd_user(const kl_httpd_request *r) { return r->user; }

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

static void add_headers(struct MHD_Response *response, const char *content_type, const char *lines)
{
    if (content_type)
        add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    for (const char *p = lines; p && *p;) {
        size_t n = strcspn(p, "\r\n");
        char *line = kl_strndup(p, n), *colon = strchr(line, ':');
        if (colon) {
            *colon++ = '\0';
            add_header(response, line, colon + strspn(colon, " "));
        }
        kl_free(line);
        p += n + strspn(p + n, "\r\n");
    }
}

static struct MHD_Response *must(struct MHD_Response *response)
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
    return must(MHD_create_response_from_callback(len, BLOCK_SIZE, half_read, x, kl_free));
}

void kl_httpd_reply(kl_httpd_request *r, int code, const char *content_type, const char *headers,
    const void *body, size_t len)
{
    tell(r, code, content_type, body, len, false);
    struct MHD_Response *response = r->halved
        ? half_response(body, len)
        : must(MHD_create_response_from_buffer(len, (void *)(len ? body : ""), MHD_RESPMEM_MUST_COPY));
    add_headers(response, content_type, headers);
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
    struct MHD_Response *response = must(
        MHD_create_response_from_buffer_with_free_callback(len, kl_buf_take(body), kl_free));
    add_headers(response, content_type, headers);
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
    kl_httpd_stream *s = kl_new(kl_httpd_stream);
    /* the caller's, the response's, the request's: a daemon that is stopping does not take the response */
    atomic_init(&s->refs, 3);
    kl_list_init(&s->link);
    kl_mutex_init_as(&s->mu, KL_LOCK_STREAM);
    s->max_queued = h->max_queued;
    kl_buf_init(&s->queue, 0);
    struct MHD_Response *response = must(
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, stream_read, s, response_freed));
    add_headers(response, content_type, headers);
    kl_lock(&h->mu);
    s->id = h->next_id++;
    s->conn = r->conn;
    s->gone = h->stopping || !r->conn;
    s->fd = r->conn ? MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd : -1;
    if (r->conn) {
        kl_list_push(&h->streams, &s->link);
        kl_hangup_add(h->hangup, s->fd, s->id);
    }
    kl_unlock(&h->mu);
    answer(r, code, response, s);
    return s;
}

static enum MHD_Result queue_response(kl_httpd_request *r)
{
    struct MHD_Response *response = r->response;
    r->response = NULL;
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
    const char *length = kl_httpd_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
    bool coming = kl_httpd_header(r, MHD_HTTP_HEADER_TRANSFER_ENCODING)
        || (length && strtoull(length, NULL, 10));
    enum MHD_Result rc = MHD_YES;
    if (r->cut)
        rc = refuse(r, MHD_HTTP_BAD_REQUEST, "the path or query contains a NUL (%00)\n");
    else if (coming && h->no_bodies)
        rc = refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "requests here have no body\n");
    else if (length && strtoull(length, NULL, 10) > h->max_body)
        rc = too_big(r);
    else if (coming)
        body_begins(h, r);
    if (coming)
        MHD_set_connection_option(conn, MHD_CONNECTION_OPTION_TIMEOUT, h->read_seconds);
    expect(h, connection_of(conn), coming ? h->read_seconds * BODY_TIMES : 0);
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
        expect(h, connection_of(conn), 0);
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
        expect(h, connection_of(conn), IDLE_SECONDS);
    }
    if (r->stream)
        stream_detach(h, r->stream);
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

/* Server thread. */
static void on_connection(
    void *arg, struct MHD_Connection *conn, void **state, enum MHD_ConnectionNotificationCode what)
{
    kl_httpd *h = arg;
    connection *c = *state;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        kl_lock(&h->mu);
        kl_list_remove(&c->link);
        kl_unlock(&h->mu);
        kl_keypair_unref(c->pair);
        kl_free(c);
        *state = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info = h->tls
        ? MHD_get_connection_info(conn, MHD_CONNECTION_INFO_GNUTLS_SESSION)
        : NULL;
    c = kl_new(connection);
    c->fd = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    c->pair = info ? kl_keyring_show(h->tls, info->tls_session) : NULL;
    c->due = kl_clock_now(kl_clock_real()) + KL_SECONDS(h->read_seconds);
    kl_lock(&h->mu);
    kl_list_push(&h->connections, &c->link);
    look_locked(h, c->due);
    kl_unlock(&h->mu);
    *state = c;
}

/* libmicrohttpd needs a certificate or a callback; on_connection comes before either. Without a pair this
 * ends the handshake. */
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
    h->read_seconds = o->read_seconds ? o->read_seconds : READ_SECONDS;
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
            h->tls ? tls : &tls[1], MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_LISTEN_SOCKET,
            fd, MHD_OPTION_URI_LOG_CALLBACK, on_uri, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
            MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONN_MEMORY,
            MHD_OPTION_CONNECTION_TIMEOUT, h->read_seconds, MHD_OPTION_END);
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
        wake_locked(s);
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
