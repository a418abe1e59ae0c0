/* websocket.c - wslay does the frames (masking, fragments, control frames, close codes); around it are
 * buffers instead of sockets, and the ping timer. */
#include "http/websocket.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <wslay/wslay.h>
#include "base/mem.h"

#define OUT_MAX                                                                                              \
    ((size_t)4 << 20) /* a peer that floods us with pings and reads no answers is disconnected               \
                       */

struct kl_websocket {
    wslay_event_context_ptr ctx;
    kl_websocket_fn *on_message;
    void *arg;
    const char *in; /* bytes that feed got and wslay has not read */
    size_t in_len;
    kl_buf out;
    kl_status stopped; /* the failure of on_message */
    kl_err *err;       /* the caller's, while feed runs */
    bool resting, closing;
    /* last byte in; last ping; since when nothing of out went, while there is something */
    kl_time heard, pinged, stuck;
};

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *to, size_t cap, int flags, void *arg)
{
    kl_websocket *w = arg;
    (void)flags;
    size_t n = w->in_len < cap ? w->in_len : cap;
    if (!n) {
        wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(to, w->in, n);
    w->in += n;
    w->in_len -= n;
    return (ssize_t)n;
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t n, int flags, void *arg)
{
    kl_websocket *w = arg;
    (void)flags;
    if (kl_buf_add(&w->out, data, n)) {
        wslay_event_set_error(ctx, WSLAY_ERR_CALLBACK_FAILURE);
        return -1;
    }
    return (ssize_t)n;
}

static int on_mask(wslay_event_context_ptr ctx, uint8_t *to, size_t n, void *arg)
{
    (void)ctx;
    (void)arg;
    return getrandom(to, n, 0) == (ssize_t)n ? 0 : -1;
}

static void on_message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *m, void *arg)
{
    kl_websocket *w = arg;
    (void)ctx;
    if (w->stopped || wslay_is_ctrl_frame(m->opcode))
        return;
    w->stopped = w->on_message(w->arg, (const char *)m->msg, m->msg_length, w->err);
    if (w->stopped)
        wslay_event_shutdown_read(w->ctx);
}

kl_websocket *kl_websocket_new(kl_websocket_fn *fn, void *arg, kl_time now)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = on_recv,
        .send_callback = on_send,
        .genmask_callback = on_mask,
        .on_msg_recv_callback = on_message,
    };
    kl_websocket *w = kl_new(kl_websocket);
    w->on_message = fn;
    w->arg = arg;
    w->heard = w->pinged = now;
    w->stuck = KL_NEVER;
    kl_buf_init(&w->out, OUT_MAX);
    if (wslay_event_context_client_init(&w->ctx, &callbacks, w))
        kl_mem_die("memory");
    wslay_event_config_set_max_recv_msg_length(w->ctx, KL_WEBSOCKET_MESSAGE_MAX);
    return w;
}

void kl_websocket_free(kl_websocket *w)
{
    if (!w)
        return;
    wslay_event_context_free(w->ctx);
    kl_buf_fini(&w->out);
    kl_free(w);
}

/* Moves what wslay has queued into out. False: out is full. */
static bool pump(kl_websocket *w) { return !wslay_event_send(w->ctx) && !kl_buf_status(&w->out); }

int kl_websocket_code(const kl_websocket *w)
{
    return wslay_event_get_close_received(w->ctx) ? wslay_event_get_status_code_received(w->ctx) : 0;
}

static const char *complaint(int code)
{
    switch (code) {
    case WSLAY_CODE_MESSAGE_TOO_BIG: return "sent a message of more than 1 MiB";
    case WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA: return "sent text that is not UTF-8";
    default: return "broke the WebSocket protocol";
    }
}

kl_status kl_websocket_feed(kl_websocket *w, const char *data, size_t n, kl_time now, kl_err *err)
{
    w->heard = now;
    w->in = data;
    w->in_len = n;
    w->err = err;
    int rc = wslay_event_recv(w->ctx);
    w->err = NULL;
    if (w->stopped)
        return w->stopped;
    bool sent = pump(w);
    if (w->out.len && w->stuck == KL_NEVER)
        w->stuck = now;
    if (kl_websocket_code(w))
        return KL_ECLOSED;
    if (rc || !wslay_event_get_read_enabled(w->ctx))
        return kl_fail(err, KL_ESERVER, "the server %s", complaint(wslay_event_get_status_code_sent(w->ctx)));
    return sent ? KL_OK : kl_fail(err, KL_ETOOBIG, "the server sends pings but does not read the answers");
}

kl_status kl_websocket_send(
    kl_websocket *w, const char *head, size_t headlen, const char *data, size_t n, kl_err *err)
{
    uint8_t *text = kl_alloc(headlen + n + 1);
    memcpy(text, head, headlen);
    if (n)
        memcpy(text + headlen, data, n);
    int rc = wslay_event_queue_msg(w->ctx,
        &(struct wslay_event_msg){.opcode = WSLAY_BINARY_FRAME, .msg = text, .msg_length = headlen + n});
    kl_free(text);
    if (rc)
        return kl_fail(err, KL_ECLOSED, "nothing can be sent after the close frame");
    return pump(w) ? KL_OK
                   : kl_fail(err, KL_ETOOBIG, "more than %zu MiB are waiting to be sent", OUT_MAX >> 20);
}

void kl_websocket_close(kl_websocket *w, int code)
{
    if (w->closing)
        return;
    w->closing = true;
    if (!wslay_event_queue_close(w->ctx, (uint16_t)code, NULL, 0))
        pump(w);
}

const kl_buf *kl_websocket_out(const kl_websocket *w) { return &w->out; }

void kl_websocket_wrote(kl_websocket *w, size_t n, kl_time now)
{
    kl_buf_consume(&w->out, n);
    if (!w->out.len)
        w->stuck = KL_NEVER;
    else if (n || w->stuck == KL_NEVER)
        w->stuck = now;
}

void kl_websocket_rest(kl_websocket *w, bool on, kl_time now)
{
    if (w->resting && !on)
        w->heard = now;
    w->resting = on;
}

kl_status kl_websocket_tick(kl_websocket *w, kl_time now, kl_time *next, kl_err *err)
{
    if (!w->resting && now - w->heard >= KL_WEBSOCKET_SILENCE_MAX)
        return kl_fail(err, KL_ETIMEOUT, "the server has been silent for %d s and does not answer pings",
            (int)(KL_WEBSOCKET_SILENCE_MAX / KL_SECONDS(1)));
    if (w->stuck != KL_NEVER && now - w->stuck >= KL_WEBSOCKET_WRITE_MAX)
        return kl_fail(err, KL_ETIMEOUT, "the server has read nothing for %d s",
            (int)(KL_WEBSOCKET_WRITE_MAX / KL_SECONDS(1)));
    if (now - w->pinged >= KL_WEBSOCKET_PING) {
        w->pinged = now;
        /* An unsent ping in the buffer is enough. */
        if (!w->out.len && !wslay_event_queue_msg(w->ctx, &(struct wslay_event_msg){.opcode = WSLAY_PING}))
            pump(w);
        if (w->out.len && w->stuck == KL_NEVER)
            w->stuck = now;
    }
    *next = w->pinged + KL_WEBSOCKET_PING;
    return KL_OK;
}
