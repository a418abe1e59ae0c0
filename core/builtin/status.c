/* status.c - validation of status writes. */
#include "check/conditions.h"
#include "check/forms.h"
#include "builtin/kinds.h"

#include <string.h>

#include "base/mem.h"

#define STATUS KL_IN(NULL, "status")

/* Counters, and which counter must not exceed which, in the order of the complaints. */
static const struct {
    const char *kinds, *counters;
    struct {
        const char *less, *more, *words;
    } pairs[5];
} counted[] = {
    {"apps/deployments",
        "observedGeneration replicas updatedReplicas readyReplicas availableReplicas unavailableReplicas "
        "terminatingReplicas collisionCount",
        {{"updatedReplicas", "replicas", "status.replicas"}, {"readyReplicas", "replicas", "status.replicas"},
            {"availableReplicas", "replicas", "status.replicas"},
            {"availableReplicas", "readyReplicas", "readyReplicas"}}},
    {"apps/replicasets",
        "replicas fullyLabeledReplicas readyReplicas availableReplicas observedGeneration "
        "terminatingReplicas",
        {{"fullyLabeledReplicas", "replicas", "status.replicas"},
            {"readyReplicas", "replicas", "status.replicas"},
            {"availableReplicas", "replicas", "status.replicas"},
            {"availableReplicas", "readyReplicas", "readyReplicas"}}},
    {"/replicationcontrollers",
        "replicas fullyLabeledReplicas readyReplicas availableReplicas observedGeneration",
        {{"fullyLabeledReplicas", "replicas", "status.replicas"},
            {"readyReplicas", "replicas", "status.replicas"},
            {"availableReplicas", "replicas", "status.replicas"},
            {"availableReplicas", "readyReplicas", "readyReplicas"}}},
    {"apps/statefulsets",
        "replicas readyReplicas currentReplicas updatedReplicas availableReplicas observedGeneration "
        "collisionCount",
        {{"readyReplicas", "replicas", "status.replicas"}, {"currentReplicas", "replicas", "status.replicas"},
            {"updatedReplicas", "replicas", "status.replicas"},
            {"availableReplicas", "replicas", "status.replicas"},
            {"availableReplicas", "readyReplicas", "status.readyReplicas"}}},
    {"apps/daemonsets",
        "currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady observedGeneration "
        "updatedNumberScheduled numberAvailable numberUnavailable collisionCount",
        {{NULL, NULL, NULL}}},
    {"policy/poddisruptionbudgets", "disruptionsAllowed currentHealthy desiredHealthy expectedPods",
        {{NULL, NULL, NULL}}},
    {"autoscaling/horizontalpodautoscalers", "currentReplicas desiredReplicas", {{NULL, NULL, NULL}}},
};

static void check_counters(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *s = kl_value_get(w->o, "status"), *old = kl_value_get(w->old, "status");
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        if (!kl__kind_among(w->kind, counted[i].kinds))
            continue;
        kl__check_naturals(c, s, STATUS, counted[i].counters);
        for (size_t k = 0; k < 5 && counted[i].pairs[k].less; k++) {
            const char *less = counted[i].pairs[k].less;
            const kl_value *v = kl_value_get(s, less);
            if (kl_value_int_at(v, 0, NULL) > kl_value_int_at(s, 0, counted[i].pairs[k].more, NULL))
                kl__say_invalid_int(c, KL_IN(STATUS, less), kl_value_int_at(v, 0, NULL),
                    "cannot be greater than %s", counted[i].pairs[k].words);
        }
        int64_t was = kl_value_int_at(old, 0, "collisionCount", NULL),
                is = kl_value_int_at(s, 0, "collisionCount", NULL);
        if (strstr(counted[i].counters, "collisionCount") && is < was)
            kl__say_invalid_int(c, KL_IN(STATUS, "collisionCount"), is, "cannot be decremented");
    }
}

static void check_balancer(const kl__write *w)
{
    const kl_value *list = kl_value_at(w->o, "status", "loadBalancer", "ingress", NULL);
    const kl__place *in = KL_IN(KL_IN(STATUS, "loadBalancer"), "ingress");
    bool service = kl__kind_among(w->kind, "/services");
    if (!service && !kl__kind_among(w->kind, "networking.k8s.io/ingresses"))
        return;
    if (service && kl_value_len(list) && !kl__is(kl_value_get(w->o, "spec"), "type", "LoadBalancer")) {
        kl__say_forbidden(w->causes, in, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        kl__check_member(w->causes, one, KL_ITEM(in, i), "ip", KL_IP);
        kl__check_member(w->causes, one, KL_ITEM(in, i), "hostname", KL_DNS_SUBDOMAIN);
    }
}

static void check_phase(const kl__write *w)
{
    bool goes = kl_value_at(w->o, "metadata", "deletionTimestamp", NULL) != NULL;
    const char *phase = kl_value_str_at(w->o, "status", "phase", NULL);
    const kl__place *at = KL_IN(STATUS, "Phase"); /* the path that kube-apiserver shows */
    phase = phase ? phase : "";
    if (goes && strcmp(phase, "Terminating"))
        kl__say_invalid_text(
            w->causes, at, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
    else if (!goes && strcmp(phase, "Active"))
        kl__say_invalid_text(w->causes, at, phase, "may only be 'Active' if `deletionTimestamp` is empty");
}

static void check_job(const kl__write *w)
{
    const kl_value *s = kl_value_get(w->o, "status"), *old = kl_value_get(w->old, "status");
    int64_t ready = kl_value_int_at(s, 0, "ready", NULL), active = kl_value_int_at(s, 0, "active", NULL);
    bool moves = ready != kl_value_int_at(old, 0, "ready", NULL)
        || active != kl_value_int_at(old, 0, "active", NULL);
    if (moves && ready > active)
        kl__say_invalid_int(
            w->causes, KL_IN(STATUS, "ready"), ready, "cannot set more ready pods than active");
}

void kl__check_status(const kl__write *w)
{
    if (kl_value_equal(kl_value_get(w->old, "status"), kl_value_get(w->o, "status")))
        return;
    if (kl__kind_among(w->kind, "/nodes"))
        kl__check_node_status(w);
    if (kl__kind_among(w->kind, "/resourcequotas"))
        kl__check_quota_status(w);
    if (kl__kind_among(w->kind, "/namespaces"))
        check_phase(w);
    if (kl__kind_among(w->kind, "policy/poddisruptionbudgets"))
        kl__check_conditions(
            w->causes, kl_value_at(w->o, "status", "conditions", NULL), KL_IN(STATUS, "conditions"));
    check_counters(w);
    if (kl__kind_among(w->kind, "batch/jobs"))
        check_job(w);
    check_balancer(w);
}
