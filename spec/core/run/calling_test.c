/* calling_test.c - the workers that are called for a key, with real threads. */
#include "support/test.h"

#include <stdatomic.h>
#include "base/mem.h"
#include "base/sync.h"
#include "run/worker.h"

#define BOUND KL_SECONDS(20)
#define WORKERS 3

/* A reconciler that counts, and waits while `hold` is up. */
typedef struct crew {
    kl_program program;
    kl_controller_spec spec;
    kl_logic logic;
    kl_workqueue *queue;
    kl_door *door;
    kl_worker *w[WORKERS];
    const kl_value *object;
    atomic_int runs, calls;
    atomic_bool hold;
    kl_mutex mu;
    kl_cond changed;
    int inside; /* under mu: runs that wait */
} crew;

static void *open_state(kl_program *p, size_t i, const atomic_bool *stop, kl_err *err)
{
    (void)i, (void)err, (void)stop;
    return p;
}
static void close_state(void *state) { (void)state; }

static kl_run_state start(void *state, kl_run *run)
{
    crew *c = state;
    kl_lock(&c->mu);
    c->inside++;
    kl_cond_broadcast(&c->changed);
    kl_time end = kl_clock_now(kl_clock_real()) + BOUND;
    while (atomic_load(&c->hold) && kl_cond_wait_until(&c->changed, &c->mu, end))
        ;
    c->inside--;
    atomic_fetch_add(&c->runs, 1);
    kl_cond_broadcast(&c->changed);
    kl_unlock(&c->mu);
    kl_run_finish(run, KL_RESULT_DONE, 0, NULL, NULL);
    return KL_RUN_DONE;
}

static const kl_program_ops OPS = {.open = open_state, .close = close_state, .start = start};

static kl_logic *logic(void *arg) { return &((crew *)arg)->logic; }
static bool is_current(void *arg, const kl_logic *l) { return l == &((crew *)arg)->logic; }
static void logic_unref(void *arg, kl_logic *l) { (void)arg, (void)l; }
static const kl_value *object(void *arg, kl_logic *l, const char *key)
{
    (void)l, (void)key;
    return kl_value_ref(((crew *)arg)->object);
}
static uint64_t door_send(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    (void)arg, (void)op, (void)done, (void)done_arg;
    return 0;
}
static void door_cancel(void *arg, uint64_t id) { (void)arg, (void)id; }

/* As a controller does. */
static void call_one(void *arg)
{
    crew *c = arg;
    atomic_fetch_add(&c->calls, 1);
    for (int i = 0; i < WORKERS; i++)
        if (kl_worker_call(c->w[i]))
            break;
}

static void more(void *arg)
{
    crew *c = arg;
    kl_time due = kl_workqueue_more(c->queue);
    bool awaited = due == KL_NEVER;
    for (int i = 0; i < WORKERS && !awaited; i++)
        awaited = due && kl_worker_awaits(c->w[i], due);
    if (!awaited)
        call_one(c);
}

static void crew_start(crew *c)
{
    memset(c, 0, sizeof *c);
    kl_mutex_init(&c->mu);
    kl_cond_init(&c->changed);
    c->spec = (kl_controller_spec){.name = "ctl", .resource = "v1/Pod"};
    c->program = (kl_program){.ops = &OPS, .name = "spec", .specs = &c->spec, .n_specs = 1};
    c->logic = (kl_logic){.program = &c->program, .spec = &c->spec, .generation = 1};
    c->queue = kl_workqueue_new(&(kl_workqueue_options){.wake = call_one, .wake_arg = c});
    c->door = kl_door_new(&(kl_door_options){door_send, door_cancel, c, kl_clock_real()});
    c->object = kl_value_of_str("an object");
    for (int i = 0; i < WORKERS; i++)
        c->w[i] = kl_worker_new(&(kl_worker_owner){.logic = logic,
                                    .logic_unref = logic_unref,
                                    .is_current = is_current,
                                    .object = object,
                                    .more = more,
                                    .arg = c,
                                    .name = "ctl",
                                    .queue = c->queue,
                                    .door = c->door,
                                    .clock = kl_clock_real()},
            i + 1);
    for (int i = 0; i < WORKERS; i++)
        kl_worker_start(c->w[i]);
}

static void crew_end(crew *c)
{
    for (int i = 0; i < WORKERS; i++)
        kl_worker_drain(c->w[i]);
    for (int i = 0; i < WORKERS; i++)
        kl_worker_join(c->w[i]);
    kl_workqueue_free(c->queue);
    kl_door_free(c->door);
    kl_value_unref(c->object);
    kl_cond_fini(&c->changed);
    kl_mutex_fini(&c->mu);
}

static void await(crew *c, int inside, int runs)
{
    kl_time end = kl_clock_now(kl_clock_real()) + BOUND;
    bool in_time = true;
    kl_lock(&c->mu);
    while ((c->inside < inside || atomic_load(&c->runs) < runs) && in_time)
        in_time = kl_cond_wait_until(&c->changed, &c->mu, end);
    assert_true(in_time);
    kl_unlock(&c->mu);
}

static void add(crew *c, int i)
{
    char key[32];
    snprintf(key, sizeof key, "ns/%d", i);
    kl_workqueue_add(c->queue, key, kl_clock_now(kl_clock_real()));
}

static void let_go(crew *c)
{
    kl_lock(&c->mu);
    atomic_store(&c->hold, false);
    kl_cond_broadcast(&c->changed);
    kl_unlock(&c->mu);
}

/* One call goes out for the first key; that worker is stuck in it, so the others must come for the rest. */
static void keys_behind_a_busy_worker_find_another(void **state)
{
    (void)state;
    crew c;
    crew_start(&c);
    atomic_store(&c.hold, true);
    for (int i = 0; i < WORKERS; i++)
        add(&c, i);
    await(&c, WORKERS, 0);
    add(&c, WORKERS); /* nobody is free now: the first who is takes it */
    kl_workqueue_add_after(c.queue, "ns/later", KL_MILLISECONDS(1), kl_clock_now(kl_clock_real()));
    let_go(&c);
    await(&c, 0, WORKERS + 2);
    crew_end(&c);
}

/* The one who waits for its time is called to a key that comes before: somebody else must wait in its
 * place. */
static void a_moment_does_not_depend_on_its_waiter(void **state)
{
    (void)state;
    crew c;
    crew_start(&c);
    for (int i = 0; i < 20; i++) {
        atomic_store(&c.hold, false);
        await(&c, 0, 2 * i);
        atomic_store(&c.hold, true);
        char key[32];
        snprintf(key, sizeof key, "ns/later%d", i);
        kl_workqueue_add_after(c.queue, key, KL_MILLISECONDS(5), kl_clock_now(kl_clock_real()));
        add(&c, i);
        await(&c, 2, 0); /* both are in, while the first is held */
        let_go(&c);
    }
    await(&c, 0, 40);
    crew_end(&c);
}

/* Keys come while workers fall asleep and wake up: none is left behind. */
static void no_key_is_left_behind(void **state)
{
    (void)state;
    enum { KEYS = 3000 };
    crew c;
    crew_start(&c);
    for (int i = 0; i < KEYS; i++) {
        add(&c, i);
        if (i % 7 == 0)
            await(&c, 0, i + 1); /* now and then they all get to the bottom of it */
    }
    await(&c, 0, KEYS);
    assert_int_equal(atomic_load(&c.runs), KEYS);
    crew_end(&c);
}

static void a_worker_without_a_thread_is_never_called(void **state)
{
    (void)state;
    crew c;
    memset(&c, 0, sizeof c);
    c.queue = kl_workqueue_new(NULL);
    c.logic.spec = &c.spec;
    kl_worker *w = kl_worker_new(&(kl_worker_owner){.logic = logic,
                                     .logic_unref = logic_unref,
                                     .is_current = is_current,
                                     .arg = &c,
                                     .name = "ctl",
                                     .queue = c.queue,
                                     .clock = kl_clock_real()},
        1);
    assert_false(kl_worker_call(w));
    kl_worker_drain(w);
    kl_worker_join(w);
    kl_workqueue_free(c.queue);
}

KL_TESTS(cmocka_unit_test(keys_behind_a_busy_worker_find_another), cmocka_unit_test(no_key_is_left_behind),
    cmocka_unit_test(a_moment_does_not_depend_on_its_waiter),
    cmocka_unit_test(a_worker_without_a_thread_is_never_called))
