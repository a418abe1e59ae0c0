/* faults_impl.h - rules, for the files of this room. */
#ifndef KL_FAULTS_FAULTS_IMPL_H
#define KL_FAULTS_FAULTS_IMPL_H

#include <stdatomic.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/random.h"
#include "base/sync.h"
#include "faults/faults.h"

/* Effects, as bits of a plan's `what`. */
enum {
    FAULT_LATENCY = 1 << 0,
    FAULT_ERROR = 1 << 1,
    FAULT_HALF = 1 << 2,
    FAULT_STALE = 1 << 3,
    FAULT_CUT = 1 << 4,
    FAULT_STALL = 1 << 5,
    FAULT_LAG = 1 << 6,
    FAULT_BOOKMARKS = 1 << 7,
    FAULT_TWICE = 1 << 8,
    FAULT_OLD = 1 << 9,
    FAULT_OF_WATCHES = FAULT_CUT | FAULT_STALL | FAULT_LAG | FAULT_BOOKMARKS | FAULT_TWICE | FAULT_OLD,
};

typedef enum fault_spread { SPREAD_FIXED, SPREAD_EVEN, SPREAD_EXPONENTIAL, SPREAD_LOGNORMAL } fault_spread;

typedef struct fault_rule {
    kl_list link;
    uint64_t id;
    const kl_value *given; /* a reference; texts below are of it */
    const char *kind, *group, *resource, *sub, *ns, *name, *path, *agent, *except;
    const kl_value *verb; /* a text, or a list of them; NULL: any */
    double probability;
    int64_t times; /* remaining; -1: unlimited */
    bool counted;  /* the rule has `times` */
    uint64_t hits;
    kl_time until; /* of the clock, or KL_NEVER */
    kl_random chance;
    fault_spread spread;
    kl_time from, to; /* of the latency: fixed, the bounds, the mean, p50 and p99 */
    int64_t code, retry_after;
    const char *reason, *message;
    kl_fault_plan effects; /* but for latency and error */
} fault_rule;

/* A new rule, not in a list; or an error that names the field. */
KL_NODISCARD kl_status kl__fault_rule_read(const kl_value *v, kl_time now, fault_rule **out, kl_err *err);
void kl__fault_rule_free(fault_rule *r);
const kl_value *kl__fault_rule_show(const fault_rule *r);
bool kl__fault_rule_matches(const fault_rule *r, const kl_fault_call *c);
kl_time kl__fault_rule_latency(fault_rule *r); /* draws */
/* Copies the effects `which` of the rule into the plan. */
void kl__fault_plan_take(kl_fault_plan *plan, const fault_rule *r, unsigned which);

struct kl_faults {
    kl_clock *clock;
    void (*changed)(void *arg);
    void *arg;
    /* counts added rules and clears, so that a watch can tell whether rules have changed since its last
     * look */
    atomic_uint_fast64_t edition;
    atomic_bool idle; /* there are no rules, and nothing is held */
    kl_mutex mu;
    kl_list rules KL_GUARDED_BY(mu);
    size_t n KL_GUARDED_BY(mu);
    uint64_t next_id KL_GUARDED_BY(mu);
    uint64_t clears KL_GUARDED_BY(mu);
    uint64_t seed KL_GUARDED_BY(mu);
    kl_list held KL_GUARDED_BY(mu);
};

/* Adds effects of matching rules above plan->known to the plan: those in `allowed` that it lacks. *error: the
 * matching rule with an error, if any; NULL: errors are not drawn. */
void kl__faults_judge(kl_faults *f, const kl_fault_call *c, unsigned allowed, kl_fault_plan *plan,
    const fault_rule **error) KL_REQUIRES(f->mu);

#endif
