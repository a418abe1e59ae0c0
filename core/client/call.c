/* call.c - one Kubernetes call: from an op to an answer, with retries.
 *
 *   new --(kind unknown)--> resolving --> queueing --> authorizing --> sending --> answered --> done
 *                                            ^             ^                          |
 *                                            |             +--------------------------+   401: once, if renewed credentials are others
 *                                            +------------------- waiting <-----------+   what retry.h says
 *
 * In QUEUEING (turn.h) a call waits for the limiter, if there is one, and for the pace of a busy server.
 * Waiting for the limiter does not count as the call's time; all other waiting does. Urgent calls (leases,
 * discovery) pass both.
 *
 * A call is made on the caller's thread and belongs to the calls thread from then on. The body stays until
 * the end, so that a replay can send it again. A write that may have reached the server is not repeated by
 * itself: only an answer (429, 5xx with Retry-After, 401) lets it be sent again. */
#include "client/content.h"

#include <string.h>
#include "base/heap.h"
#include "base/log.h"
#include "base/mem.h"
#include "client/retry.h"
#include "client/turn.h"

#define CALL_TIMEOUT KL_SECONDS(60)     /* the default timeout of a call, its retries included */
#define ANSWER_MAX ((size_t)512 << 20)  /* bytes of one answer that is kept in memory */
#define LOOK_AGAIN_AFTER KL_SECONDS(10) /* between two discoveries for unknown verbs */

typedef enum call_state { RESOLVING, QUEUEING, AUTHORIZING, SENDING, WAITING } call_state;

typedef struct call {
    kl_list link;
    kl__turn turn; /* while it is QUEUEING, and what it costs while it is SENDING */
    kl_client *c;
    uint64_t id;
    call_state state;
    bool cancelled;
    kl__op_copy *op;             /* only while its kind, or the schema of its body, is unknown */
    const kl_resource *resource; /* while its body is checked */
    bool look_again;             /* discovery does not fit the call: it is fetched again */
    kl__request q;               /* empty until the kind is known */
    kl_mandate mandate;          /* the op's */
    kl_reply_fn *done;
    kl__tagged_fn *tagged;  /* called instead of `done` for a conditional GET */
    char *condition, *etag; /* ... its header line or NULL, and the ETag of this attempt's answer */
    void *arg;
    kl_time deadline; /* real monotonic */
    kl_time started;  /* this attempt */
    char *location;   /* of an answer that redirects */
    char *own_type;   /* a raw call's Content-Type */
    int retries;
    bool replayed;              /* after a 401, once */
    kl__credential *credential; /* the credential that this attempt sent */
    /* it was answered with 401, and another is asked for; the answer is in body */
    bool refused;
    uint64_t http_id, timer_id, ticket; /* ticket: for credentials that are being fetched */
    kl_time retry_after;                /* of this answer; -1 none */
    kl_buf body;
    kl_err early; /* a mistake found before the thread took over */
} call;

static kl_time now(void) { return kl_clock_now(kl_clock_real()); }

/* --- a call's end ------------------------------------------------------------------------- */

static void call_free(call *x)
{
    kl__op_copy_free(x->op);
    kl__request_fini(&x->q);
    kl_free(x->own_type);
    kl_free(x->location);
    kl_free(x->condition);
    kl_free(x->etag);
    kl__credential_unref(x->credential);
    kl_buf_fini(&x->body);
    kl_err_fini(&x->early);
    kl_free(x);
}

static void call_end(call *x, kl_status st, int code, const kl_value *body, kl_err *err)
{
    kl_client *c = x->c;
    kl_list_remove(&x->link);
    kl__turn_leave(&x->turn);
    kl_lock(&c->mu);
    kl_slots_remove(&c->call_ids, x->id);
    kl_unlock(&c->mu);
    if (x->tagged)
        x->tagged(x->arg, st, code, st ? NULL : body, x->etag, err);
    else
        x->done(x->arg, st, code, st ? NULL : body, err);
    kl_err_fini(err);
    call_free(x);
}

static const char *call_name(const call *x)
{
    return x->q.what ? x->q.what : x->op && x->op->op.kind ? x->op->op.kind : "call";
}

static void call_end_cancelled(call *x)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_fail(&err, KL_ECANCELLED, "%s: cancelled", call_name(x));
    call_end(x, st, 0, NULL, &err);
}

/* A good answer's body as a value; NULL without a body. A Status that says Failure is an error whatever
 * the code was. */
static kl_status take_answer(call *x, int code, const kl_value **out, kl_err *err)
{
    const kl_value *v = NULL;
    kl_status st = x->body.len ? kl__content_decode(x->c, &x->q, x->body.data, x->body.len, &v, err) : KL_OK;
    const char *kind = kl_value_str_at(v, "kind", NULL), *word = kl_value_str_at(v, "status", NULL);
    if (!st && kind && word && !strcmp(kind, "Status") && !strcmp(word, "Failure"))
        st = kl__answer_fail_status(&x->q, code, v, err);
    else if (!st)
        st = kl__answer_check(&x->q, v, err);
    if (st) {
        kl_value_unref(v);
        return st;
    }
    *out = v;
    return KL_OK;
}

static void call_send(call *x);

static void call_conclude(call *x, kl_status st, int code, kl_err *err)
{
    const kl_value *v = NULL;
    if (st) {
        if (st == KL_ESERVER || st == KL_ETOOBIG || st == KL_ECLOSED)
            kl_err_prefix(err, "%s (%s %s)", call_name(x), x->q.method, x->q.url);
        else
            kl_err_prefix(err, "%s", call_name(x));
        code = 0; /* an incomplete answer does not count */
    } else if (code == 304 && x->condition)
        st = KL_OK; /* the caller's copy is valid */
    else if (code >= 200 && code < 300)
        st = take_answer(x, code, &v, err);
    else if (code >= 300 && code < 400)
        st = kl__answer_redirect(&x->q, code, x->location, err);
    else if (kl__content_refused(x->c, &x->q, code))
        st = KL_EAGAIN;
    else
        st = kl__answer_fail(&x->q,
            &(kl__answer){code, kl_buf_str(&x->body), x->body.len, x->retry_after,
                kl__credentials_describe(x->c->credentials)},
            err);
    if (st == KL_EAGAIN)
        call_send(x); /* in JSON now */
    else
        call_end(x, st, code, v, err);
    kl_value_unref(v);
}

/* --- sending, and sending again ----------------------------------------------------------- */

static void call_queue(call *x);

static void on_head(void *arg, const kl_http_head *head)
{
    call *x = arg;
    kl__client_answered(x->c, head->code);
    x->retry_after = kl__retry_after(head->header(head, "Retry-After"), kl_clock_wall(x->c->clock));
    kl__client_warnings(x->c, &x->q, head);
    kl_free(x->location);
    x->location = head->code >= 300 && head->code < 400 ? kl_strdup(head->header(head, "Location")) : NULL;
    if (x->tagged) {
        kl_free(x->etag);
        x->etag = kl_strdup(head->header(head, "ETag"));
    }
}

static kl_status on_data(void *arg, const char *data, size_t n, kl_err *err)
{
    call *x = arg;
    if (kl_buf_add(&x->body, data, n))
        return kl_fail(err, KL_ETOOBIG,
            "the answer is larger than %zu MiB: ask for less (limit and continue)", ANSWER_MAX >> 20);
    return KL_OK;
}

/* How long to wait before the next attempt; -1: there is none. */
static kl_time retry_wait(call *x, kl_status st, int code, bool sent)
{
    kl_time wait = atomic_load(&x->c->closing) ? -1
                                               : kl__retry_wait(&(kl__attempt){.method = x->q.method,
                                                   .retries = x->retries,
                                                   .st = st,
                                                   .code = code,
                                                   .sent = sent,
                                                   .retry_after = x->retry_after});
    if (wait > 0)
        /* calls that were refused together must not be retried together */
        wait += kl_random_between(&x->c->jitter, 0, wait / 4);
    return wait >= 0 && now() + wait < x->deadline ? wait : -1;
}

static void on_retry(void *arg)
{
    call *x = arg;
    x->timer_id = 0;
    call_queue(x);
}

static void on_done(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    call *x = arg;
    kl_client *c = x->c;
    x->http_id = 0;
    kl__client_failed(c, st);
    if (st != KL_ECANCELLED)
        kl__client_count(c, &x->q, st ? 0 : code, x->retries, x->started);
    if (!st)
        kl__client_sizes(c, &x->q, x->body.len);
    if (x->cancelled) {
        call_end_cancelled(x);
        return;
    }
    if (!st && code == 401 && !x->replayed && !atomic_load(&c->closing)) {
        x->replayed = x->refused = true;
        call_send(x);
        return;
    }
    kl__turn_over(&x->turn,
        st                                 ? KL_PACE_UNKNOWN
            : code == 429 && !x->q.own_429 ? KL_PACE_REFUSED
                                           : KL_PACE_GOOD,
        x->started, x->retry_after);
    kl_time wait = retry_wait(x, st, code, sent);
    if (wait < 0) {
        call_conclude(x, st, code, err);
        return;
    }
    x->retries++;
    x->state = WAITING;
    kl_debug("retrying", "call=%s attempt=%d code=%d wait_ms=%lld", call_name(x), x->retries + 1, code,
        (long long)(wait / KL_MILLISECONDS(1)));
    x->timer_id = kl_http_timer(c->calls, wait, on_retry, x);
    if (!x->timer_id)
        call_end_cancelled(x);
}

/* Queues, retries and connections lie between the door and the network, so the permission is checked
 * again. */
static kl_status permit(void *arg, kl_err *err)
{
    call *x = arg;
    if (kl_mandate_holds(&x->mandate, x->c->clock))
        return KL_OK;
    return kl_fail(
        err, KL_ENOTLEADER, "it was not sent: this process does not hold the lease; the leader will do it");
}

static void call_transmit(call *x)
{
    kl_client *c = x->c;
    kl_err err = KL_ERR_INIT;
    x->started = now();
    kl_time left = x->deadline - x->started;
    if (left <= 0) {
        call_conclude(x, kl_fail(&err, KL_ETIMEOUT, "it timed out before it was sent"), 0, &err);
        return;
    }
    if (permit(x, &err)) {
        call_conclude(x, err.status, 0, &err);
        return;
    }
    x->state = SENDING;
    x->retry_after = -1;
    kl_buf_clear(&x->body);
    x->http_id = kl__client_send(c, c->calls,
        &(kl__send){.q = &x->q,
            .credential = x->credential,
            .condition = x->condition,
            .gzip = x->q.shape == KL__LIST || x->q.shape == KL__TABLE,
            .total_timeout = left,
            .permit = x->mandate.of ? permit : NULL,
            .on_head = on_head,
            .on_data = on_data,
            .on_done = on_done,
            .arg = x});
    if (!x->http_id)
        call_end_cancelled(x);
}

static void on_credential(void *arg, kl_status st, kl__credential *cred, kl_err *err)
{
    call *x = arg;
    x->ticket = 0;
    kl_http_timer_cancel(x->c->calls, x->timer_id);
    x->timer_id = 0;
    bool same = !st && x->credential && cred->generation == x->credential->generation;
    if (x->refused && (st || same)) { /* the 401 stands */
        kl_err answer = KL_ERR_INIT;
        call_conclude(x, KL_OK, 401, &answer);
        return;
    }
    x->refused = false;
    if (st) {
        call_conclude(x, st, 0, err);
        return;
    }
    kl__credential_unref(x->credential);
    x->credential = kl__credential_ref(cred);
    call_transmit(x);
}

static void on_credential_late(void *arg)
{
    call *x = arg;
    kl_err err = KL_ERR_INIT;
    x->timer_id = 0;
    kl__credentials_withdraw(x->c->credentials, x->ticket);
    x->ticket = 0;
    call_conclude(x,
        kl_fail(&err, KL_ETIMEOUT, "its timeout expired while waiting for %s",
            kl__credentials_describe(x->c->credentials)),
        0, &err);
}

static void call_send(call *x)
{
    kl_client *c = x->c;
    x->state = AUTHORIZING;
    kl_time left = x->deadline - now();
    uint64_t ticket = kl__credentials_get(
        c->credentials, c->calls, x->refused ? x->credential : NULL, on_credential, x);
    if (!ticket)
        return; /* the call went on, and may be freed */
    x->ticket = ticket;
    x->timer_id = kl_http_timer(c->calls, left, on_credential_late, x);
}

/* --- its turn ----------------------------------------------------------------------------- */

static void on_turn(kl__turn *t) { call_send(KL_CONTAINER(t, call, turn)); }

static void on_no_turn(kl__turn *t, kl_status st, kl_err *err)
{
    call_conclude(KL_CONTAINER(t, call, turn), st, 0, err);
}

static void call_queue(call *x)
{
    x->state = QUEUEING;
    kl__turn_ask(&x->turn, &x->q, &x->deadline, !x->retries);
}

/* --- beginning ---------------------------------------------------------------------------- */

static void call_make(call *x, const kl_resource *r)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = kl__content_request(x->c, &x->op->op, r, &x->q, &err);
    if (st)
        call_end(x, st, err.http_code, NULL, &err);
    else
        call_queue(x);
}

static void on_checked(void *arg, kl_status st, const kl_value *body, kl_err *err)
{
    call *x = arg;
    kl_err story = KL_ERR_INIT;
    if (x->cancelled) {
        kl_value_unref(body);
        call_end_cancelled(x);
    } else if (st) {
        kl_err_move(&story, err);
        call_end(x, st, 0, NULL, &story);
    } else {
        kl_value_unref(x->op->op.body);
        x->op->op.body = body;
        call_make(x, x->resource);
    }
}

static void on_resolved(void *arg, kl_status st, const kl_resource *r, kl_err *err)
{
    call *x = arg;
    kl_err story = KL_ERR_INIT;
    if (x->cancelled) {
        call_end_cancelled(x);
        return;
    }
    if (st)
        kl_err_move(&story, err);
    else
        st = kl__request_offered(&x->op->op, r, &story);
    if (st)
        call_end(x, st, story.http_code, NULL, &story);
    else if (x->c->openapi && kl__openapi_wants(&x->op->op)) {
        x->resource = r;
        kl__openapi_check(x->c->openapi, &x->op->op, r, on_checked, x);
    } else
        call_make(x, r);
}

static void call_start(void *arg)
{
    call *x = arg;
    kl_list_push(&x->c->active, &x->link);
    if (x->early.status)
        call_end(x, x->early.status, 0, NULL, &x->early);
    else if (x->q.url)
        call_queue(x);
    else if (x->op->op.resource)
        on_resolved(x, KL_OK, x->op->op.resource, NULL);
    else {
        if (x->look_again)
            kl_client_discovery_forget(x->c);
        kl_client_resolve(x->c, x->op->op.kind, on_resolved, x);
    }
}

static void call_cancel(call *x)
{
    x->cancelled = true;
    if (x->http_id)
        kl_http_cancel(x->c->calls, x->http_id); /* on_done follows */
    else if (x->state == QUEUEING)
        call_end_cancelled(x);
    else if (x->state == WAITING) {
        kl_http_timer_cancel(x->c->calls, x->timer_id);
        call_end_cancelled(x);
    } else if (x->state == AUTHORIZING) {
        kl__credentials_withdraw(x->c->credentials, x->ticket);
        kl_http_timer_cancel(x->c->calls, x->timer_id);
        call_end_cancelled(x);
    } /* RESOLVING: on_resolved follows */
}

static call *call_new(kl_client *c, kl_time timeout, kl_reply_fn *done, void *arg)
{
    call *x = kl_new(call);
    kl_list_init(&x->link);
    kl__turn_init(&x->turn, c, on_turn, on_no_turn);
    kl_buf_init(&x->body, ANSWER_MAX);
    x->c = c;
    x->done = done;
    x->arg = arg;
    timeout = timeout > 0 ? timeout : CALL_TIMEOUT;
    if (c->config.timeout > 0 && c->config.timeout < timeout)
        timeout = c->config.timeout;
    x->deadline = kl_time_after(now(), timeout);
    kl_lock(&c->mu);
    x->id = kl_slots_add(&c->call_ids, x);
    kl_unlock(&c->mu);
    return x;
}

/* A resource may have gained the verb or subresource since its discovery. Fetches again, but not for every
 * wrong call. */
static bool may_look_again(kl_client *c)
{
    kl_time at = now();
    kl_lock(&c->mu);
    bool yes = !c->looked_again || at - c->looked_again >= LOOK_AGAIN_AFTER;
    if (yes)
        c->looked_again = at;
    kl_unlock(&c->mu);
    return yes;
}

/* For most ops the cached data is enough: then this thread makes the request. Otherwise the op takes the slow
 * path. */
static kl_status make_checked(call *x, const kl_op *op, const kl_resource *r)
{
    kl_client *c = x->c;
    if (!c->openapi || !kl__openapi_wants(op))
        return kl__content_request(c, op, r, &x->q, &x->early);
    kl_op good = *op;
    if (kl__openapi_try(c->openapi, op, r, &good.body)) {
        x->op = kl__op_copy_new(op);
        return KL_OK;
    }
    kl_status st = kl__content_request(c, &good, r, &x->q, &x->early);
    kl_value_unref(good.body);
    return st;
}

/* Marks the ids that kl_web_do gave. */
#define WEB_ID ((uint64_t)1 << 63)

static uint64_t do_http(kl_client *c, const kl_op *op, kl_reply_fn *done, void *arg)
{
    if (c->web) {
        uint64_t id = kl_web_do(c->web, op, done, arg);
        return id ? id | WEB_ID : 0;
    }
    kl_err err = KL_ERR_INIT;
    char *url = kl_web_shown(op);
    kl_status st = kl_fail(&err, KL_EFORBIDDEN,
        "%s %s was not sent: only --allow-http of kubelua run or dev lets scripts reach servers (in a "
        "program: kube.connect { allow_http = true })",
        op->subresource, url);
    done(arg, st, 0, NULL, &err);
    kl_err_fini(&err);
    kl_free(url);
    return 0;
}

uint64_t kl_client_do(kl_client *c, const kl_op *op, kl_reply_fn *done, void *arg)
{
    if (op->verb == KL_HTTP)
        return do_http(c, op, done, arg);
    call *x = call_new(c, op->timeout, done, arg);
    uint64_t id = x->id;
    x->turn.urgent = op->urgent;
    x->mandate = op->mandate;
    const kl_resource *r = op->resource ? op->resource
        : op->kind                      ? kl_client_resolve_cached(c, op->kind)
                                        : NULL;
    kl_status st = KL_OK;
    if (op->verb == KL_WATCH)
        st = kl_fail(&x->early, KL_EINVAL, "watch: use kl_client_stream for an endless response");
    else if (r && (st = kl__request_offered(op, r, &x->early)) && !op->resource && may_look_again(c)) {
        kl_err_fini(&x->early);
        x->look_again = true;
        x->op = kl__op_copy_new(op);
    } else if (r && !st)
        st = make_checked(x, op, r);
    else if (!r && !op->kind)
        st = kl_fail(&x->early, KL_EINVAL, "%s: name the kind, such as \"apps/v1/Deployment\"",
            kl_verb_name(op->verb));
    else if (!r)
        x->op = kl__op_copy_new(op);
    (void)st; /* reported through `done` */
    kl_http_post(c->calls, call_start, x);
    return id;
}

static call *raw_new(kl_client *c, const char *method, const char *path, const char *accept, kl_time timeout,
    kl_reply_fn *done, void *arg)
{
    call *x = call_new(c, timeout, done, arg);
    x->q = (kl__request){.method = method,
        .accept = accept,
        .url = kl_sprintf("%s%s", c->config.server, path),
        .what = kl_sprintf("%s %s", method, path)};
    return x;
}

void kl__client_raw(kl_client *c, const char *method, const char *path, const char *content_type,
    const void *body, size_t len, kl_reply_fn *done, void *arg)
{
    call *x = raw_new(c, method, path, "application/json", 0, done, arg);
    if (len) {
        x->own_type = kl_strdup(content_type ? content_type : "application/json");
        x->q.content_type = x->own_type;
        kl_buf_add(&x->q.body, body, len);
    }
    kl_http_post(c->calls, call_start, x);
}

/* For discovery: all other calls depend on it, so it is sent at once. */
uint64_t kl__client_get(
    kl_client *c, const char *path, const char *accept, kl_time timeout, kl_reply_fn *done, void *arg)
{
    call *x = raw_new(c, "GET", path, accept, timeout, done, arg);
    uint64_t id = x->id;
    x->turn.urgent = true;
    kl_http_post(c->calls, call_start, x);
    return id;
}

uint64_t kl__client_get_tagged(kl_client *c, const char *path, const char *accept, kl_time timeout,
    const char *known, kl__tagged_fn *done, void *arg)
{
    call *x = raw_new(c, "GET", path, accept, timeout, NULL, arg);
    uint64_t id = x->id;
    x->turn.urgent = true;
    x->tagged = done;
    x->condition = known ? kl_sprintf("If-None-Match: %s", known) : NULL;
    kl_http_post(c->calls, call_start, x);
    return id;
}

static void on_cancel(void *client, uint64_t id)
{
    kl_client *c = client;
    kl_lock(&c->mu);
    call *x = kl_slots_get(&c->call_ids, id);
    kl_unlock(&c->mu);
    if (x && !x->cancelled)
        call_cancel(x);
}

void kl_client_cancel(kl_client *c, uint64_t id)
{
    if (!id || atomic_load(&c->closing))
        return;
    if (id & WEB_ID) {
        kl_web_cancel(c->web, id & ~WEB_ID);
        return;
    }
    kl_http_post_with(c->calls, on_cancel, c, id);
}

void kl__calls_cancel_all(void *client)
{
    kl_client *c = client;
    for (kl_list *l = c->active.next; l != &c->active;) {
        call *x = KL_CONTAINER(l, call, link);
        l = l->next;
        if (x->cancelled)
            continue;
        call_cancel(x); /* may end other calls too: start over */
        l = c->active.next;
    }
}
