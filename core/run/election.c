/* election.c - the hands of the election: requests, one timer, and the two callbacks. leader.c is the brain.
 *
 * Each request carries a number; an answer with an old number is not listened to any more. Lease writes do not pass the
 * write door: they are what opens it. */
#include "run/election.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "run/leader.h"

#define LEASE_KIND "coordination.k8s.io/v1/Lease"
/* What a request may take at least, when the deadline is near: an answer that comes too late is no harm. */
#define CALL_MIN KL_MILLISECONDS(100)

/* spec.leaseDurationSeconds is an integer. */
#define LEASE_MIN KL_SECONDS(1)

struct kl_election {
    kl_election_env env;
    char *name, *ns, *identity, *holder;
    kl_leader *leader;
    kl_time renew;
    uint64_t serial, request, timer;           /* loop only */
    bool cancelled;
    kl_mutex mu;
    kl_cond cond;
    size_t outstanding KL_GUARDED_BY(mu);
    bool over KL_GUARDED_BY(mu);
};

static void step(kl_election *e, const kl_leader_input *in);

static uint64_t client_send(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    return kl_client_do(arg, op, done, done_arg);
}

static void client_cancel(void *arg, uint64_t id)
{
    kl_client_cancel(arg, id);
}

static char *default_identity(void)
{
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    struct { kl_time t; pid_t p; } seed = {kl_clock_wall(kl_clock_real()), getpid()};
    return kl_sprintf("%s_%d_%08x", host, (int)seed.p, (unsigned)kl_hash(&seed, sizeof seed));
}

kl_status kl_election_new(const kl_election_env *env, kl_election **out, kl_err *err)
{
    if (env->options.lease && env->options.lease < LEASE_MIN)
        return kl_fail(err, KL_EINVAL, "leader election: the lease duration must be at least 1s: the Lease holds whole seconds");
    kl_election *e = kl_new(kl_election);
    e->env = *env;
    if (!e->env.send) {
        e->env.send = client_send;
        e->env.cancel = client_cancel;
        e->env.send_arg = env->client;
    }
    e->name = kl_strdup(env->options.name);
    e->ns = kl_strdup(env->options.ns ? env->options.ns : "default");
    e->identity = env->options.identity ? kl_strdup(env->options.identity) : default_identity();
    e->renew = env->options.renew ? env->options.renew : KL_LEADER_RENEW;
    kl_mutex_init(&e->mu);
    kl_cond_init(&e->cond);
    kl_status st = kl_leader_new(&(kl_leader_config){.identity = e->identity, .ns = e->ns, .name = e->name, .lease = env->options.lease,
        .renew = env->options.renew, .retry = env->options.retry, .release = true, .seed = kl_hash(e->identity, strlen(e->identity))}, &e->leader, err);
    if (st) {
        kl_election_free(e);
        return st;
    }
    kl_metrics_leader(env->metrics, e->name, false);
    *out = e;
    return KL_OK;
}

void kl_election_free(kl_election *e)
{
    if (!e)
        return;
    kl_lock(&e->mu);
    while (e->outstanding)
        kl_cond_wait(&e->cond, &e->mu);
    kl_unlock(&e->mu);
    if (e->leader)
        kl_leader_free(e->leader);
    kl_cond_fini(&e->cond);
    kl_mutex_fini(&e->mu);
    kl_free(e->holder);
    kl_free(e->identity);
    kl_free(e->name);
    kl_free(e->ns);
    kl_free(e);
}

const kl_tenure *kl_election_tenure(kl_election *e) { return kl_leader_tenure(e->leader); }
bool kl_election_leading(kl_election *e) { return kl_leader_leading(e->leader); }

static kl_leader_now now(kl_election *e)
{
    return (kl_leader_now){kl_clock_boot(e->env.clock), kl_clock_wall(e->env.clock)};
}

/* --- requests ------------------------------------------------------------------------------------------------------------ */

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
    kl_lock(&e->mu);
    e->outstanding--;
    kl_cond_broadcast(&e->cond);
    kl_unlock(&e->mu);
}

static void answered(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    (void)code;
    answer *a = arg;
    if (st && st != KL_ENOTFOUND && st != KL_ECANCELLED)
        kl_warn("the lease could not be asked for or written", "lease=%s/%s error=%s", a->e->ns, a->e->name, kl_log_quoted(kl_err_message(err)));
    a->status = st;
    a->lease = kl_value_ref(body);
    kl_loop_post(a->e->env.loop, answered_on_loop, a);
}

static void request(kl_election *e, const kl_leader_action *action)
{
    kl_op op;
    kl_op_init(&op, action->what == KL_LEADER_GET ? KL_GET : action->what == KL_LEADER_CREATE ? KL_CREATE : KL_UPDATE, LEASE_KIND);
    op.ns = e->ns;
    op.name = e->name;
    op.body = action->body;
    op.urgent = true;
    kl_time left = action->until - now(e).boot;
    op.timeout = action->until == KL_NEVER ? e->renew : left > CALL_MIN ? left : CALL_MIN;
    answer *a = kl_new(answer);
    *a = (answer){.e = e, .serial = ++e->serial};
    kl_lock(&e->mu);
    e->outstanding++;
    kl_unlock(&e->mu);
    e->request = e->env.send(e->env.send_arg, &op, answered, a);
}

static void timer_due(void *arg)
{
    kl_election *e = arg;
    e->timer = 0;
    step(e, &(kl_leader_input){.kind = KL_LEADER_TIMER});
}

/* --- what the brain says ---------------------------------------------------------------------------------------------------- */

static void tell(kl_election *e, unsigned events)
{
    if (events & KL_LEADER_NEW) {
        const char *holder = kl_leader_holder(e->leader);
        if (*holder && (!e->holder || strcmp(holder, e->holder)))
            kl_info("leader elected", "lease=%s/%s holder=%s", e->ns, e->name, holder);
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

static void step(kl_election *e, const kl_leader_input *in)
{
    kl_leader_action a = kl_leader_step(e->leader, in, now(e));
    if (a.what != KL_LEADER_GO_ON) {           /* every new action ends what was open */
        e->serial++;
        if (e->request)
            e->env.cancel(e->env.send_arg, e->request);
        e->request = 0;
        kl_loop_timer_cancel(e->env.loop, e->timer);
        e->timer = 0;
        if (a.what == KL_LEADER_GET || a.what == KL_LEADER_CREATE || a.what == KL_LEADER_UPDATE)
            request(e, &a);
        if (a.what != KL_LEADER_DONE && a.until != KL_NEVER)
            e->timer = kl_loop_timer(e->env.loop, a.until - now(e).boot, timer_due, e);
    } else if (in->kind == KL_LEADER_TIMER && a.until != KL_NEVER) {      /* fired early, while a request is open */
        e->timer = kl_loop_timer(e->env.loop, a.until - now(e).boot, timer_due, e);
    }
    tell(e, a.events);
    if (a.events & KL_LEADER_STOPPED && a.what != KL_LEADER_DONE && !e->cancelled)
        step(e, &(kl_leader_input){.kind = KL_LEADER_JOINED});
    if (a.what == KL_LEADER_DONE && e->cancelled) {
        kl_lock(&e->mu);
        e->over = true;
        kl_cond_broadcast(&e->cond);
        kl_unlock(&e->mu);
    } else if (a.what == KL_LEADER_DONE) {     /* lost: campaign again, caches warm */
        step(e, &(kl_leader_input){.kind = KL_LEADER_START});
    }
}

void kl_election_start(kl_election *e)
{
    kl_info("campaigning", "lease=%s/%s identity=%s", e->ns, e->name, e->identity);
    step(e, &(kl_leader_input){.kind = KL_LEADER_START});
}

static void cancel_on_loop(void *arg)
{
    kl_election *e = arg;
    e->cancelled = true;
    step(e, &(kl_leader_input){.kind = KL_LEADER_CANCEL});
}

void kl_election_release(kl_election *e)
{
    kl_loop_call(e->env.loop, cancel_on_loop, e);
    kl_time until = kl_clock_now(kl_clock_real()) + e->renew + KL_SECONDS(1);
    kl_lock(&e->mu);
    bool in_time = true;
    while (!e->over && in_time)
        in_time = kl_cond_wait_until(&e->cond, &e->mu, until);
    if (!e->over)
        kl_warn("the lease was not released; others wait for it to expire", "lease=%s/%s", e->ns, e->name);
    kl_unlock(&e->mu);
}
