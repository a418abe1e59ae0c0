/* autoscaler.c - HorizontalPodAutoscalers in the form of autoscaling/v2: defaults and validation
 * (pkg/apis/autoscaling/{v2,validation}). */
#include "builtin/defaults.h"
#include "builtin/fill.h"
#include "check/forms.h"
#include "builtin/kinds.h"

#include <string.h>

#include "base/mem.h"
#include "model/names.h"
#include "schema/edit.h"
#include "show/scaler.h"

#define SPEC KL_IN(NULL, "spec")
#define WINDOW_MAX 3600 /* seconds */
#define PERIOD_MAX 1800 /* seconds */

/* ------------------------------------------------------------------ defaults */

static void policy(kl_builder *b, const char *type, int64_t value)
{
    kl_build_object(b);
    kl_build_kstr(b, "type", type);
    kl_build_kint(b, "value", value);
    kl_build_kint(b, "periodSeconds", 15);
    kl_build_end(b);
}

/* The default rules: up by four pods or by 100 %, down by 100 %, every 15 seconds. */
static void rules(const kl_value **r, bool up)
{
    kl__put_str(r, "selectPolicy", "Max");
    if (!kl__absent(*r, "policies"))
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    if (up)
        policy(b, "Pods", 4);
    policy(b, "Percent", 100);
    kl_build_end(b);
    KL_EDIT(r, kl_builder_done(b), "policies");
}

static void rules_up(const kl_value **r)
{
    kl__put_int(r, "stabilizationWindowSeconds", 0);
    rules(r, true);
}

static void rules_down(const kl_value **r) { rules(r, false); }

static void behavior(const kl_value **o)
{
    kl__put_object(o, "scaleUp");
    kl__put_object(o, "scaleDown");
    kl__inside(o, "scaleUp", rules_up);
    kl__inside(o, "scaleDown", rules_down);
}

static void old_spec(const kl_value **s) { kl__put_int(s, "minReplicas", 1); }

/* The default: 80 % of the requested processors. */
static void new_spec(const kl_value **s)
{
    kl__put_int(s, "minReplicas", 1);
    kl__inside(s, "behavior", behavior);
    if (kl_value_len(kl_value_get(*s, "metrics")))
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_object(b);
    kl_build_kstr(b, "type", "Resource");
    kl_build_key(b, "resource");
    kl_build_object(b);
    kl_build_kstr(b, "name", "cpu");
    kl_build_key(b, "target");
    kl_build_object(b);
    kl_build_kstr(b, "type", "Utilization");
    kl_build_kint(b, "averageUtilization", 80);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    KL_EDIT(s, kl_builder_done(b), "metrics");
}

/* The metric of v1 is a default of its conversion. */
void kl__scaler_defaults(const kl_value **o)
{
    const char *version = kl_value_str_at(*o, "apiVersion", NULL);
    kl__inside(o, "spec", version && !strcmp(version, "autoscaling/v1") ? old_spec : new_spec);
}

/* ------------------------------------------------------------------ targets of metrics */

/* A present quantity must be positive. */
static void check_positive(kl__causes *c, const kl_value *o, const kl__place *at, const char *member)
{
    const kl_value *v = kl_value_get(o, member);
    kl_quantity *q = kl__quantity_of(kl_value_str(v));
    if (q && kl_quantity_sign(q) <= 0)
        kl__say_invalid(c, KL_IN(at, member), v, "must be positive");
    kl_quantity_free(q);
}

static void check_target(kl__causes *c, const kl_value *t, const kl__place *at)
{
    const char *type = kl__text(t, "type");
    const kl_value *share = kl_value_get(t, "averageUtilization");
    if (!*type)
        kl__say_required(c, KL_IN(at, "type"), "must specify a metric target type");
    if (!kl__one_of(type, "Utilization Value AverageValue"))
        kl__say_invalid_text(
            c, KL_IN(at, "type"), type, "must be either Utilization, Value, or AverageValue");
    check_positive(c, t, at, "value");
    check_positive(c, t, at, "averageValue");
    if (share && kl_value_int_at(share, 0, NULL) < 1)
        kl__say_invalid(c, KL_IN(at, "averageUtilization"), share, "must be greater than 0");
}

static void check_identifier(kl__causes *c, const kl_value *metric, const kl__place *at)
{
    if (!*kl__text(metric, "name"))
        kl__say_required(c, KL_IN(at, "name"), "must specify a metric name");
    kl__check_member(c, metric, at, "name", KL_PATH_SEGMENT);
}

static void check_names(kl__causes *c, const kl_value *ref, const kl__place *at)
{
    static const char *const members[] = {"kind", "name"};
    for (size_t i = 0; i < 2; i++) {
        kl__check_present(c, ref, at, members[i]);
        kl__check_member(c, ref, at, members[i], KL_PATH_SEGMENT);
    }
}

/* ------------------------------------------------------------------ sources of metrics */

static void check_object(kl__causes *c, const kl_value *o, const kl__place *at)
{
    const kl_value *t = kl_value_get(o, "target");
    const kl__place *target = KL_IN(at, "target");
    check_names(c, kl_value_get(o, "describedObject"), KL_IN(at, "describedObject"));
    check_identifier(c, kl_value_get(o, "metric"), KL_IN(at, "metric"));
    check_target(c, t, target);
    if (!kl_value_get(t, "value") && !kl_value_get(t, "averageValue"))
        kl__say_required(c, KL_IN(target, "averageValue"), "must set either a target value or averageValue");
}

static void check_external(kl__causes *c, const kl_value *o, const kl__place *at)
{
    const kl_value *t = kl_value_get(o, "target"), *value = kl_value_get(t, "value"),
                   *average = kl_value_get(t, "averageValue");
    const kl__place *target = KL_IN(at, "target");
    check_identifier(c, kl_value_get(o, "metric"), KL_IN(at, "metric"));
    check_target(c, t, target);
    if (!value && !average)
        kl__say_required(c, KL_IN(target, "averageValue"),
            "must set either a target value for metric or a per-pod target");
    if (value && average)
        kl__say_forbidden(
            c, KL_IN(target, "value"), "may not set both a target value for metric and a per-pod target");
}

static void check_pods(kl__causes *c, const kl_value *o, const kl__place *at)
{
    const kl_value *t = kl_value_get(o, "target");
    const kl__place *target = KL_IN(at, "target");
    check_identifier(c, kl_value_get(o, "metric"), KL_IN(at, "metric"));
    check_target(c, t, target);
    kl_quantity *q = kl__quantity_of(kl__text(t, "averageValue"));
    if (!q || kl_quantity_sign(q) <= 0)
        kl__say_required(c, KL_IN(target, "averageValue"), "must specify a positive target averageValue");
    kl_quantity_free(q);
}

static void check_resource(kl__causes *c, const kl_value *o, const kl__place *at)
{
    const kl_value *t = kl_value_get(o, "target"), *share = kl_value_get(t, "averageUtilization"),
                   *average = kl_value_get(t, "averageValue");
    const kl__place *target = KL_IN(at, "target");
    check_target(c, t, target);
    if (!share && !average)
        kl__say_required(c, KL_IN(target, "averageUtilization"),
            "must set either a target raw value or a target utilization");
    if (share && average)
        kl__say_forbidden(
            c, KL_IN(target, "averageValue"), "may not set both a target raw value and a target utilization");
}

static void check_plain_resource(kl__causes *c, const kl_value *o, const kl__place *at)
{
    if (!*kl__text(o, "name"))
        kl__say_required(c, KL_IN(at, "name"), "must specify a resource name");
    check_resource(c, o, at);
}

static void check_container_resource(kl__causes *c, const kl_value *o, const kl__place *at)
{
    if (!*kl__text(o, "name"))
        kl__say_required(c, KL_IN(at, "name"), "must specify a resource name");
    if (!*kl__text(o, "container"))
        kl__say_required(c, KL_IN(at, "container"), "must specify a container");
    check_resource(c, o, at);
}

static const char source_types[] = "ContainerResource External Object Pods Resource";
static const struct {
    const char *type, *member;
    void (*check)(kl__causes *c, const kl_value *o, const kl__place *at);
} sources[] = {
    {"Object", "object", check_object},
    {"External", "external", check_external},
    {"Pods", "pods", check_pods},
    {"Resource", "resource", check_plain_resource},
    {"ContainerResource", "containerResource", check_container_resource},
};
#define NSOURCES (sizeof sources / sizeof *sources)

static void check_metric(kl__causes *c, const kl_value *m, const kl__place *at)
{
    const kl_value *type = kl_value_get(m, "type");
    const char *word = kl__text(m, "type");
    bool known = kl__one_of(word, source_types);
    size_t have = 0;
    if (!*word)
        kl__say_required(c, KL_IN(at, "type"), "must specify a metric source type");
    if (!known)
        kl__say_unsupported(c, KL_IN(at, "type"), type, source_types);
    for (size_t i = 0; i < NSOURCES; i++) {
        const kl_value *source = kl_value_get(m, sources[i].member);
        if (source && !have++)
            sources[i].check(c, source, KL_IN(at, sources[i].member));
    }
    for (size_t i = 0; i < NSOURCES; i++)
        if (!strcmp(word, sources[i].type) && !kl_value_get(m, sources[i].member))
            kl__say_required(
                c, KL_IN(at, sources[i].member), "must populate information for the given metric source");
    if (!known) /* kube-apiserver reports an unknown type twice */
        kl__say_unsupported(c, KL_IN(at, "type"), type, source_types);
    for (size_t i = 0; have > 1 && i < NSOURCES; i++)
        if (strcmp(word, sources[i].type) && kl_value_get(m, sources[i].member))
            kl__say_forbidden(c, KL_IN(at, sources[i].member), "must populate the given metric source only");
}

/* ------------------------------------------------------------------ behavior */

static void check_policy(kl__causes *c, const kl_value *p, const kl__place *at)
{
    static const char *const numbers[] = {"value", "periodSeconds"};
    int64_t period = kl_value_int_at(p, 0, "periodSeconds", NULL);
    if (!kl__one_of(kl__text(p, "type"), "Percent Pods"))
        kl__say_unsupported(c, KL_IN(at, "type"), kl_value_get(p, "type"), "Percent Pods");
    for (size_t i = 0; i < 2; i++) {
        int64_t n = kl_value_int_at(p, 0, numbers[i], NULL);
        if (n <= 0)
            kl__say_invalid_int(c, KL_IN(at, numbers[i]), n, "must be greater than zero");
    }
    if (period > PERIOD_MAX)
        kl__say_invalid_int(
            c, KL_IN(at, "periodSeconds"), period, "must be less than or equal to %d", PERIOD_MAX);
}

static void check_rules(kl__causes *c, const kl_value *r, const kl__place *at)
{
    const kl_value *window = kl_value_get(r, "stabilizationWindowSeconds"),
                   *policies = kl_value_get(r, "policies");
    const kl__place *window_at = KL_IN(at, "stabilizationWindowSeconds"), *in = KL_IN(at, "policies");
    int64_t seconds = kl_value_int_at(window, 0, NULL);
    if (!r)
        return;
    if (seconds < 0)
        kl__say_invalid(c, window_at, window, "must be greater than or equal to zero");
    if (seconds > WINDOW_MAX)
        kl__say_invalid(c, window_at, window, "must be less than or equal to %d", WINDOW_MAX);
    kl__check_word(c, r, at, "selectPolicy", false, "Disabled Max Min");
    if (!kl_value_len(policies))
        kl__say_required(c, in, "must specify at least one Policy");
    for (size_t i = 0; i < kl_value_len(policies); i++)
        check_policy(c, kl_value_item(policies, i), KL_ITEM(in, i));
}

/* ------------------------------------------------------------------ the whole */

static void check_scale_target(kl__causes *c, const kl_value *spec)
{
    const kl_value *ref = kl_value_get(spec, "scaleTargetRef");
    const kl__place *at = KL_IN(SPEC, "scaleTargetRef");
    check_names(c, ref, at);
    const char *version = kl__text(ref, "apiVersion"), *slash = strchr(version, '/');
    if (slash && strchr(slash + 1, '/'))
        kl__say_invalid_text(
            c, KL_IN(at, "apiVersion"), version, "unexpected GroupVersion string: %s", version);
    else if (!slash || slash == version)
        kl__say_invalid_text(c, KL_IN(at, "apiVersion"), version, "apiVersion must specify API group");
}

static void check_metrics(kl__causes *c, const kl_value *metrics, const kl_value *min)
{
    const kl__place *in = KL_IN(SPEC, "metrics");
    bool outside = false;
    for (size_t i = 0; i < kl_value_len(metrics); i++) {
        const kl_value *m = kl_value_item(metrics, i);
        outside = outside || kl_value_get(m, "object") || kl_value_get(m, "external");
        check_metric(c, m, KL_ITEM(in, i));
    }
    if (min && !kl_value_int_at(min, 1, NULL) && !outside)
        kl__say_forbidden(
            c, in, "must specify at least one Object or External metric to support scaling to zero replicas");
}

void kl__check_autoscaler(const kl__write *w)
{
    if (kl__is_old_scaler(w->kind)) {
        kl__kind v2 = *w->kind;
        v2.version = "v2";
        kl__write now = {.kind = &v2,
            .sub = w->sub,
            .old = w->old ? kl__scaler_to_v2(w->old) : NULL,
            .o = kl__scaler_to_v2(w->o),
            .causes = w->causes};
        kl__check_autoscaler(&now);
        kl_value_unref(now.old);
        kl_value_unref(now.o);
        return;
    }
    kl__causes *c = w->causes;
    const kl_value *spec = kl_value_get(w->o, "spec"), *min = kl_value_get(spec, "minReplicas"),
                   *behaves = kl_value_get(spec, "behavior");
    const kl__place *at = KL_IN(SPEC, "behavior");
    int64_t most = kl_value_int_at(spec, 0, "maxReplicas", NULL);
    if (kl__write_same_spec(w))
        return;
    if (min && kl_value_int_at(min, 0, NULL) < 1)
        kl__say_invalid(c, KL_IN(SPEC, "minReplicas"), min, "must be greater than or equal to 1");
    if (most < 1)
        kl__say_invalid_int(c, KL_IN(SPEC, "maxReplicas"), most, "must be greater than 0");
    if (min && most < kl_value_int_at(min, 0, NULL))
        kl__say_invalid_int(
            c, KL_IN(SPEC, "maxReplicas"), most, "must be greater than or equal to `minReplicas`");
    check_scale_target(c, spec);
    check_metrics(c, kl_value_get(spec, "metrics"), min);
    check_rules(c, kl_value_get(behaves, "scaleUp"), KL_IN(at, "scaleUp"));
    check_rules(c, kl_value_get(behaves, "scaleDown"), KL_IN(at, "scaleDown"));
}
