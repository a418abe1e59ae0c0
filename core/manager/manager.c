/* manager.c - the parts of a manager, from their creation to their end. Decisions run on one loop
 * ("control"); the mapper loop runs scripts' functions.
 *
 * A slot is one source (a script) and its controllers. Every change - a cache synced, a kind appeared, the
 * lease changed hands - leads to kl__manager_advance, which lets every controller take its next step. */
#include "manager/manager_impl.h"

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

#define MAX_OBJECT_DEFAULT ((size_t)16 << 20)

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

void kl__manager_each(kl_manager *m, void (*fn)(kl_controller *c))
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
    kl__manager_each(m, kl_controller_advance);
    if (m->stopping) /* `retired` now belongs to the thread in kl_manager_stop */
        return;
    kl__manager_advance_retired(m);
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
        .broken = o->broken ? kl__manager_broken : NULL,
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

static void free_parts(void *arg)
{
    kl_manager *m = arg;
    kl_webhooks_end(m->webhooks);
    kl_shadow_free(m->shadow);
    kl__manager_free_slots(m);
}

void kl_manager_free(kl_manager *m)
{
    if (!m)
        return;
    kl_manager_stop(m);
    kl_caches_end(m->caches);
    kl_loop_call(m->loop, free_parts, m);
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

/* --- start, and what others ask ------------------------------------------------------------ */

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
