/* verbs.c - get, create and update of one object (patch.c has patch, delete.c delete): what kube-apiserver's
 * registry does between the HTTP handler and etcd.
 *
 * Every write ends in `commit`: an update that changes nothing keeps its resource version and makes no
 * event, and one that takes the last finalizer of a terminating object removes it. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "audit/audit.h"
#include "base/mem.h"
#include "builtin/defaults.h"
#include "builtin/habits.h"
#include "base/uuid.h"
#include "devices/devices.h"
#include "model/object.h"
#include "model/resource.h"
#include "model/time.h"
#include "verbs/access.h"
#include "verbs/admission.h"
#include "verbs/convert.h"
#include "verbs/meta.h"
#include "schema/edit.h"
#include "verbs/lifecycle.h"
#include "verbs/plug.h"
#include "schema/managed.h"
#include "schema/names.h"
#include "schema/normalize.h"
#include "show/render.h"
#include "schema/validate.h"
#include "serving/serving.h"
#include "verbs/call.h"
#include "schema/status.h"
#include "show/scaler.h"
#include "verbs/strategy.h"
#include "verbs/verbs_impl.h"

#define GENERATED_NAME_TRIES 8

kl_time kl__world_wall(const kl__world *w) { return kl_clock_wall(w->clock); }

#define WARNINGS_MAX 4096 /* as in kube-apiserver, for all warnings */

/* Adds the header of a warning, once. Frees the text. */
static void add_warning(kl_buf *out, char *text)
{
    size_t had = out ? out->len : WARNINGS_MAX;
    kl_buf line = KL_BUF_INIT;
    kl_buf_puts(&line, "Warning: 299 - \"");
    for (const char *p = text; *p && (had + line.len < WARNINGS_MAX || (*p & 0xc0) == 0x80); p++) {
        if (*p == '"' || *p == '\\')
            kl_buf_putc(&line, '\\');
        if ((unsigned char)*p >= ' ' && *p != 127)
            kl_buf_putc(&line, *p);
    }
    kl_buf_puts(&line, "\"\r\n");
    if (had < WARNINGS_MAX && !(had && memmem(out->data, had, line.data, line.len)))
        kl_buf_add(out, line.data, line.len);
    kl_buf_fini(&line);
    kl_free(text);
}

void kl__call_warn(const kl__call *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_warning(c->warnings, kl_vsprintf(fmt, ap));
    va_end(ap);
}

void kl__call_warn_later(const kl__call *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_warning(c->repeated, kl_vsprintf(fmt, ap));
    va_end(ap);
}

void kl__call_warned(const kl__call *c)
{
    if (!c->repeated || c->validation != KL_FIELDS_WARN)
        return;
    if (c->warnings && c->warnings->len < WARNINGS_MAX)
        kl_buf_add(c->warnings, c->repeated->data, c->repeated->len);
    kl_buf_clear(c->repeated);
}

char *kl__call_key(const kl__call *c, const char *name)
{
    return kl_key_join(c->kind->namespaced ? c->ns : NULL, name);
}

static const kl_value *now_text(const kl__call *c)
{
    char text[KL_TIME_MAX];
    return kl_value_of_str(kl_time_format_wall(kl__admission_wall(c), text));
}

static bool same_text(const char *a, const char *b) { return !strcmp(a ? a : "", b ? b : ""); }

/* ------------------------------------------------------------------ what came in */

static const char *kind_or(const char *kind, const kl__call *c)
{
    return kind && *kind ? kind : c->kind->kind;
}

/* The version of an apiVersion, without its group; `want` stands for none. */
static const char *bare(const char *api_version, const char *want)
{
    const char *all = api_version && *api_version ? api_version : want, *slash = strchr(all, '/');
    return slash ? slash + 1 : all;
}

/* Whether no built-in kind has this apiVersion and name. The list of a kind counts as one. */
static bool is_unknown(const kl__call *c, const char *api_version, const char *want, const char *kind)
{
    if (!strcmp(api_version, want) && !strcmp(kind_or(kind, c), c->kind->kind))
        return false;
    char *group, *version, *name = kl_strdup(kind_or(kind, c));
    size_t n = strlen(name);
    kl_api_version_split(api_version, &group, &version);
    bool list = !*group && !strcmp(version, "v1") && !strcmp(name, "List"),
         unknown = !list && !kl__kinds_by_kind(c->w->kinds, group, version, name);
    if (unknown && n > 4 && !strcmp(name + n - 4, "List")) {
        name[n - 4] = '\0';
        unknown = !kl__kinds_by_kind(c->w->kinds, group, version, name);
    }
    kl_free(group);
    kl_free(version);
    kl_free(name);
    return unknown;
}

kl_status kl__body_check_type(const kl__call *c, const kl_value *body, kl_err *err)
{
    if (kl_value_type(body) != KL_OBJECT)
        return kl__fail_bad_request(err,
            "the object provided is unrecognized (must be of type %s): it is %s, not an object",
            c->kind->kind, kl_value_type_name(body));
    const char *version = kl_object_api_version(body), *kind = kl_object_kind(body);
    const char *group = *c->kind->group ? c->kind->group : "core";
    int package = (int)strcspn(group, ".");
    char *want = kl__kind_api_version(c->kind);
    kl_status st = KL_OK;
    if (c->kind->custom && (!kind || !*kind))
        st = kl__fail_bad_request(err, "Object 'Kind' is missing in the body: it must be %s", c->kind->kind);
    else if (c->kind->custom && (!version || !*version))
        st = kl__fail_bad_request(err, "Object 'apiVersion' is missing in the body: it must be %s", want);
    else if (!c->kind->custom && is_unknown(c, version && *version ? version : want, want, kind))
        st = kl__fail_bad_request(err,
            "%s in version \"%s\" cannot be handled as a %s: no kind \"%s\" is registered for "
            "version \"%s\" in scheme \"pkg/runtime/scheme.go:110\"",
            kind_or(kind, c), bare(version, want), c->kind->kind, kind_or(kind, c),
            version && *version ? version : want);
    else if (kind && *kind && strcmp(kind, c->kind->kind))
        st = kl__fail_bad_request(err,
            "%s in version \"%s\" cannot be handled as a %s: converting (%s.%s) to (%.*s.%s): unknown "
            "conversion",
            kind, bare(version, want), c->kind->kind, bare(version, want), kind, package, group,
            c->kind->kind);
    else if (version && *version && strcmp(version, want))
        st = kl__fail_bad_request(err,
            "the API version in the data (%s) does not match the expected API version (%s)", version, want);
    kl_free(want);
    return st;
}

kl_status kl__body_decode(
    const kl__call *c, const kl_value *body, bool fill, const kl_value **out, kl_err *err)
{
    kl__unknown unknown = {0};
    char *version = kl__kind_api_version(c->kind);
    kl_status st = kl__body_check_type(c, body, err);
    const kl_value *o = NULL;
    if (!st) {
        const kl_value *typed = kl_object_with_type(body, version, c->kind->kind);
        st = c->kind->schema ? kl__normalize(
                 c->kind->schema, typed, fill, c->validation == KL_FIELDS_IGNORE ? NULL : &unknown, &o, err)
                             : KL_OK;
        if (!st && !o)
            o = kl_value_ref(typed);
        kl_value_unref(typed);
        if (st && kl__status_code(err) == 400) {
            char *why = kl_strdup(kl_err_message(err));
            st = kl__fail_bad_request(err, "%s in version \"%s\" cannot be handled as a %s: %s",
                c->kind->kind, c->kind->version, c->kind->kind, why);
            kl_free(why);
        }
    }
    bool repeated = c->repeated && c->repeated->len;
    if (!st && (unknown.count || repeated) && c->validation == KL_FIELDS_STRICT) {
        char *names = kl__unknown_text(&unknown);
        st = kl__fail_bad_request(err,
            "%s in version \"%s\" cannot be handled as a %s: strict decoding error: %s%s%s", c->kind->kind,
            c->kind->version, c->kind->kind, repeated ? kl_buf_str(c->repeated) : "",
            repeated && unknown.count ? ", " : "", names);
        kl_free(names);
    } else if (!st)
        kl__call_warned(c);
    for (size_t i = 0; !st && i < unknown.count; i++)
        kl__call_warn(c, "unknown field \"%s\"", unknown.paths[i]);
    kl__unknown_fini(&unknown);
    kl_free(version);
    if (!st && fill) {
        if (!c->kind->custom) {
            kl__defaults(c->kind->group, c->kind->plural, &o);
            kl__serving_fill(c->kind, &o);
            kl__devices_fill(c->kind, &o);
            if (kl__kind_among(c->kind, "apiextensions.k8s.io/customresourcedefinitions"))
                kl__crd_fill(&o);
        }
        kl_audit_requested(c->audit, o);
    }
    if (st)
        kl_value_unref(o);
    else
        *out = o;
    return st;
}

bool kl__has_nul(const kl_value *v)
{
    size_t n = 0;
    const char *s = kl_value_strn(v, &n);
    return s && strlen(s) != n;
}

kl_status kl__body_check_namespace(const kl__call *c, const kl_value **o, kl_err *err)
{
    const char *ns = kl_object_namespace(*o);
    if (!c->kind->namespaced) {
        if (ns && *ns)
            KL_CUT(o, "metadata", "namespace");
        return KL_OK;
    }
    if (ns && ((*ns && strcmp(ns, c->ns)) || kl__has_nul(kl_value_at(*o, "metadata", "namespace", NULL))))
        return kl__fail_bad_request(
            err, "the namespace of the provided object does not match the namespace sent on the request");
    if (!ns || !*ns)
        KL_EDIT(o, kl_value_of_str(c->ns), "metadata", "namespace");
    return KL_OK;
}

/* ------------------------------------------------------------------ what goes out */

/* The versions of a HorizontalPodAutoscaler differ in their fields. NULL for all other built-in kinds. */
static const kl__other_version *other_version(const kl__call *c, kl__other_version *out)
{
    if (!kl__kind_among(c->kind, "autoscaling/horizontalpodautoscalers"))
        return NULL;
    bool old = kl__is_old_scaler(c->kind);
    const kl__kind *k = kl__kinds_get(c->w->kinds, c->kind->group, old ? "v2" : "v1", c->kind->plural);
    *out = (kl__other_version){.api_version = old ? "autoscaling/v2" : "autoscaling/v1",
        .schema = k->schema,
        .convert = old ? kl__scaler_to_v2 : kl__scaler_to_v1};
    return out;
}

static bool knows_version(const void *arg, const char *api_version)
{
    const kl__call *c = arg;
    char *group, *version;
    kl_api_version_split(api_version, &group, &version);
    const kl__kind *k = kl__kinds_by_kind(c->w->kinds, group, version, c->kind->kind);
    bool known = k && (!strcmp(group, c->kind->group) || kl__kind_among(k, "/events events.k8s.io/events"));
    kl_free(group);
    kl_free(version);
    return known;
}

kl__writer kl__call_writer(
    const kl__call *c, const char *api_version, char now[KL_TIME_MAX], kl__other_version *other)
{
    /* a write of a ServiceCIDR brings its status */
    bool has_status = kl__kind_sub(c->kind, "status")
        && !kl__kind_among(c->kind, "networking.k8s.io/servicecidrs"),
         status = c->sub && !strcmp(c->sub, "status");
    return (kl__writer){.manager = c->manager,
        .api_version = api_version,
        .sub = c->sub,
        .now = kl_time_format_wall(kl__admission_wall(c), now),
        .only_status = status && c->kind->custom,
        /* these two reset what they do not write, and nobody notices */
        .no_status = has_status && !status && !c->any_status
            && !(c->sub && (!strcmp(c->sub, "ephemeralcontainers") || !strcmp(c->sub, "resize"))),
        .other = other_version(c, other),
        .knows = knows_version,
        .arg = c};
}

static void own(const kl__call *c, const kl_value *old, const kl_value **o)
{
    char now[KL_TIME_MAX], *version = kl__kind_api_version(c->kind);
    kl__other_version other;
    kl__writer w = kl__call_writer(c, version, now, &other);
    const kl_value *judged = kl__strategy_owned(c, old, *o);
    bool as_sent = judged == *o;
    kl__managed_update(c->kind->schema, &w, old, &judged);
    if (as_sent)
        kl__replace(o, kl_value_ref(judged));
    else
        KL_EDIT(o, kl_value_ref(kl_value_at(judged, "metadata", "managedFields", NULL)), "metadata",
            "managedFields");
    kl_value_unref(judged);
    kl_free(version);
}

/* What storage makes of an object, whose owners are known. */
static void put_nulls(const kl__call *c, const kl_value **o)
{
    kl__replace(o, kl__null_lists(c->kind->schema, *o));
}

static kl_status complain(const kl__call *c, const kl_value *o, kl__causes *causes, kl_err *err)
{
    /* Events are of one kind, whichever API brings them. */
    const char *group = strcmp(c->kind->group, "events.k8s.io") ? c->kind->group : "";
    return kl__fail_causes(err, group, c->kind->kind, kl_object_name(o), causes);
}

/* ------------------------------------------------------------------ get */

kl_status kl__verb_get(const kl__call *c, const kl_value **out, kl_err *err)
{
    char *key = kl__call_key(c, c->name);
    const kl__entry *e = kl__bucket_get(c->kind->bucket, key);
    kl_free(key);
    if (!e)
        return kl__fail_not_found(err, c->kind, c->name);
    *out = e->object;
    return KL_OK;
}

/* ------------------------------------------------------------------ create */

static void random_bytes(kl__world *w, void *to, size_t n)
{
    unsigned char *at = to;
    for (size_t i = 0; i < n && w->seeded; i++)
        at[i] = (unsigned char)kl_random_next(&w->chance);
    if (!w->seeded && getrandom(to, n, 0) != (ssize_t)n)
        kl_mem_die("getrandom");
}

const kl_value *kl__world_uid(kl__world *w)
{
    unsigned char b[16];
    char text[KL_UUID_MAX];
    random_bytes(w, b, sizeof b);
    return kl_value_of_str(kl_uuid_of(b, text));
}

/* Kubernetes' alphabet for generated names: no vowels, no look-alikes. */
static char *generated_name(kl__world *w, const char *base)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    unsigned char b[5];
    char tail[6] = {0};
    random_bytes(w, b, sizeof b);
    for (int i = 0; i < 5; i++)
        tail[i] = letters[b[i] % (sizeof letters - 1)];
    return kl_sprintf("%.58s%s", base, tail);
}

/* Gives the object a name when it has only generateName. */
static void name_it(const kl__call *c, const kl_value **o)
{
    const char *name = kl_object_name(*o), *base = kl_value_str_at(*o, "metadata", "generateName", NULL);
    if ((name && *name) || !base || !*base)
        return;
    bool fixed = kl__kind_among(c->kind, "networking.k8s.io/ipaddresses"); /* named by the base itself */
    for (int i = 0; i < GENERATED_NAME_TRIES; i++) {
        char *made = fixed ? kl_strdup(base) : generated_name(c->w, base);
        const char *kept = kl__admission_name(c, made);
        if (kept) {
            KL_EDIT(o, kl_value_of_str(kept), "metadata", "name");
            return;
        }
        char *key = kl__call_key(c, made);
        bool taken = kl__bucket_get(c->kind->bucket, key) != NULL;
        kl_free(key);
        if (!taken || i + 1 == GENERATED_NAME_TRIES) {
            KL_EDIT(o, kl_value_of_str(made), "metadata", "name");
            i = GENERATED_NAME_TRIES;
        }
        kl_free(made);
    }
}

/* What mutating webhooks make of an object that was sent. What they change belongs to nobody: its fields
 * are owned as they were sent. */
static kl_status mutate(const kl__call *c, const char *operation, const kl_value *old, bool *owned,
    const kl_value **o, kl_err *err)
{
    if (!kl__admission_mutates(c))
        return KL_OK;
    if (!*owned)
        own(c, old, o);
    *owned = true;
    const kl_value *sent = kl_value_ref(*o), *typed = NULL;
    kl_status st = kl__admit_mutate(c, operation, old, o, err);
    if (!st && !kl_value_equal(sent, *o)) {
        kl__call quiet = *c;
        quiet.validation = KL_FIELDS_IGNORE;
        st = kl__body_decode(&quiet, *o, true, &typed, err);
        if (!st)
            kl__replace(o, typed);
    }
    kl_value_unref(sent);
    return st;
}

void kl__body_unique_owners(const kl__call *c, const char *when, const kl_value **o)
{
    char *twice = kl__owners_unique(o);
    if (twice)
        kl__call_warn(c,
            ".metadata.ownerReferences contains duplicate entries%s; API server dedups owner references in "
            "1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate "
            "UID(s) "
            "observed: %s",
            when, twice);
    kl_free(twice);
}

kl_status kl__verb_create_decoded(
    const kl__call *c, const kl_value *o, bool owned, const kl_value **out, kl_err *err)
{
    kl__causes causes = {0};
    kl__written w = {.why = KL_ERR_INIT};
    char *key = NULL;
    kl__body_unique_owners(c, "", &o);
    kl_status st = kl__body_check_namespace(c, &o, err);
    const char *given = kl_object_name(o);
    if (!st && c->kind->namespaced)
        st = kl__namespace_open(c->w, c->kind, c->ns, given ? given : "", err);
    const char *rv = kl_object_rv(o);
    bool numbered = rv && *rv && !rv[strspn(rv, "0123456789")] && strspn(rv, "0") < strlen(rv);
    if (!st && numbered && !c->dry_run) /* it is the storage that refuses it */
        st = kl__api_fail(err, 500, "", NULL, "resourceVersion should not be set on objects to be created");
    if (!st)
        st = kl__access_grant(c, NULL, o, err);
    static const char *const system[] = {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"};
    for (size_t i = 0; !st && i < sizeof system / sizeof *system; i++)
        if (kl_value_at(o, "metadata", system[i], NULL))
            KL_CUT(&o, "metadata", system[i]);
    if (!st && !owned)
        own(c, NULL, &o);
    owned = true; /* what plugins, webhooks and rules add is nobody's */
    if (!st)
        st = kl__plug_add(c, NULL, &o, err);
    if (!st)
        st = mutate(c, "CREATE", NULL, &owned, &o, err);
    if (!st) {
        put_nulls(c, &o);
        name_it(c, &o);
        const char *uid = kl_object_uid(o);
        if (!c->any_status || !uid || !*uid)
            KL_EDIT(&o, kl__admission_uid(c, kl__world_uid(c->w)), "metadata", "uid");
        KL_EDIT(&o, now_text(c), "metadata", "creationTimestamp");
        kl__strategy_create(c, &o, &causes);
        if (!causes.len) {
            kl__meta_check_new(c, o, &causes);
            kl__strategy_validate(c, NULL, o, &causes);
        }
        st = complain(c, o, &causes, err);
    }
    if (!st)
        st = kl__plug_check(c, NULL, o, err);
    if (!st)
        st = kl__admit_validate(c, "CREATE", NULL, o, err);
    if (!st)
        st = kl__write_begin(c, o, &w, err);
    if (!st) {
        key = kl__call_key(c, kl_object_name(o));
        const kl__entry *there = kl__bucket_get(c->kind->bucket, key);
        const char *base = kl_value_str_at(o, "metadata", "generateName", NULL);
        st = kl__plug_charge(c, NULL, o, there != NULL, err);
        if (!st && there)
            st = kl__fail_exists(
                err, c->kind, kl_object_name(o), kl_object_deleting(there->object), base && *base);
    }
    if (!st)
        st = kl__write_end(c, &w, key, false, out, err);
    kl__write_drop(&w);
    kl_value_unref(o);
    kl_free(key);
    return st;
}

kl_status kl__verb_create(const kl__call *c, const kl_value *body, const kl_value **out, kl_err *err)
{
    const kl_value *o = NULL;
    kl_status st = kl__body_decode(c, body, true, &o, err);
    return st ? st : kl__verb_create_decoded(c, o, false, out, err);
}

/* ------------------------------------------------------------------ update */

static bool terminating(const kl_value *o) { return kl_object_deleting(o); }

/* Whether an object is terminating, and nothing holds it any more. */
static bool may_go(const kl__call *c, const kl_value *o)
{
    if (!terminating(o) || kl_value_len(kl_value_at(o, "metadata", "finalizers", NULL)))
        return false;
    if (kl__kind_among(c->kind, "/namespaces") && kl_value_len(kl_value_at(o, "spec", "finalizers", NULL)))
        return false;
    return kl_value_int_at(o, 0, "metadata", "deletionGracePeriodSeconds", NULL) == 0;
}

/* Whether `stored` is of another version than the present storage version, so that even an unchanged object
 * is stored anew. */
static bool stored_anew(const kl__kind *k, const kl_value *stored)
{
    const char *version = kl_object_api_version(stored), *slash = version ? strchr(version, '/') : NULL;
    return k->storage && slash && strcmp(slash + 1, k->storage);
}

/* Writes `o` over `old`, as which the writer sees `stored`, or removes it when that was the last thing
 * holding it. */
static kl_status commit(const kl__call *c, const kl_value *stored, const kl_value *old, const kl_value *o,
    const kl_value **out, kl_err *err)
{
    if (kl__managed_same(old, o) && !stored_anew(c->kind, stored)) {
        kl_status st = kl__plug_charge(c, old, o, false, err);
        *out = st ? NULL : kl_value_ref(old);
        return st;
    }
    kl__written w = {.why = KL_ERR_INIT};
    kl_status st = kl__write_begin(c, o, &w, err);
    if (!st)
        st = kl__plug_charge(c, old, o, false, err);
    char *key = kl_object_key(o);
    if (!st)
        st = kl__write_end(c, &w, key, may_go(c, o), out, err);
    kl__write_drop(&w);
    kl_free(key);
    return st;
}

/* The object that replaces another must have its name. */
kl_status kl__body_check_name(const kl__call *c, const kl_value *o, kl_err *err)
{
    const char *name = kl_object_name(o);
    if (!name || !*name)
        return kl__fail_bad_request(err,
            "the name of the object (%s based on URL) was undeterminable: name must be provided", c->name);
    return !strcmp(name, c->name)
        ? KL_OK
        : kl__fail_bad_request(
            err, "the name of the object (%s) does not match the name on the URL (%s)", name, c->name);
}

/* A version is a number. */
static kl_status check_rv(const char *rv, kl_err *err)
{
    const char *wrong = NULL;
    errno = 0;
    if (rv && rv[strspn(rv, "0123456789")])
        wrong = "invalid syntax";
    else if (rv && strtoull(rv, NULL, 10) == ULLONG_MAX && errno == ERANGE)
        wrong = "value out of range";
    return wrong ? kl__api_fail(err, 500, "", NULL, "strconv.ParseUint: parsing \"%s\": %s", rv, wrong)
                 : KL_OK;
}

kl_status kl__verb_update_decoded(const kl__call *c, const kl_value *stored, const kl_value *o, bool owned,
    const kl_value **out, kl_err *err)
{
    kl__causes causes = {0};
    const kl_value *old = NULL, *sent = NULL;
    kl__body_unique_owners(c, "", &o);
    kl_status st = kl__see(c, stored, &old, err);
    if (!st)
        st = kl__body_check_namespace(c, &o, err);
    const char *name = kl_object_name(o), *rv = kl_object_rv(o);
    if (!st)
        st = kl__body_check_name(c, o, err);
    if (!st)
        st = check_rv(rv, err);
    rv += rv ? strspn(rv, "0") : 0;
    if (rv && !*rv) /* as if there was none */
        rv = NULL;
    if (!st && !rv && kl__habit_needs_rv(c->kind)) {
        kl__cause_add(&causes, "FieldValueInvalid", "metadata.resourceVersion",
            "Invalid value: 0: must be specified for an update");
        /* kube-apiserver names the resource here */
        st = kl__fail_causes(err, c->kind->group, c->kind->plural, name, &causes);
    }
    if (!st && rv && !same_text(rv, kl_object_rv(old)))
        st = kl__fail_modified(err, c->kind, name);
    if (!st)
        st = kl__access_grant(c, old, o, err);
    /* Nobody owns what plugins, webhooks and rules change after this. */
    if (!st && !owned && kl__strategy_owned_as_sent(c)) {
        own(c, old, &o);
        owned = true;
    }
    if (!st)
        st = kl__plug_add(c, old, &o, err);
    if (!st)
        st = mutate(c, "UPDATE", old, &owned, &o, err);
    if (!st) {
        if (owned)
            put_nulls(c, &o);
        sent = kl_value_ref(o);
        static const char *const kept[] = {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
            "deletionGracePeriodSeconds", "selfLink", "generation"};
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
            const kl_value *was = kl_value_at(old, "metadata", kept[i], NULL);
            if (was || kl_value_at(o, "metadata", kept[i], NULL))
                KL_EDIT(&o, kl_value_ref(was), "metadata", kept[i]);
        }
        kl__strategy_update(c, old, &o, &causes);
        st = causes.len ? KL_OK : kl__strategy_ports(c, o, err);
        if (!st && !causes.len) {
            kl__meta_check_update(c, old, sent, o, &causes);
            kl__strategy_validate(c, old, o, &causes);
        }
        if (!st)
            st = complain(c, o, &causes, err);
    }
    if (!st)
        st = kl__plug_check(c, old, o, err);
    if (!st)
        st = kl__admit_validate(c, "UPDATE", old, o, err);
    if (!st) {
        if (!owned) {
            own(c, old, &o);
            put_nulls(c, &o);
        }
        st = commit(c, stored, old, o, out, err);
    }
    kl_value_unref(o);
    kl_value_unref(sent);
    kl_value_unref(old);
    return st;
}

static kl_status check_uid(const kl__call *c, const kl_value *stored, const kl_value *o, kl_err *err)
{
    const char *uid = kl_object_uid(o);
    return !uid || !*uid || same_text(uid, kl_object_uid(stored))
        ? KL_OK
        : kl__fail_conflict(err, c->kind, c->name,
            "StorageError: invalid object, Code: 4, Key: /registry/%s/%s%s%s, ResourceVersion: 0, "
            "AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s",
            c->kind->plural, c->kind->namespaced ? c->ns : "", c->kind->namespaced ? "/" : "", c->name, uid,
            kl_object_uid(stored));
}

kl_status kl__verb_update(
    const kl__call *c, const kl_value *body, const kl_value **out, int *code, kl_err *err)
{
    const kl_value *o = NULL;
    kl_status st = kl__body_decode(c, body, true, &o, err);
    if (!st)
        st = kl__body_check_namespace(c, &o, err);
    if (!st)
        st = kl__body_check_name(c, o, err);
    if (st) {
        kl_value_unref(o);
        return st;
    }
    char *key = kl__call_key(c, c->name);
    const kl__entry *e = kl__bucket_get(c->kind->bucket, key);
    kl_free(key);
    *code = 200;
    if (!e && !c->sub && kl__habit_create_on_update(c->kind)) {
        *code = 201;
        const char *rv = kl_object_rv(o);
        if (!rv || !*rv)
            return kl__verb_create_decoded(c, o, false, out, err);
    }
    st = e ? check_uid(c, e->object, o, err) : kl__fail_not_found(err, c->kind, c->name);
    if (st) {
        kl_value_unref(o);
        return st;
    }
    return kl__verb_update_decoded(c, e->object, o, false, out, err);
}
