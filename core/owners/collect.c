/* collect.c - the fate of an object whose owners are deleted, as in kube-controller-manager's garbage
 * collector.
 *
 *   owners                              -> the object
 *   one is there, none is gone             stays
 *   one is there, others gone or waiting   loses the references to those
 *   none is there                          is deleted: foreground if an owner waits and it has dependents of
 *                                          its own, else as its finalizers say
 *   of an unknown kind                     stays
 *
 * An object that waits for its dependents (foregroundDeletion) is deleted when none is left that blocks it;
 * one that orphans them removes itself from their owners first. */
#include "owners/collect.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "model/object.h"
#include "model/resource.h"
#include "schema/edit.h"

/* metadata.`member` becomes `list`, which is taken; an empty one is removed. */
static void set_metadata(
    const kl__collector *c, kl__kind *k, const kl_value *object, const char *member, const kl_value *list)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "uid", kl_object_uid(object));
    kl_build_key(b, member);
    if (kl_value_len(list))
        kl_build_value(b, list);
    else
        kl_build_null(b);
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *patch = kl_builder_done(b);
    c->patch(c->arg, k, object, patch);
    kl_value_unref(patch);
    kl_value_unref(list);
}

static void drop_finalizer(const kl__collector *c, kl__kind *k, const kl_value *object, const char *name)
{
    const kl_value *have = kl_value_at(object, "metadata", "finalizers", NULL);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(have); i++) {
        const char *one = kl_value_str(kl_value_item(have, i));
        if (!one || strcmp(one, name))
            kl_build_value(b, kl_value_item(have, i));
    }
    kl_build_end(b);
    set_metadata(c, k, object, "finalizers", kl_builder_done(b));
}

static bool foreground(const kl_value *object)
{
    return kl_object_deleting(object) && kl_object_has_finalizer(object, KL_FINALIZER_FOREGROUND);
}

/* ------------------------------------------------------------------ owners */

typedef enum owner { OWNER_SOLID, OWNER_GONE, OWNER_WAITING, OWNER_UNKNOWN } owner;

static owner owner_state(const kl__collector *c, const kl_value *ref, const kl_value *dependent)
{
    const char *version = kl_object_api_version(ref), *kind = kl_object_kind(ref),
               *uid = kl_value_str(kl_value_get(ref, "uid")), *name = kl_value_str(kl_value_get(ref, "name")),
               *ns = kl_object_namespace(dependent);
    char *group = NULL, *v = NULL;
    if (!version || !kind || !uid || !name)
        return OWNER_UNKNOWN;
    kl_api_version_split(version, &group, &v);
    kl__kind *k = kl__kinds_by_kind(c->kinds, group, v, kind);
    kl_free(group);
    kl_free(v);
    if (!k)
        return kl__owners_gone(c->owners, uid) ? OWNER_GONE : OWNER_UNKNOWN;
    if (k->namespaced && !ns)
        return OWNER_UNKNOWN; /* it could be in any namespace */
    char *key = kl_key_join(k->namespaced ? ns : NULL, name);
    const kl__entry *e = kl__bucket_get(k->bucket, key);
    kl_free(key);
    const char *have = e ? kl_object_uid(e->object) : NULL;
    if (!have || strcmp(have, uid))
        return OWNER_GONE;
    return foreground(e->object) ? OWNER_WAITING : OWNER_SOLID;
}

static bool refers(const kl_value *ref, const char *uid, bool blocking)
{
    const char *have = kl_value_str(kl_value_get(ref, "uid"));
    return have && !strcmp(have, uid)
        && (!blocking || kl_value_bool(kl_value_get(ref, "blockOwnerDeletion"), false));
}

/* Whether the object names `uid` as an owner that it blocks. */
static bool blocks(const kl_value *object, const char *uid)
{
    const kl_value *refs = kl_value_at(object, "metadata", "ownerReferences", NULL);
    for (size_t i = 0; i < kl_value_len(refs); i++)
        if (refers(kl_value_item(refs, i), uid, true))
            return true;
    return false;
}

/* Removes the object's references to `uid`, or (uid NULL) to owners that are gone or wait. */
static void release(const kl__collector *c, kl__kind *k, const kl_value *object, const char *uid)
{
    const kl_value *refs = kl_value_at(object, "metadata", "ownerReferences", NULL);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(refs); i++) {
        const kl_value *ref = kl_value_item(refs, i);
        owner is = uid ? OWNER_SOLID : owner_state(c, ref, object);
        if (uid ? !refers(ref, uid, false) : is == OWNER_SOLID)
            kl_build_value(b, ref);
    }
    kl_build_end(b);
    set_metadata(c, k, object, "ownerReferences", kl_builder_done(b));
}

/* The object blocks none of its owners any more, since it is an owner of one of them itself. */
static void unblock(const kl__collector *c, kl__kind *k, const kl_value *object)
{
    const kl_value *refs = kl_value_at(object, "metadata", "ownerReferences", NULL);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(refs); i++) {
        const kl_value *ref = kl_value_ref(kl_value_item(refs, i));
        if (kl_value_get(ref, "blockOwnerDeletion"))
            KL_EDIT(&ref, kl_value_of_bool(false), "blockOwnerDeletion");
        kl_build_value(b, ref);
        kl_value_unref(ref);
    }
    kl_build_end(b);
    set_metadata(c, k, object, "ownerReferences", kl_builder_done(b));
}

/* ------------------------------------------------------------------ dependents */

/* Calls `fn` with each object that names this one as an owner. */
static void each_dependent(const kl__collector *c, const kl_value *object,
    void (*fn)(
        const kl__collector *c, kl__kind *k, const kl_value *dependent, const kl_value *owner, void *arg),
    void *arg)
{
    size_t n = 0;
    kl__place_of *v = kl__owners_dependents(c->owners, kl_object_uid(object), &n);
    for (size_t i = 0; i < n; i++) {
        kl__kind *k = kl__kinds_of_bucket(c->kinds, v[i].bucket);
        const kl__entry *e = k ? kl__bucket_get(v[i].bucket, v[i].key) : NULL;
        const kl_value *dependent = e ? kl_value_ref(e->object) : NULL;
        if (dependent)
            fn(c, k, dependent, object, arg);
        kl_value_unref(dependent);
    }
    kl__owners_drop(v, n);
}

struct count {
    size_t all, blocking, waiting;
};

static void count_one(
    const kl__collector *c, kl__kind *k, const kl_value *dependent, const kl_value *object, void *arg)
{
    struct count *n = arg;
    (void)c;
    (void)k;
    n->all++;
    n->blocking += blocks(dependent, kl_object_uid(object));
    n->waiting += foreground(dependent);
}

static void let_go(
    const kl__collector *c, kl__kind *k, const kl_value *dependent, const kl_value *object, void *arg)
{
    (void)arg;
    release(c, k, dependent, kl_object_uid(object));
}

static const char *policy_of(const kl_value *object)
{
    return kl_object_has_finalizer(object, KL_FINALIZER_ORPHAN)    ? "Orphan"
        : kl_object_has_finalizer(object, KL_FINALIZER_FOREGROUND) ? "Foreground"
                                                                   : "Background";
}

static void look(const kl__collector *c, kl__kind *k, const kl_value *object)
{
    struct count n = {0};
    size_t owners[OWNER_UNKNOWN + 1] = {0};
    const kl_value *refs = kl_value_at(object, "metadata", "ownerReferences", NULL);
    if (!kl_object_uid(object))
        return;
    each_dependent(c, object, count_one, &n);
    if (kl_object_deleting(object)) {
        if (kl_object_has_finalizer(object, KL_FINALIZER_ORPHAN)) {
            each_dependent(c, object, let_go, NULL);
            drop_finalizer(c, k, object, KL_FINALIZER_ORPHAN);
        } else if (foreground(object) && !n.blocking)
            drop_finalizer(c, k, object, KL_FINALIZER_FOREGROUND);
        return;
    }
    for (size_t i = 0; i < kl_value_len(refs); i++)
        owners[owner_state(c, kl_value_item(refs, i), object)]++;
    if (!kl_value_len(refs) || owners[OWNER_UNKNOWN])
        return;
    if (owners[OWNER_SOLID]) {
        if (owners[OWNER_GONE] || owners[OWNER_WAITING])
            release(c, k, object, NULL);
    } else if (owners[OWNER_WAITING] && n.all) {
        if (n.waiting)
            unblock(c, k, object);
        c->remove(c->arg, k, object, "Foreground");
    } else
        c->remove(c->arg, k, object, policy_of(object));
}

void kl__collector_run(const kl__collector *c)
{
    kl__place_of at;
    while (kl__owners_next(c->owners, &at)) {
        kl__kind *k = kl__kinds_of_bucket(c->kinds, at.bucket);
        const kl__entry *e = k ? kl__bucket_get(at.bucket, at.key) : NULL;
        const kl_value *object = e ? kl_value_ref(e->object) : NULL;
        if (object)
            look(c, k, object);
        kl_value_unref(object);
        kl_free(at.key);
    }
}
