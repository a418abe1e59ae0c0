/* manager_look.c - views of a manager: states, caches, health and metrics. The first of several represents
 * all. */
#include "manager/manager_impl.h"

#include <string.h>

#include "base/mem.h"
#include "base/watchdog.h"
#include "observe/telemetry.h"

/* --- for people --------------------------------------------------------------------------- */

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
    bool all; /* idle */
} states_call;

/* The controller that works under c's name: c, or its predecessor for another resource while c waits for its
 * kind. On the loop. */
static kl_controller *acting(const kl_manager *m, kl_controller *c)
{
    for (size_t i = 0; i < m->n_retired; i++)
        if (m->retired[i].successor == c)
            return m->retired[i].c;
    return c;
}

static void state_fini(kl_controller_state *s)
{
    kl_free(s->name);
    kl_free(s->resource);
    kl_free(s->state);
    kl_free(s->message);
    kl_value_unref(s->params);
}

static void state_of(const kl_manager *m, kl_controller *c, kl_controller_state *out)
{
    kl_controller *now = acting(m, c);
    kl_controller_state_get(now, out);
    if (now == c)
        return;
    kl_controller_state next;
    kl_controller_state_get(c, &next);
    kl_free(out->message);
    out->message = kl_sprintf("its next generation, for %s, is not ready: %s", next.resource,
        next.message ? next.message : next.state);
    state_fini(&next);
}

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
            state_of(m, m->slots[i]->controllers[k], &c->v[c->n++]);
    for (size_t i = 0; i < kl_webhooks_len(m->webhooks); i++)
        kl_webhooks_state(m->webhooks, i, &c->v[c->n++]);
}

/* Whether this manager reports for the process: the first of several has the endpoints. */
static bool speaks_for_all(const kl_manager *m) { return kl_fleet_size(m->o.fleet) && !m->o.cluster; }

/* How long a probe or a scrape waits for the control loop, in real time: less than a kubelet's default
 * timeout of 1 s. */
#define LOOK_WITHIN KL_MILLISECONDS(500)

/* The common deadline of all loops of the process, which are asked one after the other. */
static kl_time look_until(void) { return kl_clock_now(kl_clock_real()) + LOOK_WITHIN; }

static kl_time time_until(kl_time deadline)
{
    kl_time now = kl_clock_now(kl_clock_real());
    return deadline > now ? deadline - now : 0;
}

/* Reads the states of one manager. False: its loop has not answered in time. */
static bool look(kl_manager *m, states_call *c, kl_time deadline)
{
    *c = (states_call){.m = m};
    if (deadline < KL_NEVER)
        return kl_loop_call_within(m->loop, collect_states, c, time_until(deadline));
    kl_loop_call(m->loop, collect_states, c);
    return true;
}

static bool states_of_all(kl_manager *m, kl_time deadline, size_t *count, kl_controller_state **out)
{
    size_t n = 0;
    bool answered = true;
    *out = NULL;
    for (size_t i = 0; i < kl_fleet_size(m->o.fleet); i++) {
        kl_manager *one = kl_fleet_manager(m->o.fleet, i);
        states_call c = {0};
        if (one)
            answered &= look(one, &c, deadline);
        *out = kl_realloc(*out, (n + c.n + 1) * sizeof **out);
        for (size_t k = 0; k < c.n; k++) {
            char *name = kl_sprintf("%s/%s", kl_fleet_name(m->o.fleet, i), c.v[k].name);
            kl_free(c.v[k].name);
            c.v[k].name = name;
            (*out)[n++] = c.v[k];
        }
        kl_free(c.v);
    }
    *count = n;
    return answered;
}

static bool states(kl_manager *m, kl_time deadline, size_t *n, kl_controller_state **out)
{
    if (speaks_for_all(m))
        return states_of_all(m, deadline, n, out);
    states_call c;
    bool answered = look(m, &c, deadline);
    *out = c.v;
    *n = c.n;
    return answered;
}

size_t kl_manager_controllers(kl_manager *m, kl_controller_state **out)
{
    size_t n;
    states(m, KL_NEVER, &n, out);
    return n;
}

void kl_controller_states_free(kl_controller_state *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        state_fini(&v[i]);
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
    /* "v1/Pod" is best; otherwise the first "v1/Pod (spec.nodeName)" counts */
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

void kl_manager_informers_of_all(
    kl_manager *m, void (*fn)(void *arg, const char *cluster, const char *kind, kl_informer *i), void *arg)
{
    if (!speaks_for_all(m)) {
        kl_caches_each(m->caches, one_informer, &(informers_call){fn, arg, NULL});
        return;
    }
    for (size_t i = 0; i < kl_fleet_size(m->o.fleet); i++)
        kl_caches_each(kl_fleet_manager(m->o.fleet, i)->caches, one_informer,
            &(informers_call){fn, arg, kl_fleet_name(m->o.fleet, i)});
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
            c->fn(c->arg, acting(c->m, c->m->slots[i]->controllers[k]));
}

void kl_manager_each(kl_manager *m, void (*fn)(void *arg, kl_controller *c), void *arg)
{
    kl_loop_call(m->loop, call_each, &(each_call){m, fn, arg});
}

kl_time kl_manager_now(const kl_manager *m) { return kl_clock_now(m->clock); }

/* --- health ------------------------------------------------------------------------------- */

typedef struct informer_checks {
    kl_checks *out;
    const char *cluster; /* NULL: there is only one cluster */
} informer_checks;

static void check_informer(void *arg, const char *kind, kl_informer *i)
{
    informer_checks *c = arg;
    kl_informer_stats s;
    kl_informer_stats_get(i, &s);
    char *name = kl_sprintf("%s%sinformer/%s", c->cluster ? c->cluster : "", c->cluster ? "/" : "", kind),
         *why = NULL;
    if (s.parked || !s.synced)
        why = kl_sprintf("%s, %llu objects so far%s%s", s.state,
            (unsigned long long)(s.synced ? s.objects : s.coming), s.message ? ": " : "",
            s.message ? s.message : "");
    kl_checks_add(c->out, name, why);
    kl_free(name);
    kl_free(why);
    kl_informer_stats_fini(&s);
}

/* A process that still claims a lease this long after its expiry hangs, and should be restarted
 * (controller-runtime and client-go, leaderelection/healthzadaptor.go). Never waits. */
#define ELECTION_TOLERANCE KL_SECONDS(20)

static void check_election(kl_manager *m, kl_checks *out)
{
    if (!m->o.election.enabled)
        return;
    char *why = NULL;
    bool healthy = kl_manager_election_healthy(m, ELECTION_TOLERANCE, &why);
    for (size_t i = 1; speaks_for_all(m) && healthy && i < kl_fleet_size(m->o.fleet); i++)
        healthy = kl_manager_election_healthy(kl_fleet_manager(m->o.fleet, i), ELECTION_TOLERANCE, &why);
    kl_checks_add(out, "leaderElection",
        healthy   ? NULL
            : why ? why
                  : "the lease expired, and work under it has not ended");
    kl_free(why);
}

/* Only a restart helps against a thread that hangs. */
static void check_stuck(void *arg, const kl_stuck *s) { kl_checks_add(arg, s->name, s->story); }

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
    size_t n;
    bool answered = states(m, look_until(), &n, &v);
    kl_checks_add(out, "control-loop", answered ? NULL : "the control loop has not answered for 500 ms");
    for (size_t i = 0; i < n; i++) {
        char *why = is_up(v[i].state)
            ? NULL
            : kl_sprintf("%s%s%s", v[i].state, v[i].message ? ": " : "", v[i].message ? v[i].message : "");
        kl_checks_add(out, v[i].name, why);
        kl_free(why);
    }
    kl_controller_states_free(v, n);
    if (!speaks_for_all(m)) {
        kl_caches_each(m->caches, check_informer, &(informer_checks){.out = out});
        return;
    }
    for (size_t i = 0; i < kl_fleet_size(m->o.fleet); i++)
        kl_caches_each(kl_fleet_manager(m->o.fleet, i)->caches, check_informer,
            &(informer_checks){out, kl_fleet_name(m->o.fleet, i)});
}

/* --- metrics ------------------------------------------------------------------------------ */

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
            v[n++] = (kl_queue_of){kl_controller_name(m->slots[i]->controllers[k]),
                kl_controller_queue(acting(m, m->slots[i]->controllers[k]))};
    kl_telemetry_queues(c->out, v, n, kl_clock_now(m->clock));
    kl_metrics_head(c->out, "kubelua_controller_paused", "gauge", "1 while the controller is paused");
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_metrics_sample(c->out, "kubelua_controller_paused",
                kl_controller_paused(acting(m, m->slots[i]->controllers[k])), "controller",
                kl_controller_name(m->slots[i]->controllers[k]), NULL);
    if (n)
        kl_metrics_head(c->out, "kubelua_generation", "gauge",
            "The generation of its script that a controller runs; 0: none has taken over yet");
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_metrics_sample(c->out, "kubelua_generation",
                kl_controller_generation(acting(m, m->slots[i]->controllers[k])), "controller",
                kl_controller_name(m->slots[i]->controllers[k]), NULL);
    if (n)
        kl_metrics_head(c->out, "kubelua_slowed_keys", "gauge",
            "Keys in a write loop, by themselves or with another manager, that run less often");
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_metrics_sample(c->out, "kubelua_slowed_keys",
                (double)kl_controller_slowed(acting(m, m->slots[i]->controllers[k])), "controller",
                kl_controller_name(m->slots[i]->controllers[k]), NULL);
    kl_free(v);
    kl_offices_metrics(m->offices, c->out);
}

static char *own_metrics(kl_manager *m, kl_time deadline)
{
    kl_buf out = KL_BUF_INIT;
    kl_metrics_write(m->metrics, &out);
    kl_custom_metrics_write(kl_commons_metrics(m->commons), &out);
    kl_reloads_write(m->reloads, &out);
    queues_call q = {m, &out};
    bool answered = kl_loop_call_within(m->loop, queue_samples, &q, time_until(deadline));
    kl_metrics_head(&out, "kubelua_control_loop_answers", "gauge",
        "0 when the control loop did not answer this scrape; queue metrics are missing then");
    kl_metrics_sample(&out, "kubelua_control_loop_answers", answered, NULL);
    kl_telemetry_informers(&out, m->caches, kl_clock_now(m->clock));
    kl_telemetry_events(&out, m->recorder);
    if (!m->o.cluster) /* one of several managers in a process reports it */
        kl_telemetry_process(&out);
    kl_webhooks_metrics(m->webhooks, &out);
    kl_metrics_head(&out, "kubelua_writes_total", "counter", "Writes that were sent");
    kl_metrics_sample(&out, "kubelua_writes_total", (double)kl_door_writes(m->door), NULL);
    kl_metrics_head(&out, "kubelua_writes_refused_total", "counter",
        "Writes refused because this process did not hold the lease");
    kl_metrics_sample(&out, "kubelua_writes_refused_total", (double)kl_door_refused(m->door), NULL);
    kl_metrics_head(
        &out, "kubelua_writes_not_sent_total", "counter", "Writes simulated by dry runs or in the shadow");
    kl_metrics_sample(&out, "kubelua_writes_not_sent_total", (double)kl_door_not_sent(m->door), NULL);
    return kl_buf_take(&out);
}

char *kl_manager_metrics(kl_manager *m)
{
    kl_time deadline = look_until();
    if (!speaks_for_all(m))
        return own_metrics(m, deadline);
    size_t n = kl_fleet_size(m->o.fleet);
    char **texts = kl_new_array(char *, n);
    for (size_t i = 0; i < n; i++)
        texts[i] = own_metrics(kl_fleet_manager(m->o.fleet, i), deadline);
    char *all = kl_fleet_metrics(m->o.fleet, (const char *const *)texts);
    for (size_t i = 0; i < n; i++)
        kl_free(texts[i]);
    kl_free(texts);
    return all;
}
