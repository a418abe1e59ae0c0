/* shard.c - the brain of sharding. The header tells the protocol.
 *
 * Of our own there are up to four publications: the `confirmed` one was in a picture of all Leases, the
 * `published` one was accepted by the server, the `pending` one is under way (and stays so until we know
 * what became of it), the `target` is what we want. They follow each other; while they differ, only what
 * all of them give us is ours. */
#include "sharding/shard.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/time.h"
#include "election/leader.h"
#include "sharding/shard_lease.h"

typedef enum phase { OUT, JOINING, IN, LAPSED, LEAVING, GONE } phase;

typedef struct own_publication {
    kl_publication p;
    uint64_t seq; /* 0: there is none */
} own_publication;

typedef struct other {
    kl_shard_lease lease;
    kl_time observed; /* boottime of its last change */
} other;

struct kl_shard {
    char *group, *ns, *identity, *name, *incarnation;
    kl_time lease, renew, retry;
    size_t max;
    uint64_t seed, epoch, seq, serials;
    phase phase;
    _Atomic kl_time deadline;
    const kl_value *controllers;

    const kl_value *own; /* our Lease as the server has it, or NULL */
    own_publication confirmed, published, pending, target;
    uint64_t drained;  /* the target's seq for which nothing unwanted runs */
    bool pictured;     /* a picture has arrived */
    bool seen;         /* a picture had our Lease of this incarnation */
    uint64_t seen_seq; /* seq of our Lease in the last picture; 0: it was not there */

    kl_shard_do asked; /* our own open request */
    uint64_t asked_serial;
    kl_time sent;
    const kl_value *body;
    bool look;    /* we do not know what the server has: ask first */
    bool clean;   /* delete what is left of our Lease before we make a new one */
    kl_time next; /* the next request about our own Lease */
    kl_time leave_end;

    bool fencing;
    uint64_t fence_serial;
    kl_time fence_next;
    char *fence_name, *fence_uid, *fence_rv;

    other *others;
    size_t n_others;
    unsigned events;
};

/* --- small things ------------------------------------------------------------------------- */

static void keep(const kl_value **at, const kl_value *v)
{
    const kl_value *old = *at;
    *at = kl_value_ref(v);
    kl_value_unref(old);
}

static void own_set(own_publication *at, const own_publication *p)
{
    own_publication old = *at;
    *at = p ? (own_publication){{kl_ring_ref(p->p.ring), p->p.me, kl_value_ref(p->p.controllers)}, p->seq}
            : (own_publication){{0}};
    kl_ring_unref(old.p.ring);
    kl_value_unref(old.p.controllers);
}

static bool own_same(const own_publication *a, const own_publication *b)
{
    return a->seq && b->seq && a->p.ring == b->p.ring && kl_value_equal(a->p.controllers, b->p.controllers);
}

static void text_set(char **at, const char *text)
{
    char *fresh = kl_strdup(text);
    kl_free(*at);
    *at = fresh;
}

static kl_time published_lease(const kl_shard *s) { return s->lease / KL_SECONDS(1) * KL_SECONDS(1); }

/* Half way between the renew deadline and the end of the lease, after which others may delete it. */
static kl_time good_for(const kl_shard *s)
{
    kl_time lease = published_lease(s), renew = s->renew < lease ? s->renew : lease;
    return (renew + lease) / 2;
}

kl_status kl_shard_new(const kl_shard_config *c, kl_shard **out, kl_err *err)
{
    kl_status st = kl_leader_check(
        &(kl_leader_config){.identity = c->identity, .lease = c->lease, .renew = c->renew, .retry = c->retry},
        err);
    if (st)
        return st;
    kl_shard *s = kl_new(kl_shard);
    s->group = kl_shard_group_label(c->group);
    s->ns = kl_strdup(c->ns ? c->ns : "default");
    s->identity = kl_strdup(c->identity);
    s->name = kl_shard_lease_name(c->group, c->identity);
    s->lease = c->lease ? c->lease : KL_LEADER_LEASE;
    s->renew = c->renew ? c->renew : KL_LEADER_RENEW;
    s->retry = c->retry ? c->retry : KL_LEADER_RETRY;
    s->max = c->max;
    s->seed = c->seed;
    *out = s;
    return KL_OK;
}

void kl_shard_free(kl_shard *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_others; i++)
        kl_shard_lease_fini(&s->others[i].lease);
    own_set(&s->confirmed, NULL);
    own_set(&s->published, NULL);
    own_set(&s->pending, NULL);
    own_set(&s->target, NULL);
    keep(&s->controllers, NULL);
    keep(&s->own, NULL);
    keep(&s->body, NULL);
    char *texts[] = {
        s->group, s->ns, s->identity, s->name, s->incarnation, s->fence_name, s->fence_uid, s->fence_rv};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        kl_free(texts[i]);
    kl_free(s->others);
    kl_free(s);
}

kl_time kl_shard_deadline(const kl_shard *s) { return atomic_load(&((kl_shard *)s)->deadline); }
uint64_t kl_shard_target(const kl_shard *s) { return s->target.seq; }
uint64_t kl_shard_epoch(const kl_shard *s) { return s->epoch; }
const char *kl_shard_name(const kl_shard *s) { return s->name; }
size_t kl_shard_known(const kl_shard *s) { return s->n_others + (s->phase == IN); }
size_t kl_shard_members(const kl_shard *s)
{
    return s->target.p.ring ? kl_ring_members(s->target.p.ring) : 0;
}

bool kl_shard_settled(const kl_shard *s)
{
    bool all = s->phase == IN && own_same(&s->confirmed, &s->published) && own_same(&s->published, &s->target)
        && !s->pending.seq;
    for (size_t i = 0; i < s->n_others; i++)
        all = all && s->others[i].lease.p.ring == s->target.p.ring;
    return all;
}

kl_claims *kl_shard_claims(kl_shard *s)
{
    if (s->phase != IN || !s->confirmed.seq)
        return kl_claims_new(NULL, 0, NULL, 0);
    const own_publication *all[] = {&s->confirmed, &s->published, &s->pending, &s->target};
    kl_publication own[4];
    size_t n = 0;
    for (size_t i = 0; i < 4; i++) {
        if (!all[i]->seq || (i < 3 && own_same(all[i], &s->target)))
            continue;
        own[n++] = all[i]->p;
    }
    kl_publication *others = kl_new_array(kl_publication, s->n_others + 1);
    for (size_t i = 0; i < s->n_others; i++)
        others[i] = s->others[i].lease.p;
    kl_claims *c = kl_claims_new(own, n, others, s->n_others);
    kl_free(others);
    return c;
}

/* --- what we want ------------------------------------------------------------------------- */

static bool has_just(const kl_ring *r, const char *const *names, size_t n)
{
    bool all = r && kl_ring_members(r) == n;
    for (size_t i = 0; all && i < n; i++)
        all = kl_ring_find(r, names[i]) != KL_RING_NOBODY;
    return all;
}

/* Rings of the same members are one ring, so that "we agree" is one comparison of pointers. Names are not
 * repeated. A new reference. */
static kl_ring *ring_of(kl_shard *s, const char *const *names, size_t n)
{
    kl_ring *known[4] = {s->target.p.ring, s->pending.p.ring, s->published.p.ring, s->confirmed.p.ring};
    for (size_t i = 0; i < 4 + s->n_others; i++) {
        kl_ring *r = i < 4 ? known[i] : s->others[i - 4].lease.p.ring;
        if (has_just(r, names, n))
            return kl_ring_ref(r);
    }
    return kl_ring_new(names, n);
}

typedef struct candidate {
    const char *created, *name;
} candidate;

static int by_age(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    int c = strcmp(x->created, y->created);
    return c ? c : strcmp(x->name, y->name);
}

static void aim(kl_shard *s)
{
    candidate *all = kl_new_array(candidate, s->n_others + 1);
    const char **names = kl_new_array(const char *, s->n_others + 1);
    const char *created = kl_value_str_at(s->own, "metadata", "creationTimestamp", NULL);
    size_t n = 0;
    all[n++] = (candidate){created ? created : "~", s->name}; /* a member without a Lease counts as the
                                                                 youngest */
    for (size_t i = 0; i < s->n_others; i++)
        if (strcmp(s->others[i].lease.name, s->name))
            all[n++] = (candidate){s->others[i].lease.created, s->others[i].lease.name};
    qsort(all, n, sizeof *all, by_age);
    if (s->max && n > s->max)
        n = s->max;
    for (size_t i = 0; i < n; i++)
        names[i] = all[i].name;
    own_publication t = {.seq = 1};
    t.p.ring = ring_of(s, names, n);
    t.p.me = kl_ring_find(t.p.ring, s->name);
    t.p.controllers = kl_value_ref(s->controllers);
    if (!own_same(&t, &s->target)) {
        t.seq = ++s->seq;
        own_set(&s->target, &t);
        s->events |= KL_SHARD_CHANGED | KL_SHARD_MEMBERS;
    }
    own_set(&t, NULL);
    kl_free(names);
    kl_free(all);
}

/* --- requests ----------------------------------------------------------------------------- */

static void ask(kl_shard *s, kl_shard_action *a, kl_shard_do what, kl_shard_now now)
{
    s->asked = what;
    s->asked_serial = ++s->serials;
    s->sent = now.boot;
    a->own = (kl_shard_request){.what = what,
        .serial = s->asked_serial,
        .name = s->name,
        .uid = kl_value_str_at(s->own, "metadata", "uid", NULL)};
    if (what != KL_SHARD_CREATE && what != KL_SHARD_UPDATE)
        return;
    const own_publication *p = s->pending.seq ? &s->pending : &s->published;
    const kl_value *body = kl_shard_lease_body(
        &(kl_shard_words){.base = what == KL_SHARD_UPDATE ? s->own : NULL,
            .name = s->name,
            .ns = s->ns,
            .group = s->group,
            .identity = s->identity,
            .incarnation = s->incarnation,
            .seq = p->seq,
            .p = &p->p,
            .seconds = s->lease / KL_SECONDS(1),
            .wall = now.wall});
    keep(&s->body, body);
    kl_value_unref(body);
    a->own.body = s->body;
}

static void forget_request(kl_shard *s)
{
    s->asked = KL_SHARD_NOTHING;
    s->asked_serial = 0;
}

/* Our Lease is gone, or our time is up: nothing is ours from now on. */
static void lapse(kl_shard *s)
{
    bool was_in = s->phase == IN;
    atomic_store(&s->deadline, 0);
    forget_request(s);
    own_set(&s->confirmed, NULL);
    own_set(&s->published, NULL);
    own_set(&s->pending, NULL);
    kl_free(s->incarnation);
    s->incarnation = NULL;
    s->look = s->seen = false;
    s->seen_seq = 0;
    s->clean = s->own;
    s->phase = was_in ? LAPSED : JOINING;
    if (was_in)
        s->events |= KL_SHARD_STOPPED | KL_SHARD_CHANGED;
}

/* Forgets everything after a goodbye, as before the first START, except what we want. */
static void forget_all(kl_shard *s)
{
    s->phase = GONE;
    lapse(s);
    s->phase = GONE;
    s->clean = false;
    keep(&s->own, NULL);
    s->events |= KL_SHARD_GONE;
}

static void accept_pending(kl_shard *s)
{
    if (!s->pending.seq)
        return;
    own_set(&s->published, &s->pending);
    own_set(&s->pending, NULL);
    s->events |= KL_SHARD_CHANGED;
}

/* Our Lease was renewed. The time counts from before the request. */
static void written(kl_shard *s, const kl_value *lease, kl_shard_now now)
{
    kl_time deadline = s->sent + good_for(s);
    keep(&s->own, lease);
    accept_pending(s);
    s->next = now.boot + s->retry;
    if (now.boot >= deadline) {
        lapse(s);
        return;
    }
    atomic_store(&s->deadline, deadline);
    if (s->phase == JOINING) {
        s->phase = IN;
        s->epoch++;
        s->events |= KL_SHARD_STARTED | KL_SHARD_CHANGED;
        aim(s); /* now we know how old we are */
    }
}

static bool is_ours(const kl_shard *s, const kl_shard_lease *l)
{
    return s->incarnation && l->incarnation && !strcmp(l->incarnation, s->incarnation);
}

/* A look has found our Lease in this state. */
static void looked(kl_shard *s, const kl_value *lease, kl_shard_now now)
{
    kl_shard_lease l = {0};
    kl_shard_lease_read(lease, NULL, &l);
    if (is_ours(s, &l)) {
        keep(&s->own, lease);
        s->look = false;
        s->next = now.boot;
        if (l.seq == s->pending.seq)
            accept_pending(s);
    } else if (s->phase == IN) {
        keep(&s->own, NULL);
        lapse(s);
    } else { /* a Lease with our identity: of a dead process, or we are the second */
        s->look = false;
        s->next = now.boot + s->retry;
    }
    kl_shard_lease_fini(&l);
}

static void replied(kl_shard *s, const kl_shard_input *in, kl_shard_now now)
{
    kl_shard_do what = s->asked;
    forget_request(s);
    kl_status st = in->status;
    if (s->phase == LEAVING) {
        if (st && st != KL_ENOTFOUND && st != KL_ECONFLICT && now.boot < s->leave_end) {
            s->next = now.boot + s->retry / 2;
        } else {
            forget_all(s);
        }
        return;
    }
    s->next = now.boot + s->retry;
    switch (what) {
    case KL_SHARD_DELETE: /* of what was left of us */
        if (!st || st == KL_ENOTFOUND || st == KL_ECONFLICT) {
            keep(&s->own, NULL);
            s->clean = false;
            s->next = now.boot;
        }
        break;
    case KL_SHARD_CREATE:
        if (!st) {
            written(s, in->lease, now);
        } else if (st != KL_EFORBIDDEN) { /* the Lease is there, or was made without an answer to us */
            s->look = true;
            if (st == KL_EEXISTS || st == KL_ECONFLICT)
                s->next = now.boot;
        }
        break;
    case KL_SHARD_UPDATE:
        if (!st) {
            written(s, in->lease, now);
        } else if (st == KL_ENOTFOUND) {
            keep(&s->own, NULL);
            lapse(s);
        } else {
            s->look = true;
            if (st == KL_ECONFLICT)
                s->next = now.boot;
        }
        break;
    case KL_SHARD_GET:
        if (!st) {
            looked(s, in->lease, now);
        } else if (st == KL_ENOTFOUND) {
            s->look = false;
            s->next = now.boot;
            keep(&s->own, NULL);
            if (s->phase == IN)
                lapse(s);
        }
        break;
    case KL_SHARD_NOTHING: break;
    }
}

/* --- the picture -------------------------------------------------------------------------- */

static other *find_other(kl_shard *s, const char *name)
{
    for (size_t i = 0; i < s->n_others; i++)
        if (!strcmp(s->others[i].lease.name, name))
            return &s->others[i];
    return NULL;
}

static void pictured(kl_shard *s, const kl_shard_input *in, kl_shard_now now)
{
    other *fresh = kl_new_array(other, in->n + 1);
    size_t n = 0;
    kl_shard_lease ours = {0};
    for (size_t i = 0; i < in->n; i++) {
        const char *name = kl_value_str_at(in->leases[i], "metadata", "name", NULL);
        other *known = name ? find_other(s, name) : NULL, *o = &fresh[n];
        if (!name)
            continue;
        kl_shard_lease_read(in->leases[i], known ? &known->lease : NULL, &o->lease);
        if (is_ours(s, &o->lease)) {
            kl_shard_lease_fini(&ours);
            ours = o->lease;
            o->lease = (kl_shard_lease){0};
            continue;
        }
        bool same = known && !strcmp(known->lease.rv, o->lease.rv) && !strcmp(known->lease.uid, o->lease.uid);
        o->observed = same ? known->observed : now.boot;
        if (!known || !kl_value_equal(known->lease.text, o->lease.text))
            s->events |= KL_SHARD_CHANGED;
        n++;
    }
    if (n != s->n_others)
        s->events |= KL_SHARD_CHANGED;
    other *old = s->others;
    size_t n_old = s->n_others;
    s->others = fresh;
    s->n_others = n;
    /* equal rings are one; what the old ones held may still be in use */
    for (size_t i = 0; i < n; i++) {
        kl_publication *p = &fresh[i].lease.p;
        if (!p->ring && fresh[i].lease.readable) {
            p->ring = ring_of(s, fresh[i].lease.members, fresh[i].lease.n_members);
            p->me = kl_ring_find(p->ring, fresh[i].lease.name);
        }
    }
    for (size_t i = 0; i < n_old; i++)
        kl_shard_lease_fini(&old[i].lease);
    kl_free(old);
    s->pictured = true;
    s->seen_seq = ours.seq;
    s->seen |= ours.name != NULL;
    /* told by the watch before the reply */
    if (s->phase == IN && s->pending.seq && ours.seq == s->pending.seq)
        accept_pending(s);
    if (s->phase == IN && s->seen && !ours.name) { /* deleted by members that took us for dead */
        keep(&s->own, NULL);
        lapse(s);
    }
    kl_shard_lease_fini(&ours);
    aim(s);
}

/* The last picture holds what we published, so it shows everybody who published before us. */
static void confirm(kl_shard *s)
{
    if (s->phase != IN || !s->published.seq || s->seen_seq != s->published.seq
        || s->confirmed.seq == s->published.seq)
        return;
    own_set(&s->confirmed, &s->published);
    s->events |= KL_SHARD_CHANGED;
}

/* --- what is next ------------------------------------------------------------------------- */

static void fence(kl_shard *s, kl_shard_action *a, kl_shard_now now, kl_time *until)
{
    if (s->fencing)
        return;
    for (size_t i = 0; i < s->n_others; i++) {
        other *o = &s->others[i];
        kl_time due = o->observed + o->lease.duration;
        if (due < s->fence_next)
            due = s->fence_next;
        if (now.boot < due) {
            *until = due < *until ? due : *until;
            continue;
        }
        text_set(&s->fence_name, o->lease.name);
        text_set(&s->fence_uid, o->lease.uid);
        text_set(&s->fence_rv, o->lease.rv);
        s->fencing = true;
        s->fence_serial = ++s->serials;
        s->fence_next = now.boot + s->retry / 2;
        a->fence = (kl_shard_request){.what = KL_SHARD_DELETE,
            .serial = s->fence_serial,
            .name = s->fence_name,
            .uid = s->fence_uid,
            .rv = s->fence_rv};
        return;
    }
}

static void join(kl_shard *s, kl_shard_action *a, kl_shard_now now)
{
    if (s->look) {
        ask(s, a, KL_SHARD_GET, now);
    } else if (s->clean) {
        ask(s, a, KL_SHARD_DELETE, now);
    } else if (s->own) { /* the Lease was made, as a look has shown: its time begins with a renewal */
        ask(s, a, KL_SHARD_UPDATE, now);
    } else {
        if (!s->incarnation)
            s->incarnation = kl_sprintf(
                "%016llx-%llu", (unsigned long long)s->seed, (unsigned long long)++s->seq);
        own_publication p = s->target;
        p.seq = ++s->seq;
        own_set(&s->pending, &p);
        ask(s, a, KL_SHARD_CREATE, now);
    }
}

static bool ready_to_publish(const kl_shard *s)
{
    return !s->pending.seq && !own_same(&s->published, &s->target) && s->drained == s->target.seq;
}

static void decide(kl_shard *s, kl_shard_action *a, kl_shard_now now)
{
    a->until = KL_NEVER;
    kl_time deadline = kl_shard_deadline(s);
    if (s->phase == IN && now.boot >= deadline)
        lapse(s);
    bool idle = s->asked == KL_SHARD_NOTHING, due = now.boot >= s->next;
    switch (s->phase) {
    case JOINING:
        if (!s->pictured)
            break;
        if (idle && due)
            join(s, a, now);
        else if (idle)
            a->until = s->next;
        fence(s, a, now, &a->until);
        break;
    case IN:
        a->until = deadline;
        if (idle && !s->look && ready_to_publish(s)) {
            own_publication p = s->target;
            p.seq = ++s->seq;
            own_set(&s->pending, &p);
            s->events |= KL_SHARD_CHANGED;
            ask(s, a, KL_SHARD_UPDATE, now);
        } else if (idle && due) {
            ask(s, a, s->look ? KL_SHARD_GET : KL_SHARD_UPDATE, now);
        } else if (idle && s->next < a->until) {
            a->until = s->next;
        }
        fence(s, a, now, &a->until);
        break;
    case LEAVING:
        if (idle && due)
            ask(s, a, KL_SHARD_DELETE, now);
        else if (idle)
            a->until = s->next;
        break;
    case OUT:
    case LAPSED:
    case GONE: break;
    }
}

kl_shard_action kl_shard_step(kl_shard *s, const kl_shard_input *in, kl_shard_now now)
{
    kl_shard_action a = {.until = KL_NEVER};
    s->events = 0;
    /* before an answer that comes too late could look like one in time */
    if (s->phase == IN && now.boot >= kl_shard_deadline(s))
        lapse(s);
    switch (in->kind) {
    case KL_SHARD_START:
        if (s->phase == OUT || s->phase == GONE) {
            s->phase = JOINING;
            s->next = now.boot;
            aim(s);
        }
        break;
    case KL_SHARD_REPLY:
        if (s->asked != KL_SHARD_NOTHING && in->serial == s->asked_serial)
            replied(s, in, now);
        else if (s->fencing && in->serial == s->fence_serial)
            s->fencing = false; /* the next picture shows the result */
        break;
    case KL_SHARD_PICTURE: pictured(s, in, now); break;
    case KL_SHARD_DRAINED:
        if (in->serial == s->target.seq)
            s->drained = in->serial;
        break;
    case KL_SHARD_JOINED:
        if (s->phase == LAPSED) {
            s->phase = JOINING;
            s->next = now.boot;
        }
        break;
    case KL_SHARD_CONTROLLERS:
        keep(&s->controllers, in->lease);
        aim(s);
        break;
    case KL_SHARD_LEAVE:
        if (s->phase != GONE && s->phase != LEAVING) {
            bool member = s->own;
            atomic_store(&s->deadline, 0);
            forget_request(s);
            s->phase = LEAVING;
            s->events |= KL_SHARD_CHANGED;
            s->next = now.boot;
            s->leave_end = now.boot + s->renew;
            if (!member)
                forget_all(s);
        }
        break;
    case KL_SHARD_TIMER: break;
    }
    confirm(s);
    decide(s, &a, now);
    a.events = s->events;
    return a;
}
