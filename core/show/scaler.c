/* scaler.c - both versions of HorizontalPodAutoscalers (pkg/apis/autoscaling/v1/conversion.go).
 *
 * v1 knows one metric, the use of processors. What else v2 has stands in annotations of v1 as JSON, in an
 * older form: metrics and their statuses in v1's own, behavior under the names of Go's fields. */
#include "show/scaler.h"

#include <string.h>

#include "base/mem.h"
#include "schema/edit.h"

#define ROUND "autoscaling.alpha.kubernetes.io/"
#define METRICS ROUND "metrics"
#define CURRENT ROUND "current-metrics"
#define CONDITIONS ROUND "conditions"
#define BEHAVIOR ROUND "behavior"
#define DEFAULT_USE 80
#define OLD "autoscaling/v1"
#define NEW "autoscaling/v2"

bool kl__is_old_scaler(const kl__kind *k)
{
    return !strcmp(k->group, "autoscaling") && !strcmp(k->version, "v1")
        && !strcmp(k->plural, "horizontalpodautoscalers");
}

/* ------------------------------------------------------------------ metrics in both forms */

/* A member of v1 and its path in v2, in the order of Go's fields. `always`: a quantity that is "0" when
 * absent. */
typedef struct field {
    const char *old, *outer, *inner;
    bool always;
} field;

typedef struct form {
    const char *member;
    field fields[6];
} form;

static const form specs[] = {
    {"object",
        {
            {"target", "describedObject", NULL, false},
            {"metricName", "metric", "name", false},
            {"targetValue", "target", "value", true},
            {"selector", "metric", "selector", false},
            {"averageValue", "target", "averageValue", false},
        }},
    {"pods",
        {
            {"metricName", "metric", "name", false},
            {"targetAverageValue", "target", "averageValue", true},
            {"selector", "metric", "selector", false},
        }},
    {"resource",
        {
            {"name", "name", NULL, false},
            {"targetAverageUtilization", "target", "averageUtilization", false},
            {"targetAverageValue", "target", "averageValue", false},
        }},
    {"containerResource",
        {
            {"name", "name", NULL, false},
            {"targetAverageUtilization", "target", "averageUtilization", false},
            {"targetAverageValue", "target", "averageValue", false},
            {"container", "container", NULL, false},
        }},
    {"external",
        {
            {"metricName", "metric", "name", false},
            {"metricSelector", "metric", "selector", false},
            {"targetValue", "target", "value", false},
            {"targetAverageValue", "target", "averageValue", false},
        }},
};

static const form statuses[] = {
    {"object",
        {
            {"target", "describedObject", NULL, false},
            {"metricName", "metric", "name", false},
            {"currentValue", "current", "value", true},
            {"selector", "metric", "selector", false},
            {"averageValue", "current", "averageValue", false},
        }},
    {"pods",
        {
            {"metricName", "metric", "name", false},
            {"currentAverageValue", "current", "averageValue", true},
            {"selector", "metric", "selector", false},
        }},
    {"resource",
        {
            {"name", "name", NULL, false},
            {"currentAverageUtilization", "current", "averageUtilization", false},
            {"currentAverageValue", "current", "averageValue", true},
        }},
    {"containerResource",
        {
            {"name", "name", NULL, false},
            {"currentAverageUtilization", "current", "averageUtilization", false},
            {"currentAverageValue", "current", "averageValue", true},
            {"container", "container", NULL, false},
        }},
    {"external",
        {
            {"metricName", "metric", "name", false},
            {"metricSelector", "metric", "selector", false},
            {"currentValue", "current", "value", true},
            {"currentAverageValue", "current", "averageValue", false},
        }},
};
#define FORMS 5

/* Members of `o` in the order of `names`, which are followed by NULL. */
static void build_members(kl_builder *b, const kl_value *o, const char *const *names)
{
    kl_build_object(b);
    for (; *names; names++)
        kl_build_kvalue(b, *names, kl_value_get(o, *names));
    kl_build_end(b);
}

static const char *const reference[] = {"kind", "name", "apiVersion", NULL};

static void build_field(kl_builder *b, const char *name, const field *f, const kl_value *v)
{
    if (v && !strcmp(f->old, "target")) {
        kl_build_key(b, name);
        build_members(b, v, reference);
    } else if (v || !f->always)
        kl_build_kvalue(b, name, v);
    else
        kl_build_kstr(b, name, "0");
}

static void build_old(kl_builder *b, const kl_value *v2, const field *f)
{
    kl_build_object(b);
    for (; f->old; f++) {
        const kl_value *outer = kl_value_get(v2, f->outer);
        build_field(b, f->old, f, f->inner ? kl_value_get(outer, f->inner) : outer);
    }
    kl_build_end(b);
}

/* The type of a v2 target, from the members that v1 has. */
static const char *target_type(const char *member, const kl_value *v1)
{
    if (!strcmp(member, "object"))
        return kl_value_get(v1, "averageValue") ? "AverageValue" : "Value";
    if (!strcmp(member, "external"))
        return kl_value_get(v1, "targetValue") ? "Value" : "AverageValue";
    return kl_value_get(v1, "targetAverageUtilization") ? "Utilization" : "AverageValue";
}

static void build_new(kl_builder *b, const kl_value *v1, const form *of)
{
    static const char *const outers[] = {"metric", "target", "current"};
    kl_build_object(b);
    for (const field *f = of->fields; f->old; f++)
        if (!f->inner)
            build_field(b, f->outer, f, kl_value_get(v1, f->old));
    for (size_t i = 0; i < sizeof outers / sizeof *outers; i++) {
        bool open = false;
        for (const field *f = of->fields; f->old; f++) {
            if (!f->inner || strcmp(f->outer, outers[i]))
                continue;
            if (!open) {
                kl_build_key(b, outers[i]);
                kl_build_object(b);
                if (!strcmp(outers[i], "target"))
                    kl_build_kstr(b, "type", target_type(of->member, v1));
            }
            open = true;
            build_field(b, f->inner, f, kl_value_get(v1, f->old));
        }
        if (open)
            kl_build_end(b);
    }
    kl_build_end(b);
}

/* One metric, or the status of one, in the other form. */
static void build_metric(kl_builder *b, const kl_value *in, const form *forms, bool to_old)
{
    kl_build_object(b);
    kl_build_kvalue(b, "type", kl_value_get(in, "type"));
    for (size_t i = 0; i < FORMS; i++) {
        const kl_value *v = kl_value_get(in, forms[i].member);
        if (kl_value_type(v) != KL_OBJECT)
            continue;
        kl_build_key(b, forms[i].member);
        if (to_old)
            build_old(b, v, forms[i].fields);
        else
            build_new(b, v, &forms[i]);
    }
    kl_build_end(b);
}

/* The use of processors that v1 has a field for; NULL for other metrics. */
static const kl_value *cpu_use(const kl_value *metric, const char *inside)
{
    const char *type = kl_value_str_at(metric, "type", NULL),
               *name = kl_value_str_at(metric, "resource", "name", NULL);
    if (!type || strcmp(type, "Resource") || !name || strcmp(name, "cpu"))
        return NULL;
    return kl_value_at(metric, "resource", inside, "averageUtilization", NULL);
}

/* ------------------------------------------------------------------ behavior under Go's names */

typedef struct rename {
    const char *old, *now;
} rename;

static const rename rules[] = {
    {"StabilizationWindowSeconds", "stabilizationWindowSeconds"},
    {"SelectPolicy", "selectPolicy"},
    {"Policies", "policies"},
    {"Tolerance", "tolerance"},
};
static const rename policies[] = {
    {"Type", "type"},
    {"Value", "value"},
    {"PeriodSeconds", "periodSeconds"},
};
static const rename sides[] = {
    {"ScaleUp", "scaleUp"},
    {"ScaleDown", "scaleDown"},
};

/* Go reads and writes null for what is absent. */
static void build_renamed(kl_builder *b, const rename *r, const kl_value *in, bool to_old)
{
    const kl_value *v = kl_value_get(in, to_old ? r->now : r->old);
    bool none = kl_value_type(v) == KL_NULL;
    if (none && !to_old)
        return;
    kl_build_key(b, to_old ? r->old : r->now);
    if (none)
        kl_build_null(b);
    else if (strcmp(r->now, "policies"))
        kl_build_value(b, v);
    else {
        kl_build_array(b);
        for (size_t i = 0; i < kl_value_len(v); i++) {
            kl_build_object(b);
            for (size_t k = 0; k < sizeof policies / sizeof *policies; k++)
                build_renamed(b, &policies[k], kl_value_item(v, i), to_old);
            kl_build_end(b);
        }
        kl_build_end(b);
    }
}

static void build_behavior(kl_builder *b, const kl_value *in, bool to_old)
{
    kl_build_object(b);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        const kl_value *v = kl_value_get(in, to_old ? sides[i].now : sides[i].old);
        if (kl_value_type(v) == KL_NULL && !to_old)
            continue;
        kl_build_key(b, to_old ? sides[i].old : sides[i].now);
        if (kl_value_type(v) == KL_NULL) {
            kl_build_null(b);
            continue;
        }
        kl_build_object(b);
        for (size_t k = 0; k < sizeof rules / sizeof *rules; k++)
            build_renamed(b, &rules[k], v, to_old);
        kl_build_end(b);
    }
    kl_build_end(b);
}

/* ------------------------------------------------------------------ whole objects */

static const char *const round_trip[] = {
    METRICS, CURRENT, CONDITIONS, BEHAVIOR, ROUND "scale-down-tolerance", ROUND "scale-up-tolerance"};
#define KEPT 4 /* the first ones hold what v1 lacks */

static bool is_round_trip(const char *key)
{
    for (size_t i = 0; i < sizeof round_trip / sizeof *round_trip; i++)
        if (!strcmp(key, round_trip[i]))
            return true;
    return false;
}

/* Writes the metadata with new annotations of the round trip: texts in the order of the names, or NULL. */
static void build_metadata(kl_builder *b, const kl_value *meta, char *const texts[KEPT])
{
    const kl_value *have = kl_value_get(meta, "annotations");
    bool open = false;
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(meta); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(meta, i, &key, &n);
        if (strcmp(key, "annotations"))
            kl_build_kvalue(b, key, v);
    }
    for (size_t i = 0; i < kl_value_len(have) + KEPT; i++) {
        size_t n, of = kl_value_len(have);
        const char *key = i < of ? NULL : round_trip[i - of], *text = i < of ? NULL : texts[i - of];
        const kl_value *v = i < of ? kl_value_member(have, i, &key, &n) : NULL;
        if (i < of ? is_round_trip(key) : !text)
            continue;
        if (!open) {
            kl_build_key(b, "annotations");
            kl_build_object(b);
            open = true;
        }
        if (v)
            kl_build_kvalue(b, key, v);
        else
            kl_build_kstr(b, key, text);
    }
    if (open)
        kl_build_end(b);
    kl_build_end(b);
}

/* What an annotation of the round trip holds, or NULL; a new reference. */
static const kl_value *kept(const kl_value *o, const char *name)
{
    const char *text = kl_value_str_at(o, "metadata", "annotations", name, NULL);
    const kl_value *v = NULL;
    return text && !kl_value_decode(text, strlen(text), &v, NULL) ? v : NULL;
}

static void build_cpu(kl_builder *b, const char *inside, const kl_value *use)
{
    kl_build_object(b);
    kl_build_kstr(b, "type", "Resource");
    kl_build_key(b, "resource");
    kl_build_object(b);
    kl_build_kstr(b, "name", "cpu");
    kl_build_key(b, inside);
    kl_build_object(b);
    if (!strcmp(inside, "target"))
        kl_build_kstr(b, "type", "Utilization");
    if (use)
        kl_build_kvalue(b, "averageUtilization", use);
    else
        kl_build_kint(b, "averageUtilization", DEFAULT_USE);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
}

static const char *const same_spec[] = {"scaleTargetRef", "minReplicas", "maxReplicas"},
                         *const same_status[] = {"observedGeneration", "lastScaleTime"};

static void build_new_spec(kl_builder *b, const kl_value *o)
{
    const kl_value *spec = kl_value_get(o, "spec"), *others = kept(o, METRICS), *behavior = kept(o, BEHAVIOR),
                   *use = kl_value_get(spec, "targetCPUUtilizationPercentage");
    kl_build_object(b);
    for (size_t i = 0; i < sizeof same_spec / sizeof *same_spec; i++)
        kl_build_kvalue(b, same_spec[i], kl_value_get(spec, same_spec[i]));
    kl_build_key(b, "metrics");
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(others); i++)
        build_metric(b, kl_value_item(others, i), specs, false);
    if (use || !kl_value_len(others))
        build_cpu(b, "target", use);
    kl_build_end(b);
    if (kl_value_len(behavior)) {
        kl_build_key(b, "behavior");
        build_behavior(b, behavior, false);
    }
    kl_build_end(b);
    kl_value_unref(others);
    kl_value_unref(behavior);
}

static void build_new_status(kl_builder *b, const kl_value *o)
{
    const kl_value *status = kl_value_get(o, "status"), *metrics = kept(o, CURRENT),
                   *conditions = kept(o, CONDITIONS),
                   *use = kl_value_get(status, "currentCPUUtilizationPercentage");
    int64_t current = kl_value_int_at(status, 0, "currentReplicas", NULL);
    kl_build_object(b);
    for (size_t i = 0; i < sizeof same_status / sizeof *same_status; i++)
        kl_build_kvalue(b, same_status[i], kl_value_get(status, same_status[i]));
    if (current)
        kl_build_kint(b, "currentReplicas", current);
    kl_build_kint(b, "desiredReplicas", kl_value_int_at(status, 0, "desiredReplicas", NULL));
    kl_build_key(b, "currentMetrics");
    if (metrics || use) {
        kl_build_array(b);
        for (size_t i = 0; i < kl_value_len(metrics); i++)
            build_metric(b, kl_value_item(metrics, i), statuses, false);
        if (!metrics)
            build_cpu(b, "current", use);
        kl_build_end(b);
    } else
        kl_build_null(b);
    kl_build_kvalue(b, "conditions", conditions);
    kl_build_end(b);
    kl_value_unref(metrics);
    kl_value_unref(conditions);
}

static void build_old_spec(kl_builder *b, const kl_value *o)
{
    const kl_value *spec = kl_value_get(o, "spec"), *metrics = kl_value_get(spec, "metrics"), *use = NULL;
    kl_build_object(b);
    for (size_t i = 0; i < sizeof same_spec / sizeof *same_spec; i++)
        kl_build_kvalue(b, same_spec[i], kl_value_get(spec, same_spec[i]));
    for (size_t i = 0; !use && i < kl_value_len(metrics); i++)
        use = cpu_use(kl_value_item(metrics, i), "target");
    kl_build_kvalue(b, "targetCPUUtilizationPercentage", use);
    kl_build_end(b);
}

static void build_old_status(kl_builder *b, const kl_value *o)
{
    const kl_value *status = kl_value_get(o, "status"), *metrics = kl_value_get(status, "currentMetrics"),
                   *use = NULL;
    kl_build_object(b);
    for (size_t i = 0; i < sizeof same_status / sizeof *same_status; i++)
        kl_build_kvalue(b, same_status[i], kl_value_get(status, same_status[i]));
    kl_build_kint(b, "currentReplicas", kl_value_int_at(status, 0, "currentReplicas", NULL));
    kl_build_kint(b, "desiredReplicas", kl_value_int_at(status, 0, "desiredReplicas", NULL));
    for (size_t i = 0; i < kl_value_len(metrics); i++) {
        const kl_value *one = cpu_use(kl_value_item(metrics, i), "current");
        use = one ? one : use;
    }
    kl_build_kvalue(b, "currentCPUUtilizationPercentage", use);
    kl_build_end(b);
}

static char *built_text(kl_builder *b)
{
    const kl_value *v = kl_builder_done(b);
    char *text = kl_value_to_json(v);
    kl_value_unref(v);
    return text;
}

/* The metrics without those of v1's own field, or all statuses of metrics; NULL: there are none. */
static char *old_metrics(const kl_value *list, const form *forms)
{
    size_t n = 0;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *metric = kl_value_item(list, i);
        if (forms == specs && cpu_use(metric, "target"))
            continue;
        build_metric(b, metric, forms, true);
        n++;
    }
    kl_build_end(b);
    char *text = built_text(b);
    if (n)
        return text;
    kl_free(text);
    return NULL;
}

static char *old_conditions(const kl_value *list)
{
    static const char *const names[] = {"type", "status", "lastTransitionTime", "reason", "message", NULL};
    if (!kl_value_len(list))
        return NULL;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(list); i++)
        build_members(b, kl_value_item(list, i), names);
    kl_build_end(b);
    return built_text(b);
}

static char *old_behavior(const kl_value *behavior)
{
    if (kl_value_type(behavior) != KL_OBJECT)
        return NULL;
    kl_builder *b = kl_builder_new();
    build_behavior(b, behavior, true);
    return built_text(b);
}

static bool is_of(const kl_value *o, const char *version)
{
    const char *have = kl_value_str_at(o, "apiVersion", NULL);
    return have && !strcmp(have, version);
}

static const kl_value *converted(const kl_value *o, bool to_old, char *const texts[KEPT])
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(o); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(o, i, &key, &n);
        kl_build_key(b, key);
        if (!strcmp(key, "apiVersion"))
            kl_build_str(b, to_old ? OLD : NEW);
        else if (!strcmp(key, "metadata"))
            build_metadata(b, v, texts);
        else if (!strcmp(key, "spec"))
            (to_old ? build_old_spec : build_new_spec)(b, o);
        else if (!strcmp(key, "status"))
            (to_old ? build_old_status : build_new_status)(b, o);
        else
            kl_build_value(b, v);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

const kl_value *kl__scaler_to_v2(const kl_value *v1)
{
    char *const none[KEPT] = {NULL, NULL, NULL, NULL};
    if (is_of(v1, NEW))
        return kl_value_ref(v1);
    return converted(v1, false, none);
}

const kl_value *kl__scaler_to_v1(const kl_value *v2)
{
    if (is_of(v2, OLD))
        return kl_value_ref(v2);
    char *texts[KEPT] = {old_metrics(kl_value_at(v2, "spec", "metrics", NULL), specs),
        old_metrics(kl_value_at(v2, "status", "currentMetrics", NULL), statuses),
        old_conditions(kl_value_at(v2, "status", "conditions", NULL)),
        old_behavior(kl_value_at(v2, "spec", "behavior", NULL))};
    const kl_value *v1 = converted(v2, true, texts);
    for (size_t i = 0; i < KEPT; i++)
        kl_free(texts[i]);
    return v1;
}

void kl__scaler_keep_status(const kl_value *old, const kl_value **o)
{
    static const char *const names[] = {CURRENT, CONDITIONS};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const kl_value *was = kl_value_at(old, "metadata", "annotations", names[i], NULL);
        if (was)
            KL_EDIT(o, kl_value_ref(was), "metadata", "annotations", names[i]);
        else
            KL_CUT(o, "metadata", "annotations", names[i]);
    }
}
