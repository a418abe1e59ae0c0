/* office.c - offices and who is in them. An office that everybody left is kept, with its tenure: an Event may still be on its way,
 * and the controller may come back with the next reload. */
#include "run/office.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"

struct kl_office {
    kl_offices *o;
    kl_lead lead;
    char *owner;                   /* KL_LEAD_OWN: the controller; else NULL */
    kl_election *election;         /* NULL: always open */
    size_t inside, working;        /* loop only, as what follows; inside is also read under o->mu */
    bool campaigning;              /* from its start until the election has ended */
    bool leaving;                  /* everybody left, the lease is being given back */
    bool wanted;                   /* somebody came back meanwhile */
    bool open;                     /* changed under o->mu */
};

struct kl_offices {
    kl_offices_env env;
    char *lease, *ns, *identity;
    bool started, closing;         /* loop only */
    kl_mutex mu;
    kl_office **all;               /* grows on the loop under mu */
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

/* --- what the election says ---------------------------------------------------------------------------------------------- */

static void elected(void *arg)
{
    kl_office *f = arg;
    kl_info("this process leads", "lease=%s epoch=%lld", kl_election_name(f->election), (long long)atomic_load(&kl_election_tenure(f->election)->epoch));
    set_open(f, true);
    say_changed(f->o);
}

/* The door is shut already, so what still runs can only fail; the caches stay. */
static void deposed(void *arg)
{
    kl_office *f = arg;
    if (f->open && !f->leaving && !f->o->closing)
        kl_warn("this process does not lead any more; workers stop, caches stay warm", "lease=%s", kl_election_name(f->election));
    set_open(f, false);
    if (!f->working && !f->leaving)
        kl_election_joined(f->election);
    say_changed(f->o);
}

static void campaign(kl_office *f)
{
    if (!f->election || f->campaigning || !f->o->started || f->o->closing)
        return;
    f->campaigning = true;
    kl_election_start(f->election);
}

static void ended(void *arg)
{
    kl_office *f = arg;
    bool again = f->wanted;
    f->campaigning = f->leaving = f->wanted = false;
    if (again)
        campaign(f);
}

/* --- in and out ------------------------------------------------------------------------------------------------------------ */

static kl_lead lead_of(const kl_offices *o, const kl_controller_spec *s)
{
    if (!o->env.election.options.enabled)
        return KL_LEAD_NONE;
    return !s->lead_said && s->lead == KL_LEAD_MANAGER && o->env.election.options.per_controller ? KL_LEAD_OWN : s->lead;
}

static kl_office *office_new(kl_offices *o, kl_lead lead, const char *owner)
{
    kl_office *f = kl_new(kl_office);
    f->o = o;
    f->lead = lead;
    f->owner = lead == KL_LEAD_OWN ? kl_strdup(owner) : NULL;
    f->open = lead == KL_LEAD_NONE;
    if (lead == KL_LEAD_NONE)
        return f;
    kl_election_env env = o->env.election;
    char *name = f->owner ? kl_sprintf("%s-%s", o->lease, f->owner) : kl_strdup(o->lease);
    kl_err err = KL_ERR_INIT;
    env.options.name = name;
    env.started = elected;
    env.stopped = deposed;
    env.ended = ended;
    env.arg = f;
    if (kl_election_new(&env, &f->election, &err))         /* the options were looked at when we began */
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
    kl_lock(&o->mu);
    if (!f) {
        o->all = kl_realloc(o->all, (o->n + 1) * sizeof *o->all);
        f = o->all[o->n++] = office_new(o, lead, controller);
    }
    f->inside++;
    kl_unlock(&o->mu);
    if (f->leaving)
        f->wanted = true;
    else
        campaign(f);
    return f;
}

bool kl_office_suits(const kl_office *f, const kl_controller_spec *spec) { return !f || f->lead == lead_of(f->o, spec); }

/* The last one is out, and nobody works any more. */
static void give_back(kl_office *f)
{
    if (!f->election || !f->campaigning || f->leaving || f->inside || f->working)
        return;
    f->leaving = true;
    kl_info("nobody needs this lease any more; it is given back", "lease=%s", kl_election_name(f->election));
    kl_election_cancel(f->election);
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
const kl_tenure *kl_office_tenure(const kl_office *f) { return f && f->election ? kl_election_tenure(f->election) : NULL; }

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
    if (f->election && !f->open && !f->working && !f->leaving && f->campaigning)
        kl_election_joined(f->election);
}

/* --- all of them ------------------------------------------------------------------------------------------------------------- */

kl_status kl_offices_new(const kl_offices_env *env, kl_offices **out, kl_err *err)
{
    const kl_election_options *e = &env->election.options;
    kl_status st = e->enabled ? kl_election_check(e, err) : KL_OK;
    if (st)
        return st;
    kl_offices *o = kl_new(kl_offices);
    o->env = *env;
    o->env.election.options.name = o->lease = kl_strdup(e->name);
    o->env.election.options.ns = o->ns = kl_strdup(e->ns);
    o->env.election.options.identity = o->identity = e->identity ? kl_strdup(e->identity) : kl_election_identity();
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
            kl_election_cancel(f->election);
        }
    }
}

void kl_offices_close(kl_offices *o)
{
    if (!o)
        return;
    kl_loop_call(o->env.election.loop, close_on_loop, o);
    for (size_t i = 0; i < o->n; i++)
        if (o->started && o->all[i]->election && !kl_election_wait(o->all[i]->election))
            kl_warn("the lease was not given back; others wait for it to expire", "lease=%s", kl_election_name(o->all[i]->election));
}

void kl_offices_free(kl_offices *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n; i++) {
        kl_election_free(o->all[i]->election);
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
        good = !e || kl_election_healthy(e, tolerance);
        if (!good && why)
            *why = kl_sprintf("the lease %s ran out, and what runs under it has not ended", kl_election_name(e));
    }
    kl_unlock(&o->mu);
    return good;
}
