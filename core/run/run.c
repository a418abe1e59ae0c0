/* run.c - the functions of a controller's code inside a run: read it, start requests, finish. */
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "client/web.h"
#include "model/object.h"
#include "model/resource.h"
#include "run/remote.h"
#include "run/run_impl.h"

const char *kl_run_key(const kl_run *r) { return r->key; }
const char *kl_run_namespace(const kl_run *r) { return r->ns; }
const char *kl_run_name(const kl_run *r) { return r->name; }
const kl_value *kl_run_object(const kl_run *r) { return r->object; }
const kl_controller_spec *kl_run_spec(const kl_run *r) { return r->gen->logic->spec; }
const kl_value *kl_run_params(const kl_run *r) { return r->gen->logic->params; }
int kl_run_attempt(const kl_run *r) { return r->attempt; }

kl_why kl_run_cause(const kl_run *r, const kl_value **object, unsigned *events)
{
    if (object)
        *object = kl_cause_object(&r->item.cause);
    if (events)
        *events = r->item.events;
    return r->item.cause.why;
}

int64_t kl_run_epoch(const kl_run *r) { return r->term.epoch; }

bool kl_run_deposed(kl_run *r)
{
    r->term.lost |= !kl_mandate_holds(&r->term.mandate, r->w->o.clock);
    return r->term.lost;
}

int kl_run_generation(const kl_run *r) { return r->gen->logic->generation; }
/* In the form of a UUID, as controller-runtime's reconcileID; made on first use. */
const char *kl_run_id(kl_run *r)
{
    if (*r->id)
        return r->id;
    struct {
        kl_time t;
        uint64_t n;
        const void *w;
    } seed = {kl_clock_wall(r->w->o.clock), ++r->w->ids, r->w};
    uint64_t a = kl_hash(&seed, sizeof seed), b = kl_hash(r->key, strlen(r->key)) ^ (a * 0x9e3779b97f4a7c15u);
    snprintf(r->id, sizeof r->id, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
        (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff, (unsigned)(0x8000 | (b >> 48 & 0x3fff)),
        (unsigned long long)(b & 0xffffffffffffu));
    return r->id;
}

kl_time kl_run_wall(kl_run *r)
{
    kl_time wall = r->w->o.wall ? r->w->o.wall(r->w->o.arg, r) : kl_clock_wall(r->w->o.clock);
    kl__tell_timed(r, wall);
    return wall;
}

void kl_run_seed(kl_run *r, uint64_t seed)
{
    r->chance.state = seed;
    r->drawn = true;
}

uint64_t kl_run_random(kl_run *r)
{
    if (!r->drawn) {
        uint64_t h = 14695981039346656037u; /* FNV-1a: kl_hash differs in each process */
        for (const char *c = kl_run_id(r); *c; c++)
            h = (h ^ (unsigned char)*c) * 1099511628211u;
        kl_run_seed(r, h);
    }
    return kl_random_next(&r->chance);
}

/* The real deadline; KL_NEVER with a fake clock, which stands still while code computes. */
kl_time kl_run_deadline(const kl_run *r)
{
    return r->wait.deadline.pos && r->w->o.clock == kl_clock_real() ? r->wait.deadline.when : KL_NEVER;
}

void kl_run_spent(kl_run *r, kl_spent what)
{
    if (r->w->o.remote)
        r->w->o.remote->spent(r, what);
    if (!r->w->o.metrics)
        return;
    kl_metrics_spent(r->w->o.metrics, what);
    if (what == KL_SPENT_TIME)
        kl_metrics_timeout(r->w->o.metrics);
}

kl_overlay *kl_run_overlay(kl_run *r)
{
    if (!r->dry.overlay && r->w->o.imagine)
        r->dry.overlay = kl_overlay_new();
    return r->dry.overlay;
}

kl_reader *kl_run_reader(kl_run *r)
{
    const kl_imagination *how = r->w->o.imagine;
    if (!how || !r->gen->logic->reader)
        return r->gen->logic->reader;
    if (!r->dry.view)
        r->dry.view = how->ops->view(r, r->gen->logic->reader);
    return r->dry.view;
}
void *kl_run_user(const kl_run *r) { return r->user; }
void kl_run_set_user(kl_run *r, void *user) { r->user = user; }

const kl_owned_spec *kl_run_owned(const kl_run *r, const char *kind)
{
    return kl_controller_spec_owned(r->gen->logic->spec, kind);
}

/* --- answers ------------------------------------------------------------------------------ */

kl_answer *kl__answer_new(kl_run *r)
{
    kl_answer *a = kl_new(kl_answer);
    a->w = r->w;
    a->run = r;
    kl_lock(&r->w->mu);
    r->w->outstanding++;
    kl_unlock(&r->w->mu);
    return a;
}

void kl__answer_done(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    kl_answer *a = arg;
    kl_worker *w = a->w;
    a->status = st;
    a->code = code;
    a->body = kl_value_ref(body);
    if (st && err)
        kl_err_copy(&a->err, err);
    kl_lock(&w->mu);
    a->arrived = true;
    kl_list_push(&w->answers, &a->link);
    /* under the lock: the worker may end when it has taken the last answer */
    kl_bell_ring(&w->bell);
    kl_unlock(&w->mu);
}

static void resolve_done(void *arg, kl_status st, const kl_resource *res, kl_err *err)
{
    (void)res;
    kl__answer_done(arg, st, 0, NULL, err);
}

static void reply_clear(kl_run *r)
{
    kl_value_unref(r->reply.body);
    r->reply.body = NULL;
    r->reply.status = KL_OK;
    kl_err_fini(&r->reply.err);
}

/* Fills in the op: manager, namespace, mandate and trace. */
static kl_op complete(kl_run *r, const kl_op *op)
{
    kl_op full = *op;
    if (!full.field_manager)
        full.field_manager = kl_controller_spec_manager(r->gen->logic->spec);
    if (!full.default_ns)
        full.default_ns = r->ns;
    full.mandate = r->term.mandate;
    if (r->w->o.trace_requests && !*r->traceparent) {
        kl_trace t;
        kl_run_trace(r, &t);
        kl_trace_header(&t, r->traceparent);
    }
    if (*r->traceparent)
        full.traceparent = r->traceparent;
    return full;
}

/* --- several clusters --------------------------------------------------------------------- */

const kl_fleet *kl_run_fleet(const kl_run *r) { return r->w->o.fleet; }
size_t kl_run_cluster(const kl_run *r) { return r->w->o.cluster; }
void kl_run_at(kl_run *r, size_t cluster) { r->at = cluster; }

const kl_resource *kl_run_resource_at(kl_run *r, size_t cluster, const char *kind)
{
    if (r->w->o.remote)
        return r->w->o.remote->resource(r->w->o.remote, cluster, kind);
    return kl_client_resolve_cached(kl_fleet_client(r->w->o.fleet, cluster), kind);
}

/* The cluster chosen for the next request, which clears the choice. */
static size_t take_at(kl_run *r)
{
    size_t at = r->at;
    r->at = KL_FLEET_NONE;
    return at;
}

static void resolve(kl_run *r, const char *kind, bool blocks, kl_resolve_fn *done, void *arg)
{
    size_t at = take_at(r);
    kl__tell_asked(r,
        &(kl_asked){.what = "discovery", .kind = kind, .elsewhere = at != KL_FLEET_NONE, .blocks = blocks});
    if (at == KL_FLEET_NONE)
        r->w->o.resolve(r->w->o.arg, kind, done, arg);
    else
        kl_client_resolve(kl_fleet_client(r->w->o.fleet, at), kind, done, arg);
}

/* --- beginning ---------------------------------------------------------------------------- */

/* All writes go through the door, which refuses them when this process does not lead. */
static uint64_t submit_http(kl_run *r, kl_op *op, kl_reply_fn *done, void *arg)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_web_check(op, &err);
    if (st) {
        done(arg, st, 0, NULL, &err);
        kl_err_fini(&err);
        return 0;
    }
    r->wait.door = r->w->o.door;
    if (r->w->o.imagine)
        return r->w->o.imagine->ops->submit(r, op, KL_FLEET_NONE, done, arg);
    return kl_web_reads(op) ? kl_door_read(r->wait.door, r->w->o.name, op, done, arg)
                            : kl_door_write(r->wait.door, r->w->o.name, op, done, arg);
}

/* *write is set before the answer comes; NULL for another cluster, whose writes our caches never show. */
static uint64_t submit(
    kl_run *r, const kl_op *op, bool blocks, kl_write **write, kl_reply_fn *done, void *arg)
{
    kl_op full = complete(r, op);
    size_t at = take_at(r);
    *write = NULL;
    if (op->verb == KL_HTTP)
        full.http = r->gen->logic->spec->http;
    kl__tell_asked(r,
        &(kl_asked){
            .what = kl_verb_name(op->verb), .op = &full, .elsewhere = at != KL_FLEET_NONE, .blocks = blocks});
    r->wait.door = at == KL_FLEET_NONE ? r->w->o.door : kl_fleet_door(r->w->o.fleet, at);
    if (op->verb == KL_HTTP)
        return submit_http(r, &full, done, arg);
    if (r->w->o.imagine)
        return r->w->o.imagine->ops->submit(r, &full, at, done, arg);
    if (at == KL_FLEET_NONE) {
        *write = kl__write_of(r, &full);
        return kl__run_submit(r, &full, done, arg);
    }
    if (kl_verb_is_write(op->verb))
        return kl_door_write(r->wait.door, r->w->o.name, &full, done, arg);
    return kl_door_read(r->wait.door, r->w->o.name, &full, done, arg);
}

static void begin(kl_run *r, const char *waiting_for)
{
    reply_clear(r);
    r->wait.for_what = waiting_for;
}

static void begin_call(kl_run *r, const kl_op *op, bool blocks)
{
    begin(r, kl_verb_name(op->verb));
    r->wait.answer = kl__answer_new(r);
    r->wait.request = submit(r, op, blocks, &r->wait.answer->write, kl__answer_done, r->wait.answer);
    if (kl_web_streams(op))
        r->streams[r->n_streams++ % KL__RUN_STREAMS] = r->wait.request;
}

static void begin_resolve(kl_run *r, const char *kind, bool blocks)
{
    begin(r, "discovery");
    r->wait.answer = kl__answer_new(r);
    r->wait.request = 0;
    resolve(r, kind, blocks, resolve_done, r->wait.answer);
}

void kl_run_call(kl_run *r, const kl_op *op)
{
    if (r->w->o.remote)
        r->w->o.remote->call(r, op);
    else
        begin_call(r, op, false);
}

void kl_run_resolve(kl_run *r, const char *kind)
{
    if (r->w->o.remote)
        r->w->o.remote->resolve(r, kind);
    else
        begin_resolve(r, kind, false);
}

void kl_run_sleep(kl_run *r, kl_time d)
{
    if (r->w->o.remote) {
        r->w->o.remote->sleep(r, d);
        return;
    }
    begin(r, "sleep");
    kl__tell_asked(r, &(kl_asked){.what = "sleep", .wait = d > 0 ? d : 0});
    kl_heap_push(&r->w->due, &r->wait.sleep, kl__after(kl_clock_now(r->w->o.clock), d));
}

kl_status kl_run_reply(kl_run *r, const kl_value **body, kl_err **err)
{
    if (body)
        *body = r->reply.body;
    if (err)
        *err = &r->reply.err;
    return r->reply.status;
}

/* --- the same, blocking the worker -------------------------------------------------------- */

kl_over kl_run_over(const kl_run *r) { return r->wait.over; }

/* Whether the run must end now, whatever it waits for. *next becomes the time of the next check, if that is
 * earlier. Other changes ring the bell. */
static kl_over over(kl_run *r, kl_time *next)
{
    kl_worker *w = r->w;
    kl_time now = kl_clock_now(kl_clock_real()), deadline = kl_run_deadline(r);
    kl_time end = kl__outlived_at(w, r->gen, kl_clock_now(w->o.clock));
    if (atomic_load(&w->aborting) || end <= kl_clock_now(w->o.clock))
        return KL_OVER_STOP;
    if (deadline <= now)
        return KL_OVER_DEADLINE;
    if (w->o.clock == kl_clock_real() && end < deadline)
        deadline = end;
    if (deadline < *next)
        *next = deadline;
    return KL_OVER_NOT;
}

static bool has_arrived(kl_run *r)
{
    if (!r->wait.answer)
        return false;
    kl_lock(&r->w->mu);
    bool arrived = r->wait.answer->arrived;
    kl_unlock(&r->w->mu);
    return arrived;
}

/* Waits for the pending answer, for the time (by the real clock), or until the run must end, which sets
 * r->over. Answers to other runs stay in the mailbox. */
static void block(kl_run *r, kl_time until)
{
    kl_bell *b = &r->w->bell;
    for (;;) {
        unsigned look = kl_bell_look(b);
        kl_time next = until;
        if (has_arrived(r) || (r->wait.over = over(r, &next)) || until <= kl_clock_now(kl_clock_real()))
            return;
        kl_bell_wait(b, look, next);
    }
}

/* The error of a run that is over. */
static kl_status ended(kl_run *r, kl_err *err)
{
    if (r->wait.over == KL_OVER_STOP)
        return kl_fail(err, KL_ECANCELLED, "stopped: the run was ended while it waited for %s",
            r->wait.for_what ? r->wait.for_what : "nothing");
    char *late = kl__late_text(r);
    kl_status st = kl_fail(err, KL_ETIMEOUT, "%s", late);
    kl_free(late);
    return st;
}

/* Takes the pending answer, or gives it up. */
static kl_status answer_wait(kl_run *r, kl_err *err)
{
    block(r, KL_NEVER);
    if (r->wait.over) {
        kl__answer_forget(r);
        return ended(r, err);
    }
    int code = kl__answer_take(r->wait.answer);
    r->wait.for_what = NULL;
    kl__tell_answered(r,
        &(kl_answered){.status = r->reply.status,
            .code = code,
            .body = r->reply.body,
            .err = r->reply.status ? &r->reply.err : NULL});
    if (r->reply.status && err)
        kl_err_copy(err, &r->reply.err);
    return r->reply.status;
}

kl_status kl_run_call_wait(kl_run *r, const kl_op *op, const kl_value **body, kl_err *err)
{
    begin_call(r, op, true);
    kl_status st = answer_wait(r, err);
    if (body && !st)
        *body = kl_value_ref(r->reply.body);
    return st;
}

kl_status kl_run_resolve_wait(kl_run *r, const char *kind, kl_err *err)
{
    begin_resolve(r, kind, true);
    return answer_wait(r, err);
}

kl_status kl_run_sleep_wait(kl_run *r, kl_time d, kl_err *err)
{
    begin(r, "sleep");
    kl__tell_asked(r, &(kl_asked){.what = "sleep", .wait = d > 0 ? d : 0, .blocks = true});
    if (!r->w->o.wall)
        block(r, kl__after(kl_clock_now(kl_clock_real()), d));
    if (r->wait.over)
        return ended(r, err);
    r->wait.for_what = NULL;
    kl__tell_answered(r, &(kl_answered){.status = KL_OK});
    return KL_OK;
}

const kl_resource *kl_run_resource(kl_run *r, const char *kind)
{
    return r->w->o.resource(r->w->o.arg, kind);
}

void kl_run_record(kl_run *r, const kl_news *n)
{
    kl_news named = *n;
    if (!named.about)
        named.about = r->object;
    r->w->o.event(r->w->o.arg, &named);
}

void kl_run_event(kl_run *r, const kl_value *about, const char *type, const char *reason, const char *message)
{
    kl_run_record(r, &(kl_news){.about = about, .type = type, .reason = reason, .note = message});
}

/* One trace per reconcile: its number without the dashes, and a span of half that length made of it. If the
 * requester sent a trace, the span belongs to it. */
void kl_run_trace(kl_run *r, kl_trace *out)
{
    const char *id = kl_run_id(r);
    size_t n = 0;
    for (; *id; id++)
        if (*id != '-')
            out->trace[n++] = *id;
    out->trace[n] = '\0';
    kl_trace_span(out->trace, out);
    if (*r->caller.trace)
        memcpy(out->trace, r->caller.trace, sizeof out->trace);
}

const char *kl__run_detail(kl_run *r)
{
    if (!kl_log_detailed())
        return "";
    if (r->detail)
        return r->detail;
    kl_gvk k = {0};
    kl_err err = KL_ERR_INIT;
    kl_trace t;
    const char *kind = r->gen->logic->spec->resource;
    if (!kind || kl_gvk_parse(kind, &k, &err))
        k = (kl_gvk){.group = kl_strdup(""), .version = kl_strdup(""), .kind = kl_strdup(kind ? kind : "")};
    kl_err_fini(&err);
    kl_run_trace(r, &t);
    r->detail = kl_sprintf(" controllerGroup=%s controllerKind=%s namespace=%s name=%s traceID=%s spanID=%s",
        kl_log_quoted(k.group), kl_log_quoted(k.kind), kl_log_quoted(r->ns), kl_log_quoted(r->name), t.trace,
        t.span);
    kl_gvk_fini(&k);
    return r->detail;
}

void kl_run_log(kl_run *r, kl_log_level level, const char *message)
{
    kl_run_log_with(r, level, message, "", "");
}

#define RUN_FIELDS "controller=%s key=%s reconcileID=%s generation=%d%s"

void kl_run_log_with(
    kl_run *r, kl_log_level level, const char *message, const char *format, const char *fields)
{
    if (!kl_log_enabled(level))
        return;
    if (r->w->o.remote) {
        r->w->o.remote->log(r, level, message, format, fields);
        return;
    }
    char *all = kl_sprintf(RUN_FIELDS "%s%s", r->w->o.name, r->key, kl_run_id(r), r->gen->logic->generation,
        kl__run_detail(r), *fields ? " " : "", fields);
    char *types = kl_sprintf("%s %s", RUN_FIELDS, format);
    kl_log_text(level, message, types, all);
    kl_free(types);
    kl_free(all);
}

void kl_run_set_priority(kl_run *r, int priority) { r->item.priority = priority; }

int kl_run_priority(const kl_run *r) { return r->item.priority; }

void kl_run_finish(kl_run *r, kl_result_kind kind, kl_time after, const char *message, const char *traceback)
{
    kl_free(r->outcome.message);
    kl_free(r->outcome.traceback);
    r->outcome.known = true;
    r->outcome.kind = kind;
    r->outcome.after = after;
    r->outcome.message = kl_strdup(message);
    r->outcome.traceback = kl_strdup(traceback);
}

void kl_run_answer(kl_run *r, const kl_value *decision)
{
    if (r->w->o.answer)
        r->w->o.answer(r->w->o.arg, r->key, decision);
}
