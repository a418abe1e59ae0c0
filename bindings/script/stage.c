/* stage.c - settling: runs a key's turn, waits until everything that follows from it has arrived, and looks
 * again.
 *
 *   run under way --ended--> mark the server --every cache has come to the mark--> a key is ready? its turn : settled
 *
 * It waits for threads at work, in real time and with a deadline; virtual time passes only in
 * lkl__stage_advance. */
#include "script/stage.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"

/* Nothing here takes that long, so anything that does is hanging. */
#define PATIENCE KL_SECONDS(60)
/* A watch that opened after the mark has not received it. */
#define MARK_AGAIN KL_MILLISECONDS(5)
#define PAUSE_FIRST KL_MICROSECONDS(10)
#define PAUSE_MAX KL_MILLISECONDS(1)
/* Runs at one moment of virtual time; after that many, settling fails as endless. */
#define TURNS_MAX 10000
/* The limit beside a server that people use, which has more objects than a test. */
#define TURNS_MAX_BESIDE 1000000

void lkl__journal_add(lkl_journal *j, const char *name, char *text, ...)
{
    lkl_entry e = {.name = {name}, .text = {text}, .n = 1};
    va_list ap;
    va_start(ap, text);
    for (const char *next; (next = va_arg(ap, const char *));) {
        char *t = va_arg(ap, char *);
        if (e.n < sizeof e.name / sizeof *e.name) {
            e.name[e.n] = next;
            e.text[e.n++] = t;
        } else {
            kl_free(t);
        }
    }
    va_end(ap);
    kl_lock(&j->mu);
    if (!(j->n & (j->n + 1))) /* grows at 1, 3, 7, ... */
        j->v = kl_realloc(j->v, 2 * (j->n + 1) * sizeof *j->v);
    j->v[j->n++] = e;
    kl_unlock(&j->mu);
}

void lkl__journal_fini(lkl_journal *j)
{
    for (size_t i = 0; i < j->n; i++)
        for (size_t k = 0; k < j->v[i].n; k++)
            kl_free(j->v[i].text[k]);
    kl_free(j->v);
    kl_mutex_fini(&j->mu);
}

/* --- what the manager reports: its threads ------------------------------------------------ */

static const char *result_word(kl_result_kind k)
{
    switch (k) {
    case KL_RESULT_DONE: return "done";
    case KL_RESULT_AFTER: return "after";
    case KL_RESULT_REQUEUE: return "requeue";
    case KL_RESULT_RETRY: return "retry";
    case KL_RESULT_CONFLICT: return "conflict";
    case KL_RESULT_ERROR: return "error";
    case KL_RESULT_FAIL: return "fail";
    }
    return "done";
}

static void ran(void *arg, const kl_ran *r)
{
    lkl_stage *s = arg;
    if (r->loop && !s->beside) {
        kl_lock(&s->runs.mu);
        if (!s->loop)
            s->loop = kl_sprintf("%s: %s never rests: %s", r->controller, r->key, r->loop);
        kl_unlock(&s->runs.mu);
    }
    lkl__journal_add(&s->runs, "controller", kl_strdup(r->controller), "key", kl_strdup(r->key), "result",
        kl_strdup(result_word(r->result)), "message", kl_strdup(r->message), "after",
        r->after < 0 ? NULL : kl_sprintf("%.9f", (double)r->after / 1e9), "attempt",
        kl_sprintf("%d", r->attempt), "at", kl_sprintf("%.9f", (double)kl_clock_wall(s->clock) / 1e9),
        (char *)NULL);
}

static const char *name_of(const kl_op *op)
{
    return op->name ? op->name : kl_value_str_at(op->body, "metadata", "name", NULL);
}

static const char *kind_part(const kl_op *op, const char *part)
{
    return kl_value_str_at(op->body, part, NULL);
}

static char *kind_of(const kl_op *op)
{
    if (op->kind)
        return kl_strdup(op->kind);
    if (op->resource)
        return kl_gvk_text(op->resource->group, op->resource->version, op->resource->kind);
    const char *api = kind_part(op, "apiVersion"), *kind = kind_part(op, "kind");
    return api && kind ? kl_sprintf("%s/%s", api, kind) : NULL;
}

static void seen(void *arg, const char *who, const kl_op *op)
{
    lkl_stage *s = arg;
    const char *ns = op->ns ? op->ns : kl_value_str_at(op->body, "metadata", "namespace", NULL);
    lkl__journal_add(&s->calls, "controller", kl_strdup(who), "verb", kl_strdup(kl_verb_name(op->verb)),
        "rbac", kl_strdup(kl_verb_rbac(op->verb)), "kind", kind_of(op), "subresource",
        kl_strdup(op->subresource), "namespace", kl_strdup(ns ? ns : op->default_ns), "name",
        kl_strdup(name_of(op)), "force", op->force ? kl_strdup("true") : NULL, (char *)NULL);
}

/* --- life --------------------------------------------------------------------------------- */

static void call_webhook(
    void *arg, const kl_server_webhook *call, kl_server_webhook_done *done, void *done_arg)
{
    kl_webhook_call(arg, call->url, call->ca, call->body, call->len, call->timeout, done, done_arg);
}

static lkl_stage *empty(void)
{
    lkl_stage *s = kl_new(lkl_stage);
    kl_mutex_init(&s->runs.mu);
    kl_mutex_init(&s->calls.mu);
    kl_mutex_init(&s->web.mu);
    return s;
}

lkl_stage *lkl__stage_beside(kl_server *server, kl_clock *clock, kl_client *client)
{
    lkl_stage *s = empty();
    s->beside = true;
    s->server = server;
    s->clock = clock;
    s->client = client;
    return s;
}

kl_status lkl__stage_new(kl_time wall, lkl_stage **out, kl_err *err)
{
    lkl_stage *s = empty();
    s->clock = kl_clock_fake_new(KL_TURNS_EPOCH, wall);
    s->caller = kl_webhook_caller_new();
    kl_status st = kl_server_start(&(kl_server_options){.listen = "127.0.0.1:0",
                                       .clock = s->clock,
                                       .collect = true,
                                       .fixtures = true,
                                       .webhook = call_webhook,
                                       .webhook_arg = s->caller},
        &s->server, err);
    if (!st) {
        kl_client_options o = {.allow_http = true, .web_ask = lkl__stage_ask, .web_arg = s};
        kl_config_for_server(kl_server_url(s->server), &o.config);
        st = kl_client_new(&o, &s->client, err);
    }
    if (st) {
        lkl__stage_free(s);
        return st;
    }
    *out = s;
    return KL_OK;
}

void lkl__stage_stop(lkl_stage *s)
{
    lkl__stage_web_close(s);
    kl_manager_free(s->manager);
    s->manager = NULL;
}

void lkl__stage_free(lkl_stage *s)
{
    if (!s)
        return;
    lkl__stage_stop(s);
    if (s->client)
        kl_client_free(s->client);
    if (!s->beside) {
        kl_server_stop(s->server);
        kl_webhook_caller_free(s->caller);
        kl_clock_fake_free(s->clock);
    }
    kl_free(s->loop);
    lkl__journal_fini(&s->runs);
    lkl__journal_fini(&s->calls);
    kl_mutex_fini(&s->web.mu);
    kl_free(s);
}

kl_status lkl__stage_start(lkl_stage *s, kl_program *const *programs, size_t n, const char *ns, kl_err *err)
{
    lkl__stage_stop(s);
    kl_client_discovery_forget(s->client);
    kl_status st = kl_manager_new(&(kl_manager_options){.client = s->client,
                                      .clock = s->clock,
                                      .watch_clock = kl_clock_real(),
                                      .ns = ns,
                                      .workers = 1,
                                      .workers_forced = true,
                                      .drop_managed_fields = true,
                                      .ran = s->beside ? NULL : ran,
                                      .seen = s->beside ? NULL : seen,
                                      .seen_arg = s,
                                      .turns = true,
                                      .webhooks = {.listen = "127.0.0.1:0", .url = "auto"}},
        &s->manager, err);
    for (size_t i = 0; i < n && !st; i++)
        st = kl_manager_add(s->manager, programs[i], NULL, err);
    if (!st)
        st = kl_manager_start(s->manager, err);
    if (st)
        lkl__stage_stop(s);
    return st;
}

/* --- settling ----------------------------------------------------------------------------- */

typedef struct waiting {
    kl_time until, pause;
} waiting;

static waiting waiting_begin(void)
{
    return (waiting){kl_clock_now(kl_clock_real()) + PATIENCE, PAUSE_FIRST};
}

/* Waits a moment for other threads; false once the deadline has passed. */
static bool wait_more(waiting *w)
{
    kl_clock *real = kl_clock_real();
    kl_time now = kl_clock_now(real);
    if (now > w->until)
        return false;
    kl_mutex mu;
    kl_cond never;
    kl_mutex_init(&mu);
    kl_cond_init(&never);
    kl_lock(&mu);
    while (kl_cond_wait_until(&never, &mu, now + w->pause))
        continue;
    kl_unlock(&mu);
    kl_cond_fini(&never);
    kl_mutex_fini(&mu);
    w->pause = w->pause * 2 < PAUSE_MAX ? w->pause * 2 : PAUSE_MAX;
    return true;
}

static kl_status too_long(const kl_outlook *o, kl_err *err)
{
    return kl_fail(err, KL_ETIMEOUT, "%s was still under way after %d s of real time",
        o->what ? o->what : "something", (int)(PATIENCE / KL_SECONDS(1)));
}

/* Waits until nothing is under way; with *rv not 0, also until every cache has reached it. */
static kl_status quiet(lkl_stage *s, uint64_t *rv, kl_outlook *o, kl_err *err)
{
    waiting w = waiting_begin();
    kl_time marked = kl_clock_now(kl_clock_real());
    for (;;) {
        kl_manager_outlook(s->manager, *rv, o);
        if (!o->busy)
            return KL_OK;
        lkl__stage_web_serve(s);
        kl_status st = wait_more(&w) ? KL_OK : too_long(o, err);
        kl_free(o->what);
        if (st)
            return st;
        kl_time now = kl_clock_now(kl_clock_real());
        if (*rv && now - marked > MARK_AGAIN) {
            *rv = kl_server_mark(s->server);
            marked = now;
        }
    }
}

/* Finds a key whose own writes trigger it again and again, if a run since the last call was of one. */
static kl_status loops(lkl_stage *s, kl_err *err)
{
    kl_lock(&s->runs.mu);
    char *loop = s->loop;
    s->loop = NULL;
    kl_unlock(&s->runs.mu);
    kl_status st = loop ? kl_fail(err, KL_ETIMEOUT, "%s", loop) : KL_OK;
    kl_free(loop);
    return st;
}

static kl_status no_end(lkl_stage *s, kl_err *err)
{
    kl_buf last = KL_BUF_INIT;
    kl_lock(&s->runs.mu);
    for (size_t i = s->runs.n > 3 ? s->runs.n - 3 : 0; i < s->runs.n; i++)
        kl_buf_printf(&last, "%s%s %s (%s)", last.len ? ", " : "", s->runs.v[i].text[0], s->runs.v[i].text[1],
            s->runs.v[i].text[2]);
    kl_unlock(&s->runs.mu);
    kl_status st = kl_fail(err, KL_ETIMEOUT,
        "%d reconciles at one time, without end; the last were %s: a reconcile whose writes differ each time "
        "triggers itself again",
        TURNS_MAX, kl_buf_str(&last));
    kl_buf_fini(&last);
    return st;
}

kl_status lkl__stage_settle(lkl_stage *s, kl_outlook *last, kl_err *err)
{
    kl_outlook o = {0};
    kl_status st = KL_OK;
    for (int turns = 0; !st && s->manager;) {
        uint64_t none = 0, rv;
        st = quiet(s, &none, &o, err);
        if (!st)
            st = loops(s, err);
        if (st)
            break;
        rv = kl_server_mark(s->server);
        st = quiet(s, &rv, &o, err);
        if (st)
            break;
        if (kl_server_rv(s->server) != rv)
            continue; /* somebody wrote meanwhile, perhaps an Event */
        if (!o.ready)
            break;
        if (++turns > (s->beside ? TURNS_MAX_BESIDE : TURNS_MAX))
            st = no_end(s, err);
        else
            (void)kl_manager_turn(s->manager);
    }
    *last = o;
    return st;
}

static void move(lkl_stage *s, kl_time by)
{
    kl_clock_advance(s->clock, by);
    if (s->manager)
        kl_manager_clock_moved(s->manager);
}

kl_status lkl__stage_advance(lkl_stage *s, kl_time d, kl_err *err)
{
    kl_time target = kl_clock_now(s->clock) + d;
    for (;;) {
        kl_outlook o = {.next = KL_NEVER};
        kl_time held = kl_server_faults_tick(s->server), now = kl_clock_now(s->clock);
        kl_status st = s->manager ? lkl__stage_settle(s, &o, err) : KL_OK;
        if (st || now >= target || atomic_load(&s->leaving))
            return st;
        kl_time next = s->manager && o.next > now ? o.next : KL_NEVER;
        next = held < next ? held : next;
        move(s, next < target ? next - now : target - now);
    }
}

static kl_status restless(lkl_stage *s, kl_time most, const kl_outlook *o, kl_err *err)
{
    char *why = NULL;
    kl_lock(&s->runs.mu);
    for (size_t i = s->runs.n; i-- > 0 && !why;)
        if (s->runs.v[i].text[3])
            why = kl_sprintf(
                "; %s %s said last: %s", s->runs.v[i].text[0], s->runs.v[i].text[1], s->runs.v[i].text[3]);
    kl_unlock(&s->runs.mu);
    kl_status st = kl_fail(err, KL_ETIMEOUT,
        "after %.0f s of virtual time this did not end: keys that fail %zu, runs that sleep %zu%s",
        (double)most / 1e9, o->failing, o->asleep, why ? why : "");
    kl_free(why);
    return st;
}

kl_status lkl__stage_rest(lkl_stage *s, kl_time most, kl_err *err)
{
    kl_time until = kl_clock_now(s->clock) + most;
    for (;;) {
        kl_outlook o;
        kl_status st = lkl__stage_settle(s, &o, err);
        if (st || !s->manager || (!o.failing && !o.asleep) || o.next == KL_NEVER)
            return st;
        kl_time now = kl_clock_now(s->clock);
        if (o.next > until)
            return restless(s, most, &o, err);
        move(s, o.next > now ? o.next - now : 0);
    }
}
