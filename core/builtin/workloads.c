/* workloads.c - kinds of apps/v1 and ReplicationControllers: replicas, selectors that select their own
 * template's pods, strategies, what never changes. */
#include "builtin/kinds.h"
#include "builtin/pod.h"
#include "builtin/storage.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/names.h"
#include "model/selector.h"
#include "schema/edit.h"

#define SPEC KL_IN(NULL, "spec")

/* ------------------------------------------------------------------ numbers and percentages */

/* The number in a number or a percentage; 0 for other types. */
static int64_t number_or_percent(const kl_value *v, bool *percent)
{
    const char *text = kl_value_str(v);
    *percent = text && !kl_name_percent(text);
    return *percent ? strtoll(text, NULL, 10) : text ? 0 : kl_value_int_at(v, 0, NULL);
}

static void check_positive(kl__causes *c, const kl_value *o, const kl__place *at, const char *member)
{
    const kl_value *v = kl_value_get(o, member);
    const char *text = kl_value_str(v);
    if (text)
        kl__check_form(c, KL_IN(at, member), text, KL_PERCENT);
    else
        kl__check_natural(c, o, at, member);
}

static void check_at_most_all(kl__causes *c, const kl_value *o, const kl__place *at, const char *member)
{
    bool percent;
    const kl_value *v = kl_value_get(o, member);
    int64_t n = number_or_percent(v, &percent);
    if (percent && n > 100)
        kl__say_invalid(c, KL_IN(at, member), v, "must not be greater than 100%%");
}

/* ------------------------------------------------------------------ selector and template */

static bool selects_nothing_said(const kl_value *selector)
{
    return kl_value_type(selector) == KL_OBJECT && !kl_value_len(kl_value_get(selector, "matchLabels"))
        && !kl_value_len(kl_value_get(selector, "matchExpressions"));
}

/* Whether the selector is valid; if so, the template's labels must match it. */
static bool check_labels(const kl__write *w)
{
    const kl_value *selector = kl_value_at(w->o, "spec", "selector", NULL),
                   *labels = kl_value_at(w->o, "spec", "template", "metadata", "labels", NULL);
    kl_selector *s = NULL;
    if (kl_selector_from_struct(selector, &s, NULL))
        return false;
    if (!selects_nothing_said(selector) && !kl_selector_matches(s, labels))
        kl__say_invalid(w->causes, KL_IN(KL_IN(KL_IN(SPEC, "template"), "metadata"), "labels"), labels,
            "`selector` does not match template `labels`");
    kl_selector_free(s);
    return true;
}

static void check_selector(const kl__write *w, const char *word)
{
    const kl_value *selector = kl_value_at(w->o, "spec", "selector", NULL);
    const kl__place *at = KL_IN(SPEC, "selector");
    if (kl_value_type(selector) != KL_OBJECT) {
        kl__say_required(w->causes, at, "");
        return;
    }
    kl__check_selector(w->causes, selector, at);
    if (selects_nothing_said(selector))
        kl__say_invalid(w->causes, at, selector, "empty selector is invalid for %s", word);
}

/* Pods must have restartPolicy Always. */
static void check_forever(const kl__write *w, const char *word)
{
    const kl_value *spec = kl_value_at(w->o, "spec", "template", "spec", NULL);
    const kl__place *at = KL_IN(KL_IN(SPEC, "template"), "spec");
    if (!kl__is(spec, "restartPolicy", "Always"))
        kl__say_unsupported(
            w->causes, KL_IN(at, "restartPolicy"), kl_value_get(spec, "restartPolicy"), "Always");
    if (kl_value_get(spec, "activeDeadlineSeconds"))
        kl__say_forbidden(w->causes, KL_IN(at, "activeDeadlineSeconds"),
            "activeDeadlineSeconds in %s is not Supported", word);
}

static void check_template(const kl__write *w, const char *word)
{
    const kl__place *at = KL_IN(SPEC, "template");
    kl__check_template(w->causes, kl_value_at(w->o, "spec", "template", NULL), NULL, at);
    check_forever(w, word);
}

static void selector_is_kept(const kl__write *w)
{
    if (w->old)
        kl__check_same(w->causes, kl_value_get(w->old, "spec"), kl_value_get(w->o, "spec"), SPEC, "selector");
}

static void check_selector_and_template(const kl__write *w)
{
    const kl_value *selector = kl_value_at(w->o, "spec", "selector", NULL);
    check_selector(w, "deployment");
    if (check_labels(w))
        check_template(w, "ReplicaSet");
    else
        kl__say_invalid(w->causes, KL_IN(SPEC, "selector"), selector, "invalid label selector");
}

/* A strategy in the form in which kube-apiserver prints its struct; a new reference. `members`: of the
 * rolling update. */
static const kl_value *go_rolling(const kl_value *roll, const char *const members[2][2])
{
    kl_builder *b = kl_builder_new();
    if (!roll)
        kl_build_null(b);
    else {
        kl_build_object(b);
        for (size_t i = 0; i < 2; i++) {
            const kl_value *v = kl_value_get(roll, members[i][1]);
            kl_build_key(b, members[i][0]);
            if (v)
                kl_build_value(b, v);
            else
                kl_build_null(b);
        }
        kl_build_end(b);
    }
    return kl_builder_done(b);
}

static const kl_value *go_strategy(const kl_value *s, const char *const members[2][2])
{
    const kl_value *roll = go_rolling(kl_value_get(s, "rollingUpdate"), members);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "Type", kl__text(s, "type"));
    kl_build_kvalue(b, "RollingUpdate", roll);
    kl_build_end(b);
    kl_value_unref(roll);
    return kl_builder_done(b);
}

static const char *const by_number[2][2] = {{"MaxUnavailable", "maxUnavailable"}, {"MaxSurge", "maxSurge"}};
static const char *const by_partition[2][2] = {
    {"Partition", "partition"}, {"MaxUnavailable", "maxUnavailable"}};

static void say_no_strategy(kl__causes *c, const kl__place *at, const kl_value *s, const char *words)
{
    const kl_value *shown = go_strategy(s, by_number);
    kl__say_unsupported(c, at, shown, words);
    kl_value_unref(shown);
}

/* ------------------------------------------------------------------ Deployment, ReplicaSet */

static void check_deployment_strategy(kl__causes *c, const kl_value *spec)
{
    const kl_value *s = kl_value_get(spec, "strategy"), *roll = kl_value_get(s, "rollingUpdate");
    const kl__place *at = KL_IN(SPEC, "strategy"), *in = KL_IN(at, "rollingUpdate");
    bool percent;
    if (kl__is(s, "type", "Recreate")) {
        if (roll)
            kl__say_forbidden(c, in, "may not be specified when strategy `type` is 'Recreate'");
        return;
    }
    if (!kl__is(s, "type", "RollingUpdate")) {
        say_no_strategy(c, at, s, "Recreate RollingUpdate");
        return;
    }
    check_positive(c, roll, in, "maxUnavailable");
    check_positive(c, roll, in, "maxSurge");
    if (!number_or_percent(kl_value_get(roll, "maxUnavailable"), &percent)
        && !number_or_percent(kl_value_get(roll, "maxSurge"), &percent))
        kl__say_invalid(c, KL_IN(in, "maxUnavailable"), kl_value_get(roll, "maxUnavailable"),
            "may not be 0 when `maxSurge` is 0");
    check_at_most_all(c, roll, in, "maxUnavailable");
}

void kl__check_deployment(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec"), *deadline;
    if (kl__write_same_spec(w))
        return;
    kl__check_natural(w->causes, spec, SPEC, "replicas");
    check_selector_and_template(w);
    check_deployment_strategy(w->causes, spec);
    kl__check_naturals(w->causes, spec, SPEC, "minReadySeconds revisionHistoryLimit progressDeadlineSeconds");
    deadline = kl_value_get(spec, "progressDeadlineSeconds");
    if (deadline && kl_value_int_at(deadline, 0, NULL) <= kl_value_int_at(spec, 0, "minReadySeconds", NULL))
        kl__say_invalid(w->causes, KL_IN(SPEC, "progressDeadlineSeconds"), deadline,
            "must be greater than minReadySeconds");
    selector_is_kept(w);
}

void kl__check_replica_set(const kl__write *w)
{
    if (kl__write_same_spec(w))
        return;
    kl__check_naturals(w->causes, kl_value_get(w->o, "spec"), SPEC, "replicas minReadySeconds");
    check_selector_and_template(w);
    selector_is_kept(w);
}

void kl__check_controller(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec"), *selector = kl_value_get(spec, "selector"),
                   *template = kl_value_get(spec, "template"),
                   *labels = kl_value_at(template, "metadata", "labels", NULL);
    const kl__place *at = KL_IN(SPEC, "template");
    if (kl__write_same_spec(w))
        return;
    kl__check_natural(w->causes, spec, SPEC, "minReadySeconds");
    if (!kl_value_len(selector))
        kl__say_required(w->causes, KL_IN(SPEC, "selector"), "");
    kl__check_natural(w->causes, spec, SPEC, "replicas");
    if (!template) {
        kl__say_required(w->causes, at, "");
        return;
    }
    bool same = true;
    for (size_t i = 0; i < kl_value_len(selector) && same; i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(selector, i, &key, &n);
        same = kl_value_equal(v, kl_value_getn(labels, key, n));
    }
    if (!same)
        kl__say_invalid(w->causes, KL_IN(KL_IN(at, "metadata"), "labels"), labels,
            "`selector` does not match template `labels`");
    check_template(w, "ReplicationController");
}

/* ------------------------------------------------------------------ StatefulSet */

static void check_set_strategy(kl__causes *c, const kl_value *spec)
{
    const kl_value *s = kl_value_get(spec, "updateStrategy"), *roll = kl_value_get(s, "rollingUpdate"),
                   *most = kl_value_get(roll, "maxUnavailable");
    const kl__place *at = KL_IN(SPEC, "updateStrategy"), *in = KL_IN(at, "rollingUpdate");
    bool percent;
    if (kl__is(s, "type", "OnDelete")) {
        const kl_value *shown = go_rolling(roll, by_partition);
        if (roll)
            kl__say_invalid(c, in, shown, "only allowed for updateStrategy 'RollingUpdate'");
        kl_value_unref(shown);
    } else if (kl__is(s, "type", "RollingUpdate")) {
        kl__check_natural(c, roll, in, "partition");
        if (!most)
            return;
        check_positive(c, roll, in, "maxUnavailable");
        if (!number_or_percent(most, &percent))
            kl__say_invalid(c, KL_IN(in, "maxUnavailable"), most, "cannot be 0");
        check_at_most_all(c, roll, in, "maxUnavailable");
    } else {
        const kl_value *shown = go_strategy(s, by_partition);
        kl__say_invalid(c, at, shown, "must be 'RollingUpdate' or 'OnDelete'");
        kl_value_unref(shown);
    }
}

static void check_claims(kl__causes *c, const kl_value *spec)
{
    const kl_value *list = kl_value_get(spec, "volumeClaimTemplates");
    const kl__place *in = KL_IN(SPEC, "volumeClaimTemplates");
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl__check_claim_spec(c, kl_value_get(kl_value_item(list, i), "spec"), KL_IN(KL_ITEM(in, i), "spec"));
}

/* Compares the specs without their mutable members. */
static void check_kept(const kl__write *w)
{
    static const char *const free_to_change[] = {"replicas", "ordinals", "template", "updateStrategy",
        "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds"};
    const kl_value *a = kl_value_ref(kl_value_get(w->old, "spec")),
                   *b = kl_value_ref(kl_value_get(w->o, "spec"));
    for (size_t i = 0; i < sizeof free_to_change / sizeof *free_to_change; i++) {
        KL_CUT(&a, free_to_change[i]);
        KL_CUT(&b, free_to_change[i]);
    }
    if (!kl_value_equal(a, b))
        kl__say_forbidden(w->causes, SPEC,
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
            "'minReadySeconds' are forbidden");
    kl_value_unref(a);
    kl_value_unref(b);
}

void kl__check_stateful_set(const kl__write *w)
{
    static const char policies[] = "Retain Delete";
    kl__causes *c = w->causes;
    const kl_value *spec = kl_value_get(w->o, "spec"),
                   *management = kl_value_get(spec, "podManagementPolicy"),
                   *retention = kl_value_get(spec, "persistentVolumeClaimRetentionPolicy"),
                   *template = kl_value_get(spec, "template");
    const kl__place *at = KL_IN(SPEC, "template"),
                    *retain = KL_IN(SPEC, "persistentVolumeClaimRetentionPolicy");
    if (kl__write_same_spec(w))
        return;
    if (!kl__one_of(kl__text(spec, "podManagementPolicy"), "OrderedReady Parallel"))
        kl__say_invalid(
            c, KL_IN(SPEC, "podManagementPolicy"), management, "must be 'OrderedReady' or 'Parallel'");
    check_set_strategy(c, spec);
    kl__check_word(c, retention, retain, "whenDeleted", false, policies);
    kl__check_word(c, retention, retain, "whenScaled", false, policies);
    if (!w->old)
        check_claims(c, spec);
    kl__check_naturals(c, spec, SPEC, "replicas minReadySeconds");
    kl__check_natural(c, kl_value_get(spec, "ordinals"), KL_IN(SPEC, "ordinals"), "start");
    if (!w->old)
        kl__check_member(c, spec, SPEC, "serviceName", KL_DNS_LABEL);
    check_selector(w, "statefulset");
    if (check_labels(w)) {
        kl__check_template(c, template, kl_value_get(spec, "volumeClaimTemplates"), at);
        kl__check_labels(c, kl_value_at(template, "metadata", "labels", NULL), KL_IN(at, "labels"));
    } else
        kl__say_invalid(c, KL_IN(SPEC, "selector"), kl_value_get(spec, "selector"), "%s", "");
    check_forever(w, "StatefulSet");
    if (w->old)
        check_kept(w);
}

/* ------------------------------------------------------------------ DaemonSet */

static void check_daemon_strategy(kl__causes *c, const kl_value *spec)
{
    const kl_value *s = kl_value_get(spec, "updateStrategy"), *roll = kl_value_get(s, "rollingUpdate");
    const kl__place *at = KL_IN(SPEC, "updateStrategy"), *in = KL_IN(at, "rollingUpdate");
    static const char *const members[] = {"maxUnavailable", "maxSurge"};
    bool percent;
    if (kl__is(s, "type", "OnDelete"))
        return;
    if (!kl__is(s, "type", "RollingUpdate")) {
        say_no_strategy(c, at, s, "RollingUpdate OnDelete");
        return;
    }
    for (size_t i = 0; i < 2; i++)
        check_positive(c, roll, in, members[i]);
    for (size_t i = 0; i < 2; i++)
        check_at_most_all(c, roll, in, members[i]);
    int64_t fewer = number_or_percent(kl_value_get(roll, "maxUnavailable"), &percent),
            more = number_or_percent(kl_value_get(roll, "maxSurge"), &percent);
    if (fewer && more)
        kl__say_invalid(c, KL_IN(in, "maxSurge"), kl_value_get(roll, "maxSurge"),
            "may not be set when maxUnavailable is non-zero");
    else if (!fewer && !more)
        kl__say_required(c, KL_IN(in, "maxUnavailable"), "cannot be 0 when maxSurge is 0");
}

void kl__check_daemon_set(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *spec = kl_value_get(w->o, "spec"), *selector = kl_value_get(spec, "selector");
    if (kl__write_same_spec(w))
        return;
    kl__check_selector(c, selector, KL_IN(SPEC, "selector"));
    (void)check_labels(w);
    if (selects_nothing_said(selector))
        kl__say_invalid(c, KL_IN(SPEC, "selector"), selector, "empty selector is invalid for daemonset");
    check_template(w, "DaemonSet");
    kl__check_natural(c, spec, SPEC, "minReadySeconds");
    check_daemon_strategy(c, spec);
    kl__check_natural(c, spec, SPEC, "revisionHistoryLimit");
    selector_is_kept(w);
}

/* ------------------------------------------------------------------ PodTemplate */

void kl__check_pod_template(const kl__write *w)
{
    kl__check_template(w->causes, kl_value_get(w->o, "template"), NULL, KL_IN(NULL, "template"));
}
