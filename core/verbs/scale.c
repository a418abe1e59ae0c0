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
#include "schema/edit.h"
#include "schema/status.h"

static const char *path_of(const kl__kind *k, const char *which, const char *dflt)
{
    const char *path = kl_value_str(kl_value_get(k->scale, which));
    return k->custom ? path : dflt;
}

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
    kl_value_int(at_path(o, path_of(k, "specReplicasPath", ".spec.replicas")), &want);
    kl_value_int(at_path(o, path_of(k, "statusReplicasPath", ".status.replicas")), &have);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "Scale");
    kl_build_kstr(b, "apiVersion", "autoscaling/v1");
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

/* Reads the scaled object. missing: it does not say how many replicas it wants. */
static kl_status look(const kl__call *c, const kl_value **out, bool *missing, kl_err *err)
{
    const kl_value *o = NULL;
    kl_status st = kl__verb_see(c, &o, err);
    if (st)
        return st;
    *out = scale_of(c->kind, o);
    *missing = c->kind->custom && !at_path(o, path_of(c->kind, "specReplicasPath", NULL));
    kl_value_unref(o);
    return KL_OK;
}

kl_status kl__scale_get(const kl__call *c, const kl_value **out, kl_err *err)
{
    bool missing = false;
    kl_status st = look(c, out, &missing, err);
    if (st || !missing)
        return st;
    kl_value_unref(*out);
    *out = NULL;
    return kl__fail_internal(
        err, "the spec replicas field \"%s\" does not exist", path_of(c->kind, "specReplicasPath", ""));
}

/* {"metadata":{"resourceVersion":rv},"spec":{"replicas":n}} with the kind's own path. */
static const kl_value *patch_for(const kl__kind *k, const char *rv, int64_t replicas)
{
    const char *path = path_of(k, "specReplicasPath", ".spec.replicas");
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

static kl_status write_replicas(
    const kl__call *c, const char *rv, int64_t replicas, const kl_value **out, kl_err *err)
{
    const kl_value *stored = NULL, *patch = patch_for(c->kind, rv, replicas);
    kl__call main = *c;
    int code;
    main.sub = NULL;
    main.admission = NULL; /* webhooks get only the Scale */
    kl_status st = kl__verb_patch(&main, KL_PATCH_MERGE, false, patch, &stored, &code, err);
    if (!st)
        *out = scale_of(c->kind, stored);
    kl_value_unref(stored);
    kl_value_unref(patch);
    return st;
}

kl_status kl__scale_update(const kl__call *c, const kl_value *scale, const kl_value **out, kl_err *err)
{
    const kl_value *old = NULL, *asked = kl_value_ref(scale), *next = NULL;
    int64_t replicas;
    kl__call below = *c;
    below.own_version = "autoscaling/v1";
    below.own_kind = "Scale";
    bool missing;
    kl_status st = look(c, &old, &missing, err);
    if (!st)
        st = check(c, scale, &replicas, err);
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
        st = write_replicas(c, kl_object_rv(asked), replicas, out, err);
    kl_value_unref(old);
    kl_value_unref(asked);
    kl_value_unref(next);
    return st;
}

kl_status kl__scale_patch(
    const kl__call *c, kl__patch type, const kl_value *patch, const kl_value **out, kl_err *err)
{
    const kl_value *old = NULL, *scale = NULL;
    if (type == KL_PATCH_APPLY)
        return kl__api_fail(err, 415, "UnsupportedMediaType", NULL,
            "a Scale cannot be applied: patch it, or apply the object's own replicas");
    bool missing;
    kl_status st = look(c, &old, &missing, err);
    if (!st && type == KL_PATCH_JSON) {
        st = kl_value_type(patch) == KL_ARRAY
            ? kl_json_patch_apply(old, patch, &scale, err)
            : kl__fail_bad_request(err, "a JSON patch is a list of operations");
        if (st == KL_EREJECTED && err)
            err->http_code = 422;
    } else if (!st)
        scale = kl_merge_patch_apply(old, patch); /* a Scale has no list that would merge */
    if (!st)
        st = kl__scale_update(c, scale, out, err);
    kl_value_unref(old);
    kl_value_unref(scale);
    return st;
}
