/* scale.c - a Scale is a view: replicas and selector of an object, read and written at the paths that the
 * kind names. */
#include "verbs/scale.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "value/patch.h"
#include "model/selector.h"
#include "verbs/admission.h"
#include "verbs/convert.h"
#include "verbs/verbs_impl.h"
#include "schema/edit.h"
#include "schema/managers.h"
#include "schema/status.h"

#define API_VERSION "autoscaling/v1"
#define REPLICAS ".spec.replicas"

static const char *path_of(const kl__kind *k, const char *which, const char *dflt)
{
    const char *path = kl_value_str(kl_value_get(k->scale, which));
    return k->custom ? path : dflt;
}

static const char *replicas_path(const kl__kind *k) { return path_of(k, "specReplicasPath", REPLICAS); }

/* The value at ".spec.replicas"; borrowed. */
static const kl_value *at_path(const kl_value *o, const char *path)
{
    while (o && path && *path) {
        path += *path == '.';
        size_t n = strcspn(path, ".");
        o = kl_value_getn(o, path, n);
        path += n;
    }
    return path ? o : NULL;
}

static void put_selector(kl_builder *b, const kl__kind *k, const kl_value *o)
{
    const kl_value *v = at_path(o, path_of(k, "labelSelectorPath", ".spec.selector"));
    char *text = kl_selector_text_of(v);
    if (text)
        kl_build_kstr(b, "selector", text);
    kl_free(text);
}

static const kl_value *scale_of(const kl__kind *k, const kl_value *o)
{
    static const char *const meta[] = {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"};
    int64_t want = 0, have = 0;
    kl_value_int(at_path(o, replicas_path(k)), &want);
    kl_value_int(at_path(o, path_of(k, "statusReplicasPath", ".status.replicas")), &have);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "Scale");
    kl_build_kstr(b, "apiVersion", API_VERSION);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    for (size_t i = 0; i < sizeof meta / sizeof *meta; i++)
        kl_build_kvalue(b, meta[i], kl_value_at(o, "metadata", meta[i], NULL));
    kl_build_end(b);
    kl_build_key(b, "spec");
    kl_build_object(b);
    if (want) /* omitempty: an absent number is 0 */
        kl_build_kint(b, "replicas", want);
    kl_build_end(b);
    kl_build_key(b, "status");
    kl_build_object(b);
    kl_build_kint(b, "replicas", have);
    put_selector(b, k, o);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

kl_status kl__scale_get(const kl__call *c, const kl_value **out, kl_err *err)
{
    const kl_value *o = NULL;
    kl_status st = kl__verb_see(c, &o, err);
    if (st)
        return st;
    if (c->kind->custom && !at_path(o, path_of(c->kind, "specReplicasPath", NULL)))
        st = kl__fail_internal(
            err, "the spec replicas field \"%s\" does not exist", path_of(c->kind, "specReplicasPath", ""));
    else
        *out = scale_of(c->kind, o);
    kl_value_unref(o);
    return st;
}

/* ------------------------------------------------------------------ owners */

/* The place of replicas in managedFields; the caller frees it. */
static kl__fieldset *place_of(const char *path)
{
    kl__fieldset *root = kl__fieldset_new(), *at = root;
    while (path && *path) {
        path += *path == '.';
        size_t n = strcspn(path, ".");
        char *element = kl_sprintf("f:%.*s", (int)n, path);
        at = kl__fieldset_make(at, element);
        kl_free(element);
        path += n;
    }
    at->member = at != root;
    return root;
}

/* What owns the place `here` in `o`, as owners of the place `there` in another object. The caller ends it. */
static kl__managers translated(
    const kl_value *o, const kl__fieldset *here, const char *api_version, const kl__fieldset *there)
{
    kl__managers m = kl__managers_of(o);
    for (size_t i = 0; i < m.len; i++) {
        kl__manager *e = &m.v[i];
        kl__fieldset_intersect(e->set, here);
        if (!kl__fieldset_empty(e->set)) {
            kl__fieldset_free(e->set);
            e->set = kl__fieldset_copy(there);
        }
        kl_free(e->api_version);
        e->api_version = kl_strdup(api_version);
    }
    return m;
}

/* The entry in `m` of the applier of `e`, or NULL. An updater of a Scale is another one than that of its
 * object, because it writes in another API version. */
static kl__manager *applier_in(const kl__managers *m, const kl__manager *e)
{
    kl__manager *found = strcmp(e->operation, "Apply") ? NULL : kl__managers_find(m, e);
    return found && !kl__fieldset_empty(found->set) ? found : NULL;
}

/* The Scale of an object, with its owners. */
static const kl_value *owned_scale(const kl__call *c, const kl_value *o)
{
    kl__fieldset *here = place_of(replicas_path(c->kind)), *there = place_of(REPLICAS);
    const kl_value *scale = scale_of(c->kind, o);
    kl__managers m = translated(o, here, API_VERSION, there);
    kl__managers_write(&m, &scale);
    kl__managers_fini(&m);
    kl__fieldset_free(here);
    kl__fieldset_free(there);
    return scale;
}

/* The owners of a Scale's replicas own those of its object *o, and nobody else does. */
static void own_as(const kl__call *c, const kl_value *scale, const kl_value **o)
{
    kl__fieldset *here = place_of(REPLICAS), *there = place_of(replicas_path(c->kind));
    char *version = kl__kind_api_version(c->kind);
    kl__managers owners = translated(scale, here, version, there), all = kl__managers_of(*o);
    for (size_t i = 0; i < all.len; i++)
        if (!applier_in(&owners, &all.v[i]))
            kl__fieldset_subtract(all.v[i].set, there);
    for (size_t i = 0; i < owners.len; i++) {
        kl__manager *e = &owners.v[i];
        if (!applier_in(&all, e)) {
            kl_free(e->time); /* a new entry has none */
            e->time = NULL;
        } else { /* its entry stays */
            kl__fieldset_free(e->set);
            e->set = kl__fieldset_new();
        }
    }
    kl__managers_join(&all, &owners);
    kl__managers_write(&all, o);
    kl__managers_fini(&all);
    kl_free(version);
    kl__fieldset_free(here);
    kl__fieldset_free(there);
}

static kl__writer writer_of(const kl__call *c, char now[KL_TIME_MAX])
{
    kl__other_version other;
    kl__writer w = kl__call_writer(c, API_VERSION, now, &other);
    w.only_status = w.no_status = false;
    w.other = NULL;
    w.knows = NULL;
    return w;
}

/* ------------------------------------------------------------------ writes */

/* {"metadata":{"resourceVersion":rv},"spec":{"replicas":n}} with the kind's own path. */
static const kl_value *patch_for(const kl__kind *k, const char *rv, int64_t replicas)
{
    const char *path = replicas_path(k);
    int depth = 0;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    if (rv && *rv) {
        kl_build_key(b, "metadata");
        kl_build_object(b);
        kl_build_kstr(b, "resourceVersion", rv);
        kl_build_end(b);
    }
    for (const char *p = path; *p;) {
        p += *p == '.';
        size_t n = strcspn(p, ".");
        kl_build_keyn(b, p, n);
        p += n;
        if (*p) {
            kl_build_object(b);
            depth++;
        } else
            kl_build_int(b, replicas);
    }
    while (depth-- > 0)
        kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* Checks a Scale; *out: its replicas. */
static kl_status check(const kl__call *c, const kl_value *scale, int64_t *out, kl_err *err)
{
    const kl_value *n = kl_value_at(scale, "spec", "replicas", NULL);
    const char *kind = kl_object_kind(scale);
    kl__causes causes = {0};
    int64_t replicas = 0;
    if (kl_value_type(scale) != KL_OBJECT || (kind && strcmp(kind, "Scale")))
        return kl__fail_bad_request(err, "the object provided is unrecognized (must be of type Scale)");
    if (n && !kl_value_int(n, &replicas))
        return kl__fail_bad_request(err, "spec.replicas must be an integer, it is %s", kl_value_type_name(n));
    *out = replicas;
    if (replicas < 0)
        kl__cause_invalid(&causes, "spec.replicas", n, "must be greater than or equal to 0");
    return kl__fail_causes(err, "autoscaling", "Scale", c->name, &causes);
}

static const kl__schema *schema_of(const kl__call *c)
{
    return kl__types_get(c->w->types, "autoscaling.v1.Scale");
}

kl__kind kl__scale_kind(const kl__call *c)
{
    return (kl__kind){.group = (char *)"autoscaling",
        .version = (char *)"v1",
        .kind = (char *)"Scale",
        .plural = (char *)"scales",
        .schema = schema_of(c)};
}

/* A body as a Scale; a new reference. */
static kl_status decode(const kl__call *c, const kl_value *body, const kl_value **out, kl_err *err)
{
    kl__kind kind = kl__scale_kind(c);
    kl__call as = *c;
    as.kind = &kind;
    return kl__body_decode(&as, body, true, out, err);
}

/* Writes what a Scale says into `live`, its object. */
static kl_status write_object(
    const kl__call *c, const kl_value *live, const kl_value *scale, const kl_value **out, kl_err *err)
{
    int64_t replicas = kl_value_int_at(scale, 0, "spec", "replicas", NULL);
    const kl_value *patch = patch_for(c->kind, kl_object_rv(scale), replicas), *o = NULL, *written = NULL,
                   *stored = NULL, *patched = kl_merge_patch_apply(live, patch);
    kl__call main = *c;
    main.sub = NULL;
    main.admission = NULL; /* webhooks get only the Scale */
    kl_status st = kl__verb_get(c, &stored, err);
    if (!st)
        st = kl__body_decode(&main, patched, true, &o, err);
    if (!st) {
        own_as(c, scale, &o);
        st = kl__verb_update_decoded(&main, stored, o, true, &written, err);
    }
    if (!st)
        *out = scale_of(c->kind, written);
    kl_value_unref(written);
    kl_value_unref(patched);
    kl_value_unref(patch);
    return st;
}

/* Replaces the Scale of `live` by `asked`, whose owners are set. Takes `asked`. */
static kl_status replace(
    const kl__call *c, const kl_value *live, const kl_value *asked, const kl_value **out, kl_err *err)
{
    const kl_value *old = owned_scale(c, live), *next = NULL;
    int64_t replicas;
    kl__call below = *c;
    below.own_version = API_VERSION;
    below.own_kind = "Scale";
    kl_status st = check(c, asked, &replicas, err);
    if (!st)
        st = kl__admit_mutate(&below, "UPDATE", old, &asked, err);
    if (!st)
        st = check(c, asked, &replicas, err);
    if (!st) {
        next = kl_value_ref(old);
        KL_EDIT(&next, kl_value_of_int(replicas), "spec", "replicas");
        st = kl__admit_validate(&below, "UPDATE", old, next, err);
    }
    if (!st)
        st = write_object(c, live, asked, out, err);
    kl_value_unref(old);
    kl_value_unref(asked);
    kl_value_unref(next);
    return st;
}

/* Replaces the Scale of `live` by `scale` that a client sent. */
static kl_status update(
    const kl__call *c, const kl_value *live, const kl_value *scale, const kl_value **out, kl_err *err)
{
    char now[KL_TIME_MAX];
    int64_t replicas;
    kl_status st = check(c, scale, &replicas, err);
    if (st)
        return st;
    kl__writer w = writer_of(c, now);
    const kl_value *old = owned_scale(c, live), *asked = kl_value_ref(scale);
    kl__managed_update(schema_of(c), &w, old, &asked);
    kl_value_unref(old);
    return replace(c, live, asked, out, err);
}

static kl_status apply(const kl__call *c, bool force, const kl_value *live, const kl_value *patch,
    const kl_value **out, kl_err *err)
{
    const kl__kind kind = kl__scale_kind(c);
    char now[KL_TIME_MAX];
    kl__writer w = writer_of(c, now);
    const kl_value *old = owned_scale(c, live), *config = kl_value_ref(patch), *merged = NULL;
    kl_status st = kl__applied_check(c, &kind, patch, err);
    if (!st)
        st = kl__applied_name(c, true, &config, err);
    if (!st)
        st = kl__managed_apply(kind.schema, &w, force, old, config, &merged, err);
    if (!st)
        st = replace(c, live, merged, out, err);
    kl_value_unref(config);
    kl_value_unref(old);
    return st;
}

kl_status kl__scale_update(const kl__call *c, const kl_value *body, const kl_value **out, kl_err *err)
{
    const kl_value *live = NULL, *scale = NULL;
    kl_status st = decode(c, body, &scale, err);
    if (!st)
        st = kl__body_check_name(c, scale, err);
    if (!st)
        st = kl__verb_see(c, &live, err);
    if (!st)
        st = update(c, live, scale, out, err);
    kl_value_unref(live);
    kl_value_unref(scale);
    return st;
}

kl_status kl__scale_patch(
    const kl__call *c, kl__patch type, bool force, const kl_value *patch, const kl_value **out, kl_err *err)
{
    const kl_value *live = NULL, *old = NULL, *patched = NULL, *scale = NULL;
    kl_status st = kl__verb_see(c, &live, err);
    if (!st && type == KL_PATCH_APPLY)
        st = apply(c, force, live, patch, out, err);
    else if (!st) {
        old = scale_of(c->kind, live);
        if (type == KL_PATCH_JSON)
            st = kl__json_patched(old, patch, &patched, err);
        else
            patched = kl_merge_patch_apply(old, patch); /* a Scale has no list that would merge */
        if (!st && (st = decode(c, patched, &scale, err)))
            st = kl__blame_patch(type, patch, patched, err);
        if (!st)
            st = update(c, live, scale, out, err);
    }
    kl_value_unref(live);
    kl_value_unref(old);
    kl_value_unref(patched);
    kl_value_unref(scale);
    return st;
}
