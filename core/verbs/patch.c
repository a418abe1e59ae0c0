/* patch.c - patches: JSON, merge and strategic patches make a body out of the stored object, which then is an
 * update; an applied configuration is merged by its fields' owners, and creates the object if need be. */
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "schema/edit.h"
#include "schema/last_applied.h"
#include "schema/managed.h"
#include "schema/normalize.h"
#include "schema/smp.h"
#include "schema/status.h"
#include "schema/typed_check.h"
#include "value/patch.h"
#include "verbs/call.h"
#include "verbs/convert.h"
#include "verbs/verbs_impl.h"

/* A patch that cannot be merged is the server's failure, as in kube-apiserver: 500, without a reason. */
static kl_status check_typed(const kl__kind *k, const kl_value *patch, kl_err *err)
{
    char *problem = kl__typed_problem(k->schema, patch);
    kl_status st = KL_OK;
    if (problem) {
        const char *ns = kl_object_namespace(patch), *name = kl_object_name(patch);
        st = kl__api_fail(err, 500, "", NULL,
            "failed to create typed patch object (%s/%s; %s/%s, Kind=%s): %s", ns ? ns : "", name ? name : "",
            k->group, k->version, k->kind, problem);
    }
    kl_free(problem);
    return st;
}

/* Checks that an applied configuration has a type, and that it is `k`. */
static kl_status check_applied_type(const kl__kind *k, const kl_value *config, kl_err *err)
{
    const char *version = kl_object_api_version(config), *kind = kl_object_kind(config);
    char *want = kl__kind_api_version(k);
    bool same = version && kind && !strcmp(version, want) && !strcmp(kind, k->kind);
    kl_free(want);
    if (same)
        return KL_OK;
    bool group = version && strchr(version, '/');
    return kl__fail_bad_request(err, "invalid object type: %s%s, Kind=%s", group ? "" : "/",
        version ? version : "", kind ? kind : "");
}

kl_status kl__applied_check(const kl__call *c, const kl__kind *k, const kl_value *patch, kl_err *err)
{
    kl_status st = KL_OK;
    if (kl_value_type(patch) != KL_OBJECT && kl_value_type(patch) != KL_NULL)
        st = kl__fail_bad_request(err,
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal %s "
            "into Go value of type map[string]interface {}",
            kl__json_type(patch));
    if (!st && kl_value_len(kl_value_at(patch, "metadata", "managedFields", NULL)))
        st = kl__fail_bad_request(err, "metadata.managedFields must be nil");
    if (!st)
        st = check_applied_type(k, patch, err);
    if (!st && k == c->kind)
        st = kl__body_check_type(c, patch, err);
    return st ? st : check_typed(k, patch, err);
}

kl_status kl__applied_name(const kl__call *c, bool there, const kl_value **config, kl_err *err)
{
    kl_status st = kl__body_check_namespace(c, config, err);
    const char *name = kl_object_name(*config);
    if (!st && name && strcmp(name, c->name))
        st = kl__fail_bad_request(
            err, "the name of the object (%s) does not match the name on the URL (%s)", name, c->name);
    if (!st && !name && !there)
        st = kl__fail_bad_request(err,
            "the name of the object (%s based on URL) was undeterminable: name must be provided", c->name);
    if (!st && !name)
        KL_EDIT(config, kl_value_of_str(c->name), "metadata", "name");
    return st;
}

#define HANDLED " cannot be handled as a "

/* The part of a decoding error that is about a value: a text that cannot be read as a quantity or a time.
 * NULL if the error is about something else. Borrowed from err. */
static const char *bad_value(const kl_err *err)
{
    const char *text = strstr(kl_err_message(err), HANDLED), *why = text ? strstr(text, ": ") : NULL;
    return why && strncmp(why + 2, "strict ", 7) != 0 ? why + 2 : NULL;
}

/* The error of an applied configuration that has an unreadable value. */
static kl_status blame_config(
    const kl__call *c, const kl_value *config, const char *version, const kl_err *of, kl_err *err)
{
    const char *ns = kl_object_namespace(config), *name = kl_object_name(config);
    return kl__api_fail(err, 500, "", NULL,
        "failed to convert new object (%s/%s; %s/%s, Kind=%s) to proper version: unable to convert "
        "unstructured object to %s%s, Kind=%s: %s",
        ns ? ns : "", name ? name : "", c->kind->group, c->kind->version, c->kind->kind,
        *c->kind->group ? "" : "/", version, c->kind->kind, bad_value(of));
}

static kl_status apply(const kl__call *c, bool force, const kl_value *stored, const kl_value *patch,
    const kl_value **out, int *code, kl_err *err)
{
    const kl_value *config = NULL, *merged = NULL, *o = NULL;
    const kl_value *live = NULL;
    char now[KL_TIME_MAX], *version = kl__kind_api_version(c->kind);
    kl_status st = stored ? kl__see(c, stored, &live, err) : KL_OK;
    if (!st)
        st = kl__applied_check(c, c->kind, patch, err);
    kl__call once = *c;
    once.repeated = NULL;            /* conflicts are reported before repeated keys */
    kl_err unreadable = KL_ERR_INIT; /* conflicts are reported before it */
    if (!st && kl__body_decode(&once, patch, false, &config, &unreadable)) {
        if (bad_value(&unreadable))
            config = kl_value_ref(patch);
        else {
            st = unreadable.status;
            if (err)
                kl_err_move(err, &unreadable);
        }
    }
    if (!st)
        st = kl__applied_name(c, live != NULL, &config, err);
    if (!st && !live && (c->sub || kl_object_uid(config)))
        st = kl_object_uid(config) && !c->sub ? kl__fail_conflict(err, c->kind, c->name,
                 "uid mismatch: the provided object specified uid %s, and no existing object was found",
                 kl_object_uid(config))
                                              : kl__fail_not_found(err, c->kind, c->name);
    if (!st) {
        kl__other_version other;
        kl__writer w = kl__call_writer(c, version, now, &other);
        st = kl__managed_apply(c->kind->schema, &w, force, live, config, &merged, err);
        if (!st && unreadable.status)
            st = blame_config(c, patch, version, &unreadable, err);
        if (!st)
            kl__last_applied_update(w.manager, patch, &merged);
    }
    if (!st)
        kl__call_warned(c);
    if (!st && c->repeated && c->repeated->len)
        st = kl__fail_bad_request(
            err, "error strict decoding YAML: error converting YAML to JSON: %s", kl_buf_str(c->repeated));
    if (!st) { /* the merge may have added fields that a struct fills in */
        kl__call quiet = *c;
        quiet.validation = KL_FIELDS_IGNORE;
        st = kl__body_decode(&quiet, merged, true, &o, err);
    }
    if (!st && live)
        st = kl__verb_update_decoded(c, stored, o, true, out, err);
    else if (!st) {
        *code = 201;
        st = kl__verb_create_decoded(c, o, true, out, err);
    }
    kl_free(version);
    kl_err_fini(&unreadable);
    kl_value_unref(config);
    kl_value_unref(merged);
    kl_value_unref(live);
    return st;
}

/* Fails with the fault of `v`, the patch or its result, as a cause: `why`. go: `v` is shown as Go prints it.
 */
static kl_status blame(const kl_value *v, bool go, const char *why, kl_err *err)
{
    kl_buf shown = KL_BUF_INIT;
    char *said = kl_strdup(why);
    if (go)
        kl__go_print(v, &shown);
    else
        kl_value_encode(v, &shown);
    const kl_value *text = kl_value_of_str(kl_buf_str(&shown));
    kl__causes causes = {0};
    kl__cause_invalid(&causes, "patch", text, "%s", said);
    kl_status st = kl__fail_causes(err, "", "", "", &causes);
    kl_value_unref(text);
    kl_buf_fini(&shown);
    kl_free(said);
    return st;
}

kl_status kl__blame_patch(kl__patch kind, const kl_value *patch, const kl_value *patched, kl_err *err)
{
    bool strategic = kind == KL_PATCH_STRATEGIC;
    const char *text = kl_err_message(err), *unknown = strstr(text, "strict decoding error: "),
               *type = strstr(text, "json: cannot unmarshal ");
    if (!type)
        type = strstr(text, "no kind \"");
    if (!type)
        type = strstr(text, "converting (");
    const char *value = type ? NULL : bad_value(err);
    if (value)
        return blame(strategic ? patch : patched, strategic, value, err);
    return unknown ? blame(strategic ? patch : patched, strategic, unknown, err)
        : type     ? blame(patched, false, type, err)
                   : err->status;
}

static kl_status patch_is_no(const kl_value *v, const char *go_type, kl_err *err)
{
    return kl__fail_bad_request(err,
        "error decoding patch: json: cannot unmarshal %s into Go value of type %s", kl__json_type(v),
        go_type);
}

kl_status kl__json_patched(const kl_value *old, const kl_value *patch, const kl_value **out, kl_err *err)
{
    if (kl_value_type(patch) == KL_NULL) {
        *out = kl_value_ref(old);
        return KL_OK;
    }
    if (kl_value_type(patch) != KL_ARRAY)
        return patch_is_no(patch, "[]handlers.jsonPatchOp", err);
    for (size_t i = 0; i < kl_value_len(patch); i++)
        if (kl_value_type(kl_value_item(patch, i)) != KL_OBJECT
            && kl_value_type(kl_value_item(patch, i)) != KL_NULL)
            return patch_is_no(kl_value_item(patch, i), "handlers.jsonPatchOp", err);
    kl_status st = kl_json_patch_apply(old, patch, out, err);
    if (!st)
        return KL_OK;
    /* kube-apiserver gives no more details than this */
    return kl__api_fail(err, 422, "Invalid", kl_value_empty(KL_OBJECT),
        "the server rejected our request due to an error in our request");
}

kl_status kl__verb_patch(const kl__call *c, kl__patch type, bool force, const kl_value *patch,
    const kl_value **out, int *code, kl_err *err)
{
    char *key = kl__call_key(c, c->name);
    const kl__entry *e = kl__bucket_get(c->kind->bucket, key);
    kl_free(key);
    *code = 200;
    if (type == KL_PATCH_APPLY)
        return apply(c, force, e ? e->object : NULL, patch, out, code, err);
    if (!e)
        return kl__fail_not_found(err, c->kind, c->name);
    const kl_value *old = NULL, *patched = NULL, *o = NULL;
    kl_status st = kl__see(c, e->object, &old, err);
    if (st)
        return st;
    if (type == KL_PATCH_JSON)
        st = kl__json_patched(old, patch, &patched, err);
    else if (type == KL_PATCH_STRATEGIC && kl_value_type(patch) == KL_NULL)
        patched = kl_value_ref(old); /* Go reads null as an empty map */
    else if (type == KL_PATCH_STRATEGIC && kl_value_type(patch) != KL_OBJECT)
        st = kl__fail_bad_request(err,
            "json: cannot unmarshal %s into Go value of type map[string]interface {}", kl__json_type(patch));
    else if (kl_value_type(patch) != KL_OBJECT)
        st = patch_is_no(patch, "map[string]interface {}", err);
    else if (type == KL_PATCH_MERGE)
        patched = kl_merge_patch_apply(old, patch);
    else
        st = kl__smp_apply(c->kind->schema, old, patch, &patched, err);
    if (!st && (st = kl__body_decode(c, patched, true, &o, err)) && err)
        st = kl__blame_patch(type, patch, patched, err);
    if (!st)
        kl__body_unique_owners(c, " after mutating admission happens", &o);
    if (!st)
        st = kl__verb_update_decoded(c, e->object, o, false, out, err);
    kl_value_unref(patched);
    kl_value_unref(old);
    return st;
}
