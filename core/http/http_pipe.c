/* http_pipe.c - connections that libcurl makes (address, proxy, TLS, the server's certificate) and that carry
 * raw bytes afterwards; and foreign sockets on this thread's poller.
 *
 *   transfer with on_pipe: connecting --DONE with a socket--> pipe --cancelled, or its reader saw an error--> closed
 *
 * libcurl 7.88 as it is:
 * - The easy handle stays in the multi: taking it out closes the connection.
 * - With TLS a blocked write must be retried with the same bytes at the same address, so outgoing bytes stay
 *   in a block that is not changed until it is sent.
 * - TLS may hold bytes that the poller does not see: a new reader is served once without polling the
 *   socket. */
#include "http/http_impl.h"

#include <string.h>
#include "base/mem.h"

#define BLOCK ((size_t)16 << 10)     /* a TLS record */
#define LOOK_SOON KL_MILLISECONDS(1) /* not at once: the thread's other sockets come first */

typedef struct watched {
    kl_list link;
    int fd, what;
    void (*fn)(void *arg, int what);
    void *arg;
} watched;

struct kl_pipe {
    kl__transfer *t;
    int fd;
    bool read, write; /* events that its owner waits for */
    uint64_t look;    /* timer: a check of bytes held by TLS */
    size_t at, len;   /* of the block: what is still to go out */
    char block[BLOCK];
};

/* --- other people's sockets --------------------------------------------------------------- */

static watched *find(kl_http *h, int fd)
{
    for (kl_list *l = h->watched.next; l != &h->watched; l = l->next)
        if (KL_CONTAINER(l, watched, link)->fd == fd)
            return KL_CONTAINER(l, watched, link);
    return NULL;
}

void kl_http_watch_fd(kl_http *h, int fd, int what, void (*fn)(void *arg, int what), void *arg)
{
    watched *w = find(h, fd);
    if (what != (w ? w->what : 0))
        kl_poller_watch(h->poller, fd, what);
    if (!what) {
        if (w) {
            kl_list_remove(&w->link);
            kl_free(w);
        }
        return;
    }
    if (!w) {
        w = kl_new(watched);
        w->fd = fd;
        kl_list_push(&h->watched, &w->link);
    }
    w->what = what;
    w->fn = fn;
    w->arg = arg;
}

bool kl__http_ready(kl_http *h, const kl_ready *r)
{
    watched *w = find(h, r->fd);
    if (w)
        w->fn(w->arg, r->what);
    return w;
}

void kl__http_forget_fds(kl_http *h)
{
    for (kl_list *l; (l = kl_list_shift(&h->watched));)
        kl_free(KL_CONTAINER(l, watched, link));
}

/* --- pausing an answer -------------------------------------------------------------------- */

void kl_http_pause(kl_http *h, uint64_t id, bool on)
{
    kl_lock(&h->mu);
    kl__transfer *t = kl_slots_get(&h->transfers, id);
    kl_unlock(&h->mu);
    if (t && !t->shares && t->running)
        (void)kl__curl.easy_pause(t->easy, on ? CURLPAUSE_RECV : CURLPAUSE_CONT);
}

/* --- pipes -------------------------------------------------------------------------------- */

static kl_status broken(const kl_pipe *p, CURLcode rc, kl_err *err)
{
    const char *story = *p->t->story ? p->t->story : kl__curl.easy_strerror(rc);
    return kl_fail(err, KL_ECLOSED, "the connection to %s broke: %s", p->t->peer, story);
}

/* Sends the block, as far as the socket accepts it. */
static kl_status flush(kl_pipe *p, kl_err *err)
{
    while (p->len) {
        size_t n = 0;
        CURLcode rc = kl__curl.easy_send(p->t->easy, p->block + p->at, p->len, &n);
        if (rc == CURLE_AGAIN)
            return KL_OK;
        if (rc) {
            p->len = 0; /* it will never go */
            return broken(p, rc, err);
        }
        p->at += n;
        p->len -= n;
    }
    p->at = 0;
    return KL_OK;
}

static void on_socket(void *arg, int what);

static void watch(kl_pipe *p)
{
    int what = (p->read ? KL_POLL_IN : 0) | (p->write || p->len ? KL_POLL_OUT : 0);
    if (what)
        kl_http_watch_fd(p->t->h, p->fd, what, on_socket, p);
    else
        kl_http_watch_fd(p->t->h, p->fd, 0, NULL, NULL);
}

static void on_socket(void *arg, int what)
{
    kl_pipe *p = arg;
    if (p->t->cancelled)
        return;
    (void)what;
    /* only the block waits; the next call returns the error of a broken socket */
    if (p->len && !p->read && !p->write) {
        kl_status st = flush(p, NULL);
        (void)st;
        watch(p);
    } else
        p->t->on_ready(p->t->arg);
}

static void on_look(void *arg)
{
    kl_pipe *p = arg;
    p->look = 0;
    if (p->read && !p->t->cancelled)
        p->t->on_ready(p->t->arg);
}

void kl_pipe_want(kl_pipe *p, bool read, bool write)
{
    if (read && !p->read && !p->look)
        p->look = kl_http_timer(p->t->h, LOOK_SOON, on_look, p);
    p->read = read;
    p->write = write;
    watch(p);
}

kl_status kl_pipe_read(kl_pipe *p, char *to, size_t cap, size_t *n, kl_err *err)
{
    *n = 0;
    CURLcode rc = kl__curl.easy_recv(p->t->easy, to, cap, n);
    if (rc == CURLE_AGAIN)
        return KL_EAGAIN;
    return rc ? broken(p, rc, err) : KL_OK;
}

kl_status kl_pipe_write(kl_pipe *p, const char *data, size_t n, size_t *taken, kl_err *err)
{
    *taken = 0;
    for (;;) {
        kl_status st = flush(p, err);
        if (st)
            return st;
        if (p->len || !n)
            break;
        p->len = n < BLOCK ? n : BLOCK;
        memcpy(p->block, data, p->len);
        data += p->len;
        n -= p->len;
        *taken += p->len;
    }
    watch(p);
    return KL_OK;
}

bool kl__pipe_open(kl__transfer *t)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    kl__curl.easy_getinfo(t->easy, CURLINFO_ACTIVESOCKET, &fd);
    if (fd == CURL_SOCKET_BAD) {
        t->stopped = kl_fail(&t->err, KL_ECLOSED, "the connection to %s ended at once", t->peer);
        return false;
    }
    kl_pipe *p = kl_new(kl_pipe);
    p->t = t;
    p->fd = fd;
    t->pipe = p;
    t->on_pipe(t->arg, p);
    return true;
}

void kl__pipe_close(kl__transfer *t)
{
    if (!t->pipe)
        return;
    kl_http_watch_fd(t->h, t->pipe->fd, 0, NULL, NULL);
    kl_http_timer_cancel(t->h, t->pipe->look);
    kl_free(t->pipe);
    t->pipe = NULL;
}
