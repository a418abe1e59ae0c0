/* delete.c - deletion: at once, or marked and waiting for finalizers and graces.
 *
 *   live --delete--> gone                               nothing holds it
 *   live --delete--> terminating --last hold--> gone    finalizers, or a pod that runs somewhere and has time to stop
 *
 * A second delete of a terminating object may shorten the grace period, or change the propagation policy. */
#include <string.h>

#include "base/mem.h"
#include "builtin/habits.h"
#include "model/object.h"
#include "model/time.h"
#include "verbs/admission.h"
#include "verbs/convert.h"
#include "schema/edit.h"
#include "verbs/lifecycle.h"
#include "show/render.h"
#include "verbs/call.h"
#include "verbs/options.h"
#include "schema/status.h"
#include "verbs/strategy.h"
#include "owners/owners.h"

#define CRD_FINALIZER "customresourcecleanup.apiextensions.k8s.io"

static bool is(const kl__call *c, const char *group, const char *plural)
{
    return !strcmp(c->kind->group, group) && !strcmp(c->kind->plural, plural);
}
static bool same(const char *a, const char *b) { return !strcmp(a ? a : "", b ? b : ""); }

/* These conflicts speak of the Kind, not of the resource. */
static kl_status KL_PRINTF(3, 4) precondition(kl_err *err, const kl__call *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *why = kl_vsprintf(fmt, ap);
    va_end(ap);
    const kl__kind *k = c->kind;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "name", c->name);
    kl_build_kstr(b, "group", *k->group ? k->group : NULL);
    kl_build_kstr(b, "kind", k->kind);
    kl_build_end(b);
    kl_status st = kl__api_fail(err, 409, "Conflict", kl_builder_done(b),
        "Operation cannot be fulfilled on %s%s%s \"%s\": %s", k->kind, *k->group ? "." : "", k->group,
        c->name, why);
    kl_free(why);
    return st;
}

static kl_status check_preconditions(
    const kl__call *c, const kl_value *old, const kl_value *options, kl_err *err)
{
    const char *uid = kl_value_str_at(options, "preconditions", "uid", NULL),
               *rv = kl_value_str_at(options, "preconditions", "resourceVersion", NULL);
    if (uid && !same(uid, kl_object_uid(old)))
        return precondition(err, c,
            "the UID in the precondition (%s) does not match the UID in record (%s). "
            "The object might have been deleted and then recreated",
            uid, kl_object_uid(old));
    if (rv && !same(rv, kl_object_rv(old)))
        return precondition(err, c,
            "the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). "
            "The object might have been modified",
            rv, kl_object_rv(old));
    return KL_OK;
}

/* The seconds that a terminating pod was given. */
static int64_t grace_left(const kl_value *o)
{
    return kl_value_int_at(o, 0, "metadata", "deletionGracePeriodSeconds", NULL);
}

/* The grace period: pods on a node have time to stop. One that stops already gets no other time unless the
 * options say so. */
static int64_t grace_of(const kl__call *c, const kl_value *old, const kl_value *options)
{
    if (!is(c, "", "pods"))
        return 0;
    bool stops = kl_object_deleting(old);
    const char *phase = kl_value_str_at(old, "status", "phase", NULL),
               *node = kl_value_str_at(old, "spec", "nodeName", NULL);
    bool runs = node && *node && !(phase && (!strcmp(phase, "Succeeded") || !strcmp(phase, "Failed")));
    if (!stops && !runs)
        return 0;
    int64_t usual = stops ? grace_left(old)
                          : kl_value_int_at(old, 30, "spec", "terminationGracePeriodSeconds", NULL),
            grace = kl_value_int_at(options, usual, "gracePeriodSeconds", NULL);
    return grace < 0 ? 1 : grace;
}

/* When a pod that stops has to be gone after its grace period was shortened: earlier by as much, but not in
 * the past. */
static kl_time shortened(const kl_value *o, kl_time now, int64_t *grace)
{
    int64_t sec;
    int32_t nsec;
    const char *text = kl_value_str_at(o, "metadata", "deletionTimestamp", NULL);
    kl_time when = now;
    if (text && !kl_time_parse(text, &sec, &nsec, NULL))
        when = KL_SECONDS(sec - grace_left(o) + *grace);
    if (when >= now)
        return when;
    *grace = *grace ? 1 : 0;
    return now;
}

static void mark_deleted(const kl__call *c, const kl_value **o, int64_t grace)
{
    char text[KL_TIME_MAX];
    bool first = !kl_object_deleting(*o);
    kl_time now = kl__admission_wall(c), when = first ? now + KL_SECONDS(grace) : shortened(*o, now, &grace);
    KL_EDIT(o, kl_value_of_str(kl_time_format_wall(when, text)), "metadata", "deletionTimestamp");
    if (!is(c, "", "namespaces"))
        KL_EDIT(o, kl_value_of_int(grace), "metadata", "deletionGracePeriodSeconds");
    int64_t generation = kl_object_generation(*o);
    if (generation && first)
        KL_EDIT(o, kl_value_of_int(generation + 1), "metadata", "generation");
    if (is(c, "", "namespaces"))
        KL_EDIT(o, kl_value_of_str("Terminating"), "status", "phase");
}

/* Sets metadata.finalizers without those in `without`, and with `name` (NULL: none) at the end. */
static void set_finalizers(const kl_value **o, const char *const without[2], const char *name)
{
    const kl_value *have = kl_value_at(*o, "metadata", "finalizers", NULL);
    kl_builder *b = kl_builder_new();
    size_t n = name != NULL;
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(have); i++) {
        const char *one = kl_value_str(kl_value_item(have, i));
        if (one && ((without[0] && !strcmp(one, without[0])) || (without[1] && !strcmp(one, without[1]))))
            continue;
        kl_build_value(b, kl_value_item(have, i));
        n++;
    }
    if (name)
        kl_build_str(b, name);
    kl_build_end(b);
    const kl_value *list = kl_builder_done(b);
    if (n)
        KL_EDIT(o, kl_value_ref(list), "metadata", "finalizers");
    else
        KL_CUT(o, "metadata", "finalizers");
    kl_value_unref(list);
}

/* The finalizer for the garbage collector, or NULL. The propagation policy comes from the options, else from
 * a present finalizer, else from the kind. */
static const char *finalizer_for(const kl__call *c, const kl_value *old, const kl_value *options)
{
    const char *policy = kl_value_str_at(options, "propagationPolicy", NULL);
    const kl_value *orphan = kl_value_get(options, "orphanDependents"),
                   *have = kl_value_at(old, "metadata", "finalizers", NULL);
    if (kl__kind_among(c->kind, "/events events.k8s.io/events"))
        return NULL;
    if (kl_value_type(orphan) == KL_BOOL)
        return kl_value_bool(orphan, false) ? KL_FINALIZER_ORPHAN : NULL;
    if (policy)
        return !strcmp(policy, "Orphan")    ? KL_FINALIZER_ORPHAN
            : !strcmp(policy, "Foreground") ? KL_FINALIZER_FOREGROUND
                                            : NULL;
    for (size_t i = 0; i < kl_value_len(have); i++) {
        const char *one = kl_value_str(kl_value_item(have, i));
        if (one && !strcmp(one, KL_FINALIZER_ORPHAN))
            return KL_FINALIZER_ORPHAN;
        if (one && !strcmp(one, KL_FINALIZER_FOREGROUND))
            return KL_FINALIZER_FOREGROUND;
    }
    return kl__kind_among(c->kind, "batch/jobs /replicationcontrollers") ? KL_FINALIZER_ORPHAN : NULL;
}

/* Sets the propagation finalizers to those of the call. */
static void set_policy(const kl__call *c, const kl_value **o, const kl_value *options)
{
    static const char *const both[2] = {KL_FINALIZER_ORPHAN, KL_FINALIZER_FOREGROUND};
    const char *want = finalizer_for(c, *o, options);
    bool orphan = kl_object_has_finalizer(*o, both[0]), foreground = kl_object_has_finalizer(*o, both[1]);
    if (orphan == (want && !strcmp(want, both[0])) && foreground == (want && !strcmp(want, both[1])))
        return;
    set_finalizers(o, both, want);
}

void kl__dry_run_check(const kl_value *stages, kl__causes *causes)
{
    for (size_t i = 0; i < kl_value_len(stages); i++)
        if (strcmp(kl_value_str(kl_value_item(stages, i)), "All") != 0) {
            char *all = kl_value_to_json(stages);
            kl__cause_add(causes, "FieldValueNotSupported", "dryRun",
                "Unsupported value: %s: supported values: \"All\"", all);
            kl_free(all);
            return;
        }
}

kl_status kl__delete_check(const kl_value *options, kl_err *err)
{
    const kl_value *policy = kl_value_get(options, "propagationPolicy"),
                   *orphan = kl_value_get(options, "orphanDependents");
    const char *word = kl_value_str(policy);
    kl__causes causes = {0};
    if (word && kl_value_type(orphan) == KL_BOOL)
        kl__cause_invalid(&causes, "propagationPolicy", policy,
            "orphanDependents and deletionPropagation cannot be both set");
    if (word && strcmp(word, "Foreground") && strcmp(word, "Background") && strcmp(word, "Orphan"))
        kl__cause_add(&causes, "FieldValueNotSupported", "propagationPolicy",
            "Unsupported value: \"%s\": supported values: \"Foreground\", \"Background\", \"Orphan\", "
            "\"nil\"",
            word);
    kl__dry_run_check(kl_value_get(options, "dryRun"), &causes);
    return kl__fail_causes(err, "meta.k8s.io", "DeleteOptions", "", &causes);
}

static void warn_of_children(const kl__call *c, const kl_value *options)
{
    if (is(c, "batch", "jobs") && !kl_value_get(options, "propagationPolicy")
        && !kl_value_get(options, "orphanDependents"))
        kl__call_warn(c,
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to "
            "remove them or set propagationPolicy=Orphan to suppress this warning");
}

static bool protected_namespace(const char *name)
{
    return !strcmp(name, "default") || !strcmp(name, "kube-system") || !strcmp(name, "kube-public");
}

static kl_status admit(const kl__call *c, const kl_value *stored, kl_err *err)
{
    const kl_value *old = NULL, *nothing = NULL;
    kl_status st = c->admission ? kl__see(c, stored, &old, err) : KL_OK;
    if (!st && old)
        st = kl__admit_mutate(c, "DELETE", old, &nothing, err);
    if (!st && old)
        st = kl__admit_validate(c, "DELETE", old, NULL, err);
    kl_value_unref(old);
    return st;
}

/* Removes an object that nothing holds. A pod is marked first, as in kube-apiserver, so that watchers see it
 * terminate. A new reference to its last state. */
static const kl_value *remove_now(const kl__call *c, const char *key, const kl_value *o)
{
    bool pod = is(c, "", "pods");
    const kl_value *last = pod ? kl__store_put(c->w->store, c->kind->bucket, key, kl_value_ref(o)) : o,
                   *gone = kl__store_remove(c->w->store, c->kind->bucket, key, last);
    kl__after_remove(c->w, c->kind, gone);
    return gone;
}

kl_status kl__verb_delete(const kl__call *c, const kl_value *options, const kl_value **out, kl_err *err)
{
    const kl_value *old;
    kl_status st = kl__delete_check(options, err);
    if (!st)
        st = kl__verb_get(c, &old, err);
    if (!st && is(c, "", "namespaces") && protected_namespace(c->name))
        st = kl__fail_forbidden(err, c->kind, c->name, "this namespace may not be deleted");
    if (!st)
        st = check_preconditions(c, old, options, err);
    if (!st)
        st = admit(c, old, err);
    if (st)
        return st;
    const kl_value *o = kl_value_ref(old), *shown = NULL;
    old = kl_value_ref(old);
    warn_of_children(c, options);
    int64_t grace = grace_of(c, old, options), left = grace_left(old);
    bool was = kl_object_deleting(old), pod = is(c, "", "pods"), namespace = is(c, "", "namespaces"),
         crd = is(c, "apiextensions.k8s.io", "customresourcedefinitions");
    /* the grace of a pod that stops may be shortened; of other kinds the policy may be changed */
    bool moves = !was || (pod ? grace < left : !namespace && !crd);
    static const char *const none[2] = {NULL, NULL};
    if (moves && !crd)
        set_policy(c, &o, options);
    else if (moves)
        set_finalizers(&o, none, CRD_FINALIZER);
    bool held = kl_value_len(kl_value_at(o, "metadata", "finalizers", NULL))
        || (namespace && kl_value_len(kl_value_at(o, "spec", "finalizers", NULL)));
    char *key = kl_object_key(old);
    if (moves && (!was || grace < left) && (held || grace > 0 || pod))
        mark_deleted(c, &o, grace);
    if (c->kind->conversion && c->conversions)
        st = kl__see(c, o, &shown, err);
    if (st)
        ; /* an object that cannot be returned is not deleted */
    else if (moves) {
        if (c->dry_run || (was && held && kl_value_equal(o, old)))
            *out = kl_value_ref(o);
        else if (held || grace > 0) {
            *out = kl_value_ref(kl__store_put(c->w->store, c->kind->bucket, key, kl_value_ref(o)));
            kl__after_put(c->w, c->kind, *out);
        } else
            *out = remove_now(c, key, o);
    } else
        *out = kl_value_ref(old); /* a second delete changes nothing */
    if (!st && shown) {
        KL_EDIT(&shown, kl_value_ref(kl_value_at(*out, "metadata", "resourceVersion", NULL)), "metadata",
            "resourceVersion");
        kl__replace(out, kl_value_ref(shown));
    }
    if (!st && !held && grace == 0 && !kl__habit_returns_deleted(c->kind)) {
        const kl_value *gone = *out;
        *out = kl__status_success(c->kind, c->name, kl_object_uid(gone));
        kl_value_unref(gone);
    }
    kl_free(key);
    kl_value_unref(shown);
    kl_value_unref(o);
    kl_value_unref(old);
    return st;
}
