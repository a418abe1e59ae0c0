/* metrics_gate.c - a queue of requests, a thread that sends a review for each, and a cache of results. */
#include "observe/metrics_gate.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"

/* controller-runtime metrics/filters: CacheTTL, TokenAccessReviewTimeout. Refusals expire sooner: a new
 * permission takes effect soon. */
#define GOOD_FOR KL_SECONDS(60)
#define BAD_FOR KL_SECONDS(10)
#define ASK_TIMEOUT KL_SECONDS(10)
/* A scraper comes every few seconds; more waiting requests than this are not scrapers. */
#define WAITING_MAX 64
#define REMEMBERED_MAX 256

typedef struct verdict {
    int code;  /* 200: may pass */
    char *why; /* the body of a refusal */
    kl_time until;
} verdict;

typedef struct visitor {
    kl_list link;
    kl_httpd_request *request;
    char *token; /* NULL: none */
} visitor;

struct kl_metrics_gate {
    kl_client *client;
    kl_clock *clock;
    void (*open)(void *arg, kl_httpd_request *r);
    void *arg;
    kl_thread *thread;
    kl_mutex mu;
    kl_cond cond;
    kl_list waiting KL_GUARDED_BY(mu);
    size_t n_waiting KL_GUARDED_BY(mu);
    bool stopping KL_GUARDED_BY(mu);
    /* of the running review: */
    bool answered KL_GUARDED_BY(mu);
    kl_status status KL_GUARDED_BY(mu);
    const kl_value *answer KL_GUARDED_BY(mu);
    char *trouble KL_GUARDED_BY(mu);
    kl_map *known; /* token -> verdict; used only on the thread */
};

static void verdict_free(void *p)
{
    verdict *v = p;
    kl_free(v->why);
    kl_free(v);
}

static void reply(kl_httpd_request *r, int code, const char *why)
{
    kl_httpd_reply(
        r, code, "text/plain; charset=utf-8", "X-Content-Type-Options: nosniff\r\n", why, strlen(why));
}

/* --- asking ------------------------------------------------------------------------------- */

static void on_answer(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    (void)code;
    kl_metrics_gate *g = arg;
    kl_lock(&g->mu);
    g->answered = true;
    g->status = st;
    g->answer = kl_value_ref(body);
    g->trouble = st ? kl_strdup(kl_err_message(err)) : NULL;
    kl_cond_broadcast(&g->cond);
    kl_unlock(&g->mu);
}

/* Creates a review. Returns the answer, a new reference, or NULL with *trouble, which the caller frees. */
static const kl_value *ask(kl_metrics_gate *g, const char *kind, const kl_value *body, char **trouble)
{
    kl_op op;
    kl_op_init(&op, KL_CREATE, kind);
    op.body = body;
    op.timeout = ASK_TIMEOUT;
    op.urgent = true;
    kl_lock(&g->mu);
    g->answered = false;
    kl_unlock(&g->mu);
    uint64_t id = kl_client_do(g->client, &op, on_answer, g);
    kl_lock(&g->mu);
    while (!g->answered && !g->stopping) /* the call has a timeout */
        kl_cond_wait(&g->cond, &g->mu);
    bool early = !g->answered;
    kl_unlock(&g->mu);
    if (early)
        kl_client_cancel(g->client, id);
    kl_lock(&g->mu);
    while (!g->answered) /* a cancelled call is answered at once */
        kl_cond_wait(&g->cond, &g->mu);
    const kl_value *answer = g->answer;
    *trouble = g->trouble;
    g->answer = NULL;
    g->trouble = NULL;
    kl_unlock(&g->mu);
    return answer;
}

static const kl_value *token_review(const char *token)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", "authentication.k8s.io/v1");
    kl_build_kstr(b, "kind", "TokenReview");
    kl_build_key(b, "spec");
    kl_build_object(b);
    kl_build_kstr(b, "token", token);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

static const kl_value *access_review(const kl_value *user)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", "authorization.k8s.io/v1");
    kl_build_kstr(b, "kind", "SubjectAccessReview");
    kl_build_key(b, "spec");
    kl_build_object(b);
    kl_build_kstr(b, "user", kl_value_str(kl_value_get(user, "username")));
    kl_build_kstr(b, "uid", kl_value_str(kl_value_get(user, "uid")));
    kl_build_kvalue(b, "groups", kl_value_get(user, "groups"));
    kl_build_kvalue(b, "extra", kl_value_get(user, "extra"));
    kl_build_key(b, "nonResourceAttributes");
    kl_build_object(b);
    kl_build_kstr(b, "path", "/metrics");
    kl_build_kstr(b, "verb", "get");
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

static bool says(const kl_value *review, const char *what)
{
    return kl_value_bool(kl_value_get(kl_value_get(review, "status"), what), false);
}

/* The verdict on a token; NULL when the API server could not be reached (*why has the reason). */
static verdict *judge(kl_metrics_gate *g, const char *token, char **why)
{
    const kl_value *q = token_review(token), *who = ask(g, "authentication.k8s.io/v1/TokenReview", q, why);
    kl_value_unref(q);
    if (!who)
        return NULL;
    verdict *v = kl_new(verdict);
    if (!says(who, "authenticated")) {
        v->code = 401;
        v->why = kl_strdup("Unauthorized\n");
        kl_value_unref(who);
        return v;
    }
    const kl_value *user = kl_value_get(kl_value_get(who, "status"), "user"), *may;
    q = access_review(user);
    may = ask(g, "authorization.k8s.io/v1/SubjectAccessReview", q, why);
    kl_value_unref(q);
    if (!may) {
        verdict_free(v);
        v = NULL;
    } else if (says(may, "allowed")) {
        v->code = 200;
    } else {
        const char *name = kl_value_str(kl_value_get(user, "username"));
        v->code = 403;
        v->why = kl_sprintf("Authorization denied for user %s: a ClusterRole with nonResourceURLs "
                            "[\"/metrics\"], verbs [\"get\"] is missing\n",
            name ? name : "");
    }
    kl_value_unref(may);
    kl_value_unref(who);
    return v;
}

static void forget_old(kl_metrics_gate *g, kl_time now)
{
    size_t it = 0;
    const char *token;
    void *v;
    bool full = kl_map_len(g->known) >= REMEMBERED_MAX;
    while (kl_map_next(g->known, &it, &token, &v))
        if (full || ((verdict *)v)->until <= now)
            verdict_free(kl_map_take(g->known, token));
}

static void decide(kl_metrics_gate *g, visitor *v)
{
    if (!v->token) {
        reply(v->request, 401, "Unauthorized\n");
        return;
    }
    kl_time now = kl_clock_now(g->clock);
    forget_old(g, now);
    verdict *known = kl_map_get(g->known, v->token);
    if (!known) {
        char *why = NULL;
        known = judge(g, v->token, &why);
        if (!known) {
            kl_warn("cannot check who reads the metrics", "error=%s", kl_log_quoted(why));
            kl_free(why);
            reply(v->request, 500, "Authentication failed\n");
            return;
        }
        known->until = now + (known->code == 200 ? GOOD_FOR : BAD_FOR);
        kl_map_set(g->known, v->token, known);
    }
    if (known->code == 200)
        g->open(g->arg, v->request);
    else
        reply(v->request, known->code, known->why);
}

/* --- life --------------------------------------------------------------------------------- */

static void visitor_free(visitor *v)
{
    kl_free(v->token);
    kl_free(v);
}

static void gate_main(void *arg)
{
    kl_metrics_gate *g = arg;
    for (;;) {
        kl_lock(&g->mu);
        while (kl_list_empty(&g->waiting) && !g->stopping)
            kl_cond_wait(&g->cond, &g->mu);
        kl_list *l = kl_list_shift(&g->waiting);
        bool stopping = g->stopping;
        if (l)
            g->n_waiting--;
        kl_unlock(&g->mu);
        if (!l)
            return;
        visitor *v = KL_CONTAINER(l, visitor, link);
        if (stopping)
            reply(v->request, 503, "this process is stopping\n");
        else
            decide(g, v);
        visitor_free(v);
    }
}

kl_metrics_gate *kl_metrics_gate_new(
    kl_client *client, kl_clock *clock, void (*open)(void *arg, kl_httpd_request *r), void *arg)
{
    kl_metrics_gate *g = kl_new(kl_metrics_gate);
    *g = (kl_metrics_gate){.client = client, .clock = clock, .open = open, .arg = arg, .known = kl_map_new()};
    kl_mutex_init(&g->mu);
    kl_cond_init(&g->cond);
    kl_list_init(&g->waiting);
    g->thread = kl_thread_start("kl-metrics", gate_main, g);
    return g;
}

void kl_metrics_gate_ask(kl_metrics_gate *g, kl_httpd_request *r)
{
    const char *header = kl_httpd_header(r, "Authorization");
    bool bearer = header && !strncasecmp(header, "Bearer ", 7) && header[7 + strspn(header + 7, " ")];
    visitor *v = kl_new(visitor);
    v->request = r;
    v->token = bearer ? kl_strdup(header + 7 + strspn(header + 7, " ")) : NULL;
    kl_lock(&g->mu);
    bool full = g->n_waiting >= WAITING_MAX || g->stopping;
    if (!full) {
        kl_list_push(&g->waiting, &v->link);
        g->n_waiting++;
        kl_cond_broadcast(&g->cond);
    }
    kl_unlock(&g->mu);
    if (full) {
        reply(r, 503, "too many requests at once\n");
        visitor_free(v);
    }
}

void kl_metrics_gate_close(kl_metrics_gate *g)
{
    if (!g)
        return;
    kl_lock(&g->mu);
    g->stopping = true;
    kl_cond_broadcast(&g->cond);
    kl_unlock(&g->mu);
    kl_thread_join(g->thread);
    g->thread = NULL;
}

void kl_metrics_gate_free(kl_metrics_gate *g)
{
    if (!g)
        return;
    kl_map_free(g->known, verdict_free);
    kl_cond_fini(&g->cond);
    kl_mutex_fini(&g->mu);
    kl_free(g);
}
