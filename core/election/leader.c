/* leader.c - leader election on a Lease.
 *
 *   idle --start--> acquiring --won--> leading --lost--> stepping down --joined--> (release) --> done --start--> acquiring
 *   leading --cancel--> (release) --> done          acquiring --cancel--> done
 *
 * An attempt is one try to acquire or renew. If the known Lease is ours and valid, it is an update of that.
 * Otherwise, or when the update failed, it is a get, then a create or update if the Lease is free, expired or
 * ours. Acquiring makes one attempt every 1 to 2.2 retry periods; leading makes one every retry period after
 * the last success, and gives up when none succeeded within the renew deadline. */
#include "election/leader.h"

#include <string.h>
#include "base/mem.h"
#include "base/random.h"
#include "model/time.h"

/* client-go's JitterFactor: attempts to acquire are retry * [1, 2.2) apart. */
#define JITTER 1.2

typedef enum phase { IDLE, ACQUIRING, LEADING, STEPPING_DOWN, ENDING, ONCE, DONE } phase;
typedef enum waiting_for {
    NOTHING,
    FAST_UPDATE,
    LEASE,
    CREATED,
    UPDATED,
    RELEASE_LEASE,
    RELEASED
} waiting_for;

struct kl_leader {
    char *identity, *ns, *name;
    kl_time lease, renew, retry;
    bool release;
    kl_random random;
    phase phase;
    waiting_for reply; /* the request that is open */

    kl_leader_now attempt; /* when the running attempt began */
    bool renewing;         /* the attempt began with an update of our own Lease */
    kl_time sent;          /* boottime when the open request was sent */
    kl_time until;         /* the next attempt; KL_NEVER while one runs */
    kl_time tick;          /* leading: when the last attempt of this round was due */
    kl_time give_up;       /* leading: when this round ends */
    kl_time release_end;   /* until when a release is tried again after conflicts */

    const kl_value *object; /* the Lease as the server has it, for the next update */
    const kl_value *seen;   /* the spec of the last get, to see whether the holder renews */
    char *holder;           /* the known record: from a get, or our own write */
    kl_time duration;
    int64_t transitions;
    const kl_value *acquired; /* its acquireTime, or NULL */
    kl_time observed;         /* boottime when the record last changed */

    const kl_value *body; /* the body of the open request */
    int64_t body_transitions;
    const kl_value *body_acquired;
    char *reported; /* the holder of the last KL_LEADER_NEW */
    kl_tenure tenure;
};

kl_status kl_leader_check(const kl_leader_config *c, kl_err *err)
{
    kl_time lease = c->lease ? c->lease : KL_LEADER_LEASE, renew = c->renew ? c->renew : KL_LEADER_RENEW,
            retry = c->retry ? c->retry : KL_LEADER_RETRY;
    char a[KL_DURATION_MAX], b[KL_DURATION_MAX];
    if (!c->identity || !*c->identity)
        return kl_fail(
            err, KL_EINVAL, "leader election: the identity is empty; it must be unique per process");
    if (lease <= 0 || renew <= 0 || retry <= 0)
        return kl_fail(err, KL_EINVAL,
            "leader election: lease duration, renew deadline and retry period must be above zero");
    if (lease <= renew)
        return kl_fail(err, KL_EINVAL,
            "leader election: the lease duration (%s) must be longer than the renew deadline (%s)",
            kl_duration_format(lease, a), kl_duration_format(renew, b));
    if (renew <= (kl_time)(JITTER * (double)retry))
        return kl_fail(err, KL_EINVAL,
            "leader election: the renew deadline (%s) must be longer than 1.2 times the retry period (%s)",
            kl_duration_format(renew, a), kl_duration_format(retry, b));
    return KL_OK;
}

kl_status kl_leader_new(const kl_leader_config *c, kl_leader **out, kl_err *err)
{
    kl_status st = kl_leader_check(c, err);
    if (st)
        return st;
    kl_leader *l = kl_new(kl_leader);
    l->identity = kl_strdup(c->identity);
    l->ns = kl_strdup(c->ns);
    l->name = kl_strdup(c->name ? c->name : "");
    l->lease = c->lease ? c->lease : KL_LEADER_LEASE;
    l->renew = c->renew ? c->renew : KL_LEADER_RENEW;
    l->retry = c->retry ? c->retry : KL_LEADER_RETRY;
    l->release = c->release;
    l->random.state = c->seed;
    l->holder = kl_strdup("");
    l->reported = kl_strdup("");
    l->until = KL_NEVER;
    *out = l;
    return KL_OK;
}

static void keep(const kl_value **at, const kl_value *v)
{
    const kl_value *old = *at;
    *at = kl_value_ref(v);
    kl_value_unref(old);
}

void kl_leader_free(kl_leader *l)
{
    if (!l)
        return;
    keep(&l->object, NULL);
    keep(&l->seen, NULL);
    keep(&l->acquired, NULL);
    keep(&l->body, NULL);
    keep(&l->body_acquired, NULL);
    kl_free(l->identity);
    kl_free(l->ns);
    kl_free(l->name);
    kl_free(l->holder);
    kl_free(l->reported);
    kl_free(l);
}

/* --- the record --------------------------------------------------------------------------- */

static void observe(kl_leader *l, const char *holder, kl_time duration, int64_t transitions,
    const kl_value *acquired, kl_time boot)
{
    char *fresh = kl_strdup(holder ? holder : "");
    kl_free(l->holder);
    l->holder = fresh;
    l->duration = duration;
    l->transitions = transitions;
    keep(&l->acquired, acquired);
    l->observed = boot;
}

/* An int32 in Kubernetes, here from 0; one more still fits. */
static int64_t count_at(const kl_value *spec, const char *field)
{
    int64_t n = kl_value_int_at(spec, 0, field, NULL);
    return n < 0 ? 0 : n < INT32_MAX ? n : INT32_MAX - 1;
}

/* Takes the Lease from a get or the watch. Only a change of the record restarts its time; another
 * resourceVersion does not. */
static void look(kl_leader *l, const kl_value *lease, kl_time boot)
{
    const kl_value *spec = kl_value_at(lease, "spec", NULL);
    keep(&l->object, lease);
    if (l->seen && kl_value_equal(l->seen, spec))
        return;
    keep(&l->seen, spec ? spec : kl_value_null());
    observe(l, kl_value_str_at(spec, "holderIdentity", NULL),
        KL_SECONDS(count_at(spec, "leaseDurationSeconds")), count_at(spec, "leaseTransitions"),
        kl_value_get(spec, "acquireTime"), boot);
}

static bool is_ours(const kl_leader *l) { return !strcmp(l->holder, l->identity); }
static bool is_valid(const kl_leader *l, kl_time boot) { return l->observed + l->duration > boot; }
static bool is_held(const kl_leader *l, kl_time boot)
{
    return *l->holder && is_valid(l, boot) && !is_ours(l);
}

/* The published duration is in whole seconds, and others use it. */
static kl_time published(const kl_leader *l) { return l->lease / KL_SECONDS(1) * KL_SECONDS(1); }

static const kl_value *micro_time(kl_time wall)
{
    char text[KL_TIME_MAX];
    return kl_value_of_str(kl_time_format_micro(wall / KL_SECONDS(1), (int32_t)(wall % KL_SECONDS(1)), text));
}

static const kl_value *with(const kl_value *object, const char *key, const kl_value *value)
{
    const kl_value *out = kl_value_with(object, key, value);
    kl_value_unref(object);
    kl_value_unref(value);
    return out;
}

/* The body of a write: the server's Lease with our five fields; the rest of its spec stays. */
static void compose(kl_leader *l, bool create, const char *holder, int64_t seconds, int64_t transitions,
    const kl_value *acquired, kl_time wall)
{
    const kl_value *object = create ? NULL : kl_value_ref(l->object);
    const kl_value *spec = kl_value_ref(kl_value_at(object, "spec", NULL));
    if (kl_value_type(spec) != KL_OBJECT)
        spec = NULL;
    spec = with(spec, "holderIdentity", kl_value_of_str(holder));
    spec = with(spec, "leaseDurationSeconds", kl_value_of_int(seconds));
    spec = with(spec, "acquireTime", kl_value_ref(acquired));
    spec = with(spec, "renewTime", micro_time(wall));
    spec = with(spec, "leaseTransitions", kl_value_of_int(transitions));
    if (create) {
        const kl_value *metadata = with(NULL, "name", kl_value_of_str(l->name));
        if (l->ns)
            metadata = with(metadata, "namespace", kl_value_of_str(l->ns));
        object = with(NULL, "apiVersion", kl_value_of_str("coordination.k8s.io/v1"));
        object = with(object, "kind", kl_value_of_str("Lease"));
        object = with(object, "metadata", metadata);
    }
    object = with(object, "spec", spec);
    keep(&l->body, object);
    kl_value_unref(object);
    keep(&l->body_acquired, acquired);
    l->body_transitions = transitions;
}

/* --- actions ------------------------------------------------------------------------------ */

static kl_leader_action go_on(const kl_leader *l)
{
    kl_time until = l->reply != NOTHING && l->phase != LEADING ? KL_NEVER
        : l->phase == LEADING && l->give_up < l->until         ? l->give_up
                                                               : l->until;
    return (kl_leader_action){.what = KL_LEADER_GO_ON, .until = until};
}

static kl_leader_action request(kl_leader *l, kl_leader_do what, waiting_for reply, kl_leader_now now)
{
    l->reply = reply;
    l->sent = now.boot;
    l->until = KL_NEVER;
    return (kl_leader_action){
        .what = what,
        .body = what == KL_LEADER_GET ? NULL : l->body,
        .until = l->phase == LEADING ? l->give_up : KL_NEVER,
    };
}

static kl_leader_action wait_until(kl_leader *l, kl_time until)
{
    l->reply = NOTHING;
    l->until = until;
    kl_leader_action a = go_on(l);
    a.what = KL_LEADER_WAIT;
    return a;
}

static kl_leader_action done(kl_leader *l, bool ok, unsigned events)
{
    l->phase = l->phase == ONCE ? IDLE : DONE;
    l->reply = NOTHING;
    l->until = KL_NEVER;
    return (kl_leader_action){.what = KL_LEADER_DONE, .until = KL_NEVER, .ok = ok, .events = events};
}

static unsigned news(kl_leader *l)
{
    if (!strcmp(l->holder, l->reported))
        return 0;
    char *fresh = kl_strdup(l->holder);
    kl_free(l->reported);
    l->reported = fresh;
    return KL_LEADER_NEW;
}

/* --- one attempt -------------------------------------------------------------------------- */

static kl_leader_action attempt_over(kl_leader *l, bool ok, kl_leader_now now);
static kl_leader_action lose(kl_leader *l);

static kl_leader_action write_ours(kl_leader *l, kl_leader_do what, waiting_for reply, int64_t transitions,
    const kl_value *acquired, kl_leader_now now)
{
    const kl_value *since = kl_value_ref(acquired);
    compose(l, what == KL_LEADER_CREATE, l->identity, l->lease / KL_SECONDS(1), transitions, since,
        l->attempt.wall);
    kl_value_unref(since);
    return request(l, what, reply, now);
}

static kl_leader_action write_new(
    kl_leader *l, kl_leader_do what, waiting_for reply, int64_t transitions, kl_leader_now now)
{
    const kl_value *since = micro_time(l->attempt.wall);
    kl_leader_action a = write_ours(l, what, reply, transitions, since, now);
    kl_value_unref(since);
    return a;
}

static kl_leader_action attempt(kl_leader *l, kl_leader_now now)
{
    l->attempt = now;
    l->renewing = l->object && is_ours(l) && is_valid(l, now.boot);
    if (l->renewing)
        return write_ours(l, KL_LEADER_UPDATE, FAST_UPDATE, l->transitions, l->acquired, now);
    return request(l, KL_LEADER_GET, LEASE, now);
}

/* The state of the Lease is known: acquire it, if that is allowed. */
static kl_leader_action judge(kl_leader *l, const kl_value *lease, kl_leader_now now)
{
    look(l, lease, now.boot);
    /* Another process held it while we believed to lead: writes stop at once. client-go would silently take
     * it back if it were free; our runs belong to an old term, so we stop, and campaign again. */
    if (l->phase == LEADING && !is_ours(l))
        kl_tenure_end(&l->tenure);
    if (l->phase == LEADING && !is_ours(l) && !is_held(l, l->attempt.boot))
        return lose(l);
    if (is_held(l, l->attempt.boot))
        return attempt_over(l, false, now);
    const kl_value *spec = kl_value_at(lease, "spec", NULL);
    int64_t transitions = count_at(spec, "leaseTransitions");
    if (is_ours(l))
        return write_ours(l, KL_LEADER_UPDATE, UPDATED, transitions, kl_value_get(spec, "acquireTime"), now);
    return write_new(l, KL_LEADER_UPDATE, UPDATED, transitions + 1, now);
}

/* Our write was accepted: it is ours, counted from before it was sent. The deadline is half way between the
 * renew deadline, after which the loop gives up, and the end of the lease, after which others may take it. */
static kl_leader_action written(kl_leader *l, const kl_value *lease, kl_leader_now now)
{
    if (lease)
        keep(&l->object, lease);
    observe(l, l->identity, published(l), l->body_transitions, l->body_acquired, now.boot);
    kl_time renew = l->renew < published(l) ? l->renew : published(l);
    kl_time until = l->sent + (renew + published(l)) / 2;
    if (l->phase == LEADING)
        kl_tenure_extend(&l->tenure, until);
    else
        kl_tenure_begin(&l->tenure, l->transitions, until);
    return attempt_over(l, true, now);
}

/* --- the loop ----------------------------------------------------------------------------- */

static kl_leader_action round_begin(kl_leader *l, kl_leader_now now)
{
    l->tick = now.boot;
    l->give_up = now.boot + l->renew;
    return attempt(l, now);
}

static kl_leader_action stop_leading(kl_leader *l, phase next, unsigned events)
{
    l->phase = next;
    l->reply = NOTHING;
    l->until = KL_NEVER;
    kl_tenure_end(&l->tenure);
    return (kl_leader_action){
        .what = KL_LEADER_WAIT, .until = KL_NEVER, .events = events | KL_LEADER_STOPPED};
}

static kl_leader_action lose(kl_leader *l) { return stop_leading(l, STEPPING_DOWN, news(l)); }

static kl_leader_action attempt_over(kl_leader *l, bool ok, kl_leader_now now)
{
    kl_leader_action a;
    switch (l->phase) {
    case ACQUIRING:
        if (!ok) {
            a = wait_until(
                l, now.boot + l->retry + (kl_time)(JITTER * (double)l->retry * kl_random_unit(&l->random)));
            a.events = news(l);
            return a;
        }
        l->phase = LEADING;
        a = round_begin(l, now);
        a.events |= news(l) | KL_LEADER_STARTED;
        return a;
    case LEADING:
        if (ok) {
            l->give_up = KL_NEVER;
            a = wait_until(l, now.boot + l->retry);
            a.events = news(l);
            return a;
        }
        if (now.boot >= l->give_up)
            return lose(l);
        l->tick += l->retry;
        return wait_until(l, l->tick > now.boot ? l->tick : now.boot);
    default: return done(l, ok, news(l));
    }
}

static kl_leader_action timer(kl_leader *l, kl_leader_now now)
{
    if (l->phase == LEADING && now.boot >= l->give_up)
        return lose(l);
    if (l->reply != NOTHING)
        return go_on(l);
    if (now.boot < l->until) /* early: the timer has fired before its time, so it is requested again */
        return wait_until(l, l->until);
    if (l->phase == LEADING && l->give_up == KL_NEVER)
        return round_begin(l, now);
    return l->phase == LEADING || l->phase == ACQUIRING ? attempt(l, now) : go_on(l);
}

/* --- release ------------------------------------------------------------------------------ */

static kl_leader_action release(kl_leader *l, kl_leader_now now)
{
    return request(l, KL_LEADER_GET, RELEASE_LEASE, now);
}

static kl_leader_action end(kl_leader *l, kl_leader_now now)
{
    l->phase = ENDING;
    l->release_end = now.boot + l->renew;
    return l->release ? release(l, now) : done(l, true, 0);
}

/* Releases the Lease only if it is ours on the server too: writes an empty holder and a short duration. */
static kl_leader_action release_judge(kl_leader *l, const kl_value *lease, kl_leader_now now)
{
    const char *holder = kl_value_str_at(lease, "spec", "holderIdentity", NULL);
    keep(&l->object, lease);
    if (!is_ours(l) || !holder || strcmp(holder, l->identity))
        return done(l, true, 0);
    const kl_value *since = micro_time(now.wall);
    compose(l, false, "", 1, l->transitions, since, now.wall);
    kl_value_unref(since);
    return request(l, KL_LEADER_UPDATE, RELEASED, now);
}

static kl_leader_action released(kl_leader *l, const kl_leader_input *in, kl_leader_now now)
{
    if (in->status == KL_ECONFLICT && l->phase == ENDING && now.boot < l->release_end)
        return release(l, now);
    if (in->status)
        return done(l, false, 0);
    if (in->lease)
        keep(&l->object, in->lease);
    kl_tenure_end(&l->tenure);
    observe(l, "", KL_SECONDS(1), l->body_transitions, l->body_acquired, now.boot);
    return done(l, true, 0);
}

/* --- inputs ------------------------------------------------------------------------------- */

static kl_leader_action reply(kl_leader *l, const kl_leader_input *in, kl_leader_now now)
{
    waiting_for what = l->reply;
    l->reply = NOTHING;
    switch (what) {
    case FAST_UPDATE: return in->status ? request(l, KL_LEADER_GET, LEASE, now) : written(l, in->lease, now);
    case LEASE:
        if (in->status == KL_ENOTFOUND && l->renewing) /* deleted by another process: created again */
            return write_ours(l, KL_LEADER_CREATE, CREATED, l->transitions, l->acquired, now);
        if (in->status == KL_ENOTFOUND)
            return write_new(l, KL_LEADER_CREATE, CREATED, 0, now);
        return in->status ? attempt_over(l, false, now) : judge(l, in->lease, now);
    case CREATED:
    case UPDATED: return in->status ? attempt_over(l, false, now) : written(l, in->lease, now);
    case RELEASE_LEASE: return in->status ? done(l, false, 0) : release_judge(l, in->lease, now);
    case RELEASED: return released(l, in, now);
    case NOTHING: break;
    }
    return go_on(l);
}

/* A standby that watches the Lease need not wait for its next attempt when the Lease was released or
 * deleted. */
static kl_leader_action changed(kl_leader *l, const kl_value *lease, kl_leader_now now)
{
    if (l->phase != ACQUIRING || l->reply != NOTHING)
        return go_on(l);
    if (!lease)
        return attempt(l, now);
    l->attempt = now;
    l->renewing = false;
    look(l, lease, now.boot);
    if (!is_held(l, now.boot))
        return judge(l, lease, now);
    kl_leader_action a = go_on(l);
    a.events = news(l);
    return a;
}

static kl_leader_action cancel(kl_leader *l, kl_leader_now now)
{
    unsigned stopped = 0;
    if (l->phase == LEADING || l->phase == STEPPING_DOWN) {
        if (l->phase == LEADING)
            stopped = stop_leading(l, ENDING, 0).events;
        kl_leader_action a = end(l, now);
        a.events |= stopped;
        return a;
    }
    return l->phase == ENDING ? go_on(l) : done(l, true, l->phase == ACQUIRING ? KL_LEADER_STOPPED : 0);
}

kl_leader_action kl_leader_step(kl_leader *l, const kl_leader_input *in, kl_leader_now now)
{
    bool resting = l->phase == IDLE || l->phase == DONE;
    switch (in->kind) {
    case KL_LEADER_START:
        if (!resting)
            break;
        l->phase = ACQUIRING;
        return attempt(l, now);
    case KL_LEADER_TRY:
    case KL_LEADER_RELEASE:
        if (!resting)
            break;
        l->phase = ONCE;
        return in->kind == KL_LEADER_TRY ? attempt(l, now) : release(l, now);
    case KL_LEADER_TIMER: return timer(l, now);
    case KL_LEADER_REPLY:
        /* An answer that comes after the end of the round comes too late. */
        if (l->phase == LEADING && now.boot >= l->give_up && in->status)
            return lose(l);
        return reply(l, in, now);
    case KL_LEADER_CHANGED: return changed(l, in->lease, now);
    case KL_LEADER_CANCEL: return cancel(l, now);
    case KL_LEADER_JOINED: return l->phase == STEPPING_DOWN ? end(l, now) : go_on(l);
    }
    return go_on(l);
}

/* --- looking at it ------------------------------------------------------------------------ */

kl_time kl_leader_deadline(const kl_leader *l) { return atomic_load(&l->tenure.until); }
const kl_tenure *kl_leader_tenure(const kl_leader *l) { return &l->tenure; }
const char *kl_leader_holder(const kl_leader *l) { return l->holder; }
bool kl_leader_leading(const kl_leader *l) { return l->phase == LEADING; }
bool kl_leader_acquiring(const kl_leader *l) { return l->phase == ACQUIRING; }
const kl_value *kl_leader_object(const kl_leader *l) { return l->object; }

kl_time kl_leader_expiry(const kl_leader *l)
{
    return l->phase == ACQUIRING && *l->holder && !is_ours(l) ? l->observed + l->duration : KL_NEVER;
}

kl_time kl_leader_lapse(const kl_leader *l)
{
    return l->phase == LEADING || l->phase == STEPPING_DOWN ? l->observed + l->lease : KL_NEVER;
}

bool kl_leader_healthy(const kl_leader *l, kl_time boot, kl_time tolerance)
{
    return !is_ours(l) || boot - l->observed <= l->lease + tolerance;
}
