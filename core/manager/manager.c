/* manager.c - the order of start and stop. Decisions run on one loop ("control"); the mapper loop runs
 * scripts' functions.
 *
 * A slot is one source (a script) and its controllers. Every change - a cache synced, a kind appeared, the
 * lease changed hands - leads to kl__manager_advance, which lets every controller take its next step. */
#include "manager/manager_impl.h"

#include <string.h>

#include "base/locks.h"
#include "base/log.h"
#include "base/mem.h"
#include "lab/dryrun.h"
#include "manager/endpoints.h"
#include "observe/flight.h"
#include "controller/office.h"
#include "lab/record.h"
#include "events/recorder.h"
#include "lab/shadow.h"
#include "observe/tally.h"
#include "webhook/webhooks.h"

#define GRACE_DEFAULT KL_SECONDS(30) /* controller-runtime manager/internal.go:57 */
#define MAX_OBJECT_DEFAULT ((size_t)16 << 20)
/* Events are flushed at the end for at most this long. */
#define FLUSH_MAX KL_SECONDS(2)
/* How long requests to webhooks may take to end; each has its own deadline, of at most 30 s. */
#define WEBHOOKS_MAX KL_SECONDS(30)

/* --- what the parts ask of the manager ---------------------------------------------------- */

static uint64_t client_send(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    return kl_client_do(arg, op, done, done_arg);
}

static void client_cancel(void *arg, uint64_t id) { kl_client_cancel(arg, id); }

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

static void on_lookup(void *arg, const char *name, kl_time took) { kl_metrics_lookup(arg, name, took); }

static void record(void *arg, const kl_news *n)
{
    kl_manager *m = arg;
    if (m->dryrun)
        kl_dryrun_event(m->dryrun, n);
    else
        kl_recorder_event(m->recorder, n);
}

/* Whether the slot's newest program has a controller, or a webhook, of that name. */
static bool has(const kl__slot *s, const char *name)
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

static void retiree_drain(kl__retiree *r)
{
    kl_info("the new generation lacks this controller; it stops", "controller=%s resource=%s",
        kl_controller_name(r->c), kl_controller_resource(r->c));
    r->successor = NULL;
    kl_controller_drain(r->c);
}

static void advance_retired(kl_manager *m)
{
    for (size_t i = 0; i < m->n_retired;) {
        kl__retiree *r = &m->retired[i];
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

void kl__manager_advance(void *arg)
{
    kl_manager *m = arg;
    if (!m->started)
        return;
    if (!m->stopping)
        /* a candidate before the live controllers, so that it misses nothing in shared caches */
        kl_shadow_advance(m->shadow);
    each_controller(m, kl_controller_advance);
    if (m->stopping) /* `retired` now belongs to the thread in kl_manager_stop */
        return;
    advance_retired(m);
    kl_webhooks_advance(m->webhooks);
    if (m->o.changed)
        m->o.changed(m->o.changed_arg);
}

/* --- birth and death ---------------------------------------------------------------------- */

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

static void copy_options(kl_manager *m, const kl_manager_options *o)
{
    m->o = *o;
    m->clock = o->clock ? o->clock : kl_clock_real();
    m->o.ns = m->ns = kl_strdup(o->ns);
    m->o.election.name = m->lease = kl_strdup(o->election.name);
    m->o.metrics_address = m->metrics_address = kl_strdup(o->metrics_address);
    m->o.health_address = m->health_address = kl_strdup(o->health_address);
    m->o.metrics_cert_dir = m->metrics_cert_dir = kl_strdup(o->metrics_cert_dir);
}

static kl_caches *make_caches(kl_manager *m)
{
    const kl_manager_options *o = &m->o;
    return kl_caches_new(&(kl_caches_options){.client = o->client,
        .clock = o->watch_clock ? o->watch_clock : m->clock,
        .loop = m->loop,
        .mapper = m->mapper,
        .ns = m->ns,
        .max_object = o->max_object ? o->max_object : MAX_OBJECT_DEFAULT,
        .drop_managed_fields = o->drop_managed_fields,
        .stream = o->watch_list,
        .quiet = o->quiet,
        .watch_kinds = true,
        .changed = kl__manager_advance,
        .changed_arg = m,
        .begun = o->record ? kl_record_cache_begun : NULL,
        .ended = o->record ? kl_record_cache_ended : NULL,
        .begun_arg = o->record});
}

static kl_controller_env make_env(kl_manager *m)
{
    const kl_manager_options *o = &m->o;
    return (kl_controller_env){.client = o->client,
        .clock = m->clock,
        .loop = m->loop,
        .mapper = m->mapper,
        .caches = m->caches,
        .door = m->door,
        .fleet = o->fleet,
        .cluster = o->cluster,
        .metrics = m->metrics,
        .workers = o->workers,
        .workers_forced = o->workers_forced,
        .trace_requests = o->trace_requests,
        .reload_keys = o->reload_keys,
        .reload_deadline = o->reload_deadline,
        .event = record,
        .event_arg = m,
        .turns = o->turns,
        .commons = m->commons,
        .imagine = kl_dryrun_imagination(m->dryrun),
        .witnesses = &m->witnesses,
        .flight = m->flight,
        .ran = o->ran,
        .ran_arg = o->seen_arg,
        .changed = kl__manager_advance,
        .never_slow_down = o->never_slow_down,
        .quiet = o->quiet,
        .rollback_window = o->rollback_window,
        .broken = o->broken ? broken : NULL,
        .broken_arg = m,
        .changed_arg = m};
}

static void add_witnesses(kl_manager *m)
{
    const kl_manager_options *o = &m->o;
    if (m->flight) {
        kl_witness flight = kl_flight_witness(m->flight);
        kl_witnesses_add(&m->witnesses, &flight);
    }
    kl_witness shadow = kl_shadow_witness(m->shadow);
    kl_witnesses_add(&m->witnesses, &shadow);
    kl_witness tally = kl_tally_witness(m->tally);
    kl_witnesses_add(&m->witnesses, &tally);
    for (size_t i = 0; i < o->n_witnesses; i++)
        kl_witnesses_add(&m->witnesses, &o->witnesses[i]);
    if (o->record)
        kl_witnesses_add(&m->witnesses, kl_record_witness(o->record));
}

static void set_hooks(kl_manager *m)
{
    kl_client_set_hooks(m->o.client,
        &(kl_client_hooks){.arg = m->metrics,
            .on_request = on_request,
            .on_retry = on_retry,
            .on_delayed = on_delayed,
            .on_sizes = on_sizes,
            .on_lookup = on_lookup});
}

/* Starts the loops' threads, too. Fails when the election's options are wrong. */
static kl_status begin_elections(kl_manager *m, kl_err *err)
{
    kl_loop_start(m->loop);
    kl_loop_start(m->mapper);
    kl_status st = kl_offices_new(&(kl_offices_env){.election = {.loop = m->loop,
                                                        .client = m->o.client,
                                                        .clock = m->clock,
                                                        .metrics = m->metrics,
                                                        .options = m->o.election},
                                      .changed = kl__manager_advance,
                                      .arg = m},
        &m->offices, err);
    m->env.offices = m->offices;
    return st;
}

kl_status kl_manager_new(const kl_manager_options *o, kl_manager **out, kl_err *err)
{
    kl_manager *m = kl_new(kl_manager);
    copy_options(m, o);
    kl_mutex_init_as(&m->mu, KL_LOCK_MANAGER);
    m->metrics = kl_metrics_new();
    if (o->dry_run)
        begin_dry(m);
    m->reloads = kl_reloads_new();
    m->commons = kl_commons_new();
    m->tally = kl_tally_new();
    m->flight = o->flight_bytes == KL_FLIGHT_OFF
        ? NULL
        : kl_flight_new(o->flight_bytes ? o->flight_bytes : KL_FLIGHT_BYTES, m->clock);
    m->loop = kl_loop_new("kl-control", m->clock);
    m->mapper = kl_loop_new("kl-mapper", m->clock);
    m->door = kl_door_new(&(kl_door_options){.send = client_send,
        .cancel = client_cancel,
        .send_arg = o->client,
        .clock = m->clock,
        .shut = o->dry_run,
        .seen = o->seen,
        .seen_arg = o->seen_arg});
    m->recorder = kl_recorder_new(m->door, m->clock, m->loop);
    m->caches = make_caches(m);
    m->env = make_env(m);
    m->shadow = kl_shadow_new(&m->env);
    add_witnesses(m);
    m->webhook_texts = webhook_texts(&m->o.webhooks);
    m->webhooks = kl_webhooks_new(&m->env, &m->o.webhooks);
    set_hooks(m);
    kl_status st = begin_elections(m, err);
    if (st) {
        kl_manager_free(m);
        return st;
    }
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
    if (!m->hurried)
        kl_warn("the grace period is over; ending remaining runs", "grace_seconds=%lld",
            (long long)((m->o.grace ? m->o.grace : GRACE_DEFAULT) / KL_SECONDS(1)));
    end_runs(m);
}

/* How much longer a run may take to notice that it was aborted. */
#define NOTICE KL_SECONDS(5)

static void tell_stuck(void *arg)
{
    kl_manager *m = arg;
    m->stop_timer = 0;
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++) {
            kl_workqueue_stats q;
            kl_workqueue_stats_get(
                kl_controller_queue(m->slots[i]->controllers[k]), kl_clock_now(m->clock), &q);
            if (q.running)
                kl_error("a run is stuck: its code neither returns nor makes a call",
                    "controller=%s running=%zu", kl_controller_name(m->slots[i]->controllers[k]), q.running);
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
    if (m->hurried)
        grace_over(m);
    else
        m->stop_timer = kl_loop_timer(m->loop, m->o.grace ? m->o.grace : GRACE_DEFAULT, grace_over, m);
}

static void hurry(void *arg)
{
    kl_manager *m = arg;
    m->hurried = true;
    if (m->stop_timer) {
        kl_loop_timer_cancel(m->loop, m->stop_timer);
        grace_over(m);
    }
}

void kl_manager_hurry(kl_manager *m) { kl_loop_call(m->loop, hurry, m); }

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
        kl_loop_call(m->loop, end_runs, m); /* the clock stands still: a sleeping run would not wake */
    kl_loop_call(m->loop, arm_grace, m);
    for (size_t i = 0; i < m->n_slots; i++) /* the slots do not change while stopping */
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_controller_wait(m->slots[i]->controllers[k]);
    for (size_t i = 0; i < m->n_retired; i++)
        kl_controller_wait(m->retired[i].c);
    kl_shadow_wait(m->shadow);
    kl_loop_call(m->loop, disarm_grace, m);
    if (!kl_recorder_flush(m->recorder, kl_clock_now(kl_clock_real()) + FLUSH_MAX))
        kl_warn("some events were not recorded before shutdown", "dropped=%llu",
            (unsigned long long)kl_recorder_dropped(m->recorder));
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
    kl_recorder_free(m->recorder); /* its last requests ask the door, which asks the tenures */
    kl_offices_free(m->offices);
    kl_client_set_hooks(m->o.client, NULL);
    kl_loop_free(m->loop); /* runs the last posts, which may post to the mapper */
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

/* --- programs ----------------------------------------------------------------------------- */

static kl_controller *find(kl_manager *m, const char *name, const kl__slot *except)
{
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; m->slots[i] != except && k < m->slots[i]->n; k++)
            if (!strcmp(kl_controller_name(m->slots[i]->controllers[k]), name))
                return m->slots[i]->controllers[k];
    return NULL;
}

static kl_controller *take_old(kl_manager *m, kl__slot *s, const kl_controller_spec *spec)
{
    /* the script returns to the old resource before the new one was ready */
    for (size_t i = 0; i < m->n_retired; i++) {
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
        if (c && !strcmp(kl_controller_name(c), spec->name)
            && !strcmp(kl_controller_resource(c), spec->resource)) {
            s->controllers[k] = NULL;
            return c;
        }
    }
    return NULL;
}

/* Retires the controllers that the new generation lacks. Under m->mu. */
static void retire_rest(kl_manager *m, kl__slot *s, kl_controller **fresh, size_t n)
{
    for (size_t k = 0; k < s->n; k++) {
        kl_controller *c = s->controllers[k], *successor = NULL;
        if (!c)
            continue;
        for (size_t i = 0; i < n; i++)
            if (!strcmp(kl_controller_name(fresh[i]), kl_controller_name(c)))
                successor = fresh[i];
        for (size_t i = 0; i < m->n_retired; i++) /* retirees that waited for c now wait for its successor */
            if (m->retired[i].successor == c && successor)
                m->retired[i].successor = successor;
            else if (m->retired[i].successor == c)
                retiree_drain(&m->retired[i]);
        m->retired = kl_realloc(m->retired, (m->n_retired + 1) * sizeof *m->retired);
        kl__retiree *r = &m->retired[m->n_retired++];
        *r = (kl__retiree){.c = c, .successor = successor, .slot = s};
        if (!successor || !kl_controller_published(c))
            retiree_drain(r);
    }
}

static const char *other_than(char **namespaces, const char *ns)
{
    while (namespaces && *namespaces && !strcmp(*namespaces, ns))
        namespaces++;
    return namespaces ? *namespaces : NULL;
}

/* Rejects namespaces that differ from --namespace: the process has no caches of them. */
kl_status kl__manager_check_namespaces(
    const kl_manager *m, const kl_program *p, const kl_controller_spec *s, kl_err *err)
{
    const char *other = m->o.ns ? other_than(s->namespaces, m->o.ns) : NULL;
    for (size_t i = 0; m->o.ns && !other && i < s->n_selects; i++)
        other = other_than(s->selects[i].namespaces, m->o.ns);
    if (!other)
        return KL_OK;
    return kl_fail(err, KL_EINVAL,
        "%s: controller %s needs namespace %s, but this process watches only %s (--namespace): run it "
        "without --namespace, or take %s out of its namespaces",
        p->name, s->name, other, m->o.ns, other);
}

void kl__manager_apply(void *arg)
{
    kl__change *ch = arg;
    kl_manager *m = ch->m;
    kl_program *p = ch->program;
    if (m->stopping) {
        ch->status = kl_fail(ch->err, KL_ECANCELLED, "the manager is stopping");
        return;
    }
    for (size_t i = 0; i < p->n_specs; i++)
        if (find(m, p->specs[i].name, ch->slot)) {
            ch->status = kl_fail(ch->err, KL_EEXISTS,
                "%s: another script has a controller named %s: names are unique, they are field managers and "
                "metric labels",
                p->name, p->specs[i].name);
            return;
        }
    for (size_t i = 0; i < p->n_specs; i++)
        if ((ch->status = kl__manager_check_namespaces(m, p, &p->specs[i], ch->err)))
            return;
    kl__slot *s = ch->slot ? ch->slot : kl_new(kl__slot);
    if ((ch->status = kl_webhooks_check(m->webhooks, s, p, ch->err))
        || (ch->status = kl_custom_metrics_declare(
                kl_commons_metrics(m->commons), p->name, p->metrics, ch->err))) {
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
        kl_error(
            "webhooks are not served", "script=%s error=%s", p->name, kl_log_quoted(kl_err_message(&err)));
    kl_err_fini(&err);
    kl__manager_advance(m);
}

kl_status kl_manager_add(kl_manager *m, kl_program *p, int *slot_number, kl_err *err)
{
    kl__change ch = {.m = m, .program = p, .err = err};
    kl_loop_call(m->loop, kl__manager_apply, &ch);
    if (!ch.status && slot_number)
        *slot_number = ch.number;
    return ch.status;
}

kl_status kl_manager_replace(kl_manager *m, int slot_number, kl_program *p, kl_err *err)
{
    if (slot_number < 0 || (size_t)slot_number >= m->n_slots)
        return kl_fail(err, KL_EINVAL, "there is no slot %d", slot_number);
    kl__change ch = {.m = m, .slot = m->slots[slot_number], .program = p, .err = err};
    kl_loop_call(m->loop, kl__manager_apply, &ch);
    return ch.status;
}

kl_reloads *kl_manager_reloads(kl_manager *m) { return m->reloads; }
kl_flight *kl_manager_flight(kl_manager *m) { return m->flight; }
kl_tally *kl_manager_tally(kl_manager *m) { return m->tally; }
kl_metrics *kl_manager_figures(kl_manager *m) { return m->metrics; }
kl_custom_metrics *kl_manager_custom_metrics(kl_manager *m) { return kl_commons_metrics(m->commons); }

/* The type and reason of the Event of a reload. */
static const struct {
    const char *type, *reason;
} RELOAD_NEWS[] = {
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
    char *note = kl_sprintf("%s, generation %d%s%s", x->script, x->generation, x->message ? ": " : "",
        x->message ? x->message : "");
    record(m,
        &(kl_news){.component = "kubelua",
            .about = about,
            .type = RELOAD_NEWS[x->result].type,
            .reason = RELOAD_NEWS[x->result].reason,
            .action = "Reload",
            .note = note});
    kl_free(note);
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
    kl__manager_advance(m);
}

kl_status kl_manager_start(kl_manager *m, kl_err *err)
{
    kl_status st = KL_OK;
    if (m->o.metrics_address || m->o.health_address || m->o.metrics_cert_dir || m->o.metrics_auth)
        st = kl_endpoints_start(m,
            &(kl_endpoints_options){.metrics_address = m->o.metrics_address,
                .health_address = m->o.health_address,
                .metrics_cert_dir = m->o.metrics_cert_dir,
                .metrics_auth = m->o.metrics_auth,
                .metrics = m->metrics,
                .client = m->o.client,
                .clock = m->clock},
            &m->endpoints, err);
    begin_call b = {m, st, err};
    if (!st)
        kl_loop_call(m->loop, begin, &b);
    return b.status;
}
