/* sim.c - controllers in a simulation: wired to its caches, with a worker each that is stepped by hand.
 *
 *   settle: caches hear what changed -> the first controller that has a ready key runs it -> again, until
 *           none has one
 *
 * Controllers come by name, keys as the queue has them; calls are answered before they return, so what a run
 * wrote is in the caches before the next one begins. */
#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "controller/outlook.h"
#include "controller/trigger.h"
#include "run/cause.h"
#include "run/run_impl.h"
#include "sim/sim_impl.h"

/* The maximum number of runs at one moment for each change in the world; more are reported as endless. */
#define RUNS_PER_CHANGE 50
#define RUNS_AT_LEAST 10000

typedef struct part { /* one controller */
    kl_sim *s;
    kl_program *program;
    size_t index;
    kl_wiring *wiring;
    kl_workqueue *queue;
    kl_elide *elide;
    kl_shared *memos;
    kl_worker *worker;
    kl_triggers *triggers; /* `every` and `cron` */
    kl_time resync;
    uint64_t resync_timer; /* 0: none */
    bool turn;
    kl_sim_count count;
} part;

struct kl_sim {
    kl_sim_options o;
    kl_clock *clock;
    kl__scene *scene;
    kl_door *door;
    kl_commons *commons;
    kl_witnesses witnesses;
    part **parts;
    size_t n_parts;
    part *now; /* the controller whose worker steps, or NULL */
    uint64_t runs;
};

kl_server *kl_sim_server(kl_sim *s) { return kl__scene_server(s->scene); }
kl_clock *kl_sim_clock(kl_sim *s) { return s->clock; }

/* --- what a worker asks ------------------------------------------------------------------- */

static kl_logic *owner_logic(void *arg) { return kl_wiring_logic(((part *)arg)->wiring); }
static void owner_logic_unref(void *arg, kl_logic *l) { (void)arg, (void)l; }
static bool owner_is_current(void *arg, const kl_logic *l)
{
    return kl_wiring_logic(((part *)arg)->wiring) == l;
}
static const kl_value *owner_object(void *arg, kl_logic *l, const char *key)
{
    (void)l;
    return kl_wiring_object(((part *)arg)->wiring, key);
}
static const kl_resource *owner_resource(void *arg, const char *kind)
{
    return kl__scene_resource(((part *)arg)->s->scene, kind);
}
static void owner_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    kl_err err = KL_ERR_INIT;
    const kl_resource *r = owner_resource(arg, kind);
    done(done_arg, r ? KL_OK : kl_fail(&err, KL_ENOTFOUND, "the simulated cluster has no kind %s", kind), r,
        &err);
    kl_err_fini(&err);
}
static bool owner_turn(void *arg) { return ((part *)arg)->turn; }
static void owner_turn_over(void *arg) { ((part *)arg)->turn = false; }

static void owner_event(void *arg, const kl_news *n)
{
    part *p = arg;
    kl_news named = *n;
    named.component = p->count.controller;
    if (p->s->o.event)
        p->s->o.event(p->s->o.arg, &named);
}

static void owner_ran(void *arg, const kl_ran *r)
{
    part *p = arg;
    p->count.runs++;
    p->count.errors += r->result == KL_RESULT_ERROR || r->result == KL_RESULT_FAIL;
    if (p->s->o.ran)
        p->s->o.ran(p->s->o.arg, r);
}

/* Ids, and the numbers that follow from them, are the same each time. */
static void heard_began(void *arg, kl_run *r)
{
    kl_sim *s = arg;
    snprintf(r->id, sizeof r->id, "00000000-0000-4000-8000-%012llx", (unsigned long long)++s->runs);
    kl_run_seed(r, (s->o.seed ? s->o.seed : 1) * 0x9e3779b97f4a7c15u + s->runs);
}

static void heard_write(void *arg, const kl_sim_wrote *w)
{
    kl_sim *s = arg;
    kl_sim_wrote named = *w;
    if (!s->now)
        return;
    named.controller = s->now->count.controller;
    s->now->count.writes++;
    s->now->count.refused += w->status != KL_OK;
    if (s->o.wrote)
        s->o.wrote(s->o.arg, &named);
}

/* --- what wakes all keys ------------------------------------------------------------------ */

static kl_loop *loop_of(const part *p) { return kl_listwatch_loop(kl__scene_listwatch(p->s->scene)); }

static void triggered(void *arg) { kl_wiring_enqueue_all(((part *)arg)->wiring, KL_WHY_TRIGGER); }

static void resync_due(void *arg)
{
    part *p = arg;
    kl_wiring_enqueue_all(p->wiring, KL_WHY_RESYNC);
    p->resync_timer = kl_loop_timer(loop_of(p), p->resync, resync_due, p);
}

static void arm(part *p, const kl_controller_spec *spec)
{
    p->triggers = kl_triggers_new(loop_of(p), p->s->clock, triggered, p);
    kl_triggers_set(p->triggers, spec->every, (const char *const *)spec->cron);
    p->resync = spec->resync;
    if (p->resync > 0)
        p->resync_timer = kl_loop_timer(loop_of(p), p->resync, resync_due, p);
}

/* --- controllers -------------------------------------------------------------------------- */

static part *part_new(kl_sim *s, kl_program *program, size_t index)
{
    part *p = kl_new(part);
    const kl_controller_spec *spec = kl_program_spec(program, index);
    *p = (part){.s = s,
        .program = kl_program_ref(program),
        .index = index,
        .elide = kl_elide_new(0),
        .memos = kl_memos_new(spec->name),
        .count = {.controller = spec->name}};
    p->queue = kl_workqueue_new(&(kl_workqueue_options){
        .backoff = spec->backoff, .seed = s->o.seed ? s->o.seed : 1, .forget = kl_cause_forget});
    p->wiring = kl_wiring_new(
        &(kl_wiring_options){.caches = kl_listwatch_caches(kl__scene_listwatch(s->scene)),
            .loop = kl_listwatch_loop(kl__scene_listwatch(s->scene)),
            .mapper = kl_listwatch_mapper(kl__scene_listwatch(s->scene)),
            .clock = s->clock,
            .queue = p->queue,
            .program = program,
            .index = index,
            .generation = 1});
    p->worker = kl_worker_new(&(kl_worker_owner){.logic = owner_logic,
                                  .logic_unref = owner_logic_unref,
                                  .is_current = owner_is_current,
                                  .object = owner_object,
                                  .resolve = owner_resolve,
                                  .resource = owner_resource,
                                  .event = owner_event,
                                  .ran = owner_ran,
                                  .turn = owner_turn,
                                  .turn_over = owner_turn_over,
                                  .arg = p,
                                  .name = spec->name,
                                  .queue = p->queue,
                                  .door = s->door,
                                  .clock = s->clock,
                                  .elide = p->elide,
                                  .commons = s->commons,
                                  .memos = p->memos,
                                  .witnesses = &s->witnesses},
        1);
    return p;
}

static void part_free(part *p)
{
    kl_worker_drain(p->worker);
    kl_worker_abort(p->worker);
    kl_worker_join(p->worker);
    kl_triggers_free(p->triggers);
    kl_loop_timer_cancel(loop_of(p), p->resync_timer);
    kl_wiring_retire(p->wiring);
    kl_listwatch_pump(kl__scene_listwatch(p->s->scene));
    kl_workqueue_free(p->queue);
    kl_elide_free(p->elide);
    kl_shared_free(p->memos);
    kl_program_unref(p->program);
    kl_free(p);
}

static kl_status activate(kl_sim *s, part *p, kl_err *err)
{
    for (int i = 0; i < 4; i++) { /* caches, their objects, and functions' indexes of those */
        (void)kl__scene_flush(s->scene);
        if (kl_wiring_advance(p->wiring)) {
            kl_wiring_activate(p->wiring);
            arm(p, kl_program_spec(p->program, p->index));
            return KL_OK;
        }
    }
    bool parked;
    char *why = kl_wiring_why(p->wiring, &parked);
    kl_status st = kl_fail(err, KL_ESCRIPT, "controller \"%s\" cannot begin: %s", p->count.controller,
        why ? why : "its indexes cannot be built");
    kl_free(why);
    return st;
}

/* Sorts controllers by name, so that the order of scripts does not matter. */
static int by_name(const void *a, const void *b)
{
    return strcmp((*(part *const *)a)->count.controller, (*(part *const *)b)->count.controller);
}

kl_status kl_sim_start(kl_sim *s, kl_program *const *programs, size_t n, kl_err *err)
{
    kl_status st = KL_OK;
    (void)kl__scene_flush(s->scene);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < programs[i]->n_specs; k++) {
            s->parts = kl_realloc(s->parts, (s->n_parts + 1) * sizeof(part *));
            s->parts[s->n_parts++] = part_new(s, programs[i], k);
        }
    qsort(s->parts, s->n_parts, sizeof(part *), by_name);
    for (size_t i = 0; i < s->n_parts && !st; i++)
        st = activate(s, s->parts[i], err);
    return st;
}

/* --- turns -------------------------------------------------------------------------------- */

/* Runs one key, or the due runs that sleep. False: there was neither. */
static bool step(kl_sim *s, part *p)
{
    kl_time now = kl_clock_now(s->clock), next;
    size_t asleep;
    bool full;
    kl_worker_outlook(p->worker, &asleep, &full, &next);
    bool ready = kl_workqueue_next_due(p->queue) <= now && !full;
    if (!ready && next > now)
        return false;
    kl_time began = kl_clock_now(kl_clock_real());
    p->turn = ready;
    s->now = p;
    while (kl_worker_step(p->worker) <= now)
        continue;
    s->now = NULL;
    p->turn = false;
    p->count.cpu += kl_clock_now(kl_clock_real()) - began;
    (void)kl__scene_flush(s->scene);
    return true;
}

static kl_time due(const part *p)
{
    size_t asleep;
    bool full;
    kl_time next, queue = kl_workqueue_next_due(p->queue);
    kl_worker_outlook(p->worker, &asleep, &full, &next);
    return full || next < queue ? next : queue;
}

kl_status kl_sim_settle(kl_sim *s, kl_time *next, kl_err *err)
{
    uint64_t turns = 0;
    (void)kl__scene_flush(s->scene);
    uint64_t most = RUNS_AT_LEAST + RUNS_PER_CHANGE * (uint64_t)kl__scene_objects(s->scene);
    for (size_t i = 0; i < s->n_parts;) {
        if (!step(s, s->parts[i]))
            i++;
        else if (++turns > most)
            return kl_fail(err, KL_ETIMEOUT,
                "%llu reconciles at one time, without end; the last was of controller \"%s\": a reconcile "
                "whose writes differ each time triggers itself again",
                (unsigned long long)turns, s->parts[i]->count.controller);
        else
            i = 0;
    }
    *next = KL_NEVER;
    for (size_t i = 0; i < s->n_parts; i++)
        *next = due(s->parts[i]) < *next ? due(s->parts[i]) : *next;
    for (int i = 0; i < 2; i++) {
        kl_listwatch *l = kl__scene_listwatch(s->scene);
        kl_time timer = kl_loop_next(i ? kl_listwatch_loop(l) : kl_listwatch_mapper(l));
        *next = timer < *next ? timer : *next;
    }
    return KL_OK;
}

void kl_sim_call(kl_sim *s, const kl_op *op, kl_reply_fn *done, void *arg)
{
    (void)kl__scene_send(s->scene, op, done, arg);
}

const kl_resource *kl_sim_resource(kl_sim *s, const char *kind) { return kl__scene_resource(s->scene, kind); }

void kl_sim_move(kl_sim *s, kl_time by) { kl_clock_advance(s->clock, by); }

bool kl_sim_count_of(kl_sim *s, size_t i, kl_sim_count *out)
{
    if (i >= s->n_parts)
        return false;
    kl_workqueue_stats stats;
    kl_workqueue_stats_get(s->parts[i]->queue, kl_clock_now(s->clock), &stats);
    *out = s->parts[i]->count;
    out->failing = stats.failing;
    return true;
}

/* --- life --------------------------------------------------------------------------------- */

kl_status kl_sim_new(const kl_sim_options *o, kl_sim **out, kl_err *err)
{
    kl_sim *s = kl_new(kl_sim);
    s->o = *o;
    s->clock = kl_clock_fake_new(KL_TURNS_EPOCH, o->wall);
    s->scene = kl__scene_new(&s->o, s->clock, err);
    if (!s->scene) {
        kl_clock_fake_free(s->clock);
        kl_free(s);
        return err ? err->status : KL_EINTERNAL;
    }
    kl__scene_heard(s->scene, heard_write, s);
    s->door = kl_door_new(
        &(kl_door_options){.send = kl__scene_send, .send_arg = s->scene, .clock = s->clock});
    s->commons = kl_commons_new();
    kl_witnesses_add(&s->witnesses, &(kl_witness){.began = heard_began, .arg = s});
    *out = s;
    return KL_OK;
}

void kl_sim_free(kl_sim *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_parts; i++)
        part_free(s->parts[i]);
    kl__scene_free(s->scene);
    kl_door_free(s->door);
    kl_commons_free(s->commons);
    kl_clock_fake_free(s->clock);
    kl_free(s->parts);
    kl_free(s);
}
