/* forward.c - the streams thread accepts, reads and writes local connections and looks at their sessions
 * whenever either has news. Nothing is held that the other side has not made room for: one buffer in each
 * direction, then nobody is read from. */
#include "session/forward.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/heap.h"
#include "httpd/listen.h"
#include "base/mem.h"
#include "base/poller.h"
#include "client/client_impl.h"
#include "session/session.h"

#define BUFFER ((size_t)16 << 10)
#define CONNECTIONS_MAX 256       /* the others wait to be accepted */
#define ACCEPT_REST KL_SECONDS(1) /* when there are no file descriptors */
#define LINGER KL_SECONDS(10)     /* see the header */

struct kl_forward {
    kl_client *c;
    kl_http *http;
    char *ns, *pod;
    int remote, local;
    /* streams thread */
    kl_list link; /* in the client's forwards until it stopped */
    int fd;
    uint64_t rest; /* timer */
    kl_list connections;

    kl_mutex mu;
    int refs; /* the user, and the thread until it stopped */
    bool stopped;
    int open, total;
    char *failure;
};

typedef struct connection {
    kl_list link;
    kl_forward *f;
    int fd;
    kl_session *s;
    bool eof;      /* the local side writes no more */
    kl_time heard; /* time of the pod's last byte */
    uint64_t linger;
    size_t up_at, up_len, down_at, down_len;
    char up[BUFFER], down[BUFFER];
} connection;

static kl_time now(void) { return kl_clock_now(kl_clock_real()); }

static void unref(kl_forward *f)
{
    kl_lock(&f->mu);
    bool last = !--f->refs;
    kl_unlock(&f->mu);
    if (!last)
        return;
    kl_mutex_fini(&f->mu);
    kl_free(f->failure);
    kl_free(f->ns);
    kl_free(f->pod);
    kl_free(f);
}

/* --- a connection ------------------------------------------------------------------------- */

static void listen_again(kl_forward *f);

static void connection_close(connection *c, const kl_err *why)
{
    kl_forward *f = c->f;
    kl_http_watch_fd(f->http, c->fd, 0, NULL, NULL);
    kl_http_timer_cancel(f->http, c->linger);
    close(c->fd);
    kl_session_free(c->s);
    kl_list_remove(&c->link);
    kl_free(c);
    kl_lock(&f->mu);
    f->open--;
    if (why && kl_err_message(why)[0]) {
        kl_free(f->failure);
        f->failure = kl_strdup(kl_err_message(why));
    }
    kl_unlock(&f->mu);
    listen_again(f);
}

static void on_linger(void *arg)
{
    connection *c = arg;
    kl_time left = c->heard + LINGER - now();
    c->linger = 0;
    if (left <= 0)
        connection_close(c, NULL);
    else
        c->linger = kl_http_timer(c->f->http, left, on_linger, c);
}

/* Passes local bytes to the pod. False: the local side is gone. */
static bool carry_up(connection *c)
{
    for (;;) {
        if (!c->up_len && !c->eof) {
            ssize_t n = recv(c->fd, c->up, sizeof c->up, 0);
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0)
                return errno == EAGAIN;
            c->up_at = 0;
            c->up_len = (size_t)n;
            if (!n) {
                c->eof = true;
                c->heard = now();
                c->linger = kl_http_timer(c->f->http, LINGER, on_linger, c);
            }
        }
        if (!c->up_len)
            return true;
        size_t taken;
        kl_session_write(c->s, 0, c->up + c->up_at, c->up_len, &taken);
        c->up_at += taken;
        c->up_len -= taken;
        if (!taken)
            return true;
    }
}

/* Writes to the local side. KL_EAGAIN: it takes no more now. KL_OK: the pod is done, and all of it is
 * written. */
static kl_status carry_down(connection *c, kl_err *err)
{
    for (;;) {
        if (!c->down_len) {
            int channel;
            size_t n;
            kl_status st = kl_session_read(c->s, 0, &channel, c->down, sizeof c->down, &n, err);
            if (st || !n)
                return st;
            c->down_at = 0;
            c->down_len = n;
            c->heard = now();
        }
        ssize_t n = send(c->fd, c->down + c->down_at, c->down_len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            /* the local side may leave at any time */
            return errno == EAGAIN ? KL_EAGAIN : KL_ECLOSED;
        c->down_at += (size_t)n;
        c->down_len -= (size_t)n;
    }
}

static void on_local(void *arg, int what);

static void carry(connection *c)
{
    kl_err err = KL_ERR_INIT;
    bool there = carry_up(c);
    kl_status st = there ? carry_down(c, &err) : KL_ECLOSED;
    if (st != KL_EAGAIN) {
        connection_close(c, &err);
        kl_err_fini(&err);
        return;
    }
    int what = (!c->up_len && !c->eof ? KL_POLL_IN : 0) | (c->down_len ? KL_POLL_OUT : 0);
    kl_http_watch_fd(c->f->http, c->fd, what, on_local, c);
}

static void on_local(void *arg, int what)
{
    (void)what;
    carry(arg);
}

static void on_session(void *arg) { carry(arg); }

static void connection_begin(kl_forward *f, int fd)
{
    connection *c = kl_new(connection);
    c->f = f;
    c->fd = fd;
    kl_list_push(&f->connections, &c->link);
    kl_lock(&f->mu);
    f->open++;
    f->total++;
    kl_unlock(&f->mu);
    kl_session_request r;
    kl_err err = KL_ERR_INIT;
    kl_session_request_init(&r, KL_SESSION_PORT);
    r.ns = f->ns;
    r.pod = f->pod;
    r.port = f->remote;
    r.on_change = on_session;
    r.arg = c;
    if (kl_session_start(f->c, &r, &c->s, &err))
        connection_close(c, &err);
    else
        carry(c);
    kl_err_fini(&err);
}

/* --- listening ---------------------------------------------------------------------------- */

static void on_rest(void *arg)
{
    kl_forward *f = arg;
    f->rest = 0;
    listen_again(f);
}

static void on_accept(void *arg, int what)
{
    kl_forward *f = arg;
    (void)what;
    while (f->open < CONNECTIONS_MAX) {
        int fd = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            connection_begin(f, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno == EAGAIN)
            return;
        f->rest = kl_http_timer(f->http, ACCEPT_REST, on_rest, f);
        break;
    }
    kl_http_watch_fd(f->http, f->fd, 0, NULL, NULL);
}

static void listen_again(kl_forward *f)
{
    if (f->fd >= 0 && !f->rest && f->open < CONNECTIONS_MAX)
        kl_http_watch_fd(f->http, f->fd, KL_POLL_IN, on_accept, f);
}

static void begin(void *arg)
{
    kl_forward *f = arg;
    kl_list_push(&f->c->forwards, &f->link);
    listen_again(f);
}

static void stop(kl_forward *f)
{
    if (f->fd < 0)
        return;
    kl_http_watch_fd(f->http, f->fd, 0, NULL, NULL);
    kl_http_timer_cancel(f->http, f->rest);
    close(f->fd);
    f->fd = -1;
    while (!kl_list_empty(&f->connections))
        connection_close(KL_CONTAINER(f->connections.next, connection, link), NULL);
    kl_list_remove(&f->link);
    kl_lock(&f->mu);
    f->stopped = true;
    kl_unlock(&f->mu);
    unref(f);
}

void kl__forwards_stop_all(kl_client *c)
{
    while (!kl_list_empty(&c->forwards))
        stop(KL_CONTAINER(c->forwards.next, kl_forward, link));
}

/* --- its user ----------------------------------------------------------------------------- */

kl_status kl_forward_start(kl_client *c, const char *ns, const char *pod, int port, const char *listen,
    kl_forward **out, kl_err *err)
{
    kl_http *http;
    int fd;
    uint16_t local;
    kl_status st = KL_OK;
    if (!ns || !*ns || !pod || !*pod)
        st = kl_fail(err, KL_EINVAL, "port_forward: name the pod, with its namespace");
    else if (port < 1 || port > 65535)
        st = kl_fail(err, KL_EINVAL, "port_forward %s/%s: a port is 1 to 65535, got %d", ns, pod, port);
    if (!st)
        st = kl__client_streams(c, &http, err);
    if (!st)
        st = kl_listen(listen ? listen : "127.0.0.1:0", &fd, err);
    if (st)
        return st;
    kl_free(kl_listen_address(fd, &local));
    kl_forward *f = kl_new(kl_forward);
    f->c = c;
    f->http = http;
    f->ns = kl_strdup(ns);
    f->pod = kl_strdup(pod);
    f->remote = port;
    f->local = local;
    f->fd = fd;
    f->refs = 2;
    kl_list_init(&f->link);
    kl_list_init(&f->connections);
    kl_mutex_init(&f->mu);
    kl_http_post(http, begin, f);
    *out = f;
    return KL_OK;
}

int kl_forward_port(const kl_forward *f) { return f->local; }

char *kl_forward_state(kl_forward *f, int *open, int *total)
{
    kl_lock(&f->mu);
    *open = f->open;
    *total = f->total;
    char *failure = kl_strdup(f->failure);
    kl_unlock(&f->mu);
    return failure;
}

static void stop_and_let_go(void *arg)
{
    stop(arg);
    unref(arg);
}

void kl_forward_free(kl_forward *f)
{
    if (!f)
        return;
    kl_lock(&f->mu);
    bool stopped = f->stopped;
    kl_unlock(&f->mu);
    if (stopped)
        unref(f);
    else
        kl_http_post(f->http, stop_and_let_go, f);
}
