/* webhooks.c - requests in, decisions out; each webhook is a controller whose keys are requests. */
#include "webhook/webhooks.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/heap.h"
#include "httpd/httpd.h"
#include "base/keyring.h"
#include "base/locks.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "model/object.h"
#include "model/time.h"
#include "webhook/admission.h"
#include "webhook/conversion.h"
#include "webhook/webhook_keeper.h"
#include "webhook/webhook_metrics.h"

#define LISTEN ":9443"
/* An object of etcd's largest size, twice in a review, with room: controller-runtime's limit
 * (pkg/webhook/admission/http.go). */
#define BODY_MAX ((size_t)7 << 20)
/* The maximum number of requests under way. With more waiting, an API server is better refused than kept
 * waiting. */
#define PENDING_MAX 1000
#define TIMEOUT_DEFAULT KL_SECONDS(10)

typedef struct hook {
    kl_webhooks *w;
    const void *slot;
    char *name;
    kl_controller *c;
    kl_program *program; /* the newest, and which of its webhooks this is */
    size_t index;
    bool leaving;  /* drained; freed when its last run has ended */
    bool ignore;   /* from the newest generation; under w->mu */
    bool converts; /* likewise: it serves conversions, not admission */
    bool ready;    /* a generation was published; under w->mu */
    kl_time timeout;
} hook;

typedef struct pending {
    kl_heap_node due; /* in w->due */
    char *key, *path;
    kl_httpd_request *http;
    const kl_value *request;
    kl_time started;
    kl_trace trace; /* of the API server's call; trace "": it sent none */
    bool ignore;    /* the hook's, when the request came in */
    bool converts;
} pending;

struct kl_webhooks {
    kl_controller_env env;
    const kl_webhook_options *o;
    kl_keyring *ring;
    kl_webhook_metrics *metrics;
    kl_metrics *reconciles; /* the metrics of its controllers, which nobody reads */
    kl_httpd *server;       /* this and the next change on the loop under mu */
    kl_webhook_keeper *keeper;
    kl_mutex mu;
    kl_cond idle;     /* the last request was answered */
    size_t answering; /* requests taken from `pending`, not answered yet */
    hook **hooks;     /* changed on the loop under mu */
    size_t n;
    kl_map *pending KL_GUARDED_BY(mu); /* by key */
    kl_heap due KL_GUARDED_BY(mu);
    kl_time armed KL_GUARDED_BY(mu); /* a timer comes then, or before; KL_NEVER: none */
    uint64_t ids KL_GUARDED_BY(mu);
    bool stopping KL_GUARDED_BY(mu);
};

/* --- answers ------------------------------------------------------------------------------ */

/* Replies to a request that was taken out of the map, and frees it. Called without the lock. */
static void answer(kl_webhooks *w, pending *p, const kl_value *decision)
{
    kl_buf out = KL_BUF_INIT;
    if (p->converts)
        kl_conversion_reply(p->request, decision, &out);
    else
        kl_admission_reply(p->request, decision, &out);
    kl_httpd_reply_take(p->http, 200, "application/json", NULL, &out);
    kl_buf_fini(&out);
    kl_webhook_metrics_end(w->metrics, p->path, 200, kl_clock_now(w->env.clock) - p->started);
    kl_lock(&w->mu);
    if (!--w->answering && !kl_map_len(w->pending))
        kl_cond_broadcast(&w->idle);
    kl_unlock(&w->mu);
    kl_value_unref(p->request);
    kl_free(p->key);
    kl_free(p->path);
    kl_free(p);
}

/* Takes a request out of the map. The taker answers it. */
static pending *take_locked(kl_webhooks *w, const char *key) KL_REQUIRES(w->mu)
{
    pending *p = kl_map_take(w->pending, key);
    if (p) {
        kl_heap_remove(&w->due, &p->due);
        w->answering++;
    }
    return p;
}

/* The decision of the failure policy about a failure on our side. */
static const kl_value *by_policy(bool ignore, int code, const char *message)
{
    return ignore ? kl_admission_decide(true, 200, NULL, message)
                  : kl_admission_decide(false, code, message, NULL);
}

/* Called on a worker: the run has decided, or raised ("failed" in place of "allowed"). */
static void decided(void *arg, const char *key, const kl_value *decision)
{
    kl_webhooks *w = arg;
    const char *failed = kl_value_str_at(decision, "failed", NULL);
    if (failed)
        kl_webhook_metrics_panic(w->metrics);
    kl_lock(&w->mu);
    pending *p = take_locked(w, key);
    kl_unlock(&w->mu);
    if (!p)
        return; /* already answered at its deadline */
    const kl_value *policy = failed ? by_policy(p->ignore, 500, failed) : NULL;
    answer(w, p, failed ? policy : decision);
    kl_value_unref(policy);
}

static const kl_value *request_of(void *arg, const char *key)
{
    kl_webhooks *w = arg;
    kl_lock(&w->mu);
    pending *p = kl_map_get(w->pending, key);
    const kl_value *v = p ? kl_value_ref(p->request) : NULL;
    kl_unlock(&w->mu);
    return v;
}

static bool trace_of(void *arg, const char *key, kl_trace *out)
{
    kl_webhooks *w = arg;
    kl_lock(&w->mu);
    pending *p = kl_map_get(w->pending, key);
    bool is = p && *p->trace.trace;
    if (is)
        *out = p->trace;
    kl_unlock(&w->mu);
    return is;
}

/* --- deadlines ---------------------------------------------------------------------------- */

static void late(kl_webhooks *w, pending *p)
{
    char t[KL_DURATION_MAX];
    char *message = kl_sprintf("webhook \"%s\" did not decide within %s", p->path + 1,
        kl_duration_format(p->due.when - p->started, t));
    const kl_value *decision = by_policy(p->ignore, 504, message);
    bool traced = *p->trace.trace && kl_log_detailed();
    kl_warn("a webhook did not decide in time", "webhook=%s key=%s answer=%s%s%s", p->path + 1, p->key,
        p->converts     ? "failed"
            : p->ignore ? "allowed"
                        : "denied",
        traced ? " traceID=" : "", traced ? p->trace.trace : "");
    answer(w, p, decision);
    kl_value_unref(decision);
    kl_free(message);
}

static void arm(void *arg);

static void timer(void *arg)
{
    kl_webhooks *w = arg;
    kl_time now = kl_clock_now(w->env.clock);
    for (;;) {
        kl_lock(&w->mu);
        kl_heap_node *h = kl_heap_pop_due(&w->due, now);
        pending *p = h ? KL_CONTAINER(h, pending, due) : NULL;
        if (p) {
            take_locked(w, p->key);
        } else {
            h = kl_heap_peek(&w->due);
            w->armed = h ? h->when : KL_NEVER;
        }
        bool more = h && !p;
        kl_unlock(&w->mu);
        if (p)
            late(w, p);
        else if (more)
            arm(w);
        if (!p)
            return;
    }
}

/* On the loop: sets a timer for the request that is due first. */
static void arm(void *arg)
{
    kl_webhooks *w = arg;
    kl_lock(&w->mu);
    kl_time at = w->armed;
    kl_unlock(&w->mu);
    if (at != KL_NEVER) {
        kl_time left = at - kl_clock_now(w->env.clock);
        kl_loop_timer(w->env.loop, left > 0 ? left : 0, timer, w);
    }
}

/* --- requests: the HTTP thread ------------------------------------------------------------ */

static void refuse(kl_webhooks *w, kl_httpd_request *http, const char *path, kl_time started, int code,
    const char *fmt, ...) KL_PRINTF(6, 7);
static void refuse(
    kl_webhooks *w, kl_httpd_request *http, const char *path, kl_time started, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_buf out = KL_BUF_INIT;
    kl_buf_printf(&out, "%s\n", text);
    kl_httpd_reply_take(http, code, "text/plain; charset=utf-8", "X-Content-Type-Options: nosniff\r\n", &out);
    kl_buf_fini(&out);
    if (path)
        kl_webhook_metrics_end(w->metrics, path, code, kl_clock_now(w->env.clock) - started);
    kl_free(text);
}

static hook *find_locked(kl_webhooks *w, const char *path) KL_REQUIRES(w->mu)
{
    for (size_t i = 0; i < w->n; i++)
        if (*path == '/' && !w->hooks[i]->leaving && !strcmp(w->hooks[i]->name, path + 1))
            return w->hooks[i];
    return NULL;
}

static char *names_locked(kl_webhooks *w) KL_REQUIRES(w->mu)
{
    kl_buf b = KL_BUF_INIT;
    for (size_t i = 0; i < w->n; i++)
        if (!w->hooks[i]->leaving)
            kl_buf_printf(&b, "%s/%s", b.len ? ", " : "", w->hooks[i]->name);
    return kl_buf_take(&b);
}

static bool is_json(const char *type)
{
    size_t n = type ? strcspn(type, "; ") : 0;
    return n == strlen("application/json") && !strncasecmp(type, "application/json", n);
}

/* Queues a parsed request for its worker. Takes `request`. */
static void accept_request(
    kl_webhooks *w, const char *path, kl_httpd_request *http, const kl_value *request, kl_time started)
{
    const char *ns = kl_value_str_at(request, "namespace", NULL), *timeout = kl_httpd_query(http, "timeout");
    pending *p = kl_new(pending);
    bool rearm = false;
    *p = (pending){.path = kl_strdup(path), .http = http, .request = request, .started = started};
    (void)kl_trace_parse(kl_httpd_header(http, "traceparent"), &p->trace);
    kl_lock(&w->mu);
    hook *h = find_locked(w, path);
    bool busy = kl_map_len(w->pending) >= PENDING_MAX, good = h && h->ready && !w->stopping && !busy;
    if (good) {
        char id[32];
        snprintf(id, sizeof id, "%llu", (unsigned long long)++w->ids);
        p->ignore = h->ignore;
        p->converts = h->converts;
        p->key = kl_key_join(ns && *ns ? ns : NULL, id);
        kl_map_set(w->pending, p->key, p);
        kl_time due = started + kl_admission_time(timeout, h->timeout);
        kl_heap_push(&w->due, &p->due, due);
        rearm = due < w->armed;
        if (rearm)
            w->armed = due;
        /* under the lock: h is not freed meanwhile */
        kl_workqueue_add_with(kl_controller_queue(h->c), p->key,
            &(kl_add){.cause = kl_cause_of(KL_WHY_REQUEST, NULL)}, started);
    }
    kl_unlock(&w->mu);
    if (good) {
        if (rearm)
            kl_loop_post(w->env.loop, arm, w);
        return;
    }
    refuse(w, http, path, started, 503,
        busy ? "too many requests are under way (%s)" : "webhook %s is not ready yet", path);
    kl_value_unref(request);
    kl_free(p->path);
    kl_free(p);
}

static void handle(void *arg, kl_httpd_request *http)
{
    kl_webhooks *w = arg;
    kl_time started = kl_clock_now(w->env.clock);
    char *path = kl_strdup(kl_httpd_path(http)), *names = NULL;
    kl_lock(&w->mu);
    const hook *h = find_locked(w, path);
    bool known = h, converts = h && h->converts;
    if (!known)
        names = names_locked(w);
    kl_unlock(&w->mu);
    if (!known) {
        refuse(w, http, NULL, started, 404, "there is no webhook %.100s; known are: %s", path, names);
        kl_free(names);
        kl_free(path);
        return;
    }
    size_t n;
    const char *body = kl_httpd_body(http, &n), *type = kl_httpd_header(http, "Content-Type");
    const kl_value *request = NULL;
    kl_err err = KL_ERR_INIT;
    kl_webhook_metrics_begin(w->metrics, path);
    if (strcmp(kl_httpd_method(http), "POST"))
        refuse(w, http, path, started, 405, "%s must be sent by POST",
            converts ? "a ConversionReview" : "an AdmissionReview");
    else if (!is_json(type))
        refuse(w, http, path, started, 400, "contentType=%.60s, expected application/json", type ? type : "");
    else if (!n)
        refuse(w, http, path, started, 400, "request body is empty");
    else if ((converts ? kl_conversion_parse : kl_admission_parse)(body, n, &request, &err))
        refuse(w, http, path, started, 400, "%s", kl_err_message(&err));
    else
        accept_request(w, path, http, request, started);
    kl_err_fini(&err);
    kl_free(path);
}

/* --- life: the loop ----------------------------------------------------------------------- */

kl_webhooks *kl_webhooks_new(const kl_controller_env *env, const kl_webhook_options *o)
{
    kl_webhooks *w = kl_new(kl_webhooks);
    w->reconciles = kl_metrics_new();
    w->env = *env;
    w->env.metrics = w->reconciles;
    w->env.turns = false;  /* a requester does not wait for turns */
    w->env.offices = NULL; /* every replica answers */
    w->env.object = request_of;
    w->env.answer = decided;
    w->env.trace = trace_of;
    w->env.hook_arg = w;
    w->o = o;
    w->ring = kl_keyring_new();
    w->metrics = kl_webhook_metrics_new(env->metrics);
    w->pending = kl_map_new();
    w->armed = KL_NEVER;
    kl_heap_init(&w->due);
    kl_mutex_init_as(&w->mu, KL_LOCK_WEBHOOKS);
    kl_cond_init(&w->idle);
    return w;
}

void kl_webhooks_free(kl_webhooks *w)
{
    if (!w)
        return;
    kl_keyring_free(w->ring);
    kl_webhook_metrics_free(w->metrics);
    kl_metrics_free(w->reconciles);
    kl_map_free(w->pending, NULL); /* empty: stop has answered all */
    kl_heap_fini(&w->due);
    kl_cond_fini(&w->idle);
    kl_mutex_fini(&w->mu);
    kl_free(w->hooks);
    kl_free(w);
}

static hook *find(kl_webhooks *w, const char *name)
{
    for (size_t i = 0; i < w->n; i++)
        if (!w->hooks[i]->leaving && !strcmp(w->hooks[i]->name, name))
            return w->hooks[i];
    return NULL;
}

kl_status kl_webhooks_check(kl_webhooks *w, const void *slot, const kl_program *p, kl_err *err)
{
    for (size_t i = 0; i < p->n_hooks; i++) {
        hook *h = find(w, p->hooks[i].as.name);
        if (h && h->slot != slot)
            return kl_fail(err, KL_EEXISTS,
                "%s: another script has a webhook named %s: names are unique, they are paths and "
                "configurations",
                p->name, h->name);
    }
    if (p->n_hooks && !w->server)
        return kl_webhook_options_check(w->o, err);
    return KL_OK;
}

static hook *hook_new(kl_webhooks *w, const void *slot, const kl_webhook_spec *s)
{
    hook *h = kl_new(hook);
    *h = (hook){.w = w, .slot = slot, .name = kl_strdup(s->as.name), .c = kl_controller_new(&w->env, &s->as)};
    kl_lock(&w->mu);
    w->hooks = kl_realloc(w->hooks, (w->n + 1) * sizeof *w->hooks);
    w->hooks[w->n++] = h;
    kl_unlock(&w->mu);
    return h;
}

static const kl_webhook_spec *spec_of(const kl_program *p, const char *name)
{
    for (size_t i = 0; i < p->n_hooks; i++)
        if (!strcmp(p->hooks[i].as.name, name))
            return &p->hooks[i];
    return NULL;
}

void kl_webhooks_take(kl_webhooks *w, const void *slot, kl_program *p, int generation)
{
    for (size_t i = 0; i < w->n; i++) {
        hook *h = w->hooks[i];
        if (h->slot != slot || h->leaving || spec_of(p, h->name))
            continue;
        kl_info("the new generation lacks this webhook; it stops", "webhook=%s", h->name);
        kl_lock(&w->mu);
        h->leaving = true;
        kl_unlock(&w->mu);
        kl_controller_drain(h->c);
        if (w->keeper)
            kl_webhook_keeper_drop(w->keeper, h->name);
    }
    for (size_t i = 0; i < p->n_hooks; i++) {
        const kl_webhook_spec *s = &p->hooks[i];
        hook *h = find(w, s->as.name);
        if (!h)
            h = hook_new(w, slot, s);
        kl_lock(&w->mu);
        h->ignore = s->ignore;
        h->converts = s->converts;
        h->timeout = s->as.timeout > 0 ? s->as.timeout : TIMEOUT_DEFAULT;
        kl_unlock(&w->mu);
        kl_program_unref(h->program);
        h->program = kl_program_ref(p);
        h->index = i;
        kl_controller_stage(h->c, p, p->n_specs + i, generation);
        if (w->keeper)
            kl_webhook_keeper_want(w->keeper, p, i);
    }
}

static void changed(void *arg)
{
    kl_webhooks *w = arg;
    if (w->env.changed)
        kl_loop_post(w->env.loop, w->env.changed, w->env.changed_arg);
}

/* Checks the address. The webhooks of each cluster see that cluster, so each needs an address of its own. */
static kl_status check_address(const kl_webhooks *w, const char *listen, kl_err *err)
{
    size_t clusters = kl_fleet_size(w->env.fleet);
    const char *port = strrchr(listen, ':');
    if (clusters < 2 || (port && !strcmp(port, ":0")))
        return KL_OK;
    return kl_fail(err, KL_EINVAL,
        "webhooks of %zu clusters cannot share the address %s: run a process for each --context, or give "
        "--webhook-listen HOST:0 and --webhook-url auto, so that each cluster's webhooks have their own "
        "address",
        clusters, listen);
}

kl_status kl_webhooks_listen(kl_webhooks *w, kl_err *err)
{
    if (w->server || !w->n)
        return KL_OK;
    const char *listen = w->o->listen ? w->o->listen : LISTEN;
    kl_httpd *server = NULL;
    if (check_address(w, listen, err))
        return KL_EINVAL;
    kl_status st = kl_httpd_start(
        &(kl_httpd_options){
            .listen = listen, .max_body = BODY_MAX, .tls = w->ring, .handler = handle, .arg = w},
        &server, err);
    kl_lock(&w->mu);
    w->server = server;
    kl_unlock(&w->mu);
    if (st) {
        kl_err_prefix(err, "--webhook-listen %s", listen);
        return st;
    }
    kl_info("serving webhooks", "address=%s", kl_httpd_address(w->server));
    w->keeper = kl_webhook_keeper_start(&(kl_webhook_keeper_env){.client = w->env.client,
        .clock = kl_clock_real(),
        .ring = w->ring,
        .metrics = w->metrics,
        .o = w->o,
        .address = kl_httpd_address(w->server),
        .changed = changed,
        .changed_arg = w});
    for (size_t i = 0; i < w->n; i++)
        if (!w->hooks[i]->leaving)
            kl_webhook_keeper_want(w->keeper, w->hooks[i]->program, w->hooks[i]->index);
    return KL_OK;
}

static void hook_free(hook *h)
{
    kl_controller_join(h->c);
    kl_controller_free(h->c);
    kl_program_unref(h->program);
    kl_free(h->name);
    kl_free(h);
}

void kl_webhooks_advance(kl_webhooks *w)
{
    for (size_t i = 0; i < w->n;) {
        hook *h = w->hooks[i];
        if (!h->leaving) {
            kl_controller_advance(h->c);
            kl_lock(&w->mu);
            h->ready = kl_controller_published(h->c);
            kl_unlock(&w->mu);
        }
        if (!h->leaving || !kl_controller_ended(h->c)) {
            i++;
            continue;
        }
        kl_lock(&w->mu);
        w->hooks[i] = w->hooks[--w->n];
        kl_unlock(&w->mu);
        hook_free(h);
    }
}

typedef struct parts {
    kl_webhooks *w;
    kl_webhook_keeper *keeper;
    kl_httpd *server;
} parts;

/* On the loop, where states are collected: takes keeper and server, which are not there from now on. */
static void take_apart(void *arg)
{
    parts *p = arg;
    kl_lock(&p->w->mu);
    p->keeper = p->w->keeper;
    p->server = p->w->server;
    p->w->keeper = NULL;
    p->w->server = NULL;
    kl_unlock(&p->w->mu);
}

void kl_webhooks_stop(kl_webhooks *w, kl_time deadline)
{
    parts p = {w, NULL, NULL};
    kl_lock(&w->mu);
    w->stopping = true;
    while ((kl_map_len(w->pending) || w->answering) && kl_cond_wait_until(&w->idle, &w->mu, deadline))
        continue;
    kl_unlock(&w->mu);
    kl_loop_call(w->env.loop, take_apart, &p);
    kl_webhook_keeper_stop(p.keeper);
    kl_httpd_drain(p.server, deadline);
    kl_httpd_stop(p.server); /* closes the connections that still wait; their answers go nowhere */
    for (;;) {
        kl_lock(&w->mu);
        kl_heap_node *n = kl_heap_peek(&w->due);
        pending *left = n ? take_locked(w, KL_CONTAINER(n, pending, due)->key) : NULL;
        kl_unlock(&w->mu);
        if (!left)
            break;
        late(w, left);
    }
}

void kl_webhooks_end(kl_webhooks *w)
{
    for (size_t i = 0; i < w->n; i++) {
        kl_controller_drain(w->hooks[i]->c);
        kl_controller_abort(w->hooks[i]->c);
    }
    for (size_t i = 0; i < w->n; i++)
        hook_free(w->hooks[i]);
    w->n = 0;
}

/* --- for people --------------------------------------------------------------------------- */

size_t kl_webhooks_len(kl_webhooks *w) { return w->n; }

void kl_webhooks_state(kl_webhooks *w, size_t i, kl_controller_state *out)
{
    hook *h = w->hooks[i];
    kl_controller_state_get(h->c, out);
    char *why = w->keeper && !strcmp(out->state, "running") && !out->message
        ? kl_webhook_keeper_why(w->keeper, h->name)
        : NULL;
    if (why) {
        kl_free(out->state);
        out->state = kl_strdup("waiting for the API server");
        out->message = why;
    }
}

bool kl_webhooks_idle(kl_webhooks *w)
{
    bool idle = true;
    for (size_t i = 0; i < w->n; i++)
        idle &= kl_controller_idle(w->hooks[i]->c);
    return idle;
}

char *kl_webhooks_busy(kl_webhooks *w)
{
    for (size_t i = 0; i < w->n; i++) {
        hook *h = w->hooks[i];
        if (h->leaving)
            continue;
        char *why = w->keeper ? kl_webhook_keeper_why(w->keeper, h->name) : kl_strdup("it is not served yet");
        if (!why && !kl_controller_idle(h->c))
            why = kl_strdup("a request is under way");
        if (why) {
            char *what = kl_sprintf("webhook %s: %s", h->name, why);
            kl_free(why);
            return what;
        }
    }
    return NULL;
}

const char *kl_webhooks_address(kl_webhooks *w)
{
    kl_lock(&w->mu);
    const char *address = w->server ? kl_httpd_address(w->server) : NULL;
    kl_unlock(&w->mu);
    return address;
}
void kl_webhooks_metrics(kl_webhooks *w, kl_buf *out) { kl_webhook_metrics_write(w->metrics, out); }
