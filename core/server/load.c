/* load.c - loads objects from files into the server, before or while it serves, prerequisites first.
 *
 * Definitions come before their objects, namespaces before their contents; a namespace that is not in the
 * files is created. All objects are decoded first (documents.h), so that they can be sorted. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/resource.h"
#include "schema/edit.h"
#include "schema/normalize.h"
#include "verbs/collect.h"
#include "server/documents.h"
#include "server/durable.h"
#include "verbs/lifecycle.h"
#include "server/state.h"
#include "schema/status.h"
#include "show/render.h"

void kl_server_loaded(kl_server *s) { s->loading = false; }

/* ------------------------------------------------------------------ one object */

static kl_status make_namespace(kl_server *s, const char *ns, kl_err *err)
{
    kl__call c = {.w = &s->world,
        .kind = kl__kinds_get(s->world.kinds, "", "v1", "namespaces"),
        .name = ns,
        .manager = "kubelua-load"};
    if (kl__bucket_get(c.kind->bucket, ns))
        return KL_OK;
    const kl_value *name = kl_value_of_str(ns), *o = kl_value_with_at(NULL, name, "metadata", "name", NULL),
                   *out = NULL;
    kl_status st = kl__verb_create(&c, o, &out, err);
    kl_value_unref(name);
    kl_value_unref(o);
    kl_value_unref(out);
    return st;
}

/* The object without fields that belong to the server and may be in a dump. The uid stays, because Jobs name
 * it in their selectors. */
static const kl_value *without_system_fields(const kl_value *object)
{
    static const char *const system[] = {
        "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"};
    const kl_value *o = kl_value_ref(object);
    for (size_t i = 0; i < sizeof system / sizeof *system; i++)
        if (kl_value_at(o, "metadata", system[i], NULL))
            KL_CUT(&o, "metadata", system[i]);
    return o;
}

/* Keeps uid and managers of an object from a live cluster: other objects refer to its uid, and managers own
 * its fields. *stored: the object as the server made it; replaced by the one to store. */
static void keep_identity(kl_server *s, const kl__kind *k, const kl_value *object, const kl_value **stored)
{
    static const char *const kept[] = {"uid", "creationTimestamp", "generation", "managedFields"};
    if (!kl_object_uid(object) || !*kl_object_uid(object))
        return;
    const kl_value *o = kl_render_stored(k, kl_value_ref(*stored));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const kl_value *v = kl_value_at(object, "metadata", kept[i], NULL);
        if (v)
            KL_EDIT(&o, kl_value_ref(v), "metadata", kept[i]);
    }
    char *key = kl_object_key(o);
    const kl_value *now = kl_value_ref(kl__store_put(s->world.store, k->bucket, key, o));
    kl_free(key);
    kl_value_unref(*stored);
    *stored = now;
}

/* Kinds of the first objects of a server, which another server's may differ from in what cannot be changed.
 */
#define REPLACED                                                                                             \
    "/services networking.k8s.io/servicecidrs scheduling.k8s.io/priorityclasses "                            \
    "flowcontrol.apiserver.k8s.io/flowschemas flowcontrol.apiserver.k8s.io/prioritylevelconfigurations"

/* Stores an object in place of the one that is there, and of which it is no valid update. */
static kl_status replace(
    const kl__call *c, const char *key, const kl_value *o, const kl_value **out, kl_err *err)
{
    const kl_value *old = kl__store_remove(c->w->store, c->kind->bucket, key, NULL), *fresh = kl_value_ref(o);
    kl__after_remove(c->w, c->kind, old);
    KL_CUT(&fresh, "metadata", "resourceVersion");
    kl_err_fini(err);
    kl_status st = kl__verb_create(c, fresh, out, err);
    if (st)
        kl__store_put(c->w->store, c->kind->bucket, key, kl_value_ref(old));
    kl_value_unref(fresh);
    kl_value_unref(old);
    return st;
}

typedef struct how {
    kl__validation validation;
    bool tables; /* {} may be a list */
} how;

static kl_status load_locked(kl_server *s, const kl_value *object, how how, kl_err *err)
{
    const char *version = kl_object_api_version(object), *kind = kl_object_kind(object),
               *name = kl_object_name(object);
    char *group, *v;
    if (!version || !kind)
        return kl_fail(
            err, KL_EINVAL, "a document to load has no apiVersion and kind: it is not a Kubernetes object");
    kl_api_version_split(version, &group, &v);
    kl__kind *k = kl__kinds_by_kind(s->world.kinds, group, v, kind);
    kl_free(group);
    kl_free(v);
    if (!k)
        return kl_fail(err, KL_EINVAL,
            "%s %s \"%s\" cannot be loaded: the server has no such kind; load its CustomResourceDefinition "
            "first (--crds)",
            version, kind, name ? name : "");
    const char *ns = kl_object_namespace(object);
    kl__call c = {.w = &s->world,
        .kind = k,
        .ns = k->namespaced ? ns && *ns ? ns : "default" : NULL,
        .name = name,
        .manager = "kubelua-load",
        .validation = how.validation,
        .any_status = true};
    const kl_value *o = without_system_fields(object), *out = NULL;
    if (how.tables)
        kl__replace(&o, kl__schema_lists(k->schema, o));
    kl_status st = c.ns ? make_namespace(s, c.ns, err) : KL_OK;
    char *key = name ? kl_key_join(c.ns, name) : NULL;
    const kl__entry *e = key ? kl__bucket_get(k->bucket, key) : NULL;
    int code;
    if (!st && e) {
        if (!k->custom || kl_object_rv(e->object))
            KL_EDIT(&o, kl_value_of_str(kl_object_rv(e->object)), "metadata", "resourceVersion");
        if (kl_object_uid(o))
            KL_CUT(&o, "metadata", "uid");
        st = kl__verb_update(&c, o, &out, &code, err);
        if (st && kl__status_code(err) == 422 && kl__kind_among(k, REPLACED))
            st = replace(&c, key, o, &out, err);
    } else if (!st)
        st = kl__verb_create(&c, o, &out, err);
    if (!st)
        keep_identity(s, k, object, &out);
    if (st)
        kl_err_prefix(err, "%s \"%s\"", kind, name ? name : "");
    kl_value_unref(out);
    kl_value_unref(o);
    kl_free(key);
    return st;
}

static bool is_list(const char *kind)
{
    return strlen(kind) >= 4 && !strcmp(kind + strlen(kind) - 4, "List");
}

static kl_status load_one(kl_server *s, const kl_value *object, how how, kl_err *err)
{
    const kl_value *items = kl_value_get(object, "items");
    const char *kind = kl_object_kind(object);
    if (kind && kl_value_type(items) == KL_ARRAY && is_list(kind)) {
        kl_status st = KL_OK;
        for (size_t i = 0; !st && i < kl_value_len(items); i++)
            st = load_one(s, kl_value_item(items, i), how, err);
        return st;
    }
    kl_lock(&s->mu);
    kl__kinds_bury(s->world.kinds);
    kl_status st = load_locked(s, object, how, err);
    kl__collect_forget(&s->world);
    kl_unlock(&s->mu);
    return st;
}

kl_status kl_server_load(kl_server *s, const kl_value *object, kl_err *err)
{
    kl_status st = load_one(s, object, (how){KL_FIELDS_WARN, false}, err);
    return st ? st : kl__durable_settle(s, err);
}

kl_status kl_server_load_strict(kl_server *s, const kl_value *object, bool tables, kl_err *err)
{
    kl_status st = load_one(s, object, (how){KL_FIELDS_STRICT, tables}, err);
    return st ? st : kl__durable_settle(s, err);
}

/* ------------------------------------------------------------------ files */

struct batch {
    struct document {
        const kl_value *object;
        const char *file;
        int rank;
        size_t order;
    } * v;
    size_t len, cap;
    const char *file;
};

static int rank(const kl_value *o)
{
    const char *kind = kl_object_kind(o);
    if (!kind)
        return 2;
    return !strcmp(kind, "CustomResourceDefinition") ? 0 : !strcmp(kind, "Namespace") ? 1 : 2;
}

static void batch_add(void *arg, const kl_value *o)
{
    struct batch *b = arg;
    if (b->len == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 64;
        b->v = kl_realloc(b->v, b->cap * sizeof *b->v);
    }
    b->v[b->len] = (struct document){.object = o, .file = b->file, .rank = rank(o), .order = b->len};
    b->len++;
}

static kl_status read_file(const char *path, struct batch *b, kl_err *err)
{
    b->file = path;
    return kl_documents_each(path, NULL, batch_add, b, err);
}

static bool is_manifest(const struct dirent *e)
{
    const char *dot = strrchr(e->d_name, '.');
    return e->d_name[0] != '.' && dot
        && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml") || !strcmp(dot, ".json"));
}

static int manifests_only(const struct dirent *e) { return is_manifest(e); }

static int by_rank(const void *a, const void *b)
{
    const struct document *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

kl_status kl_server_load_path(kl_server *s, const char *path, size_t *loaded, kl_err *err)
{
    struct stat about;
    struct batch b = {0};
    struct dirent **names = NULL;
    char **files = NULL;
    int n = 0;
    kl_status st = KL_OK;
    if (stat(path, &about))
        return kl_fail(err, KL_EIO, "%s: cannot be read: %s", path, strerror(errno));
    if (S_ISDIR(about.st_mode)) {
        n = scandir(path, &names, manifests_only, alphasort);
        if (n < 0)
            return kl_fail(err, KL_EIO, "%s: cannot be listed: %s", path, strerror(errno));
        files = kl_new_array(char *, (size_t)n + 1);
        for (int i = 0; i < n; i++) {
            files[i] = kl_sprintf("%s/%s", path, names[i]->d_name);
            free(names[i]);
        }
        free(names);
        for (int i = 0; i < n && !st; i++)
            st = read_file(files[i], &b, err);
    } else
        st = read_file(path, &b, err);
    if (b.len)
        qsort(b.v, b.len, sizeof *b.v, by_rank);
    for (size_t i = 0; i < b.len && !st; i++) {
        st = load_one(s, b.v[i].object, (how){KL_FIELDS_WARN, false}, err);
        if (st)
            kl_err_prefix(err, "%s", b.v[i].file);
        kl_value_unref(b.v[i].object);
        b.v[i].object = NULL;
    }
    if (!st)
        st = kl__durable_settle(s, err);
    if (!st && loaded)
        *loaded = b.len;
    for (size_t i = 0; i < b.len; i++)
        kl_value_unref(b.v[i].object);
    kl_free(b.v);
    for (int i = 0; i < n; i++)
        kl_free(files[i]);
    kl_free(files);
    return st;
}
