/* http_turn.c - ends a turn of libcurl that does not end.
 *
 * libcurl 7.88 as it is: while an HTTP/2 stream waits for its data, libcurl reads the connection for as long
 * as the socket has bytes. A server that sends frames that bring nothing (answers to pings, resets of other
 * streams, empty data) faster than they are read would keep the thread from all its other transfers, and from
 * its end. So the watchdog looks at turns; each callback of ours begins a new one. In a turn that is stuck
 * the sockets with unread bytes are shut down, and libcurl sees a closed connection. */
#include "http/http_impl.h"

#include <netdb.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "base/locks.h"
#include "base/mem.h"

/* Without a callback libcurl needs some milliseconds. The watchdog adds its patience. */
#define TURN_MAX KL_SECONDS(1)

static void say_peer(kl_buf *out, int fd)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getpeername(fd, (struct sockaddr *)&a, &n)
        || getnameinfo(
            (struct sockaddr *)&a, n, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
        return;
    kl_buf_printf(out, "%s%s port %s", out->len ? ", " : "", host, port);
}

/* On the watchdog's thread, while ours cannot leave its turn. Sockets are closed under this lock, so each
 * number is still ours. */
static void on_stuck(void *arg, kl_stuck *out)
{
    kl_http *h = arg;
    kl_buf peers = KL_BUF_INIT;
    kl_lock(&h->sockets_mu);
    for (size_t i = 0; i < h->nsockets; i++) {
        int unread = 0;
        if (ioctl(h->sockets[i], FIONREAD, &unread) || !unread)
            continue;
        say_peer(&peers, h->sockets[i]);
        shutdown(h->sockets[i], SHUT_RDWR);
    }
    kl_unlock(&h->sockets_mu);
    out->name = kl_strdup("http");
    out->story = kl_sprintf("endless HTTP/2 frames brought no answer; closed the connections to: %s",
        peers.len ? kl_buf_str(&peers) : "nobody");
    kl_buf_fini(&peers);
}

void kl__turns_init(kl_http *h)
{
    kl_mutex_init_as(&h->sockets_mu, KL_LOCK_POST); /* the watchdog holds its lock while it calls on_stuck */
    kl_guard_init(&h->turn, on_stuck, h);
}

void kl__turns_fini(kl_http *h)
{
    kl_guard_fini(&h->turn);
    kl_mutex_fini(&h->sockets_mu);
    kl_free(h->sockets);
}

void kl__turn_begin(kl_http *h)
{
    kl_guard_enter(&h->turn, &(kl_terms){.deadline = kl_clock_now(kl_clock_real()) + TURN_MAX});
}

bool kl__turn_end(kl_http *h)
{
    if (!(atomic_load(&h->turn.turn) & 1))
        return false;
    kl_over over = kl_guard_leave(&h->turn);
    (void)over;
    return true;
}

void kl__socket_opened(kl_http *h, int fd)
{
    kl_lock(&h->sockets_mu);
    h->sockets = kl_realloc(h->sockets, (h->nsockets + 1) * sizeof *h->sockets);
    h->sockets[h->nsockets++] = fd;
    kl_unlock(&h->sockets_mu);
}

void kl__socket_closing(kl_http *h, int fd)
{
    kl_lock(&h->sockets_mu);
    for (size_t i = 0; i < h->nsockets; i++)
        if (h->sockets[i] == fd) {
            h->sockets[i] = h->sockets[--h->nsockets];
            break;
        }
    kl_unlock(&h->sockets_mu);
}
