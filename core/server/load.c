/* load.c - loads objects from files into the server, before or while it serves, prerequisites first.
 *
 * Definitions come before their objects, namespaces before their contents; a namespace that is not in the
 * files is created. All objects are decoded first, so that they can be sorted. The text of a file is read
 * piece by piece, so a dump needs only the memory of its objects. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "model/object.h"
#include "model/resource.h"
#include "value/yaml.h"
#include "wire/stream.h"
#include "schema/edit.h"
#include "schema/normalize.h"
#include "verbs/collect.h"
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

static void batch_add(struct batch *b, const kl_value *o)
{
    if (b->len == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 64;
        b->v = kl_realloc(b->v, b->cap * sizeof *b->v);
    }
    b->v[b->len] = (struct document){.object = o, .file = b->file, .rank = rank(o), .order = b->len};
    b->len++;
}

/* Takes one item of a list, which may leave its type to the list. */
static void take_item(struct batch *b, const kl_value *item, const char *version, const char *list_kind)
{
    char *kind = kl_strndup(list_kind, strlen(list_kind) - 4);
    batch_add(b, *kind ? kl_object_with_type(item, version, kind) : kl_value_ref(item));
    kl_free(kind);
}

/* Takes one document, and owns `v`. A list is split into its items, so that these are sorted, too. */
static kl_status take_document(void *arg, const kl_value *v, kl_err *err)
{
    (void)err;
    const kl_value *items = kl_value_get(v, "items");
    const char *kind = kl_object_kind(v);
    if (!kind || kl_value_type(items) != KL_ARRAY || !is_list(kind)) {
        batch_add(arg, v);
        return KL_OK;
    }
    for (size_t i = 0; i < kl_value_len(items); i++)
        take_item(arg, kl_value_item(items, i), kl_object_api_version(v), kind);
    kl_value_unref(v);
    return KL_OK;
}

static kl_status read_whole(const char *path, struct batch *b, kl_err *err)
{
    kl_buf text = KL_BUF_INIT;
    b->file = path;
    kl_status st = kl_file_read_given(path, "a file of objects", &text, err);
    if (!st)
        st = kl_yaml_each(path, text.data ? text.data : "", text.len, take_document, b, err);
    kl_buf_fini(&text);
    return st;
}

/* A file that is read piece by piece; the first piece can be inspected before it is read. */
struct pieces {
    kl_file *file;
    char first[1 << 16];
    size_t len, at;
};

static kl_status next_piece(void *from, char *piece, size_t room, size_t *got, kl_err *err)
{
    struct pieces *p = from;
    if (p->at == p->len)
        return kl_file_next(p->file, piece, room, got, err);
    *got = p->len - p->at < room ? p->len - p->at : room;
    memcpy(piece, p->first + p->at, *got);
    p->at += *got;
    return KL_OK;
}

static kl_status keep_item(void *arg, const kl_value *object, kl_err *err)
{
    (void)err;
    batch_add(arg, object);
    return KL_OK;
}

/* Reads the items of a list in JSON. *is: whether the text is such a list, complete and not empty; if not, no
 * item is taken. */
static kl_status read_list(struct pieces *p, struct batch *b, bool *is, kl_err *err)
{
    struct batch items = {.file = b->file};
    const kl_value *envelope = NULL;
    kl_stream *stream = kl_stream_list_new(&(kl_stream_handler){.item = keep_item, .arg = &items});
    char *piece = kl_new_array(char, sizeof p->first);
    size_t n = 1;
    kl_status st = KL_OK, parsed = KL_OK;
    while (!st && !parsed && n) {
        st = next_piece(p, piece, sizeof p->first, &n, err);
        if (!st && n)
            parsed = kl_stream_feed(stream, piece, n, NULL);
    }
    if (!st && !parsed)
        parsed = kl_stream_finish(stream, &envelope, NULL);
    const char *kind = kl_object_kind(envelope);
    *is = !st && !parsed && items.len && kind && is_list(kind);
    for (size_t i = 0; i < items.len; i++) {
        if (*is)
            take_item(b, items.v[i].object, kl_object_api_version(envelope), kind);
        kl_value_unref(items.v[i].object);
    }
    kl_free(items.v);
    kl_free(piece);
    kl_value_unref(envelope);
    kl_stream_free(stream);
    return st;
}

static kl_status read_pieces(const char *path, struct batch *b, kl_err *err)
{
    struct pieces *p = kl_new(struct pieces);
    b->file = path;
    bool read = false;
    kl_status st = kl_file_open(path, &p->file, err);
    if (!st)
        st = kl_file_next(p->file, p->first, sizeof p->first, &p->len, err);
    size_t i = 0;
    while (i < p->len && p->first[i] && strchr(" \n\r\t", p->first[i]))
        i++;
    bool json = i < p->len && (p->first[i] == '{' || p->first[i] == '[');
    if (!st && json)
        st = read_list(p, b, &read, err);
    else if (!st)
        st = kl_yaml_each_from(path, &(kl_yaml_source){next_piece, p}, take_document, b, err);
    kl_file_close(p->file);
    kl_free(p);
    return st || read || !json ? st : read_whole(path, b, err);
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
            st = read_pieces(files[i], &b, err);
    } else
        st = S_ISREG(about.st_mode) ? read_pieces(path, &b, err) : read_whole(path, &b, err);
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
