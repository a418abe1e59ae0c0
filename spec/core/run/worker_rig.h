/* worker_rig.h - a worker without a thread, a server without a socket and a program that does as it is
 * told, letter by letter.
 *
 * A behaviour is a word of letters, one per step of a run:
 *   c  a create     g  a get      z  sleep 5 s     k  resolve a kind
 *   h  a POST to another server   H  a GET there   s  a GET there whose answer is a stream
 *   P  publish the next generation, which enqueues ns/z, then done
 *   D  done   A  again after 30 s   R  retry in 7 s   C  conflict   E  error   F  fail   .  ends without a
 * result What happened is written down in `said`: "g1+ns/a#1" is a start (generation, key, attempt), "ok",
 * "err:Forbidden"-like words are replies, "x" an abandoned run, "open1" and "close1" states of a
 * generation. */
#ifndef KL_SPEC_RIG_H
#define KL_SPEC_RIG_H

#include "support/test.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "run/worker.h"

#define RIG_SENT_MAX 64

typedef struct rig_sent { /* one request that reached the server */
    kl_reply_fn *done;
    void *arg;
    bool answered, cancelled;
    char text[160]; /* "create v1/Event ns default=ns by=ctl" */
} rig_sent;

typedef struct rig_gen {
    kl_program program; /* first */
    kl_controller_spec spec;
    kl_logic logic;
    struct rig *rig;
    int refs;    /* of logic */
    bool broken; /* open fails */
} rig_gen;

typedef struct rig {
    kl_clock *clock;
    kl_workqueue *queue;
    kl_door *door;
    kl_metrics *metrics;
    kl_own_writes *own_writes;
    kl_worker *w;
    rig_gen gens[3];
    rig_gen *current;
    kl_map *behaviour, *objects; /* key -> word; key -> kl_value */
    rig_sent sent[RIG_SENT_MAX];
    size_t n_sent;
    bool at_once; /* the server answers inside send */
    kl_status at_once_status;
    kl_tenure tenure;
    kl_witnesses witnesses;
    kl_resolve_fn *resolving;
    void *resolving_arg;
    kl_resource resource;
    bool resource_known;
    kl_buf said, log, events;
    int rests, idle_rests, rest_left; /* how often the state was let rest; how much it has to do then */
} rig;

static inline void rig_say(rig *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline void rig_say(rig *r, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    kl_buf_printf(&r->said, "%s%s", r->said.len ? " " : "", text);
}

#define assert_said(r, text)                                                                                 \
    do {                                                                                                     \
        assert_string_equal(kl_buf_str(&(r)->said), text);                                                   \
        kl_buf_clear(&(r)->said);                                                                            \
    } while (0)

/* --- the program -------------------------------------------------------------------------- */

typedef struct rig_run {
    const char *at;
} rig_run;

static inline void *rig_open(kl_program *p, size_t controller, const atomic_bool *stop, kl_err *err)
{
    (void)stop;
    rig_gen *g = (rig_gen *)(void *)p;
    assert_int_equal(controller, 0);
    if (g->broken) {
        rig_say(g->rig, "broken%d", g->logic.generation);
        kl_status st = kl_fail(err, KL_ESCRIPT, "no memory for a state");
        (void)st;
        return NULL;
    }
    rig_say(g->rig, "open%d", g->logic.generation);
    return g;
}

static inline void rig_close(void *state)
{
    rig_gen *g = state;
    rig_say(g->rig, "close%d", g->logic.generation);
}

static inline kl_run_state rig_end(kl_run *run, rig_run *u, kl_run_state st)
{
    kl_run_set_user(run, NULL);
    kl_free(u);
    return st;
}

static inline void rig_http(kl_run *run, const char *method, bool stream)
{
    const kl_value *yes = kl_value_of_bool(true);
    kl_op op;
    kl_op_init(&op, KL_HTTP, "http");
    op.name = "https://dns.example.com/v1";
    op.subresource = method;
    op.body = stream ? kl_value_with(NULL, "stream", yes) : NULL;
    kl_run_call(run, &op);
    kl_value_unref(op.body);
    kl_value_unref(yes);
}

static inline kl_run_state rig_step(rig_gen *g, kl_run *run)
{
    rig_run *u = kl_run_user(run);
    kl_op op;
    switch (*u->at++) {
    case 'c':
        kl_op_init(&op, KL_CREATE, "v1/ConfigMap");
        kl_run_call(run, &op);
        return KL_RUN_WAITING;
    case 'g':
        kl_op_init(&op, KL_GET, "v1/Secret");
        op.name = "s";
        kl_run_call(run, &op);
        return KL_RUN_WAITING;
    case 'h': rig_http(run, "POST", false); return KL_RUN_WAITING;
    case 'H': rig_http(run, "GET", false); return KL_RUN_WAITING;
    case 's': rig_http(run, "GET", true); return KL_RUN_WAITING;
    case 'z': kl_run_sleep(run, KL_SECONDS(5)); return KL_RUN_WAITING;
    case 'k': kl_run_resolve(run, "example.com/v1/Thing"); return KL_RUN_WAITING;
    case 'P':
        g->rig->current++;
        kl_workqueue_add(g->rig->queue, "ns/z", kl_clock_now(g->rig->clock));
        kl_run_finish(run, KL_RESULT_DONE, 0, NULL, NULL);
        break;
    case 'D': kl_run_finish(run, KL_RESULT_DONE, 0, NULL, NULL); break;
    case 'A': kl_run_finish(run, KL_RESULT_AFTER, KL_SECONDS(30), NULL, NULL); break;
    case 'R': kl_run_finish(run, KL_RESULT_RETRY, KL_SECONDS(7), "the disk is not there yet", NULL); break;
    case '0': kl_run_finish(run, KL_RESULT_RETRY, 0, "at once", NULL); break;
    case 'a': kl_run_finish(run, KL_RESULT_AFTER, 1, NULL, NULL); break;
    case 'o': /* and somebody changes it meanwhile, whenever it runs */
        kl_workqueue_add(g->rig->queue, kl_run_key(run), kl_clock_now(g->rig->clock));
        kl_run_finish(run, KL_RESULT_DONE, 0, NULL, NULL);
        break;
    case 'C': kl_run_finish(run, KL_RESULT_CONFLICT, 0, "409", NULL); break;
    case 'E': kl_run_finish(run, KL_RESULT_ERROR, 0, "boom", "stack traceback:\n\tx.lua:7"); break;
    case 'F': kl_run_finish(run, KL_RESULT_FAIL, 0, "the spec makes no sense", NULL); break;
    case '.': break;
    default: fail_msg("a behaviour ended without a result");
    }
    return rig_end(run, u, KL_RUN_DONE);
}

static inline kl_run_state rig_start(void *state, kl_run *run)
{
    rig_gen *g = state;
    const char *word = kl_map_get(g->rig->behaviour, kl_run_key(run));
    rig_run *u = kl_new(rig_run);
    u->at = word ? word : "D";
    kl_run_set_user(run, u);
    assert_non_null(kl_run_object(run));
    assert_int_equal(kl_run_generation(run), g->logic.generation);
    rig_say(g->rig, "g%d+%s#%d", g->logic.generation, kl_run_key(run), kl_run_attempt(run));
    return rig_step(g, run);
}

static inline kl_run_state rig_resume(void *state, kl_run *run)
{
    rig_gen *g = state;
    const kl_value *body;
    kl_err *err;
    kl_status st = kl_run_reply(run, &body, &err);
    if (st)
        rig_say(g->rig, "err:%s", kl_status_name(st));
    else if (body)
        rig_say(g->rig, "ok:%s", kl_value_str_at(body, "name", NULL));
    else
        rig_say(g->rig, "ok");
    return rig_step(g, run);
}

static inline void rig_abandon(void *state, kl_run *run)
{
    rig_gen *g = state;
    rig_say(g->rig, "x%s", kl_run_key(run));
    rig_end(run, kl_run_user(run), KL_RUN_DONE);
}

static inline void rig_program_free(kl_program *p) { (void)p; }

static inline bool rig_rest(void *state, bool idle)
{
    rig *r = ((rig_gen *)state)->rig;
    if (idle)
        r->idle_rests++;
    else
        r->rests++;
    return r->rest_left > 0 && r->rest_left--;
}

/* A function of the script: the word after the slash, up to a dash; "bad" fails, "none" says nothing. */
static inline kl_status rig_index(
    void *state, size_t fn, const kl_value *object, kl_emit_fn *emit, void *arg, kl_err *err)
{
    (void)state;
    const char *group = kl_value_str_at(object, "spec", "group", NULL);
    assert_int_equal(fn, 7);
    if (group && !strcmp(group, "bad"))
        return kl_fail(err, KL_ESCRIPT, "x.lua:3: no group in it");
    if (group)
        emit(arg, group);
    return KL_OK;
}

static const kl_program_ops rig_ops = {.index = rig_index,
    .open = rig_open,
    .close = rig_close,
    .start = rig_start,
    .resume = rig_resume,
    .rest = rig_rest,
    .abandon = rig_abandon,
    .free = rig_program_free};

/* --- the owner ---------------------------------------------------------------------------- */

static inline kl_logic *rig_logic(void *arg)
{
    rig *r = arg;
    r->current->refs++;
    return &r->current->logic;
}

static inline bool rig_is_current(void *arg, const kl_logic *l) { return l == &((rig *)arg)->current->logic; }

static inline void rig_logic_unref(void *arg, kl_logic *l)
{
    rig *r = arg;
    for (size_t i = 0; i < 3; i++)
        if (&r->gens[i].logic == l) {
            assert_true(r->gens[i].refs > 0);
            r->gens[i].refs--;
            return;
        }
    fail_msg("an unknown logic came back");
}

static inline const kl_value *rig_object(void *arg, kl_logic *l, const char *key)
{
    (void)l;
    return kl_value_ref(kl_map_get(((rig *)arg)->objects, key));
}

static inline void rig_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    rig *r = arg;
    rig_say(r, "?%s", kind);
    r->resolving = done;
    r->resolving_arg = done_arg;
}

static inline const kl_resource *rig_resource(void *arg, const char *kind)
{
    rig *r = arg;
    (void)kind;
    return r->resource_known ? &r->resource : NULL;
}

static inline void rig_event(void *arg, const kl_news *n)
{
    kl_buf_printf(&((rig *)arg)->events, "%s %s %s;", n->type, n->reason, n->note);
}

/* --- the server --------------------------------------------------------------------------- */

static inline uint64_t rig_send(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    rig *r = arg;
    assert_true(r->n_sent < RIG_SENT_MAX);
    rig_sent *s = &r->sent[r->n_sent++];
    *s = (rig_sent){.done = done, .arg = done_arg};
    snprintf(s->text, sizeof s->text, "%s %s %s by %s", kl_verb_name(op->verb), op->kind,
        op->ns               ? op->ns
            : op->default_ns ? op->default_ns
                             : "-",
        op->field_manager ? op->field_manager : "-");
    if (r->at_once) {
        kl_err err = KL_ERR_INIT;
        kl_status st = r->at_once_status ? kl_fail(&err, r->at_once_status, "as the spec says") : KL_OK;
        s->answered = true;
        done(done_arg, st, st ? 500 : 200, NULL, &err);
        kl_err_fini(&err);
    }
    return r->n_sent;
}

static inline void rig_cancel(void *arg, uint64_t id) { ((rig *)arg)->sent[id - 1].cancelled = true; }

/* Answers request number n (from 1). body: JSON or NULL. */
static inline void rig_answer(rig *r, size_t n, kl_status st, const char *body)
{
    rig_sent *s = &r->sent[n - 1];
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_true(n <= r->n_sent && !s->answered);
    if (body)
        assert_ok(kl_value_decode(body, strlen(body), &v, &err), &err);
    if (st)
        st = kl_fail(&err, st, "as the spec says");
    s->answered = true;
    s->done(s->arg, st, st ? 500 : 200, v, &err);
    kl_value_unref(v);
    kl_err_fini(&err);
}

/* --- the whole ---------------------------------------------------------------------------- */

static inline void rig_log(void *arg, kl_log_level level, const char *message, const char *fields)
{
    if (level >= KL_LOG_WARN)
        kl_buf_printf(&((rig *)arg)->log, "%s: %s\n", message, fields);
}

/* timeout and concurrency of the spec; 0: none, the default. */
static inline void rig_init(rig *r, kl_time timeout, int concurrency)
{
    *r = (rig){0};
    r->clock = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1700000000));
    r->queue = kl_workqueue_new(
        &(kl_workqueue_options){.backoff = {KL_SECONDS(1), KL_SECONDS(100), 0}, .forget = kl_cause_forget});
    kl_tenure_begin(&r->tenure, 7, KL_NEVER);
    r->door = kl_door_new(&(kl_door_options){rig_send, rig_cancel, r, r->clock});
    r->metrics = kl_metrics_new();
    r->own_writes = kl_own_writes_new("ctl", r->queue, r->clock, kl_metrics_controller(r->metrics, "ctl", 1));
    r->behaviour = kl_map_new();
    r->objects = kl_map_new();
    for (int i = 0; i < 3; i++) {
        rig_gen *g = &r->gens[i];
        g->rig = r;
        g->spec = (kl_controller_spec){
            .name = "ctl", .resource = "v1/Pod", .timeout = timeout, .concurrency = concurrency};
        g->program = (kl_program){.ops = &rig_ops, .name = "spec", .specs = &g->spec, .n_specs = 1};
        g->logic = (kl_logic){.program = &g->program, .spec = &g->spec, .generation = i + 1};
    }
    static char *rules[] = {(char *)"https://dns.example.com", NULL};
    for (int i = 0; i < 3; i++)
        r->gens[i].spec.http = rules;
    r->current = &r->gens[0];
    r->w = kl_worker_new(&(kl_worker_owner){.logic = rig_logic,
                             .logic_unref = rig_logic_unref,
                             .is_current = rig_is_current,
                             .object = rig_object,
                             .resolve = rig_resolve,
                             .resource = rig_resource,
                             .event = rig_event,
                             .arg = r,
                             .name = "ctl",
                             .queue = r->queue,
                             .own_writes = r->own_writes,
                             .door = r->door,
                             .clock = r->clock,
                             .metrics = kl_metrics_controller(r->metrics, "ctl", 1),
                             .tenure = &r->tenure,
                             .witnesses = &r->witnesses},
        1);
    kl_log_set_level(KL_LOG_WARN);
    kl_log_set_sink(rig_log, r);
}

static inline void rig_object_free(void *v) { kl_value_unref(v); }

/* The object under a key, as JSON. */
static inline void rig_object_set(rig *r, const char *key, const char *json)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(json, strlen(json), &v, &err), &err);
    const kl_value *old = kl_map_set(r->objects, key, (void *)v);
    kl_value_unref(old);
}

/* An object with a behaviour, and its key in the queue. */
static inline void rig_add(rig *r, const char *key, const char *behaviour)
{
    if (!kl_map_get(r->objects, key)) {
        const kl_value *v = NULL;
        kl_err err = KL_ERR_INIT;
        assert_ok(kl_value_decode("{\"kind\":\"Pod\"}", 14, &v, &err), &err);
        kl_map_set(r->objects, key, (void *)v);
    }
    kl_map_set(r->behaviour, key, (void *)behaviour);
    kl_workqueue_add(r->queue, key, kl_clock_now(r->clock));
}

/* Ends the worker as its owner does; what is still under way at the server is answered as cancelled. */
static inline void rig_fini(rig *r)
{
    kl_worker_drain(r->w);
    kl_worker_abort(r->w);
    kl_worker_step(r->w);
    for (size_t i = 0; i < r->n_sent; i++)
        if (!r->sent[i].answered)
            rig_answer(r, i + 1, KL_ECANCELLED, NULL);
    kl_worker_join(r->w);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(r->gens[i].refs, 0);
    kl_log_set_sink(NULL, NULL);
    kl_own_writes_free(r->own_writes);
    kl_workqueue_free(r->queue);
    kl_door_free(r->door);
    kl_metrics_free(r->metrics);
    kl_map_free(r->behaviour, NULL);
    kl_map_free(r->objects, rig_object_free);
    kl_buf_fini(&r->said);
    kl_buf_fini(&r->log);
    kl_buf_fini(&r->events);
    kl_clock_fake_free(r->clock);
}

/* How the key stands in the queue: "absent", "queued", "running", "waiting 30 s". */
static inline const char *rig_state(rig *r, const char *key)
{
    static char text[64];
    kl_time due = 0;
    const char *s = kl_workqueue_state(r->queue, key, &due);
    if (strcmp(s, "waiting"))
        return s;
    snprintf(
        text, sizeof text, "waiting %lld s", (long long)((due - kl_clock_now(r->clock)) / KL_SECONDS(1)));
    return text;
}

static inline void rig_advance(rig *r, kl_time by) { kl_clock_advance(r->clock, by); }

/* The next round comes no later than this, in seconds from now; -1: when poked. */
static inline int rig_round(rig *r)
{
    kl_time next = kl_worker_step(r->w);
    kl_time now = kl_clock_now(r->clock);
    return next == KL_NEVER ? -1 : next <= now ? 0 : (int)((next - now) / KL_SECONDS(1));
}

#endif
