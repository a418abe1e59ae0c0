/* jobs.c - Jobs and CronJobs. */
#include "builtin/kinds.h"
#include "builtin/pod.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/zone.h"
#include "model/names.h"
#include "model/object.h"
#include "model/selector.h"
#include "schema/edit.h"

#define SPEC KL_IN(NULL, "spec")
#define INDEXES_MAX 100000

/* ------------------------------------------------------------------ the spec of pods' runs */

static void check_indexed(kl__causes *c, const kl_value *spec, const kl__place *at)
{
    const kl_value *completions = kl_value_get(spec, "completions"),
                   *parallelism = kl_value_get(spec, "parallelism"),
                   *failed = kl_value_get(spec, "maxFailedIndexes");
    if (!completions)
        kl__say_required(c, KL_IN(at, "completions"), "when completion mode is Indexed");
    if (kl_value_int_at(parallelism, 0, NULL) > INDEXES_MAX)
        kl__say_invalid(c, KL_IN(at, "parallelism"), parallelism,
            "must be less than or equal to %d when completion mode is Indexed", INDEXES_MAX);
    if (completions && failed && kl_value_int_at(failed, 0, NULL) > kl_value_int_at(completions, 0, NULL))
        kl__say_invalid(
            c, KL_IN(at, "maxFailedIndexes"), failed, "must be less than or equal to completions");
    if (kl_value_int_at(failed, 0, NULL) > INDEXES_MAX)
        kl__say_invalid(
            c, KL_IN(at, "maxFailedIndexes"), failed, "must be less than or equal to %d", INDEXES_MAX);
}

static void check_exit_codes(
    kl__causes *c, const kl_value *pod_spec, const kl_value *codes, const kl__place *at)
{
    const kl_value *values = kl_value_get(codes, "values"), *name = kl_value_get(codes, "containerName");
    const kl__place *in = KL_IN(at, "values");
    bool known = !name, ordered = true;
    kl_finder before = {0};
    if (!*kl__text(codes, "operator"))
        kl__say_required(c, KL_IN(at, "operator"), "valid values: [\"In\" \"NotIn\"]");
    else
        kl__check_word(c, codes, at, "operator", true, "In NotIn");
    for (size_t k = 0; k < 2 && !known; k++) {
        const kl_value *list = kl_value_get(pod_spec, k ? "initContainers" : "containers");
        for (size_t i = 0; i < kl_value_len(list) && !known; i++)
            known = kl_value_equal(kl_value_get(kl_value_item(list, i), "name"), name);
    }
    if (!known)
        kl__say_invalid(c, KL_IN(at, "containerName"), name,
            "must be one of the container or initContainer names in the pod template");
    if (!kl_value_len(values))
        kl__say_invalid(c, in, values, "at least one value is required");
    else if (kl_value_len(values) > 255)
        kl__say_too_many(c, in, kl_value_len(values), 255);
    for (size_t i = 0; i < kl_value_len(values); i++) {
        int64_t n = kl_value_int_at(kl_value_item(values, i), 0, NULL);
        if (!n && kl__is(codes, "operator", "In"))
            kl__say_invalid_int(c, KL_ITEM(in, i), n, "must not be 0 for the In operator");
        if (kl_finder_repeats(&before, kl_value_item(values, i)))
            kl__say_duplicate(c, KL_ITEM(in, i), kl_value_item(values, i));
        ordered = ordered && (!i || kl_value_int_at(kl_value_item(values, i - 1), 0, NULL) <= n);
    }
    kl_finder_fini(&before);
    if (!ordered)
        kl__say_invalid(c, in, values, "must be ordered");
}

static void check_pod_conditions(kl__causes *c, const kl_value *list, const kl__place *in)
{
    if (kl_value_len(list) > 20)
        kl__say_too_many(c, in, kl_value_len(list), 20);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        const kl__place *at = KL_ITEM(in, i);
        kl__check_form(c, KL_IN(at, "type"), kl__text(one, "type"), KL_QUALIFIED);
        if (!*kl__text(one, "status"))
            kl__say_required(c, KL_IN(at, "status"), "valid values: [\"False\" \"True\" \"Unknown\"]");
        else
            kl__check_word(c, one, at, "status", true, "False True Unknown");
    }
}

static void check_failure_policy(kl__causes *c, const kl_value *spec, const kl__place *up)
{
    const kl_value *rules = kl_value_at(spec, "podFailurePolicy", "rules", NULL);
    const kl__place *in = KL_IN(KL_IN(up, "podFailurePolicy"), "rules");
    if (kl_value_len(rules) > 20)
        kl__say_too_many(c, in, kl_value_len(rules), 20);
    for (size_t i = 0; i < kl_value_len(rules); i++) {
        const kl_value *r = kl_value_item(rules, i), *codes = kl_value_get(r, "onExitCodes"),
                       *conditions = kl_value_get(r, "onPodConditions");
        const kl__place *at = KL_ITEM(in, i), *action = KL_IN(at, "action");
        if (!*kl__text(r, "action"))
            kl__say_required(c, action, "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]");
        else if (kl__is(r, "action", "FailIndex")) {
            if (!kl_value_get(spec, "backoffLimitPerIndex"))
                kl__say_invalid(
                    c, action, kl_value_get(r, "action"), "requires the backoffLimitPerIndex to be set");
        } else
            kl__check_word(c, r, at, "action", true, "Count FailIndex FailJob Ignore");
        if (codes)
            check_exit_codes(c, kl_value_at(spec, "template", "spec", NULL), codes, KL_IN(at, "onExitCodes"));
        check_pod_conditions(c, conditions, KL_IN(at, "onPodConditions"));
        bool both = codes && kl_value_len(conditions), none = !codes && !kl_value_len(conditions);
        if (both || none)
            kl__say_invalid_bare(c, at,
                both ? "specifying both OnExitCodes and OnPodConditions is not supported"
                     : "specifying one of OnExitCodes and OnPodConditions is required");
    }
}

static void check_restart(kl__causes *c, const kl_value *spec, const kl__place *at)
{
    const kl_value *pod = kl_value_at(spec, "template", "spec", NULL),
                   *policy = kl_value_get(pod, "restartPolicy");
    const kl__place *in = KL_IN(KL_IN(KL_IN(at, "template"), "spec"), "restartPolicy");
    if (!policy || kl__is(pod, "restartPolicy", "Always"))
        kl__say_required(c, in, "valid values: \"OnFailure\", \"Never\"");
    else if (!kl__one_of(kl__text(pod, "restartPolicy"), "OnFailure Never"))
        kl__say_unsupported(c, in, policy, "OnFailure Never");
    else if (kl_value_get(spec, "podFailurePolicy") && !kl__is(pod, "restartPolicy", "Never"))
        kl__say_invalid(c, in, policy, "only \"Never\" is supported when podFailurePolicy is specified");
}

static void check_run(kl__causes *c, const kl_value *spec, const kl__place *at)
{
    static const char *const indexed_only[] = {"backoffLimitPerIndex", "maxFailedIndexes"};
    bool indexed = kl__is(spec, "completionMode", "Indexed");
    kl__check_naturals(c, spec, at,
        "parallelism completions activeDeadlineSeconds backoffLimit ttlSecondsAfterFinished "
        "backoffLimitPerIndex maxFailedIndexes");
    if (kl_value_get(spec, "maxFailedIndexes") && !kl_value_get(spec, "backoffLimitPerIndex"))
        kl__say_required(c, KL_IN(at, "backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    kl__check_word(c, spec, at, "completionMode", false, "NonIndexed Indexed");
    if (indexed)
        check_indexed(c, spec, at);
    bool plain = !*kl__text(spec, "completionMode") || kl__is(spec, "completionMode", "NonIndexed");
    for (size_t i = 0; i < 2 && plain; i++)
        if (kl_value_get(spec, indexed_only[i]))
            kl__say_invalid(c, KL_IN(at, indexed_only[i]), kl_value_get(spec, indexed_only[i]),
                "requires indexed completion mode");
    if (kl_value_get(spec, "podFailurePolicy"))
        check_failure_policy(c, spec, at);
    if (kl_value_get(spec, "successPolicy") && !indexed)
        kl__say_invalid(c, KL_IN(at, "successPolicy"), kl_value_get(spec, "successPolicy"),
            "requires indexed completion mode");
    kl__check_word(c, spec, at, "podReplacementPolicy", false,
        kl_value_get(spec, "podFailurePolicy") ? "Failed" : "Failed TerminatingOrFailed");
    kl__check_template(c, kl_value_get(spec, "template"), NULL, KL_IN(at, "template"));
    check_restart(c, spec, at);
}

/* ------------------------------------------------------------------ Job */

/* Without manualSelector, selector and labels must be those that the server generates. */
static void check_generated(const kl__write *w)
{
    static const char *const keys[] = {
        "controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"};
    const kl_value *spec = kl_value_get(w->o, "spec"), *selector = kl_value_get(spec, "selector"),
                   *meta = kl_value_at(spec, "template", "metadata", NULL), *labels = NULL,
                   *have = kl_value_get(meta, "labels");
    const kl__place *at = KL_IN(KL_IN(KL_IN(KL_IN(NULL, "spec"), "template"), "metadata"), "labels");
    if (kl__true(spec, "manualSelector") || !selector)
        return;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < 4; i++) {
        const char *want = i % 2 ? kl_object_name(w->o) : kl_object_uid(w->o), *is = kl__text(have, keys[i]);
        kl_build_kstr(b, keys[i], want ? want : "");
        char *why = kl_sprintf("must be '%s'", want ? want : "");
        if (!kl_value_get(have, keys[i]))
            kl__say_required(w->causes, KL_KEYED(at, keys[i], strlen(keys[i])), why);
        else if (!want || strcmp(is, want))
            kl__say_invalid(w->causes, KL_KEYED(at, keys[i], strlen(keys[i])), have, "%s", why);
        kl_free(why);
    }
    kl_build_end(b);
    labels = kl_builder_done(b);
    kl_selector *s = NULL;
    if (!kl_selector_from_struct(selector, &s, NULL) && !kl_selector_matches(s, labels))
        kl__say_invalid(w->causes, KL_IN(SPEC, "selector"), selector, "`selector` not auto-generated");
    kl_selector_free(s);
    kl_value_unref(labels);
}

static void check_job_spec(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec"), *selector = kl_value_get(spec, "selector"),
                   *labels = kl_value_at(spec, "template", "metadata", "labels", NULL);
    kl_selector *s = NULL;
    check_run(w->causes, spec, SPEC);
    if (!selector)
        kl__say_required(w->causes, KL_IN(SPEC, "selector"), "");
    else
        kl__check_selector(w->causes, selector, KL_IN(SPEC, "selector"));
    if (!kl_selector_from_struct(selector, &s, NULL) && !kl_selector_matches(s, labels))
        kl__say_invalid(w->causes, KL_IN(KL_IN(KL_IN(SPEC, "template"), "metadata"), "labels"), labels,
            "`selector` does not match template `labels`");
    kl_selector_free(s);
}

/* While a suspended Job has not started, the scheduling fields of its template may change. */
static void check_job_template(const kl__write *w)
{
    static const char *const where[] = {"nodeSelector", "tolerations", "schedulingGates", "affinity"};
    const kl_value *old = kl_value_ref(kl_value_at(w->old, "spec", "template", NULL)),
                   *now = kl_value_at(w->o, "spec", "template", NULL);
    if (kl__true(kl_value_get(w->old, "spec"), "suspend")
        && !kl_value_at(w->old, "status", "startTime", NULL)) {
        for (size_t i = 0; i < 4; i++)
            if (kl_value_at(now, "spec", where[i], NULL) || kl_value_at(old, "spec", where[i], NULL))
                KL_EDIT(&old, kl_value_ref(kl_value_at(now, "spec", where[i], NULL)), "spec", where[i]);
        KL_EDIT(&old, kl_value_ref(kl_value_get(now, "metadata")), "metadata");
    }
    if (!kl_value_equal(old, now))
        kl__say_invalid(w->causes, KL_IN(SPEC, "template"), now, "field is immutable");
    kl_value_unref(old);
}

void kl__check_job(const kl__write *w)
{
    static const char *const kept[] = {
        "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"};
    const kl_value *spec = kl_value_get(w->o, "spec"), *old = kl_value_get(w->old, "spec"),
                   *completions = kl_value_get(spec, "completions");
    bool indexed = kl__is(spec, "completionMode", "Indexed");
    if (kl__write_same_spec(w))
        return;
    check_generated(w);
    check_job_spec(w);
    if (indexed && kl_value_int_at(completions, 0, NULL) > 0) {
        char *host = kl_sprintf(
            "%s-%lld", kl_object_name(w->o), (long long)kl_value_int_at(completions, 0, NULL) - 1);
        if (kl_name_dns1123_label(host))
            kl__say_invalid_text(w->causes, KL_IN(KL_IN(NULL, "metadata"), "name"), kl_object_name(w->o),
                "will not able to create pod with invalid DNS label: %s", host);
        kl_free(host);
    }
    if (!w->old)
        return;
    check_job_spec(w); /* kube-apiserver checks the job and then its update, so it reports each fault twice */
    if (!indexed)
        kl__check_same(w->causes, old, spec, SPEC, "completions");
    else if (completions && !kl_value_equal(completions, kl_value_get(old, "completions"))
        && !kl_value_equal(completions, kl_value_get(spec, "parallelism")))
        kl__say_invalid(w->causes, KL_IN(SPEC, "completions"), completions,
            "can only be modified in tandem with spec.parallelism");
    kl__check_same(w->causes, old, spec, SPEC, "selector");
    check_job_template(w);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        kl__check_same(w->causes, old, spec, SPEC, kept[i]);
}

/* ------------------------------------------------------------------ CronJob */

static bool zone_like(const char *s)
{
    for (;;) {
        size_t n = strcspn(s, "/");
        if (!n || n > 14 || *s == '-' || (n == 1 && *s == '.') || (n == 2 && !strncmp(s, "..", 2)))
            return false;
        for (size_t i = 0; i < n; i++)
            if (!isalnum((unsigned char)s[i]) && !strchr(".-_+", s[i]))
                return false;
        if (!s[n])
            return true;
        s += n + 1;
    }
}

/* Whether the machine has the zone. Without zone files, any name within one of IANA's areas counts, and some
 * others. */
static bool zone_known(const char *s)
{
    kl_zone *zone = kl_zone_open(s), *any = zone ? NULL : kl_zone_open("UTC");
    bool here = zone != NULL, listed = zone || any;
    kl_zone_free(zone);
    kl_zone_free(any);
    if (listed)
        return here;
    static const char areas[] =
        "Africa America Antarctica Arctic Asia Atlantic Australia Brazil Canada Chile "
        "Etc Europe Indian Mexico Pacific US";
    static const char alone[] =
        "CET CST6CDT Cuba EET EST EST5EDT Egypt Eire Factory GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST "
        "Hongkong Iceland Iran Israel Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC "
        "PST8PDT Poland Portugal ROC ROK Singapore Turkey UCT UTC Universal W-SU WET Zulu";
    const char *slash = strchr(s, '/');
    if (!slash)
        return kl__one_of(s, alone);
    char *area = kl_strndup(s, (size_t)(slash - s));
    bool known = kl__one_of(area, areas);
    kl_free(area);
    return known;
}

static void check_zone(kl__causes *c, const kl_value *spec)
{
    const kl_value *zone = kl_value_get(spec, "timeZone");
    const kl__place *at = KL_IN(SPEC, "timeZone");
    const char *text = kl__text(spec, "timeZone");
    if (!zone)
        return;
    if (!*text)
        kl__say_invalid(c, at, zone, "timeZone must be nil or non-empty string");
    else if (!zone_like(text))
        kl__say_invalid(c, at, zone, "unknown time zone %s", text);
    else {
        if (!strcasecmp(text, "Local"))
            kl__say_invalid(c, at, zone,
                "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
        if (!strcmp(text, "Local") || zone_known(text))
            return;
        const char *fault = kl_zone_fault(text);
        if (fault)
            kl__say_invalid(c, at, zone, "%s", fault);
        else
            kl__say_invalid(c, at, zone, "unknown time zone %s", text);
    }
}

static void check_schedule(const kl__write *w, const kl_value *spec)
{
    const char *text = kl__text(spec, "schedule");
    const kl__place *at = KL_IN(SPEC, "schedule");
    bool before = strstr(kl__text(kl_value_get(w->old, "spec"), "schedule"), "TZ") != NULL;
    if (!*text) {
        kl__say_required(w->causes, at, "");
        return;
    }
    char *why = kl__schedule_fault(text);
    if (why)
        kl__say_invalid_text(w->causes, at, text, "%s", why);
    kl_free(why);
    if (!strstr(text, "TZ"))
        return;
    if (!before)
        kl__say_invalid_text(
            w->causes, at, text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    else if (kl_value_get(spec, "timeZone"))
        kl__say_invalid_text(
            w->causes, at, text, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
}

void kl__check_cron_job(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *spec = kl_value_get(w->o, "spec"), *old = kl_value_get(w->old, "spec"),
                   *run = kl_value_at(spec, "jobTemplate", "spec", NULL);
    const kl__place *at = KL_IN(KL_IN(SPEC, "jobTemplate"), "spec");
    if (kl__write_same_spec(w))
        return;
    check_schedule(w, spec);
    kl__check_natural(c, spec, SPEC, "startingDeadlineSeconds");
    if (!old || !kl_value_equal(kl_value_get(old, "timeZone"), kl_value_get(spec, "timeZone")))
        check_zone(c, spec);
    kl__check_word(c, spec, SPEC, "concurrencyPolicy", true, "Allow Forbid Replace");
    check_run(c, run, at);
    if (kl_value_get(run, "selector"))
        kl__say_invalid(
            c, KL_IN(at, "selector"), kl_value_get(run, "selector"), "`selector` will be auto-generated");
    if (kl__true(run, "manualSelector"))
        kl__say_unsupported(c, KL_IN(at, "manualSelector"), kl_value_get(run, "manualSelector"), "nil false");
    kl__check_naturals(c, spec, SPEC, "successfulJobsHistoryLimit failedJobsHistoryLimit");
    const char *name = kl_object_name(w->o);
    if (!w->old && name && strlen(name) > 52)
        kl__say_invalid_text(
            c, KL_IN(KL_IN(NULL, "metadata"), "name"), name, "must be no more than 52 characters");
}
