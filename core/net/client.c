/* client.c - one Kubernetes call: from an op to an answer, with retries.
 *
 *   new --(kind unknown)--> resolving --> sending --> answered --> done
 *                                            ^           |
 *                                            +- waiting <+   429 or 5xx with Retry-After; a GET whose connection broke
 *                                            ^           |
 *                                            +-----------+   401 and the token file holds another token: once
 *
 * A call is made on the caller's thread and belongs to the calls thread from then on. The body stays until the end, so
 * that a replay can send it again. A write that may have reached the server is never repeated on its own: only an answer
 * (429, 5xx with Retry-After, 401) lets it be sent again. */
#include "net/client_impl.h"

#include <string.h>
#include "base/log.h"
#include "base/heap.h"
#include "base/mem.h"
#include "base/version.h"

#define CALL_TIMEOUT KL_SECONDS(60)         /* of a call, its retries included, when the op says nothing */
#define RETRIES_MAX 10                      /* as client-go */
#define BROKEN_GET_WAIT KL_SECONDS(1)       /* before a GET is repeated whose connection broke */
#define ANSWER_MAX ((size_t)512 << 20)      /* bytes of one answer that is held whole */
#define WARNINGS_MAX 256                    /* texts remembered; then they may be logged again */
#define HEADERS_MAX 64                      /* lines, impersonation included */

typedef enum call_state { RESOLVING, SENDING, WAITING } call_state;

typedef struct call {
    kl_list link;
    kl_client *c;
    uint64_t id;
    call_state state;
    bool cancelled;
    kl__op_copy *op;                /* only while the kind is unknown */
    kl__request q;                  /* empty until the kind is known */
    kl_reply_fn *done;
    void *arg;
    kl_time deadline;               /* real monotonic */
    kl_time started;                /* this attempt */
    int retries;
    bool replayed;                  /* after a 401, once */
    char *authorization;            /* what this attempt sent */
    uint64_t http_id, timer_id;
    kl_time retry_after;            /* of this answer; -1 none */
    kl_buf body;
    kl_err early;                   /* a mistake found before the thread took over */
} call;

static kl_time now(void)
{
    return kl_clock_now(kl_clock_real());
}

/* --- what calls and streams share ---------------------------------------------------------------------------------------- */

uint64_t kl__client_send(kl_client *c, kl_http *http, const kl__send *s)
{
    const kl__request *q = s->q;
    const kl_config *k = &c->config;
    const char *lines[HEADERS_MAX];
    size_t n = 0;
    char *accept = kl_sprintf("Accept: %s", q->accept), *type = q->content_type ? kl_sprintf("Content-Type: %s", q->content_type) : NULL;
    lines[n++] = accept;
    lines[n++] = type ? type : "Content-Type:";
    if (s->authorization)
        lines[n++] = s->authorization;
    for (const char *const *l = kl__auth_impersonation(c->auth); *l && n < HEADERS_MAX - 1; l++)
        lines[n++] = *l;
    lines[n] = NULL;
    uint64_t id = kl_http_submit(http, &(kl_http_request){
        .method = q->method, .url = q->url, .headers = lines, .body = q->body.data, .body_len = q->body.len, .proxy = k->proxy_url,
        .tls = { .ca_file = k->ca_file, .ca_pem = k->ca_data, .cert_file = k->cert_file, .cert_pem = k->cert_data,
            .key_file = k->key_file, .key_pem = k->key_data, .server_name = k->tls_server_name, .insecure = k->insecure },
        .accept_gzip = s->gzip && !k->disable_compression, .total_timeout = s->total_timeout,
        .on_head = s->on_head, .gulp = s->gulp, .on_data = s->on_data, .on_lull = s->on_lull, .on_done = s->on_done, .arg = s->arg });
    kl_free(accept);
    kl_free(type);
    return id;
}

void kl__client_count(kl_client *c, const kl__request *q, int code, kl_time started)
{
    kl_lock(&c->mu);               /* so that after kl_client_on_request the old hook is not called any more */
    if (c->on_request)
        c->on_request(c->on_request_arg, q->method, c->host, code, now() - started);
    kl_unlock(&c->mu);
}

void kl_client_on_request(kl_client *c, void (*fn)(void *arg, const char *method, const char *host, int code, kl_time took), void *arg)
{
    kl_lock(&c->mu);
    c->on_request = fn;
    c->on_request_arg = arg;
    kl_unlock(&c->mu);
}

void kl__client_warnings(kl_client *c, const kl__request *q, const kl_http_head *head)
{
    const char *line;
    for (int i = 0; (line = head->header_at(head, "Warning", i)); i++) {
        char *text = kl__warning_text(line);
        if (!text)
            continue;
        kl_lock(&c->mu);
        bool seen = kl_map_has(c->warned, text);
        if (!seen && kl_map_len(c->warned) >= WARNINGS_MAX) {
            kl_map_free(c->warned, NULL);
            c->warned = kl_map_new();
        }
        if (!seen)
            kl_map_set(c->warned, text, NULL);
        kl_unlock(&c->mu);
        char quoted[1024], what[256];
        if (!seen)
            kl_warn("the API server warns", "warning=%s call=%s", kl_log_quote(text, quoted, sizeof quoted), kl_log_quote(q->what, what, sizeof what));
        kl_free(text);
    }
}

/* --- a call's end ---------------------------------------------------------------------------------------------------------- */

static void call_free(call *x)
{
    kl__op_copy_free(x->op);
    kl__request_fini(&x->q);
    kl_free(x->authorization);
    kl_buf_fini(&x->body);
    kl_err_fini(&x->early);
    kl_free(x);
}

static void call_end(call *x, kl_status st, int code, const kl_value *body, kl_err *err)
{
    kl_client *c = x->c;
    kl_list_remove(&x->link);
    kl_lock(&c->mu);
    kl_slots_remove(&c->call_ids, x->id);
    kl_unlock(&c->mu);
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

/* A good answer's body as a value; NULL without a body. A Status that says Failure is an error whatever the code was. */
static kl_status take_answer(call *x, int code, const kl_value **out, kl_err *err)
{
    kl_err story = KL_ERR_INIT;
    const kl_value *v = NULL;
    kl_status st = KL_OK;
    if (x->body.len && kl_value_decode(x->body.data, x->body.len, &v, &story))
        st = kl__answer_garbage(&x->q, x->body.data, x->body.len, &story, err);
    kl_err_fini(&story);
    const char *kind = kl_value_str_at(v, "kind", NULL), *word = kl_value_str_at(v, "status", NULL);
    if (!st && kind && word && !strcmp(kind, "Status") && !strcmp(word, "Failure"))
        st = kl__answer_fail_status(&x->q, code, v, err);
    if (st) {
        kl_value_unref(v);
        return st;
    }
    *out = v;
    return KL_OK;
}

static void call_conclude(call *x, kl_status st, int code, kl_err *err)
{
    const kl_value *v = NULL;
    if (st) {
        kl_err_prefix(err, "%s", call_name(x));
        code = 0;                                           /* an answer that did not come whole is none */
    } else if (code >= 200 && code < 300)
        st = take_answer(x, code, &v, err);
    else
        st = kl__answer_fail(&x->q, code, kl_buf_str(&x->body), x->body.len, x->retry_after > 0 ? x->retry_after : 0, x->c->credentials, err);
    call_end(x, st, code, v, err);
    kl_value_unref(v);
}

/* --- sending, and sending again --------------------------------------------------------------------------------------------- */

static void call_send(call *x);

static void on_head(void *arg, const kl_http_head *head)
{
    call *x = arg;
    x->retry_after = kl__retry_after(head->header(head, "Retry-After"), kl_clock_wall(x->c->clock));
    kl__client_warnings(x->c, &x->q, head);
}

static kl_status on_data(void *arg, const char *data, size_t n, kl_err *err)
{
    call *x = arg;
    if (kl_buf_add(&x->body, data, n))
        return kl_fail(err, KL_ETOOBIG, "the answer is larger than %zu MiB: ask for less (limit and continue)", ANSWER_MAX >> 20);
    return KL_OK;
}

/* How long to wait before the next attempt; -1: there is none. */
static kl_time retry_wait(call *x, kl_status st, int code)
{
    if (x->retries >= RETRIES_MAX || atomic_load(&x->c->closing))
        return -1;
    kl_time wait = -1;
    if (!st && (code == 429 || code >= 500))
        wait = x->retry_after;
    else if (st == KL_ECLOSED && !strcmp(x->q.method, "GET"))
        wait = BROKEN_GET_WAIT;
    if (wait > 0)
        wait += kl_random_between(&x->c->jitter, 0, wait / 4);       /* those who were refused together do not come back together */
    return wait >= 0 && now() + wait < x->deadline ? wait : -1;
}

static void on_retry(void *arg)
{
    call *x = arg;
    x->timer_id = 0;
    call_send(x);
}

static void on_done(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    call *x = arg;
    kl_client *c = x->c;
    (void)sent;
    x->http_id = 0;
    if (st != KL_ECANCELLED)
        kl__client_count(c, &x->q, st ? 0 : code, x->started);
    if (x->cancelled) {
        call_end_cancelled(x);
        return;
    }
    if (!st && code == 401 && !x->replayed && kl__auth_renewed(c->auth, x->authorization)) {
        x->replayed = true;
        call_send(x);
        return;
    }
    kl_time wait = retry_wait(x, st, code);
    if (wait < 0) {
        call_conclude(x, st, code, err);
        return;
    }
    x->retries++;
    x->state = WAITING;
    kl_debug("retrying", "call=%s attempt=%d code=%d wait_ms=%lld", call_name(x), x->retries + 1, code, (long long)(wait / KL_MILLISECONDS(1)));
    x->timer_id = kl_http_timer(c->calls, wait, on_retry, x);
    if (!x->timer_id)
        call_end_cancelled(x);
}

static void call_send(call *x)
{
    kl_client *c = x->c;
    kl_err err = KL_ERR_INIT;
    char *authorization = NULL;
    kl_status st = kl__auth_header(c->auth, &authorization, &err);
    kl_free(x->authorization);
    x->authorization = authorization;
    x->started = now();
    kl_time left = x->deadline - x->started;
    if (!st && left <= 0)
        st = kl_fail(&err, KL_ETIMEOUT, "its time was over before it was sent");
    if (st) {
        call_conclude(x, st, 0, &err);
        return;
    }
    x->state = SENDING;
    x->retry_after = -1;
    kl_buf_clear(&x->body);
    x->http_id = kl__client_send(c, c->calls, &(kl__send){ .q = &x->q, .authorization = authorization, .total_timeout = left,
        .on_head = on_head, .on_data = on_data, .on_done = on_done, .arg = x });
    if (!x->http_id)
        call_end_cancelled(x);
}

/* --- beginning --------------------------------------------------------------------------------------------------------------- */

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
        st = kl__request_make(x->c->config.server, &x->op->op, r, x->c->field_manager, &x->q, &story);
    if (st)
        call_end(x, st, story.http_code, NULL, &story);
    else
        call_send(x);
}

static void call_start(void *arg)
{
    call *x = arg;
    kl_list_push(&x->c->active, &x->link);
    if (x->early.status)
        call_end(x, x->early.status, 0, NULL, &x->early);
    else if (x->q.url)
        call_send(x);
    else
        kl_client_resolve(x->c, x->op->op.kind, on_resolved, x);
}

static void call_cancel(call *x)
{
    x->cancelled = true;
    if (x->http_id)
        kl_http_cancel(x->c->calls, x->http_id);            /* on_done follows */
    else if (x->state == WAITING) {
        kl_http_timer_cancel(x->c->calls, x->timer_id);
        call_end_cancelled(x);
    }                                                       /* RESOLVING: on_resolved follows */
}

static call *call_new(kl_client *c, kl_time timeout, kl_reply_fn *done, void *arg)
{
    call *x = kl_new(call);
    kl_list_init(&x->link);
    kl_buf_init(&x->body, ANSWER_MAX);
    x->c = c;
    x->done = done;
    x->arg = arg;
    timeout = timeout > 0 ? timeout : CALL_TIMEOUT;
    if (c->config.timeout > 0 && c->config.timeout < timeout)
        timeout = c->config.timeout;
    x->deadline = now() + timeout;
    kl_lock(&c->mu);
    x->id = kl_slots_add(&c->call_ids, x);
    kl_unlock(&c->mu);
    return x;
}

uint64_t kl_client_do(kl_client *c, const kl_op *op, kl_reply_fn *done, void *arg)
{
    call *x = call_new(c, op->timeout, done, arg);
    uint64_t id = x->id;
    const kl_resource *r = op->resource ? op->resource : op->kind ? kl_client_resolve_cached(c, op->kind) : NULL;
    kl_status st = KL_OK;
    if (op->verb == KL_WATCH)
        st = kl_fail(&x->early, KL_EINVAL, "watch: an endless answer comes through kl_client_stream");
    else if (r)
        st = kl__request_make(c->config.server, op, r, c->field_manager, &x->q, &x->early);
    else if (!op->kind)
        st = kl_fail(&x->early, KL_EINVAL, "%s: say which kind, such as \"apps/v1/Deployment\"", kl_verb_name(op->verb));
    else
        x->op = kl__op_copy_new(op);
    (void)st;                                               /* told through done */
    kl_http_post(c->calls, call_start, x);
    return id;
}

static call *raw_new(kl_client *c, const char *method, const char *path, const char *accept, kl_time timeout, kl_reply_fn *done, void *arg)
{
    call *x = call_new(c, timeout, done, arg);
    x->q = (kl__request){ .method = method, .accept = accept, .url = kl_sprintf("%s%s", c->config.server, path), .what = kl_sprintf("%s %s", method, path) };
    return x;
}

uint64_t kl__client_get(kl_client *c, const char *path, const char *accept, kl_time timeout, kl_reply_fn *done, void *arg)
{
    call *x = raw_new(c, "GET", path, accept, timeout, done, arg);
    uint64_t id = x->id;
    kl_http_post(c->calls, call_start, x);
    return id;
}

typedef struct cancel_order { kl_client *c; uint64_t id; } cancel_order;

static void on_cancel_order(void *arg)
{
    cancel_order *o = arg;
    kl_lock(&o->c->mu);
    call *x = kl_slots_get(&o->c->call_ids, o->id);
    kl_unlock(&o->c->mu);
    if (x && !x->cancelled)
        call_cancel(x);
    kl_free(o);
}

void kl_client_cancel(kl_client *c, uint64_t id)
{
    if (!id || atomic_load(&c->closing))
        return;
    cancel_order *o = kl_new(cancel_order);
    *o = (cancel_order){ c, id };
    kl_http_post(c->calls, on_cancel_order, o);
}

static void cancel_all(void *arg)
{
    kl_client *c = arg;
    for (kl_list *l = c->active.next; l != &c->active;) {
        call *x = KL_CONTAINER(l, call, link);
        l = l->next;
        if (x->cancelled)
            continue;
        call_cancel(x);                                     /* may end other calls too: begin again */
        l = c->active.next;
    }
}

/* --- waiting ------------------------------------------------------------------------------------------------------------------ */

typedef struct waiter {
    kl_mutex mu;
    kl_cond ended;
    bool done;
    kl_status st;
    const kl_value *value;
    const kl_resource *resource;
    kl_err err;
} waiter;

static void waiter_begin(waiter *w)
{
    *w = (waiter){0};
    kl_mutex_init(&w->mu);
    kl_cond_init(&w->ended);
}

static void waiter_signal(waiter *w, kl_status st, kl_err *err)
{
    w->st = st;
    kl_err_move(&w->err, err);
    w->done = true;
    kl_cond_broadcast(&w->ended);
}

/* Every call ends at its deadline, so this does. */
static kl_status waiter_end(waiter *w, kl_err *err)
{
    kl_lock(&w->mu);
    while (!w->done)
        kl_cond_wait(&w->ended, &w->mu);
    kl_unlock(&w->mu);
    kl_cond_fini(&w->ended);
    kl_mutex_fini(&w->mu);
    if (w->st && err)
        kl_err_move(err, &w->err);
    kl_err_fini(&w->err);
    return w->st;
}

static void on_waited(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    waiter *w = arg;
    (void)code;
    kl_lock(&w->mu);
    w->value = kl_value_ref(body);
    waiter_signal(w, st, err);
    kl_unlock(&w->mu);
}

static kl_status check_thread(kl_client *c, kl_err *err)
{
    if (kl_http_on_thread(c->calls) || kl_http_on_thread(c->watches))
        return kl_fail(err, KL_EINTERNAL, "a blocking call on the client's own thread would wait for itself: use kl_client_do");
    return KL_OK;
}

static kl_status wait_for_value(waiter *w, const kl_value **out, kl_err *err)
{
    kl_status st = waiter_end(w, err);
    if (!st && out)
        *out = w->value;
    else
        kl_value_unref(w->value);
    return st;
}

kl_status kl_client_wait(kl_client *c, const kl_op *op, const kl_value **out, kl_err *err)
{
    waiter w;
    kl_status st = check_thread(c, err);
    if (st)
        return st;
    waiter_begin(&w);
    kl_client_do(c, op, on_waited, &w);
    return wait_for_value(&w, out, err);
}

kl_status kl_client_raw(kl_client *c, const char *method, const char *path, const char *content_type, const void *body, size_t len, const kl_value **out, kl_err *err)
{
    static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };
    const char *known = NULL;
    waiter w;
    kl_status st = check_thread(c, err);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!strcmp(method, methods[i]))
            known = methods[i];
    if (!st && (!known || *path != '/'))
        st = kl_fail(err, KL_EINVAL, "\"%s %s\": give GET, POST, PUT, PATCH or DELETE and a path that begins with \"/\"", method, path);
    if (st)
        return st;
    waiter_begin(&w);
    call *x = raw_new(c, known, path, "application/json", 0, on_waited, &w);
    char *type = content_type ? kl_strdup(content_type) : NULL;
    if (len) {
        x->q.content_type = type ? type : "application/json";
        kl_buf_add(&x->q.body, body, len);
    }
    kl_http_post(c->calls, call_start, x);
    st = wait_for_value(&w, out, err);
    kl_free(type);
    return st;
}

static void on_resolve_waited(void *arg, kl_status st, const kl_resource *r, kl_err *err)
{
    waiter *w = arg;
    kl_lock(&w->mu);
    w->resource = r;
    waiter_signal(w, st, err);
    kl_unlock(&w->mu);
}

kl_status kl_client_resolve_wait(kl_client *c, const char *kind, const kl_resource **out, kl_err *err)
{
    waiter w;
    kl_status st = check_thread(c, err);
    if (st)
        return st;
    waiter_begin(&w);
    kl_client_resolve(c, kind, on_resolve_waited, &w);
    st = waiter_end(&w, err);
    if (!st)
        *out = w.resource;
    return st;
}

/* --- life ------------------------------------------------------------------------------------------------------------------------ */

static kl_status refuse_plugins(const kl_config *k, kl_err *err)
{
    const char *where = k->source ? k->source : "the configuration";
    if (k->has_exec)
        return kl_fail(err, KL_EAUTH, "%s: its user runs \"%s\" to get credentials, which kubelua cannot do yet: give the user a token, tokenFile or client certificate (for example: kubectl create token SERVICEACCOUNT)",
            where, k->exec_command ? k->exec_command : "a command");
    if (k->has_auth_provider)
        return kl_fail(err, KL_EAUTH, "%s: its user needs an auth-provider, which kubelua cannot use: give the user a token, tokenFile or client certificate", where);
    if (!k->server || !*k->server)
        return kl_fail(err, KL_EINVAL, "%s: no server is given", where);
    return KL_OK;
}

static char *user_agent(void)
{
#if defined(__x86_64__)
    const char *arch = "amd64";
#elif defined(__aarch64__)
    const char *arch = "arm64";
#else
    const char *arch = "unknown";
#endif
    return kl_sprintf("kubelua/%s (linux/%s)", KL_VERSION, arch);
}

static char *host_of(const char *server)
{
    const char *host = strstr(server, "://");
    host = host ? host + 3 : server;
    return kl_strndup(host, strcspn(host, "/"));
}

kl_status kl_client_new(kl_client_options *o, kl_client **out, kl_err *err)
{
    kl_status st = refuse_plugins(&o->config, err);
    if (st) {
        kl_config_fini(&o->config);
        return st;
    }
    kl_client *c = kl_new(kl_client);
    c->config = o->config;
    o->config = (kl_config){0};
    c->clock = o->clock ? o->clock : kl_clock_real();
    c->field_manager = kl_strdup(o->field_manager ? o->field_manager : "kubelua");
    c->host = host_of(c->config.server);
    c->auth = kl__auth_new(&c->config, c->clock);
    c->credentials = kl__auth_describe(c->auth);
    c->on_request = o->on_request;
    c->on_request_arg = o->on_request_arg;
    c->warned = kl_map_new();
    c->jitter.state = (uint64_t)now();
    kl_list_init(&c->active);
    kl_list_init(&c->streams);
    kl_mutex_init(&c->mu);
    c->discovery = kl__discovery_new(c);
    char *agent = o->user_agent ? kl_strdup(o->user_agent) : user_agent();
    st = kl_http_new(&(kl_http_options){ .name = "kl-calls", .http1 = o->http1, .user_agent = agent }, &c->calls, err);
    if (!st)
        st = kl_http_new(&(kl_http_options){ .name = "kl-watches", .http1 = o->http1, .user_agent = agent }, &c->watches, err);
    kl_free(agent);
    if (st)
        kl_client_free(c);
    else
        *out = c;
    return st;
}

void kl_client_free(kl_client *c)
{
    if (!c)
        return;
    atomic_store(&c->closing, true);
    if (c->watches)
        kl_http_post(c->watches, kl__streams_cancel_all, c);
    kl_http_free(c->watches);
    if (c->calls)
        kl_http_post(c->calls, cancel_all, c);
    kl_http_free(c->calls);
    kl__discovery_free(c->discovery);
    kl__auth_free(c->auth);
    kl_config_fini(&c->config);
    kl_map_free(c->warned, NULL);
    kl_slots_fini(&c->call_ids);
    kl_slots_fini(&c->stream_ids);
    kl_mutex_fini(&c->mu);
    kl_free(c->credentials);
    kl_free(c->field_manager);
    kl_free(c->host);
    kl_free(c);
}

const kl_config *kl_client_config(const kl_client *c) { return &c->config; }
kl_http *kl_client_watch_http(kl_client *c) { return c->watches; }
kl_http *kl_client_call_http(kl_client *c) { return c->calls; }
