/* peer.h - the other end of a connection, under the test's control: a listening socket whose `answer` gets
 * each request as text and may reply, stay silent, cut the line or talk nonsense. One thread per
 * connection. */
#ifndef KL_SPEC_NET_PEER_H
#define KL_SPEC_NET_PEER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/mem.h"
#include "base/sync.h"

#define PEER_CONNECTIONS 64
#define PEER_WAIT KL_SECONDS(20) /* the bound of every wait in these tests */

typedef struct peer peer;
typedef struct request {
    char method[16], path[2048];
    char *head;
    const char *body;
    size_t body_len;
    int nth; /* from 1, over all connections */
} request;
/* False closes the connection. */
typedef bool peer_answer(peer *p, int fd, const request *r);

typedef struct peer_line {
    peer *p;
    int fd;
    kl_thread *thread;
} peer_line;

struct peer {
    int fd;
    uint16_t port;
    char url[64];
    peer_answer *answer;
    void *arg;
    _Atomic int requests, connections;
    _Atomic bool stop;
    kl_thread *thread;
    kl_mutex mu;
    kl_cond changed;
    int lines;
    peer_line line[PEER_CONNECTIONS];
};

static inline bool peer_send_bytes(int fd, const char *bytes, size_t n)
{
    size_t at = 0;
    while (at < n) {
        ssize_t w = send(fd, bytes + at, n - at, MSG_NOSIGNAL);
        if (w <= 0)
            break;
        at += (size_t)w;
    }
    return at == n;
}

static inline bool peer_send(int fd, const char *fmt, ...) KL_PRINTF(2, 3);
static inline bool peer_send(int fd, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap);
    va_end(ap);
    bool sent = peer_send_bytes(fd, text, strlen(text));
    kl_free(text);
    return sent;
}

/* One whole answer, connection kept. `headers` is "Name: value\r\n" lines. */
static inline bool peer_reply(int fd, int code, const char *headers, const char *body)
{
    return peer_send(fd,
        "HTTP/1.1 %d Status\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n%s", code,
        strlen(body), headers, body);
}

/* The value of a request header, or NULL; in a static thread-local buffer. */
static inline const char *peer_header(const request *r, const char *name)
{
    static _Thread_local char value[4096];
    size_t n = strlen(name);
    for (const char *p = strstr(r->head, "\r\n"); p; p = strstr(p + 2, "\r\n"))
        if (!strncasecmp(p + 2, name, n) && p[2 + n] == ':') {
            const char *v = p + 3 + n + strspn(p + 3 + n, " ");
            snprintf(value, sizeof value, "%.*s", (int)strcspn(v, "\r\n"), v);
            return value;
        }
    return NULL;
}

static inline bool peer_fill(peer *p, int fd, kl_buf *in)
{
    while (!atomic_load(&p->stop)) {
        struct pollfd pf = {.fd = fd, .events = POLLIN};
        if (poll(&pf, 1, 50) <= 0)
            continue;
        char *to = kl_buf_reserve(in, 65536);
        ssize_t n = recv(fd, to, 65536, 0);
        if (n <= 0)
            return false;
        in->len += (size_t)n;
        in->data[in->len] = '\0';
        return true;
    }
    return false;
}

static inline void peer_serve(void *arg)
{
    peer_line *l = arg;
    peer *p = l->p;
    kl_buf in = KL_BUF_INIT;
    for (bool keep = true; keep;) {
        char *end;
        while (!(end = in.len ? strstr(in.data, "\r\n\r\n") : NULL))
            if (!peer_fill(p, l->fd, &in))
                goto out;
        size_t head = (size_t)(end - in.data) + 4;
        const char *cl = strcasestr(in.data, "content-length:");
        size_t body = cl && cl < in.data + head ? strtoul(cl + 15, NULL, 10) : 0;
        while (in.len < head + body)
            if (!peer_fill(p, l->fd, &in))
                goto out;
        request r = {0};
        sscanf(in.data, "%15s %2047s", r.method, r.path);
        r.head = kl_strndup(in.data, head);
        char *text = kl_strndup(in.data + head, body);
        r.body = text;
        r.body_len = body;
        r.nth = atomic_fetch_add(&p->requests, 1) + 1;
        kl_lock(&p->mu);
        kl_cond_broadcast(&p->changed);
        kl_unlock(&p->mu);
        keep = p->answer(p, l->fd, &r);
        kl_free(r.head);
        kl_free(text);
        kl_buf_consume(&in, head + body);
    }
out:
    kl_buf_fini(&in);
    shutdown(l->fd, SHUT_RDWR);
    close(l->fd);
}

static inline void peer_accept(void *arg)
{
    peer *p = arg;
    while (!atomic_load(&p->stop)) {
        struct pollfd pf = {.fd = p->fd, .events = POLLIN};
        if (poll(&pf, 1, 50) <= 0)
            continue;
        int fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        kl_lock(&p->mu);
        atomic_fetch_add(&p->connections, 1);
        kl_cond_broadcast(&p->changed);
        kl_unlock(&p->mu);
        if (p->lines == PEER_CONNECTIONS)
            abort();
        peer_line *l = &p->line[p->lines++];
        l->p = p;
        l->fd = fd;
        l->thread = kl_thread_start("peer-line", peer_serve, l);
    }
}

static inline void peer_start(peer *p, peer_answer *answer, void *arg)
{
    memset(p, 0, sizeof *p);
    p->answer = answer;
    p->arg = arg;
    kl_mutex_init(&p->mu);
    kl_cond_init(&p->changed);
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    if (bind(p->fd, (struct sockaddr *)&a, sizeof a) || listen(p->fd, 64)
        || getsockname(p->fd, (struct sockaddr *)&a, &n))
        abort();
    p->port = ntohs(a.sin_port);
    snprintf(p->url, sizeof p->url, "http://127.0.0.1:%u", p->port);
    p->thread = kl_thread_start("peer", peer_accept, p);
}

static inline void peer_stop(peer *p)
{
    atomic_store(&p->stop, true);
    kl_thread_join(p->thread);
    close(p->fd);
    for (int i = 0; i < p->lines; i++)
        kl_thread_join(p->line[i].thread);
    kl_cond_fini(&p->changed);
    kl_mutex_fini(&p->mu);
}

static inline bool peer_wait(peer *p, _Atomic int *count, int n)
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    bool in_time = true;
    kl_lock(&p->mu);
    while (atomic_load(count) < n && in_time)
        in_time = kl_cond_wait_until(&p->changed, &p->mu, deadline);
    kl_unlock(&p->mu);
    return atomic_load(count) >= n;
}

/* Waits until the peer has seen n requests. */
static inline bool peer_wait_requests(peer *p, int n) { return peer_wait(p, &p->requests, n); }

static inline bool peer_wait_connections(peer *p, int n) { return peer_wait(p, &p->connections, n); }

/* A port where nobody listens. */
static inline uint16_t peer_dead_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    if (bind(fd, (struct sockaddr *)&a, sizeof a) || getsockname(fd, (struct sockaddr *)&a, &n))
        abort();
    close(fd);
    return ntohs(a.sin_port);
}

#endif
