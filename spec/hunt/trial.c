/* trial.c - one hostile program through everything that the runtime asks of a script: load, index, map,
 * `when`, reconcile, finalize, webhooks, a reload while it runs, being abandoned, its end, a replay, and the
 * stage. What each of these took of the processor is measured against its budget. */
#include "hunt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "script/program.h"
#include "state/state.h"
#include "controller/dry_writes.h"
#include "run/elide.h"
#include "run/fights.h"
#include "run/params.h"
#include "lab/replay.h"

/* Budgets are small, so that programs are quick, and larger for one program in eight, which gets deeper; a
 * script's own smaller ones stay. */
#define CPU_MOST KL_MILLISECONDS(4)
#define MEMORY_MOST ((size_t)24 << 20)
#define TIMEOUT_MOST KL_SECONDS(1)
#define ROOMY 8
#define CPU_LITTLE (CPU_MOST / 4)
#define MEMORY_LITTLE (MEMORY_MOST / 4)
/* One in so many programs that can. */
#define REPLAYED 12
#define SUCCEEDED 4
#define LOAD_BUDGET KL_SECONDS(2)
/* One program in 200 would use all of that, and take as long as a hundred others; one in LOADS_LONG may. */
#if defined __SANITIZE_THREAD__
#define LOAD_LITTLE (LOAD_BUDGET / 4)
#else
#define LOAD_LITTLE (LOAD_BUDGET / 40)
#endif
#define LOADS_LONG 64
/* Beyond a budget. Ours to mend is what is well above 50 ms; what fails here is no matter of a busy
 * machine. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define GRACE KL_SECONDS(30)
#else
#define GRACE KL_SECONDS(3)
#endif
/* Of the world's time, which else stands: a loop of dry writes ends with the timeout of its run. */
#define ANSWER KL_MILLISECONDS(10)
#define ROUNDS 3
#define STEPS 400

static const char *const KEYS[] = {"default/a", "default/b", "default/going", "a"};
#define N_KEYS (sizeof KEYS / sizeof *KEYS)

typedef struct part { /* one controller, or webhook, of a program */
    world *w;
    kl_program *p;
    size_t index;
    bool hook;
    kl_program *next; /* that takes over; p itself, or another one */
    size_t next_index;
    kl_random *dice;
    const kl_value *requests[N_KEYS]; /* of a webhook */
    kl_workqueue *queue;
    kl_wiring *wiring;
    kl_worker *worker;
    kl_commons *commons;
    kl_shared *memos;
    kl_elide *elide;
    kl_fights *fights;
    kl_tenure tenure;
} part;

/* --- the program's functions, measured ---------------------------------------------------- */

static const kl_program_ops *behind;
static struct {
    world *world;
    bool roomy;
} under_trial;

static void *opens(kl_program *p, size_t controller, const atomic_bool *stop, kl_err *err)
{
    hunt_phase("open");
    kl_time began = hunt_cpu();
    void *state = behind->open(p, controller, stop, err);
    hunt_took("open", hunt_cpu() - began, LOAD_BUDGET + GRACE);
    return state;
}

static kl_run_state start(void *state, kl_run *run)
{
    hunt_phase("run");
    the_page->bodies++;
    kl_time began = hunt_cpu();
    kl_run_state s = behind->start(state, run);
    hunt_took("run", hunt_cpu() - began, 3 * CPU_MOST + GRACE);
    return s;
}

static kl_run_state resume(void *state, kl_run *run)
{
    hunt_phase("resume");
    kl_clock_advance(world_clock(under_trial.world), ANSWER);
    kl_time began = hunt_cpu();
    kl_run_state s = behind->resume(state, run);
    hunt_took("resume", hunt_cpu() - began, 3 * CPU_MOST + GRACE);
    return s;
}

static void abandon(void *state, kl_run *run)
{
    hunt_phase("abandon");
    kl_time began = hunt_cpu();
    behind->abandon(state, run);
    hunt_took("abandon", hunt_cpu() - began, 3 * CPU_MOST + GRACE);
}

static kl_status map(void *state, size_t fn, kl_reader *reader, const kl_value *object, kl_emit_fn *emit_key,
    void *arg, kl_err *err)
{
    hunt_phase("map");
    the_page->bodies++;
    kl_time began = hunt_cpu();
    kl_status st = behind->map(state, fn, reader, object, emit_key, arg, err);
    hunt_took("map", hunt_cpu() - began, 3 * CPU_MOST + GRACE);
    return st;
}

static kl_status index_of(
    void *state, size_t fn, const kl_value *object, kl_emit_fn *emit_value, void *arg, kl_err *err)
{
    hunt_phase("index");
    the_page->bodies++;
    kl_time began = hunt_cpu();
    kl_status st = behind->index(state, fn, object, emit_value, arg, err);
    hunt_took("index", hunt_cpu() - began, 3 * CPU_MOST + GRACE);
    return st;
}

static kl_status predicate(
    void *state, size_t fn, const kl_value *now, const kl_value *old, bool *pass, kl_err *err)
{
    hunt_phase("when");
    the_page->bodies++;
    kl_time began = hunt_cpu();
    kl_status st = behind->predicate(state, fn, now, old, pass, err);
    hunt_took("when", hunt_cpu() - began, 3 * CPU_MOST + GRACE);
    return st;
}

static void bound(kl_controller_spec *s)
{
    bool roomy = under_trial.roomy;
    kl_time cpu = roomy ? CPU_MOST : CPU_LITTLE;
    size_t memory = roomy ? MEMORY_MOST : MEMORY_LITTLE;
    if (!s->cpu || s->cpu > cpu)
        s->cpu = cpu;
    if (!s->memory || s->memory > memory)
        s->memory = memory;
    if (!s->timeout || s->timeout > TIMEOUT_MOST)
        s->timeout = TIMEOUT_MOST;
}

static void bound_all(kl_program *p)
{
    for (size_t i = 0; i < p->n_specs; i++)
        bound(&p->specs[i]);
    for (size_t i = 0; i < p->n_hooks; i++)
        bound(&p->hooks[i].as);
}

/* One program at a time, and the one that takes over. */
static void take(kl_program *p)
{
    static kl_program_ops ours;
    behind = p->ops;
    ours = *p->ops;
    ours.open = opens;
    ours.start = start;
    ours.resume = resume;
    ours.abandon = abandon;
    ours.map = map;
    ours.index = index_of;
    ours.predicate = predicate;
    p->ops = &ours;
    bound_all(p);
}

/* --- the worker's owner ------------------------------------------------------------------- */

static kl_logic *logic(void *arg) { return kl_wiring_logic(kl_wiring_ref(((part *)arg)->wiring)); }
static void logic_unref(void *arg, kl_logic *l)
{
    (void)arg;
    kl_wiring_unref(kl_wiring_of(l));
}
static bool is_current(void *arg, const kl_logic *l) { return kl_wiring_logic(((part *)arg)->wiring) == l; }
static void event(void *arg, const kl_news *n) { (void)arg, (void)n; }
/* Of the key, in place of the one before. */
static const kl_value **request_of(part *p, const char *key)
{
    size_t i = 0;
    while (i < N_KEYS - 1 && strcmp(KEYS[i], key))
        i++;
    return &p->requests[i];
}

static void answer(void *arg, const char *key, const kl_value *decision)
{
    request_answered(*request_of(arg, key), decision);
}
static const kl_resource *resource(void *arg, const char *kind)
{
    return world_resource(((part *)arg)->w, kind);
}

static const kl_value *object(void *arg, kl_logic *l, const char *key)
{
    part *p = arg;
    if (!p->hook)
        return kl_wiring_object(kl_wiring_of(l), key);
    const kl_value **r = request_of(p, key);
    kl_value_unref(*r);
    *r = request_new(p->dice);
    return kl_value_ref(*r);
}

static void resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    const kl_resource *r = world_resource(((part *)arg)->w, kind);
    kl_err err = KL_ERR_INIT;
    done(done_arg, r ? KL_OK : kl_fail(&err, KL_ENOTFOUND, "the server has no kind %s", kind), r, &err);
    kl_err_fini(&err);
}

/* It is there so that nobody sleeps in real time where nothing can yield. */
static kl_time wall(void *arg, kl_run *r)
{
    (void)r;
    return kl_clock_wall(world_clock(((part *)arg)->w));
}

static void ran(void *arg, const kl_ran *r)
{
    (void)arg;
    the_page->failed_runs += r->result == KL_RESULT_ERROR;
}

/* --- params ------------------------------------------------------------------------------- */

static const kl_value *json(const char *text, size_t len)
{
    const kl_value *v = NULL;
    if (kl_value_decode(text, len, &v, NULL))
        hunt_wrong("%.40s is no JSON", text);
    return v;
}

static const kl_value *deep(size_t n)
{
    kl_buf b = KL_BUF_INIT;
    for (size_t i = 0; i < 2 * n; i++)
        kl_buf_putc(&b, i < n ? '[' : ']');
    const kl_value *v = json(kl_buf_str(&b), b.len);
    kl_buf_fini(&b);
    return v;
}

static const kl_value *huge(size_t n)
{
    char *text = kl_alloc(n);
    memset(text, 'x', n);
    const kl_value *v = kl_value_of_strn(text, n);
    kl_free(text);
    return v;
}

const kl_value *hunt_params(kl_random *dice)
{
    static const char *const NAMES[] = {"a", "b", "c", "token"};
    static const char *const VALUES[] = {"null", "true", "-1", "1e308", "9007199254740993",
        "18446744073709551615", "\"\"", "\"5s\"", "\"x\\u0000\"", "[]", "{}", "[1,[2,{\"x\":null}]]",
        "{\"a\":{\"b\":1}}", "{\"1\":1,\"__index\":{}}"};
    size_t n = sizeof VALUES / sizeof *VALUES;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        size_t which = kl_random_next(dice) % (2 * n + 2);
        const kl_value *v = which < n ? json(VALUES[which], strlen(VALUES[which]))
            : which == 2 * n          ? deep(500)
            : which > 2 * n           ? huge(1 << 20)
                                      : NULL;
        if (v)
            kl_build_kvalue(b, NAMES[i], v);
        kl_value_unref(v);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* The params of the next generation: those that it was given, or what somebody made of them. A new reference;
 * NULL: the spec's. */
static const kl_value *next_params(const part *p)
{
    const kl_controller_spec *spec = kl_program_spec(p->next, p->next_index);
    const kl_value *all = NULL, *wish = kl_random_next(p->dice) % 2 ? hunt_params(p->dice) : NULL;
    kl_err err = KL_ERR_INIT;
    hunt_phase("params");
    if (wish && kl_params_over(spec, kl_params_of(spec), wish, &all, &err))
        kl_err_fini(&err);
    kl_value_unref(wish);
    return all;
}

/* --- one part ----------------------------------------------------------------------------- */

static kl_wiring *wire(part *p, kl_program *program, size_t index, int generation, const kl_value *params)
{
    hunt_phase("wire");
    kl_wiring *w = kl_wiring_new(&(kl_wiring_options){.caches = world_caches(p->w),
        .loop = world_loop(p->w),
        .mapper = world_mapper(p->w),
        .clock = world_clock(p->w),
        .queue = p->queue,
        .program = program,
        .index = index,
        .params = params,
        .generation = generation});
    for (int i = 0; i < 6 && !kl_wiring_advance(w); i++)
        world_pump(p->w);
    return w;
}

static void step(part *p)
{
    for (int i = 0; i < STEPS; i++) {
        kl_time next = kl_worker_step(p->worker);
        if (next > kl_clock_now(world_clock(p->w)))
            break;
    }
    world_pump(p->w);
}

static void reload(part *p)
{
    const kl_value *params = next_params(p);
    kl_wiring *old = p->wiring, *new = wire(p, p->next, p->next_index, 2, params);
    kl_value_unref(params);
    if (!kl_wiring_advance(new)) {
        kl_wiring_retire(new);
        return;
    }
    kl_wiring_listen(new);
    p->wiring = new;
    kl_wiring_hand_over(old);
    kl_wiring_enqueue_again(new);
    world_pump(p->w);
}

static void rounds(part *p, kl_random *dice)
{
    int when = (int)(kl_random_next(dice) % (2 * ROUNDS));
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; p->hook && i < 3; i++)
            kl_workqueue_add(p->queue, KEYS[i], kl_clock_now(world_clock(p->w)));
        world_pump(p->w);
        step(p);
        world_happen(p->w);
        world_pump(p->w);
        if (round == when)
            reload(p);
        if (round == when + 1)
            kl_tenure_end(&p->tenure);
        step(p);
        kl_clock_advance(world_clock(p->w), KL_SECONDS(31));
    }
}

static void part_run(part *p, world_rule rule, kl_random *dice)
{
    static const kl_imagination DRY = {.ops = &kl_dry_writes};
    const kl_controller_spec *spec = kl_program_spec(p->p, p->index);
    p->queue = kl_workqueue_new(
        &(kl_workqueue_options){.backoff = {KL_SECONDS(1), KL_SECONDS(100), 0}, .forget = kl_cause_forget});
    p->wiring = wire(p, p->p, p->index, 1, NULL);
    if (kl_wiring_advance(p->wiring)) {
        if (rule != WORLD_NOT_LEADING)
            kl_tenure_begin(&p->tenure, 7, KL_NEVER);
        kl_wiring_attend(p->wiring);
        kl_wiring_activate(p->wiring);
        p->worker = kl_worker_new(&(kl_worker_owner){.logic = logic,
                                      .logic_unref = logic_unref,
                                      .is_current = is_current,
                                      .object = object,
                                      .resolve = resolve,
                                      .resource = resource,
                                      .event = event,
                                      .answer = answer,
                                      .ran = ran,
                                      .wall = wall,
                                      .arg = p,
                                      .name = spec->name,
                                      .queue = p->queue,
                                      .door = world_door(p->w),
                                      .clock = world_clock(p->w),
                                      .commons = p->commons,
                                      .memos = p->memos,
                                      .elide = rule == WORLD_DRY_RUN ? NULL : p->elide,
                                      .fights = p->fights,
                                      .imagine = rule == WORLD_DRY_RUN ? &DRY : NULL,
                                      .tenure = &p->tenure},
            1);
        rounds(p, dice);
        hunt_phase("end");
        kl_worker_drain(p->worker);
        step(p);
        kl_worker_abort(p->worker);
        step(p);
        kl_worker_join(p->worker);
    }
    kl_wiring_retire(p->wiring);
    world_pump(p->w);
    kl_workqueue_free(p->queue);
    for (size_t i = 0; i < N_KEYS; i++)
        kl_value_unref(p->requests[i]);
}

static bool has_resource(const kl_controller_spec *s, const char *resource)
{
    return s->resource && resource && !strcmp(s->resource, resource);
}

/* next: NULL, or another program, whose first controller takes over from those of the same kind, with their
 * memos, queue, and all that is shared. */
static void parts_run(world *w, kl_program *p, kl_program *next, world_rule rule, kl_random *dice)
{
    kl_commons *commons = kl_commons_new();
    for (size_t i = 0; i < p->n_specs + p->n_hooks; i++) {
        bool hook = i >= p->n_specs;
        bool other = next && !hook && has_resource(&next->specs[0], p->specs[i].resource);
        part x = {.w = w,
            .p = p,
            .index = i,
            .hook = hook,
            .next = other ? next : p,
            .next_index = other ? 0 : i,
            .dice = dice,
            .commons = commons,
            .memos = kl_memos_new("hunt"),
            .elide = kl_elide_new(100),
            .fights = kl_fights_new("hunt", false)};
        part_run(&x, rule, dice);
        kl_shared_free(x.memos);
        kl_elide_free(x.elide);
        kl_fights_free(x.fights);
    }
    kl_commons_free(commons);
}

/* What it would do with a day that was recorded with another script. */
static void replay(world *w, kl_program *p)
{
    char *text = world_recording(w, p->specs[0].resource ? p->specs[0].resource : "v1/ConfigMap");
    kl_past *past = NULL;
    kl_replay_sum sum = {0};
    kl_err err = KL_ERR_INIT;
    hunt_phase("replay");
    if (kl_past_read_text("hunt", text, strlen(text), &past, &err))
        hunt_wrong("the recording does not read: %s", kl_err_message(&err));
    kl_status st = kl_replay(&(kl_replay_options){.past = past, .programs = &p, .n_programs = 1}, &sum, &err);
    if (!st && sum.runs != 3)
        hunt_wrong("%zu runs were replayed, and not 3", sum.runs);
    the_page->replayed += !st;
    kl_replay_sum_fini(&sum);
    kl_past_free(past);
    kl_err_fini(&err);
    kl_free(text);
}

/* As a ConfigMap has it: nothing is read from a file. Without modules as a file has it, which may look for
 * some. */
static kl_status load(const kl_value *modules, const char *text, size_t len, kl_program **out, kl_err *err)
{
    if (!modules)
        return lkl_program_load_text("hunt.lua", text, len, out, err);
    const kl_value *main = kl_value_of_strn(text, len), *all = kl_value_with(modules, "hunt.lua", main);
    kl_status st = lkl_program_load_texts("hunt", all, "hunt.lua", out, err);
    kl_value_unref(all);
    kl_value_unref(main);
    return st;
}

typedef struct one { /* a program under trial */
    const trial *of;
    kl_program *p, *next; /* next: NULL: there is none */
    world_rule rule;
    kl_random *dice;
    const char *text;
    size_t len;
} one;

/* On a stage it has threads of its own: nothing is measured there. */
static void on_stage(const one *o)
{
    kl_program *both[2] = {NULL, NULL};
    hunt_phase("load-again");
    for (int i = 0; i < 2; i++) {
        kl_err err = KL_ERR_INIT;
        if (!load(o->of->modules, o->text, o->len, &both[i], &err))
            bound_all(both[i]);
        kl_err_fini(&err);
    }
    if (both[0] && !both[0]->n_hooks)
        stage_run(o->of->stage, o->of->world, both[0], both[1], o->dice);
    for (int i = 0; i < 2; i++)
        if (both[i])
            kl_program_unref(both[i]);
}

static bool is_isolated(const kl_program *p)
{
    for (size_t i = 0; i < p->n_specs + p->n_hooks; i++)
        if (kl_program_spec(p, i)->isolate)
            return true;
    return false;
}

static void loaded(void *arg)
{
    const one *o = arg;
    take(o->p);
    if (o->next)
        take(o->next);
    parts_run(o->of->world, o->p, o->next, o->rule, o->dice);
    if (o->p->n_specs && kl_random_next(o->dice) % REPLAYED == 0)
        replay(o->of->world, o->p);
}

/* As a deployment does: some of what the script declares, of the right type or not. What it refuses does not
 * run. */
static kl_status give_params(kl_program *p, kl_random *dice, kl_err *err)
{
    static const char *const WORDS[] = {"3", "true", "5s", "[1, 2, {x: 1}]", "{a: {b: 1}}", "", "&x [*x]",
        "~", "1e400", ".nan", "{a: 1, a: 2}", "[.inf]"};
    size_t n = sizeof WORDS / sizeof *WORDS;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "token", "hunted");
    kl_build_kstr(b, kl_random_next(dice) % 2 ? "a" : "hunt.a", WORDS[kl_random_next(dice) % n]);
    if (kl_random_next(dice) % 4 == 0)
        kl_build_kstr(b, "c", WORDS[kl_random_next(dice) % n]);
    kl_build_end(b);
    const kl_value *given = kl_builder_done(b);
    hunt_phase("params");
    kl_err refused = KL_ERR_INIT;
    (void)!kl_program_set_params(p, given, true, &refused);
    kl_err_fini(&refused);
    kl_value_unref(given);
    return kl_program_params_there(p, err);
}

/* A program that takes over from this one, as the generator makes it of a seed. Where its functions run must
 * be the same, since the fence stands around them. */
static kl_program *successor(const one *o, bool isolated)
{
    size_t len;
    uint64_t seed = kl_random_next(o->dice) >> 16;
    kl_program *p = NULL;
    kl_err err = KL_ERR_INIT;
    if (!o->p->n_specs || seed % SUCCEEDED)
        return NULL;
    hunt_phase("load-next");
    const char *text = o->of->generate(seed, o->p->specs[0].resource, &len);
    kl_status st = load(o->of->modules, text, len, &p, &err);
    if (!st)
        st = give_params(p, o->dice, &err);
    if (p && (st || !p->n_specs || is_isolated(p) != isolated)) {
        kl_program_unref(p);
        p = NULL;
    }
    kl_err_fini(&err);
    the_page->succeeded += p != NULL;
    return p;
}

bool trial_run(const trial *t, uint64_t seed, const char *text, size_t len)
{
    kl_random dice = {seed};
    one o = {
        .of = t, .rule = (world_rule)(kl_random_next(&dice) % 3), .dice = &dice, .text = text, .len = len};
    kl_err err = KL_ERR_INIT;
    world_begin(t->world, o.rule, kl_random_next(&dice));
    under_trial.world = t->world;
    uint64_t room = kl_random_next(&dice);
    under_trial.roomy = room % ROOMY == 0;
    lkl_state_set_load_max(room % LOADS_LONG == 0 ? LOAD_BUDGET : LOAD_LITTLE);
    hunt_phase("load");
    kl_time began = hunt_cpu();
    kl_status st = load(t->modules, text, len, &o.p, &err);
    hunt_took("load", hunt_cpu() - began, LOAD_BUDGET + GRACE);
    if (!st && kl_random_next(&dice) % 4 != 0)
        st = give_params(o.p, &dice, &err);
    bool isolated = o.p && is_isolated(o.p);
    the_page->isolated += !st && isolated;
    if (!st)
        o.next = successor(&o, isolated);
    if (!st && isolated) {
        outside_do(t->outside, loaded, &o);
    } else if (!st) {
        loaded(&o);
        if (o.p->n_specs && !o.p->n_hooks && kl_random_next(&dice) % t->staged == 0)
            on_stage(&o);
    }
    hunt_phase("free");
    if (o.p)
        kl_program_unref(o.p);
    if (o.next)
        kl_program_unref(o.next);
    snprintf(the_page->refused, sizeof the_page->refused, "%s", st ? kl_err_message(&err) : "");
    kl_err_fini(&err);
    world_pump(t->world);
    return !st;
}
