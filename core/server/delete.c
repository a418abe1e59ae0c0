/* delete.c - deletion: at once, or marked and waiting for finalizers and graces.
 *
 *   live --delete--> gone                               nothing holds it
 *   live --delete--> terminating --last hold--> gone    finalizers, or a pod that runs somewhere and has time to stop
 * A second delete of a terminating object changes nothing, but may shorten the grace. */
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/time.h"
#include "server/admission.h"
#include "schema/edit.h"
#include "server/lifecycle.h"
#include "show/render.h"
#include "server/state.h"
#include "schema/status.h"
#include "server/strategy.h"

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

/* How long the object may live on: pods that run somewhere have time to stop. */
static int64_t grace_of(const kl__call *c, const kl_value *old, const kl_value *options)
{
    if (!is(c, "", "pods"))
        return 0;
    const char *phase = kl_value_str_at(old, "status", "phase", NULL),
               *node = kl_value_str_at(old, "spec", "nodeName", NULL);
    if (!node || !*node || (phase && (!strcmp(phase, "Succeeded") || !strcmp(phase, "Failed"))))
        return 0;
    int64_t grace = kl_value_int_at(old, 30, "spec", "terminationGracePeriodSeconds", NULL);
    return kl_value_int_at(options, grace, "gracePeriodSeconds", NULL);
}

static void mark_deleted(const kl__call *c, const kl_value **o, int64_t grace)
{
    char text[KL_TIME_MAX];
    kl_time when = kl__server_wall(c->s) + KL_SECONDS(grace);
    KL_EDIT(o, kl_value_of_str(kl_time_format_wall(when, text)), "metadata", "deletionTimestamp");
    KL_EDIT(o, kl_value_of_int(grace), "metadata", "deletionGracePeriodSeconds");
    int64_t generation = kl_object_generation(*o);
    if (generation)
        KL_EDIT(o, kl_value_of_int(generation + 1), "metadata", "generation");
    if (is(c, "", "namespaces"))
        KL_EDIT(o, kl_value_of_str("Terminating"), "status", "phase");
}

static void add_finalizer(const kl_value **o, const char *name)
{
    if (kl_object_has_finalizer(*o, name))
        return;
    const kl_value *have = kl_value_at(*o, "metadata", "finalizers", NULL);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(have); i++)
        kl_build_value(b, kl_value_item(have, i));
    kl_build_str(b, name);
    kl_build_end(b);
    KL_EDIT(o, kl_builder_done(b), "metadata", "finalizers");
}

static bool protected_namespace(const char *name)
{
    return !strcmp(name, "default") || !strcmp(name, "kube-system") || !strcmp(name, "kube-public");
}

static kl_status admit(const kl__call *c, const kl_value *stored, kl_err *err)
{
    const kl_value *old = c->admission ? kl_render_version(c->kind, stored) : NULL;
    const kl_value *nothing = NULL;
    kl_status st = old ? kl__admit_mutate(c, "DELETE", old, &nothing, err) : KL_OK;
    if (old && !st)
        st = kl__admit_validate(c, "DELETE", old, NULL, err);
    kl_value_unref(old);
    return st;
}

kl_status kl__verb_delete(
    const kl__call *c, const kl_value *options, const kl_value **out, int *code, kl_err *err)
{
    const kl_value *old;
    kl_status st = kl__verb_get(c, &old, err);
    *code = 200;
    if (!st && is(c, "", "namespaces") && protected_namespace(c->name))
        st = kl__fail_forbidden(err, c->kind, c->name, "this namespace may not be deleted");
    if (!st)
        st = check_preconditions(c, old, options, err);
    if (!st)
        st = admit(c, old, err);
    if (st)
        return st;
    const kl_value *o = kl_value_ref(old);
    old = kl_value_ref(old);
    int64_t grace = grace_of(c, old, options);
    bool was = kl_object_deleting(old), namespace = is(c, "", "namespaces"),
         crd = is(c, "apiextensions.k8s.io", "customresourcedefinitions");
    const char *policy = kl_value_str_at(options, "propagationPolicy", NULL);
    if (policy && !was && !strcmp(policy, "Orphan"))
        add_finalizer(&o, "orphan");
    if (crd && !was)
        add_finalizer(&o, "customresourcecleanup.apiextensions.k8s.io");
    bool held = kl_value_len(kl_value_at(o, "metadata", "finalizers", NULL))
        || (namespace && kl_value_len(kl_value_at(o, "spec", "finalizers", NULL)));
    int64_t left = kl_value_int_at(old, 0, "metadata", "deletionGracePeriodSeconds", NULL);
    char *key = kl_object_key(old);
    if (!was || grace < left) {
        if (held || grace > 0)
            mark_deleted(c, &o, grace);
        if (c->dry_run)
            *out = kl_value_ref(o);
        else if (held || grace > 0) {
            *out = kl_value_ref(kl__store_put(c->s->store, c->kind->bucket, key, kl_value_ref(o)));
            kl__after_put(c->s, c->kind, *out);
        } else {
            *out = kl__store_remove(c->s->store, c->kind->bucket, key, o);
            kl__after_remove(c->s, c->kind, *out);
        }
    } else
        *out = kl_value_ref(old); /* a second delete changes nothing */
    if (!held && grace == 0 && !kl__strategy_returns_deleted(c->kind)) {
        const kl_value *gone = *out;
        *out = kl__status_success(c->kind, c->name, kl_object_uid(gone));
        kl_value_unref(gone);
    }
    kl_free(key);
    kl_value_unref(o);
    kl_value_unref(old);
    return KL_OK;
}
