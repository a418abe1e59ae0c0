/* sharding.c - the hands of sharding: one informer of the group's Leases, our own requests, the fencing of
 * who is silent, a timer, and the gates. shard.c is the brain. Lease writes do not pass the write door:
 * they are what opens it. */
#include "sharding/sharding.h"

#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "informers/informers.h"
#include "election/leader.h"
#include "metrics/metrics.h"
#include "sharding/shard.h"
#include "sharding/shard_lease.h"

#define LEASE_KIND "coordination.k8s.io/v1/Lease"
/* spec.leaseDurationSeconds is an integer. */
#define LEASE_MIN KL_SECONDS(1)
/* A request that is not answered for two retry periods is asked again; never sooner than this. */
#define CALL_MIN KL_MILLISECONDS(500)

typedef struct part {
    kl_gate *gate;
    kl_shard_by by;
    bool in;
    void (*moved)(void *arg, kl_claims *before);
    void *arg;
} part;

struct kl_sharding {
    kl_sharding_env env;
    char *group, *ns, *identity;
    kl_time renew, retry;
    kl_shard *brain;
    kl_tenure tenure;
    kl_informers *informers;
    kl_informer *leases; /* borrowed from informers */
    kl_subscription *sub;
    atomic_bool news, told_drained; /* a picture, a drained gate: on its way to the loop */
    uint64_t timer;
    bool closed;  /* being freed */
    bool refused; /* the server answered 403, and we logged that */
    part **parts; /* loop only; gates are never freed before us */
    size_t n_parts;
    kl_mutex mu;
    kl_cond cond;
    size_t outstanding KL_GUARDED_BY(mu); /* requests, and posts to the loop */
    bool over KL_GUARDED_BY(mu);
    kl_sharding_state state KL_GUARDED_BY(mu);
    kl_claims *claims KL_GUARDED_BY(mu);
};

static void step(kl_sharding *s, const kl_shard_input *in);

static void one_more(kl_sharding *s)
{
    kl_lock(&s->mu);
    s->outstanding++;
    kl_unlock(&s->mu);
}

static void one_less(kl_sharding *s)
{
    kl_lock(&s->mu);
    s->outstanding--;
    kl_cond_broadcast(&s->cond);
    kl_unlock(&s->mu);
}

/* --- birth and death ---------------------------------------------------------------------- */

kl_status kl_sharding_new(const kl_sharding_env *env, kl_sharding **out, kl_err *err)
{
    if (env->lease && env->lease < LEASE_MIN)
        return kl_fail(err, KL_EINVAL,
            "sharding: the lease duration must be at least 1s: the Lease holds whole seconds");
    kl_sharding *s = kl_new(kl_sharding);
    s->env = *env;
    s->group = kl_strdup(env->group);
    s->ns = kl_strdup(env->ns ? env->ns : "default");
    s->identity = kl_strdup(env->identity);
    s->renew = env->renew ? env->renew : KL_LEADER_RENEW;
    s->retry = env->retry ? env->retry : KL_LEADER_RETRY;
    kl_mutex_init(&s->mu);
    kl_cond_init(&s->cond);
    s->over = true;
    struct {
        kl_time t;
        const void *p;
        uint64_t h;
    } seed = {kl_clock_wall(kl_clock_real()), s, kl_hash(s->identity, strlen(s->identity))};
    kl_status st = kl_shard_new(&(kl_shard_config){.group = s->group,
                                    .ns = s->ns,
                                    .identity = s->identity,
                                    .lease = env->lease,
                                    .renew = env->renew,
                                    .retry = env->retry,
                                    .max = env->max,
                                    .seed = kl_hash(&seed, sizeof seed)},
        &s->brain, err);
    if (st) {
        kl_sharding_free(s);
        return st;
    }
    *out = s;
    return KL_OK;
}

static void quiesce(void *arg)
{
    kl_sharding *s = arg;
    s->closed = true;
    kl_loop_timer_cancel(s->env.loop, s->timer);
    s->timer = 0;
}

void kl_sharding_free(kl_sharding *s)
{
    if (!s)
        return;
    if (s->sub)
        kl_informer_unsubscribe(s->sub);
    kl_loop_call(s->env.loop, quiesce, s);
    kl_lock(&s->mu);
    while (s->outstanding) /* requests that were sent: each ends by its timeout */
        kl_cond_wait(&s->cond, &s->mu);
    kl_unlock(&s->mu);
    if (s->informers)
        kl_informers_free(s->informers);
    for (size_t i = 0; i < s->n_parts; i++) {
        kl_gate_free(s->parts[i]->gate);
        kl_free(s->parts[i]);
    }
    kl_free(s->parts);
    kl_claims_unref(s->claims);
    kl_shard_free(s->brain);
    kl_cond_fini(&s->cond);
    kl_mutex_fini(&s->mu);
    kl_free(s->group);
    kl_free(s->ns);
    kl_free(s->identity);
    kl_free(s);
}

const char *kl_sharding_name(const kl_sharding *s) { return kl_shard_name(s->brain); }
const kl_tenure *kl_sharding_tenure(kl_sharding *s) { return &s->tenure; }

/* --- requests ----------------------------------------------------------------------------- */

typedef struct answer {
    kl_sharding *s;
    uint64_t serial;
    kl_status status;
    const kl_value *lease;
    char *message;
    bool fence;
} answer;

static void complain(kl_sharding *s, const answer *a)
{
    bool forbidden = a->status == KL_EFORBIDDEN;
    if (forbidden && s->refused)
        return;
    s->refused = forbidden;
    if (a->fence)
        kl_warn("the lease of a silent replica could not be deleted; its keys wait", "error=%s",
            kl_log_quoted(a->message));
    else
        kl_warn("the lease of this replica could not be acquired or renewed", "lease=%s/%s error=%s", s->ns,
            kl_shard_name(s->brain), kl_log_quoted(a->message));
}

static void answered_on_loop(void *arg)
{
    answer *a = arg;
    kl_sharding *s = a->s;
    if (a->status && a->status != KL_ENOTFOUND && a->status != KL_ECONFLICT && a->status != KL_ECANCELLED)
        complain(s, a);
    else
        s->refused = false;
    if (a->fence && !a->status)
        kl_warn("the lease of a silent replica expired; its keys move to others", "lease=%s", a->message);
    step(s,
        &(kl_shard_input){
            .kind = KL_SHARD_REPLY, .serial = a->serial, .status = a->status, .lease = a->lease});
    kl_value_unref(a->lease);
    kl_free(a->message);
    kl_free(a);
    one_less(s);
}

static void answered(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    (void)code;
    answer *a = arg;
    a->status = st;
    a->lease = kl_value_ref(body);
    if (st) {
        kl_free(a->message);
        a->message = kl_strdup(kl_err_message(err));
    }
    kl_loop_post(a->s->env.loop, answered_on_loop, a);
}

static void request(kl_sharding *s, const kl_shard_request *r, bool fence)
{
    static const kl_verb verbs[] = {[KL_SHARD_CREATE] = KL_CREATE,
        [KL_SHARD_UPDATE] = KL_UPDATE,
        [KL_SHARD_GET] = KL_GET,
        [KL_SHARD_DELETE] = KL_DELETE};
    if (r->what == KL_SHARD_NOTHING)
        return;
    kl_op op;
    kl_op_init(&op, verbs[r->what], LEASE_KIND);
    op.ns = s->ns;
    op.name = r->name;
    op.body = r->body;
    if (r->what == KL_SHARD_DELETE) {
        op.uid = r->uid;
        op.precondition_rv = r->rv;
    }
    op.urgent = true;
    op.timeout = s->retry * 2 > CALL_MIN ? s->retry * 2 : CALL_MIN;
    answer *a = kl_new(answer);
    *a = (answer){.s = s, .serial = r->serial, .fence = fence, .message = kl_strdup(r->name)};
    one_more(s);
    (void)kl_client_do(s->env.client, &op, answered, a);
}

/* --- gates -------------------------------------------------------------------------------- */

static bool all_drained(kl_sharding *s)
{
    for (size_t i = 0; i < s->n_parts; i++)
        if (!kl_gate_drained(s->parts[i]->gate))
            return false;
    return true;
}

static void tell_moved(kl_sharding *s, kl_claims *before)
{
    for (size_t i = 0; i < s->n_parts; i++)
        if (s->parts[i]->in && s->parts[i]->moved)
            s->parts[i]->moved(s->parts[i]->arg, before);
}

static void drained_on_loop(void *arg)
{
    kl_sharding *s = arg;
    atomic_store(&s->told_drained, false);
    bool all = !s->closed && all_drained(s);
    if (all)
        tell_moved(s, s->claims);
    if (all)
        step(s, &(kl_shard_input){.kind = KL_SHARD_DRAINED, .serial = kl_shard_target(s->brain)});
    one_less(s);
}

static void gate_drained(void *arg)
{
    kl_sharding *s = arg;
    if (atomic_exchange(&s->told_drained, true))
        return;
    one_more(s);
    kl_loop_post(s->env.loop, drained_on_loop, s);
}

/* New claims, for every gate first: nobody is told of what another may still refuse. */
static void install(kl_sharding *s)
{
    kl_claims *fresh = kl_shard_claims(s->brain);
    kl_lock(&s->mu);
    kl_claims *before = s->claims;
    s->claims = kl_claims_ref(fresh);
    kl_unlock(&s->mu);
    for (size_t i = 0; i < s->n_parts; i++)
        (void)kl_gate_set(s->parts[i]->gate, fresh);
    tell_moved(s, before);
    kl_claims_unref(before);
    kl_claims_unref(fresh);
    if (all_drained(s))
        gate_drained(s);
}

static void tell_controllers(kl_sharding *s)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < s->n_parts; i++)
        if (s->parts[i]->in)
            kl_build_kstr(b, kl_gate_controller(s->parts[i]->gate),
                s->parts[i]->by == KL_SHARD_NAMESPACE ? "namespace" : "key");
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    step(s, &(kl_shard_input){.kind = KL_SHARD_CONTROLLERS, .lease = v});
    kl_value_unref(v);
}

kl_gate *kl_sharding_enter(kl_sharding *s, const char *controller, kl_shard_by by,
    void (*moved)(void *arg, kl_claims *before), void *arg)
{
    part *p = NULL;
    for (size_t i = 0; i < s->n_parts && !p; i++)
        if (!strcmp(kl_gate_controller(s->parts[i]->gate), controller))
            p = s->parts[i];
    if (!p) {
        p = kl_new(part);
        p->gate = kl_gate_new(controller, gate_drained, s);
        s->parts = kl_realloc(s->parts, (s->n_parts + 1) * sizeof *s->parts);
        s->parts[s->n_parts++] = p;
        kl_claims *c = kl_shard_claims(s->brain);
        (void)kl_gate_set(p->gate, c);
        kl_claims_unref(c);
    }
    p->by = by;
    p->in = true;
    p->moved = moved;
    p->arg = arg;
    tell_controllers(s);
    return p->gate;
}

void kl_sharding_leave(kl_sharding *s, kl_gate *g)
{
    for (size_t i = 0; i < s->n_parts; i++)
        if (s->parts[i]->gate == g) {
            s->parts[i]->in = false;
            s->parts[i]->moved = NULL;
        }
    tell_controllers(s);
}

/* --- the brain ---------------------------------------------------------------------------- */

static void timer_due(void *arg)
{
    kl_sharding *s = arg;
    s->timer = 0;
    step(s, &(kl_shard_input){.kind = KL_SHARD_TIMER});
}

static void remember(kl_sharding *s)
{
    kl_lock(&s->mu);
    kl_sharding_state *t = &s->state;
    bool was_settled = t->settled;
    *t = (kl_sharding_state){.members = kl_shard_members(s->brain),
        .known = kl_shard_known(s->brain),
        .member = kl_shard_deadline(s->brain) > 0,
        .settled = kl_shard_settled(s->brain)};
    bool tell = t->settled && !was_settled;
    size_t members = t->members, known = t->known;
    kl_unlock(&s->mu);
    if (tell)
        kl_info("the replicas agree on the distribution of keys", "lease=%s replicas=%zu present=%zu",
            kl_shard_name(s->brain), members, known);
}

static void step(kl_sharding *s, const kl_shard_input *in)
{
    if (s->closed)
        return;
    kl_shard_now now = {kl_clock_boot(s->env.clock), kl_clock_wall(s->env.clock)};
    kl_shard_action a = kl_shard_step(s->brain, in, now);
    kl_time until = kl_shard_deadline(s->brain);
    if (a.events & KL_SHARD_STARTED)
        kl_tenure_begin(&s->tenure, (int64_t)kl_shard_epoch(s->brain), until);
    else
        kl_tenure_extend(&s->tenure, until); /* 0: our time has ended */
    kl_loop_timer_cancel(s->env.loop, s->timer);
    s->timer = a.until == KL_NEVER
        ? 0
        : kl_loop_timer(s->env.loop, a.until > now.boot ? a.until - now.boot : 0, timer_due, s);
    request(s, &a.own, false);
    request(s, &a.fence, true);
    remember(s);
    if (a.events & KL_SHARD_CHANGED)
        install(s);
    if (a.events & KL_SHARD_STARTED)
        s->env.started(s->env.arg);
    if (a.events & KL_SHARD_STOPPED)
        s->env.stopped(s->env.arg);
    if (a.events & KL_SHARD_GONE) {
        s->env.ended(s->env.arg);
        kl_lock(&s->mu);
        s->over = true;
        kl_cond_broadcast(&s->cond);
        kl_unlock(&s->mu);
    }
}

/* --- the picture -------------------------------------------------------------------------- */

static void look(void *arg)
{
    kl_sharding *s = arg;
    atomic_store(&s->news, false);
    kl_objects all = {0};
    if (kl_informer_synced(s->leases) && !kl_informer_list(s->leases, &(kl_query){0}, &all, NULL))
        step(s, &(kl_shard_input){.kind = KL_SHARD_PICTURE, .leases = all.v, .n = all.len});
    kl_objects_fini(&all);
    one_less(s);
}

static void something_new(void *arg)
{
    kl_sharding *s = arg;
    if (atomic_exchange(&s->news, true))
        return;
    one_more(s);
    kl_loop_post(s->env.loop, look, s);
}

static void on_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    (void)type, (void)old, (void)now, (void)flags;
    something_new(arg);
}

static void on_trouble(void *arg, kl_informer *i)
{
    (void)arg;
    kl_informer_stats st;
    kl_informer_stats_get(i, &st);
    if (st.message)
        kl_warn("the leases of the other replicas cannot be watched", "error=%s", kl_log_quoted(st.message));
    kl_informer_stats_fini(&st);
}

/* --- what the owner says ------------------------------------------------------------------ */

void kl_sharding_start(kl_sharding *s)
{
    kl_lock(&s->mu);
    s->over = false;
    kl_unlock(&s->mu);
    kl_info("joining the replicas that share keys", "lease=%s/%s identity=%s", s->ns, kl_shard_name(s->brain),
        s->identity);
    if (!s->informers) {
        char *group = kl_shard_group_label(s->group), *labels = kl_sprintf(KL_SHARD_LABEL "=%s", group);
        kl_err err = KL_ERR_INIT;
        s->informers = kl_informers_new(&(kl_informers_options){
            .client = s->env.client, .clock = s->env.clock, .on_trouble = on_trouble, .arg = s});
        if (kl_informers_acquire(s->informers,
                &(kl_informer_want){.kind = LEASE_KIND, .ns = s->ns, .labels = labels}, &s->leases, &err))
            kl_mem_die(kl_err_message(&err)); /* the kind is a constant */
        s->sub = kl_informer_subscribe(
            s->leases, &(kl_handler){.on_event = on_event, .on_synced = something_new, .arg = s});
        kl_informers_start(s->informers);
        kl_free(labels);
        kl_free(group);
    }
    step(s, &(kl_shard_input){.kind = KL_SHARD_START});
}

void kl_sharding_joined(kl_sharding *s) { step(s, &(kl_shard_input){.kind = KL_SHARD_JOINED}); }

void kl_sharding_cancel(kl_sharding *s) { step(s, &(kl_shard_input){.kind = KL_SHARD_LEAVE}); }

bool kl_sharding_wait(kl_sharding *s)
{
    kl_time until = kl_clock_now(kl_clock_real()) + s->renew + KL_SECONDS(1);
    kl_lock(&s->mu);
    bool in_time = true;
    while (!s->over && in_time)
        in_time = kl_cond_wait_until(&s->cond, &s->mu, until);
    bool over = s->over;
    kl_unlock(&s->mu);
    return over;
}

void kl_sharding_state_get(kl_sharding *s, const char *controller, kl_sharding_state *out)
{
    kl_lock(&s->mu);
    *out = s->state;
    kl_claims *c = kl_claims_ref(s->claims);
    kl_unlock(&s->mu);
    out->share = controller ? kl_claims_share(c, controller) : 0;
    kl_claims_unref(c);
}

bool kl_sharding_healthy(kl_sharding *s, kl_time tolerance)
{
    kl_time until = atomic_load(&s->tenure.until);
    return !until || kl_clock_boot(s->env.clock) <= until + tolerance;
}

void kl_sharding_metrics(kl_sharding *s, kl_buf *out)
{
    kl_metrics_head(out, "kubelua_shard_members", "gauge",
        "Replicas that share the keys, as seen by this one; 0 while it is not one of them");
    kl_metrics_sample(out, "kubelua_shard_members", s->state.member ? (double)s->state.members : 0, NULL);
    kl_metrics_head(out, "kubelua_shard_share", "gauge", "The share of all keys assigned to this replica");
    for (size_t i = 0; i < s->n_parts; i++)
        if (s->parts[i]->in)
            kl_metrics_sample(out, "kubelua_shard_share",
                kl_claims_share(s->claims, kl_gate_controller(s->parts[i]->gate)), "controller",
                kl_gate_controller(s->parts[i]->gate), NULL);
    kl_metrics_head(out, "kubelua_shard_namespaces", "gauge",
        "Namespaces in the caches of a controller that caches only its own");
    for (size_t i = 0; i < s->n_parts; i++)
        if (s->parts[i]->in && kl_gate_covered(s->parts[i]->gate) >= 0)
            kl_metrics_sample(out, "kubelua_shard_namespaces", kl_gate_covered(s->parts[i]->gate),
                "controller", kl_gate_controller(s->parts[i]->gate), NULL);
    kl_metrics_head(
        out, "kubelua_shard_moves_total", "counter", "Keys that moved to this replica, or away from it");
    for (size_t i = 0; i < s->n_parts; i++)
        kl_metrics_sample(out, "kubelua_shard_moves_total", (double)kl_gate_moves(s->parts[i]->gate),
            "controller", kl_gate_controller(s->parts[i]->gate), NULL);
}
