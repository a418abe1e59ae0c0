/* client.c - a client's life, and what its calls (call.c) and streams (stream_call.c) share: headers,
 * metrics, warnings. */
#include "client/content.h"

#include <limits.h>
#include <string.h>
#include "base/heap.h"
#include "base/locks.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "auth/exec_plugin.h"
#include "auth/oidc.h"
#include "http/proxy.h"

#define WARNINGS_MAX 256                /* texts remembered; forgotten ones are logged again */
#define WAIT_LOGGED KL_MILLISECONDS(50) /* as client-go */

static kl_time now(void) { return kl_clock_now(kl_clock_real()); }

/* --- what calls and streams share --------------------------------------------------------- */

uint64_t kl__client_send(kl_client *c, kl_http *http, const kl__send *s)
{
    const kl__request *q = s->q;
    char *types = kl__content_accept(q), *accept = kl_sprintf("Accept: %s", types),
         *type = q->content_type ? kl_sprintf("Content-Type: %s", q->content_type) : NULL;
    kl_free(types);
    const char *const own[] = {
        accept,
        type ? type : "Content-Type:",
        s->credential->authorization,
        s->condition,
        q->traceparent,
    };
    const char **lines = kl__credentials_headers(c->credentials, own, sizeof own / sizeof *own);
    uint64_t id = kl_http_submit(http,
        &(kl_http_request){.method = q->method,
            .url = q->url,
            .headers = lines,
            .body = q->body.data,
            .body_len = q->body.len,
            .proxy = c->proxy,
            .tls = kl__identity_tls(s->credential->identity, &c->config),
            .accept_gzip = s->gzip && !c->config.disable_compression,
            .total_timeout = s->total_timeout,
            .permit = s->permit,
            .on_head = s->on_head,
            .gulp = s->gulp,
            .on_data = s->on_data,
            .on_lull = s->on_lull,
            .on_done = s->on_done,
            .on_pipe = s->on_pipe,
            .on_ready = s->on_ready,
            .arg = s->arg});
    kl_free(lines);
    kl_free(accept);
    kl_free(type);
    return id;
}

/* Under the lock, so that after kl_client_set_hooks the old ones are not called any more. */
void kl__client_count(kl_client *c, const kl__request *q, int code, int retries, kl_time started)
{
    kl_lock(&c->mu);
    if (c->hooks.on_request)
        c->hooks.on_request(c->hooks.arg, q->method, c->host, code, now() - started);
    if (retries && c->hooks.on_retry)
        c->hooks.on_retry(c->hooks.arg, q->method, c->host, code);
    kl_unlock(&c->mu);
}

void kl__client_sizes(kl_client *c, const kl__request *q, size_t received)
{
    kl_lock(&c->mu);
    if (c->hooks.on_sizes)
        c->hooks.on_sizes(c->hooks.arg, q->method, c->host, q->body.len, received);
    kl_unlock(&c->mu);
}

void kl__client_delayed(kl_client *c, const kl__request *q, kl_time waited)
{
    kl_lock(&c->mu);
    if (c->hooks.on_delayed)
        c->hooks.on_delayed(c->hooks.arg, q->method, c->host, waited);
    kl_unlock(&c->mu);
    if (waited >= WAIT_LOGGED)
        kl_debug("a call waited for the rate limit", "call=%s waited_ms=%lld", q->what,
            (long long)(waited / KL_MILLISECONDS(1)));
}

static void on_lookup(void *arg, const char *name, kl_time took)
{
    kl_client *c = arg;
    kl_lock(&c->mu);
    if (c->hooks.on_lookup)
        c->hooks.on_lookup(c->hooks.arg, name, took);
    kl_unlock(&c->mu);
}

kl_status kl__client_http(kl_client *c, kl_http_options *o, kl_http **out, kl_err *err)
{
    o->on_lookup = on_lookup;
    o->on_lookup_arg = c;
    return kl_http_new(o, out, err);
}

kl_time kl__client_limit(kl_client *c, const kl__request *q)
{
    kl_lock(&c->mu);
    bool limited = c->limiter.rate > 0;
    kl_time wait = limited ? kl_bucket_reserve(&c->limiter, now()) : 0;
    kl_unlock(&c->mu);
    if (limited)
        kl__client_delayed(c, q, wait);
    return wait;
}

void kl__client_limit_return(kl_client *c)
{
    kl_lock(&c->mu);
    kl_bucket_return(&c->limiter);
    kl_unlock(&c->mu);
}

void kl_client_set_hooks(kl_client *c, const kl_client_hooks *hooks)
{
    kl_lock(&c->mu);
    c->hooks = hooks ? *hooks : (kl_client_hooks){0};
    kl_unlock(&c->mu);
}

/* A warning is logged once, and again after 256 others. */
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
        if (!seen && c->on_warning)
            c->on_warning(c->on_warning_arg, text, q->what);
        char quoted[1024], what[256];
        if (!seen && !c->on_warning)
            kl_warn("the API server warns", "warning=%s call=%s", kl_log_quote(text, quoted, sizeof quoted),
                kl_log_quote(q->what, what, sizeof what));
        kl_free(text);
    }
}

static void on_web_request(void *arg, const char *method, const char *host, int code, kl_time took)
{
    kl_client *c = arg;
    kl_lock(&c->mu);
    if (c->hooks.on_request)
        c->hooks.on_request(c->hooks.arg, method, host, code, took);
    kl_unlock(&c->mu);
}

/* --- life --------------------------------------------------------------------------------- */

static kl_status check_config(const kl_config *k, kl_err *err)
{
    if (!k->server || !*k->server)
        return kl_fail(err, KL_EINVAL, "%s: no server is given", k->source ? k->source : "the configuration");
    kl_status st = k->exec ? kl__exec_plugin_check(k, err) : KL_OK;
    return !st && k->auth_provider ? kl__oidc_check(k, err) : st;
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

/* CACHE/servers/127.0.0.1:6443: answers of one server do not apply to another. */
static kl_shelf *open_shelf(const char *cache, const char *server)
{
    const char *at = strstr(server, "://");
    char *host = kl_strdup(at ? at + 3 : server);
    for (char *p = host; *p; p++)
        if (*p == '/' || (*p == '.' && (p == host || p[-1] == '.')))
            *p = '_';
    char *dir = cache && *cache ? kl_sprintf("%s/servers/%s", cache, host) : NULL;
    kl_shelf *s = kl_shelf_new(dir);
    kl_free(dir);
    kl_free(host);
    return s;
}

static void on_moved(void *client)
{
    kl_client *c = client;
    kl_http_post(c->watches, kl__streams_move, c);
}

/* The given burst, or twice the qps, the ratio of client-go's defaults. */
static int burst_of(const kl_client_options *o)
{
    int twice = o->qps < INT_MAX / 2 ? (int)(2 * o->qps) : INT_MAX;
    int burst = o->burst >= 1 ? o->burst : twice;
    return burst < 1 ? 1 : burst;
}

/* --- outages ------------------------------------------------------------------------------ */

typedef struct heed {
    kl_list link;
    uint64_t id;
    void (*fn)(void *);
    void *arg;
} heed;

static void heeds_call(void *client)
{
    kl_client *c = client;
    for (kl_list *l = c->heeds.next; l != &c->heeds; l = l->next) {
        heed *h = KL_CONTAINER(l, heed, link);
        h->fn(h->arg);
    }
}

uint64_t kl_client_heed(kl_client *c, void (*fn)(void *), void *arg)
{
    heed *h = kl_new(heed);
    h->id = ++c->heed_ids;
    h->fn = fn;
    h->arg = arg;
    kl_list_push(&c->heeds, &h->link);
    return h->id;
}

void kl_client_heed_not(kl_client *c, uint64_t id)
{
    for (kl_list *l = c->heeds.next; l != &c->heeds; l = l->next) {
        heed *h = KL_CONTAINER(l, heed, link);
        if (h->id != id)
            continue;
        kl_list_remove(&h->link);
        kl_free(h);
        break;
    }
}

void kl__client_failed(kl_client *c, kl_status st)
{
    if (st == KL_ECONNECT || st == KL_ECLOSED || st == KL_EIO)
        atomic_store(&c->lost, true);
}

void kl__client_answered(kl_client *c, int code)
{
    if (code < 500 && atomic_load(&c->lost) && atomic_exchange(&c->lost, false)
        && !atomic_load(&c->closing)) {
        kl_info("the server answers again", "server=%s", c->host);
        kl_http_post(c->watches, heeds_call, c);
    }
}

kl_status kl_client_new(kl_client_options *o, kl_client **out, kl_err *err)
{
    kl_status st = check_config(&o->config, err);
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
    c->proxy = kl__proxy_for(c->config.proxy_url, c->config.server);
    c->hooks = o->hooks;
    c->on_warning = o->on_warning;
    c->on_warning_arg = o->on_warning_arg;
    kl_bucket_init(&c->limiter, o->qps > 0 ? o->qps : 0, burst_of(o));
    kl_list_init(&c->held);
    c->warned = kl_map_new();
    c->json_only = kl_map_new();
    c->no_protobuf = o->no_protobuf;
    c->jitter.state = (uint64_t)now();
    kl_list_init(&c->active);
    kl_list_init(&c->streams);
    kl_list_init(&c->heeds);
    kl_list_init(&c->sessions);
    kl_list_init(&c->forwards);
    kl_mutex_init_as(&c->mu, KL_LOCK_CLIENT);
    c->shelf = open_shelf(o->cache_dir, c->config.server);
    c->discovery = kl__discovery_new(c, c->shelf, o->cache_ttl);
    c->openapi = o->no_check ? NULL : kl__openapi_new(c, c->shelf, o->cache_ttl);
    char *agent = o->user_agent ? kl_strdup(o->user_agent) : user_agent();
    st = kl__client_http(
        c, &(kl_http_options){.name = "kl-calls", .http1 = o->http1, .user_agent = agent}, &c->calls, err);
    if (!st)
        st = kl__client_http(c,
            &(kl_http_options){.name = "kl-watches", .http1 = o->http1, .user_agent = agent}, &c->watches,
            err);
    c->user_agent = agent;
    if (o->allow_http)
        c->web = kl_web_new(&(kl_web_options){.user_agent = agent,
            .http1 = o->http1,
            .clock = c->clock,
            .on_request = on_web_request,
            .arg = c,
            .ask = o->web_ask,
            .ask_arg = o->web_arg});
    if (!st)
        c->credentials = kl__credentials_new(&c->config, c->clock, c->calls, on_moved, c);
    if (st)
        kl_client_free(c);
    else
        *out = c;
    return st;
}

/* Without credentials no call is sent. */
void kl_client_quit(kl_client *c)
{
    kl__credentials_close(c->credentials);
    kl_http_post(c->calls, kl__calls_cancel_all, c);
}

void kl_client_free(kl_client *c)
{
    if (!c)
        return;
    atomic_store(&c->closing, true);
    kl_web_free(c->web);
    kl__credentials_close(c->credentials);
    if (c->sessions_http)
        kl_http_post(c->sessions_http, kl__sessions_cancel_all, c);
    kl_http_free(c->sessions_http);
    if (c->watches)
        kl_http_post(c->watches, kl__streams_cancel_all, c);
    kl_http_free(c->watches);
    if (c->calls)
        kl_http_post(c->calls, kl__calls_cancel_all, c);
    kl_http_free(c->calls);
    kl__discovery_free(c->discovery);
    kl__openapi_free(c->openapi);
    kl_proto_reader_free(c->reader);
    kl_value_unref(c->like);
    kl_shelf_free(c->shelf);
    kl__credentials_free(c->credentials);
    kl_config_fini(&c->config);
    kl_map_free(c->warned, NULL);
    kl_map_free(c->json_only, NULL);
    kl_slots_fini(&c->call_ids);
    kl_slots_fini(&c->stream_ids);
    kl_mutex_fini(&c->mu);
    kl_free(c->proxy);
    kl_free(c->field_manager);
    kl_free(c->host);
    kl_free(c->user_agent);
    kl_free(c);
}

bool kl_client_reaches(const kl_client *c) { return c->web; }
const kl_config *kl_client_config(const kl_client *c) { return &c->config; }
kl_http *kl_client_watch_http(kl_client *c) { return c->watches; }
kl_http *kl_client_call_http(kl_client *c) { return c->calls; }
