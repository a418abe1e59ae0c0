/* record_run.c - inputs and results of runs, on the tape. Lists are written as sets: the next one of the same
 * query only as a difference. */
#include "lab/record_impl.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "run/params.h"
#include "run/run_impl.h"

/* The number of list results that are kept, for differences. */
#define LISTS_MAX 512
/* While runs overlap without a pause, lines stay in memory for about this long. */
#define FLUSH_EVERY KL_SECONDS(1)

typedef struct listed {
    const kl_value **v;
    size_t n;
    uint64_t set;
} listed;

static void listed_free(void *p)
{
    listed *l = p;
    for (size_t i = 0; i < l->n; i++)
        kl_value_unref(l->v[i]);
    kl_free(l->v);
    kl_free(l);
}

void kl__lists_forget_locked(kl_record *r)
{
    kl_map_free(r->lists, listed_free);
    r->lists = kl_map_new();
}

/* Requests of webhooks are not runs of keys, and are not recorded. */
static bool counts(const kl_run *run) { return kl_run_spec(run)->resource != NULL; }

static void run_begin_locked(kl_record *r, const char *what, kl_run *run) KL_REQUIRES(r->mu)
{
    kl__line_begin_locked(r, what);
    kl__put_text(&r->line, "r", kl_run_id(run));
}

/* Writes the cause of the run: for an object, the fields of ctx.trigger. */
static void put_cause(kl_buf *b, const kl_run *run)
{
    const kl_value *o;
    unsigned events;
    kl__put_text(b, "why", kl_why_name(kl_run_cause(run, &o, &events)));
    kl__put_number(b, "events", events);
    if (!o)
        return;
    kl_buf_puts(b, ",\"by\":{\"metadata\":{\"name\":");
    const kl_value *name = kl_value_get(kl_value_get(o, "metadata"), "name");
    kl_value_encode(name, b);
    kl__put_text(b, "namespace", kl_object_namespace(o));
    kl__put_text(b, "resourceVersion", kl_object_rv(o));
    kl_buf_putc(b, '}');
    kl__put_text(b, "apiVersion", kl_object_api_version(o));
    kl__put_text(b, "kind", kl_object_kind(o));
    kl_buf_putc(b, '}');
}

static void on_began(void *arg, kl_run *run)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    kl_lock(&r->mu);
    uint64_t o = kl__object_locked(r, kl_run_spec(run)->resource, kl_run_object(run));
    r->running++;
    run_begin_locked(r, "began", run);
    kl__put_number(&r->line, "at", kl_clock_wall(run->w->o.clock));
    kl__put_text(&r->line, "controller", run->w->o.name);
    kl__put_number(&r->line, "worker", run->w->number);
    kl__put_text(&r->line, "key", kl_run_key(run));
    kl__put_number(&r->line, "attempt", kl_run_attempt(run));
    kl__put_number(&r->line, "generation", kl_run_generation(run));
    kl__put_number(&r->line, "epoch", kl_run_epoch(run));
    kl__put_number(&r->line, "o", (int64_t)o);
    put_cause(&r->line, run);
    const kl_value *memo = kl_run_memo(run);
    if (memo)
        kl__put_value(&r->line, "memo", memo);
    kl_value_unref(memo);
    if (kl_run_params(run) != kl_run_spec(run)->params) { /* set by the user */
        const kl_value *params = kl_params_shown(kl_run_spec(run), kl_run_params(run));
        kl__put_value(&r->line, "params", params);
        kl_value_unref(params);
    }
    kl__line_end_locked(r);
    kl_unlock(&r->mu);
}

static void one_locked(kl_record *r, const char *what, kl_run *run, const kl_saw *x) KL_REQUIRES(r->mu)
{
    uint64_t o = x->n ? kl__object_locked(r, x->kind, x->found[0]) : 0;
    run_begin_locked(r, what, run);
    kl__put_text(&r->line, "kind", x->kind);
    kl__put_text(&r->line, "ns", x->ns);
    kl__put_text(&r->line, "name", x->name);
    if (o)
        kl__put_number(&r->line, "o", (int64_t)o);
    kl__line_end_locked(r);
}

/* Writes the numbers of found[from..to) as a list to `out`. This may first write the objects. */
static void numbers_locked(kl_record *r, const kl_saw *x, size_t from, size_t to, kl_buf *out)
    KL_REQUIRES(r->mu)
{
    kl_buf_putc(out, '[');
    for (size_t i = from; i < to; i++)
        kl_buf_printf(out, "%s%" PRIu64, i == from ? "" : ",", kl__object_locked(r, x->kind, x->found[i]));
    kl_buf_putc(out, ']');
}

static void remember(listed *l, const kl_saw *x)
{
    for (size_t i = 0; i < l->n; i++)
        kl_value_unref(l->v[i]);
    l->v = kl_realloc(l->v, (x->n + 1) * sizeof *l->v);
    l->n = x->n;
    for (size_t i = 0; i < x->n; i++)
        l->v[i] = kl_value_ref(x->found[i]);
}

static uint64_t set_locked(kl_record *r, const char *name, const kl_saw *x) KL_REQUIRES(r->mu)
{
    listed *l = kl_map_get(r->lists, name);
    if (l && l->n == x->n && !memcmp(l->v, x->found, x->n * sizeof *l->v))
        return l->set;
    if (!l && kl_map_len(r->lists) >= LISTS_MAX)
        kl__lists_forget_locked(r);
    size_t head = 0, tail = 0, least = l && l->n < x->n ? l->n : x->n;
    while (l && head < least && l->v[head] == x->found[head])
        head++;
    while (l && tail < least - head && l->v[l->n - 1 - tail] == x->found[x->n - 1 - tail])
        tail++;
    kl_buf ids = KL_BUF_INIT;
    numbers_locked(r, x, head, x->n - tail, &ids);
    kl__line_begin_locked(r, "set");
    kl__put_number(&r->line, "s", (int64_t)++r->sets);
    if (head || tail) {
        kl__put_number(&r->line, "of", (int64_t)l->set);
        kl__put_number(&r->line, "head", (int64_t)head);
        kl__put_number(&r->line, "tail", (int64_t)tail);
    }
    kl_buf_printf(&r->line, ",\"ids\":%s", kl_buf_str(&ids));
    kl__line_end_locked(r);
    kl_buf_fini(&ids);
    if (!l)
        kl_map_set(r->lists, name, l = kl_new(listed));
    remember(l, x);
    l->set = r->sets;
    return l->set;
}

static void list_locked(kl_record *r, kl_run *run, const kl_saw *x) KL_REQUIRES(r->mu)
{
    kl_buf query = KL_BUF_INIT;
    kl_record_query(x->query, &query);
    char *name = kl_sprintf("%s %s", x->kind, kl_buf_str(&query));
    uint64_t set = set_locked(r, name, x);
    run_begin_locked(r, "list", run);
    kl__put_text(&r->line, "kind", x->kind);
    kl__put_text(&r->line, "query", kl_buf_str(&query));
    kl__put_number(&r->line, "s", (int64_t)set);
    kl__line_end_locked(r);
    kl_free(name);
    kl_buf_fini(&query);
}

static void on_saw(void *arg, kl_run *run, const kl_saw *x)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    kl_lock(&r->mu);
    if (x->name)
        one_locked(r, "get", run, x);
    else
        list_locked(r, run, x);
    kl_unlock(&r->mu);
}

static void on_believed(void *arg, kl_run *run, const kl_saw *x)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    kl_lock(&r->mu);
    one_locked(r, "believed", run, x);
    kl_unlock(&r->mu);
}

static void on_timed(void *arg, kl_run *run, kl_time wall)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    kl_lock(&r->mu);
    run_begin_locked(r, "clock", run);
    kl__put_number(&r->line, "at", wall);
    kl__line_end_locked(r);
    kl_unlock(&r->mu);
}

/* Redacts op's URL if its shown form differs: the query or path may contain a key. Takes op. */
static const kl_value *without_url(const kl_record *r, const kl_value *op)
{
    const char *url = kl_value_str_at(op, "url", NULL), *shown = kl_value_str_at(op, "name", NULL);
    if (!url || !shown || !strcmp(url, shown))
        return op;
    const kl_value *y = kl_redact_text(&r->redaction, url), *with = kl_value_with(op, "url", y);
    kl_value_unref(y);
    kl_value_unref(op);
    return with;
}

static void on_asked(void *arg, kl_run *run, const kl_asked *x)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    const kl_value *op = x->op ? kl_record_op(x->op) : NULL;
    const kl_value *body = kl_value_get(op, "body");
    if (body && !r->o.secrets) {
        const kl_value *shown = kl_redact(&r->redaction, kl_value_str_at(op, "kind", NULL), body),
                       *with = kl_value_with(op, "body", shown);
        kl_value_unref(shown);
        kl_value_unref(op);
        op = with;
    }
    if (x->op && x->op->verb == KL_HTTP && !r->o.secrets)
        op = without_url(r, op);
    const char *kind = x->op ? x->op->kind : x->kind;
    const kl_resource *res = kind && !x->elsewhere ? kl_run_resource(run, kind) : NULL;
    kl_lock(&r->mu);
    if (res)
        kl__kind_locked(r, kind, res);
    run_begin_locked(r, "asked", run);
    kl__put_number(&r->line, "n", x->number);
    kl__put_text(&r->line, "what", x->op ? "call" : x->what);
    if (op)
        kl__put_value(&r->line, "op", op);
    kl__put_text(&r->line, "kind", x->kind);
    if (!x->op && !x->kind)
        kl__put_number(&r->line, "wait", x->wait);
    if (x->elsewhere)
        kl_buf_puts(&r->line, ",\"elsewhere\":true");
    kl__line_end_locked(r);
    kl_unlock(&r->mu);
    kl_value_unref(op);
}

static void put_error(kl_buf *b, const kl_answered *x)
{
    kl_buf_puts(b, ",\"error\":{\"is\":");
    const kl_value *v = kl_value_of_str(kl_status_name(x->status));
    kl_value_encode(v, b);
    kl_value_unref(v);
    if (x->err) {
        kl__put_number(b, "code", x->err->http_code);
        kl__put_text(b, "reason", x->err->reason);
        kl__put_text(b, "message", x->err->message);
        kl__put_text(b, "details", x->err->details);
        if (x->err->retry_after_ns)
            kl__put_number(b, "retry", x->err->retry_after_ns);
    }
    kl_buf_putc(b, '}');
}

static void on_answered(void *arg, kl_run *run, const kl_answered *x)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    kl_lock(&r->mu);
    run_begin_locked(r, "answered", run);
    kl__put_number(&r->line, "n", x->number);
    kl__put_number(&r->line, "at", kl_clock_wall(run->w->o.clock));
    if (x->code)
        kl__put_number(&r->line, "code", x->code);
    if (x->body)
        kl__put_shown(r, &r->line, "v", NULL, x->body);
    if (x->status)
        put_error(&r->line, x);
    kl__line_end_locked(r);
    kl_unlock(&r->mu);
}

static void on_ended(void *arg, kl_run *run, const kl_ran *x)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    kl_lock(&r->mu);
    run_begin_locked(r, "ended", run);
    kl__put_number(&r->line, "at", kl_clock_wall(run->w->o.clock));
    if (x->put_back)
        kl_buf_puts(&r->line, ",\"cut\":true");
    else
        kl__put_text(&r->line, "result", kl_result_name(x->result));
    if (!x->put_back && (x->result == KL_RESULT_AFTER || x->result == KL_RESULT_RETRY))
        kl__put_number(&r->line, "after", run->outcome.after);
    kl__put_text(&r->line, "message", x->message);
    kl__line_end_locked(r);
    kl__record_done_locked(r);
    r->running--;
    kl_time now = kl_clock_now(r->o.clock);
    /* flush when no run is under way, or when the last flush is long ago */
    if (!r->running || now - r->flushed > FLUSH_EVERY) {
        kl_tape_flush(r->tape);
        r->flushed = now;
    }
    kl_unlock(&r->mu);
}

void kl__record_witness(kl_record *r, kl_witness *out)
{
    *out = (kl_witness){.began = on_began,
        .saw = on_saw,
        .believed = on_believed,
        .timed = on_timed,
        .asked = on_asked,
        .answered = on_answered,
        .ended = on_ended,
        .arg = r};
}
