/* stream_call.c - LIST and WATCH whose objects arrive one at a time: bytes from the http thread into a
 * decoder, never held whole. Everything here runs on the watch thread.
 *
 *   new -> sent -> 2xx: opened, bytes to the decoder -> done
 *            |  `-> other codes: the body is kept (bounded) and becomes an error -> done
 *            |--- 401: sent again, once, if renewed credentials are others
 *            `--- 406, or protobuf that our tables do not fit, before any object was handed over: sent
 *            again, for JSON
 *
 * Nothing else is retried here: the reflector decides whether to resume, to wait or to list again. */
#include "client/content.h"

#include <string.h>
#include "base/heap.h"
#include "base/log.h"
#include "base/mem.h"

#define ERROR_BODY_MAX ((size_t)1 << 20) /* bytes of an error answer */
#define WATCH_SLACK KL_SECONDS(30)       /* a watch beyond timeoutSeconds is ended after this extra time */
#define LIST_SILENCE_MAX                                                                                     \
    KL_SECONDS(120) /* a list without a byte for this long is dead: servers send while encoding */
#define SILENCE_CHECK KL_SECONDS(30)
/* Holds several objects: a list of 155 MB needs 2% less CPU than with 16 KB; larger buffers save nothing
 * more. */
#define GULP ((size_t)64 << 10)

typedef struct stream {
    kl_list link;
    kl_client *c;
    uint64_t id, http_id, timer_id;
    kl_stream_call call;
    char *location; /* of an answer that redirects */
    bool told;      /* the answer was garbage: its message already names call and place */
    bool limited;   /* waits for the limiter's timer */
    bool watch, cancelled, replayed;
    bool refused; /* as in call.c: answered with 401 */
    bool moved;   /* a watch that ends because our certificates changed */
    kl_time timeout;
    kl__request q;
    kl__credential *credential;
    uint64_t ticket;
    kl_stream *decoder; /* NULL until a 2xx */
    int code;
    kl_time retry_after;
    kl_time started, last_data;
    bool silent_too_long;
    bool opened, delivered; /* the caller was told of the answer; an object was delivered */
    kl_buf body;            /* of an error */
    kl_err early;
} stream;

static kl_time now(void) { return kl_clock_now(kl_clock_real()); }

static void stream_end(stream *s, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    kl_http_timer_cancel(s->c->watches, s->timer_id);
    kl_list_remove(&s->link);
    kl_slots_remove(&s->c->stream_ids, s->id);
    s->call.done(s->call.arg, st, code, st ? NULL : envelope, err);
    kl_err_fini(err);
    kl_err_fini(&s->early);
    kl_stream_free(s->decoder);
    kl__request_fini(&s->q);
    kl__credential_unref(s->credential);
    kl_buf_fini(&s->body);
    kl_free(s->location);
    kl_free(s);
}

static void stream_end_cancelled(stream *s)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_fail(&err, KL_ECANCELLED, "%s: cancelled", s->q.what ? s->q.what : "stream");
    stream_end(s, st, 0, NULL, &err);
}

/* One chunk may hold many objects: after a cancel its rest is not delivered. */
static kl_status on_item(void *arg, const kl_value *object, kl_err *err)
{
    stream *s = arg;
    s->delivered = true;
    if (!s->cancelled)
        return s->call.item(s->call.arg, object, err);
    kl_value_unref(object);
    return KL_ECANCELLED;
}

static kl_status on_event(void *arg, const char *type, const kl_value *object, kl_err *err)
{
    stream *s = arg;
    s->delivered = true;
    if (!s->cancelled)
        return s->call.event(s->call.arg, type, object, err);
    kl_value_unref(object);
    return KL_ECANCELLED;
}

static kl_status on_skipped(void *arg, const kl_stream_skipped *object, kl_err *err)
{
    stream *s = arg;
    s->delivered = true;
    return s->cancelled ? KL_ECANCELLED : s->call.skipped(s->call.arg, object, err);
}

static const kl_value *known(void *arg, const char *ns, size_t nslen, const char *name, size_t namelen)
{
    stream *s = arg;
    return s->cancelled ? NULL : s->call.known(s->call.arg, ns, nslen, name, namelen);
}

static void on_head(void *arg, const kl_http_head *head)
{
    stream *s = arg;
    s->code = head->code;
    kl__client_answered(s->c, head->code);
    s->last_data = now();
    s->retry_after = kl__retry_after(head->header(head, "Retry-After"), kl_clock_wall(s->c->clock));
    kl__client_warnings(s->c, &s->q, head);
    kl_free(s->location);
    s->location = head->code >= 300 && head->code < 400 ? kl_strdup(head->header(head, "Location")) : NULL;
    if (s->cancelled || head->code < 200 || head->code >= 300)
        return;
    s->q.in_protobuf = kl__content_is_protobuf(head->header(head, "Content-Type"));
    if (s->q.in_protobuf)
        kl_debug("it answers in protobuf", "call=%s", s->q.what);
    kl_stream_handler h = {.item = on_item,
        .event = on_event,
        .arg = s,
        .protobuf = s->q.in_protobuf,
        .max_object = s->call.max_object,
        .keep = s->call.keep,
        .api_version = s->call.api_version,
        .kind = s->call.kind,
        .known = s->call.known ? known : NULL,
        .skipped = s->call.skipped ? on_skipped : NULL};
    s->decoder = s->watch ? kl_stream_watch_new(&h) : kl_stream_list_new(&h);
    if (s->call.opened && !s->opened)
        s->call.opened(s->call.arg);
    s->opened = true;
}

static kl_status on_data(void *arg, const char *data, size_t n, kl_err *err)
{
    stream *s = arg;
    s->last_data = now();
    if (!s->decoder) {
        if (s->body.len + n <= ERROR_BODY_MAX)
            kl_buf_add(&s->body, data, n);
        return KL_OK;
    }
    kl_err story = KL_ERR_INIT;
    kl_status st = s->cancelled ? KL_ECANCELLED : kl_stream_feed(s->decoder, data, n, &story);
    if (st == KL_ESYNTAX)
        st = kl__answer_garbage(&s->q, data, n, &story, err);
    else if (st)
        kl_err_move(err, &story);
    s->told = st == KL_ESERVER;
    kl_err_fini(&story);
    return st;
}

static void on_lull(void *arg)
{
    stream *s = arg;
    if (s->decoder && !s->cancelled)
        s->call.lull(s->call.arg);
}

/* The HTTP body is complete; checks that the JSON is, too. */
static kl_status finish_decoder(stream *s, const kl_value **envelope, kl_err *err)
{
    kl_err story = KL_ERR_INIT;
    kl_status st = kl_stream_finish(s->decoder, s->watch ? NULL : envelope, &story);
    if (st == KL_ESYNTAX && s->watch)
        st = kl_fail(
            err, KL_ECLOSED, "%s: the watch ended inside an event: %s", s->q.what, kl_err_message(&story));
    else if (st == KL_ESYNTAX)
        st = kl__answer_garbage(&s->q, "", 0, &story, err);
    else if (st)
        kl_err_move(err, &story);
    kl_err_fini(&story);
    const char *kind = st || !envelope ? NULL : kl_value_str_at(*envelope, "kind", NULL);
    if (kind && !strcmp(kind, "Status"))
        st = kl__answer_fail_status(&s->q, s->code, *envelope, err);
    else if (!st && !s->watch)
        st = kl__answer_check(&s->q, *envelope, err);
    return st;
}

static void stream_send(stream *s);
static void stream_conclude(stream *s, kl_status st, int code, kl_err *err);

/* Whether the answer requires JSON instead of protobuf, and nothing of it was delivered. */
static bool again_in_json(stream *s, kl_status st, int code)
{
    if (!st && kl__content_refused(s->c, &s->q, code))
        return true;
    if (!s->decoder || !kl_stream_outdated(s->decoder))
        return false;
    kl__content_outdated(s->c, &s->q);
    return !s->delivered;
}

static void on_done(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    stream *s = arg;
    kl_client *c = s->c;
    (void)sent;
    s->http_id = 0;
    kl__client_failed(c, st);
    if (st != KL_ECANCELLED)
        kl__client_count(c, &s->q, st && !s->code ? 0 : code, 0, s->started);
    if (s->cancelled && !s->silent_too_long) {
        stream_end_cancelled(s);
        return;
    }
    if (s->moved) {
        s->moved = false;
        kl_err none = KL_ERR_INIT;
        if (s->decoder)
            stream_end(s, KL_OK, s->code, NULL, &none); /* the next watch resumes where this one ended */
        else
            stream_send(s);
        return;
    }
    if (!st && code == 401 && !s->replayed && !atomic_load(&c->closing)) {
        s->replayed = s->refused = true;
        stream_send(s);
        return;
    }
    if (again_in_json(s, st, code)) {
        kl_stream_free(s->decoder);
        s->decoder = NULL;
        stream_send(s);
        return;
    }
    stream_conclude(s, st, code, err);
}

static void stream_conclude(stream *s, kl_status st, int code, kl_err *err)
{
    const kl_value *envelope = NULL;
    kl_err story = KL_ERR_INIT;
    if (s->silent_too_long)
        st = kl_fail(&story, KL_ETIMEOUT, "%s: no byte came for %d s", s->q.what,
            (int)(LIST_SILENCE_MAX / KL_SECONDS(1)));
    else if (st) {
        kl_err_move(&story, err);
        if (!s->told && (st == KL_ESERVER || st == KL_ETOOBIG || st == KL_ECLOSED))
            kl_err_prefix(&story, "%s (%s %s)", s->q.what, s->q.method, s->q.url);
        else if (!s->told)
            kl_err_prefix(&story, "%s", s->q.what);
    } else if (s->decoder)
        st = finish_decoder(s, &envelope, &story);
    else if (code >= 300 && code < 400)
        st = kl__answer_redirect(&s->q, code, s->location, &story);
    else
        st = kl__answer_fail(&s->q,
            &(kl__answer){code, kl_buf_str(&s->body), s->body.len, s->retry_after,
                kl__credentials_describe(s->c->credentials)},
            &story);
    stream_end(s, st, s->code, envelope, &story);
    kl_value_unref(envelope);
}

static void on_silence_check(void *arg)
{
    stream *s = arg;
    kl_time quiet = now() - s->last_data;
    s->timer_id = 0;
    /* a credential plugin has a time limit of its own */
    if (quiet < LIST_SILENCE_MAX || s->ticket) {
        s->timer_id = kl_http_timer(s->c->watches, SILENCE_CHECK, on_silence_check, s);
        return;
    }
    s->silent_too_long = true;
    kl_http_cancel(s->c->watches, s->http_id);
}

static void stream_transmit(stream *s)
{
    kl_client *c = s->c;
    s->code = 0;
    s->retry_after = -1;
    s->started = s->last_data = now();
    kl_buf_clear(&s->body);
    s->http_id = kl__client_send(c, c->watches,
        &(kl__send){.q = &s->q,
            .credential = s->credential,
            .gzip = !s->watch,
            .gulp = GULP,
            .total_timeout = s->timeout,
            .on_head = on_head,
            .on_data = on_data,
            .on_lull = s->call.lull ? on_lull : NULL,
            .on_done = on_done,
            .arg = s});
    if (!s->http_id)
        stream_end_cancelled(s);
}

static void on_credential(void *arg, kl_status st, kl__credential *cred, kl_err *err)
{
    stream *s = arg;
    s->ticket = 0;
    bool same = !st && s->credential && cred->generation == s->credential->generation;
    if (s->refused && (st || same)) { /* the 401 stands */
        kl_err none = KL_ERR_INIT;
        stream_conclude(s, KL_OK, 401, &none);
        return;
    }
    s->refused = false;
    if (st) {
        kl_err_prefix(err, "%s", s->q.what);
        stream_end(s, st, 0, NULL, err);
        return;
    }
    kl__credential_unref(s->credential);
    s->credential = kl__credential_ref(cred);
    stream_transmit(s);
}

static void stream_send(stream *s)
{
    kl_client *c = s->c;
    s->last_data = now();
    uint64_t ticket = kl__credentials_get(
        c->credentials, c->watches, s->refused ? s->credential : NULL, on_credential, s);
    if (ticket)
        s->ticket = ticket; /* otherwise the stream went on, and may be freed */
}

static void stream_begin(stream *s)
{
    if (!s->watch)
        s->timer_id = kl_http_timer(s->c->watches, SILENCE_CHECK, on_silence_check, s);
    s->last_data = now();
    stream_send(s);
}

static void on_limit_over(void *arg)
{
    stream *s = arg;
    s->limited = false;
    s->timer_id = 0;
    stream_begin(s);
}

/* Posted, so that no callback comes before kl_client_stream has returned. Lists wait for the limiter;
 * watches, which live for minutes, do not. */
static void stream_start(void *arg)
{
    stream *s = arg;
    if (s->cancelled)
        stream_end_cancelled(s);
    else if (s->early.status)
        stream_end(s, s->early.status, 0, NULL, &s->early);
    else {
        kl_time wait = s->watch ? 0 : kl__client_limit(s->c, &s->q);
        s->limited = wait > 0;
        if (s->limited)
            s->timer_id = kl_http_timer(s->c->watches, wait, on_limit_over, s);
        else
            stream_begin(s);
    }
}

static kl_time seconds(int64_t n) { return n < KL_NEVER / KL_SECONDS(1) ? KL_SECONDS(n) : KL_NEVER; }

uint64_t kl_client_stream(kl_client *c, const kl_op *op, const kl_stream_call *call)
{
    stream *s = kl_new(stream);
    kl_status st = KL_OK;
    s->c = c;
    s->call = *call;
    s->watch = op->verb == KL_WATCH;
    s->timeout = op->timeout > 0              ? op->timeout
        : s->watch && op->timeout_seconds > 0 ? kl_time_after(seconds(op->timeout_seconds), WATCH_SLACK)
                                              : 0;
    if (op->verb != KL_LIST && op->verb != KL_WATCH)
        st = kl_fail(&s->early, KL_EINVAL, "%s: only list and watch stream", kl_verb_name(op->verb));
    else if (!op->resource)
        st = kl_fail(&s->early, KL_EINVAL, "%s: a stream needs a resource: resolve the kind first",
            kl_verb_name(op->verb));
    else
        st = kl__content_request(c, op, op->resource, &s->q, &s->early);
    (void)st; /* reported through `done` */
    kl_list_push(&c->streams, &s->link);
    s->id = kl_slots_add(&c->stream_ids, s);
    uint64_t id = s->id;
    kl_http_post(c->watches, stream_start, s);
    return id;
}

static void stream_cancel(stream *s)
{
    if (s->cancelled)
        return;
    s->cancelled = true;
    if (s->ticket) {
        kl__credentials_withdraw(s->c->credentials, s->ticket);
        stream_end_cancelled(s);
    } else if (s->limited) {
        kl__client_limit_return(s->c);
        stream_end_cancelled(s);
    } else if (s->http_id)
        /* on_done follows; without one, stream_start does */
        kl_http_cancel(s->c->watches, s->http_id);
}

void kl_client_stream_cancel(kl_client *c, uint64_t id)
{
    stream *s = kl_slots_get(&c->stream_ids, id);
    if (s)
        stream_cancel(s);
}

void kl__streams_cancel_all(void *client)
{
    kl_client *c = client;
    for (kl_list *l = c->streams.next; l != &c->streams;) {
        stream *s = KL_CONTAINER(l, stream, link);
        l = l->next;
        if (s->cancelled)
            continue;
        stream_cancel(s); /* may end other streams too: start over */
        l = c->streams.next;
    }
}

void kl__streams_move(void *client)
{
    kl_client *c = client;
    kl__identity *present = kl__credentials_identity(c->credentials);
    for (kl_list *l = c->streams.next; l != &c->streams; l = l->next) {
        stream *s = KL_CONTAINER(l, stream, link);
        if (!s->watch || s->cancelled || s->moved || !s->http_id || s->credential->identity == present)
            continue;
        s->moved = true;
        kl_http_cancel(c->watches, s->http_id); /* on_done follows */
    }
    kl__identity_unref(present);
}
