/* connection.c - deadlines by which a connection has to send or read its data, also a slow one:
 * libmicrohttpd's own timeout restarts with each byte. The thread of kl_hangup shuts down late
 * connections. */
#include "httpd/httpd_impl.h"

#include <sys/socket.h>
#include "base/mem.h"

#define LATE_BY KL_SECONDS(1) /* between two checks for late connections */

static void look_locked(kl_httpd *h, kl_time when) KL_REQUIRES(h->mu)
{
    if (when >= h->look_at)
        return;
    h->look_at = when;
    kl_hangup_at(h->hangup, when);
}

void kl__connection_expect(kl_httpd *h, kl__connection *c, unsigned seconds)
{
    kl_time due = seconds ? kl_clock_now(kl_clock_real()) + KL_SECONDS(seconds) : KL_NEVER;
    kl_lock(&h->mu);
    c->due = due;
    look_locked(h, due);
    kl_unlock(&h->mu);
}

kl__connection *kl__connection_of(struct MHD_Connection *conn)
{
    return MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void kl__connections_look_locked(kl_httpd *h) KL_REQUIRES(h->mu)
{
    kl_time now = kl_clock_now(kl_clock_real()), next = KL_NEVER;
    for (kl_list *l = h->connections.next; l != &h->connections; l = l->next) {
        kl__connection *c = KL_CONTAINER(l, kl__connection, link);
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

void kl__connection_notify(
    void *arg, struct MHD_Connection *conn, void **state, enum MHD_ConnectionNotificationCode what)
{
    kl_httpd *h = arg;
    kl__connection *c = *state;
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
    c = kl_new(kl__connection);
    c->fd = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    c->pair = info ? kl_keyring_show(h->tls, info->tls_session) : NULL;
    c->due = kl_clock_now(kl_clock_real()) + KL_SECONDS(h->read_seconds);
    kl_lock(&h->mu);
    kl_list_push(&h->connections, &c->link);
    look_locked(h, c->due);
    kl_unlock(&h->mu);
    *state = c;
}
