/* manager.c - the order of start and stop. The brain runs on one loop ("control"); the mapper loop runs scripts' functions.
 *
 * A slot is one source (a script) and its controllers. Any news - a cache synced, a kind appeared, the lease changed hands -
 * ends in advance(), which lets every controller take its next step. */
#include "run/manager.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/watchdog.h"
#include "run/controller.h"
#include "run/dryrun.h"
#include "run/endpoints.h"
#include "run/flight.h"
#include "run/office.h"
#include "run/record.h"
#include "run/recorder.h"
#include "run/shadow.h"
#include "run/tally.h"
#include "run/telemetry.h"
#include "run/turns.h"
#include "run/webhooks.h"

#define GRACE_DEFAULT KL_SECONDS(30)       /* controller-runtime manager/internal.go:57 */
#define MAX_OBJECT_DEFAULT ((size_t)16 << 20)
/* Events are flushed at the end for at most this long. */
#define FLUSH_MAX KL_SECONDS(2)
/* Requests to webhooks may end for at most this long; each has a deadline of its own, of 30 s at most. */
#define WEBHOOKS_MAX KL_SECONDS(30)

typedef struct slot {
    kl_program *program;                   /* the newest that was taken */
    int generation;
    kl_controller **controllers;
    size_t n;
} slot;

/* A controller that the newest generation of its script does not have. It runs on while the one of its name that follows it, for
 * another resource, is not there yet; then, or at once, it drains, and is freed when its last run has ended. */
typedef struct retiree {
    kl_controller *c, *successor;          /* successor NULL: drained */
    slot *slot;
} retiree;

struct kl_manager {
    kl_manager_options o;
    kl_clock *clock;
    kl_loop *loop, *mapper;
    kl_caches *caches;
    kl_metrics *metrics;
    kl_door *door;
    kl_recorder *recorder;
    kl_shadow *shadow;
    slot *shadowed;                        /* loop only: whose candidate it follows with */
    kl_dryrun *dryrun;                     /* NULL: it writes */
    kl_offices *offices;
    kl_endpoints *endpoints;
    kl_webhooks *webhooks;
    kl_reloads *reloads;
    kl_commons *commons;
    kl_tally *tally;
    kl_flight *flight;
    kl_witnesses witnesses;
    kl_controller_env env;
    /* changed on the loop under mu, read on the loop freely and elsewhere under mu: */
    kl_mutex mu;
    slot **slots;
    size_t n_slots;
    retiree *retired;
    size_t n_retired;
    uint64_t stop_timer;                   /* loop only */
    bool started, stopping;
    char **webhook_texts;                  /* of o.webhooks */
    char *ns, *lease, *metrics_address, *health_address, *metrics_cert_dir;       /* what o borrowed: a script that named the lease is freed by a reload */
};

/* --- what the parts ask of the manager --------------------------------------------------------------------------------- */

static uint64_t client_send(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    return kl_client_do(arg, op, done, done_arg);
}

static void client_cancel(void *arg, uint64_t id)
{
    kl_client_cancel(arg, id);
}

static void on_request(void *arg, const char *method, const char *host, int code, kl_time took)
{
    kl_metrics_request(arg, method, host, code, took);
}

static void on_retry(void *arg, const char *method, const char *host, int code)
{
    kl_metrics_retry(arg, method, host, code);
}

static void on_sizes(void *arg, const char *method, const char *host, size_t sent, size_t received)
{
    kl_metrics_sizes(arg, method, host, sent, received);
}

static void on_delayed(void *arg, const char *method, const char *host, kl_time waited)
{
    kl_metrics_delay(arg, method, host, waited);
}

static void on_lookup(void *arg, const char *name, kl_time took)
{
    kl_metrics_lookup(arg, name, took);
}

static void record(void *arg, const kl_news *n)
{
    kl_manager *m = arg;
    if (m->dryrun)
        kl_dryrun_event(m->dryrun, n);
    else
        kl_recorder_event(m->recorder, n);
}

/* Whose newest program has a controller, or a webhook, of that name. */
static bool has(const slot *s, const char *name)
{
    for (size_t i = 0; i < s->program->n_specs; i++)
        if (!strcmp(s->program->specs[i].name, name))
            return true;
    for (size_t i = 0; i < s->program->n_hooks; i++)
        if (!strcmp(s->program->hooks[i].as.name, name))
            return true;
    return false;
}

static void broken(void *arg, const char *controller, int generation, const char *why)
{
    kl_manager *m = arg;
    for (size_t i = 0; i < m->n_slots && !m->stopping; i++)
        if (m->slots[i]->generation == generation && has(m->slots[i], controller)) {
            m->o.broken(m->o.broken_arg, (int)i, generation, controller, why);
            return;
        }
}

static void retired_free(kl_controller *c)
{
    kl_controller_join(c);
    kl_controller_free(c);
}

static void retiree_drain(retiree *r)
{
    kl_info("the new generation has no such controller; it stops", "controller=%s resource=%s", kl_controller_name(r->c), kl_controller_resource(r->c));
    r->successor = NULL;
    kl_controller_drain(r->c);
}

static void advance_retired(kl_manager *m)
{
    for (size_t i = 0; i < m->n_retired;) {
        retiree *r = &m->retired[i];
        if (r->successor && kl_controller_published(r->successor))
            retiree_drain(r);
        if (r->successor || !kl_controller_ended(r->c)) {
            i++;
            continue;
        }
        kl_controller *c = r->c;
        kl_lock(&m->mu);
        *r = m->retired[--m->n_retired];
        kl_unlock(&m->mu);
        retired_free(c);
    }
}

static void each_controller(kl_manager *m, void (*fn)(kl_controller *c))
{
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            fn(m->slots[i]->controllers[k]);
    for (size_t i = 0; i < m->n_retired; i++)
        fn(m->retired[i].c);
}

static void advance(void *arg)
{
    kl_manager *m = arg;
    if (!m->started)
        return;
    if (!m->stopping)
        kl_shadow_advance(m->shadow);      /* before those that it follows, so that it misses nothing where the caches are the same */
    each_controller(m, kl_controller_advance);
    if (m->stopping)               /* who waits for workers to end knows who they are */
        return;
    advance_retired(m);
    kl_webhooks_advance(m->webhooks);
    if (m->o.changed)
        m->o.changed(m->o.changed_arg);
}

/* --- birth and death --------------------------------------------------------------------------------------------------------- */

/* Copies the texts of w into itself; the list of them is the caller's. */
static char **webhook_texts(kl_webhook_options *w)
{
    const char **texts[] = {&w->listen, &w->cert_dir, &w->url, &w->service, &w->secret};
    char **copies = kl_new_array(char *, sizeof texts / sizeof *texts + 1);
    size_t n = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i])
            *texts[i] = copies[n++] = kl_strdup(*texts[i]);
    return copies;
}

static void begin_dry(kl_manager *m)
{
    m->dryrun = kl_dryrun_new(m->o.dry_run == KL_DRY_SERVER);
    m->o.election.enabled = m->o.election.per_controller = m->o.election.shards = false;
    m->o.webhooks.url = m->o.webhooks.service = m->o.webhooks.secret = NULL;
}

kl_status kl_manager_new(const kl_manager_options *o, kl_manager **out, kl_err *err)
{
    kl_manager *m = kl_new(kl_manager);
    m->o = *o;
    m->clock = o->clock ? o->clock : kl_clock_real();
    m->o.ns = m->ns = kl_strdup(o->ns);
    m->o.election.name = m->lease = kl_strdup(o->election.name);
    m->o.metrics_address = m->metrics_address = kl_strdup(o->metrics_address);
    m->o.health_address = m->health_address = kl_strdup(o->health_address);
    m->o.metrics_cert_dir = m->metrics_cert_dir = kl_strdup(o->metrics_cert_dir);
    kl_mutex_init(&m->mu);
    m->metrics = kl_metrics_new();
    if (o->dry_run)
        begin_dry(m);
    m->reloads = kl_reloads_new();
    m->commons = kl_commons_new();
    m->tally = kl_tally_new();
    m->flight = o->flight_bytes == KL_FLIGHT_OFF ? NULL : kl_flight_new(o->flight_bytes ? o->flight_bytes : KL_FLIGHT_BYTES, m->clock);
    m->loop = kl_loop_new("kl-control", m->clock);
    m->mapper = kl_loop_new("kl-mapper", m->clock);
    m->door = kl_door_new(&(kl_door_options){.send = client_send, .cancel = client_cancel, .send_arg = o->client, .clock = m->clock, .shut = o->dry_run,
        .seen = o->seen, .seen_arg = o->seen_arg});
    m->recorder = kl_recorder_new(m->door, m->clock, m->loop);
    m->caches = kl_caches_new(&(kl_caches_options){.client = o->client, .clock = o->watch_clock ? o->watch_clock : m->clock, .loop = m->loop, .mapper = m->mapper, .ns = m->ns,
        .max_object = o->max_object ? o->max_object : MAX_OBJECT_DEFAULT, .drop_managed_fields = o->drop_managed_fields, .stream = o->watch_list, .watch_kinds = true, .changed = advance, .changed_arg = m,
        .begun = o->record ? kl_record_cache_begun : NULL, .ended = o->record ? kl_record_cache_ended : NULL, .begun_arg = o->record});
    m->env = (kl_controller_env){.client = o->client, .clock = m->clock, .loop = m->loop, .mapper = m->mapper, .caches = m->caches, .door = m->door, .fleet = o->fleet, .cluster = o->cluster,
        .metrics = m->metrics, .workers = o->workers, .workers_forced = o->workers_forced, .trace_requests = o->trace_requests, .reload_keys = o->reload_keys, .reload_deadline = o->reload_deadline, .event = record, .event_arg = m, .turns = o->turns,
        .commons = m->commons, .imagine = kl_dryrun_imagination(m->dryrun), .witnesses = &m->witnesses, .flight = m->flight, .ran = o->ran, .ran_arg = o->seen_arg, .changed = advance,
        .never_slow_down = o->never_slow_down, .rollback_window = o->rollback_window, .broken = o->broken ? broken : NULL, .broken_arg = m,
        .changed_arg = m};
    if (m->flight) {
        kl_witness flight = kl_flight_witness(m->flight);
        kl_witnesses_add(&m->witnesses, &flight);
    }
    m->shadow = kl_shadow_new(&m->env);
    kl_witness shadow = kl_shadow_witness(m->shadow);
    kl_witnesses_add(&m->witnesses, &shadow);
    kl_witness tally = kl_tally_witness(m->tally);
    kl_witnesses_add(&m->witnesses, &tally);
    for (size_t i = 0; i < o->n_witnesses; i++)
        kl_witnesses_add(&m->witnesses, &o->witnesses[i]);
    if (o->record)
        kl_witnesses_add(&m->witnesses, kl_record_witness(o->record));
    m->webhook_texts = webhook_texts(&m->o.webhooks);
    m->webhooks = kl_webhooks_new(&m->env, &m->o.webhooks);
    kl_client_set_hooks(o->client, &(kl_client_hooks){.arg = m->metrics, .on_request = on_request, .on_retry = on_retry, .on_delayed = on_delayed, .on_sizes = on_sizes, .on_lookup = on_lookup});
    kl_loop_start(m->loop);
    kl_loop_start(m->mapper);
    kl_status st = kl_offices_new(&(kl_offices_env){.election = {.loop = m->loop, .client = o->client, .clock = m->clock, .metrics = m->metrics, .options = m->o.election},
        .changed = advance, .arg = m}, &m->offices, err);
    if (st) {
        kl_manager_free(m);
        return st;
    }
    m->env.offices = m->offices;
    if (o->fleet)
        kl_fleet_join(o->fleet, o->cluster, m, m->door);
    *out = m;
    return KL_OK;
}

static void retire_all(void *arg)
{
    kl_manager *m = arg;
    kl_webhooks_end(m->webhooks);
    kl_shadow_free(m->shadow);
    for (size_t i = 0; i < m->n_slots; i++) {
        for (size_t k = 0; k < m->slots[i]->n; k++)
            retired_free(m->slots[i]->controllers[k]);
        kl_program_unref(m->slots[i]->program);
        kl_free(m->slots[i]->controllers);
        kl_free(m->slots[i]);
    }
    for (size_t i = 0; i < m->n_retired; i++)
        retired_free(m->retired[i].c);
    m->n_slots = m->n_retired = 0;
}

static void begin_stop(void *arg)
{
    kl_manager *m = arg;
    kl_lock(&m->mu);
    m->stopping = true;
    kl_unlock(&m->mu);
    each_controller(m, kl_controller_drain);
    kl_shadow_end(m->shadow);
}

static void end_runs(void *arg)
{
    kl_manager *m = arg;
    each_controller(m, kl_controller_abort);
}

static void abort_all(void *arg)
{
    kl_manager *m = arg;
    kl_warn("the grace period is over; ending what still runs", "grace_seconds=%lld", (long long)((m->o.grace ? m->o.grace : GRACE_DEFAULT) / KL_SECONDS(1)));
    end_runs(m);
}

/* So much longer a run may take to notice that it was ended. */
#define NOTICE KL_SECONDS(5)

static void tell_stuck(void *arg)
{
    kl_manager *m = arg;
    m->stop_timer = 0;
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++) {
            kl_workqueue_stats q;
            kl_workqueue_stats_get(kl_controller_queue(m->slots[i]->controllers[k]), kl_clock_now(m->clock), &q);
            if (q.running)
                kl_error("a run does not come back: its code neither returns nor calls", "controller=%s running=%zu", kl_controller_name(m->slots[i]->controllers[k]), q.running);
        }
    if (m->o.stuck)
        m->o.stuck(m->o.changed_arg);
}

static void grace_over(void *arg)
{
    kl_manager *m = arg;
    abort_all(m);
    m->stop_timer = kl_loop_timer(m->loop, NOTICE, tell_stuck, m);
}

static void arm_grace(void *arg)
{
    kl_manager *m = arg;
    m->stop_timer = kl_loop_timer(m->loop, m->o.grace ? m->o.grace : GRACE_DEFAULT, grace_over, m);
}

static void disarm_grace(void *arg)
{
    kl_manager *m = arg;
    kl_loop_timer_cancel(m->loop, m->stop_timer);
    m->stop_timer = 0;
}

void kl_manager_stop(kl_manager *m)
{
    if (m->stopping)
        return;
    kl_loop_call(m->loop, begin_stop, m);
    if (m->o.turns)
        kl_loop_call(m->loop, end_runs, m);        /* time stands: who sleeps would not wake */
    kl_loop_call(m->loop, arm_grace, m);
    for (size_t i = 0; i < m->n_slots; i++)            /* nobody changes the slots while stopping */
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_controller_wait(m->slots[i]->controllers[k]);
    for (size_t i = 0; i < m->n_retired; i++)
        kl_controller_wait(m->retired[i].c);
    kl_shadow_wait(m->shadow);
    kl_loop_call(m->loop, disarm_grace, m);
    if (!kl_recorder_flush(m->recorder, kl_clock_now(kl_clock_real()) + FLUSH_MAX))
        kl_warn("some events were not recorded before the end", "dropped=%llu", (unsigned long long)kl_recorder_dropped(m->recorder));
    kl_offices_close(m->offices);
    kl_webhooks_stop(m->webhooks, kl_clock_now(kl_clock_real()) + WEBHOOKS_MAX);
    kl_endpoints_stop(m->endpoints);
    m->endpoints = NULL;
}

void kl_manager_free(kl_manager *m)
{
    if (!m)
        return;
    kl_manager_stop(m);
    kl_loop_call(m->loop, retire_all, m);
    kl_caches_free(m->caches);
    kl_recorder_free(m->recorder);         /* its last requests ask the door, which asks the tenures */
    kl_offices_free(m->offices);
    kl_client_set_hooks(m->o.client, NULL);
    kl_loop_free(m->loop);         /* runs the last posts, which may post to the mapper */
    kl_loop_free(m->mapper);
    kl_door_free(m->door);
    kl_dryrun_free(m->dryrun);
    kl_metrics_free(m->metrics);
    kl_reloads_free(m->reloads);
    kl_commons_free(m->commons);
    kl_tally_free(m->tally);
    kl_flight_free(m->flight);
    kl_mutex_fini(&m->mu);
    kl_free(m->retired);
    kl_free(m->slots);
    kl_free(m->ns);
    kl_free(m->lease);
    kl_free(m->metrics_address);
    kl_free(m->health_address);
    kl_webhooks_free(m->webhooks);
    for (char **t = m->webhook_texts; t && *t; t++)
        kl_free(*t);
    kl_free(m->webhook_texts);
    kl_free(m->metrics_cert_dir);
    kl_free(m);
}

/* --- programs ------------------------------------------------------------------------------------------------------------------- */

static kl_controller *find(kl_manager *m, const char *name, const slot *except)
{
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; m->slots[i] != except && k < m->slots[i]->n; k++)
            if (!strcmp(kl_controller_name(m->slots[i]->controllers[k]), name))
                return m->slots[i]->controllers[k];
    return NULL;
}

typedef struct change {
    kl_manager *m;
    slot *slot;                    /* NULL: a new one */
    kl_program *program;
    kl_status status;
    kl_err *err;
    int number;
} change;

static kl_controller *take_old(kl_manager *m, slot *s, const kl_controller_spec *spec)
{
    for (size_t i = 0; i < m->n_retired; i++) {        /* back to what was, before the other resource was there */
        kl_controller *c = m->retired[i].c;
        if (m->retired[i].slot == s && m->retired[i].successor && !strcmp(kl_controller_name(c), spec->name)
            && !strcmp(kl_controller_resource(c), spec->resource)) {
            kl_lock(&m->mu);
            m->retired[i] = m->retired[--m->n_retired];
            kl_unlock(&m->mu);
            return c;
        }
    }
    for (size_t k = 0; k < s->n; k++) {
        kl_controller *c = s->controllers[k];
        if (c && !strcmp(kl_controller_name(c), spec->name) && !strcmp(kl_controller_resource(c), spec->resource)) {
            s->controllers[k] = NULL;
            return c;
        }
    }
    return NULL;
}

/* Those that the new generation does not have any more. Under m->mu. */
static void retire_rest(kl_manager *m, slot *s, kl_controller **fresh, size_t n)
{
    for (size_t k = 0; k < s->n; k++) {
        kl_controller *c = s->controllers[k], *successor = NULL;
        if (!c)
            continue;
        for (size_t i = 0; i < n; i++)
            if (!strcmp(kl_controller_name(fresh[i]), kl_controller_name(c)))
                successor = fresh[i];
        for (size_t i = 0; i < m->n_retired; i++)      /* who waited for c waits for the next one */
            if (m->retired[i].successor == c && successor)
                m->retired[i].successor = successor;
            else if (m->retired[i].successor == c)
                retiree_drain(&m->retired[i]);
        m->retired = kl_realloc(m->retired, (m->n_retired + 1) * sizeof *m->retired);
        retiree *r = &m->retired[m->n_retired++];
        *r = (retiree){.c = c, .successor = successor, .slot = s};
        if (!successor || !kl_controller_published(c))
            retiree_drain(r);
    }
}

/* A process of one namespace has no caches of others. */
static kl_status check_namespaces(const kl_manager *m, const kl_program *p, const kl_controller_spec *s, kl_err *err)
{
    for (char **ns = m->o.ns ? s->namespaces : NULL; ns && *ns; ns++)
        if (strcmp(*ns, m->o.ns))
            return kl_fail(err, KL_EINVAL, "%s: controller %s wants namespace %s, and this process sees only %s (--namespace): run it without --namespace, "
                "or take %s out of its namespaces", p->name, s->name, *ns, m->o.ns, *ns);
    return KL_OK;
}

static void apply_change(void *arg)
{
    change *ch = arg;
    kl_manager *m = ch->m;
    kl_program *p = ch->program;
    if (m->stopping) {
        ch->status = kl_fail(ch->err, KL_ECANCELLED, "the manager is stopping");
        return;
    }
    for (size_t i = 0; i < p->n_specs; i++)
        if (find(m, p->specs[i].name, ch->slot)) {
            ch->status = kl_fail(ch->err, KL_EEXISTS, "%s: another script has a controller named %s: names are unique, they are field managers and metric labels",
                p->name, p->specs[i].name);
            return;
        }
    for (size_t i = 0; i < p->n_specs; i++)
        if ((ch->status = check_namespaces(m, p, &p->specs[i], ch->err)))
            return;
    slot *s = ch->slot ? ch->slot : kl_new(slot);
    if ((ch->status = kl_webhooks_check(m->webhooks, s, p, ch->err))) {
        if (!ch->slot)
            kl_free(s);
        return;
    }
    kl_controller **fresh = kl_new_array(kl_controller *, p->n_specs + 1);
    p->generation = s->generation + 1;
    for (size_t i = 0; i < p->n_specs; i++) {
        fresh[i] = take_old(m, s, &p->specs[i]);
        if (!fresh[i])
            fresh[i] = kl_controller_new(&m->env, &p->specs[i]);
        kl_controller_stage(fresh[i], p, i, p->generation);
    }
    kl_lock(&m->mu);
    retire_rest(m, s, fresh, p->n_specs);
    kl_program_unref(s->program);
    kl_free(s->controllers);
    s->program = kl_program_ref(p);
    s->generation = p->generation;
    s->controllers = fresh;
    s->n = p->n_specs;
    if (!ch->slot) {
        m->slots = kl_realloc(m->slots, (m->n_slots + 1) * sizeof *m->slots);
        m->slots[ch->number = (int)m->n_slots++] = s;
    }
    kl_unlock(&m->mu);
    kl_webhooks_take(m->webhooks, s, p, p->generation);
    kl_err err = KL_ERR_INIT;
    if (m->started && kl_webhooks_listen(m->webhooks, &err))
        kl_error("webhooks are not served", "script=%s error=%s", p->name, kl_log_quoted(kl_err_message(&err)));
    kl_err_fini(&err);
    advance(m);
}

kl_status kl_manager_add(kl_manager *m, kl_program *p, int *slot_number, kl_err *err)
{
    change ch = {.m = m, .program = p, .err = err};
    kl_loop_call(m->loop, apply_change, &ch);
    if (!ch.status && slot_number)
        *slot_number = ch.number;
    return ch.status;
}

kl_status kl_manager_replace(kl_manager *m, int slot_number, kl_program *p, kl_err *err)
{
    if (slot_number < 0 || (size_t)slot_number >= m->n_slots)
        return kl_fail(err, KL_EINVAL, "there is no slot %d", slot_number);
    change ch = {.m = m, .slot = m->slots[slot_number], .program = p, .err = err};
    kl_loop_call(m->loop, apply_change, &ch);
    return ch.status;
}

kl_reloads *kl_manager_reloads(kl_manager *m) { return m->reloads; }
kl_flight *kl_manager_flight(kl_manager *m) { return m->flight; }
kl_tally *kl_manager_tally(kl_manager *m) { return m->tally; }
kl_metrics *kl_manager_figures(kl_manager *m) { return m->metrics; }

/* Reason and type of its Event. */
static const struct { const char *type, *reason; } RELOAD_NEWS[] = {
    [KL_RELOAD_TAKEN] = {"Normal", "Reloaded"},
    [KL_RELOAD_REFUSED] = {"Warning", "ReloadRefused"},
    [KL_RELOAD_ROLLED_BACK] = {"Warning", "RolledBack"},
    [KL_RELOAD_WITHDRAWN] = {"Normal", "ReloadWithdrawn"},
};

void kl_manager_reloaded(kl_manager *m, const kl_reload *x, const kl_value *about)
{
    kl_reloads_note(m->reloads, x, kl_clock_wall(m->clock));
    if (!about)
        return;
    char *note = kl_sprintf("%s, generation %d%s%s", x->script, x->generation, x->message ? ": " : "", x->message ? x->message : "");
    record(m, &(kl_news){.component = "kubelua", .about = about, .type = RELOAD_NEWS[x->result].type, .reason = RELOAD_NEWS[x->result].reason,
        .action = "Reload", .note = note});
    kl_free(note);
}

/* --- the shadow ------------------------------------------------------------------------------------------------------------------ */

typedef struct shadow_call {
    kl_manager *m;
    kl_program *program;
    const kl_shadow_options *o;
    kl_status status;
    kl_err *err;
    int slot;
} shadow_call;

/* The slot of which a candidate has a controller, and the first of its controllers that has one. */
static slot *slot_like(kl_manager *m, const kl_program *p)
{
    for (size_t k = 0; k < p->n_specs; k++)
        for (size_t i = 0; i < m->n_slots; i++)
            for (size_t n = 0; n < m->slots[i]->n; n++)
                if (!strcmp(kl_controller_name(m->slots[i]->controllers[n]), p->specs[k].name))
                    return m->slots[i];
    return NULL;
}

static kl_status no_slot(kl_manager *m, const kl_program *p, kl_err *err)
{
    kl_buf have = KL_BUF_INIT;
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t n = 0; n < m->slots[i]->n; n++)
            kl_buf_printf(&have, "%s%s", have.len ? ", " : "", kl_controller_name(m->slots[i]->controllers[n]));
    kl_status st = kl_fail(err, KL_EINVAL, "%s has no controller that runs here: its first is %s, and here run %s; a candidate runs in the shadow of the controllers of the same names",
        p->name, p->n_specs ? p->specs[0].name : "none", have.len ? kl_buf_str(&have) : "none");
    kl_buf_fini(&have);
    return st;
}

static void begin_shadow(void *arg)
{
    shadow_call *c = arg;
    kl_manager *m = c->m;
    slot *s = slot_like(m, c->program);
    if (m->stopping)
        c->status = kl_fail(c->err, KL_ECANCELLED, "the manager is stopping");
    else if (!s)
        c->status = no_slot(m, c->program, c->err);
    for (size_t i = 0; !c->status && i < c->program->n_specs; i++)
        c->status = check_namespaces(m, c->program, &c->program->specs[i], c->err);
    if (c->status)
        return;
    const char **live = kl_new_array(const char *, s->n + 1);
    for (size_t i = 0; i < s->n; i++)
        live[i] = kl_controller_name(s->controllers[i]);
    kl_shadow_options o = *c->o;
    o.live = live;
    o.script = s->program->name;
    c->program->generation = s->generation + 1;
    m->shadowed = s;
    kl_shadow_begin(m->shadow, c->program, &o);
    kl_free(live);
    advance(m);
}

kl_status kl_manager_shadow(kl_manager *m, kl_program *p, const kl_shadow_options *o, kl_err *err)
{
    shadow_call c = {.m = m, .program = p, .o = o, .err = err};
    kl_loop_call(m->loop, begin_shadow, &c);
    return c.status;
}

static void end_shadow(void *arg)
{
    kl_manager *m = arg;
    kl_shadow_end(m->shadow);
}

void kl_manager_shadow_end(kl_manager *m) { kl_loop_call(m->loop, end_shadow, m); }
kl_shadow *kl_manager_shadow_of(kl_manager *m) { return m->shadow; }

static void promote(void *arg)
{
    shadow_call *c = arg;
    kl_manager *m = c->m;
    kl_program *p = kl_shadow_program(m->shadow);
    if (!p) {
        c->status = kl_fail(c->err, KL_ENOTFOUND, "no candidate runs in the shadow: begin one with kubelua shadow CANDIDATE.lua");
        return;
    }
    change ch = {.m = m, .slot = m->shadowed, .program = p, .err = c->err};
    kl_shadow_end(m->shadow);
    apply_change(&ch);
    c->status = ch.status;
    if (!ch.status)
        kl_info("the candidate was promoted", "script=%s generation=%d", p->name, p->generation);
    kl_program_unref(p);
}

kl_status kl_manager_promote(kl_manager *m, kl_err *err)
{
    shadow_call c = {.m = m, .err = err};
    kl_loop_call(m->loop, promote, &c);
    return c.status;
}

kl_program *kl_manager_program(kl_manager *m, int slot_number)
{
    kl_lock(&m->mu);
    kl_program *p = kl_program_ref(m->slots[slot_number]->program);
    kl_unlock(&m->mu);
    return p;
}

typedef struct begin_call {
    kl_manager *m;
    kl_status status;
    kl_err *err;
} begin_call;

static void begin(void *arg)
{
    begin_call *b = arg;
    kl_manager *m = b->m;
    if ((b->status = kl_webhooks_listen(m->webhooks, b->err)))
        return;
    m->started = true;
    kl_offices_start(m->offices);
    advance(m);
}

kl_status kl_manager_start(kl_manager *m, kl_err *err)
{
    kl_status st = KL_OK;
    if (m->o.metrics_address || m->o.health_address || m->o.metrics_cert_dir || m->o.metrics_auth)
        st = kl_endpoints_start(m, &(kl_endpoints_options){.metrics_address = m->o.metrics_address, .health_address = m->o.health_address,
            .metrics_cert_dir = m->o.metrics_cert_dir, .metrics_auth = m->o.metrics_auth, .metrics = m->metrics, .client = m->o.client, .clock = m->clock}, &m->endpoints, err);
    begin_call b = {m, st, err};
    if (!st)
        kl_loop_call(m->loop, begin, &b);
    return b.status;
}

/* --- for people ------------------------------------------------------------------------------------------------------------------- */

const char *kl_manager_metrics_address(kl_manager *m) { return kl_endpoints_metrics_address(m->endpoints); }
const char *kl_manager_webhook_address(kl_manager *m) { return kl_webhooks_address(m->webhooks); }
const char *kl_manager_health_address(kl_manager *m) { return kl_endpoints_health_address(m->endpoints); }

bool kl_manager_leading(kl_manager *m) { return kl_offices_leading(m->offices); }

bool kl_manager_election_healthy(kl_manager *m, kl_time tolerance, char **why)
{
    return kl_offices_healthy(m->offices, tolerance, why);
}

typedef struct states_call {
    kl_manager *m;
    kl_controller_state *v;
    size_t n;
    bool all;                      /* idle */
} states_call;

static void collect_states(void *arg)
{
    states_call *c = arg;
    kl_manager *m = c->m;
    size_t n = 0;
    for (size_t i = 0; i < m->n_slots; i++)
        n += m->slots[i]->n;
    n += kl_webhooks_len(m->webhooks);
    c->v = kl_new_array(kl_controller_state, n + 1);
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_controller_state_get(m->slots[i]->controllers[k], &c->v[c->n++]);
    for (size_t i = 0; i < kl_webhooks_len(m->webhooks); i++)
        kl_webhooks_state(m->webhooks, i, &c->v[c->n++]);
}

/* The first of several managers speaks for all: it has the endpoints. */
static bool speaks_for_all(const kl_manager *m) { return kl_fleet_size(m->o.fleet) && !m->o.cluster; }

static size_t states_of_all(kl_manager *m, kl_controller_state **out)
{
    size_t n = 0;
    *out = NULL;
    for (size_t i = 0; i < kl_fleet_size(m->o.fleet); i++) {
        states_call c = {.m = kl_fleet_manager(m->o.fleet, i)};
        if (c.m)
            kl_loop_call(c.m->loop, collect_states, &c);
        *out = kl_realloc(*out, (n + c.n + 1) * sizeof **out);
        for (size_t k = 0; k < c.n; k++) {
            char *name = kl_sprintf("%s/%s", kl_fleet_name(m->o.fleet, i), c.v[k].name);
            kl_free(c.v[k].name);
            c.v[k].name = name;
            (*out)[n++] = c.v[k];
        }
        kl_free(c.v);
    }
    return n;
}

size_t kl_manager_controllers(kl_manager *m, kl_controller_state **out)
{
    if (speaks_for_all(m))
        return states_of_all(m, out);
    states_call c = {.m = m};
    kl_loop_call(m->loop, collect_states, &c);
    *out = c.v;
    return c.n;
}

void kl_controller_states_free(kl_controller_state *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        kl_free(v[i].name);
        kl_free(v[i].resource);
        kl_free(v[i].state);
        kl_free(v[i].message);
    }
    kl_free(v);
}

static bool is_up(const char *state)
{
    return !strcmp(state, "running") || !strcmp(state, "paused") || !strcmp(state, "waiting for leadership");
}

bool kl_manager_ready(kl_manager *m)
{
    kl_controller_state *v;
    size_t n = kl_manager_controllers(m, &v);
    bool ready = true;
    for (size_t i = 0; i < n; i++)
        ready &= is_up(v[i].state);
    kl_controller_states_free(v, n);
    return ready;
}

static void collect_idle(void *arg)
{
    states_call *c = arg;
    c->all = c->m->started;
    for (size_t i = 0; i < c->m->n_slots; i++)
        for (size_t k = 0; k < c->m->slots[i]->n; k++)
            c->all &= kl_controller_idle(c->m->slots[i]->controllers[k]);
    c->all &= kl_webhooks_idle(c->m->webhooks);
}

bool kl_manager_idle(kl_manager *m)
{
    states_call c = {.m = m};
    kl_loop_call(m->loop, collect_idle, &c);
    return c.all;
}

typedef struct informer_call {
    const char *kind;
    kl_informer *found;
} informer_call;

static void match_informer(void *arg, const char *kind, kl_informer *i)
{
    informer_call *c = arg;
    size_t n = strlen(c->kind);
    /* "v1/Pod", or "v1/Pod (spec.nodeName)" where there is no other. */
    if (strncmp(kind, c->kind, n) || (kind[n] && (kind[n] != ' ' || c->found)))
        return;
    kl_informer_unref(c->found);
    c->found = kl_informer_ref(i);
}

kl_informer *kl_manager_informer(kl_manager *m, const char *kind)
{
    informer_call c = {.kind = kind};
    kl_caches_each(m->caches, match_informer, &c);
    return c.found;
}

void kl_manager_informers(kl_manager *m, void (*fn)(void *arg, const char *kind, kl_informer *i), void *arg)
{
    kl_caches_each(m->caches, fn, arg);
}

kl_manager *kl_manager_at(kl_manager *m, size_t i, const char **cluster)
{
    bool all = speaks_for_all(m);
    *cluster = all && i < kl_fleet_size(m->o.fleet) ? kl_fleet_name(m->o.fleet, i) : NULL;
    return *cluster ? kl_fleet_manager(m->o.fleet, i) : all || i ? NULL : m;
}

kl_manager *kl_manager_of(kl_manager *m, const char *name, const char **own)
{
    *own = name;
    for (size_t i = 0; speaks_for_all(m) && i < kl_fleet_size(m->o.fleet); i++) {
        const char *cluster = kl_fleet_name(m->o.fleet, i);
        size_t n = strlen(cluster);
        if (strncmp(name, cluster, n) || name[n] != '/')
            continue;
        *own = name + n + 1;
        return kl_fleet_manager(m->o.fleet, i);
    }
    return m;
}

typedef struct informers_call {
    void (*fn)(void *arg, const char *cluster, const char *kind, kl_informer *i);
    void *arg;
    const char *cluster;
} informers_call;

static void one_informer(void *arg, const char *kind, kl_informer *i)
{
    informers_call *c = arg;
    c->fn(c->arg, c->cluster, kind, i);
}

void kl_manager_informers_of_all(kl_manager *m, void (*fn)(void *arg, const char *cluster, const char *kind, kl_informer *i), void *arg)
{
    if (!speaks_for_all(m)) {
        kl_caches_each(m->caches, one_informer, &(informers_call){fn, arg, NULL});
        return;
    }
    for (size_t i = 0; i < kl_fleet_size(m->o.fleet); i++)
        kl_caches_each(kl_fleet_manager(m->o.fleet, i)->caches, one_informer, &(informers_call){fn, arg, kl_fleet_name(m->o.fleet, i)});
}

typedef struct each_call {
    kl_manager *m;
    void (*fn)(void *arg, kl_controller *c);
    void *arg;
} each_call;

static void call_each(void *arg)
{
    each_call *c = arg;
    for (size_t i = 0; i < c->m->n_slots; i++)
        for (size_t k = 0; k < c->m->slots[i]->n; k++)
            c->fn(c->arg, c->m->slots[i]->controllers[k]);
}

void kl_manager_each(kl_manager *m, void (*fn)(void *arg, kl_controller *c), void *arg)
{
    kl_loop_call(m->loop, call_each, &(each_call){m, fn, arg});
}

kl_time kl_manager_now(const kl_manager *m) { return kl_clock_now(m->clock); }

/* --- turns (run/turns.h) ------------------------------------------------------------------------------------------------------------ */

typedef struct outlook_call {
    kl_manager *m;
    uint64_t rv;
    kl_outlook o;
    bool turned;
} outlook_call;

static void busy_with(kl_outlook *o, const char *what, const char *which)
{
    o->busy = true;
    if (!o->what)
        o->what = kl_sprintf("%s%s", what, which);
}

static void collect_outlook(void *arg)
{
    outlook_call *c = arg;
    kl_manager *m = c->m;
    kl_time timer = kl_loop_next(m->loop), mapper = kl_loop_next(m->mapper);
    char *behind = kl_caches_behind(m->caches, c->rv);
    if (behind)
        busy_with(&c->o, "the cache of ", behind);
    kl_free(behind);
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_controller_outlook(m->slots[i]->controllers[k], &c->o);
    char *hook = kl_webhooks_busy(m->webhooks);
    if (hook)
        busy_with(&c->o, hook, "");
    kl_free(hook);
    if (m->n_retired)
        busy_with(&c->o, "the end of a controller", "");
    if (kl_recorder_busy(m->recorder))
        busy_with(&c->o, "an Event", "");
    if (!m->started || timer <= kl_clock_now(m->clock) || mapper == INT64_MIN)
        busy_with(&c->o, "the manager", "");
    if (timer != INT64_MIN && timer < c->o.next)
        c->o.next = timer;
}

static void nothing(void *arg)
{
    (void)arg;
}

void kl_manager_outlook(kl_manager *m, uint64_t rv, kl_outlook *out)
{
    outlook_call c = {.m = m, .rv = rv, .o = {.next = KL_NEVER, .next_key = KL_NEVER}};
    kl_loop_call(m->mapper, nothing, NULL);            /* events that wait for a function of the script become keys */
    kl_loop_call(m->loop, collect_outlook, &c);
    *out = c.o;
}

static void give_turn(void *arg)
{
    outlook_call *c = arg;
    kl_manager *m = c->m;
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++) {
            kl_outlook o = {.next = KL_NEVER, .next_key = KL_NEVER};
            kl_controller_outlook(m->slots[i]->controllers[k], &o);
            kl_free(o.what);
            if (o.ready && !c->turned) {
                kl_controller_turn(m->slots[i]->controllers[k]);
                c->turned = true;
            }
        }
}

bool kl_manager_turn(kl_manager *m)
{
    outlook_call c = {.m = m};
    kl_loop_call(m->loop, give_turn, &c);
    return c.turned;
}

static void wake_all(void *arg)
{
    kl_manager *m = arg;
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_controller_wake(m->slots[i]->controllers[k]);
}

void kl_manager_clock_moved(kl_manager *m)
{
    kl_loop_wake(m->mapper);
    kl_loop_wake(m->loop);
    kl_loop_call(m->loop, wake_all, m);
}

/* --- health ------------------------------------------------------------------------------------------------------------------------- */

typedef struct informer_checks {
    kl_checks *out;
    const char *cluster;               /* NULL: there is one */
} informer_checks;

static void check_informer(void *arg, const char *kind, kl_informer *i)
{
    informer_checks *c = arg;
    kl_informer_stats s;
    kl_informer_stats_get(i, &s);
    char *name = kl_sprintf("%s%sinformer/%s", c->cluster ? c->cluster : "", c->cluster ? "/" : "", kind), *why = NULL;
    if (s.parked || !s.synced)
        why = kl_sprintf("%s, %llu objects so far%s%s", s.state, (unsigned long long)(s.synced ? s.objects : s.coming), s.message ? ": " : "", s.message ? s.message : "");
    kl_checks_add(c->out, name, why);
    kl_free(name);
    kl_free(why);
    kl_informer_stats_fini(&s);
}

/* Of a lease that ran out this much ago nobody may believe that it is ours: who still does hangs, and should be started anew
 * (controller-runtime and client-go, leaderelection/healthzadaptor.go). Waits for nobody. */
#define ELECTION_TOLERANCE KL_SECONDS(20)

static void check_election(kl_manager *m, kl_checks *out)
{
    if (!m->o.election.enabled)
        return;
    char *why = NULL;
    bool healthy = kl_manager_election_healthy(m, ELECTION_TOLERANCE, &why);
    for (size_t i = 1; speaks_for_all(m) && healthy && i < kl_fleet_size(m->o.fleet); i++)
        healthy = kl_manager_election_healthy(kl_fleet_manager(m->o.fleet, i), ELECTION_TOLERANCE, &why);
    kl_checks_add(out, "leaderElection", healthy ? NULL : why ? why : "the lease ran out, and work under it has not ended");
    kl_free(why);
}

/* Only a new process helps a thread that does not come back. */
static void check_stuck(void *arg, const kl_stuck *s)
{
    kl_checks_add(arg, s->name, s->story);
}

void kl_manager_checks(kl_manager *m, bool readiness, kl_checks *out)
{
    kl_checks_add(out, "ping", NULL);
    if (!readiness) {
        kl_watchdog_stuck(check_stuck, out);
        check_election(m, out);
        return;
    }
    kl_lock(&m->mu);
    bool stopping = m->stopping;
    kl_unlock(&m->mu);
    kl_checks_add(out, "shutdown", stopping ? "this process is stopping" : NULL);
    kl_controller_state *v;
    size_t n = kl_manager_controllers(m, &v);
    for (size_t i = 0; i < n; i++) {
        char *why = is_up(v[i].state) ? NULL : kl_sprintf("%s%s%s", v[i].state, v[i].message ? ": " : "", v[i].message ? v[i].message : "");
        kl_checks_add(out, v[i].name, why);
        kl_free(why);
    }
    kl_controller_states_free(v, n);
    if (!speaks_for_all(m)) {
        kl_caches_each(m->caches, check_informer, &(informer_checks){.out = out});
        return;
    }
    for (size_t i = 0; i < kl_fleet_size(m->o.fleet); i++)
        kl_caches_each(kl_fleet_manager(m->o.fleet, i)->caches, check_informer, &(informer_checks){out, kl_fleet_name(m->o.fleet, i)});
}

/* --- metrics ------------------------------------------------------------------------------------------------------------------------ */

typedef struct queues_call {
    kl_manager *m;
    kl_buf *out;
} queues_call;

static void queue_samples(void *arg)
{
    queues_call *c = arg;
    kl_manager *m = c->m;
    size_t n = 0, room = 0;
    for (size_t i = 0; i < m->n_slots; i++)
        room += m->slots[i]->n;
    kl_queue_of *v = kl_new_array(kl_queue_of, room + 1);
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            v[n++] = (kl_queue_of){kl_controller_name(m->slots[i]->controllers[k]), kl_controller_queue(m->slots[i]->controllers[k])};
    kl_telemetry_queues(c->out, v, n, kl_clock_now(m->clock));
    kl_metrics_head(c->out, "kubelua_controller_paused", "gauge", "1 while somebody has paused the controller");
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_metrics_sample(c->out, "kubelua_controller_paused", kl_controller_paused(m->slots[i]->controllers[k]), "controller", kl_controller_name(m->slots[i]->controllers[k]), NULL);
    if (n)
        kl_metrics_head(c->out, "kubelua_generation", "gauge", "The generation of its script that a controller runs; 0: none has taken over yet");
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_metrics_sample(c->out, "kubelua_generation", kl_controller_generation(m->slots[i]->controllers[k]), "controller", kl_controller_name(m->slots[i]->controllers[k]), NULL);
    if (n)
        kl_metrics_head(c->out, "kubelua_slowed_keys", "gauge", "Keys that turn in circles, by themselves or with another manager, and are run less often");
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_metrics_sample(c->out, "kubelua_slowed_keys", (double)kl_controller_slowed(m->slots[i]->controllers[k]), "controller", kl_controller_name(m->slots[i]->controllers[k]), NULL);
    kl_free(v);
    kl_offices_metrics(m->offices, c->out);
}

static char *own_metrics(kl_manager *m)
{
    kl_buf out = KL_BUF_INIT;
    kl_metrics_write(m->metrics, &out);
    kl_reloads_write(m->reloads, &out);
    queues_call q = {m, &out};
    kl_loop_call(m->loop, queue_samples, &q);
    kl_telemetry_informers(&out, m->caches, kl_clock_now(m->clock));
    kl_telemetry_events(&out, m->recorder);
    if (!m->o.cluster)                 /* of several managers in one process one tells about it */
        kl_telemetry_process(&out);
    kl_webhooks_metrics(m->webhooks, &out);
    kl_metrics_head(&out, "kubelua_writes_total", "counter", "Writes let through by the door");
    kl_metrics_sample(&out, "kubelua_writes_total", (double)kl_door_writes(m->door), NULL);
    kl_metrics_head(&out, "kubelua_writes_refused_total", "counter", "Writes refused because the lease was not ours");
    kl_metrics_sample(&out, "kubelua_writes_refused_total", (double)kl_door_refused(m->door), NULL);
    kl_metrics_head(&out, "kubelua_writes_not_sent_total", "counter", "Writes that were imagined: of a dry run, or in the shadow");
    kl_metrics_sample(&out, "kubelua_writes_not_sent_total", (double)kl_door_not_sent(m->door), NULL);
    return kl_buf_take(&out);
}

char *kl_manager_metrics(kl_manager *m)
{
    if (!speaks_for_all(m))
        return own_metrics(m);
    size_t n = kl_fleet_size(m->o.fleet);
    char **texts = kl_new_array(char *, n);
    for (size_t i = 0; i < n; i++)
        texts[i] = own_metrics(kl_fleet_manager(m->o.fleet, i));
    char *all = kl_fleet_metrics(m->o.fleet, (const char *const *)texts);
    for (size_t i = 0; i < n; i++)
        kl_free(texts[i]);
    kl_free(texts);
    return all;
}
