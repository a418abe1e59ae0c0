/* pipeline_test.c - the whole way of an event: list and watch -> reflector -> store -> mapping -> queue ->
 * worker -> write.
 *
 * No socket, no thread, no sleep: the cluster is scripted, the clock is moved by hand, and the worker goes
 * round by round. */
#include "core/controller/wiring_rig.h"

#include "base/map.h"
#include "run/worker.h"

/* The program: an App's status copies the text of the Secret that spec.secret names. A write per run when
 * they differ. */
typedef struct pipe_world {
    rig r; /* its spec, caches, queue and clock */
    kl_door *door;
    kl_worker *worker;
    kl_program_ops ops;
    int writes, runs;
    kl_reply_fn *done; /* the open request */
    void *done_arg;
    char patched[128];
    kl_tenure tenure;
} pipe_world;

static pipe_world *world; /* the program's ops know only the rig */

static kl_run_state sync_start(void *state, kl_run *run)
{
    (void)state;
    world->runs++;
    const kl_value *app = kl_run_object(run), *secret = NULL;
    const char *from = kl_value_str_at(app, "spec", "secret", NULL);
    kl_err err = KL_ERR_INIT;
    assert_ok(
        kl_reader_get(kl_run_reader(run), "v1/Secret", kl_run_namespace(run), from, &secret, &err), &err);
    const char *want = secret ? kl_value_str_at(secret, "text", NULL) : NULL,
               *have = kl_value_str_at(app, "status", "text", NULL);
    bool same = !want || (have && !strcmp(want, have));
    kl_op op;
    kl_op_init(&op, KL_PATCH, "example.com/v1/App");
    op.name = kl_run_name(run);
    op.subresource = "status";
    const kl_value *text = same ? NULL : kl_value_of_str(want);
    op.body = text;
    if (!same)
        kl_run_call(run, &op);
    else
        kl_run_finish(run, KL_RESULT_AFTER, KL_MINUTES(10), NULL, NULL);
    kl_value_unref(text);
    kl_value_unref(secret);
    return same ? KL_RUN_DONE : KL_RUN_WAITING;
}

static kl_run_state sync_resume(void *state, kl_run *run)
{
    (void)state;
    kl_err *err;
    kl_status st = kl_run_reply(run, NULL, &err);
    kl_run_finish(run,
        st == KL_ECONFLICT ? KL_RESULT_CONFLICT
            : st           ? KL_RESULT_ERROR
                           : KL_RESULT_DONE,
        0, st ? kl_err_message(err) : NULL, NULL);
    return KL_RUN_DONE;
}

static void sync_abandon(void *state, kl_run *run) { (void)state, (void)run; }

static uint64_t pipe_send(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    pipe_world *p = arg;
    assert_null(p->done);
    p->writes++;
    p->done = done;
    p->done_arg = done_arg;
    snprintf(p->patched, sizeof p->patched, "%s/%s=%s", op->ns ? op->ns : op->default_ns, op->name,
        kl_value_str(op->body));
    return (uint64_t)p->writes;
}

static void pipe_cancel(void *arg, uint64_t id) { (void)arg, (void)id; }

static void pipe_answer(pipe_world *p, kl_status st)
{
    kl_reply_fn *done = p->done;
    kl_err err = KL_ERR_INIT;
    p->done = NULL;
    if (st)
        st = kl_fail(&err, st, "as the spec says");
    done(p->done_arg, st, st ? 409 : 200, NULL, &err);
    kl_err_fini(&err);
}

static kl_logic *pipe_logic(void *arg) { return kl_wiring_logic(kl_wiring_ref(((pipe_world *)arg)->r.w)); }
static bool pipe_is_current(void *arg, const kl_logic *l)
{
    return l == kl_wiring_logic(((pipe_world *)arg)->r.w);
}
static void pipe_logic_unref(void *arg, kl_logic *l)
{
    (void)arg;
    kl_wiring_unref(kl_wiring_of(l));
}
static const kl_value *pipe_object(void *arg, kl_logic *l, const char *key)
{
    (void)arg;
    return kl_wiring_object(kl_wiring_of(l), key);
}
static void pipe_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    rig_resolve(&((pipe_world *)arg)->r, kind, done, done_arg);
}
static const kl_resource *pipe_resource(void *arg, const char *kind)
{
    (void)arg, (void)kind;
    return NULL;
}
static void pipe_event(void *arg, const kl_news *n) { (void)arg, (void)n; }

static kl_index_spec by_secret = {.kind = "example.com/v1/App", .name = "secret", .path = "spec.key"};
static kl_watch_spec secrets = {.kind = "v1/Secret", .how = KL_MAP_VIA, .via = "secret"};

static void pipe_init(pipe_world *p)
{
    *p = (pipe_world){0};
    kl_tenure_begin(&p->tenure, 0, KL_NEVER);
    world = p;
    rig_init(&p->r);
    p->ops = rig_ops;
    p->ops.start = sync_start;
    p->ops.resume = sync_resume;
    p->ops.abandon = sync_abandon;
    p->r.program.ops = &p->ops;
    p->r.spec.indexes = &by_secret;
    p->r.spec.n_indexes = 1;
    p->r.spec.watches = &secrets;
    p->r.spec.n_watches = 1;
    p->r.spec.timeout = KL_SECONDS(30);
    p->door = kl_door_new(&(kl_door_options){pipe_send, pipe_cancel, p, p->r.clock});
    p->worker = kl_worker_new(&(kl_worker_owner){.logic = pipe_logic,
                                  .logic_unref = pipe_logic_unref,
                                  .is_current = pipe_is_current,
                                  .object = pipe_object,
                                  .resolve = pipe_resolve,
                                  .resource = pipe_resource,
                                  .event = pipe_event,
                                  .arg = p,
                                  .name = "ctl",
                                  .queue = p->r.queue,
                                  .door = p->door,
                                  .clock = p->r.clock,
                                  .tenure = &p->tenure},
        1);
    rig_start(&p->r);
}

static void pipe_fini(pipe_world *p)
{
    kl_worker_drain(p->worker);
    kl_worker_abort(p->worker);
    kl_worker_step(p->worker);
    if (p->done)
        pipe_answer(p, KL_ECANCELLED);
    kl_worker_join(p->worker);
    rig_fini(&p->r);
    kl_door_free(p->door);
}

/* Lets everything that can happen without the server or the clock happen. */
static void settle(pipe_world *p)
{
    for (int i = 0; i < PUMP_ROUNDS; i++) {
        pump(&p->r);
        kl_worker_step(p->worker);
    }
}

static const char *app(const char *name, int rv, const char *secret, const char *status)
{
    char rest[256];
    snprintf(rest, sizeof rest, "\"spec\":{\"secret\":\"%s\",\"key\":\"ns/%s\"}%s%s%s", secret, secret,
        *status ? ",\"status\":{\"text\":\"" : "", status, *status ? "\"}" : "");
    return thing(name, rv, "", rest);
}

static const char *secret(const char *name, int rv, const char *text)
{
    char rest[128];
    snprintf(rest, sizeof rest, "\"text\":\"%s\"", text);
    return thing(name, rv, "", rest);
}

static void an_event_causes_one_write_whose_echo_causes_none(void **state)
{
    (void)state;
    pipe_world p;
    pipe_init(&p);
    fake_source *apps = &p.r.kinds[APP].f, *s = &p.r.kinds[SECRET].f;
    fake_event(apps, "ADDED", app("a", 101, "s", ""));
    settle(&p);
    assert_int_equal(p.runs, 1);
    assert_int_equal(p.writes, 0); /* no secret yet */
    fake_event(s, "ADDED", secret("s", 102, "one"));
    settle(&p);
    assert_string_equal(p.patched, "ns/a=one");
    fake_event(apps, "MODIFIED", app("a", 103, "s", "one")); /* the watch is faster than the answer */
    settle(&p);
    assert_int_equal(p.runs, 2); /* never two runs of one key */
    pipe_answer(&p, KL_OK);
    settle(&p);
    assert_int_equal(p.runs, 3);
    assert_int_equal(p.writes, 1);
    kl_clock_advance(p.r.clock, KL_MINUTES(10));
    settle(&p);
    assert_int_equal(p.runs, 4); /* the requeue that it asked for */
    assert_int_equal(p.writes, 1);
    pipe_fini(&p);
}

static void a_watch_that_breaks_in_the_middle_loses_nothing(void **state)
{
    (void)state;
    pipe_world p;
    pipe_init(&p);
    fake_source *apps = &p.r.kinds[APP].f, *s = &p.r.kinds[SECRET].f;
    fake_event(apps, "ADDED", app("a", 101, "s", "old"));
    fake_event(s, "ADDED", secret("s", 102, "old"));
    settle(&p);
    int runs = p.runs;
    fake_fails(s, KL_EGONE, 410); /* history is gone: the difference comes out of a list */
    assert_int_equal(s->open, FAKE_LIST);
    fake_item(s, secret("s", 150, "new"));
    fake_listed(s, "160", NULL);
    settle(&p);
    assert_int_equal(p.runs, runs + 1);
    assert_string_equal(p.patched, "ns/a=new");
    pipe_answer(&p, KL_OK);
    pipe_fini(&p);
}

static void a_conflict_is_tried_again_quietly_and_an_error_with_backoff(void **state)
{
    (void)state;
    pipe_world p;
    pipe_init(&p);
    fake_event(&p.r.kinds[APP].f, "ADDED", app("a", 101, "s", ""));
    fake_event(&p.r.kinds[SECRET].f, "ADDED", secret("s", 102, "one"));
    settle(&p);
    pipe_answer(&p, KL_ECONFLICT);
    settle(&p);
    assert_int_equal(p.writes, 1);
    assert_string_equal(kl_buf_str(&p.r.log), "");
    kl_clock_advance(p.r.clock, KL_SECONDS(1));
    settle(&p);
    assert_int_equal(p.writes, 2);
    pipe_answer(&p, KL_ESERVER);
    settle(&p);
    assert_non_null(strstr(kl_buf_str(&p.r.log), "reconcile failed"));
    kl_clock_advance(p.r.clock, KL_SECONDS(2) - 1);
    settle(&p);
    assert_int_equal(p.writes, 2);
    kl_clock_advance(p.r.clock, 1);
    settle(&p);
    assert_int_equal(p.writes, 3);
    pipe_answer(&p, KL_OK);
    pipe_fini(&p);
}

static void a_deposed_leader_writes_nothing_and_a_new_one_catches_up(void **state)
{
    (void)state;
    pipe_world p;
    pipe_init(&p);
    kl_tenure_end(&p.tenure);
    fake_event(&p.r.kinds[APP].f, "ADDED", app("a", 101, "s", ""));
    fake_event(&p.r.kinds[SECRET].f, "ADDED", secret("s", 102, "one"));
    settle(&p);
    assert_int_equal(p.writes, 0); /* no key is even looked at */
    kl_tenure_extend(&p.tenure, KL_NEVER);
    kl_clock_advance(p.r.clock, KL_SECONDS(1));
    settle(&p);
    assert_string_equal(p.patched, "ns/a=one");
    pipe_answer(&p, KL_OK);
    pipe_fini(&p);
}

static void an_object_deleted_while_waiting_is_dropped(void **state)
{
    (void)state;
    pipe_world p;
    pipe_init(&p);
    fake_event(&p.r.kinds[APP].f, "ADDED", app("a", 101, "s", ""));
    fake_event(&p.r.kinds[SECRET].f, "ADDED", secret("s", 102, "one"));
    settle(&p);
    pipe_answer(&p, KL_ESERVER);
    settle(&p);
    int runs = p.runs;
    fake_event(&p.r.kinds[APP].f, "DELETED", app("a", 103, "s", ""));
    settle(&p);
    kl_clock_advance(p.r.clock, KL_SECONDS(100));
    settle(&p);
    assert_int_equal(p.runs, runs);
    assert_string_equal(kl_workqueue_state(p.r.queue, "ns/a", &(kl_time){0}), "absent");
    pipe_fini(&p);
}

KL_TESTS(cmocka_unit_test(an_event_causes_one_write_whose_echo_causes_none),
    cmocka_unit_test(a_watch_that_breaks_in_the_middle_loses_nothing),
    cmocka_unit_test(a_conflict_is_tried_again_quietly_and_an_error_with_backoff),
    cmocka_unit_test(a_deposed_leader_writes_nothing_and_a_new_one_catches_up),
    cmocka_unit_test(an_object_deleted_while_waiting_is_dropped))

/* not in tsan: it starts no thread */
