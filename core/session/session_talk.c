/* session_talk.c - what goes over a session's pipe: the handshake, then messages, in both directions. On
 * the streams thread.
 *
 *   pipe stands -> handshake -> 101: messages, until the peer says goodbye, is cut off or breaks the rules
 *                     `-> a refusal: asked again (session_wire.c) or told
 *
 * Nobody is read from whose bytes nobody takes, and no message is made before the last ones are going out. */
#include "session/session_impl.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include "base/mem.h"

#define READ_SIZE ((size_t)16 << 10)
#define ROUNDS_MAX 64            /* reads before the thread's other sockets get their turn */
#define PIECE ((size_t)32 << 10) /* the bytes of one message, as Kubernetes cuts them */

static kl_time now(void) { return kl_clock_now(kl_clock_real()); }

/* --- messages ----------------------------------------------------------------------------- */

static kl_status odd_channel(int channel, kl_err *err)
{
    return kl_fail(
        err, KL_ESERVER, "the server sent a message for channel %d, which does not exist", channel);
}

static kl_status keep_error(kl_session *s, const char *data, size_t n, kl_err *err)
{
    return kl_buf_add(&s->body, data, n)
        ? kl_fail(err, KL_ETOOBIG, "the server's error is longer than %zu KiB", s->body.max >> 10)
        : KL_OK;
}

static kl_status on_command_message(kl_session *s, int channel, const char *data, size_t n, kl_err *err)
{
    switch (channel) {
    case KL_STDOUT:
    case KL_STDERR: kl__session_give(s, channel, data, n); return KL_OK;
    case KL__CHANNEL_ERROR: return keep_error(s, data, n, err);
    /* v5: one channel has ended; the end of the last one closes the connection */
    case KL__CHANNEL_CLOSE: return KL_OK;
    default: return odd_channel(channel, err);
    }
}

/* Both channels begin with the port, low byte first. */
static kl_status on_port_message(kl_session *s, int channel, const char *data, size_t n, kl_err *err)
{
    if (channel != KL__PORT_DATA && channel != KL__PORT_ERROR)
        return odd_channel(channel, err);
    if (!(s->talk.greeted & 1 << channel)) {
        if (n < 2 || ((unsigned char)data[0] | (unsigned char)data[1] << 8) != s->port)
            return kl_fail(
                err, KL_ESERVER, "the server did not start channel %d with the port %d", channel, s->port);
        s->talk.greeted |= 1 << channel;
        data += 2;
        n -= 2;
    }
    if (channel == KL__PORT_ERROR)
        return keep_error(s, data, n, err);
    kl__session_give(s, KL_STDOUT, data, n);
    return KL_OK;
}

static kl_status on_message(void *arg, const char *data, size_t n, kl_err *err)
{
    kl_session *s = arg;
    if (!n)
        return KL_OK; /* an empty message */
    int channel = (unsigned char)*data;
    return s->kind == KL_SESSION_PORT ? on_port_message(s, channel, data + 1, n - 1, err)
                                      : on_command_message(s, channel, data + 1, n - 1, err);
}

/* The peer has ended; `clean`: it said so. */
static void peer_closed(kl_session *s, bool clean)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = KL_OK;
    int code = s->talk.ws ? kl_websocket_code(s->talk.ws) : 0, exit = 0;
    if (s->kind == KL_SESSION_PORT && s->body.len)
        st = kl_fail(&err, KL_ECONNECT, "%s: %.*s", s->q.what, (int)s->body.len, s->body.data);
    else if (s->kind != KL_SESSION_PORT && s->body.len)
        st = kl__channel_exit(&s->q, s->body.data, s->body.len, &exit, &err);
    else if (!clean)
        st = kl_fail(&err, KL_ECLOSED, "%s: the connection ended early", s->q.what);
    else if (code != 1000 && code != 1005)
        st = kl_fail(
            &err, KL_ECLOSED, "%s: the server ended the session with WebSocket code %d", s->q.what, code);
    else if (s->kind != KL_SESSION_PORT)
        st = kl_fail(&err, KL_ECLOSED,
            "%s: the server ended the session without saying how the command ended", s->q.what);
    kl_lock(&s->mu);
    s->exit = exit;
    kl_unlock(&s->mu);
    kl__session_finish(s, st, &err);
}

static void talk(kl_session *s, const char *data, size_t n)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_websocket_feed(s->talk.ws, data, n, now(), &err);
    if (st == KL_ECLOSED)
        peer_closed(s, true);
    else if (st)
        kl__session_fail(s, st, &err);
}

/* --- the handshake ------------------------------------------------------------------------ */

static void refused(kl_session *s)
{
    kl_err err = KL_ERR_INIT;
    kl_status st;
    kl__answer a = {s->talk.upgrade.code, kl_buf_str(&s->talk.upgrade.body), s->talk.upgrade.body.len,
        kl__retry_after(s->talk.upgrade.retry_after, kl_clock_wall(s->c->clock)),
        kl__credentials_describe(s->c->credentials)};
    if (kl__session_retry(s, &a))
        return;
    if (a.code < 300)
        st = kl_fail(&err, KL_ESERVER,
            "%s: the server answered with HTTP %d instead of switching to WebSocket: is there a proxy in "
            "between that does not support it?",
            s->q.what, a.code);
    else
        st = kl__answer_fail(&s->q, &a, &err);
    kl__session_finish(s, st, &err);
}

static void shake(kl_session *s, const char *data, size_t n)
{
    kl_err err = KL_ERR_INIT;
    size_t used;
    kl_status st = kl__upgrade_feed(&s->talk.upgrade, data, n, &used, &err);
    if (st == KL_EAGAIN)
        return;
    kl__client_count(s->c, &s->q, s->talk.upgrade.code, s->attempt.retries, s->attempt.started);
    if (st == KL_EREJECTED)
        refused(s);
    else if (st)
        kl__session_fail(s, st, &err);
    else {
        s->wire = KL__TALKING;
        s->talk.deaf = false;
        s->talk.ws = kl_websocket_new(on_message, s, now());
        kl__session_schedule(s, now() + KL_WEBSOCKET_PING);
        kl__session_opened(s, s->talk.upgrade.protocol);
        if (n > used)
            talk(s, data + used, n - used);
    }
}

/* --- the pipe ----------------------------------------------------------------------------- */

/* Reads from the pipe. True: it stopped early, and must go on without waiting for the socket, as TLS may hold
 * more bytes already. */
static bool read_in(kl_session *s)
{
    char data[READ_SIZE];
    for (int i = 0; !s->held && !s->judged && s->talk.pipe && !s->attempt.again; i++) {
        kl_err err = KL_ERR_INIT;
        size_t n;
        if (i == ROUNDS_MAX)
            return true;
        kl_status st = kl_pipe_read(s->talk.pipe, data, sizeof data, &n, &err);
        if (st == KL_EAGAIN)
            return false;
        if (st) {
            if (s->body.len && s->wire == KL__TALKING) /* the end was told before the line was cut */
                peer_closed(s, false);
            else
                kl__session_fail(s, st, &err);
            kl_err_fini(&err);
        } else if (!n && s->wire == KL__TALKING)
            peer_closed(s, false);
        else if (!n) {
            st = kl__upgrade_end(&s->talk.upgrade, &err);
            if (st == KL_EREJECTED)
                refused(s);
            else
                kl__session_fail(s, st, &err);
        } else if (s->wire == KL__TALKING)
            talk(s, data, n);
        else
            shake(s, data, n);
    }
    return false;
}

static kl_status send_message(kl_session *s, int channel, const char *data, size_t n, kl_err *err)
{
    char head = (char)channel;
    return kl_websocket_send(s->talk.ws, &head, 1, data, n, err);
}

static kl_status send_end_of_input(kl_session *s, kl_err *err)
{
    static const char input = KL_STDIN;
    s->talk.input_closed = true;
    if (s->kind == KL_SESSION_PORT || !s->input)
        return KL_OK;
    if (strcmp(s->talk.upgrade.protocol, KL__CHANNEL_V5))
        return kl_fail(err, KL_EREJECTED,
            "%s cannot signal the end of standard input, so the command would wait forever: v5 needs "
            "Kubernetes 1.30; otherwise tell the command how much to read",
            s->talk.upgrade.protocol);
    return send_message(s, KL__CHANNEL_CLOSE, &input, 1, err);
}

static kl_status send_size(kl_session *s, int columns, int rows, kl_err *err)
{
    char text[64];
    int n = snprintf(text, sizeof text, "{\"Width\":%d,\"Height\":%d}", columns, rows);
    return s->tty ? send_message(s, KL__CHANNEL_RESIZE, text, (size_t)n, err) : KL_OK;
}

/* Makes messages of what the users have queued, unless earlier messages still wait to be sent. */
static kl_status fill(kl_session *s, kl_err *err)
{
    char piece[PIECE];
    kl_status st = KL_OK;
    while (!st && kl_websocket_out(s->talk.ws)->len < KL__SESSION_LOW) {
        int channel;
        kl_lock(&s->mu);
        size_t before = kl__pieces_len(&s->out), n = kl__pieces_take(&s->out, &channel, piece, sizeof piece);
        int columns = s->columns, rows = s->rows;
        s->columns = s->rows = 0;
        bool end = !kl__pieces_len(&s->out) && s->close_input && !s->talk.input_closed;
        bool room = before > KL__SESSION_LOW && kl__pieces_len(&s->out) <= KL__SESSION_LOW;
        if (room)
            kl_cond_broadcast(&s->changed);
        kl_unlock(&s->mu);
        if (room)
            kl__session_tell(s);
        if (columns)
            st = send_size(s, columns, rows, err);
        if (!st && n && s->input)
            st = send_message(s, s->kind == KL_SESSION_PORT ? KL__PORT_DATA : KL_STDIN, piece, n, err);
        if (!st && end)
            st = send_end_of_input(s, err);
        if (!n)
            break;
    }
    return st;
}

static kl_status write_some(kl_session *s, kl_err *err)
{
    size_t taken;
    if (s->wire == KL__SHAKING) {
        kl_status st = s->talk.raw.len
            ? kl_pipe_write(s->talk.pipe, s->talk.raw.data, s->talk.raw.len, &taken, err)
            : KL_OK;
        if (!st && s->talk.raw.len)
            kl_buf_consume(&s->talk.raw, taken);
        return st;
    }
    for (;;) {
        kl_status st = fill(s, err);
        const kl_buf *out = kl_websocket_out(s->talk.ws);
        if (st || !out->len)
            return st;
        st = kl_pipe_write(s->talk.pipe, out->data, out->len, &taken, err);
        if (st)
            return st;
        kl_websocket_wrote(s->talk.ws, taken, now());
        if (!taken)
            return KL_OK;
    }
}

void kl__session_pump(kl_session *s)
{
    kl_err err = KL_ERR_INIT;
    if (!s->talk.pipe || s->judged || s->attempt.again)
        return;
    bool more = read_in(s); /* first: a peer that has closed says why */
    if (s->judged || s->attempt.again || !s->talk.pipe)
        return;
    kl_status st = s->talk.deaf ? KL_OK : write_some(s, &err);
    if (st == KL_ECLOSED && s->wire == KL__TALKING) {
        /* a peer that has gone may have said why: its words are still to be read */
        s->talk.deaf = true;
        kl_err_fini(&err);
        more = read_in(s) || more;
        if (s->judged)
            return;
    } else if (st) {
        kl__session_fail(s, st, &err);
        return;
    }
    if (s->held && s->talk.ws)
        kl_websocket_rest(s->talk.ws, true, now());
    if (more)
        /* so that the next line sets a new wish, which checks at once */
        kl_pipe_want(s->talk.pipe, false, false);
    kl_pipe_want(s->talk.pipe, !s->held,
        !s->talk.deaf && (s->wire == KL__SHAKING ? s->talk.raw.len : kl_websocket_out(s->talk.ws)->len));
}

void kl__session_on_ready(void *arg) { kl__session_pump(arg); }

void kl__session_on_pipe(void *arg, kl_pipe *p)
{
    kl_session *s = arg;
    kl_err err = KL_ERR_INIT;
    unsigned char random[16];
    s->talk.pipe = p;
    s->wire = KL__SHAKING;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        /* the key protects from confused proxies, not from attackers */
        memset(random, 0, sizeof random);
    kl__upgrade_fini(&s->talk.upgrade);
    kl__upgrade_init(&s->talk.upgrade, random, s->protocols);
    char *agent = kl_sprintf("User-Agent: %s", s->c->user_agent);
    const char *const own[] = {agent, s->attempt.credential->authorization};
    const char **lines = kl__credentials_headers(s->c->credentials, own, sizeof own / sizeof *own);
    kl_buf_clear(&s->talk.raw);
    kl_status st = kl__upgrade_request(&s->talk.upgrade, s->q.url, lines, &s->talk.raw, &err);
    kl_free(lines);
    kl_free(agent);
    if (st) {
        kl__session_fail(s, st, &err);
        return;
    }
    kl__session_schedule(s, now() + KL__SESSION_ANSWER_MAX);
    kl__session_pump(s);
}
