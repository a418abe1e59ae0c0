/* events.c - validation of an Event (apis/core/validation/events.go), in kube-apiserver's order and words.
 *
 * An Event with an eventTime is one of the new form, in either API: it names its reporter and the action.
 * Events of events.k8s.io/v1 must have that form, without the fields of the old one, and later writes may
 * change only the series. */
#include "builtin/kinds.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/names.h"
#include "model/object.h"

#define WORD_MAX 128
#define NOTE_MAX 1024

/* Reads a field by its core/v1 name from an object of either API. */
static const kl_value *get(const kl_value *o, const char *field)
{
    static const struct {
        const char *core, *events;
    } names[] = {{"involvedObject", "regarding"}, {"message", "note"}, {"count", "deprecatedCount"},
        {"firstTimestamp", "deprecatedFirstTimestamp"}, {"lastTimestamp", "deprecatedLastTimestamp"},
        {"source", "deprecatedSource"}, {"reportingComponent", "reportingController"}};
    const kl_value *v = kl_value_get(o, field);
    for (size_t i = 0; !v && i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].core, field))
            v = kl_value_get(o, names[i].events);
    return v;
}

static const char *text(const kl_value *o, const char *a, const char *b)
{
    const kl_value *v = get(o, a);
    const char *s = kl_value_str(b ? kl_value_get(v, b) : v);
    return s ? s : "";
}

/* Complains about a field. `shown` is what kube-apiserver shows in place of the value. */
static void invalid(kl__causes *causes, const char *field, const char *shown, const char *why)
{
    const kl_value *v = kl_value_of_str(shown);
    kl__cause_invalid(causes, field, v, "%s", why);
    kl_value_unref(v);
}

static void at_most(kl__causes *causes, const kl_value *o, const char *field, size_t max)
{
    char why[64];
    snprintf(why, sizeof why, "can have at most %zu characters", max);
    if (strlen(text(o, field, NULL)) > max)
        invalid(causes, field, "", why);
}

static void required(kl__causes *causes, const kl_value *o, const char *field, const char *called)
{
    if (!*text(o, field, NULL))
        kl__cause_required(causes, called, "");
}

static const char bad_name[] = "name part must consist of alphanumeric characters, '-', '_' or '.', and must "
                               "start and end with an alphanumeric character "
                               "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                               "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

static void validate_reporter(const kl_value *o, bool core, kl__causes *causes)
{
    const char *called = core ? "reportingComponent" : "reportingController",
               *who = text(o, "reportingComponent", NULL), *why = kl_name_qualified(who);
    required(causes, o, "reportingComponent", called);
    if (!*who)
        invalid(causes, called, "", "name part must be non-empty");
    if (why)
        invalid(causes, called, who, bad_name);
}

static void validate_any(const kl_value *o, bool core, kl__causes *causes)
{
    const char *ns = text(o, "metadata", "namespace"), *theirs = text(o, "involvedObject", "namespace");
    bool is_new = *text(o, "eventTime", NULL), is_default = !strcmp(ns, "default");
    bool fits = *theirs ? is_new || !strcmp(ns, theirs)
                        : is_default || (is_new && !strcmp(ns, "kube-system"));
    if (!fits)
        invalid(causes, "involvedObject.namespace", theirs, "does not match event.namespace");
    if (!is_new)
        return;
    validate_reporter(o, core, causes);
    required(causes, o, "reportingInstance", "reportingInstance");
    at_most(causes, o, "reportingInstance", WORD_MAX);
    required(causes, o, "action", "action");
    at_most(causes, o, "action", WORD_MAX);
    required(causes, o, "reason", "reason");
    at_most(causes, o, "reason", WORD_MAX);
    at_most(causes, o, "message", NOTE_MAX);
}

static void validate_series(const kl_value *o, kl__causes *causes)
{
    const kl_value *series = kl_value_get(o, "series");
    int64_t count = 0;
    if (!series)
        return;
    (void)kl_value_int(kl_value_get(series, "count"), &count);
    if (count < 2)
        invalid(causes, "series.count", "", "should be at least 2");
    if (!*text(series, "lastObservedTime", NULL))
        kl__cause_required(causes, "series.lastObservedTime", "");
}

static void validate_create(const kl_value *o, kl__causes *causes)
{
    static const char *const unset[] = {"firstTimestamp", "lastTimestamp", "count"};
    int64_t count = 0;
    validate_series(o, causes);
    required(causes, o, "eventTime", "eventTime");
    const char *type = text(o, "type", NULL);
    if (strcmp(type, "Normal") && strcmp(type, "Warning")) {
        char *why = kl_sprintf("has invalid value: %s", type);
        invalid(causes, "type", "", why);
        kl_free(why);
    }
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
        if (*text(o, unset[i], NULL) || (kl_value_int(get(o, unset[i]), &count) && count))
            invalid(causes, unset[i], "", "needs to be unset");
    if (*text(o, "source", "component") || *text(o, "source", "host"))
        invalid(causes, "source", "", "needs to be unset");
}

/* An object reference in the form that Go prints. */
static const kl_value *reference(const kl_value *o)
{
    static const struct {
        const char *shown, *field;
    } fields[] = {{"Kind", "kind"}, {"Namespace", "namespace"}, {"Name", "name"}, {"UID", "uid"},
        {"APIVersion", "apiVersion"}, {"ResourceVersion", "resourceVersion"}, {"FieldPath", "fieldPath"}};
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        kl_build_kstr(b, fields[i].shown, text(o, fields[i].field, NULL));
    kl_build_end(b);
    return kl_builder_done(b);
}

static void unchanged(
    const kl_value *old, const kl_value *o, const char *field, const char *called, kl__causes *causes)
{
    const kl_value *a = get(old, field), *b = get(o, field);
    if (kl_value_equal(a, b)
        || (!kl_value_len(a) && !kl_value_len(b) && kl_value_type(a) == kl_value_type(b)))
        return;
    bool is_reference = !strcmp(field, "involvedObject") || !strcmp(field, "related");
    const kl_value *shown = is_reference ? reference(b) : b ? kl_value_ref(b) : kl_value_of_str("");
    kl__cause_invalid(causes, called, shown, "field is immutable");
    kl_value_unref(shown);
}

static void validate_update(const kl_value *old, const kl_value *o, kl__causes *causes)
{
    static const char *const fields[] = {"involvedObject", "reason", "message", "source", "firstTimestamp",
        "lastTimestamp", "count", "type", "eventTime", "action", "related", "reportingComponent",
        "reportingInstance"};
    if (!kl_value_equal(kl_value_get(old, "series"), kl_value_get(o, "series")))
        validate_series(o, causes);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        unchanged(old, o, fields[i],
            !strcmp(fields[i], "reportingComponent") ? "reportingController" : fields[i], causes);
}

void kl__check_event(const kl__write *w)
{
    const kl_value *old = w->old, *o = w->o;
    kl__causes *causes = w->causes;
    bool core = !*w->kind->group;
    validate_any(o, core, causes);
    if (core)
        return;
    if (old)
        validate_update(old, o, causes);
    else
        validate_create(o, causes);
}
