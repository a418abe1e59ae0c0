/* office.c - offices and their controllers. An empty office is kept, with its tenure: an Event may still be
 * on its way, and the controller may return with the next reload. */
#include "controller/office.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"

struct kl_office {
    kl_offices *o;
    kl_lead lead;
    char *owner;           /* KL_LEAD_OWN: the controller; else NULL */
    kl_election *election; /* NULL: always open, unless `sharding` is set */
    kl_sharding *sharding;
    /* controllers with a gate; without any we leave the replicas */
    size_t gates;
    size_t inside, working; /* loop only, as what follows; inside is also read under o->mu */
    bool campaigning;       /* from its start until the election has ended */
    bool leaving;           /* it is empty, the lease is being released */
    bool wanted;            /* a controller returned meanwhile */
    bool open;              /* changed under o->mu */
};

struct kl_offices {
    kl_offices_env env;
    char *lease, *ns, *identity;
    bool started, closing; /* loop only */
    kl_mutex mu;
    kl_office **all; /* grows on the loop under mu */
    size_t n;
};

static void say_changed(kl_offices *o)
{
    if (o->env.changed)
        kl_loop_post(o->env.election.loop, o->env.changed, o->env.arg);
}

static void set_open(kl_office *f, bool open)
{
    kl_lock(&f->o->mu);
    f->open = open;
    kl_unlock(&f->o->mu);
}

/* --- one of two ways to come by a lease --------------------------------------------------- */

/* A lead that scripts cannot choose: replicas share the keys. */
#define LEAD_SHARED ((kl_lead)(KL_LEAD_NONE + 1))

static bool is_contested(const kl_office *f) { return f->election || f->sharding; }

static const char *lease_of(const kl_office *f)
{
    return f->election ? kl_election_name(f->election) : kl_sharding_name(f->sharding);
}

static void cancel(kl_office *f)
{
    if (f->election)
        kl_election_cancel(f->election);
    else
        kl_sharding_cancel(f->sharding);
}

static void joined(kl_office *f)
{
    if (f->election)
        kl_election_joined(f->election);
    else
        kl_sharding_joined(f->sharding);
}

static bool wait_end(kl_office *f)
{
    return f->election ? kl_election_wait(f->election) : kl_sharding_wait(f->sharding);
}

/* --- what the election says --------------------------------------------------------------- */

static void elected(void *arg)
{
    kl_office *f = arg;
    kl_info(f->election ? "this process leads" : "this process has joined the replicas",
        "lease=%s epoch=%lld", lease_of(f), (long long)atomic_load(&kl_office_tenure(f)->epoch));
    set_open(f, true);
    say_changed(f->o);
}

/* The lease is lost: writes are already refused, so remaining runs can only fail. Caches stay. */
static void deposed(void *arg)
{
    kl_office *f = arg;
    if (f->open && !f->leaving && !f->o->closing)
        kl_warn(f->election ? "this process no longer leads; workers stop, caches stay warm"
                            : "this process is no longer one of the replicas; workers stop, caches stay warm",
            "lease=%s", lease_of(f));
    set_open(f, false);
    if (!f->working && !f->leaving)
        joined(f);
    say_changed(f->o);
}

static void campaign(kl_office *f)
{
    if (!is_contested(f) || f->campaigning || !f->o->started || f->o->closing || (f->sharding && !f->gates))
        return;
    f->campaigning = true;
    if (f->election)
        kl_election_start(f->election);
    else
        kl_sharding_start(f->sharding);
}

static void ended(void *arg)
{
    kl_office *f = arg;
    bool again = f->wanted;
    f->campaigning = f->leaving = f->wanted = false;
    if (again)
        campaign(f);
}

/* --- in and out --------------------------------------------------------------------------- */

static kl_lead lead_of(const kl_offices *o, const kl_controller_spec *s)
{
    const kl_election_options *e = &o->env.election.options;
    if (e->shards && s->shard != KL_SHARD_NEVER && (s->shard != KL_SHARD_DEFAULT || !s->lead_said))
        return LEAD_SHARED;
    if (!e->enabled && !e->shards)
        return KL_LEAD_NONE;
    return !s->lead_said && s->lead == KL_LEAD_MANAGER && o->env.election.options.per_controller ? KL_LEAD_OWN
                                                                                                 : s->lead;
}

static void share(kl_office *f)
{
    const kl_election_env *e = &f->o->env.election;
    kl_err err = KL_ERR_INIT;
    kl_sharding_env env = {.loop = e->loop,
        .client = e->client,
        .clock = e->clock,
        .group = f->o->lease,
        .ns = f->o->ns,
        .identity = f->o->identity,
        .lease = e->options.lease,
        .renew = e->options.renew,
        .retry = e->options.retry,
        .max = e->options.max_shards,
        .started = elected,
        .stopped = deposed,
        .ended = ended,
        .arg = f};
    if (kl_sharding_new(&env, &f->sharding, &err)) /* the options were checked at the start */
        kl_mem_die(kl_err_message(&err));
}

static kl_office *office_new(kl_offices *o, kl_lead lead, const char *owner)
{
    kl_office *f = kl_new(kl_office);
    f->o = o;
    f->lead = lead;
    f->owner = lead == KL_LEAD_OWN ? kl_strdup(owner) : NULL;
    f->open = lead == KL_LEAD_NONE;
    if (lead == LEAD_SHARED)
        share(f);
    if (lead == KL_LEAD_NONE || lead == LEAD_SHARED)
        return f;
    kl_election_env env = o->env.election;
    char *name = f->owner ? kl_sprintf("%s-%s", o->lease, f->owner) : kl_strdup(o->lease);
    kl_err err = KL_ERR_INIT;
    env.options.name = name;
    env.started = elected;
    env.stopped = deposed;
    env.ended = ended;
    env.arg = f;
    if (kl_election_new(&env, &f->election, &err)) /* the options were checked at the start */
        kl_mem_die(kl_err_message(&err));
    kl_free(name);
    return f;
}

kl_office *kl_office_enter(kl_offices *o, const char *controller, const kl_controller_spec *spec)
{
    if (!o)
        return NULL;
    kl_lead lead = lead_of(o, spec);
    kl_office *f = NULL;
    for (size_t i = 0; i < o->n && !f; i++)
        if (o->all[i]->lead == lead && (lead != KL_LEAD_OWN || !strcmp(o->all[i]->owner, controller)))
            f = o->all[i];
    bool is_new = !f;
    if (is_new)
        f = office_new(o, lead, controller);
    kl_lock(&o->mu);
    if (is_new) {
        o->all = kl_realloc(o->all, (o->n + 1) * sizeof *o->all);
        o->all[o->n++] = f;
    }
    f->inside++;
    kl_unlock(&o->mu);
    if (f->leaving)
        f->wanted = true;
    else
        campaign(f);
    return f;
}

bool kl_office_suits(const kl_office *f, const kl_controller_spec *spec)
{
    return !f || f->lead == lead_of(f->o, spec);
}

/* The last controller has left, and none works any more. */
static void give_back(kl_office *f)
{
    if (!is_contested(f) || !f->campaigning || f->leaving || f->inside || f->working)
        return;
    f->leaving = true;
    kl_info("this lease is no longer needed; it was released", "lease=%s", lease_of(f));
    cancel(f);
}

void kl_office_leave(kl_office *f)
{
    if (!f)
        return;
    kl_lock(&f->o->mu);
    f->inside--;
    kl_unlock(&f->o->mu);
    f->wanted = f->wanted && f->inside;
    if (!f->o->closing)
        give_back(f);
}

bool kl_office_open(const kl_office *f) { return !f || f->open; }

const kl_tenure *kl_office_tenure(const kl_office *f)
{
    return !f         ? NULL
        : f->election ? kl_election_tenure(f->election)
        : f->sharding ? kl_sharding_tenure(f->sharding)
                      : NULL;
}

kl_gate *kl_office_gate(kl_office *f, kl_gate *have, const kl_controller_spec *spec,
    void (*moved)(void *arg, kl_claims *before), void *arg)
{
    if (!f || !f->sharding)
        return NULL;
    kl_gate *g = kl_sharding_enter(f->sharding, spec->name, spec->shard, moved, arg);
    f->gates += !have;
    if (f->leaving)
        f->wanted = true;
    else
        campaign(f);
    return g;
}

bool kl_offices_divide(const kl_offices *o, const kl_controller_spec *spec)
{
    return o && spec->shard_own && lead_of(o, spec) == LEAD_SHARED;
}

void kl_office_gate_close(kl_office *f, kl_gate *g)
{
    if (!f || !g)
        return;
    f->gates--;
    kl_sharding_leave(f->sharding, g);
}

char *kl_office_holder(const kl_office *f)
{
    const char *holder = f && f->election ? kl_election_holder(f->election) : NULL;
    return holder && *holder ? kl_sprintf("the Lease %s is held by %s", lease_of(f), holder) : NULL;
}

char *kl_office_say(const kl_office *f, const char *controller)
{
    if (!f || !f->sharding)
        return NULL;
    kl_sharding_state s;
    kl_sharding_state_get(f->sharding, controller, &s);
    if (!s.member)
        return kl_strdup("waiting to join the replicas");
    return kl_sprintf(
        "%.0f %% of the keys, %zu replica%s", s.share * 100, s.members, s.members == 1 ? "" : "s");
}

void kl_office_work(kl_office *f)
{
    if (f)
        f->working++;
}

void kl_office_rest(kl_office *f)
{
    if (!f)
        return;
    f->working--;
    if (is_contested(f) && !f->open && !f->working && !f->leaving && f->campaigning)
        joined(f);
}

/* --- all of them -------------------------------------------------------------------------- */

kl_status kl_offices_new(const kl_offices_env *env, kl_offices **out, kl_err *err)
{
    const kl_election_options *e = &env->election.options;
    kl_status st = e->enabled || e->shards ? kl_election_check(e, err) : KL_OK;
    if (st)
        return st;
    kl_offices *o = kl_new(kl_offices);
    o->env = *env;
    o->env.election.options.name = o->lease = kl_strdup(e->name);
    o->env.election.options.ns = o->ns = kl_strdup(e->ns);
    o->env.election.options.identity = o->identity = e->identity ? kl_strdup(e->identity)
                                                                 : kl_election_identity();
    kl_mutex_init(&o->mu);
    *out = o;
    return KL_OK;
}

void kl_offices_start(kl_offices *o)
{
    o->started = true;
    for (size_t i = 0; i < o->n; i++)
        if (o->all[i]->inside)
            campaign(o->all[i]);
}

static void close_on_loop(void *arg)
{
    kl_offices *o = arg;
    o->closing = true;
    for (size_t i = 0; i < o->n; i++) {
        kl_office *f = o->all[i];
        f->wanted = false;
        if (f->campaigning && !f->leaving) {
            f->leaving = true;
            cancel(f);
        }
    }
}

void kl_offices_close(kl_offices *o)
{
    if (!o)
        return;
    kl_loop_call(o->env.election.loop, close_on_loop, o);
    for (size_t i = 0; i < o->n; i++)
        if (o->started && is_contested(o->all[i]) && !wait_end(o->all[i]))
            kl_warn(
                "the lease was not released; others wait for it to expire", "lease=%s", lease_of(o->all[i]));
}

void kl_offices_free(kl_offices *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n; i++) {
        kl_election_free(o->all[i]->election);
        kl_sharding_free(o->all[i]->sharding);
        kl_free(o->all[i]->owner);
        kl_free(o->all[i]);
    }
    kl_mutex_fini(&o->mu);
    kl_free(o->all);
    kl_free(o->lease);
    kl_free(o->ns);
    kl_free(o->identity);
    kl_free(o);
}

bool kl_offices_leading(kl_offices *o)
{
    bool all = true;
    kl_lock(&o->mu);
    for (size_t i = 0; i < o->n; i++)
        all &= !o->all[i]->inside || o->all[i]->open;
    kl_unlock(&o->mu);
    return all;
}

bool kl_offices_healthy(kl_offices *o, kl_time tolerance, char **why)
{
    bool good = true;
    kl_lock(&o->mu);
    for (size_t i = 0; i < o->n && good; i++) {
        kl_election *e = o->all[i]->election;
        good = e ? kl_election_healthy(e, tolerance)
                 : !o->all[i]->sharding || kl_sharding_healthy(o->all[i]->sharding, tolerance);
        if (!good && why)
            *why = kl_sprintf("the lease %s expired, and runs under it have not ended", lease_of(o->all[i]));
    }
    kl_unlock(&o->mu);
    return good;
}

void kl_offices_metrics(kl_offices *o, kl_buf *out)
{
    for (size_t i = 0; o && i < o->n; i++)
        if (o->all[i]->sharding)
            kl_sharding_metrics(o->all[i]->sharding, out);
}
