/* replay.c - the events of a recording in their order: caches change, runs begin, are answered, and end.
 *
 * Workers are real ones that are stepped explicitly: one for each of the recording, so that a script's memory
 * belongs to the same worker. */
#include "lab/replay.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/time.h"
#include "lab/replay_impl.h"
#include "controller/outlook.h"
#include "run/params.h"

/* A generation of the recording with its params. A new one begins with fresh states, as it did then. */
typedef struct logic {
    kl_logic is; /* first */
    struct logic *next;
} logic;

typedef struct kl__crew { /* one worker of the recording */
    struct kl__part *part;
    int number;
    kl_worker *worker;
    kl_workqueue *queue;
    struct kl__crew *next;
} kl__crew;

typedef struct kl__part { /* one controller */
    kl__engine *e;
    kl_program *program;
    size_t index;
    kl_controller_spec spec; /* a copy; what it points to is the program's */
    kl_wiring *wiring;
    kl_shared *memos;
    kl__crew *crews;
    logic *logics;
} kl__part;

kl__engine *kl__engine_of(void *crew) { return ((kl__crew *)crew)->part->e; }

/* --- what a worker asks ------------------------------------------------------------------- */

static kl_logic *owner_logic(void *arg) { return (kl_logic *)kl__engine_of(arg)->wanted; }
static void owner_logic_unref(void *arg, kl_logic *l) { (void)arg, (void)l; }
static bool owner_is_current(void *arg, const kl_logic *l) { return kl__engine_of(arg)->wanted == l; }
static const kl_resource *owner_resource(void *arg, const char *kind)
{
    return kl__world_resource(kl__engine_of(arg)->world, kind);
}
static void owner_event(void *arg, const kl_news *n) { (void)arg, (void)n; }
static bool owner_turn(void *arg) { return kl__engine_of(arg)->called == arg; }
static void owner_turn_over(void *arg) { kl__engine_of(arg)->called = NULL; }

static const kl_value *owner_object(void *arg, kl_logic *l, const char *key)
{
    (void)l, (void)key;
    kl__live *live = kl__engine_of(arg)->now;
    return live ? kl_value_ref(live->past->object) : NULL;
}

static uint8_t why_of(const char *name)
{
    for (int w = KL_WHY_UNKNOWN; name && w <= KL_WHY_REQUEST; w++)
        if (!strcmp(name, kl_why_name((kl_why)w)))
            return (uint8_t)w;
    return KL_WHY_UNKNOWN;
}

/* Sets the memo from before the recording, unless the run has one that an earlier run wrote. */
static void recall(kl_run *r, const kl_value *then)
{
    const kl_value *memo = kl_run_memo(r);
    for (size_t i = 0; !memo && i < kl_value_len(then); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(then, i, &key, &n);
        (void)!kl_run_memo_set(r, key, v, NULL);
    }
    kl_value_unref(memo);
}

static void heard_began(void *arg, kl_run *r)
{
    kl__live *l = ((kl__engine *)arg)->now;
    l->run = r;
    r->attempt = l->past->attempt;
    r->term.epoch = l->past->epoch;
    snprintf(r->id, sizeof r->id, "%s", l->past->id);
    l->item = r->item;
    r->item.cause = (kl_cause){.what = kl_value_id(l->past->by), .why = why_of(l->past->why)};
    r->item.events = l->past->events;
    recall(r, l->past->memo);
}

static void heard_ended(void *arg, kl_run *r, const kl_ran *x)
{
    kl__live *l = ((kl__engine *)arg)->now;
    if (!l) /* the engine is being freed */
        return;
    r->item = l->item; /* the queue's own item */
    l->run = NULL;
    l->over = true;
    l->result = x->result;
    l->after = x->result == KL_RESULT_AFTER || x->result == KL_RESULT_RETRY ? r->outcome.after : -1;
    kl_free(l->message);
    l->message = kl_strdup(x->message);
}

/* --- workers ------------------------------------------------------------------------------ */

static kl__crew *crew_of(kl__part *p, int number, const kl_witnesses *witnesses)
{
    for (kl__crew *c = p->crews; c; c = c->next)
        if (c->number == number)
            return c;
    kl__crew *c = kl_new(kl__crew);
    *c = (kl__crew){.part = p, .number = number, .next = p->crews};
    c->queue = kl_workqueue_new(&(kl_workqueue_options){.order = KL_QUEUE_NAME, .backoff = p->spec.backoff});
    c->worker = kl_worker_new(&(kl_worker_owner){.logic = owner_logic,
                                  .logic_unref = owner_logic_unref,
                                  .is_current = owner_is_current,
                                  .object = owner_object,
                                  .resolve = kl__told_resolve,
                                  .resource = owner_resource,
                                  .event = owner_event,
                                  .turn = owner_turn,
                                  .turn_over = owner_turn_over,
                                  .wall = kl__told_wall,
                                  .believed = kl__told_believed,
                                  .arg = c,
                                  .name = p->spec.name,
                                  .queue = c->queue,
                                  .door = p->e->door,
                                  .commons = p->e->commons,
                                  .memos = p->memos,
                                  .clock = p->e->clock,
                                  .witnesses = witnesses},
        number);
    p->crews = c;
    return c;
}

static const kl_logic *logic_of(kl__part *p, const kl_past_run *r)
{
    const kl_value *params = kl_params_as_given(&p->spec, r->params ? r->params : p->spec.params);
    for (logic *l = p->logics; l; l = l->next)
        if (l->is.generation == r->generation && kl_value_equal(l->is.params, params)) {
            kl_value_unref(params);
            return &l->is;
        }
    logic *l = kl_new(logic);
    l->is = *kl_wiring_logic(p->wiring);
    l->is.spec = &p->spec;
    l->is.generation = r->generation;
    l->is.params = params;
    l->next = p->logics;
    p->logics = l;
    return &l->is;
}

static void crews_free(kl__part *p)
{
    for (kl__crew *c = p->crews, *next; c; c = next) {
        next = c->next;
        kl_worker_drain(c->worker);
        kl_worker_abort(c->worker);
        kl_worker_join(c->worker);
        kl_workqueue_free(c->queue);
        kl_free(c);
    }
    for (logic *l = p->logics, *next; l; l = next) {
        next = l->next;
        kl_value_unref(l->is.params);
        kl_free(l);
    }
}

static void step(kl__live *l)
{
    l->e->now = l;
    (void)kl_worker_step(l->worker->worker);
    while (l->ready && !l->over) {
        kl__give_answer(l);
        (void)kl_worker_step(l->worker->worker);
    }
    l->e->now = NULL;
}

/* The requeue of an ended run is ignored: the recording decides when the key runs again. */
static void empty(kl__crew *c, kl_time now)
{
    kl_queue_item item;
    while (kl_workqueue_try_get(c->queue, now, &item))
        kl_workqueue_finish(c->queue, &item, now);
}

static void begin(kl__live *l)
{
    kl__engine *e = l->e;
    kl_time now = kl_clock_now(e->clock);
    empty(l->worker, now);
    kl_workqueue_add(l->worker->queue, l->past->key, now);
    e->wanted = logic_of(l->worker->part, l->past);
    e->called = l->worker;
    step(l);
    e->called = NULL;
    if (l->run || l->over)
        return;
    l->over = true; /* its state could not be opened: the log says why */
    l->result = KL_RESULT_ERROR;
    l->after = -1;
    l->message = kl_strdup("the script could not be opened");
}

/* The run waits for an answer that never came. The recorded run was aborted, so this one is, too. */
static void cut_short(kl__live *l)
{
    l->e->now = l;
    kl_heap_remove(&l->run->w->due, &l->run->wait.deadline);
    kl_heap_push(&l->run->w->due, &l->run->wait.deadline, kl_clock_now(l->e->clock));
    (void)kl_worker_step(l->worker->worker);
    l->e->now = NULL;
}

/* --- events ------------------------------------------------------------------------------- */

static kl__part *part_of(kl__engine *e, const char *controller)
{
    for (size_t i = 0; i < e->n_parts; i++)
        if (!strcmp(e->parts[i].spec.name, controller))
            return &e->parts[i];
    return NULL;
}

static void on_began(kl__engine *e, kl_past_run *p, const kl_witnesses *witnesses)
{
    kl__part *part = part_of(e, p->controller);
    if (!part) {
        e->sum->others++;
        return;
    }
    kl__live *l = kl_new(kl__live);
    *l = (kl__live){.e = e,
        .past = p,
        .worker = crew_of(part, p->worker, witnesses),
        .overlay = kl_overlay_new(),
        .used = kl_new_array(bool, p->n_asked + 1),
        .after = -1};
    l->late = e->o->until && p->at > e->o->until;
    e->wanted_live += !l->late;
    kl_map_set(e->live, p->id, l);
    kl_listwatch_pump(kl__world_listwatch(e->world));
    begin(l);
}

static void on_answered(kl__engine *e, const kl_past_event *x)
{
    kl__live *l = kl_map_get(e->live, x->run->id);
    if (!l || l->over || l->waits == KL__WAITS_NOT || l->match != x->n)
        return;
    l->ready = true;
    step(l);
}

static void settle(kl__engine *e, kl__live *l)
{
    if (!l->over && l->waits != KL__WAITS_NOT) { /* an answer came before this run's request */
        const kl_past_asked *q = l->match == KL__NO_MATCH ? NULL : &l->past->asked[l->match];
        if (q && q->answered) {
            l->ready = true;
            step(l);
        }
    }
    if (!l->over)
        cut_short(l);
    kl_map_take(e->live, l->past->id);
    e->wanted_live -= !l->late;
    kl__compare(l);
    kl__live_free(l);
}

static void on_event(kl__engine *e, const kl_past_event *x, const kl_witnesses *witnesses)
{
    if (x->at)
        kl_clock_set_wall(e->clock, x->at);
    switch (x->what) {
    case KL_PAST_BEGAN: on_began(e, x->run, witnesses); break;
    case KL_PAST_ANSWERED: on_answered(e, x); break;
    case KL_PAST_ENDED: {
        kl__live *l = kl_map_get(e->live, x->run->id);
        if (l)
            settle(e, l);
        break;
    }
    default: kl__world_event(e->world, x);
    }
}

/* Settles the runs that the recording does not finish. */
static void end_rest(kl__engine *e)
{
    char **ids = kl_map_sorted_keys(e->live);
    for (char **id = ids; *id; id++)
        settle(e, kl_map_get(e->live, *id));
    kl_free(ids);
}

/* --- life --------------------------------------------------------------------------------- */

static bool recorded(const kl_past *p, const char *controller)
{
    for (size_t i = 0; i < p->n_runs; i++)
        if (!strcmp(p->runs[i]->controller, controller))
            return true;
    return false;
}

static void take_program(kl__engine *e, kl_program *p)
{
    for (size_t i = 0; i < p->n_specs; i++) {
        const kl_controller_spec *s = kl_program_spec(p, i);
        if (!recorded(e->o->past, s->name))
            continue;
        e->parts = kl_realloc(e->parts, (e->n_parts + 1) * sizeof *e->parts);
        kl__part *part = &e->parts[e->n_parts++];
        *part = (kl__part){.e = e, .program = p, .index = i, .spec = *s, .memos = kl_memos_new(s->name)};
        part->spec.concurrency = 1 << 30; /* the recording decides which runs overlap */
        part->spec.serial = (kl_text_of){0};
    }
}

static kl_status no_part(const kl__engine *e, kl_err *err)
{
    const kl_past *p = e->o->past;
    kl_buf were = KL_BUF_INIT, are = KL_BUF_INIT;
    for (size_t i = 0; i < p->n_runs; i++) {
        bool told = false;
        for (size_t k = 0; k < i && !told; k++)
            told = !strcmp(p->runs[k]->controller, p->runs[i]->controller);
        if (!told)
            kl_buf_printf(&were, "%s%s", were.len ? ", " : "", p->runs[i]->controller);
        if (i > 10000)
            break;
    }
    for (size_t i = 0; i < e->o->n_programs; i++)
        for (size_t k = 0; k < e->o->programs[i]->n_specs; k++)
            kl_buf_printf(&are, "%s%s", are.len ? ", " : "", kl_program_spec(e->o->programs[i], k)->name);
    kl_status st = p->n_runs
        ? kl_fail(err, KL_EINVAL,
            "the recording is of other controllers: it has runs of %s, but the script has %s",
            kl_buf_str(&were), kl_buf_str(&are))
        : kl_fail(err, KL_EINVAL, "the recording has no runs: nothing reconciled while it was made");
    kl_buf_fini(&were);
    kl_buf_fini(&are);
    return st;
}

static kl_status wire(kl__engine *e, kl__part *p, kl_err *err)
{
    p->wiring = kl_wiring_new(
        &(kl_wiring_options){.caches = kl_listwatch_caches(kl__world_listwatch(e->world)),
            .loop = kl_listwatch_loop(kl__world_listwatch(e->world)),
            .mapper = kl_listwatch_mapper(kl__world_listwatch(e->world)),
            .clock = e->clock,
            .program = p->program,
            .index = p->index,
            .generation = 1,
            .front = {kl__told_get, kl__told_list, e}});
    for (int i = 0; i < 4; i++) { /* in turn: caches, their objects, and functions' indexes */
        kl_listwatch_pump(kl__world_listwatch(e->world));
        if (kl_wiring_advance(p->wiring))
            return KL_OK;
    }
    bool parked;
    char *why = kl_wiring_why(p->wiring, &parked);
    kl_status st = kl_fail(err, KL_ESCRIPT, "%s cannot be replayed: %s", p->spec.name,
        why ? why : "its indexes cannot be built");
    kl_free(why);
    return st;
}

static void note(kl_replay_sum *s, char *text)
{
    s->notes = kl_realloc(s->notes, (s->n_notes + 1) * sizeof *s->notes);
    s->notes[s->n_notes++] = text;
}

static void take_notes(kl__engine *e)
{
    const kl_past *p = e->o->past;
    kl_replay_sum *s = e->sum;
    size_t n, generations = 1;
    char **missing = kl__world_missing(e->world, &n);
    for (size_t i = 0; i < n; i++) {
        note(s, kl_sprintf("no %s was recorded: reads of it find nothing", missing[i]));
        kl_free(missing[i]);
    }
    kl_free(missing);
    if (p->first_file > 1)
        note(s,
            kl_strdup("the start of the recording is no longer in these files: the values of variables and "
                      "kube.shared at that time are unknown"));
    if (p->headless)
        note(s, kl_sprintf("skipped runs that began before that: %zu", p->headless));
    if (p->torn)
        note(s, kl_strdup("the last line is incomplete: the process ended while writing it"));
    for (size_t i = 0; i < p->n_runs; i++)
        generations = (size_t)p->runs[i]->generation > generations ? (size_t)p->runs[i]->generation
                                                                   : generations;
    if (generations > 1)
        note(s,
            kl_sprintf("%zu generations of the script ran one after the other; all runs are replayed with "
                       "this one",
                generations));
    if (s->others)
        note(s, kl_sprintf("skipped runs of other controllers: %zu", s->others));
}

static kl_status play(kl__engine *e, kl_err *err)
{
    const kl_past *p = e->o->past;
    kl_witnesses witnesses = {0};
    kl_witnesses_add(&witnesses,
        &(kl_witness){.began = heard_began, .asked = kl__heard_asked, .ended = heard_ended, .arg = e});
    size_t i = 0;
    while (i < p->n_events && p->events[i].what != KL_PAST_BEGAN)
        kl__world_event(e->world, &p->events[i++]);
    kl_status st = KL_OK;
    for (size_t k = 0; k < e->n_parts && !st; k++)
        st = wire(e, &e->parts[k], err);
    for (; i < p->n_events && !st; i++) {
        const kl_past_event *x = &p->events[i];
        if (e->o->until && x->at > e->o->until && !e->wanted_live)
            break;
        on_event(e, x, &witnesses);
    }
    end_rest(e);
    if (!st)
        take_notes(e);
    for (size_t k = 0; k < e->n_parts; k++) {
        crews_free(&e->parts[k]);
        if (e->parts[k].wiring)
            kl_wiring_retire(e->parts[k].wiring);
    }
    return st;
}

kl_status kl_replay(const kl_replay_options *o, kl_replay_sum *out, kl_err *err)
{
    *out = (kl_replay_sum){.span = o->past->ended - o->past->began};
    kl__engine e = {.o = o, .sum = out, .live = kl_map_new()};
    kl_time from = kl_clock_now(kl_clock_real());
    for (size_t i = 0; i < o->n_programs; i++)
        take_program(&e, o->programs[i]);
    if (!e.n_parts) {
        kl_map_free(e.live, NULL);
        return no_part(&e, err);
    }
    e.clock = kl_clock_fake_new(KL_TURNS_EPOCH, o->past->began);
    e.world = kl__world_new(o->past, e.clock);
    e.door = kl_door_new(
        &(kl_door_options){.send = kl__take_call, .cancel = kl__drop_call, .send_arg = &e, .clock = e.clock});
    e.commons = kl_commons_new();
    kl_status st = play(&e, err);
    kl__world_free(e.world);
    kl_door_free(e.door);
    kl_clock_fake_free(e.clock);
    kl_map_free(e.live, NULL);
    for (size_t i = 0; i < e.n_parts; i++)
        kl_shared_free(e.parts[i].memos);
    kl_commons_free(e.commons);
    kl_free(e.parts);
    out->took = kl_clock_now(kl_clock_real()) - from;
    if (st)
        kl_replay_sum_fini(out);
    return st;
}

void kl_replay_sum_fini(kl_replay_sum *s)
{
    for (size_t i = 0; i < s->n_notes; i++)
        kl_free(s->notes[i]);
    kl_free(s->notes);
    s->notes = NULL;
    s->n_notes = 0;
}
