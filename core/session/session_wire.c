/* session_wire.c - the life of a session's connection; session_talk.c has what goes over it. Everything
 * here runs on the streams thread.
 *
 *   CONNECTING -> SHAKING -> TALKING -> ENDED        WebSockets: a pipe of libcurl's, a handshake, messages
 *        |            `--- 401 with a new token, Retry-After: WAITING -> CONNECTING
 *        `------------> TALKING -> ENDED             logs: an answer whose bytes are the log
 *
 * The first verdict counts; after it the connection only has to go, and conclude tells the users. */
#include "session/session_impl.h"

#include "base/heap.h"
#include "base/mem.h"

#define RETRIES_MAX 10 /* of answers that ask for them, as for calls */

static kl_time now(void) { return kl_clock_now(kl_clock_real()); }

/* --- the end ------------------------------------------------------------------------------ */

void kl__session_tell(kl_session *s)
{
    kl_lock(&s->mu);
    bool wanted = s->on_change && !s->let_go;
    kl_unlock(&s->mu);
    if (wanted)
        s->on_change(s->arg);
}

static void conclude(kl_session *s)
{
    s->wire = KL__ENDED;
    kl_http_timer_cancel(s->http, s->timer_id);
    s->timer_id = 0;
    kl_list_remove(&s->link);
    kl__upgrade_fini(&s->talk.upgrade);
    kl_websocket_free(s->talk.ws);
    s->talk.ws = NULL;
    kl_lock(&s->mu);
    s->ended = true;
    s->st = s->verdict;
    kl_err_move(&s->err, &s->story);
    kl_cond_broadcast(&s->changed);
    kl_unlock(&s->mu);
    kl__session_tell(s);
    kl__session_unref(s);
}

/* Sets the verdict, unless there is one; `err` is emptied. */
void kl__session_finish(kl_session *s, kl_status st, kl_err *err)
{
    if (s->judged) {
        kl_err_fini(err);
        return;
    }
    s->judged = true;
    s->verdict = st;
    kl_err_move(&s->story, err);
    if (s->http_id)
        kl_http_cancel(s->http, s->http_id); /* on_done follows */
    else
        conclude(s);
}

void kl__session_fail(kl_session *s, kl_status st, kl_err *err)
{
    kl_err_prefix(err, "%s", s->q.what);
    kl__session_finish(s, st, err);
}

static void send_request(kl_session *s);

/* Whether a refused request is sent again, and when. After a 401 it is, once, if renewed credentials differ;
 * until that is known the answer is kept. */
bool kl__session_retry(kl_session *s, const kl__answer *a)
{
    if (a->code == 401 && !s->attempt.replayed) {
        s->attempt.replayed = s->attempt.refused = true;
        s->attempt.again = now();
        s->verdict = kl__answer_fail(&s->q, a, &s->story);
    } else if ((a->code == 429 || a->code >= 500) && a->retry_after >= 0
        && s->attempt.retries < RETRIES_MAX) {
        s->attempt.retries++;
        s->attempt.again = now() + a->retry_after;
    } else
        return false;
    if (s->http_id)
        kl_http_cancel(s->http, s->http_id);
    return true;
}

static void on_timer(void *session);

void kl__session_schedule(kl_session *s, kl_time when)
{
    kl_http_timer_cancel(s->http, s->timer_id);
    s->timer_id = kl_http_timer(s->http, when - now(), on_timer, s);
}

/* --- bytes for the reader ----------------------------------------------------------------- */

void kl__session_opened(kl_session *s, const char *protocol)
{
    kl_lock(&s->mu);
    s->open = true;
    s->protocol = protocol;
    kl_cond_broadcast(&s->changed);
    kl_unlock(&s->mu);
    kl__session_tell(s);
}

/* Queues bytes for the reader. True: the reader is so far behind that the sender must wait. */
bool kl__session_give(kl_session *s, int channel, const char *data, size_t n)
{
    if (!n)
        return s->held;
    kl_lock(&s->mu);
    kl__pieces_add(&s->in, channel, data, n);
    if (!s->held && kl__pieces_len(&s->in) >= KL__SESSION_HIGH) {
        s->held = true;
        s->hungry = false;
    }
    kl_cond_broadcast(&s->changed);
    kl_unlock(&s->mu);
    kl__session_tell(s);
    return s->held;
}

/* --- logs --------------------------------------------------------------------------------- */

static void on_head(void *arg, const kl_http_head *head)
{
    kl_session *s = arg;
    s->code = head->code;
    s->attempt.retry_after = kl__retry_after(head->header(head, "Retry-After"), kl_clock_wall(s->c->clock));
    kl__client_warnings(s->c, &s->q, head);
    kl__client_count(s->c, &s->q, head->code, s->attempt.retries, s->attempt.started);
    if (head->code < 200 || head->code >= 300)
        return;
    s->wire = KL__TALKING;
    kl__session_opened(s, NULL);
}

static kl_status on_data(void *arg, const char *data, size_t n, kl_err *err)
{
    kl_session *s = arg;
    (void)err;
    if (s->wire != KL__TALKING)
        (void)kl_buf_add(&s->body, data, n); /* an error's text, which may be cut */
    else if (kl__session_give(s, KL_STDOUT, data, n))
        kl_http_pause(s->http, s->http_id, true);
    return KL_OK;
}

static void log_done(kl_session *s, kl_status st, kl_err *err)
{
    kl_err story = KL_ERR_INIT;
    kl__answer a = {s->code, kl_buf_str(&s->body), s->body.len, s->attempt.retry_after,
        kl__credentials_describe(s->c->credentials)};
    if (st) {
        kl_err_move(&story, err);
        if (!s->code)
            kl__client_count(s->c, &s->q, 0, s->attempt.retries, s->attempt.started);
        kl__session_fail(s, st, &story);
    } else if (s->wire == KL__TALKING)
        kl__session_finish(s, KL_OK, &story);
    else if (!kl__session_retry(s, &a)) {
        st = kl__answer_fail(&s->q, &a, &story);
        kl__session_finish(s, st, &story);
    }
}

/* --- beginning, and again ----------------------------------------------------------------- */

static void on_done(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    kl_session *s = arg;
    (void)code;
    (void)sent;
    s->http_id = 0;
    s->talk.pipe = NULL;
    if (s->judged) {
        conclude(s);
        return;
    }
    kl__session_ref(s); /* the next steps may end the session */
    if (s->kind == KL_SESSION_LOGS && !s->attempt.again)
        log_done(s, st, err);
    else if (!s->attempt.again) {
        kl_err story = KL_ERR_INIT;
        kl__client_count(s->c, &s->q, 0, s->attempt.retries, s->attempt.started);
        kl_err_move(&story, err);
        kl__session_fail(s, st, &story);
    }
    if (s->attempt.again && !s->judged) {
        s->wire = KL__WAITING;
        kl__session_schedule(s, s->attempt.again);
    }
    kl__session_unref(s);
}

static void transmit(kl_session *s)
{
    kl_client *c = s->c;
    kl_err err = KL_ERR_INIT;
    s->code = 0;
    s->attempt.retry_after = -1;
    s->attempt.started = now();
    kl_buf_clear(&s->body);
    kl__send how = {.q = &s->q, .credential = s->attempt.credential, .on_done = on_done, .arg = s};
    if (s->kind == KL_SESSION_LOGS) {
        how.on_head = on_head;
        how.on_data = on_data;
    } else {
        how.on_pipe = kl__session_on_pipe;
        how.on_ready = kl__session_on_ready;
    }
    s->http_id = kl__client_send(c, s->http, &how);
    if (!s->http_id)
        kl__session_fail(s, kl_fail(&err, KL_ECANCELLED, "cancelled"), &err);
}

static void on_credential(void *arg, kl_status st, kl__credential *cred, kl_err *err)
{
    kl_session *s = arg;
    kl_err story = KL_ERR_INIT;
    s->attempt.ticket = 0;
    if (s->attempt.refused && (st || cred->generation == s->attempt.credential->generation)) { /* the 401
                                                                                                  stands */
        kl_err_move(&story, &s->story);
        kl__session_finish(s, s->verdict, &story);
        return;
    }
    s->attempt.refused = false;
    kl_err_fini(&s->story);
    if (st) {
        kl_err_move(&story, err);
        kl__session_fail(s, st, &story);
        return;
    }
    kl__credential_unref(s->attempt.credential);
    s->attempt.credential = kl__credential_ref(cred);
    transmit(s);
}

static void send_request(kl_session *s)
{
    s->attempt.again = 0;
    s->wire = KL__CONNECTING;
    kl__session_ref(s); /* the answer may come at once, and end the session */
    uint64_t ticket = kl__credentials_get(
        s->c->credentials, s->http, s->attempt.refused ? s->attempt.credential : NULL, on_credential, s);
    if (ticket)
        s->attempt.ticket = ticket;
    kl__session_unref(s);
}

static void on_timer(void *session)
{
    kl_session *s = session;
    kl_err err = KL_ERR_INIT;
    kl_time next = 0;
    s->timer_id = 0;
    if (s->judged)
        return;
    if (s->wire == KL__WAITING)
        send_request(s);
    else if (s->wire == KL__SHAKING)
        kl__session_fail(s,
            kl_fail(&err, KL_ETIMEOUT, "the server did not answer within %d s",
                (int)(KL__SESSION_ANSWER_MAX / KL_SECONDS(1))),
            &err);
    else if (s->wire == KL__TALKING && s->talk.ws) {
        kl_status st = kl_websocket_tick(s->talk.ws, now(), &next, &err);
        if (st)
            kl__session_fail(s, st, &err);
        else {
            kl__session_schedule(s, next);
            kl__session_pump(s);
        }
    }
}

static void cancel(kl_session *s)
{
    kl_err err = KL_ERR_INIT;
    kl__credentials_withdraw(s->c->credentials, s->attempt.ticket);
    s->attempt.ticket = 0;
    if (s->wire == KL__TALKING && s->talk.ws && s->talk.pipe && !s->judged) {
        kl_websocket_close(s->talk.ws, 1000); /* a courtesy: sent only if there is room at once */
        const kl_buf *out = kl_websocket_out(s->talk.ws);
        size_t taken;
        if (out->len && kl_pipe_write(s->talk.pipe, out->data, out->len, &taken, NULL))
            taken = 0;
    }
    kl__session_fail(s, kl_fail(&err, KL_ECANCELLED, "cancelled"), &err);
}

void kl__session_begin(void *session)
{
    kl_session *s = session;
    kl_list_push(&s->c->sessions, &s->link);
    if (atomic_load(&s->c->closing))
        cancel(s);
    else
        send_request(s);
}

void kl__session_nudged(void *session)
{
    kl_session *s = session;
    kl_lock(&s->mu);
    s->posted = false;
    bool let_go = s->let_go, hungry = s->hungry;
    kl_unlock(&s->mu);
    if (s->wire == KL__ENDED)
        ;
    else if (let_go)
        cancel(s);
    else {
        if (s->held && hungry) {
            s->held = false;
            if (s->talk.ws)
                kl_websocket_rest(s->talk.ws, false, now());
            if (s->kind == KL_SESSION_LOGS)
                kl_http_pause(s->http, s->http_id, false);
        }
        kl__session_pump(s);
    }
    kl__session_unref(s);
}

/* --- the client's part -------------------------------------------------------------------- */

kl_status kl__client_streams(kl_client *c, kl_http **out, kl_err *err)
{
    kl_status st = KL_OK;
    kl_lock(&c->mu);
    if (!c->sessions_http)
        st = kl__client_http(c,
            &(kl_http_options){.name = "kl-streams", .http1 = true, .user_agent = c->user_agent},
            &c->sessions_http, err);
    *out = c->sessions_http;
    kl_unlock(&c->mu);
    return st;
}

void kl__sessions_cancel_all(void *client)
{
    kl_client *c = client;
    kl__forwards_stop_all(c);
    for (kl_list *l = c->sessions.next; l != &c->sessions;) {
        kl_session *s = KL_CONTAINER(l, kl_session, link);
        l = l->next;
        /* a session that has a verdict stays until its connection has gone */
        cancel(s);
    }
}
