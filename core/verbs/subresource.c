/* subresource.c - evictions, bindings and tokens.
 *
 * An eviction is a deletion that asks the pod's disruption budget first:
 *
 *   pod over, pending or going --> delete
 *   no budget                  --> delete
 *   budget allows, or the pod is not ready and nobody misses it --> take one from the budget, delete
 *   budget does not            --> 429 with the cause DisruptionBudget
 *
 * The budget's status is its controller's: here nobody computes it, whoever tests writes it. */
#include "verbs/subresource.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/selector.h"
#include "model/time.h"
#include "rbac/tokens.h"
#include "verbs/access.h"
#include "verbs/admission.h"
#include "schema/edit.h"
#include "verbs/lifecycle.h"
#include "show/render.h"
#include "schema/status.h"
#include "value/edited.h"

#define BUDGET_BEHIND_SECONDS                                                                                \
    10 /* before an eviction is tried again whose budget was not looked at yet, as kube-apiserver says */
#define DISRUPTED_PODS_MAX 2000
#define TOKEN_SECONDS_DEFAULT 3600
#define TOKEN_SECONDS_MIN 600
#define TOKEN_SECONDS_MAX ((int64_t)1 << 32)
/* The lifetime that a kubelet requests for its pods. Such a token is good for a year, and its use is warned
 * of after this time. */
#define TOKEN_SECONDS_OF_KUBELET 3607
#define TOKEN_SECONDS_EXTENDED ((int64_t)365 * 24 * 3600)

bool kl__sub_served(const char *sub)
{
    static const char *const served[] = {"status", "finalize", "scale", "approval", "ephemeralcontainers",
        "resize", "eviction", "binding", "token"};
    for (size_t i = 0; i < sizeof served / sizeof *served; i++)
        if (!strcmp(sub, served[i]))
            return true;
    return false;
}

/* ------------------------------------------------------------------ common */

static const kl_value *created(void)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "Status");
    kl_build_kstr(b, "apiVersion", "v1");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_end(b);
    kl_build_kstr(b, "status", "Success");
    kl_build_kint(b, "code", 201);
    kl_build_end(b);
    return kl_builder_done(b);
}

static kl_status check_kind(const kl_value *body, const char *group_version, const char *kind, kl_err *err)
{
    const char *have = kl_object_kind(body), *version = kl_object_api_version(body);
    if (kl_value_type(body) != KL_OBJECT)
        return kl__fail_bad_request(err, "the object provided is unrecognized (must be of type %s): it is %s",
            kind, kl_value_type_name(body));
    if ((have && *have && strcmp(have, kind)) || (version && *version && strcmp(version, group_version)))
        return kl__fail_bad_request(err,
            "%s in version \"%s\" cannot be handled as a %s: converting (%s) to (%s): unknown conversion",
            have ? have : "", version ? version : "", kind, have ? have : "", kind);
    return KL_OK;
}

static const kl_value *now_value(const kl__call *c)
{
    char text[KL_TIME_MAX];
    return kl_value_of_str(kl_time_format_wall(kl__world_wall(c->w), text));
}

/* Adds or replaces the condition of `type` in status.conditions. lastTransitionTime changes with `status`. */
static void set_condition(const kl__call *c, const kl_value **o, const char *type, const char *status,
    const char *reason, const char *message, int64_t seen, bool probed)
{
    const kl_value *have = kl_value_at(*o, "status", "conditions", NULL), *since = NULL;
    bool there = false;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i <= kl_value_len(have); i++) {
        const kl_value *it = kl_value_item(have, i);
        const char *is = kl_value_str_at(it, "type", NULL);
        if (it && (!is || strcmp(is, type))) {
            kl_build_value(b, it);
            continue;
        }
        if (there)
            continue;
        there = true;
        const char *was = kl_value_str_at(it, "status", NULL);
        since = was && !strcmp(was, status) ? kl_value_ref(kl_value_get(it, "lastTransitionTime"))
                                            : now_value(c);
        kl_build_object(b);
        kl_build_kstr(b, "type", type);
        if (seen)
            kl_build_kint(b, "observedGeneration", seen);
        kl_build_kstr(b, "status", status);
        if (probed) {
            kl_build_key(b, "lastProbeTime");
            kl_build_null(b);
        }
        kl_build_kvalue(b, "lastTransitionTime", since);
        kl_build_kstr(b, "reason", reason);
        kl_build_kstr(b, "message", message);
        kl_build_end(b);
        kl_value_unref(since);
    }
    kl_build_end(b);
    KL_EDIT(o, kl_builder_done(b), "status", "conditions");
}

/* The stored object of a kind as its first version shows it; a new reference, or NULL. */
static const kl_value *find(const kl__call *c, const char *group, const char *version, const char *plural,
    const char *ns, const char *name)
{
    kl__kind *k = kl__kinds_get(c->w->kinds, group, version, plural);
    char *key = kl_key_join(ns, name);
    const kl__entry *e = k ? kl__bucket_get(k->bucket, key) : NULL;
    kl_free(key);
    return e ? kl_render_version(k, e->object) : NULL;
}

/* Sends the object to be created below c->name to webhooks. *body: as they leave it. They do not hear of its
 * effect (a deletion, a binding). */
static kl_status admit(
    const kl__call *c, const char *version, const char *kind, const kl_value **body, kl_err *err)
{
    kl__call below = *c;
    below.own_version = version;
    below.own_kind = kind;
    kl_status st = kl__admit_mutate(&below, "CREATE", NULL, body, err);
    return st ? st : kl__admit_validate(&below, "CREATE", NULL, *body, err);
}

/* ------------------------------------------------------------------ eviction */

static bool has_condition(const kl_value *o, const char *type)
{
    const kl_value *all = kl_value_at(o, "status", "conditions", NULL);
    for (size_t i = 0; i < kl_value_len(all); i++) {
        const char *t = kl_value_str_at(kl_value_item(all, i), "type", NULL),
                   *s = kl_value_str_at(kl_value_item(all, i), "status", NULL);
        if (t && s && !strcmp(t, type))
            return !strcmp(s, "True");
    }
    return false;
}

/* Whether the pod's disruption has happened already, or cannot happen. */
static bool needs_no_budget(const kl_value *pod)
{
    const char *phase = kl_value_str_at(pod, "status", "phase", NULL);
    return kl_object_deleting(pod)
        || (phase && (!strcmp(phase, "Succeeded") || !strcmp(phase, "Failed") || !strcmp(phase, "Pending")));
}

/* The budgets that select the pod: how many, and the last of them (a new reference). */
static size_t budgets_of(const kl__call *c, const kl__kind *k, const kl_value *pod, const kl_value **out)
{
    size_t n = 0;
    char *prefix = kl_sprintf("%s/", c->ns);
    for (size_t i = 0; i < k->bucket->len; i++) {
        const kl__entry *e = k->bucket->v[i];
        kl_selector *s = NULL;
        if (strncmp(e->key, prefix, strlen(prefix))
            || kl_selector_from_struct(kl_value_at(e->object, "spec", "selector", NULL), &s, NULL))
            continue;
        if (kl_selector_matches(s, kl_value_at(pod, "metadata", "labels", NULL))) {
            kl_value_unref(*out);
            *out = kl_render_version(k, e->object);
            n++;
        }
        kl_selector_free(s);
    }
    kl_free(prefix);
    return n;
}

static kl_status KL_PRINTF(3, 4) no_room(kl_err *err, int64_t seconds, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *why = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_key(b, "causes");
    kl_build_array(b);
    kl_build_object(b);
    kl_build_kstr(b, "reason", "DisruptionBudget");
    kl_build_kstr(b, "message", why);
    kl_build_end(b);
    kl_build_end(b);
    if (seconds)
        kl_build_kint(b, "retryAfterSeconds", seconds);
    kl_build_end(b);
    kl_status st = kl__api_fail(err, 429, "TooManyRequests", kl_builder_done(b),
        "Cannot evict pod as it would violate the pod's disruption budget.");
    if (err)
        err->retry_after_ns = KL_SECONDS(seconds);
    kl_free(why);
    return st;
}

/* Takes one disruption from the budget. */
static kl_status spend(const kl__call *c, kl__kind *k, const kl_value *budget, bool dry, kl_err *err)
{
    const char *name = kl_object_name(budget);
    int64_t allowed = kl_value_int_at(budget, 0, "status", "disruptionsAllowed", NULL);
    if (kl_value_int_at(budget, 0, "status", "observedGeneration", NULL) < kl_object_generation(budget))
        return no_room(err, BUDGET_BEHIND_SECONDS,
            "The disruption budget %s is still being processed by the server.", name);
    if (allowed < 0)
        return kl__fail_forbidden(err, k, name, "pdb disruptions allowed is negative");
    if (kl_value_len(kl_value_at(budget, "status", "disruptedPods", NULL)) > DISRUPTED_PODS_MAX)
        return kl__fail_forbidden(
            err, k, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    if (!allowed)
        return no_room(err, 0, "The disruption budget %s needs %lld healthy pods and has %lld currently",
            name, (long long)kl_value_int_at(budget, 0, "status", "desiredHealthy", NULL),
            (long long)kl_value_int_at(budget, 0, "status", "currentHealthy", NULL));
    if (dry)
        return KL_OK;
    const kl_value *o = kl_value_ref(budget), *out = NULL;
    KL_EDIT(&o, kl_value_of_int(allowed - 1), "status", "disruptionsAllowed");
    KL_EDIT(&o, now_value(c), "status", "disruptedPods", c->name);
    if (allowed == 1)
        set_condition(
            c, &o, "DisruptionAllowed", "False", "InsufficientPods", "", kl_object_generation(o), false);
    kl__call update = {.w = c->w,
        .kind = k,
        .ns = c->ns,
        .name = name,
        .sub = "status",
        .manager = "kube-apiserver",
        .manager_given = true,
        .validation = KL_FIELDS_IGNORE};
    int code;
    kl_status st = kl__verb_update(&update, o, &out, &code, err);
    kl_value_unref(out);
    kl_value_unref(o);
    return st;
}

/* Asks the budget whether the pod may go; if so, takes the cost from it. */
static kl_status ask_budget(const kl__call *c, const kl_value *pod, bool dry, kl_err *err)
{
    kl__kind *k = kl__kinds_get(c->w->kinds, "policy", "v1", "poddisruptionbudgets");
    const kl_value *budget = NULL;
    size_t n = k ? budgets_of(c, k, pod, &budget) : 0;
    kl_status st = KL_OK;
    if (n > 1)
        st = kl__api_fail(err, 500, "", NULL,
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
            "support.");
    else if (n) {
        const char *policy = kl_value_str_at(budget, "spec", "unhealthyPodEvictionPolicy", NULL);
        int64_t healthy = kl_value_int_at(budget, 0, "status", "currentHealthy", NULL),
                wanted = kl_value_int_at(budget, 0, "status", "desiredHealthy", NULL);
        bool spare = !has_condition(pod, "Ready")
            && ((policy && !strcmp(policy, "AlwaysAllow")) || (healthy >= wanted && wanted > 0));
        if (!spare)
            st = spend(c, k, budget, dry, err);
    }
    kl_value_unref(budget);
    return st;
}

static kl_status delete_evicted(
    const kl__call *pods, const kl_value *pod, const kl_value *options, bool dry, kl_err *err)
{
    kl__call one = *pods;
    const kl_value *out = NULL;
    int code;
    one.dry_run = true; /* checks whether the pod may be deleted at all */
    kl_status st = kl__verb_delete(&one, options, &out, err);
    kl_value_unref(out);
    if (st || dry)
        return st;
    const kl_value *told = kl_value_ref(pod), *rest = kl_value_ref(options);
    out = NULL;
    set_condition(
        pods, &told, "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting", 0, true);
    one = *pods;
    one.sub = "status";
    one.validation = KL_FIELDS_IGNORE;
    st = kl__verb_update(&one, told, &out, &code, err);
    kl_value_unref(out);
    if (!st) {
        out = NULL;
        one.sub = NULL;
        if (kl_value_at(rest, "preconditions", "resourceVersion", NULL))
            /* the precondition was met; the condition has raised the version since */
            KL_CUT(&rest, "preconditions", "resourceVersion");
        st = kl__verb_delete(&one, rest, &out, err);
        kl_value_unref(out);
    }
    kl_value_unref(told);
    kl_value_unref(rest);
    return st;
}

static kl_status evict(const kl__call *c, const kl_value *body, const kl_value **out, kl_err *err)
{
    const kl_value *options = kl_value_get(body, "deleteOptions"), *stored = NULL;
    const char *name = kl_object_name(body);
    kl_status st = KL_OK;
    if ((!name || strcmp(name, c->name)))
        st = kl__fail_bad_request(err, "name in URL does not match name in Eviction object");
    kl__call pods = *c;
    pods.sub = NULL;
    pods.warnings = NULL;
    pods.admission = NULL;
    if (!st)
        st = kl__verb_get(&pods, &stored, err);
    if (st)
        return st;
    bool dry = c->dry_run || kl_value_len(kl_value_get(options, "dryRun")) > 0;
    const kl_value *pod = kl_render_version(c->kind, stored);
    options = options ? kl_value_ref(options) : kl_value_with(NULL, "kind", NULL);
    if (!needs_no_budget(pod))
        st = ask_budget(c, pod, dry, err);
    if (!st)
        st = delete_evicted(&pods, pod, options, dry, err);
    if (!st)
        *out = created();
    kl_value_unref(options);
    kl_value_unref(pod);
    return st;
}

/* ------------------------------------------------------------------ binding */

static void copy_members(const kl_value *from, const kl_value **o, const char *where)
{
    kl_edited e = {.base = kl_value_at(*o, "metadata", where, NULL)};
    kl_edited_put_all(&e, from);
    if (e.len)
        KL_EDIT(o, kl_edited_done(&e), "metadata", where);
}

static kl_status KL_PRINTF(3, 4) not_bound(kl_err *err, const kl__call *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *why = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "name", c->name);
    kl_build_kstr(b, "kind", "pods/binding");
    kl_build_end(b);
    kl_status st = kl__api_fail(err, 409, "Conflict", kl_builder_done(b),
        "Operation cannot be fulfilled on pods/binding \"%s\": %s", c->name, why);
    kl_free(why);
    return st;
}

static kl_status check_binding(const kl__call *c, const kl_value *body, const kl_value *pod, kl_err *err)
{
    const char *uid = kl_object_uid(body), *rv = kl_object_rv(body),
               *node = kl_value_str_at(pod, "spec", "nodeName", NULL);
    if (uid && *uid && strcmp(uid, kl_object_uid(pod)))
        return kl__fail_conflict(err, c->kind, c->name,
            "Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, kl_object_uid(pod));
    if (rv && *rv && strcmp(rv, kl_object_rv(pod)))
        return kl__fail_conflict(err, c->kind, c->name,
            "Precondition failed: ResourceVersion in precondition: %s, ResourceVersion in object meta: %s",
            rv, kl_object_rv(pod));
    if (kl_object_deleting(pod))
        return not_bound(err, c, "pod %s is being deleted, cannot be assigned to a host", c->name);
    if (node && *node)
        return not_bound(err, c, "pod %s is already assigned to node \"%s\"", c->name, node);
    if (kl_value_len(kl_value_at(pod, "spec", "schedulingGates", NULL)))
        return not_bound(err, c, "pod %s has non-empty .spec.schedulingGates", c->name);
    return KL_OK;
}

static kl_status bind_pod(const kl__call *c, const kl_value *body, const kl_value **out, kl_err *err)
{
    const char *name = kl_object_name(body), *kind = kl_value_str_at(body, "target", "kind", NULL),
               *node = kl_value_str_at(body, "target", "name", NULL);
    const kl_value *stored = NULL;
    kl_status st = KL_OK;
    bool nowhere = !node || !*node;
    if (!name || strcmp(name, c->name))
        st = kl__fail_bad_request(err, "name in URL does not match name in Binding object");
    else if (kind && *kind && strcmp(kind, "Node"))
        st = kl__api_fail(err, 500, "", NULL,
            "%starget.kind: Unsupported value: \"%s\": supported values: \"Node\", \"<empty>\"%s",
            nowhere ? "[" : "", kind, nowhere ? ", target.name: Required value]" : "");
    else if (nowhere)
        st = kl__api_fail(err, 500, "", NULL, "target.name: Required value");
    kl__call pods = *c;
    pods.sub = NULL;
    pods.admission = NULL;
    if (!st)
        st = kl__verb_get(&pods, &stored, err);
    if (!st)
        st = check_binding(c, body, stored, err);
    if (st)
        return st;
    if (!c->dry_run) {
        const kl_value *pod = kl_value_ref(stored);
        KL_EDIT(&pod, kl_value_of_str(node), "spec", "nodeName");
        copy_members(kl_value_at(body, "metadata", "annotations", NULL), &pod, "annotations");
        copy_members(kl_value_at(body, "metadata", "labels", NULL), &pod, "labels");
        set_condition(c, &pod, "PodScheduled", "True", NULL, NULL, 0, true);
        char *key = kl_object_key(pod);
        kl__after_put(c->w, c->kind, kl__store_put(c->w->store, c->kind->bucket, key, pod));
        kl_free(key);
    }
    *out = created();
    return KL_OK;
}

/* ------------------------------------------------------------------ token */

static void put_ref(kl_builder *b, const char *claim, const char *name, const char *uid)
{
    kl_build_key(b, claim);
    kl_build_object(b);
    kl_build_kstr(b, "name", name);
    kl_build_kstr(b, "uid", uid);
    kl_build_end(b);
}

/* How long a token is good, and from when its use is warned of (0: never). */
typedef struct lifetime {
    int64_t from, until, warns;
} lifetime;

static const kl_value *new_token(const kl__call *c, const kl_value *audiences, const lifetime *life,
    const char *uid, const kl_value *bound)
{
    const kl_value *id = kl__world_uid(c->w);
    const char *node = kl_value_str_at(bound, "spec", "nodeName", NULL);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kvalue(b, "aud", audiences);
    kl_build_kint(b, "exp", life->until);
    kl_build_kint(b, "iat", life->from);
    kl_build_kstr(b, "iss", KL_AUDIENCE);
    kl_build_kvalue(b, "jti", id);
    kl_value_unref(id);
    kl_build_key(b, "kubernetes.io");
    kl_build_object(b);
    kl_build_kstr(b, "namespace", c->ns);
    if (node && *node) {
        const kl_value *o = find(c, "", "v1", "nodes", NULL, node);
        put_ref(b, "node", node, o ? kl_object_uid(o) : "");
        kl_value_unref(o);
    }
    if (bound)
        put_ref(
            b, kl__access_bound_claim(kl_object_kind(bound)), kl_object_name(bound), kl_object_uid(bound));
    put_ref(b, "serviceaccount", c->name, uid);
    if (life->warns)
        kl_build_kint(b, "warnafter", life->warns);
    kl_build_end(b);
    kl_build_kint(b, "nbf", life->from);
    char *subject = kl_sprintf("system:serviceaccount:%s:%s", c->ns, c->name);
    kl_build_kstr(b, "sub", subject);
    kl_free(subject);
    kl_build_end(b);
    const kl_value *claims = kl_builder_done(b);
    char *token = kl__token_new(c->w->issuer, claims);
    const kl_value *v = kl_value_of_str(token);
    if (!c->dry_run)
        kl__issued_add(c->w->issued, kl__world_wall(c->w), token, claims);
    kl_free(token);
    kl_value_unref(claims);
    return v;
}

/* Checks the object that a token is to be bound to; *out is a new reference. */
static kl_status check_bound(const kl__call *c, const kl_value *ref, const kl_value **out, kl_err *err)
{
    static const struct {
        const char *kind, *plural;
        bool namespaced;
    } kinds[] = {{"Pod", "pods", true}, {"Secret", "secrets", true}, {"Node", "nodes", false}};
    const char *kind = kl_value_str_at(ref, "kind", NULL),
               *version = kl_value_str_at(ref, "apiVersion", NULL),
               *name = kl_value_str_at(ref, "name", NULL), *uid = kl_value_str_at(ref, "uid", NULL);
    for (size_t i = 0; kind && version && !strcmp(version, "v1") && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kind, kinds[i].kind))
            continue;
        const kl_value *o = find(
            c, "", "v1", kinds[i].plural, kinds[i].namespaced ? c->ns : NULL, name ? name : "");
        const char *account = kl_value_str_at(o, "spec", "serviceAccountName", NULL);
        kl_status st = KL_OK;
        if (!o)
            st = kl__fail_not_found(
                err, kl__kinds_get(c->w->kinds, "", "v1", kinds[i].plural), name ? name : "");
        else if (i == 0 && (!account || strcmp(account, c->name)))
            st = kl__fail_bad_request(err,
                "cannot bind token for serviceaccount \"%s\" to pod running with different serviceaccount "
                "name.",
                c->name);
        else if (uid && *uid && strcmp(uid, kl_object_uid(o)))
            st = kl__api_fail(err, 409, "Conflict", NULL,
                "Operation cannot be fulfilled on %s \"%s\": the UID in the bound object reference (%s) does "
                "not match the UID in record. "
                "The object might have been deleted and then recreated",
                kind, name, uid);
        if (st)
            kl_value_unref(o);
        else
            *out = o;
        return st;
    }
    return kl__fail_bad_request(
        err, "cannot bind token to object of type %s, Kind=%s", version ? version : "", kind ? kind : "");
}

static kl_status check_request(const kl__call *c, const kl_value *body, int64_t seconds, kl_err *err)
{
    kl__causes causes = {0};
    const char *name = kl_object_name(body), *ns = kl_object_namespace(body);
    const kl_value *v = kl_value_at(body, "spec", "expirationSeconds", NULL);
    if (name && *name && strcmp(name, c->name))
        kl__cause_invalid(&causes, "metadata.name", kl_value_at(body, "metadata", "name", NULL),
            "must match the service account name if specified");
    if (ns && *ns && strcmp(ns, c->ns))
        kl__cause_invalid(&causes, "metadata.namespace", kl_value_at(body, "metadata", "namespace", NULL),
            "must match the service account namespace if specified");
    kl_status st = kl__fail_causes(err, "authentication.k8s.io", "TokenRequest", c->name, &causes);
    if (st)
        return st;
    if (seconds < TOKEN_SECONDS_MIN)
        kl__cause_invalid(
            &causes, "spec.expirationSeconds", v, "may not specify a duration less than 10 minutes");
    else if (seconds > TOKEN_SECONDS_MAX)
        kl__cause_invalid(
            &causes, "spec.expirationSeconds", v, "may not specify a duration larger than 2^32 seconds");
    return kl__fail_causes(err, "authentication.k8s.io", "TokenRequest", "", &causes);
}

static kl_status request_token(const kl__call *c, const kl_value *body, const kl_value **out, kl_err *err)
{
    int64_t seconds = kl_value_int_at(body, TOKEN_SECONDS_DEFAULT, "spec", "expirationSeconds", NULL),
            from = kl__world_wall(c->w) / KL_SECONDS(1);
    const kl_value *account = NULL, *to = NULL, *bound = kl_value_at(body, "spec", "boundObjectRef", NULL),
                   *audiences = kl_value_at(body, "spec", "audiences", NULL);
    kl__call main = *c;
    main.sub = NULL;
    main.admission = NULL;
    kl_status st = kl__verb_get(&main, &account, err);
    if (!st)
        st = check_request(c, body, seconds, err);
    if (!st && bound && kl_value_type(bound) != KL_NULL)
        st = check_bound(c, bound, &to, err);
    if (st)
        return st;
    const kl_value *o = kl_value_ref(body);
    char text[KL_TIME_MAX];
    KL_EDIT(&o, kl_value_of_str("TokenRequest"), "kind");
    KL_EDIT(&o, kl_value_of_str("authentication.k8s.io/v1"), "apiVersion");
    KL_EDIT(&o, kl_value_of_str(c->name), "metadata", "name");
    KL_EDIT(&o, kl_value_of_str(c->ns), "metadata", "namespace");
    KL_EDIT(&o, kl_value_of_str(kl_object_uid(account)), "metadata", "uid");
    KL_EDIT(&o, now_value(c), "metadata", "creationTimestamp");
    if (!kl_value_len(audiences)) {
        kl_builder *b = kl_builder_new();
        kl_build_array(b);
        kl_build_str(b, KL_AUDIENCE);
        kl_build_end(b);
        KL_EDIT(&o, kl_builder_done(b), "spec", "audiences");
    }
    KL_EDIT(&o, kl_value_of_int(seconds), "spec", "expirationSeconds");
    if (!bound)
        KL_EDIT(&o, kl_value_null(), "spec", "boundObjectRef");
    KL_CUT(&o, "status");
    const kl_value *meant = kl_value_at(o, "spec", "audiences", NULL);
    lifetime life = {.from = from, .until = from + seconds};
    if (to && !strcmp(kl_object_kind(to), "Pod") && seconds == TOKEN_SECONDS_OF_KUBELET
        && kl_value_len(meant) == 1 && kl_value_has_str(meant, KL_AUDIENCE)) {
        life.warns = life.until;
        life.until = from + TOKEN_SECONDS_EXTENDED;
    }
    KL_EDIT(&o, new_token(c, meant, &life, kl_object_uid(account), to), "status", "token");
    kl_value_unref(to);
    KL_EDIT(&o, kl_value_of_str(kl_time_format_wall(KL_SECONDS(from + seconds), text)), "status",
        "expirationTimestamp");
    *out = o;
    return KL_OK;
}

/* A Binding that is created by itself names its pod. */
static kl_status bind_named(const kl__call *c, const kl_value *body, const kl_value **out, kl_err *err)
{
    kl__call pod = *c;
    pod.kind = kl__kinds_get(c->w->kinds, "", "v1", "pods");
    pod.name = kl_object_name(body);
    pod.sub = "binding";
    if (!pod.name || !*pod.name)
        return kl__fail_bad_request(err, "Name parameter required.");
    return kl__sub_create(&pod, body, out, err);
}

bool kl__sub_creates(const kl__call *c) { return c->sub || kl__kind_among(c->kind, "/bindings"); }

typedef struct creation {
    const char *sub, *version, *kind;
    kl_status (*create)(const kl__call *c, const kl_value *body, const kl_value **out, kl_err *err);
} creation;

kl_status kl__sub_create(const kl__call *c, const kl_value *body, const kl_value **out, kl_err *err)
{
    static const creation known[] = {
        {"eviction", "policy/v1", "Eviction", evict},
        {"binding", "v1", "Binding", bind_pod},
        {"token", "authentication.k8s.io/v1", "TokenRequest", request_token},
    };
    if (!c->sub)
        return bind_named(c, body, out, err);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const creation *k = &known[i];
        if (strcmp(c->sub, k->sub))
            continue;
        const kl_value *asked = kl_value_ref(body);
        kl_status st = check_kind(body, k->version, k->kind, err);
        if (!st)
            st = admit(c, k->version, k->kind, &asked, err);
        if (!st)
            st = k->create(c, asked, out, err);
        kl_value_unref(asked);
        return st;
    }
    return kl__api_fail(err, 501, "NotImplemented", NULL, "the embedded API server does not serve %s/%s yet",
        c->kind->plural, c->sub);
}
