/* simulate.c - computes the resulting object from an object and a request.
 *
 * Every write but a delete goes the same way: the verb applies the caller's change, `keep` restores the
 * fields that the caller cannot change there (identity, bookkeeping, status or all but status), and `store`
 * increments the version after a change, or deletes the object with its last finalizer. */
#include "run/simulate.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/selector.h"
#include "model/time.h"
#include "schema/known.h"
#include "schema/managed.h"
#include "schema/smp.h"
#include "value/patch.h"

typedef struct job {
    const kl_simulation *s;
    const kl_op *op;
    const kl_value *base;
    const char *name;
    char *plural; /* "deployments.apps", for messages */
    kl_simulated *out;
    kl_err *err;
} job;

/* --- failures, in the server's words ------------------------------------------------------ */

static kl_status refuse(job *j, kl_status st, int code, const char *reason, char *message)
{
    if (j->err) {
        st = kl_fail(j->err, st, "%s", message);
        kl_free(j->err->reason);
        j->err->reason = kl_strdup(reason);
        j->err->http_code = code;
    }
    kl_free(message);
    return st;
}

static kl_status not_found(job *j)
{
    return refuse(j, KL_ENOTFOUND, 404, "NotFound",
        kl_sprintf("%s \"%s\" not found", j->plural, j->name ? j->name : ""));
}

static kl_status conflict(job *j, const char *why)
{
    return refuse(j, KL_ECONFLICT, 409, "Conflict",
        kl_sprintf("Operation cannot be fulfilled on %s \"%s\": %s", j->plural, j->name ? j->name : "", why));
}

static kl_status invalid(job *j, const char *why)
{
    return refuse(j, KL_EREJECTED, 422, "Invalid",
        kl_sprintf("%s \"%s\" is invalid: %s", j->plural, j->name ? j->name : "", why));
}

static kl_status unknown(job *j, const char *what)
{
    return kl_fail(j->err, KL_EINVAL,
        "a dry run on the client cannot know the effect of %s of %s: use --dry-run=server", what, j->plural);
}

/* --- small things ------------------------------------------------------------------------- */

const char *kl_op_name(const kl_op *op)
{
    const char *own = op->name && *op->name ? op->name : kl_object_name(op->body);
    return own && *own ? own : NULL;
}

static bool has_sub(const job *j, const char *sub)
{
    return !j->s->resource || kl_resource_has_subresource(j->s->resource, sub);
}

static bool is_sub(const job *j, const char *sub)
{
    return j->op->subresource && !strcmp(j->op->subresource, sub);
}

/* `with` in place of the reference that *o holds. */
static void set(const kl_value **o, const kl_value *with)
{
    kl_value_unref(*o);
    *o = with;
}

static void set_meta(const kl_value **o, const char *key, const kl_value *v)
{
    set(o, kl_value_with_at(*o, v, "metadata", key, NULL));
}

static void set_meta_str(const kl_value **o, const char *key, const char *s)
{
    const kl_value *v = kl_value_of_str(s);
    set_meta(o, key, v);
    kl_value_unref(v);
}

static void set_meta_int(const kl_value **o, const char *key, int64_t n)
{
    const kl_value *v = kl_value_of_int(n);
    set_meta(o, key, v);
    kl_value_unref(v);
}

static bool has_finalizers(const kl_value *o)
{
    return kl_value_len(kl_value_at(o, "metadata", "finalizers", NULL)) > 0;
}

static const kl_value *success(const job *j)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "Status");
    kl_build_kstr(b, "apiVersion", "v1");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_end(b);
    kl_build_kstr(b, "status", "Success");
    kl_build_key(b, "details");
    kl_build_object(b);
    kl_build_kstr(b, "name", j->name);
    if (j->s->resource && *j->s->resource->group)
        kl_build_kstr(b, "group", j->s->resource->group);
    kl_build_kstr(b, "kind", j->s->resource ? j->s->resource->plural : kl_object_kind(j->base));
    kl_build_kstr(b, "uid", kl_object_uid(j->base));
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

static void answer(job *j, int code, const kl_value *object, bool changed)
{
    *j->out = (kl_simulated){
        .object = object, .answer = kl_value_ref(object), .code = code, .changed = changed};
}

/* --- Secrets: what is written as text is kept as bytes ------------------------------------ */

static void fold_secret(const kl_value **o)
{
    const char *kind = kl_object_kind(*o);
    if (!kind || strcmp(kind, "Secret") || !kl_value_len(kl_value_get(*o, "stringData")))
        return;
    const kl_value *data = kl_secret_data(*o);
    if (data)
        set(o, kl_value_with(*o, "data", data));
    set(o, kl_value_with(*o, "stringData", NULL));
    kl_value_unref(data);
}

/* --- storing ------------------------------------------------------------------------------ */

static const kl_value *bare(const kl_value *o)
{
    const kl_value *out = kl_value_ref(o);
    set(&out, kl_value_with(out, "metadata", NULL));
    set(&out, kl_value_with(out, "status", NULL));
    return out;
}

static bool spec_changed(const kl_value *a, const kl_value *b)
{
    const kl_value *x = bare(a), *y = bare(b);
    bool changed = !kl_value_equal(x, y);
    kl_value_unref(x);
    kl_value_unref(y);
    return changed;
}

static void count_version(job *j, const kl_value **o)
{
    char rv[32];
    uint64_t n = kl_rv_number(kl_object_rv(j->base));
    snprintf(rv, sizeof rv, "%llu", (unsigned long long)(n + 1));
    set_meta_str(o, "resourceVersion", rv);
    if (kl_object_generation(j->base) && spec_changed(j->base, *o))
        set_meta_int(o, "generation", kl_object_generation(j->base) + 1);
}

/* Stores the object in place of the base, if it differs; takes the reference. */
static void store(job *j, const kl_value *o)
{
    if (kl_value_equal(o, j->base)) {
        kl_value_unref(o);
        answer(j, 200, kl_value_ref(j->base), false);
        return;
    }
    count_version(j, &o);
    answer(j, 200, o, true);
    if (kl_object_deleting(j->base) && has_finalizers(j->base) && !has_finalizers(o)) {
        kl_value_unref(j->out->object);
        j->out->object = NULL;
    }
}

/* Restores immutable fields. */
static void keep_identity(const job *j, const kl_value **o)
{
    static const char *const keys[] = {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
        "deletionGracePeriodSeconds", "generation", "resourceVersion", NULL};
    for (const char *const *k = keys; *k; k++) {
        const kl_value *v = kl_value_at(j->base, "metadata", *k, NULL);
        set_meta(o, *k, v);
    }
    if (!kl_value_at(*o, "metadata", "managedFields", NULL)
        && kl_value_at(j->base, "metadata", "managedFields", NULL))
        set_meta(o, "managedFields", kl_value_at(j->base, "metadata", "managedFields", NULL));
    set(o, kl_object_as(*o, kl_object_api_version(j->base), kl_object_kind(j->base)));
}

/* Restores what the endpoint does not write. `status` writes only status; the main one all but status, if
 * that has an endpoint. */
static void keep_parts(const job *j, const kl_value **o)
{
    if (is_sub(j, "status")) {
        const kl_value *status = kl_value_get(*o, "status"),
                       *managed = kl_value_at(*o, "metadata", "managedFields", NULL);
        const kl_value *whole = kl_value_with(j->base, "status", status);
        if (managed)
            set_meta(&whole, "managedFields", managed);
        set(o, whole);
    } else if (!j->op->subresource && has_sub(j, "status")) {
        set(o, kl_value_with(*o, "status", kl_value_get(j->base, "status")));
    }
}

/* Takes the reference. */
static kl_status replace(job *j, const kl_value *wanted)
{
    const char *rv = kl_object_rv(wanted), *uid = kl_object_uid(wanted), *name = kl_object_name(wanted),
               *had = kl_object_uid(j->base);
    bool other_uid = uid && *uid && had && strcmp(uid, had) != 0;
    kl_status st = KL_OK;
    if (name && j->name && strcmp(name, j->name)) {
        st = refuse(j, KL_EREJECTED, 400, "BadRequest",
            kl_sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, j->name));
    } else if (j->op->verb == KL_UPDATE && other_uid) {
        char *why = kl_sprintf(
            "StorageError: invalid object, Code: 4, UID in precondition: %s, UID in object meta: %s", uid,
            had);
        st = conflict(j, why);
        kl_free(why);
    } else if (rv && *rv && kl_object_rv(j->base) && strcmp(rv, kl_object_rv(j->base))) {
        st = conflict(
            j, "the object has been modified; please apply your changes to the latest version and try again");
    } else if (other_uid) {
        char *why = kl_sprintf("metadata.uid: Invalid value: \"%s\": field is immutable", uid);
        st = invalid(j, why);
        kl_free(why);
    }
    if (st) {
        kl_value_unref(wanted);
        return st;
    }
    keep_identity(j, &wanted);
    keep_parts(j, &wanted);
    fold_secret(&wanted);
    store(j, wanted);
    return KL_OK;
}

/* --- creating ----------------------------------------------------------------------------- */

static char *made_name(const job *j, const char *prefix)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789"; /* the letters of random names */
    char tail[6] = "";
    uint64_t n = j->s->number * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < 5; i++, n /= sizeof letters - 1)
        tail[i] = letters[n % (sizeof letters - 1)];
    return kl_sprintf("%s%s", prefix, tail);
}

static void identify(job *j, const kl_value **o)
{
    char text[KL_TIME_MAX], uid[40];
    set_meta_str(o, "name", j->name);
    if (j->s->ns)
        set_meta_str(o, "namespace", j->s->ns);
    snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012llx",
        (unsigned long long)(j->s->number & 0xffffffffffffu));
    set_meta_str(o, "uid", uid);
    set_meta_str(o, "resourceVersion", "1");
    set_meta_int(o, "generation", 1);
    set_meta_str(o, "creationTimestamp", kl_time_format_wall(j->s->wall, text));
}

/* The name of the kind in "v1/Pod", where the body has none. */
static const kl_value *typed(const job *j, const kl_value *body)
{
    if (!j->s->resource)
        return kl_value_ref(body);
    char *version = kl_api_version(j->s->resource->group, j->s->resource->version);
    const kl_value *o = kl_object_with_type(body, version, j->s->resource->kind);
    kl_free(version);
    return o;
}

static kl_status create(job *j, const kl_value *body)
{
    const char *rv = kl_object_rv(body), *prefix = kl_value_str_at(body, "metadata", "generateName", NULL);
    char *made = NULL;
    if (j->base)
        return refuse(
            j, KL_EEXISTS, 409, "AlreadyExists", kl_sprintf("%s \"%s\" already exists", j->plural, j->name));
    if (rv && *rv)
        return refuse(j, KL_EREJECTED, 400, "BadRequest",
            kl_strdup("resourceVersion should not be set on objects to be created"));
    if (!j->name && (!prefix || !*prefix))
        return invalid(j, "metadata.name: Required value: name or generateName is required");
    if (!j->name)
        j->name = made = made_name(j, prefix);
    const kl_value *o = typed(j, body);
    identify(j, &o);
    fold_secret(&o);
    if (j->s->resource && has_sub(j, "status"))
        set(&o, kl_value_with(o, "status", NULL));
    answer(j, 201, o, true);
    kl_free(made);
    j->name = kl_op_name(j->op);
    return KL_OK;
}

/* --- scale -------------------------------------------------------------------------------- */

static const kl_value *scale_of(const kl_value *o)
{
    static const char *const keys[] = {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"};
    char *selector = kl_selector_text_of(kl_value_at(o, "spec", "selector", NULL));
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "Scale");
    kl_build_kstr(b, "apiVersion", "autoscaling/v1");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        kl_build_kvalue(b, keys[i], kl_value_at(o, "metadata", keys[i], NULL));
    kl_build_end(b);
    kl_build_key(b, "spec");
    kl_build_object(b);
    if (kl_value_int_at(o, 0, "spec", "replicas", NULL)) /* omitempty: an absent number is 0 */
        kl_build_kvalue(b, "replicas", kl_value_at(o, "spec", "replicas", NULL));
    kl_build_end(b);
    kl_build_key(b, "status");
    kl_build_object(b);
    kl_build_kint(b, "replicas", kl_value_int_at(o, 0, "status", "replicas", NULL));
    if (selector)
        kl_build_kstr(b, "selector", selector);
    kl_free(selector);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* Applies a written Scale; takes the reference. */
static kl_status rescale(job *j, const kl_value *scale)
{
    const char *rv = kl_object_rv(scale);
    const kl_value *n = kl_value_at(scale, "spec", "replicas", NULL);
    if (rv && *rv && kl_object_rv(j->base) && strcmp(rv, kl_object_rv(j->base))) {
        kl_value_unref(scale);
        return conflict(
            j, "the object has been modified; please apply your changes to the latest version and try again");
    }
    const kl_value *o = kl_value_ref(j->base);
    if (n)
        set(&o, kl_value_with_at(o, n, "spec", "replicas", NULL));
    kl_value_unref(scale);
    store(j, o);
    set(&j->out->answer, scale_of(j->out->object));
    return KL_OK;
}

/* --- update, patch, apply ----------------------------------------------------------------- */

static const kl__schema *schema_of(const kl_value *o)
{
    const char *version = kl_object_api_version(o), *kind = kl_object_kind(o);
    const char *slash = version ? strchr(version, '/') : NULL;
    char *group = slash ? kl_strndup(version, (size_t)(slash - version)) : kl_strdup("");
    const kl__schema *s = kl__schema_known(group,
        slash         ? slash + 1
            : version ? version
                      : "",
        kind ? kind : "");
    kl_free(group);
    return s;
}

static kl_status json_patch(job *j, const kl_value *doc, const kl_value **out)
{
    kl_err why = KL_ERR_INIT;
    kl_status st = kl_json_patch_apply(doc, j->op->body, out, &why);
    if (st == KL_EINVAL)
        st = refuse(j, st, 400, "BadRequest", kl_strdup(kl_err_message(&why)));
    else if (st)
        st = refuse(j, st, 422, "Invalid",
            kl_sprintf(
                "the server rejected our request due to an error in our request: %s", kl_err_message(&why)));
    kl_err_fini(&why);
    return st;
}

static kl_status strategic_patch(job *j, const kl_value *doc, const kl_value **out)
{
    const kl__schema *s = schema_of(j->base);
    if (s->custom)
        return refuse(j, KL_EREJECTED, 415, "UnsupportedMediaType",
            kl_strdup("the body of the request was in an unknown format - accepted media types include: "
                      "application/json-patch+json, application/merge-patch+json, "
                      "application/apply-patch+yaml"));
    return kl__smp_apply(is_sub(j, "scale") ? NULL : s, doc, j->op->body, out, j->err);
}

static kl_status patch(job *j)
{
    const kl_value *doc = is_sub(j, "scale") ? scale_of(j->base) : kl_value_ref(j->base), *out = NULL;
    kl_status st = KL_OK;
    if (j->op->patch_type == KL_PATCH_JSON)
        st = json_patch(j, doc, &out);
    else if (j->op->patch_type == KL_PATCH_STRATEGIC)
        st = strategic_patch(j, doc, &out);
    else
        out = kl_merge_patch_apply(doc, j->op->body);
    kl_value_unref(doc);
    if (st)
        return st;
    return is_sub(j, "scale") ? rescale(j, out) : replace(j, out);
}

static kl_status apply(job *j)
{
    char time[KL_TIME_MAX];
    const kl_value *config = typed(j, j->op->body), *out = NULL;
    const kl__schema *s = schema_of(config);
    const kl__writer w = {.manager = j->op->field_manager,
        .api_version = kl_object_api_version(config),
        .sub = j->op->subresource,
        .now = kl_time_format_wall(j->s->wall, time),
        .only_status = is_sub(j, "status") && s->custom,
        .owners_unknown = true,
        .no_status = !j->op->subresource && has_sub(j, "status")};
    kl_status st = kl__managed_apply(s, &w, j->op->force, j->base, config, &out, j->err);
    kl_value_unref(config);
    if (st)
        return st;
    if (j->base)
        return replace(j, out);
    st = create(j, out);
    kl_value_unref(out);
    return st;
}

/* --- deleting ----------------------------------------------------------------------------- */

static kl_status check_preconditions(job *j)
{
    const char *uid = j->op->uid, *rv = j->op->precondition_rv;
    char *why = NULL;
    if (uid && *uid && kl_object_uid(j->base) && strcmp(uid, kl_object_uid(j->base)))
        why = kl_sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid,
            kl_object_uid(j->base));
    else if (rv && *rv && kl_object_rv(j->base) && strcmp(rv, kl_object_rv(j->base)))
        why = kl_sprintf(
            "Precondition failed: ResourceVersion in precondition: %s, ResourceVersion in object meta: %s",
            rv, kl_object_rv(j->base));
    kl_status st = why ? conflict(j, why) : KL_OK;
    kl_free(why);
    return st;
}

static void add_finalizer(const kl_value **o, const char *name)
{
    if (kl_object_has_finalizer(*o, name))
        return;
    const kl_value *had = kl_value_at(*o, "metadata", "finalizers", NULL);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(had); i++)
        kl_build_value(b, kl_value_item(had, i));
    kl_build_str(b, name);
    kl_build_end(b);
    const kl_value *list = kl_builder_done(b);
    set_meta(o, "finalizers", list);
    kl_value_unref(list);
}

/* A pod on a node is terminated there first. */
#define POD_GRACE_DEFAULT 30
static int64_t grace_of(const job *j)
{
    const char *kind = kl_object_kind(j->base), *node = kl_value_str_at(j->base, "spec", "nodeName", NULL),
               *phase = kl_value_str_at(j->base, "status", "phase", NULL);
    bool over = phase && (!strcmp(phase, "Succeeded") || !strcmp(phase, "Failed"));
    if (!kind || strcmp(kind, "Pod") || !node || !*node || over)
        return 0;
    return j->op->grace_seconds >= 0
        ? j->op->grace_seconds
        : kl_value_int_at(j->base, POD_GRACE_DEFAULT, "spec", "terminationGracePeriodSeconds", NULL);
}

static void begin_deletion(job *j, const kl_value **o, int64_t grace)
{
    char text[KL_TIME_MAX];
    if (kl_object_deleting(*o))
        return;
    set_meta_str(o, "deletionTimestamp", kl_time_format_wall(j->s->wall + KL_SECONDS(grace), text));
    set_meta_int(o, "deletionGracePeriodSeconds", grace);
    if (kl_object_generation(*o))
        set_meta_int(o, "generation", kl_object_generation(*o) + 1);
}

static kl_status delete (job *j)
{
    kl_status st = check_preconditions(j);
    if (st)
        return st;
    const char *how = j->op->propagation;
    int64_t grace = grace_of(j);
    const kl_value *o = kl_value_ref(j->base);
    if (how && !strcmp(how, "Foreground"))
        add_finalizer(&o, "foregroundDeletion");
    if (how && !strcmp(how, "Orphan"))
        add_finalizer(&o, "orphan");
    if (has_finalizers(o) || grace > 0) {
        begin_deletion(j, &o, grace);
        store(j, o);
        return KL_OK;
    }
    kl_value_unref(o);
    *j->out = (kl_simulated){.answer = success(j), .code = 200, .changed = true};
    return KL_OK;
}

/* --- subresources that are created -------------------------------------------------------- */

static kl_status create_below(job *j)
{
    if (!j->base)
        return not_found(j);
    kl_status st;
    if (is_sub(j, "eviction")) {
        st = delete (j);
    } else if (is_sub(j, "binding")) {
        const kl_value *node = kl_value_at(j->op->body, "target", "name", NULL);
        const char *had = kl_value_str_at(j->base, "spec", "nodeName", NULL);
        if (had && *had)
            return conflict(j, "pod is already assigned to a node");
        store(j, kl_value_with_at(j->base, node, "spec", "nodeName", NULL));
        st = KL_OK;
    } else {
        return unknown(j, j->op->subresource);
    }
    if (!st) {
        set(&j->out->answer, success(j));
        j->out->code = 201;
    }
    return st;
}

/* --- all of it ---------------------------------------------------------------------------- */

static kl_status run(job *j)
{
    const kl_op *op = j->op;
    if (op->verb == KL_CREATE)
        return op->subresource ? create_below(j) : create(j, op->body);
    if (!kl_verb_is_write(op->verb) || op->verb == KL_DELETE_COLLECTION)
        return unknown(j, kl_verb_name(op->verb));
    if (op->subresource && !has_sub(j, op->subresource))
        return refuse(
            j, KL_ENOTFOUND, 404, "NotFound", kl_strdup("the server could not find the requested resource"));
    if (op->verb == KL_APPLY && (j->base || !op->subresource) && !is_sub(j, "scale"))
        return apply(j);
    if (!j->base)
        return not_found(j);
    if (op->verb == KL_DELETE)
        return delete (j);
    if (op->subresource && !is_sub(j, "status") && !is_sub(j, "scale"))
        return unknown(j, op->subresource);
    if (op->verb == KL_PATCH)
        return patch(j);
    return is_sub(j, "scale") ? rescale(j, kl_value_ref(op->body)) : replace(j, typed(j, op->body));
}

kl_status kl_simulate(const kl_simulation *s, kl_simulated *out, kl_err *err)
{
    *out = (kl_simulated){0};
    const char *kind = s->op->kind ? s->op->kind : kl_object_kind(s->op->body);
    job j = {.s = s,
        .op = s->op,
        .base = s->base,
        .name = kl_op_name(s->op),
        .out = out,
        .err = err,
        .plural = s->resource ? kl_resource_display(s->resource) : kl_strdup(kind ? kind : "objects")};
    kl_status st = run(&j);
    kl_free(j.plural);
    if (st)
        kl_simulated_fini(out);
    return st;
}

void kl_simulated_fini(kl_simulated *s)
{
    kl_value_unref(s->object);
    kl_value_unref(s->answer);
    *s = (kl_simulated){0};
}
