/* crd.c - CustomResourceDefinitions: checked, given their status, and served.
 *
 * A CRD whose names are free is Established as soon as it is stored: names and kinds are taken over in the
 * same call, so a client that got its answer can use the resource. */
#include <string.h>

#include "base/mem.h"
#include "rules/rules.h"
#include "custom/names.h"
#include "model/object.h"
#include "model/time.h"
#include "verbs/definition.h"
#include "verbs/first.h"
#include "schema/edit.h"
#include "schema/structural.h"
#include "show/jsonpath.h"
#include "verbs/lifecycle.h"

static const char *text(const kl_value *crd, const char *a, const char *b)
{
    return kl_value_str_at(crd, "spec", a, b, NULL);
}

static kl__kind *definitions(const kl__world *w)
{
    return kl__kinds_get(w->kinds, "apiextensions.k8s.io", "v1", "customresourcedefinitions");
}

void kl__crd_fill(const kl_value **crd)
{
    kl_names_default(crd);
    if (!kl_value_at(*crd, "spec", "conversion", NULL))
        KL_EDIT(crd, kl_value_of_str("None"), "spec", "conversion", "strategy");
    const kl_value *service = kl_value_at(
        *crd, "spec", "conversion", "webhook", "clientConfig", "service", NULL);
    if (service && !kl_value_get(service, "port"))
        KL_EDIT(
            crd, kl_value_of_int(443), "spec", "conversion", "webhook", "clientConfig", "service", "port");
}

void kl__crd_prepare(const kl__call *c, const kl_value *old, const kl_value **crd)
{
    char now[KL_TIME_MAX];
    kl_time_format_wall(kl__world_wall(c->w), now);
    const kl_value *stored = kl_value_at(old, "status", "storedVersions", NULL),
                   *versions = kl_value_at(*crd, "spec", "versions", NULL);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(stored); i++)
        kl_build_value(b, kl_value_item(stored, i));
    for (size_t i = 0; i < kl_value_len(versions); i++) {
        const kl_value *v = kl_value_item(versions, i);
        const char *name = kl_value_str_at(v, "name", NULL);
        if (name && kl_value_bool(kl_value_get(v, "storage"), false) && !kl_value_has_str(stored, name))
            kl_build_str(b, name);
    }
    kl_build_end(b);
    KL_EDIT(crd, kl_builder_done(b), "status", "storedVersions");
    /* a creator sees the CRD before its names are judged (kl__crd_reconsider, from kl__after_put) */
    kl_names_settle(c->dry_run || !old ? NULL : definitions(c->w)->bucket, crd, now);
}

void kl__crd_reconsider(kl__world *w, const char *group)
{
    kl__bucket *b = definitions(w)->bucket;
    char now[KL_TIME_MAX];
    kl_time_format_wall(kl__world_wall(w), now);
    for (size_t i = 0; i < b->len; i++) {
        const kl_value *was = b->v[i]->object, *o = kl_value_ref(was);
        if (!strcmp(text(o, "group", NULL), group))
            kl_names_settle(b, &o, now);
        if (!kl_value_equal(o, was)) {
            kl__store_put(w->store, b, b->v[i]->key, kl_value_ref(o));
            kl__crd_serve(w, o);
        }
        kl_value_unref(o);
    }
    kl__first_versions(w, group);
}

/* ------------------------------------------------------------------ validation */

static void warn_of_format(void *call, const char *format)
{
    kl__call_warn(call, "unrecognized format \"%s\"", format);
}

void kl__crd_validate(const kl__call *c, const kl_value *old, const kl_value *crd, kl__causes *causes)
{
    const char *group = text(crd, "group", NULL);
    const kl_value *versions = kl_value_at(crd, "spec", "versions", NULL);
    kl__definition_validate(old, crd, c->w->types, causes);
    kl_names_check_bundle(old, crd, causes);
    for (size_t i = 0; i < kl_value_len(versions); i++)
        kl__structural_formats(kl_value_at(kl_value_item(versions, i), "schema", "openAPIV3Schema", NULL),
            warn_of_format, (void *)c);
    for (size_t i = 0; !old && group && *group && i < kl__kinds_len(c->w->kinds); i++) {
        const kl__kind *k = kl__kinds_at(c->w->kinds, i);
        if (!k->custom && !strcmp(k->group, group)) {
            kl__cause_invalid(causes, "spec.group", kl_value_at(crd, "spec", "group", NULL),
                "the group is built into the server: choose another one");
            break;
        }
    }
}

/* ------------------------------------------------------------------ serving */

static char **words_of(const kl_value *list)
{
    char **words = kl_new_array(char *, kl_value_len(list) + 1);
    for (size_t i = 0, n = 0; i < kl_value_len(list); i++) {
        const char *word = kl_value_str(kl_value_item(list, i));
        if (word)
            words[n++] = kl_strdup(word);
    }
    return words;
}

static void add_sub(kl__kind *k, const char *name, const char *group, const char *version, const char *kind)
{
    static char *const verbs[] = {"get", "patch", "update", NULL};
    k->subs = kl_realloc(k->subs, (k->nsubs + 1) * sizeof *k->subs);
    k->subs[k->nsubs++] = (kl__sub){.name = kl_strdup(name),
        .group = kl_strdup(group),
        .version = kl_strdup(version),
        .kind = kl_strdup(kind),
        .verbs = kl__words_copy(verbs)};
}

/* The deprecation warning of a version. It names the version to use: the newest that is still served. */
static char *deprecation_of(const kl_value *crd, const kl_value *version)
{
    const char *said = kl_value_str(kl_value_get(version, "deprecationWarning")), *best = NULL,
               *group = text(crd, "group", NULL), *kind = text(crd, "names", "kind");
    const kl_value *versions = kl_value_at(crd, "spec", "versions", NULL);
    if (said)
        return kl_strdup(said);
    for (size_t i = 0; i < kl_value_len(versions); i++) {
        const kl_value *v = kl_value_item(versions, i);
        const char *name = kl_value_str(kl_value_get(v, "name"));
        bool stays = kl_value_bool(kl_value_get(v, "served"), false)
            && !kl_value_bool(kl_value_get(v, "deprecated"), false);
        if (stays && name && (!best || kl__version_compare(name, best) < 0))
            best = name;
    }
    const char *name = kl_value_str(kl_value_get(version, "name"));
    return best ? kl_sprintf("%s/%s %s is deprecated; use %s/%s %s", group, name, kind, group, best, kind)
                : kl_sprintf("%s/%s %s is deprecated", group, name, kind);
}

static const kl_value *conversion_of(const kl_value *crd)
{
    const char *strategy = text(crd, "conversion", "strategy");
    return strategy && !strcmp(strategy, "Webhook") ? kl_value_at(crd, "spec", "conversion", "webhook", NULL)
                                                    : NULL;
}

/* The columns before the first whose path cannot be read; NULL: none are given. A new reference. */
static const kl_value *columns_of(const kl_value *version)
{
    const kl_value *all = kl_value_get(version, "additionalPrinterColumns");
    if (!kl_value_len(all))
        return NULL;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(all); i++) {
        const char *path = kl_value_str(kl_value_get(kl_value_item(all, i), "jsonPath"));
        if (!path || !kl_jsonpath_reads(path))
            break;
        kl_build_value(b, kl_value_item(all, i));
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static kl__kind *kind_of_version(
    kl__world *w, const kl_value *crd, const kl_value *version, const char *storage)
{
    static char *const verbs[] = {
        "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch", NULL};
    const char *scope = text(crd, "scope", NULL);
    const kl_value *names = kl_value_at(crd, "status", "acceptedNames", NULL);
    kl__kind *k = kl_new(kl__kind);
    k->group = kl_strdup(text(crd, "group", NULL));
    k->version = kl_strdup(kl_value_str_at(version, "name", NULL));
    k->kind = kl_strdup(kl_value_str_at(names, "kind", NULL));
    k->list_kind = kl_strdup(kl_value_str_at(names, "listKind", NULL));
    k->plural = kl_strdup(text(crd, "names", "plural"));
    k->singular = kl_strdup(kl_value_str_at(names, "singular", NULL));
    k->short_names = words_of(kl_value_get(names, "shortNames"));
    k->categories = words_of(kl_value_get(names, "categories"));
    k->verbs = kl__words_copy(verbs);
    k->namespaced = scope && !strcmp(scope, "Namespaced");
    k->custom = true;
    k->storage = kl_strdup(storage);
    k->conversion = kl_value_ref(conversion_of(crd));
    if (kl_value_bool(kl_value_get(version, "deprecated"), false))
        k->deprecation = deprecation_of(crd, version);
    k->columns = columns_of(version);
    k->selectable = kl_value_ref(kl_value_get(version, "selectableFields"));
    k->scale = kl_value_ref(kl_value_at(version, "subresources", "scale", NULL));
    if (kl_value_at(version, "subresources", "status", NULL))
        add_sub(k, "status", "", "", k->kind);
    if (kl_value_str(kl_value_get(k->scale, "specReplicasPath")))
        add_sub(k, "scale", "autoscaling", "v1", "Scale");
    if (kl__types_of_crd(kl_value_at(version, "schema", "openAPIV3Schema", NULL), w->types, &k->types, NULL)
        == KL_OK)
        k->schema = kl__types_root(k->types);
    k->rules = kl_cel_rules_new(
        kl_value_at(version, "schema", "openAPIV3Schema", NULL), "", true, NULL, NULL);
    k->bucket = kl__store_bucket(w->store, k->group, k->plural);
    return k;
}

void kl__crd_serve(kl__world *w, const kl_value *crd)
{
    const kl_value *versions = kl_value_at(crd, "spec", "versions", NULL);
    const char *storage = NULL, *const none[] = {NULL};
    if (!kl_names_served(crd)) {
        kl__crd_unserve(w, crd);
        return;
    }
    const kl__kind *was = kl__kinds_of_bucket(
        w->kinds, kl__store_bucket(w->store, text(crd, "group", NULL), text(crd, "names", "plural")));
    if (was && !kl_value_equal(was->conversion, conversion_of(crd))) /* the watches of the kind start again */
        w->unserved(w->unserved_arg, was->group, was->plural, none);
    const char **served = kl_new_array(const char *, kl_value_len(versions) + 1);
    size_t n = 0;
    for (size_t i = 0; i < kl_value_len(versions); i++)
        if (kl_value_bool(kl_value_get(kl_value_item(versions, i), "storage"), false))
            storage = kl_value_str_at(kl_value_item(versions, i), "name", NULL);
    for (size_t i = 0; i < kl_value_len(versions) && storage; i++) {
        const kl_value *v = kl_value_item(versions, i);
        if (!kl_value_bool(kl_value_get(v, "served"), false))
            continue;
        served[n++] = kl_value_str_at(v, "name", NULL);
        kl__kinds_add(w->kinds, kind_of_version(w, crd, v, storage));
    }
    w->unserved(w->unserved_arg, text(crd, "group", NULL), text(crd, "names", "plural"), served);
    kl__kinds_remove(w->kinds, text(crd, "group", NULL), text(crd, "names", "plural"), served);
    kl_free(served);
}

void kl__crd_unserve(kl__world *w, const kl_value *crd)
{
    const char *const none[] = {NULL};
    w->unserved(w->unserved_arg, text(crd, "group", NULL), text(crd, "names", "plural"), none);
    kl__kinds_remove(w->kinds, text(crd, "group", NULL), text(crd, "names", "plural"), none);
}

void kl__crd_settle(kl__world *w, const char *group, const char *plural)
{
    static const char ours[] = "customresourcecleanup.apiextensions.k8s.io";
    kl__kind *crds = definitions(w);
    char *name = kl_sprintf("%s.%s", plural, group);
    const kl__entry *e = kl__bucket_get(crds->bucket, name);
    if (e && kl_object_deleting(e->object) && kl_object_has_finalizer(e->object, ours)
        && !kl__store_bucket(w->store, group, plural)->len) {
        const kl_value *o = kl_value_ref(e->object), *have = kl_value_at(o, "metadata", "finalizers", NULL),
                       *left = kl_value_empty(KL_ARRAY);
        if (kl_value_len(have) > 1) {
            kl_builder *b = kl_builder_new();
            kl_build_array(b);
            for (size_t i = 0; i < kl_value_len(have); i++)
                if (strcmp(kl_value_str(kl_value_item(have, i)), ours))
                    kl_build_value(b, kl_value_item(have, i));
            kl_build_end(b);
            kl__replace(&left, kl_builder_done(b));
        }
        bool gone = !kl_value_len(left);
        if (gone)
            KL_CUT(&o, "metadata", "finalizers");
        else
            KL_EDIT(&o, kl_value_ref(left), "metadata", "finalizers");
        kl_value_unref(left);
        if (gone) {
            kl_value_unref(kl__store_remove(w->store, crds->bucket, name, o));
            kl__crd_unserve(w, o);
            kl__crd_reconsider(w, group);
        } else
            kl__store_put(w->store, crds->bucket, name, kl_value_ref(o));
        kl_value_unref(o);
    }
    kl_free(name);
}
