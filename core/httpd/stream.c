/* stream.c - an open answer: a queue of bytes to send, and the connection that is woken for them.
 *
 * The reader, on the server's thread, takes queued bytes and suspends the connection when there are none; a
 * writer resumes it. `conn` is set exactly while libmicrohttpd may be told about the connection: detaching
 * clears it under the stream's lock, so a writer never touches a dead connection. */
#include "httpd/httpd_impl.h"

#include <string.h>
#include <sys/socket.h>
#include "base/locks.h"
#include "base/mem.h"

#define SPARE_QUEUE ((size_t)64 << 10) /* an empty queue keeps at most this */

void kl__stream_unref(kl_httpd_stream *s)
{
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    kl_buf_fini(&s->queue);
    kl_mutex_fini(&s->mu);
    kl_free(s);
}

static size_t queued_locked(const kl_httpd_stream *s) KL_REQUIRES(s->mu) { return s->queue.len - s->sent; }

void kl__stream_wake_locked(kl_httpd_stream *s) KL_REQUIRES(s->mu)
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

static void response_freed(void *arg) { kl__stream_unref(arg); }

kl_httpd_stream *kl__stream_new(size_t max_queued, struct MHD_Response **response)
{
    kl_httpd_stream *s = kl_new(kl_httpd_stream);
    /* the caller's, the response's, the request's: a daemon that is stopping does not take the response */
    atomic_init(&s->refs, 3);
    kl_list_init(&s->link);
    kl_mutex_init_as(&s->mu, KL_LOCK_STREAM);
    s->max_queued = max_queued;
    kl_buf_init(&s->queue, 0);
    *response = kl__response_must(
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, KL__HTTPD_BLOCK, stream_read, s, response_freed));
    return s;
}

void kl__stream_attach(kl_httpd *h, kl_httpd_stream *s, struct MHD_Connection *conn)
{
    kl_lock(&h->mu);
    s->id = h->next_id++;
    s->conn = conn;
    s->gone = h->stopping || !conn;
    s->fd = conn ? MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd : -1;
    if (conn) {
        kl_list_push(&h->streams, &s->link);
        kl_hangup_add(h->hangup, s->fd, s->id);
    }
    kl_unlock(&h->mu);
}

void kl__stream_detach(kl_httpd *h, kl_httpd_stream *s)
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

/* A peer that does not read would keep its connection and its queue until the connection times out. */
static void cut_locked(kl_httpd_stream *s) KL_REQUIRES(s->mu)
{
    s->gone = true;
    kl_buf_fini(&s->queue);
    s->sent = 0;
    if (s->conn)
        shutdown(s->fd, SHUT_RDWR);
    kl__stream_wake_locked(s);
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
            kl__stream_wake_locked(s);
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
    kl__stream_wake_locked(s);
    kl_unlock(&s->mu);
    kl__stream_unref(s);
}
