/* election.c - the I/O of the election: requests, timers, a candidate's watch, and the callbacks. leader.c
 * decides.
 *
 * Each request carries a number; an answer with an old number is ignored. Lease writes do not pass the write
 * door: they are what opens it.
 *
 * While another process leads, the Lease is watched, so that a release is noticed at once, and a timer is set
 * to its expiry. leader.c's polling continues: it finds changes that the watch misses. */
#include "election/election.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "election/leader.h"
#include "election/lease_watch.h"

/* The minimum timeout of a request near the deadline: a late answer does no harm. */
#define CALL_MIN KL_MILLISECONDS(100)

/* spec.leaseDurationSeconds is an integer. */
#define LEASE_MIN KL_SECONDS(1)

struct kl_election {
    kl_election_env env;
    char *name, *ns, *identity, *holder;
    char *full; /* ns/name */
    kl_leader *leader;
    kl_time renew;
    uint64_t serial, request, timer; /* loop only, like the next fields */
    uint64_t expiry_timer;
    kl_time expiry;        /* the time of `expiry_timer`; KL_NEVER: it is not set */
    kl_lease_watch *watch; /* while another process leads */
    bool cancelled;
    _Atomic kl_time lapse; /* kl_leader_lapse of the last step */
    kl_mutex mu;
    kl_cond cond;
    size_t outstanding KL_GUARDED_BY(mu); /* requests, and watches that have not stopped */
    bool over KL_GUARDED_BY(mu);
};

static void step(kl_election *e, const kl_leader_input *in);

static void one_more(kl_election *e)
{
    kl_lock(&e->mu);
    e->outstanding++;
    kl_unlock(&e->mu);
}

static void one_less(void *arg)
{
    kl_election *e = arg;
    kl_lock(&e->mu);
    e->outstanding--;
    kl_cond_broadcast(&e->cond);
    kl_unlock(&e->mu);
}

static uint64_t client_send(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    return kl_client_do(arg, op, done, done_arg);
}

static void client_cancel(void *arg, uint64_t id) { kl_client_cancel(arg, id); }

char *kl_election_identity(void)
{
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    /* no padding: all of it is hashed */
    int64_t seed[] = {kl_clock_wall(kl_clock_real()), getpid()};
    return kl_sprintf("%s_%d_%08x", host, (int)seed[1], (unsigned)kl_hash(seed, sizeof seed));
}

kl_status kl_election_check(const kl_election_options *o, kl_err *err)
{
    if (o->lease && o->lease < LEASE_MIN)
        return kl_fail(err, KL_EINVAL,
            "leader election: the lease duration must be at least 1s: the Lease holds whole seconds");
    return kl_leader_check(&(kl_leader_config){.identity = o->identity ? o->identity : "somebody",
                               .lease = o->lease,
                               .renew = o->renew,
                               .retry = o->retry},
        err);
}

kl_status kl_election_new(const kl_election_env *env, kl_election **out, kl_err *err)
{
    kl_status bad = kl_election_check(&env->options, err);
    if (bad)
        return bad;
    kl_election *e = kl_new(kl_election);
    e->env = *env;
    if (!e->env.send) {
        e->env.send = client_send;
        e->env.cancel = client_cancel;
        e->env.send_arg = env->client;
    }
    e->name = kl_strdup(env->options.name);
    e->ns = kl_strdup(env->options.ns ? env->options.ns : "default");
    e->identity = env->options.identity ? kl_strdup(env->options.identity) : kl_election_identity();
    e->full = kl_sprintf("%s/%s", e->ns, e->name);
    e->expiry = KL_NEVER;
    atomic_init(&e->lapse, KL_NEVER);
    e->renew = env->options.renew ? env->options.renew : KL_LEADER_RENEW;
    kl_mutex_init(&e->mu);
    kl_cond_init(&e->cond);
    e->over = true;
    kl_status st = kl_leader_new(&(kl_leader_config){.identity = e->identity,
                                     .ns = e->ns,
                                     .name = e->name,
                                     .lease = env->options.lease,
                                     .renew = env->options.renew,
                                     .retry = env->options.retry,
                                     .release = true,
                                     .seed = kl_hash(e->identity, strlen(e->identity))},
        &e->leader, err);
    if (st) {
        kl_election_free(e);
        return st;
    }
    kl_metrics_leader(env->metrics, e->name, false);
    *out = e;
    return KL_OK;
}

/* Stops an election that has not ended: its timers, request and watch. */
static void quiesce(void *arg)
{
    kl_election *e = arg;
    e->serial++;
    if (e->request)
        e->env.cancel(e->env.send_arg, e->request);
    kl_loop_timer_cancel(e->env.loop, e->timer);
    kl_loop_timer_cancel(e->env.loop, e->expiry_timer);
    if (e->watch)
        kl_lease_watch_end(e->watch, one_less, e);
    e->watch = NULL;
}

void kl_election_free(kl_election *e)
{
    if (!e)
        return;
    kl_loop_call(e->env.loop, quiesce, e);
    kl_lock(&e->mu);
    while (e->outstanding) /* requests that were sent: each ends by its timeout */
        kl_cond_wait(&e->cond, &e->mu);
    kl_unlock(&e->mu);
    if (e->leader)
        kl_leader_free(e->leader);
    kl_cond_fini(&e->cond);
    kl_mutex_fini(&e->mu);
    kl_free(e->holder);
    kl_free(e->identity);
    kl_free(e->name);
    kl_free(e->full);
    kl_free(e->ns);
    kl_free(e);
}

const kl_tenure *kl_election_tenure(kl_election *e) { return kl_leader_tenure(e->leader); }
bool kl_election_leading(kl_election *e) { return kl_leader_leading(e->leader); }
const char *kl_election_holder(const kl_election *e) { return e->holder; }
const char *kl_election_name(const kl_election *e) { return e->full; }

bool kl_election_healthy(kl_election *e, kl_time tolerance)
{
    kl_time lapse = atomic_load(&e->lapse);
    return lapse == KL_NEVER || kl_clock_boot(e->env.clock) <= lapse + tolerance;
}

static kl_leader_now now(kl_election *e)
{
    return (kl_leader_now){kl_clock_boot(e->env.clock), kl_clock_wall(e->env.clock)};
}

/* --- requests ----------------------------------------------------------------------------- */

typedef struct answer {
    kl_election *e;
    uint64_t serial;
    kl_status status;
    const kl_value *lease;
} answer;

static void answered_on_loop(void *arg)
{
    answer *a = arg;
    kl_election *e = a->e;
    if (a->serial == e->serial) {
        e->request = 0;
        step(e, &(kl_leader_input){.kind = KL_LEADER_REPLY, .status = a->status, .lease = a->lease});
    }
    kl_value_unref(a->lease);
    kl_free(a);
    one_less(e);
}

static void answered(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    (void)code;
    answer *a = arg;
    if (st && st != KL_ENOTFOUND && st != KL_ECANCELLED)
        kl_warn("the lease could not be read or written", "lease=%s/%s error=%s", a->e->ns, a->e->name,
            kl_log_quoted(kl_err_message(err)));
    a->status = st;
    a->lease = kl_value_ref(body);
    kl_loop_post(a->e->env.loop, answered_on_loop, a);
}

static void request(kl_election *e, const kl_leader_action *action)
{
    kl_op op;
    kl_op_init(&op,
        action->what == KL_LEADER_GET          ? KL_GET
            : action->what == KL_LEADER_CREATE ? KL_CREATE
                                               : KL_UPDATE,
        KL_LEASE_KIND);
    op.ns = e->ns;
    op.name = e->name;
    op.body = action->body;
    op.urgent = true;
    kl_time left = action->until - now(e).boot;
    op.timeout = action->until == KL_NEVER ? e->renew : left > CALL_MIN ? left : CALL_MIN;
    answer *a = kl_new(answer);
    *a = (answer){.e = e, .serial = ++e->serial};
    one_more(e);
    e->request = e->env.send(e->env.send_arg, &op, answered, a);
}

static void timer_due(void *arg)
{
    kl_election *e = arg;
    e->timer = 0;
    step(e, &(kl_leader_input){.kind = KL_LEADER_TIMER});
}

/* --- waiting for somebody else's lease ---------------------------------------------------- */

static void on_change(void *arg, const kl_value *lease) { kl_election_changed(arg, lease); }

static void expired(void *arg)
{
    kl_election *e = arg;
    e->expiry_timer = 0;
    e->expiry = KL_NEVER;
    if (kl_leader_object(e->leader))
        kl_election_changed(e, kl_leader_object(e->leader));
}

/* Tried once at its time: leader.c decides about retries. */
static void expiry_set(kl_election *e, kl_time at)
{
    if (e->request || at <= now(e).boot)
        at = KL_NEVER;
    if (e->expiry == at)
        return;
    kl_loop_timer_cancel(e->env.loop, e->expiry_timer);
    e->expiry_timer = 0;
    e->expiry = at;
    if (at != KL_NEVER)
        e->expiry_timer = kl_loop_timer(e->env.loop, at - now(e).boot, expired, e);
}

/* The watch lasts from the first wait for another holder until we lead, or stop campaigning. */
static void stand_by(kl_election *e, bool waits)
{
    bool acquiring = kl_leader_acquiring(e->leader);
    expiry_set(e, kl_leader_expiry(e->leader));
    if (acquiring && waits && !e->watch && e->env.client) {
        one_more(e);
        e->watch = kl_lease_watch_new(e->env.client, e->env.loop, e->env.clock, e->ns, e->name, on_change, e);
    } else if (!acquiring && e->watch) {
        kl_lease_watch_end(e->watch, one_less, e);
        e->watch = NULL;
    }
}

/* --- what leader.c decides ---------------------------------------------------------------- */

static void tell(kl_election *e, unsigned events)
{
    if (events & KL_LEADER_NEW) {
        const char *holder = kl_leader_holder(e->leader);
        if (*holder && (!e->holder || strcmp(holder, e->holder)))
            kl_info("leader elected", "lease=%s holder=%s", e->full, kl_log_quoted(holder));
        kl_free(e->holder);
        e->holder = kl_strdup(holder);
    }
    if (events & KL_LEADER_STARTED) {
        kl_metrics_leader(e->env.metrics, e->name, true);
        e->env.started(e->env.arg);
    }
    if (events & KL_LEADER_STOPPED) {
        kl_metrics_leader(e->env.metrics, e->name, false);
        e->env.stopped(e->env.arg);
    }
}

static void over(kl_election *e)
{
    if (e->env.ended)
        e->env.ended(e->env.arg);
    kl_lock(&e->mu);
    e->over = true;
    kl_cond_broadcast(&e->cond);
    kl_unlock(&e->mu);
}

static void step(kl_election *e, const kl_leader_input *in)
{
    kl_leader_action a = kl_leader_step(e->leader, in, now(e));
    atomic_store(&e->lapse, kl_leader_lapse(e->leader));
    if (a.what != KL_LEADER_GO_ON) { /* every new action cancels the open one */
        e->serial++;
        if (e->request)
            e->env.cancel(e->env.send_arg, e->request);
        e->request = 0;
        kl_loop_timer_cancel(e->env.loop, e->timer);
        e->timer = 0;
        /* the renewal could not use the known Lease */
        if (a.what == KL_LEADER_GET && kl_leader_leading(e->leader))
            kl_metrics_leader_slow(e->env.metrics, e->name);
        if (a.what == KL_LEADER_GET || a.what == KL_LEADER_CREATE || a.what == KL_LEADER_UPDATE)
            request(e, &a);
        if (a.what != KL_LEADER_DONE && a.until != KL_NEVER)
            e->timer = kl_loop_timer(e->env.loop, a.until - now(e).boot, timer_due, e);
        /* fired early, while a request is open */
    } else if (in->kind == KL_LEADER_TIMER && a.until != KL_NEVER) {
        e->timer = kl_loop_timer(e->env.loop, a.until - now(e).boot, timer_due, e);
    }
    stand_by(e, a.what == KL_LEADER_WAIT);
    tell(e, a.events);
    if (a.what == KL_LEADER_DONE && e->cancelled)
        over(e);
    else if (a.what == KL_LEADER_DONE) /* lost, and released: campaign again, caches stay warm */
        step(e, &(kl_leader_input){.kind = KL_LEADER_START});
}

void kl_election_start(kl_election *e)
{
    kl_info("campaigning", "lease=%s identity=%s", e->full, e->identity);
    e->cancelled = false;
    kl_lock(&e->mu);
    e->over = false;
    kl_unlock(&e->mu);
    step(e, &(kl_leader_input){.kind = KL_LEADER_START});
}

void kl_election_changed(kl_election *e, const kl_value *lease)
{
    step(e, &(kl_leader_input){.kind = KL_LEADER_CHANGED, .lease = lease});
}

void kl_election_joined(kl_election *e) { step(e, &(kl_leader_input){.kind = KL_LEADER_JOINED}); }

void kl_election_cancel(kl_election *e)
{
    e->cancelled = true;
    step(e, &(kl_leader_input){.kind = KL_LEADER_CANCEL});
}

bool kl_election_wait(kl_election *e)
{
    kl_time until = kl_clock_now(kl_clock_real()) + e->renew + KL_SECONDS(1);
    bool in_time = true;
    kl_lock(&e->mu);
    while (!e->over && in_time)
        in_time = kl_cond_wait_until(&e->cond, &e->mu, until);
    bool ended = e->over;
    kl_unlock(&e->mu);
    return ended;
}
