/* dispatch.c - see apiserver/pkg/admission/plugin/policy: validating/dispatcher.go, generic.
 *
 *   policy --matchConstraints--> its bindings --matchResources--> parameters of each --> core/policy
 *
 * The client gets the first refusal; a binding that only warns adds a warning. */
#include "policy/dispatch.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "policy/policy.h"
#include "schema/status.h"
#include "show/render.h"
#include "store/store.h"

/* ------------------------------------------------------------------ the compiled ones */

struct kl_policies {
    kl_policy **v; /* in the order of the bucket */
    size_t n;
};

kl_policies *kl_policies_new(void) { return kl_new(kl_policies); }

void kl_policies_free(kl_policies *p)
{
    for (size_t i = 0; p && i < p->n; i++)
        kl_policy_free(p->v[i]);
    if (p)
        kl_free(p->v);
    kl_free(p);
}

static bool current(const kl_policies *p, const kl__bucket *b)
{
    if (p->n != b->len)
        return false;
    for (size_t i = 0; i < p->n; i++)
        if (kl_policy_object(p->v[i]) != b->v[i]->object)
            return false;
    return true;
}

/* The compiled policy of an object: moved out of `from`, or a new one. */
static kl_policy *compiled(kl_policies *from, const kl_value *object)
{
    for (size_t i = 0; i < from->n; i++)
        if (from->v[i] && kl_policy_object(from->v[i]) == object) {
            kl_policy *p = from->v[i];
            from->v[i] = NULL;
            return p;
        }
    return kl_policy_new(object);
}

static void refresh(kl_policies *p, const kl__bucket *b)
{
    if (current(p, b))
        return;
    kl_policies *was = kl_new(kl_policies);
    *was = *p;
    p->n = b->len;
    p->v = kl_zalloc((b->len + 1) * sizeof(kl_policy *));
    for (size_t i = 0; i < b->len; i++)
        p->v[i] = compiled(was, b->v[i]->object);
    kl_policies_free(was);
}

/* ------------------------------------------------------------------ one write */

typedef struct hearing {
    const kl_policies_call *call;
    const kl_match *m;                /* the call's */
    const kl_value *policy, *binding; /* the present one; binding NULL: none */
    /* the first refusal: */
    char *message;
    char *reason;
} hearing;

static const char *name_of(const kl_value *o)
{
    const char *name = kl_object_name(o);
    return name ? name : "";
}

static void refuse(hearing *h, const char *reason, const char *message)
{
    if (h->message)
        return;
    h->reason = kl_strdup(reason);
    h->message = h->binding
        ? kl_sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s",
            name_of(h->policy), name_of(h->binding), message)
        : kl_sprintf("ValidatingAdmissionPolicy '%s' denied request: %s", name_of(h->policy), message);
}

/* The policy or the binding is not usable: the failure policy decides. */
static void KL_PRINTF(3, 4) misconfigured(hearing *h, const kl_policy *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *why = kl_vsprintf(fmt, ap);
    va_end(ap);
    char *text = kl_sprintf("failed to configure %s: %s", h->binding ? "binding" : "policy", why);
    if (!kl_policy_ignores(p))
        refuse(h, "Invalid", text);
    kl_free(text);
    kl_free(why);
}

static bool has_action(const kl_value *binding, const char *action)
{
    return kl_value_has_str(kl_value_at(binding, "spec", "validationActions", NULL), action);
}

#define FAILURE "validation.policy.admission.k8s.io/validation_failure"

/* A validation that does not hold, for the audit log. */
static void audit_failure(const hearing *h, size_t index, const char *message)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_object(b);
    kl_build_kstr(b, "message", message);
    kl_build_kstr(b, "policy", name_of(h->policy));
    kl_build_kstr(b, "binding", name_of(h->binding));
    kl_build_kint(b, "expressionIndex", (int64_t)index);
    kl_build_kvalue(b, "validationActions", kl_value_at(h->binding, "spec", "validationActions", NULL));
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *list = kl_builder_done(b);
    char *text = kl_value_to_json(list);
    h->call->audit(h->call->arg, FAILURE, text, false);
    kl_free(text);
    kl_value_unref(list);
}

static void noted(void *arg, const char *key, const char *value)
{
    const hearing *h = arg;
    char *whole = kl_sprintf("%s/%s", name_of(h->policy), key);
    h->call->audit(h->call->arg, whole, value, true);
    kl_free(whole);
}

static void judged(void *arg, bool always, size_t index, const char *reason, const char *message)
{
    hearing *h = arg;
    if (!always && has_action(h->binding, "Audit"))
        audit_failure(h, index, message);
    if (always || has_action(h->binding, "Deny"))
        refuse(h, reason, message);
    if (always || !has_action(h->binding, "Warn"))
        return;
    char *text = kl_sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s",
        name_of(h->policy), name_of(h->binding), message);
    h->call->warn(h->call->arg, text);
    kl_free(text);
}

/* The kind in whose version MatchResources match the object, or NULL. */
static const kl__kind *matches(const hearing *h, const kl_value *match)
{
    const kl_value *rules = kl_value_get(match, "resourceRules"),
                   *except = kl_value_get(match, "excludeResourceRules");
    const char *policy = kl_value_str_at(match, "matchPolicy", NULL);
    if (!kl_match_selects(h->m, match) || kl_match_kind(h->m, except, policy))
        return NULL;
    return kl_value_len(rules) ? kl_match_kind(h->m, rules, policy) : h->m->kind;
}

static void judge(hearing *h, const kl_policy *p, const kl__kind *k, const kl_value *params)
{
    const kl_value *request = h->call->request(h->call->arg, k);
    kl_policy_judge(p,
        &(kl_policy_input){.request = request,
            .ns = kl_match_namespace(h->m),
            .params = params,
            .authorize = h->call->authorize,
            .authorize_arg = h->call->arg},
        judged, noted, h);
    kl_value_unref(request);
}

/* ------------------------------------------------------------------ parameters */

static void judge_with(
    hearing *h, const kl_policy *p, const kl__kind *k, const kl__kind *kind, const kl_value *stored)
{
    char *version = kl__kind_api_version(kind);
    const kl_value *rendered = kl_render_version(kind, stored),
                   *typed = kl_object_with_type(rendered, version, kind->kind);
    judge(h, p, k, typed);
    kl_value_unref(typed);
    kl_value_unref(rendered);
    kl_free(version);
}

/* Judges with each parameter of the binding; returns their number. `ns` NULL: the kind has no namespaces. */
static size_t judge_params(hearing *h, const kl_policy *p, const kl__kind *k, const kl__kind *kind,
    const kl_value *ref, const char *ns)
{
    const char *name = kl_value_str_at(ref, "name", NULL);
    const kl__bucket *b = kind->bucket;
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++) {
        const kl_value *o = b->v[i]->object;
        const char *in = kl_object_namespace(o);
        if (ns && strcmp(in ? in : "", ns))
            continue;
        if (name && *name
                ? strcmp(name_of(o), name) != 0
                : !kl_match_labels(kl_value_get(ref, "selector"), kl_value_at(o, "metadata", "labels", NULL)))
            continue;
        judge_with(h, p, k, kind, o);
        n++;
    }
    return n;
}

static void judge_binding(hearing *h, const kl_policy *p, const kl__kind *k, const kl__kind *kind)
{
    const kl_value *ref = kl_value_at(h->binding, "spec", "paramRef", NULL);
    const char *ns = kl_value_str_at(ref, "namespace", NULL),
               *missing = kl_value_str_at(ref, "parameterNotFoundAction", NULL);
    if (!kind || !ref) {
        judge(h, p, k, NULL);
        return;
    }
    const kl_match *m = h->m;
    bool given = ns && *ns;
    if (!given)
        ns = kl_match_own(m) ? name_of(m->o ? m->o : m->old) : m->kind->namespaced ? m->ns : NULL;
    if (kind->namespaced && !ns)
        misconfigured(
            h, p, "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources");
    else if (!kind->namespaced && given)
        misconfigured(h, p, "paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
    else if (!judge_params(h, p, k, kind, ref, kind->namespaced ? ns : NULL) && missing
        && !strcmp(missing, "Deny"))
        misconfigured(h, p, "no params found for policy binding with `Deny` parameterNotFoundAction");
}

/* ------------------------------------------------------------------ all of them */

/* Reviews, which are not stored, are exempt. */
static bool exempt(const kl__kind *k)
{
    return kl__kind_among(k,
        "authentication.k8s.io/selfsubjectreviews authentication.k8s.io/tokenreviews "
        "authorization.k8s.io/localsubjectaccessreviews authorization.k8s.io/selfsubjectaccessreviews "
        "authorization.k8s.io/selfsubjectrulesreviews authorization.k8s.io/subjectaccessreviews");
}

/* The kind of a policy's parameters. false: there is no such kind. */
static bool param_kind(hearing *h, const kl_policy *p, const kl_value *spec, const kl__kind **out)
{
    const kl_value *kind = kl_value_get(spec, "paramKind");
    *out = NULL;
    if (!kind)
        return true;
    const char *version = kl_value_str_at(kind, "apiVersion", NULL),
               *name = kl_value_str_at(kind, "kind", NULL);
    version = version ? version : "";
    const char *slash = strchr(version, '/'), *v = slash ? slash + 1 : version;
    char *group = kl_sprintf("%.*s", slash ? (int)(slash - version) : 0, version);
    *out = kl__kinds_by_kind(h->m->kinds, group, v, name ? name : "");
    if (!*out)
        misconfigured(h, p, "failed to find resource referenced by paramKind: '%s/%s, Kind=%s'", group, v,
            name ? name : "");
    kl_free(group);
    return *out;
}

static bool bound(const kl_value *binding, const kl_value *policy)
{
    const char *name = kl_value_str_at(binding, "spec", "policyName", NULL);
    return name && !strcmp(name, name_of(policy));
}

/* Judges by one policy and its bindings. */
static void hear(hearing *h, const kl_policy *p, const kl__bucket *bindings)
{
    const kl__kind *k = NULL, *params = NULL;
    const kl_value *spec = kl_value_get(h->policy, "spec");
    for (size_t i = 0; i < bindings->len; i++) {
        const kl_value *binding = bindings->v[i]->object;
        if (!bound(binding, h->policy))
            continue;
        h->binding = NULL;
        if (!k) {
            k = matches(h, kl_value_get(spec, "matchConstraints"));
            if (!k || !param_kind(h, p, spec, &params))
                return;
        }
        h->binding = binding;
        const kl_value *match = kl_value_at(binding, "spec", "matchResources", NULL);
        if (!match || matches(h, match))
            judge_binding(h, p, k, params);
    }
}

static kl_status answer(const hearing *h, kl_err *err)
{
    const kl_match *m = h->m;
    const char *name = h->call->name ? h->call->name : kl_object_name(m->o ? m->o : m->old);
    char *what = kl__kind_display(m->kind);
    int code = !strcmp(h->reason, "Forbidden")        ? 403
        : !strcmp(h->reason, "RequestEntityTooLarge") ? 413
                                                      : 422;
    name = name && *name ? name : "Unknown";
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "name", name);
    kl_build_kstr(b, "group", *m->kind->group ? m->kind->group : NULL);
    kl_build_kstr(b, "kind", m->kind->plural);
    kl_build_key(b, "causes");
    kl_build_array(b);
    kl_build_object(b);
    kl_build_kstr(b, "message", h->message);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    kl_status st = kl__api_fail(
        err, code, h->reason, kl_builder_done(b), "%s \"%s\" is forbidden: %s", what, name, h->message);
    kl_free(what);
    return st;
}

static const kl__bucket *bucket(const kl_match *m, const char *plural)
{
    return kl__kinds_get(m->kinds, KL_ADMISSION_GROUP, "v1", plural)->bucket;
}

kl_status kl_policies_admit(kl_policies *p, const kl_policies_call *call, kl_err *err)
{
    const kl__bucket *b = bucket(&call->match, "validatingadmissionpolicies"),
                     *bindings = bucket(&call->match, "validatingadmissionpolicybindings");
    if (!b->len || !bindings->len || exempt(call->match.kind))
        return KL_OK;
    hearing h = {.call = call, .m = &call->match};
    refresh(p, b);
    for (size_t i = 0; i < p->n; i++) {
        h.policy = b->v[i]->object;
        hear(&h, p->v[i], bindings);
    }
    kl_status st = h.message ? answer(&h, err) : KL_OK;
    kl_free(h.message);
    kl_free(h.reason);
    return st;
}
