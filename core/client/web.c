/* web.c - a request of a script: checked against its rules, sent, redirected if allowed, and answered.
 *
 *   made --posted--> sent --3xx that may be followed--> sent again
 *                      \--anything else--> done is called, once
 *
 * A call belongs to the web's thread from its post to its end. */
#include "client/web_impl.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "base/base64.h"
#include "base/locks.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sync.h"
#include "client/answer.h"
#include "http/proxy.h"
#include "http/reach.h"

#define TIMEOUT KL_SECONDS(30)

static kl_time now(void) { return kl_clock_now(kl_clock_real()); }

/* --- one call ----------------------------------------------------------------------------- */

static void call_free(kl_web_call *x)
{
    if (x->rules != kl_web_anywhere) {
        for (char *const *r = x->rules; *r; r++)
            kl_free(*r);
        kl_free((void *)x->rules);
    }
    kl_free(x->method);
    kl_free(x->url);
    kl_free(x->host);
    kl_free(x->location);
    kl_free(x->traceparent);
    kl_value_unref(x->order);
    kl_value_unref(x->headers);
    kl_buf_fini(&x->sent);
    kl_buf_fini(&x->body);
    kl_err_fini(&x->story);
    kl_free(x->first);
    kl_free(x);
}

void kl__web_call_over(kl_web_call *x)
{
    kl_lock(&x->w->mu);
    kl_slots_remove(&x->w->calls, x->id);
    kl_unlock(&x->w->mu);
    call_free(x);
}

static void call_end(kl_web_call *x, kl_status st, const kl_value *body, kl_err *err)
{
    kl_lock(&x->w->mu);
    kl_slots_remove(&x->w->calls, x->id);
    kl_unlock(&x->w->mu);
    x->done(x->arg, st, st ? err->http_code : x->code, body, err);
    kl_err_fini(err);
    call_free(x);
}

static kl_op op_of(const kl_web_call *x)
{
    kl_op op;
    kl_op_init(&op, KL_HTTP, "http");
    op.name = x->url;
    op.subresource = x->method;
    op.body = x->order;
    op.http = x->rules;
    return op;
}

static kl_status permit(void *arg, kl_err *err)
{
    kl_web_call *x = arg;
    if (kl_mandate_holds(&x->mandate, x->w->o.clock))
        return KL_OK;
    return kl_fail(
        err, KL_ENOTLEADER, "it was not sent: this process does not hold the lease; the leader will do it");
}

/* --- the answer --------------------------------------------------------------------------- */

static char *lower(const char *s, size_t n)
{
    char *out = kl_strndup(s, n);
    for (char *c = out; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return out;
}

/* The values received under one name, each with a NUL after it. */
typedef struct came {
    kl_buf texts;
    size_t n;
} came;

static void add_header(kl_map *all, const char *line)
{
    const char *colon = strchr(line, ':');
    if (!colon)
        return;
    char *name = lower(line, (size_t)(colon - line));
    const char *text = colon + 1 + strspn(colon + 1, " \t");
    came *c = kl_map_get(all, name);
    if (!c) {
        c = kl_new(came);
        kl_map_set(all, name, c);
    }
    if (!kl_buf_add(&c->texts, text, strlen(text) + 1)) /* the size of a head is bounded already */
        c->n++;
    kl_free(name);
}

/* A repeated header becomes a list. */
static void build_header(kl_builder *b, const char *name, const came *c)
{
    const char *text = kl_buf_str(&c->texts);
    kl_build_key(b, name);
    if (c->n != 1)
        kl_build_array(b);
    for (size_t i = 0; i < c->n; i++, text += strlen(text) + 1)
        kl_build_str(b, text);
    if (c->n != 1)
        kl_build_end(b);
}

static const kl_value *headers_of(const kl_http_head *h)
{
    kl_map *all = kl_map_new();
    for (const char *line = NULL; (line = h->next(h, line));)
        add_header(all, line);
    char **names = kl_map_sorted_keys(all);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (char **n = names; *n; n++) {
        came *c = kl_map_get(all, *n);
        build_header(b, *n, c);
        kl_buf_fini(&c->texts);
        kl_free(c);
    }
    kl_build_end(b);
    kl_free(names);
    kl_map_free(all, NULL);
    return kl_builder_done(b);
}

static bool leads_on(int code)
{
    return code == 301 || code == 302 || code == 303 || code == 307 || code == 308;
}

static void on_head(void *arg, const kl_http_head *h)
{
    kl_web_call *x = arg;
    x->code = h->code;
    kl_value_unref(x->headers);
    x->headers = headers_of(h);
    kl_free(x->location);
    x->location = kl_strdup(h->header(h, "Location"));
    x->retry_after = kl__retry_after(h->header(h, "Retry-After"), kl_clock_wall(kl_clock_real()));
    if (x->streams && kl__web_expects(x->order, x->code))
        kl__web_stream_open(x);
}

static kl_status on_data(void *arg, const char *data, size_t n, kl_err *err)
{
    kl_web_call *x = arg;
    if (x->opened)
        return kl__web_stream_data(x, data, n, err);
    if (x->body.len + n > (size_t)x->max)
        return kl_fail(err, KL_ETOOBIG,
            "the answer has more than %lld bytes; max = N allows more, up to %lld", (long long)x->max,
            (long long)KL_WEB_ANSWER_MAX);
    return kl_buf_add(&x->body, data, n);
}

/* --- sending ------------------------------------------------------------------------------ */

static void send_call(kl_web_call *x);

static bool same_server(const kl_reach *a, const kl_reach *b)
{
    return a->tls == b->tls && a->port == b->port && !strcmp(a->host, b->host);
}

/* Dry runs and processes that do not lead may only send reads. A redirect must not turn a read into a
 * write. */
static kl_status still_reads(const kl_web_call *x, kl_err *err)
{
    kl_op op = op_of(x);
    if (!x->reads || kl_web_reads(&op))
        return KL_OK;
    char *shown = kl_reach_shown(x->url);
    kl_status st = kl_fail(err, KL_EFORBIDDEN,
        "%s %s: a redirect led here, where `reads` of `http` does not list %s", x->method, shown, x->method);
    kl_free(shown);
    return st;
}

/* As in browsers: a redirected POST becomes a GET, unless the server requires the same method. */
static kl_status follow(kl_web_call *x, kl_err *err)
{
    kl_reach from, to;
    char *url = kl_reach_resolve(x->url, x->location);
    kl_status st = kl__web_check_url(x->rules, url, NULL, err);
    if (st) {
        char *shown = kl_reach_shown(x->url);
        kl_err_prefix(err, "%s %s: it leads elsewhere", x->method, shown);
        kl_free(shown);
        kl_free(url);
        return st;
    }
    st = kl_reach_parse(x->url, &from, err);
    if (!st)
        st = kl_reach_parse(url, &to, err);
    x->strayed |= !st && !same_server(&from, &to);
    kl_free(x->url);
    x->url = url;
    x->moved = true;
    if (x->code == 303 || (x->code < 303 && !strcmp(x->method, "POST"))) {
        kl_free(x->method);
        x->method = kl_strdup("GET");
        kl_buf_clear(&x->sent);
        x->type = NULL;
    }
    x->redirects--;
    return st ? st : still_reads(x, err);
}

static const kl_value *with_url(const kl_value *answer, const char *url)
{
    const kl_value *text = kl_value_of_str(url), *with = kl_value_with(answer, "url", text);
    kl_value_unref(text);
    kl_value_unref(answer);
    return with;
}

static void count(kl_web_call *x)
{
    if (x->w->o.on_request)
        x->w->o.on_request(x->w->o.arg, x->method, x->host, x->code, now() - x->began);
}

/* Handles an answer without a transport error. True: it is sent again, or read as a stream. */
static bool goes_on(kl_web_call *x, kl_status *st, const kl_value **v, kl_err *story)
{
    bool expected = kl__web_expects(x->order, x->code);
    if (leads_on(x->code) && x->redirects > 0 && x->location && !expected) {
        *st = follow(x, story);
        if (!*st)
            send_call(x);
        return !*st;
    }
    if (x->streams && expected) { /* a stand-in's answer is complete at once */
        x->ended = true;
        kl__web_stream_open(x);
        return true;
    }
    kl_op op = op_of(x);
    *st = kl__web_answer(&op, x->code, x->headers, kl_buf_str(&x->body), x->body.len, v, story);
    if (*st && x->retry_after > 0)
        story->retry_after_ns = x->retry_after;
    if (!*st && x->moved)
        *v = with_url(*v, x->url);
    return false;
}

static void on_done(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    kl_web_call *x = arg;
    kl_err story = KL_ERR_INIT;
    const kl_value *v = NULL;
    (void)sent;
    x->http_id = 0;
    x->code = code;
    count(x);
    if (st) {
        char *shown = kl_reach_shown(x->url);
        kl_err_move(&story, err);
        kl_err_prefix(&story, "%s %s", x->method, shown);
        kl_free(shown);
    }
    if (x->opened) {
        kl__web_stream_end(x, st, &story);
        return;
    }
    if (!st && goes_on(x, &st, &v, &story))
        return;
    call_end(x, st, v, &story);
    kl_value_unref(v);
}

/* After a redirect to another server only headers without information about us are sent. */
static bool goes_along(const kl_web_call *x, const char *name)
{
    return !x->strayed || !strcasecmp(name, "accept") || !strcasecmp(name, "content-type")
        || !strcasecmp(name, "accept-language");
}

static void add_line(char **lines, size_t *n, const char *name, const char *value)
{
    if (*n < KL__WEB_HEADERS)
        lines[(*n)++] = *value ? kl_sprintf("%s: %s", name, value) : kl_sprintf("%s;", name);
}

static size_t make_lines(const kl_web_call *x, char **lines)
{
    const kl_value *headers = kl_value_get(x->order, "headers");
    size_t n = 0;
    bool typed = false;
    for (size_t i = 0; i < kl_value_len(headers); i++) {
        const char *name;
        size_t len;
        const kl_value *v = kl_value_member(headers, i, &name, &len);
        bool list = kl_value_type(v) == KL_ARRAY, is_type = !strcasecmp(name, "content-type");
        typed |= is_type;
        for (size_t k = 0; k < (list ? kl_value_len(v) : 1); k++)
            if (goes_along(x, name) && (!is_type || x->sent.len))
                add_line(lines, &n, name, kl_value_str(list ? kl_value_item(v, k) : v));
    }
    if (!x->sent.len)
        lines[n++] = kl_strdup("Content-Type:");
    else if (!typed)
        lines[n++] = kl_sprintf("Content-Type: %s", x->type);
    if (x->traceparent)
        lines[n++] = kl_sprintf("traceparent: %s", x->traceparent);
    return n;
}

static uint64_t identity_of(const kl_tls *t)
{
    kl_buf b = KL_BUF_INIT;
    const char *const parts[] = {t->ca_pem, t->cert_pem, t->key_pem};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        kl_buf_printf(&b, "%s/", parts[i] ? parts[i] : "");
    uint64_t h = kl_hash(b.data, b.len);
    kl_buf_fini(&b);
    return h;
}

static kl_tls tls_of(const kl_web_call *x)
{
    const kl_value *t = kl_value_get(x->order, "tls");
    kl_tls tls = {.ca_pem = kl_value_str_at(t, "ca", NULL)};
    if (!x->strayed) {
        tls.cert_pem = kl_value_str_at(t, "cert", NULL);
        tls.key_pem = kl_value_str_at(t, "key", NULL);
        tls.server_name = kl_value_str_at(t, "server_name", NULL);
    }
    tls.generation = identity_of(&tls);
    return tls;
}

static void send_call(kl_web_call *x)
{
    kl_reach at, through;
    kl_err err = KL_ERR_INIT;
    const char *own = kl_value_str_at(x->order, "proxy", NULL);
    char *lines[KL__WEB_HEADERS + 4], *proxy = own ? kl_strdup(own) : kl__proxy_for(NULL, x->url);
    kl_status st = kl_reach_parse(x->url, &at, &err);
    if (!st && own && *own)
        st = kl_reach_parse(own, &through, &err);
    kl_time left = x->deadline - now();
    if (!st && left <= 0) {
        char *shown = kl_reach_shown(x->url);
        st = kl_fail(&err, KL_ETIMEOUT, "%s %s: no answer in time", x->method, shown);
        kl_free(shown);
    }
    if (st || x->cancelled) {
        kl_free(proxy);
        call_end(x, st ? st : kl_fail(&err, KL_ECANCELLED, "the request was cancelled"), NULL, &err);
        return;
    }
    x->code = 0;
    x->began = now();
    kl_buf_clear(&x->body);
    if (x->w->o.ask) {
        kl_free(proxy);
        x->asked = op_of(x);
        x->w->o.ask(x->w->o.ask_arg, x, &x->asked);
        return;
    }
    size_t n = make_lines(x, lines);
    lines[n] = NULL;
    /* a proxy from the environment resolves the name and restricts its targets itself */
    x->http_id = kl_http_submit(x->http,
        &(kl_http_request){.method = x->method,
            .url = x->url,
            .headers = (const char *const *)lines,
            .body = x->sent.data,
            .body_len = x->sent.len,
            .proxy = proxy,
            .reach = x->rules == kl_web_anywhere ? NULL
                : own && *own                    ? through.host
                : *proxy                         ? NULL
                                                 : at.host,
            .tls = tls_of(x),
            .accept_gzip = !x->streams,
            .total_timeout = left,
            .on_lull = x->streams ? kl__web_stream_lull : NULL,
            .permit = x->mandate.of ? permit : NULL,
            .on_head = on_head,
            .on_data = on_data,
            .on_done = on_done,
            .arg = x});
    for (size_t i = 0; i < n; i++)
        kl_free(lines[i]);
    kl_free(proxy);
    if (!x->http_id)
        call_end(x, kl_fail(&err, KL_ECANCELLED, "the process stops"), NULL, &err);
}

static void start_call(void *arg) { send_call(arg); }

void kl_web_answer(kl_web_call *x, const kl_web_reply *r)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = r->status;
    const char *after = kl_value_str_at(r->headers, "retry-after", NULL),
               *location = kl_value_str_at(r->headers, "location", NULL);
    x->code = st ? 0 : r->code;
    kl_value_unref(x->headers);
    x->headers = kl_value_ref(r->headers);
    kl_free(x->location);
    x->location = kl_strdup(location);
    x->retry_after = kl__retry_after(after, kl_clock_wall(x->w->o.clock));
    if (st)
        kl_err_move(&err, r->err);
    else if (r->len)
        st = on_data(x, r->body, r->len, &err);
    on_done(x, st, x->code, true, &err);
    kl_err_fini(&err);
}

/* --- making one --------------------------------------------------------------------------- */

static kl_status take_body(kl_web_call *x, kl_err *err)
{
    const kl_value *json = kl_value_get(x->order, "json"), *text = kl_value_get(x->order, "text"),
                   *base64 = kl_value_get(x->order, "base64");
    size_t n;
    const char *s;
    if (json) {
        x->type = "application/json";
        return kl_value_encode(json, &x->sent);
    }
    if ((s = kl_value_strn(text, &n))) {
        x->type = "text/plain; charset=utf-8";
        return kl_buf_add(&x->sent, s, n);
    }
    if ((s = kl_value_strn(base64, &n))) {
        x->type = "application/octet-stream";
        return kl_base64_decode(s, n, &x->sent, err);
    }
    return KL_OK;
}

static int64_t number(const kl_value *order, const char *key, int64_t dflt, int64_t most)
{
    int64_t n = kl_value_int_at(order, dflt, key, NULL);
    return n < 0 ? 0 : n > most ? most : n;
}

/* Copies the rules; kl_web_anywhere stays, since it is compared by address. */
static char *const *copy_rules(char *const *rules)
{
    size_t n = 0;
    if (rules == kl_web_anywhere)
        return rules;
    while (rules && rules[n])
        n++;
    char **out = kl_new_array(char *, n + 1);
    for (size_t i = 0; i < n; i++)
        out[i] = kl_strdup(rules[i]);
    return out;
}

static char *host_of(const char *rule)
{
    const char *host = rule ? strstr(rule, "://") : NULL;
    host = host ? host + 3 : "";
    return kl_strndup(host, strcspn(host, "/ "));
}

static kl_web_call *call_new(kl_web *w, const kl_op *op, kl_reply_fn *done, void *arg)
{
    kl_web_call *x = kl_new(kl_web_call);
    const char *rule = NULL;
    (void)!kl__web_check_url(op->http, op->name, &rule, NULL); /* kl_web_check has already accepted the URL */
    x->w = w;
    x->done = done;
    x->arg = arg;
    x->method = kl_strdup(op->subresource);
    x->url = kl_strdup(op->name);
    x->host = host_of(rule);
    x->rules = copy_rules(op->http);
    x->order = kl_value_ref(op->body);
    x->traceparent = kl_strdup(op->traceparent);
    x->reads = kl_reach_reads(rule, op->subresource);
    x->mandate = x->reads ? (kl_mandate){0} : op->mandate;
    x->redirects = number(op->body, "redirects", 0, KL_WEB_REDIRECTS_MAX);
    x->streams = kl_web_streams(op);
    x->first = x->streams ? kl_strdup(op->name) : NULL;
    x->max = number(
        op->body, "max", x->streams ? KL_WEB_ANSWER_MAX : KL_WEB_ANSWER_DEFAULT, KL_WEB_ANSWER_MAX);
    x->deadline = kl_time_after(now(), op->timeout > 0 ? op->timeout : TIMEOUT);
    kl_buf_init(&x->body, (size_t)KL_WEB_ANSWER_MAX + 1);
    kl_buf_init(&x->sent, (size_t)KL_WEB_ANSWER_MAX * 4);
    return x;
}

static kl_status open_http(kl_web *w, bool streams, kl_http **out, kl_err *err)
{
    kl_http_options o = {
        .name = streams ? "web-streams" : "web", .http1 = streams || w->o.http1, .user_agent = w->user_agent};
    kl_lock(&w->mu);
    kl_http **at = streams ? &w->streams : &w->http;
    kl_status st = *at || w->o.ask ? KL_OK : kl_http_new(&o, at, err);
    *out = *at;
    kl_unlock(&w->mu);
    return st;
}

uint64_t kl_web_do(kl_web *w, const kl_op *op, kl_reply_fn *done, void *arg)
{
    kl_err err = KL_ERR_INIT;
    kl_http *http = NULL;
    kl_status st = kl_web_check(op, &err);
    if (!st && kl_web_of_stream(op))
        return kl__web_stream_do(w, op, done, arg);
    kl_web_call *x = st ? NULL : call_new(w, op, done, arg);
    if (!st)
        st = take_body(x, &err);
    if (!st)
        st = open_http(w, x->streams, &http, &err);
    if (st) {
        done(arg, st, 0, NULL, &err);
        kl_err_fini(&err);
        if (x)
            call_free(x);
        return 0;
    }
    x->http = http;
    kl_lock(&w->mu);
    uint64_t id = x->id = kl_slots_add(&w->calls, x);
    kl_unlock(&w->mu);
    if (http)
        kl_http_post(http, start_call, x);
    else
        send_call(x);
    return id;
}

/* An opened stream without a transfer has ended, but its end was not read yet. */
void kl__web_call_cancel(kl_web_call *x)
{
    if (x->cancelled)
        return;
    x->cancelled = true;
    if (x->ended)
        kl__web_call_over(x);
    else
        kl_http_cancel(x->http, x->http_id);
}

static void on_cancel(void *web, uint64_t id)
{
    kl_web *w = web;
    kl_lock(&w->mu);
    kl_web_call *x = kl_slots_get(&w->calls, id);
    kl_unlock(&w->mu);
    if (x)
        kl__web_call_cancel(x);
}

void kl_web_cancel(kl_web *w, uint64_t id)
{
    kl_lock(&w->mu);
    kl_web_call *x = kl_slots_get(&w->calls, id);
    kl_http *http = x ? x->http : NULL;
    kl_unlock(&w->mu);
    if (http)
        kl_http_post_with(http, on_cancel, w, id);
}

/* --- life --------------------------------------------------------------------------------- */

kl_web *kl_web_new(const kl_web_options *o)
{
    kl_web *w = kl_new(kl_web);
    w->o = *o;
    if (!w->o.clock)
        w->o.clock = kl_clock_real();
    w->user_agent = kl_strdup(o->user_agent);
    kl_mutex_init_as(&w->mu, KL_LOCK_WEB);
    return w;
}

void kl_web_free(kl_web *w)
{
    if (!w)
        return;
    kl_lock(&w->mu);
    kl_http *http = w->http, *streams = w->streams;
    kl_unlock(&w->mu);
    kl_http_free(http);
    kl_http_free(streams);
    for (uint32_t i = 0; i < w->calls.len; i++)
        if (w->calls.v[i].p) /* a stream whose end was not read */
            call_free(w->calls.v[i].p);
    kl_slots_fini(&w->calls);
    kl_mutex_fini(&w->mu);
    kl_free(w->user_agent);
    kl_free(w);
}
