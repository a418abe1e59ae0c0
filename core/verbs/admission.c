/* admission.c - see apiserver/pkg/admission/plugin/webhook: generic (matching), request (the review),
 * mutating and validating (the order). */
#include "verbs/admission.h"

#include <string.h>

#include "audit/audit.h"
#include "base/base64.h"
#include "base/mem.h"
#include "rules/admission.h"
#include "custom/review.h"
#include "model/object.h"
#include "value/patch.h"
#include "policy/dispatch.h"
#include "policy/hooks.h"
#include "schema/edit.h"
#include "verbs/access.h"
#include "verbs/convert.h"

#define TIMEOUT_DEFAULT KL_WEBHOOK_TIMEOUT
/* The limit for an object that changes faster than its webhooks answer. */
#define CALLS_MAX 200

typedef struct answer {
    const kl_value *asked; /* the request but for its uid */
    char *hook;
    const kl_value *response; /* or: */
    char *failure;
} answer;

struct kl__admission {
    kl_time wall;
    int64_t stale;
    const kl_value *object_uid;
    char *name;
    answer *v;
    size_t n, at, calls;
    kl_conversions *conversions; /* of the objects the call reads and writes */
    /* the call to make, or under way: */
    bool waits;
    answer next; /* asked, hook */
    char *url, *ca, *uid;
    kl_time timeout;
    void (*again)(void *arg); /* called when the answer has arrived */
    void *again_arg;
};

static void answer_fini(answer *a)
{
    kl_value_unref(a->asked);
    kl_value_unref(a->response);
    kl_free(a->hook);
    kl_free(a->failure);
    *a = (answer){0};
}

static void next_fini(kl__admission *a)
{
    answer_fini(&a->next);
    kl_free(a->url);
    kl_free(a->ca);
    kl_free(a->uid);
    a->url = a->ca = a->uid = NULL;
    a->waits = false;
}

kl__admission *kl__admission_new(kl_time wall, int64_t stale)
{
    kl__admission *a = kl_new(kl__admission);
    a->wall = wall;
    a->stale = stale;
    a->conversions = kl_conversions_new();
    return a;
}

int64_t kl__admission_stale(const kl__admission *a) { return a->stale; }

void kl__admission_free(kl__admission *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->n; i++)
        answer_fini(&a->v[i]);
    next_fini(a);
    kl_conversions_free(a->conversions);
    kl_value_unref(a->object_uid);
    kl_free(a->name);
    kl_free(a->v);
    kl_free(a);
}

void kl__admission_rewind(kl__admission *a)
{
    a->at = 0;
    kl_conversions_rewind(a->conversions);
}

bool kl__admission_waits(const kl__admission *a)
{
    return a && (a->waits || kl_conversions_wait(a->conversions));
}

kl_conversions *kl__admission_conversions(const kl__world *w, const kl__admission *a)
{
    return a && w->webhook ? a->conversions : NULL;
}

kl_time kl__admission_wall(const kl__call *c)
{
    return c->admission ? c->admission->wall : kl__world_wall(c->w);
}

const kl_value *kl__admission_uid(const kl__call *c, const kl_value *fresh)
{
    if (!c->admission)
        return fresh;
    if (!c->admission->object_uid)
        c->admission->object_uid = kl_value_ref(fresh);
    kl_value_unref(fresh);
    return kl_value_ref(c->admission->object_uid);
}

const char *kl__admission_name(const kl__call *c, char *fresh)
{
    if (!c->admission)
        return NULL;
    if (c->admission->name)
        kl_free(fresh);
    else
        c->admission->name = fresh;
    return c->admission->name;
}

/* ------------------------------------------------------------------ which */

static kl_match match_of(const kl__call *c, const char *operation, const kl_value *old, const kl_value *o)
{
    return (kl_match){.kinds = c->w->kinds,
        .kind = c->kind,
        .operation = operation,
        .sub = c->sub,
        .ns = c->ns,
        .old = old,
        .o = o};
}

static const kl__bucket *configurations(const kl__call *c, bool mutating)
{
    const kl__kind *k = kl__kinds_get(c->w->kinds, KL_ADMISSION_GROUP, "v1",
        mutating ? "mutatingwebhookconfigurations" : "validatingwebhookconfigurations");
    return k ? k->bucket : NULL;
}

/* Webhooks are not called for their configurations: one that always refuses could not be removed. */
static bool asks(const kl__call *c)
{
    return c->admission && c->w->webhook && strcmp(c->kind->group, KL_ADMISSION_GROUP);
}

bool kl__admission_mutates(const kl__call *c)
{
    const kl__bucket *b = asks(c) ? configurations(c, true) : NULL;
    return b && b->len;
}

/* ------------------------------------------------------------------ what is asked */

static void add_names(kl_builder *b, const char *key, const kl__kind *k, bool kind)
{
    kl_build_key(b, key);
    kl_build_object(b);
    kl_build_kstr(b, "group", k->group);
    kl_build_kstr(b, "version", k->version);
    kl_build_kstr(b, kind ? "kind" : "resource", kind ? k->kind : k->plural);
    kl_build_end(b);
}

/* Adds the kind of a subresource that has its own: "autoscaling/v1", "Scale". */
static void add_own_kind(kl_builder *b, const char *key, const char *version, const char *kind)
{
    const char *slash = strchr(version, '/');
    kl_build_key(b, key);
    kl_build_object(b);
    kl_build_key(b, "group");
    kl_build_strn(b, version, slash ? (size_t)(slash - version) : 0);
    kl_build_kstr(b, "version", slash ? slash + 1 : version);
    kl_build_kstr(b, "kind", kind);
    kl_build_end(b);
}

static void add_kind(kl_builder *b, const char *key, const kl__call *c, const kl__kind *k)
{
    if (c->own_kind)
        add_own_kind(b, key, c->own_version, c->own_kind);
    else
        add_names(b, key, k, true);
}

/* The object as a webhook for k sees it; a new reference. */
static const kl_value *typed_for(const kl__call *c, const kl__kind *k, const kl_value *o)
{
    char *version = c->own_kind ? kl_strdup(c->own_version) : kl__kind_api_version(k);
    const kl_value *typed = kl_object_with_type(o, version, c->own_kind ? c->own_kind : k->kind);
    const char *is = kl_object_api_version(typed);
    if (!is || strcmp(is, version))
        KL_EDIT(&typed, kl_value_of_str(version), "apiVersion");
    kl_free(version);
    return typed;
}

static void add_object(
    kl_builder *b, const char *key, const kl__call *c, const kl__kind *k, const kl_value *o)
{
    kl_build_key(b, key);
    if (!o) {
        kl_build_null(b);
        return;
    }
    const kl_value *typed = typed_for(c, k, o);
    kl_build_value(b, typed);
    kl_value_unref(typed);
}

static void add_options(kl_builder *b, const kl__call *c, const char *operation)
{
    const char *kind = !strcmp(operation, "CREATE") ? "CreateOptions"
        : !strcmp(operation, "UPDATE")              ? "UpdateOptions"
                                                    : "DeleteOptions";
    kl_build_key(b, "options");
    kl_build_object(b);
    kl_build_kstr(b, "kind", kind);
    kl_build_kstr(b, "apiVersion", "meta.k8s.io/v1");
    if (c->manager_given && strcmp(operation, "DELETE"))
        kl_build_kstr(b, "fieldManager", c->manager);
    if (c->dry_run) {
        kl_build_key(b, "dryRun");
        kl_build_array(b);
        kl_build_str(b, "All");
        kl_build_end(b);
    }
    kl_build_end(b);
}

static const kl_value *request_of(
    const kl__call *c, const kl__kind *k, const char *operation, const kl_value *old, const kl_value *o)
{
    kl_builder *b = kl_builder_new();
    const char *name = c->sub ? c->name : kl_object_name(o ? o : old);
    kl_build_object(b);
    add_kind(b, "kind", c, k);
    add_names(b, "resource", k, false);
    kl_build_kstr(b, "subResource", c->sub);
    add_kind(b, "requestKind", c, c->kind);
    add_names(b, "requestResource", c->kind, false);
    kl_build_kstr(b, "requestSubResource", c->sub);
    kl_build_kstr(b, "name", name && *name ? name : NULL);
    kl_build_kstr(b, "namespace",
        !strcmp(c->kind->plural, "namespaces") && !*c->kind->group ? name
            : c->kind->namespaced                                  ? c->ns
                                                                   : NULL);
    kl_build_kstr(b, "operation", operation);
    kl_build_kvalue(b, "userInfo", c->user ? c->user : c->w->anybody);
    add_object(b, "object", c, k, o);
    add_object(b, "oldObject", c, k, old);
    kl_build_key(b, "dryRun");
    kl_build_bool(b, c->dry_run);
    add_options(b, c, operation);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* ------------------------------------------------------------------ what is answered */

/* The answer to a request, when it is known; otherwise the call must be made. Takes `request`. */
static kl_status ask(
    const kl__call *c, const kl_value *hook, const kl_value *request, const answer **out, kl_err *err)
{
    kl__admission *a = c->admission;
    const char *name = kl_value_str_at(hook, "name", NULL);
    if (a->at < a->n && !strcmp(a->v[a->at].hook, name) && kl_value_equal(a->v[a->at].asked, request)) {
        *out = &a->v[a->at++];
        kl_value_unref(request);
        return KL_OK;
    }
    while (a->n > a->at) /* the object has changed: later answers are void */
        answer_fini(&a->v[--a->n]);
    if (++a->calls > CALLS_MAX) {
        kl_value_unref(request);
        return kl__fail_internal(err, "the object changes faster than its webhooks answer (%s)", name);
    }
    const kl_value *where = kl_value_get(hook, "clientConfig");
    int64_t timeout = kl_value_int_at(hook, TIMEOUT_DEFAULT, "timeoutSeconds", NULL);
    a->waits = true;
    a->next = (answer){.asked = request, .hook = kl_strdup(name)};
    a->url = kl_webhook_url(where, timeout);
    a->timeout = KL_SECONDS(timeout);
    a->uid = kl_webhook_uid();
    a->ca = kl_webhook_ca(where);
    return kl_fail(err, KL_EAGAIN, "webhook %s must be called", name);
}

static void answered(void *arg, int code, const char *text, size_t n, const char *failure)
{
    kl__admission *a = arg;
    answer *v = &a->next;
    const kl_value *review = NULL;
    kl_err err = KL_ERR_INIT;
    if (failure)
        v->failure = kl_sprintf("failed to call webhook: Post \"%s\": %s", a->url, failure);
    else if (code != 200)
        v->failure = kl_sprintf("failed to call webhook: an error on the server (\"%.*s\") has prevented the "
                                "request from succeeding (HTTP %d)",
            (int)(n < 200 ? strcspn(text, "\n") < n ? strcspn(text, "\n") : n : 200), text, code);
    else if (kl_value_decode(text, n, &review, &err))
        v->failure = kl_sprintf(
            "failed to call webhook: couldn't get version/kind; json parse error: %s", kl_err_message(&err));
    const kl_value *response = kl_value_get(review, "response");
    const char *version = kl_value_str_at(review, "apiVersion", NULL),
               *kind = kl_value_str_at(review, "kind", NULL), *uid = kl_value_str_at(response, "uid", NULL);
    if (v->failure)
        ;
    else if (!version || !kind || strcmp(version, "admission.k8s.io/v1") || strcmp(kind, "AdmissionReview"))
        v->failure = kl_sprintf("received invalid webhook response: expected webhook response of "
                                "admission.k8s.io/v1, Kind=AdmissionReview, got %s, Kind=%s",
            version ? version : "", kind ? kind : "");
    else if (!response)
        v->failure = kl_strdup("received invalid webhook response: webhook response was absent");
    else if (!uid || strcmp(uid, a->uid))
        v->failure = kl_sprintf("received invalid webhook response: expected response.uid=\"%s\", got \"%s\"",
            a->uid, uid ? uid : "");
    else
        v->response = kl_value_ref(response);
    kl_value_unref(review);
    kl_err_fini(&err);
    a->v = kl_realloc(a->v, (a->n + 1) * sizeof *a->v);
    a->v[a->n++] = *v;
    a->next = (answer){0};
    next_fini(a);
    a->again(a->again_arg);
}

static void converted(void *arg, int code, const char *text, size_t n, const char *failure)
{
    kl__admission *a = arg;
    kl_conversions_answer(a->conversions, code, text, n, failure);
    a->again(a->again_arg);
}

static void convert(kl__world *w, kl__admission *a)
{
    kl_conversion_call call;
    kl_conversions_call(a->conversions, &call);
    kl__conversion_send(w, &call, converted, a);
}

void kl__admission_call(kl__world *w, kl__admission *a, void (*again)(void *arg), void *arg)
{
    a->again = again;
    a->again_arg = arg;
    if (!a->waits) {
        convert(w, a);
        return;
    }
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "AdmissionReview");
    kl_build_kstr(b, "apiVersion", "admission.k8s.io/v1");
    kl_build_key(b, "request");
    kl_build_object(b);
    kl_build_kstr(b, "uid", a->uid);
    for (size_t i = 0; i < kl_value_len(a->next.asked); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(a->next.asked, i, &key, &n);
        kl_build_kvalue(b, key, v);
    }
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *review = kl_builder_done(b);
    kl_buf body = KL_BUF_INIT;
    kl_value_encode(review, &body);
    kl_value_unref(review);
    char *url = kl_strdup(a->url), *ca = kl_strdup(a->ca); /* the call may free a */
    w->webhook(w->webhook_arg,
        &(kl_server_webhook){
            .url = url, .ca = ca, .body = kl_buf_str(&body), .len = body.len, .timeout = a->timeout},
        answered, a);
    kl_buf_fini(&body);
    kl_free(url);
    kl_free(ca);
}

/* ------------------------------------------------------------------ decisions */

static kl_status refuse(const kl_value *response, const char *name, kl_err *err)
{
    const kl_value *status = kl_value_get(response, "status");
    const char *message = kl_value_str_at(status, "message", NULL),
               *reason = kl_value_str_at(status, "reason", NULL);
    int64_t code = kl_value_int_at(status, 0, "code", NULL);
    if (code < 400 || code > 999) /* no HTTP answer can have a code above 999 */
        code = 400;
    if (message && *message)
        return kl__api_fail(err, (int)code, reason, kl_value_ref(kl_value_get(status, "details")),
            "admission webhook \"%s\" denied the request: %s", name, message);
    if (reason && *reason)
        return kl__api_fail(
            err, (int)code, reason, NULL, "admission webhook \"%s\" denied the request: %s", name, reason);
    return kl__api_fail(
        err, (int)code, NULL, NULL, "admission webhook \"%s\" denied the request without explanation", name);
}

/* Applies the patch of an answer. *out stays NULL if nothing changes. */
static kl_status apply_patch(
    const kl_value *o, const char *text, size_t n, const kl_value **out, bool *impossible, kl_err *err)
{
    kl_buf json = KL_BUF_INIT;
    const kl_value *patch = NULL;
    kl_status st = kl_base64_decode(text, n, &json, err);
    if (!st)
        st = kl_value_decode(kl_buf_str(&json), json.len, &patch, err);
    *impossible = !st && !o && kl_value_len(patch);
    if (!st && o)
        st = kl_json_patch_apply(o, patch, out, err);
    kl_value_unref(patch);
    kl_buf_fini(&json);
    return st;
}

/* One write in the form for policies and conditions. */
typedef struct asked {
    const kl__call *c;
    const char *operation;
    const kl_value *old, *o;
    kl__reasons reasons;
    kl_status failed; /* the objects cannot be had, or not yet, in the version of a policy */
    kl_err *err;
} asked;

static bool authorize(void *arg, const kl_value *attributes, const char **reason)
{
    asked *a = arg;
    return kl__access_asked(a->c->w, a->c->user, attributes, &a->reasons, reason);
}

/* The question to one webhook: what becomes of `o`, which was `old`. Either may be NULL. */
typedef struct question {
    const kl_value *hook;
    const kl__kind *kind; /* the kind that the webhook asked for */
    const char *operation;
    const kl_value *old, *o;
} question;

/* Whether the conditions of a webhook match. If one cannot be evaluated, the failure policy decides: it
 * refuses the request, or skips the webhook. */
static kl_status wanted(const kl__call *c, const question *q, bool *yes, kl_err *err)
{
    const kl_value *conditions = kl_value_get(q->hook, "matchConditions");
    const char *policy = kl_value_str_at(q->hook, "failurePolicy", NULL);
    *yes = true;
    if (!kl_value_len(conditions))
        return KL_OK;
    const kl_value *request = request_of(c, q->kind, q->operation, q->old, q->o);
    kl_err why = KL_ERR_INIT;
    kl_cel_env *env = kl_cel_request_env(false, true);
    kl_cel_conditions *compiled = kl_cel_conditions_new(env, conditions);
    asked a = {.c = c};
    kl_cel_var vars[KL_CEL_REQUEST_VARS];
    kl_cel_run run = {.vars = vars, .authorize = authorize, .authorize_arg = &a};
    const kl_value *resource = kl_cel_request_resource(request);
    kl_cel_request_vars(request, resource, NULL, NULL, vars);
    kl_status st = kl_cel_conditions_match(compiled, &run, yes, &why);
    kl_cel_conditions_free(compiled);
    kl_cel_env_free(env);
    kl__reasons_fini(&a.reasons);
    kl_value_unref(resource);
    kl_value_unref(request);
    if (st && policy && !strcmp(policy, "Ignore")) {
        *yes = false;
        st = KL_OK;
    } else if (st) {
        const char *name = c->sub ? c->name : kl_object_name(q->o ? q->o : q->old);
        st = kl__fail_forbidden(err, c->kind, name ? name : "", "%s", kl_err_message(&why));
    }
    kl_err_fini(&why);
    return st;
}

/* The object in the version of `k`, which a webhook or policy matches instead of the call's kind. NULL stays
 * NULL. */
static kl_status in_version(
    const kl__call *c, const kl__kind *k, const kl_value *o, const kl_value **out, kl_err *err)
{
    if (o && k != c->kind && k->conversion && !c->own_kind)
        return kl__see_as(c, k, o, out, err);
    *out = kl_value_ref(o);
    return KL_OK;
}

/* Calls one webhook. *patched: its changed object, or NULL: unchanged. */
static kl_status consult_as(const kl__call *c, const question *q, const kl_value **patched, kl_err *err)
{
    const char *name = kl_value_str_at(q->hook, "name", NULL),
               *policy = kl_value_str_at(q->hook, "failurePolicy", NULL);
    const answer *a = NULL;
    bool yes;
    kl_status st = wanted(c, q, &yes, err);
    if (st || !yes)
        return st;
    st = ask(c, q->hook, request_of(c, q->kind, q->operation, q->old, q->o), &a, err);
    if (st)
        return st;
    char *failure = kl_strdup(a->failure);
    const kl_value *warnings = kl_value_get(a->response, "warnings");
    for (size_t i = 0; i < kl_value_len(warnings); i++)
        if (kl_value_str(kl_value_item(warnings, i)))
            kl__call_warn(c, "%s", kl_value_str(kl_value_item(warnings, i)));
    if (!failure && !kl_value_bool(kl_value_get(a->response, "allowed"), false))
        return refuse(a->response, name, err);
    size_t n;
    const char *text = failure ? NULL : kl_value_strn(kl_value_get(a->response, "patch"), &n);
    if (text && patched) {
        kl_err why = KL_ERR_INIT;
        bool impossible;
        const kl_value *typed = q->o ? typed_for(c, q->kind, q->o) : NULL;
        if (apply_patch(typed, text, n, patched, &impossible, &why))
            failure = kl_sprintf("its patch cannot be applied: %s", kl_err_message(&why));
        kl_value_unref(typed);
        kl_err_fini(&why);
        if (impossible) /* regardless of the failure policy */
            return kl__fail_internal(err,
                "admission webhook \"%s\" attempted to modify the object, which is "
                "not supported for this operation",
                name);
    }
    if (failure && !(policy && !strcmp(policy, "Ignore")))
        st = kl__fail_internal(err, "failed calling webhook \"%s\": %s", name, failure);
    kl_free(failure);
    return st;
}

static kl_status consult(const kl__call *c, const question *q, const kl_value **patched, kl_err *err)
{
    question as = *q;
    as.old = as.o = NULL;
    kl_status st = in_version(c, q->kind, q->old, &as.old, err);
    if (!st)
        st = in_version(c, q->kind, q->o, &as.o, err);
    if (!st)
        st = consult_as(c, &as, patched, err);
    kl_value_unref(as.old);
    kl_value_unref(as.o);
    return st;
}

typedef struct met {
    /* of a configuration, which the store keeps while the lock is held */
    const kl_value *hook;
    const kl__kind *kind;
    const kl_value *left; /* the object as its answer left it */
} met;

/* The webhooks that apply to this write, in the order of their configurations' names. */
static size_t meet(const kl__call *c, bool mutating, const char *operation, const kl_value *old,
    const kl_value *o, met **out)
{
    const kl__bucket *b = asks(c) ? configurations(c, mutating) : NULL;
    const kl_match m = match_of(c, operation, old, o);
    size_t n = 0;
    *out = NULL;
    for (size_t i = 0; b && i < b->len; i++) {
        const kl_value *hooks = kl_value_get(b->v[i]->object, "webhooks");
        for (size_t k = 0; k < kl_value_len(hooks); k++) {
            const kl_value *hook = kl_value_item(hooks, k);
            const kl__kind *kind = kl_value_str_at(hook, "name", NULL)
                ? kl_match_kind(&m, kl_value_get(hook, "rules"), kl_value_str_at(hook, "matchPolicy", NULL))
                : NULL;
            if (!kind || !kl_match_selects(&m, hook))
                continue;
            *out = kl_realloc(*out, (n + 1) * sizeof **out);
            (*out)[n++] = (met){hook, kind, NULL};
        }
    }
    return n;
}

static kl_status mutate_by(
    const kl__call *c, met *m, const char *operation, const kl_value *old, const kl_value **o, kl_err *err)
{
    const kl_value *patched = NULL;
    kl_status st = consult(c, &(question){m->hook, m->kind, operation, old, *o}, &patched, err);
    if (!st && patched && m->kind != c->kind && m->kind->conversion && !c->own_kind) {
        const kl_value *back = NULL;
        st = kl__see(c, patched, &back, err);
        kl__replace(&patched, back);
    }
    if (!st && patched)
        kl__replace(o, typed_for(c, c->kind, patched));
    kl_value_unref(patched);
    kl_value_unref(m->left);
    m->left = kl_value_ref(*o);
    return st;
}

kl_status kl__admit_mutate(
    const kl__call *c, const char *operation, const kl_value *old, const kl_value **o, kl_err *err)
{
    met *v;
    size_t n = meet(c, true, operation, old, *o, &v);
    kl_status st = KL_OK;
    for (size_t i = 0; !st && i < n; i++)
        st = mutate_by(c, &v[i], operation, old, o, err);
    for (size_t i = 0; !st && i < n; i++) { /* reinvoked after changes by others */
        const char *policy = kl_value_str_at(v[i].hook, "reinvocationPolicy", NULL);
        if (policy && !strcmp(policy, "IfNeeded") && !kl_value_equal(v[i].left, *o))
            st = mutate_by(c, &v[i], operation, old, o, err);
    }
    for (size_t i = 0; i < n; i++)
        kl_value_unref(v[i].left);
    kl_free(v);
    return st;
}

static const kl_value *asked_request(void *arg, const kl__kind *k)
{
    asked *a = arg;
    const kl_value *was = NULL, *is = NULL, *request = NULL;
    if (!a->failed)
        a->failed = in_version(a->c, k, a->old, &was, a->err);
    if (!a->failed)
        a->failed = in_version(a->c, k, a->o, &is, a->err);
    request = request_of(a->c, k, a->operation, was ? was : a->old, is ? is : a->o);
    kl_value_unref(was);
    kl_value_unref(is);
    return request;
}

static void asked_warn(void *arg, const char *text)
{
    const asked *a = arg;
    kl__call_warn(a->c, "%s", text);
}

static void asked_audit(void *arg, const char *key, const char *value, bool more)
{
    const asked *a = arg;
    if (more)
        kl_audit_annotate_also(a->c->audit, key, value);
    else
        kl_audit_annotate(a->c->audit, key, value);
}

static kl_status admit_policies(
    const kl__call *c, const char *operation, const kl_value *old, const kl_value *o, kl_err *err)
{
    kl_err why = KL_ERR_INIT;
    asked a = {.c = c, .operation = operation, .old = old, .o = o, .err = &why};
    kl_policies_call call = {.match = match_of(c, operation, old, o),
        .name = c->sub ? c->name : NULL,
        .request = asked_request,
        .warn = asked_warn,
        .audit = asked_audit,
        .authorize = authorize,
        .arg = &a};
    call.match.name = c->name ? c->name : kl_object_name(o ? o : old);
    kl_status st = kl_policies_admit(c->w->policies, &call, err);
    if (a.failed) {
        st = a.failed;
        if (err)
            kl_err_move(err, &why);
    }
    kl__reasons_fini(&a.reasons);
    kl_err_fini(&why);
    return st;
}

kl_status kl__admit_validate(
    const kl__call *c, const char *operation, const kl_value *old, const kl_value *o, kl_err *err)
{
    met *v;
    kl_status st = c->admission ? admit_policies(c, operation, old, o, err) : KL_OK;
    if (st)
        return st;
    size_t n = meet(c, false, operation, old, o, &v);
    for (size_t i = 0; !st && i < n; i++)
        st = consult(c, &(question){v[i].hook, v[i].kind, operation, old, o}, NULL, err);
    kl_free(v);
    return st;
}
