/* neighbour.c - the good controller: a script with a worker on a thread of its own, and a thread that
 * gives it keys and waits for the answers. */
#include "hunt.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sync.h"
#include "script/program.h"

static const char SCRIPT[] = "local kube = require 'kubelua'\n"
                             "return kube.controller { name = 'neighbour', resource = 'v1/ConfigMap', reads "
                             "= { 'v1/Secret', 'v1/Pod', 'v1/Node', 'apps/v1/Deployment' },\n"
                             "  reconcile = function(map, ctx)\n"
                             "    local n = ctx:get('v1/Secret', map.metadata.name) and 1 or 0\n"
                             "    for pod in ctx:each('v1/Pod', { namespace = 'default' }) do n = n + "
                             "#(pod('spec.containers') or {}) end\n"
                             "    assert(kube.decode(kube.encode { n = n }).n == n)\n"
                             "  end }\n";

/* Between an answer and the next key: dozens of them a second, for a thirtieth of the processor. */
#define PAUSE KL_MILLISECONDS(25)
/* What no load of a machine explains. */
#define LATE KL_SECONDS(20)

struct neighbour {
    kl_program *program;
    kl_wiring *wiring;
    kl_workqueue *quiet, *queue; /* quiet: of the wiring, which is not listened to */
    kl_worker *worker;
    kl_door *door;
    kl_thread *thread;
    kl_mutex mu;
    kl_cond changed;
    bool waits, ends;
    kl_time asked;
};

static kl_logic *logic(void *arg) { return kl_wiring_logic(kl_wiring_ref(((neighbour *)arg)->wiring)); }
static void logic_unref(void *arg, kl_logic *l)
{
    (void)arg;
    kl_wiring_unref(kl_wiring_of(l));
}
static bool is_current(void *arg, const kl_logic *l)
{
    return kl_wiring_logic(((neighbour *)arg)->wiring) == l;
}
/* Of its own: those of the world come and go. */
static const kl_value *object(void *arg, kl_logic *l, const char *key)
{
    static const char TEXT[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\","
                               "\"namespace\":\"default\"}}";
    const kl_value *v = NULL;
    (void)arg, (void)l, (void)key;
    if (kl_value_decode(TEXT, sizeof TEXT - 1, &v, NULL))
        hunt_wrong("the good controller's object does not parse");
    return v;
}
static const kl_resource *resource(void *arg, const char *kind)
{
    (void)arg, (void)kind;
    return NULL;
}
static void event(void *arg, const kl_news *n) { (void)arg, (void)n; }

static void ran(void *arg, const kl_ran *r)
{
    neighbour *n = arg;
    kl_lock(&n->mu);
    kl_time took = kl_clock_now(kl_clock_real()) - n->asked;
    if (r->result != KL_RESULT_DONE)
        hunt_wrong("the good controller failed: %s", r->message);
    if (took > LATE)
        hunt_wrong("the good controller's key took %.1f s", (double)took / 1e9);
    atomic_fetch_add(&the_page->latency[hunt_bucket(took)], 1);
    n->waits = false;
    kl_cond_broadcast(&n->changed);
    kl_unlock(&n->mu);
}

static void ask(void *arg)
{
    neighbour *n = arg;
    kl_lock(&n->mu);
    while (!n->ends) {
        n->asked = kl_clock_now(kl_clock_real());
        n->waits = true;
        kl_unlock(&n->mu);
        kl_workqueue_add(n->queue, "default/a", kl_clock_now(kl_clock_real()));
        kl_worker_poke(n->worker);
        kl_lock(&n->mu);
        while (n->waits)
            kl_cond_wait(&n->changed, &n->mu);
        kl_time until = kl_clock_now(kl_clock_real()) + PAUSE;
        while (!n->ends && kl_cond_wait_until(&n->changed, &n->mu, until))
            continue;
    }
    kl_unlock(&n->mu);
}

static uint64_t send(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    (void)arg, (void)op, (void)done, (void)done_arg;
    hunt_wrong("the good controller, which asks nothing, has asked something");
}

neighbour *neighbour_new(world *w)
{
    neighbour *n = kl_new(neighbour);
    kl_err err = KL_ERR_INIT;
    kl_mutex_init(&n->mu);
    kl_cond_init(&n->changed);
    if (lkl_program_load_text("neighbour.lua", SCRIPT, sizeof SCRIPT - 1, &n->program, &err))
        hunt_wrong("the good controller does not load: %s", kl_err_message(&err));
    n->quiet = kl_workqueue_new(NULL);
    n->queue = kl_workqueue_new(NULL);
    n->door = kl_door_new(&(kl_door_options){.send = send, .clock = kl_clock_real()});
    n->wiring = kl_wiring_new(&(kl_wiring_options){.caches = world_caches(w),
        .loop = world_loop(w),
        .mapper = world_mapper(w),
        .clock = world_clock(w),
        .queue = n->quiet,
        .program = n->program,
        .generation = 1});
    for (int i = 0; i < 8 && !kl_wiring_advance(n->wiring); i++)
        world_pump(w);
    if (!kl_wiring_advance(n->wiring))
        hunt_wrong("the good controller has no caches");
    n->worker = kl_worker_new(&(kl_worker_owner){.logic = logic,
                                  .logic_unref = logic_unref,
                                  .is_current = is_current,
                                  .object = object,
                                  .resource = resource,
                                  .event = event,
                                  .ran = ran,
                                  .arg = n,
                                  .name = "neighbour",
                                  .queue = n->queue,
                                  .door = n->door,
                                  .clock = kl_clock_real()},
        1);
    kl_worker_start(n->worker);
    n->thread = kl_thread_start("hunt-asker", ask, n);
    return n;
}

void neighbour_free(neighbour *n, world *w)
{
    kl_lock(&n->mu);
    n->ends = true;
    kl_cond_broadcast(&n->changed);
    kl_unlock(&n->mu);
    kl_thread_join(n->thread);
    kl_worker_drain(n->worker);
    kl_worker_join(n->worker);
    kl_wiring_retire(n->wiring);
    world_pump(w);
    kl_workqueue_free(n->quiet);
    kl_door_free(n->door);
    kl_workqueue_free(n->queue);
    kl_program_unref(n->program);
    kl_mutex_fini(&n->mu);
    kl_cond_fini(&n->changed);
    kl_free(n);
}
