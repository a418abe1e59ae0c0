/* far.c - the isolated side: a worker without a queue, whose runs are those that the other side starts,
 * one message after the other. */
#include "isolate/far.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"
#include "run/remote.h"
#include "run/run_impl.h"

struct kl_far {
    kl_remote remote; /* requests of runs, caches and kube.shared come here */
    kl_wire wire;
    kl_reader *reader;
    kl_shared *shared;
    kl_worker *worker;
    kl_logic logic;
    kl_gen_state gen;
    kl_run *run;       /* the run whose turn it is, or NULL */
    kl_map *resources; /* "cluster kind" -> kl_resource; they stay */
    kl_fleet *fleet;
    const kl_value *params;
    kl_message begun; /* the request that the run waits for; what: 0 for none */
};

static kl_far *at(const kl_remote *o) { return KL_CONTAINER(o, kl_far, remote); }

/* --- talking ------------------------------------------------------------------------------ */

/* Ends the process after a failure of the socket: the other side is gone, or is killing us for an invalid
 * message. */
static void or_end(kl_status st)
{
    if (st)
        _exit(0);
}

/* KL_ETOOBIG: the message was not sent. */
static kl_status tell(kl_far *f, kl_word what, const kl_value *const *v, size_t n, kl_err *err)
{
    kl_status st = kl_wire_send(&f->wire, KL_FAR_OUT_MAX, what, v, n, err);
    if (st != KL_ETOOBIG)
        or_end(st);
    return st;
}

/* Each answer tells whether the run is deposed (kl__isolate_deposed on the other side). */
static void hear_of_run(kl_run *r, const kl_value *deposed) { r->term.lost |= kl_value_bool(deposed, false); }

kl_status kl_far_ask(
    kl_far *f, kl_word what, const kl_value *const *v, size_t n, kl_message *out, kl_err *err)
{
    kl_message m;
    kl_status st = kl_wire_send(&f->wire, KL_FAR_OUT_MAX, what, v, n, err);
    if (st == KL_ETOOBIG)
        return st;
    or_end(st);
    or_end(kl_wire_take(&f->wire, &m, NULL));
    st = kl_far_error_read(kl_message_value(&m, 0), err);
    if (f->run)
        hear_of_run(f->run, kl_message_value(&m, 1));
    if (out)
        *out = m;
    else
        kl_message_fini(&m);
    return st;
}

/* As kl_far_ask, but releases the arguments. *value, unless NULL, gets the answer's first value, a new
 * reference. */
static kl_status ask(
    kl_far *f, kl_word what, const kl_value **v, size_t n, const kl_value **value, kl_err *err)
{
    kl_message m = {0};
    kl_status st = kl_far_ask(f, what, v, n, &m, err);
    for (size_t i = 0; i < n; i++)
        kl_value_unref(v[i]);
    if (value)
        *value = st ? NULL : kl_value_ref(kl_message_value(&m, 2));
    kl_message_fini(&m);
    return st;
}

static void tell_away(kl_far *f, kl_word what, const kl_value **v, size_t n)
{
    (void)!tell(f, what, v, n, NULL); /* a message that is too big is not sent */
    for (size_t i = 0; i < n; i++)
        kl_value_unref(v[i]);
}

#define ARGS(...)                                                                                            \
    (const kl_value *[]){__VA_ARGS__}, sizeof((const kl_value *[]){__VA_ARGS__}) / sizeof(const kl_value *)

static const kl_value *text(const char *s) { return s ? kl_value_of_str(s) : NULL; }

/* --- caches ------------------------------------------------------------------------------- */

static kl_status remote_get(
    const kl_remote *o, const char *kind, const char *ns, const char *name, const kl_value **out, kl_err *err)
{
    return ask(at(o), KL_WORD_GET, ARGS(text(kind), text(ns), text(name)), out, err);
}

static void build_terms(kl_builder *b, const kl_read_query *q)
{
    kl_build_key(b, "terms");
    kl_build_array(b);
    for (size_t i = 0; i < q->n_terms; i++) {
        kl_build_array(b);
        kl_build_str(b, q->terms[i].index);
        kl_build_int(b, q->terms[i].op);
        for (const char *const *v = q->terms[i].values; v && *v; v++)
            kl_build_str(b, *v);
        kl_build_end(b);
    }
    kl_build_end(b);
}

static const kl_value *query_value(const kl_read_query *q)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "ns", q->ns);
    kl_build_kstr(b, "labels", q->labels);
    kl_build_kstr(b, "fields", q->fields);
    kl_build_kstr(b, "index", q->index);
    kl_build_kstr(b, "value", q->value);
    kl_build_kint(b, "limit", (int64_t)q->limit);
    build_terms(b, q);
    kl_build_end(b);
    return kl_builder_done(b);
}

static kl_status remote_list(
    const kl_remote *o, const char *kind, const kl_read_query *q, kl_objects *out, kl_err *err)
{
    const kl_value *name = text(kind), *query = query_value(q);
    kl_message m = {0};
    kl_status st = kl_far_ask(at(o), KL_WORD_LIST, (const kl_value *[]){name, query}, 2, &m, err);
    kl_value_unref(name);
    kl_value_unref(query);
    *out = (kl_objects){0};
    if (!st) {
        out->v = kl_new_array(const kl_value *, m.n + 1);
        for (size_t i = 2; i < m.n; i++)
            out->v[out->len++] = kl_value_ref(m.v[i]);
    }
    kl_message_fini(&m);
    return st;
}

static char **strings_of(const kl_value *list)
{
    size_t n = kl_value_len(list);
    char **v = kl_new_array(char *, n + 1);
    for (size_t i = 0; i < n; i++)
        v[i] = kl_strdup(kl_value_str(kl_value_item(list, i)));
    return v;
}

static kl_resource *resource_of(const kl_value *v)
{
    kl_resource *r = kl_new(kl_resource);
    r->group = kl_strdup(kl_value_str_at(v, "group", NULL));
    r->version = kl_strdup(kl_value_str_at(v, "version", NULL));
    r->kind = kl_strdup(kl_value_str_at(v, "kind", NULL));
    r->plural = kl_strdup(kl_value_str_at(v, "plural", NULL));
    r->namespaced = kl_value_bool(kl_value_get(v, "namespaced"), false);
    r->subresources = strings_of(kl_value_get(v, "subresources"));
    return r;
}

static const kl_value *cluster_value(size_t cluster)
{
    return cluster == KL_FLEET_NONE ? NULL : kl_value_of_int((int64_t)cluster);
}

static const kl_resource *remote_resource(const kl_remote *o, size_t cluster, const char *kind)
{
    char *key = kl_sprintf("%zd %s", (ssize_t)cluster, kind);
    kl_resource *r = kl_map_get(at(o)->resources, key);
    const kl_value *v = NULL;
    if (!r && !ask(at(o), KL_WORD_RESOURCE, ARGS(text(kind), cluster_value(cluster)), &v, NULL) && v)
        kl_map_set(at(o)->resources, key, r = resource_of(v));
    kl_value_unref(v);
    kl_free(key);
    return r;
}

/* --- beginning ---------------------------------------------------------------------------- */

static kl_far *far_of(const kl_run *r) { return at(r->w->o.remote); }

/* The cluster chosen for the next request, which clears the choice. */
static const kl_value *take_at(kl_run *r)
{
    const kl_value *v = cluster_value(r->at);
    r->at = KL_FLEET_NONE;
    return v;
}

static void begin(kl_run *r, kl_word what, const kl_value **v, size_t n)
{
    kl_far *f = far_of(r);
    kl_message_fini(&f->begun);
    f->begun = (kl_message){.what = what, .n = n, .v = kl_new_array(const kl_value *, n)};
    memcpy(f->begun.v, v, n * sizeof *v);
    kl_value_unref(r->reply.body);
    r->reply.body = NULL;
    r->reply.status = KL_OK;
    kl_err_fini(&r->reply.err);
}

static void remote_call(kl_run *r, const kl_op *op)
{
    begin(r, KL_WORD_CALL, ARGS(kl_far_op(op), kl_value_ref(op->body), take_at(r)));
}

static void remote_resolve(kl_run *r, const char *kind)
{
    begin(r, KL_WORD_RESOLVE, ARGS(text(kind), take_at(r)));
}

static void remote_sleep(kl_run *r, kl_time d) { begin(r, KL_WORD_SLEEP, ARGS(kl_value_of_int(d))); }

/* --- what it says ------------------------------------------------------------------------- */

static void remote_log(
    kl_run *r, kl_log_level level, const char *message, const char *format, const char *fields)
{
    tell_away(
        far_of(r), KL_WORD_LOG, ARGS(kl_value_of_int(level), text(message), text(format), text(fields)));
}

static void remote_spent(kl_run *r, kl_spent what)
{
    tell_away(far_of(r), KL_WORD_SPENT, ARGS(kl_value_of_int(what)));
}
static void remote_elided(kl_run *r) { tell_away(far_of(r), KL_WORD_ELIDED, NULL, 0); }

static void remote_count(kl_run *r, const kl_figure *f)
{
    tell_away(far_of(r), KL_WORD_COUNT,
        ARGS(kl_value_of_int(f->act), text(f->name), kl_value_ref(f->labels), kl_value_of_double(f->by)));
}

static void say_event(void *arg, const kl_news *n)
{
    kl_far *f = arg;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "type", n->type);
    kl_build_kstr(b, "reason", n->reason);
    kl_build_kstr(b, "note", n->note);
    kl_build_kstr(b, "action", n->action);
    kl_build_end(b);
    bool own = f->run && n->about == f->run->object; /* the other side has the run's object */
    tell_away(f, KL_WORD_EVENT,
        ARGS(kl_builder_done(b), own ? NULL : kl_value_ref(n->about), kl_value_ref(n->related)));
}

static void say_decision(void *arg, const char *key, const kl_value *decision)
{
    (void)key;
    tell_away(arg, KL_WORD_DECIDED, ARGS(kl_value_ref(decision)));
}

/* True on the thread whose lines are sent. say_line runs on any thread, under the log's lock. The watchdog's
 * lines are dropped: the other side has its own watchdog. */
static _Thread_local bool speaks;

static void say_line(void *arg, kl_log_level level, const char *message, const char *fields)
{
    if (speaks)
        tell_away(arg, KL_WORD_LINE, ARGS(kl_value_of_int(level), text(message), text(fields)));
}

void kl_far_log(kl_far *f, kl_log_level level)
{
    speaks = true;
    kl_log_set_level(level);
    kl_log_set_sink(say_line, f);
}

static kl_time say_wall(void *arg, kl_run *r)
{
    (void)r;
    const kl_value *v = NULL;
    int64_t wall = 0;
    (void)!ask(arg, KL_WORD_WALL, NULL, 0, &v, NULL);
    (void)kl_value_int(v, &wall);
    kl_value_unref(v);
    return wall;
}

static const kl_value *say_believed(void *arg, kl_run *r, const char *kind, const char *ns, const char *name)
{
    (void)r;
    const kl_value *v = NULL;
    (void)!ask(arg, KL_WORD_BELIEVED, ARGS(text(kind), text(ns), text(name)), &v, NULL);
    return v;
}

static const kl_resource *say_resource(void *arg, const char *kind)
{
    const kl_far *far = arg;
    return remote_resource(&far->remote, KL_FLEET_NONE, kind);
}

/* --- what it remembers -------------------------------------------------------------------- */

static kl_shared *remote_shared(const kl_remote *o) { return at(o)->shared; }

static const kl_value *remote_shared_get(const kl_remote *o, const char *name)
{
    const kl_value *v = NULL;
    (void)!ask(at(o), KL_WORD_SHARED_GET, ARGS(text(name)), &v, NULL);
    return v;
}

static kl_status remote_shared_set(const kl_remote *o, const char *name, const kl_value *v, kl_err *err)
{
    return ask(at(o), KL_WORD_SHARED_SET, ARGS(text(name), kl_value_ref(v)), NULL, err);
}

static kl_status remote_shared_add(
    const kl_remote *o, const char *name, const kl_value *by, const kl_value **out, kl_err *err)
{
    return ask(at(o), KL_WORD_SHARED_ADD, ARGS(text(name), kl_value_ref(by)), out, err);
}

static kl_status remote_shared_swap(const kl_remote *o, const char *name, const kl_value *was,
    const kl_value *v, bool *done, const kl_value **is, kl_err *err)
{
    const kl_value *args[] = {text(name), kl_value_ref(was), kl_value_ref(v)};
    kl_message m = {0};
    kl_status st = kl_far_ask(at(o), KL_WORD_SHARED_SWAP, args, 3, &m, err);
    for (size_t i = 0; i < 3; i++)
        kl_value_unref(args[i]);
    if (!st) {
        *done = kl_value_bool(kl_message_value(&m, 2), false);
        *is = kl_value_ref(kl_message_value(&m, 3));
    }
    kl_message_fini(&m);
    return st;
}

static char **remote_shared_names(const kl_remote *o, const char *prefix)
{
    const kl_value *v = NULL;
    (void)!ask(at(o), KL_WORD_SHARED_NAMES, ARGS(text(prefix)), &v, NULL);
    char **names = strings_of(v);
    kl_value_unref(v);
    return names;
}

static const kl_value *remote_memo(kl_run *r)
{
    const kl_value *v = NULL;
    (void)!ask(far_of(r), KL_WORD_MEMO, NULL, 0, &v, NULL);
    return v;
}

static kl_status remote_memo_set(kl_run *r, const char *field, const kl_value *v, kl_err *err)
{
    return ask(far_of(r), KL_WORD_MEMO_SET, ARGS(text(field), kl_value_ref(v)), NULL, err);
}

/* --- runs --------------------------------------------------------------------------------- */

static kl_run *find_run(kl_far *f, const kl_value *id)
{
    int64_t n = -1;
    (void)kl_value_int(id, &n);
    for (kl_list *l = f->worker->runs.next; l != &f->worker->runs; l = l->next) {
        kl_run *r = KL_CONTAINER(l, kl_run, link);
        if (r->wait.request == (uint64_t)n)
            return r;
    }
    return NULL;
}

static void take_fleet(kl_far *f, const kl_value *names, int64_t cluster)
{
    size_t number;
    if (!names || f->fleet)
        return;
    f->fleet = kl_fleet_new();
    for (size_t i = 0; i < kl_value_len(names); i++)
        (void)!kl_fleet_add(f->fleet, kl_value_str(kl_value_item(names, i)), NULL, &number, NULL);
    f->worker->o.fleet = f->fleet;
    f->worker->o.cluster = (size_t)cluster;
}

static kl_run *run_new(kl_far *f, const kl_message *m)
{
    const kl_value *h = kl_message_value(m, 0);
    kl_run *r = kl_new(kl_run);
    size_t nslen;
    r->w = f->worker;
    r->gen = &f->gen;
    r->at = KL_FLEET_NONE;
    r->wait.request = (uint64_t)kl_value_int_at(h, 0, "id", NULL);
    r->key = kl_strdup(kl_value_str_at(h, "key", NULL));
    kl_key_split(r->key, &nslen, &r->name);
    r->ns = nslen ? kl_strndup(r->key, nslen) : NULL;
    r->object = kl_value_ref(kl_message_value(m, 1));
    r->term.epoch = kl_value_int_at(h, 0, "epoch", NULL);
    r->attempt = (int)kl_value_int_at(h, 1, "attempt", NULL);
    r->item.priority = (int)kl_value_int_at(h, 0, "priority", NULL);
    r->item.events = (unsigned)kl_value_int_at(h, 0, "events", NULL);
    r->item.cause = kl_cause_of((kl_why)kl_value_int_at(h, 0, "why", NULL), kl_message_value(m, 2));
    strncpy(r->id, kl_value_str_at(h, "uuid", NULL), sizeof r->id - 1);
    f->logic.generation = (int)kl_value_int_at(h, 1, "generation", NULL);
    kl_time deadline = kl_value_int_at(h, KL_NEVER, "deadline", NULL);
    if (deadline != KL_NEVER)
        kl_heap_push(&f->worker->due, &r->wait.deadline, deadline);
    if (kl_value_get(h, "params")) {
        kl_value_unref(f->params);
        f->logic.params = f->params = kl_value_ref(kl_message_value(m, 3));
    }
    take_fleet(f, kl_value_get(h, "fleet"), kl_value_int_at(h, 0, "cluster", NULL));
    kl_log_set_level((kl_log_level)kl_value_int_at(h, KL_LOG_INFO, "level", NULL));
    kl_list_push(&f->worker->runs, &r->link);
    return r;
}

static void run_free(kl_run *r)
{
    kl_heap_remove(&r->w->due, &r->wait.deadline);
    kl_list_remove(&r->link);
    kl_value_unref(kl_cause_object(&r->item.cause));
    kl_value_unref(r->object);
    kl_value_unref(r->reply.body);
    kl_err_fini(&r->reply.err);
    kl_free(r->outcome.message);
    kl_free(r->outcome.traceback);
    kl_free(r->ns);
    kl_free((char *)r->key);
    kl_free(r);
}

static const kl_value *worn(kl_far *f)
{
    bool (*ask_it)(void *) = f->logic.program->ops->worn;
    return kl_value_of_bool(ask_it && ask_it(f->gen.state));
}

/* Runs one turn. If its request is too big to send, the run continues with that error. */
static kl_run_state turn(kl_far *f, kl_run *r, kl_run_state (*step)(void *state, kl_run *run))
{
    f->run = r;
    kl_run_state state = step(f->gen.state, r);
    while (state == KL_RUN_WAITING
        && (r->reply.status = tell(f, (kl_word)f->begun.what, f->begun.v, f->begun.n, &r->reply.err)))
        state = f->logic.program->ops->resume(f->gen.state, r);
    f->run = NULL;
    kl_message_fini(&f->begun);
    return state;
}

static void drive(kl_far *f, kl_run *r, kl_run_state (*step)(void *state, kl_run *run))
{
    if (turn(f, r, step) == KL_RUN_WAITING)
        return;
    tell_away(f, KL_WORD_DONE,
        ARGS(kl_value_of_int(r->outcome.kind), kl_value_of_int(r->outcome.after), text(r->outcome.message),
            text(r->outcome.traceback), kl_value_of_int(r->item.priority), worn(f)));
    run_free(r);
}

static void resume(kl_far *f, const kl_message *m)
{
    kl_run *r = find_run(f, kl_message_value(m, 0));
    if (!r)
        or_end(KL_EINTERNAL);
    r->reply.status = kl_far_error_read(kl_message_value(m, 1), &r->reply.err);
    hear_of_run(r, kl_message_value(m, 2));
    r->reply.body = kl_value_ref(kl_message_value(m, 3));
    drive(f, r, f->logic.program->ops->resume);
}

static void abandon(kl_far *f, const kl_message *m)
{
    kl_run *r = find_run(f, kl_message_value(m, 0));
    if (!r)
        return;
    f->logic.program->ops->abandon(f->gen.state, r);
    run_free(r);
}

static void gather(void *arg, const char *s) { kl_build_str(arg, s); }

/* Sends the result of a function. Takes `texts`. */
static void result(kl_far *f, kl_status st, kl_err *err, const kl_value *texts, bool pass)
{
    const kl_value *v[] = {kl_far_error(st, err), texts, kl_value_of_bool(pass), worn(f)};
    kl_err more = KL_ERR_INIT;
    if ((st = tell(f, KL_WORD_RESULT, v, 4, &more))) {
        kl_builder *none = kl_builder_new();
        kl_build_array(none);
        kl_build_end(none);
        tell_away(f, KL_WORD_RESULT,
            ARGS(kl_far_error(st, &more), kl_builder_done(none), kl_value_of_bool(pass), worn(f)));
    }
    kl_err_fini(&more);
    for (size_t i = 0; i < 4; i++)
        kl_value_unref(v[i]);
}

static void function(kl_far *f, const kl_message *m)
{
    const kl_program_ops *ops = f->logic.program->ops;
    const char *what = kl_message_text(m, 0);
    const kl_value *a = kl_message_value(m, 2), *b = kl_message_value(m, 3);
    int64_t fn = 0;
    bool pass = true;
    kl_err err = KL_ERR_INIT;
    kl_builder *texts = kl_builder_new();
    kl_build_array(texts);
    (void)kl_value_int(kl_message_value(m, 1), &fn);
    kl_status st = !strcmp(what, "map")
        ? ops->map(f->gen.state, (size_t)fn, f->reader, a, gather, texts, &err)
        : !strcmp(what, "index") ? ops->index(f->gen.state, (size_t)fn, a, gather, texts, &err)
                                 : ops->predicate(f->gen.state, (size_t)fn, a, b, &pass, &err);
    kl_build_end(texts);
    result(f, st, &err, kl_builder_done(texts), pass);
    kl_err_fini(&err);
}

/* --- the loop ----------------------------------------------------------------------------- */

/* Housekeeping while no message comes. */
static void rest(kl_far *f)
{
    const kl_program_ops *ops = f->logic.program->ops;
    struct pollfd p = {.fd = f->wire.fd, .events = POLLIN};
    while (!kl_wire_pending(&f->wire) && !poll(&p, 1, 0) && ops->rest && ops->rest(f->gen.state, true))
        ;
}

void kl_far_serve(kl_far *f, kl_program *p, size_t controller, void *state)
{
    f->logic = (kl_logic){
        .program = p, .index = controller, .spec = kl_program_spec(p, controller), .reader = f->reader};
    f->gen = (kl_gen_state){.logic = &f->logic, .state = state};
    f->worker->o.name = f->logic.spec->name;
    for (;;) {
        kl_message m;
        rest(f);
        or_end(kl_wire_take(&f->wire, &m, NULL));
        if (m.what == KL_WORD_START)
            drive(f, run_new(f, &m), p->ops->start);
        else if (m.what == KL_WORD_RESUME)
            resume(f, &m);
        else if (m.what == KL_WORD_ABANDON)
            abandon(f, &m);
        else if (m.what == KL_WORD_FUNCTION)
            function(f, &m);
        kl_message_fini(&m);
    }
}

kl_wire *kl_far_wire(kl_far *f) { return &f->wire; }

static const kl_remote remote = {.call = remote_call,
    .resolve = remote_resolve,
    .sleep = remote_sleep,
    .log = remote_log,
    .spent = remote_spent,
    .elided = remote_elided,
    .count = remote_count,
    .memo = remote_memo,
    .memo_set = remote_memo_set,
    .shared = remote_shared,
    .resource = remote_resource,
    .get = remote_get,
    .list = remote_list,
    .shared_get = remote_shared_get,
    .shared_set = remote_shared_set,
    .shared_add = remote_shared_add,
    .shared_swap = remote_shared_swap,
    .shared_names = remote_shared_names};

kl_far *kl_far_new(int fd)
{
    kl_far *f = kl_new(kl_far);
    kl_wire_init(&f->wire, fd, KL_FAR_IN_MAX);
    f->remote = remote;
    f->reader = kl_reader_new_remote(&f->remote);
    f->resources = kl_map_new();
    f->shared = kl_shared_new_remote(&f->remote);
    f->worker = kl_worker_new(&(kl_worker_owner){.remote = &f->remote,
                                  .arg = f,
                                  .event = say_event,
                                  .answer = say_decision,
                                  .wall = say_wall,
                                  .believed = say_believed,
                                  .resource = say_resource,
                                  .clock = kl_clock_real(),
                                  .name = ""},
        0);
    return f;
}
