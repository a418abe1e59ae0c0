/* direct.c - verbs for callers in this process, without HTTP. */
#include "server/direct.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/resource.h"
#include "schema/status.h"
#include "verbs/collect.h"
#include "verbs/convert.h"
#include "store/filter.h"
#include "verbs/lifecycle.h"
#include "verbs/scale.h"
#include "server/state.h"
#include "verbs/subresource.h"
#include "show/render.h"

/* --- kinds -------------------------------------------------------------------------------- */

static void tell_kind(const kl__kind *k, kl_server_kind *out)
{
    *out = (kl_server_kind){k->group, k->version, k->kind, k->plural, k->namespaced,
        kl__kind_sub(k, "status"), kl__kind_sub(k, "scale")};
}

static kl__kind *kind_like(kl_server *s, const char *group, const char *version, const char *kind)
{
    if (*version)
        return kl__kinds_by_kind(s->world.kinds, group, version, kind);
    kl__kind *best = NULL;
    for (size_t i = 0; i < kl__kinds_len(s->world.kinds); i++) {
        kl__kind *k = kl__kinds_at(s->world.kinds, i);
        if (!strcmp(k->group, group) && !strcmp(k->kind, kind)
            && (!best || kl__version_compare(k->version, best->version) < 0))
            best = k;
    }
    return best;
}

bool kl_server_find(
    kl_server *s, const char *group, const char *version, const char *kind, kl_server_kind *out)
{
    kl_lock(&s->mu);
    const kl__kind *k = kind_like(s, group, version, kind);
    if (k)
        tell_kind(k, out);
    kl_unlock(&s->mu);
    return k;
}

static kl__kind *kind_of(kl_server *s, const kl_server_kind *k)
{
    return kl__kinds_get(s->world.kinds, k->group, k->version, k->plural);
}

/* --- calls -------------------------------------------------------------------------------- */

static kl_status no_such(kl_err *err)
{
    return kl__api_fail(err, 404, "NotFound", NULL, "the server could not find the requested resource");
}

static kl_status patch_type(const kl_server_call *c, kl__patch *out, kl_err *err)
{
    static const char *const names[] = {"json", "merge", "strategic", "apply"};
    static const kl__patch types[] = {KL_PATCH_JSON, KL_PATCH_MERGE, KL_PATCH_STRATEGIC, KL_PATCH_APPLY};
    for (size_t i = 0; c->patch && i < sizeof names / sizeof *names; i++)
        if (!strcmp(c->patch, names[i])) {
            *out = types[i];
            return KL_OK;
        }
    return kl__api_fail(
        err, 415, "UnsupportedMediaType", NULL, "unknown patch type %s", c->patch ? c->patch : "\"\"");
}

static const kl_value *delete_options(const kl_server_call *c)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "propagationPolicy", c->propagation);
    if (c->uid || c->rv) {
        kl_build_key(b, "preconditions");
        kl_build_object(b);
        kl_build_kstr(b, "uid", c->uid);
        kl_build_kstr(b, "resourceVersion", c->rv);
        kl_build_end(b);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static kl_status delete_one(kl__call *call, const kl_server_call *c, const kl_value **out, kl_err *err)
{
    const kl_value *options = delete_options(c);
    kl_status st = kl__verb_delete(call, options, out, err);
    kl_value_unref(options);
    return st;
}

static kl_status picture_of(kl__call *call, const kl_server_call *c, kl__picture *p, kl_err *err)
{
    kl__filter f = {0};
    kl_status st = kl__filter_init(&f, call->kind, call->ns, c->labels, c->fields, err);
    char *prefix = kl__filter_prefix(&f);
    if (!st)
        st = kl__bucket_picture(call->kind->bucket, prefix, prefix, 0, SIZE_MAX, p);
    if (!st)
        st = kl__see_all(call, p, err);
    size_t n = 0;
    for (size_t i = 0; i < p->len; i++) {
        bool in = !st && kl__filter_matches(&f, p->objects[i]);
        if (!in) {
            kl_value_unref(p->objects[i]);
            kl_free(p->keys[i]);
            continue;
        }
        p->objects[n] = p->objects[i];
        p->keys[n++] = p->keys[i];
    }
    p->len = n;
    kl_free(prefix);
    kl__filter_fini(&f);
    return st;
}

static const kl_value *list_of(kl__call *call, const kl__picture *p)
{
    kl_builder *b = kl_builder_new();
    char *api = kl__kind_api_version(call->kind),
         *rv = kl_sprintf("%llu", (unsigned long long)kl__store_rv(call->w->store));
    kl_build_object(b);
    kl_build_kstr(b, "kind", call->kind->list_kind);
    kl_build_kstr(b, "apiVersion", api);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "resourceVersion", rv);
    kl_build_end(b);
    kl_build_key(b, "items");
    kl_build_array(b);
    for (size_t i = 0; i < p->len; i++) {
        const kl_value *v = kl_render_version(call->kind, p->objects[i]);
        kl_build_value(b, v);
        kl_value_unref(v);
    }
    kl_build_end(b);
    kl_build_end(b);
    kl_free(api);
    kl_free(rv);
    return kl_builder_done(b);
}

static kl_status delete_many(kl__call *call, const kl_server_call *c, const kl__picture *p, kl_err *err)
{
    kl_status st = KL_OK;
    for (size_t i = 0; i < p->len && !st; i++) {
        const kl_value *out = NULL;
        kl__call one = *call;
        one.name = kl_object_name(p->objects[i]);
        one.ns = kl_object_namespace(p->objects[i]);
        st = delete_one(&one, c, &out, err);
        kl_value_unref(out);
    }
    return st;
}

static kl_status on_many(kl__call *call, const kl_server_call *c, const kl_value **out, kl_err *err)
{
    kl__picture p = {0};
    kl_status st = picture_of(call, c, &p, err);
    if (!st && !strcmp(c->verb, "deletecollection"))
        st = delete_many(call, c, &p, err);
    if (!st)
        *out = list_of(call, &p);
    kl__picture_fini(&p);
    return st;
}

static kl_status on_scale(kl__call *call, const kl_server_call *c, const kl_value **out, kl_err *err)
{
    kl__patch type;
    if (!strcmp(c->verb, "get"))
        return kl__scale_get(call, out, err);
    if (!strcmp(c->verb, "update"))
        return kl__scale_update(call, c->body, out, err);
    kl_status st = patch_type(c, &type, err);
    return st ? st : kl__scale_patch(call, type, c->force, c->body, out, err);
}

/* A create needs a body, and a patch its type. */
static bool lacks_body(const kl_server_call *c)
{
    return !c->body
        && (!strcmp(c->verb, "create") || !strcmp(c->verb, "update") || !strcmp(c->verb, "patch"));
}

static kl_status on_one(kl__call *call, const kl_server_call *c, const kl_value **out, int *code, kl_err *err)
{
    kl__patch type;
    kl_status st;
    if (!strcmp(c->verb, "get")) {
        st = kl__verb_see(call, out, err);
    } else if (!strcmp(c->verb, "create")) {
        *code = 201;
        st = kl__sub_creates(call) ? kl__sub_create(call, c->body, out, err)
                                   : kl__verb_create(call, c->body, out, err);
    } else if (!strcmp(c->verb, "update")) {
        st = kl__verb_update(call, c->body, out, code, err);
    } else if (!strcmp(c->verb, "patch")) {
        st = patch_type(c, &type, err);
        st = st ? st : kl__verb_patch(call, type, c->force, c->body, out, code, err);
    } else if (!strcmp(c->verb, "delete")) {
        st = delete_one(call, c, out, err);
    } else {
        st = kl__api_fail(err, 405, "MethodNotAllowed", NULL, "%s is not supported here", c->verb);
    }
    return st;
}

static kl_status run(kl__call *call, const kl_server_call *c, const kl_value **out, int *code, kl_err *err)
{
    if (!strcmp(c->verb, "list") || !strcmp(c->verb, "deletecollection"))
        return on_many(call, c, out, err);
    if (!c->name && strcmp(c->verb, "create"))
        return kl__api_fail(
            err, 405, "MethodNotAllowed", NULL, "%s without a name is not supported", c->verb);
    if (lacks_body(c) || (call->sub && !c->name))
        return kl__fail_bad_request(err, "%s without a body, or below something without a name", c->verb);
    if (call->sub && !strcmp(call->sub, "scale"))
        return on_scale(call, c, out, err);
    kl_status st = on_one(call, c, out, code, err);
    if (!st && !call->sub && *out) {
        const kl_value *seen = kl_render_version(call->kind, *out);
        kl_value_unref(*out);
        *out = seen;
    }
    return st;
}

kl_status kl_server_do(kl_server *s, const kl_server_call *c, const kl_value **out, int *code, kl_err *err)
{
    kl_err own = KL_ERR_INIT, *e = err ? err : &own;
    kl_lock(&s->mu);
    kl__kinds_bury(s->world.kinds);
    kl__call call = {.w = &s->world,
        .kind = kl__kinds_get(s->world.kinds, c->group, c->version, c->plural),
        .name = c->name,
        .sub = c->sub,
        .manager = c->manager,
        .manager_given = true,
        .dry_run = c->dry_run,
        .validation = KL_FIELDS_IGNORE};
    *out = NULL;
    *code = 200;
    if (call.kind && call.kind->namespaced)
        call.ns = c->ns;
    bool there = call.kind && (!c->sub || kl__kind_sub(call.kind, c->sub));
    kl_status st = there ? run(&call, c, out, code, e) : no_such(e);
    kl__collect(&s->world);
    kl_unlock(&s->mu);
    kl_err_fini(&own);
    return st;
}

/* --- facts -------------------------------------------------------------------------------- */

static kl__kind *kind_of_object(kl_server *s, const kl_value *object)
{
    const char *version = kl_object_api_version(object), *kind = kl_object_kind(object);
    char *group = NULL, *v = NULL;
    if (!version || !kind)
        return NULL;
    kl_api_version_split(version, &group, &v);
    kl__kind *k = kl__kinds_by_kind(s->world.kinds, group, v, kind);
    kl_free(group);
    kl_free(v);
    return k;
}

kl_status kl_server_put(kl_server *s, const kl_value *object, kl_err *err)
{
    kl_lock(&s->mu);
    kl__kind *k = kind_of_object(s, object);
    char *key = k && kl_object_name(object) ? kl_object_key(object) : NULL;
    kl_status st = KL_OK;
    if (key)
        (void)kl__store_put(s->world.store, k->bucket, key, object);
    else
        st = kl_fail(err, KL_ENOTFOUND, "%s %s \"%s\" cannot be stored: %s",
            kl_object_api_version(object) ? kl_object_api_version(object) : "",
            kl_object_kind(object) ? kl_object_kind(object) : "an object without a kind",
            kl_object_name(object) ? kl_object_name(object) : "",
            k ? "it has no name" : "the server has no such kind");
    if (st)
        kl_value_unref(object);
    kl_unlock(&s->mu);
    kl_free(key);
    return st;
}

bool kl_server_lose(kl_server *s, const kl_server_kind *kind, const char *ns, const char *name)
{
    char *key = kl_key_join(kind->namespaced ? ns : NULL, name);
    kl_lock(&s->mu);
    kl__kind *k = kind_of(s, kind);
    const kl_value *last = k ? kl__store_remove(s->world.store, k->bucket, key, NULL) : NULL;
    bool was = last;
    if (was)
        kl__after_remove(&s->world, k, last);
    kl_unlock(&s->mu);
    kl_value_unref(last);
    kl_free(key);
    return was;
}

const kl_value *kl_server_look(kl_server *s, const kl_server_kind *kind, const char *ns, const char *name)
{
    char *key = kl_key_join(kind->namespaced ? ns : NULL, name);
    kl_lock(&s->mu);
    kl__kind *k = kind_of(s, kind);
    const kl__entry *e = k ? kl__bucket_get(k->bucket, key) : NULL;
    const kl_value *v = e ? kl_render_version(k, e->object) : NULL;
    kl_unlock(&s->mu);
    kl_free(key);
    return v;
}

void kl_server_each(
    kl_server *s, const kl_server_kind *kind, void (*fn)(void *arg, const kl_value *object), void *arg)
{
    kl_lock(&s->mu);
    kl__kind *k = kind_of(s, kind);
    for (size_t i = 0; k && i < k->bucket->len; i++) {
        const kl_value *v = kl_render_version(k, k->bucket->v[i]->object);
        fn(arg, v);
        kl_value_unref(v);
    }
    kl_unlock(&s->mu);
}

/* Whether two objects' metadata differ in nothing but texts that stay as they are unless they are empty. */
static bool same_metadata(const kl_value *a, const kl_value *b)
{
    static char *const texts[] = {"name", "namespace", "uid", "resourceVersion", NULL};
    bool same = kl_value_type(a) == KL_OBJECT && kl_value_shape(a) == kl_value_shape(b);
    for (size_t i = 0; same && i < kl_value_len(a); i++) {
        const char *key;
        const kl_value *x = kl_value_member(a, i, &key, NULL), *y = kl_value_member(b, i, &key, NULL);
        bool text = kl_value_type(x) == KL_STRING && kl_value_type(y) == KL_STRING;
        same = x == y || (text && kl__words_have(texts, key) && kl_value_len(x) && kl_value_len(y));
    }
    return same;
}

/* Whether a schema of a custom resource that leaves `a` as it is does the same with `b`: pruning and
 * defaulting ask for keys and types alone, except in metadata, also of embedded resources. */
static bool same_form(const kl_value *a, const kl_value *b)
{
    if (kl_value_shape(a) != kl_value_shape(b) || kl_value_type(a) != kl_value_type(b))
        return false;
    const kl_value *metadata = kl_value_of_str("metadata");
    bool same = true;
    for (size_t i = 0, n = kl_value_len(a); same && i < n; i++) {
        const char *key;
        const kl_value *x = kl_value_member(a, i, &key, NULL), *y = kl_value_member(b, i, &key, NULL);
        same = strcmp(key, "metadata") ? kl_value_alike(x, y, metadata) : same_metadata(x, y);
    }
    kl_value_unref(metadata);
    return same;
}

static const kl_value *rendered(kl__kind *k, const kl_value *stored)
{
    if (!k)
        return kl_value_ref(stored);
    if (k->plain && kl_value_get(k->plain, "apiVersion") == kl_value_get(stored, "apiVersion")
        && same_form(k->plain, stored)) /* as most reports of a simulated node are */
        return kl_value_ref(stored);
    const kl_value *v = kl_render_version(k, stored);
    if (k->custom && !k->conversion && v == stored) {
        kl_value_unref(k->plain);
        k->plain = kl_value_ref(v);
    }
    return v;
}

const kl_value *kl_server_as(kl_server *s, const kl_server_kind *kind, const kl_value *stored)
{
    kl_lock(&s->mu);
    const kl_value *v = rendered(kind_of(s, kind), stored);
    kl_unlock(&s->mu);
    return v;
}
