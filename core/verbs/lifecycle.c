/* lifecycle.c - namespaces: new objects need one that is open, and a terminating one takes its content
 * with it.
 *
 * A namespace that is deleted turns Terminating; its content is deleted with it. It goes when nothing is
 * left in it and no finalizer but our own ("kubernetes" in its spec) stands. */
#include "verbs/lifecycle.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "model/object.h"
#include "verbs/access.h"
#include "verbs/first.h"
#include "schema/edit.h"

static bool is(const kl__kind *k, const char *group, const char *plural)
{
    return !strcmp(k->group, group) && !strcmp(k->plural, plural);
}

kl_status kl__namespace_open(kl__world *w, const kl__kind *k, const char *ns, const char *name, kl_err *err)
{
    kl__kind *namespaces = kl__kinds_get(w->kinds, "", "v1", "namespaces");
    const kl__entry *e = kl__bucket_get(namespaces->bucket, ns);
    if (!e)
        return kl__fail_not_found(err, namespaces, ns);
    if (kl_object_deleting(e->object))
        return kl__fail_forbidden(
            err, k, name, "unable to create new content in namespace %s because it is being terminated", ns);
    return KL_OK;
}

/* Deletes the objects of a bucket under `prefix`. Those with finalizers stay, marked. */
static void delete_all(kl__world *w, kl__bucket *b, const char *prefix)
{
    kl__picture p;
    if (kl__bucket_picture(b, prefix, prefix, 0, SIZE_MAX, &p))
        return;
    for (size_t i = 0; i < p.len; i++) {
        kl__kind *k = kl__kinds_of_bucket(w->kinds, b); /* the last object may end the kind, too */
        if (!k || !kl__bucket_get(b, p.keys[i]))
            continue;
        kl__call c = {.w = w,
            .kind = k,
            .ns = kl_object_namespace(p.objects[i]),
            .name = kl_object_name(p.objects[i]),
            .manager = "kubelua"};
        static const char now[] = "{\"gracePeriodSeconds\":0}";
        const kl_value *out = NULL, *options = NULL;
        kl_err err = KL_ERR_INIT;
        kl_status st = kl_value_decode(now, sizeof now - 1, &options, &err);
        if (!st)
            st = kl__verb_delete(&c, options, &out, &err);
        kl_value_unref(out);
        kl_value_unref(options);
        if (st)
            kl_warn("an object of a terminating namespace or definition could not be deleted",
                "key=%s why=%s", p.keys[i], kl_err_message(&err));
        kl_err_fini(&err);
    }
    kl__picture_fini(&p);
}

/* A terminating namespace that is empty loses its finalizer, and goes when it has no other. */
static void settle_namespace(kl__world *w, const char *ns)
{
    kl__kind *namespaces = kl__kinds_get(w->kinds, "", "v1", "namespaces");
    const kl__entry *e = kl__bucket_get(namespaces->bucket, ns);
    if (!e || !kl_object_deleting(e->object))
        return;
    char *prefix = kl_sprintf("%s/", ns);
    kl__bucket *const *all;
    size_t n = kl__store_buckets(w->store, &all);
    bool empty = true;
    for (size_t i = 0; i < n && empty; i++)
        empty = !kl__bucket_has(all[i], prefix);
    kl_free(prefix);
    if (!empty)
        return;
    const kl_value *o = kl_value_ref(e->object);
    KL_CUT(&o, "spec", "finalizers");
    if (kl_value_len(kl_value_at(o, "metadata", "finalizers", NULL)))
        kl__store_put(w->store, namespaces->bucket, ns, kl_value_ref(o));
    else
        kl_value_unref(kl__store_remove(w->store, namespaces->bucket, ns, o));
    kl_value_unref(o);
}

static bool has_kubernetes_finalizer(const kl_value *namespace)
{
    const kl_value *f = kl_value_at(namespace, "spec", "finalizers", NULL);
    for (size_t i = 0; i < kl_value_len(f); i++) {
        const char *name = kl_value_str(kl_value_item(f, i));
        if (name && !strcmp(name, "kubernetes"))
            return true;
    }
    return false;
}

void kl__after_put(kl__world *w, kl__kind *k, const kl_value *object)
{
    const kl_value *o = kl_value_ref(object);
    if (is(k, KL_RBAC_GROUP, "clusterroles"))
        kl__access_aggregate(w);
    if (is(k, "", "namespaces") && kl_object_deleting(o) && has_kubernetes_finalizer(o)) {
        char *prefix = kl_sprintf("%s/", kl_object_name(o));
        kl__bucket *const *all;
        for (size_t i = 0; i < kl__store_buckets(w->store, &all); i++) {
            kl__kind *content = kl__kinds_of_bucket(w->kinds, all[i]);
            if (content && content->namespaced)
                delete_all(w, all[i], prefix);
        }
        kl_free(prefix);
        settle_namespace(w, kl_object_name(o));
    }
    if (is(k, "apiextensions.k8s.io", "customresourcedefinitions")) {
        kl__crd_serve(w, o);
        kl__crd_reconsider(w, kl_value_str_at(o, "spec", "group", NULL));
        if (kl_object_deleting(o)) {
            kl__bucket *b = kl__store_bucket(w->store, kl_value_str_at(o, "spec", "group", NULL),
                kl_value_str_at(o, "spec", "names", "plural", NULL));
            delete_all(w, b, "");
            kl__crd_settle(w, b->group, b->plural);
        }
    }
    kl_value_unref(o);
}

void kl__after_remove(kl__world *w, kl__kind *k, const kl_value *object)
{
    const char *ns = kl_object_namespace(object);
    kl__first_addresses(w, k, object, NULL);
    if (is(k, KL_RBAC_GROUP, "clusterroles"))
        kl__access_aggregate(w);
    if (is(k, "apiextensions.k8s.io", "customresourcedefinitions")) {
        kl__crd_unserve(w, object);
        kl__crd_reconsider(w, kl_value_str_at(object, "spec", "group", NULL));
        return;
    }
    bool custom = k->custom;
    char *group = kl_strdup(k->group), *plural = kl_strdup(k->plural);
    if (ns && *ns)
        settle_namespace(w, ns);
    if (custom)
        kl__crd_settle(w, group, plural);
    kl_free(group);
    kl_free(plural);
}
