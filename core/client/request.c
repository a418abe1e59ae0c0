/* request.c - turns a kl_op into an HTTP request: URL, body, and its name in messages.
 *
 * Invalid ops are refused here, before any I/O: a missing name or namespace, a body of the wrong form. */
#include "client/request.h"

#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "model/object.h"
#include "http/url.h"

#define JSON "application/json"

static const struct {
    const char *name, *rbac, *method;
    bool write, named;
} verbs[] = {
    [KL_GET] = {"get", "get", "GET", false, true},
    [KL_LIST] = {"list", "list", "GET", false, false},
    [KL_WATCH] = {"watch", "watch", "GET", false, false},
    [KL_CREATE] = {"create", "create", "POST", true, false},
    [KL_UPDATE] = {"update", "update", "PUT", true, true},
    [KL_PATCH] = {"patch", "patch", "PATCH", true, true},
    [KL_APPLY] = {"apply", "patch", "PATCH", true, true},
    [KL_DELETE] = {"delete", "delete", "DELETE", true, true},
    [KL_DELETE_COLLECTION] = {"deletecollection", "deletecollection", "DELETE", true, false},
    [KL_HTTP] = {"http", "http", "GET", false, true},
};

const char *kl_verb_name(kl_verb v) { return verbs[v].name; }
const char *kl_verb_rbac(kl_verb v) { return verbs[v].rbac; }
bool kl_verb_is_write(kl_verb v) { return verbs[v].write; }

void kl_op_init(kl_op *op, kl_verb verb, const char *kind)
{
    *op = (kl_op){.verb = verb, .kind = kind, .grace_seconds = -1};
}

/* --- the query ---------------------------------------------------------------------------- */

/* All query parameters of an op, with numbers as text. */
#define PARAMS_MAX 16
typedef struct params {
    kl_url_param v[PARAMS_MAX];
    size_t n;
    char limit[24], timeout[24];
    char *fields; /* the selector, with the name among them */
} params;

static void query(params *p, const char *key, const char *value)
{
    if (value && *value)
        p->v[p->n++] = (kl_url_param){key, value};
}

static void query_int(params *p, const char *key, int64_t n, char text[24])
{
    snprintf(text, 24, "%lld", (long long)n);
    if (n > 0)
        query(p, key, text);
}

static bool takes_manager(kl_verb v)
{
    return v == KL_CREATE || v == KL_UPDATE || v == KL_PATCH || v == KL_APPLY;
}

/* A list or watch selects one object by a field selector on its name. Caller frees. */
static char *field_selector(const kl_op *op)
{
    bool some = op->fields && *op->fields;
    if (!op->name || !*op->name)
        return kl_strdup(op->fields);
    return kl_sprintf("%s%smetadata.name=%s", some ? op->fields : "", some ? "," : "", op->name);
}

static void add_query(const kl_op *op, const char *field_manager, params *p)
{
    bool write = kl_verb_is_write(op->verb),
         many = op->verb == KL_LIST || op->verb == KL_WATCH || op->verb == KL_DELETE_COLLECTION;
    bool watch = op->verb == KL_WATCH;
    query(p, "allowWatchBookmarks", watch && op->bookmarks ? "true" : NULL);
    query(p, "continue", many ? op->continue_token : NULL);
    query(p, "dryRun", write && op->dry_run && op->verb != KL_DELETE ? "All" : NULL);
    query(p, "fieldManager",
        takes_manager(op->verb) ? op->field_manager ? op->field_manager : field_manager : NULL);
    query(p, "fieldSelector", p->fields = many ? field_selector(op) : NULL);
    query(p, "fieldValidation", takes_manager(op->verb) ? op->field_validation : NULL);
    query(p, "force", op->verb == KL_APPLY && op->force ? "true" : NULL);
    query(p, "includeObject", op->form == KL_AS_TABLE ? op->include : NULL);
    query(p, "labelSelector", many ? op->labels : NULL);
    if (many)
        query_int(p, "limit", op->limit, p->limit);
    query(p, "resourceVersion", write && !many ? NULL : op->rv);
    query(p, "resourceVersionMatch",
        many ? op->initial_events && watch && !op->rv_match ? "NotOlderThan" : op->rv_match : NULL);
    query(p, "sendInitialEvents", watch && op->initial_events ? "true" : NULL);
    if (many)
        query_int(p, "timeoutSeconds", op->timeout_seconds, p->timeout);
    query(p, "watch", watch ? "true" : NULL);
}

static kl__shape shape_of(const kl_op *op)
{
    if (op->verb == KL_DELETE || op->verb == KL_DELETE_COLLECTION || op->verb == KL_WATCH)
        return KL__ANY;
    return op->form == KL_AS_TABLE ? KL__TABLE : op->verb == KL_LIST ? KL__LIST : KL__OBJECT;
}

/* kube-apiserver has these forms of every resource. No other form is acceptable: a caller that asked for
 * metadata must not get a full object. */
static const char *accept_of(const kl_op *op)
{
    if (op->form == KL_AS_TABLE)
        return JSON ";as=Table;v=v1;g=meta.k8s.io";
    if (op->form == KL_AS_METADATA)
        return op->verb == KL_LIST ? JSON ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
                                   : JSON ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    return JSON;
}

/* --- the body ----------------------------------------------------------------------------- */

static kl_status delete_body(const kl_op *op, kl__request *q)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "DeleteOptions");
    kl_build_kstr(b, "apiVersion", "v1");
    if (op->grace_seconds >= 0)
        kl_build_kint(b, "gracePeriodSeconds", op->grace_seconds);
    if (op->uid || op->precondition_rv) {
        kl_build_key(b, "preconditions");
        kl_build_object(b);
        kl_build_kstr(b, "uid", op->uid);
        kl_build_kstr(b, "resourceVersion", op->precondition_rv);
        kl_build_end(b);
    }
    kl_build_kstr(b, "propagationPolicy", op->propagation);
    if (op->dry_run) {
        kl_build_key(b, "dryRun");
        kl_build_array(b);
        kl_build_str(b, "All");
        kl_build_end(b);
    }
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    kl_status st = kl_value_encode(v, &q->body);
    kl_value_unref(v);
    q->content_type = JSON;
    return st;
}

static const char *const patch_types[] = {
    [KL_PATCH_MERGE] = "application/merge-patch+json",
    [KL_PATCH_JSON] = "application/json-patch+json",
    [KL_PATCH_STRATEGIC] = "application/strategic-merge-patch+json",
};

static kl_status make_body(const kl_op *op, kl__request *q, kl_err *err)
{
    if (op->verb == KL_DELETE || op->verb == KL_DELETE_COLLECTION)
        return delete_body(op, q);
    if (!takes_manager(op->verb))
        return KL_OK;
    kl_type want = op->verb == KL_PATCH && op->patch_type == KL_PATCH_JSON ? KL_ARRAY : KL_OBJECT;
    if (kl_value_type(op->body) != want)
        return kl_fail(err, KL_EINVAL, "%s: the body must be %s, got %s", q->what,
            want == KL_ARRAY ? "an array of JSON patch operations" : "an object",
            kl_value_type_name(op->body));
    if (op->verb == KL_APPLY && kl_value_at(op->body, "metadata", "managedFields", NULL))
        return kl_fail(err, KL_EINVAL,
            "%s: the object has metadata.managedFields: apply only the fields that you own, not an object "
            "that was read",
            q->what);
    q->content_type = op->verb == KL_APPLY ? "application/apply-patch+yaml"
        : op->verb == KL_PATCH             ? patch_types[op->patch_type]
                                           : JSON;
    if (kl_value_encode(op->body, &q->body))
        return kl_fail(err, KL_ETOOBIG, "%s: the body is too large to send", q->what);
    return KL_OK;
}

/* --- the whole ---------------------------------------------------------------------------- */

static char *describe(const kl_op *op, const char *resource, const char *ns, const char *name)
{
    kl_buf b = KL_BUF_INIT;
    kl_buf_printf(&b, "%s %s", kl_verb_name(op->verb), resource);
    if (op->subresource)
        kl_buf_printf(&b, "/%s", op->subresource);
    if (ns || name)
        kl_buf_printf(&b, " %s%s%s", ns ? ns : "", ns && name ? "/" : "", name ? name : "");
    return kl_buf_take(&b);
}

static char *grant_text(const kl_op *op, const kl_resource *r, const char *ns)
{
    char *where = ns ? kl_sprintf("in namespace \"%s\" (a Role)", ns)
                     : kl_strdup("cluster-wide (a ClusterRole)");
    char *text = kl_sprintf("verb \"%s\" on resource \"%s%s%s\" in API group \"%s\" %s",
        kl_verb_rbac(op->verb), r->plural, op->subresource ? "/" : "", op->subresource ? op->subresource : "",
        r->group, where);
    kl_free(where);
    return text;
}

static char *words_text(char *const *words)
{
    kl_buf b = KL_BUF_INIT;
    for (size_t i = 0; words[i]; i++)
        kl_buf_printf(&b, "%s%s", i ? ", " : "", words[i]);
    kl_buf_puts(&b, "");
    return kl_buf_take(&b);
}

kl_status kl__request_offered(const kl_op *op, const kl_resource *r, kl_err *err)
{
    const char *verb = kl_verb_rbac(op->verb);
    if (op->subresource ? !r->subresources || kl_resource_has_subresource(r, op->subresource)
                        : !r->verbs || !r->verbs[0] || kl_resource_has_verb(r, verb))
        return KL_OK;
    char *resource = kl_resource_display(r),
         *known = words_text(op->subresource ? r->subresources : r->verbs);
    if (!op->subresource)
        kl_fail(err, KL_EINVAL, "%s %s: %s offer no %s; they offer: %s", kl_verb_name(op->verb), resource,
            resource, verb, known);
    else if (*known)
        kl_fail(err, KL_EINVAL, "%s %s/%s: %s have no subresource \"%s\"; they have: %s",
            kl_verb_name(op->verb), resource, op->subresource, resource, op->subresource, known);
    else
        kl_fail(err, KL_EINVAL, "%s %s/%s: %s have no subresources", kl_verb_name(op->verb), resource,
            op->subresource, resource);
    kl_free(resource);
    kl_free(known);
    return KL_EINVAL;
}

static bool differ(const char *a, const char *b) { return a && *a && b && *b && strcmp(a, b); }

/* The body is an object of the resource's own kind, so it must agree with the call. A subresource has its own
 * kind. */
static kl_status check_body(
    const kl_op *op, const kl_resource *r, const char *ns, const char *name, const char *what, kl_err *err)
{
    const char *kind = kl_object_kind(op->body), *version = kl_object_api_version(op->body),
               *own = kl_object_name(op->body), *own_ns = kl_object_namespace(op->body);
    bool same_kind = !op->subresource || !strcmp(op->subresource, "status");
    char *want = kl_api_version(r->group, r->version);
    kl_status st = KL_OK;
    if (same_kind && (differ(kind, r->kind) || differ(version, want)))
        st = kl_fail(err, KL_EINVAL, "%s: the body is a %s%s%s, but the call is for %s/%s", what,
            version ? version : "", version ? "/" : "", kind ? kind : "?", want, r->kind);
    else if (op->verb != KL_CREATE && differ(own, name))
        st = kl_fail(err, KL_EINVAL, "%s: the body's metadata.name is \"%s\"", what, own);
    else if (r->namespaced && differ(own_ns, ns))
        st = kl_fail(err, KL_EINVAL, "%s: the body's metadata.namespace is \"%s\"", what, own_ns);
    kl_free(want);
    return st;
}

static kl_status preflight(
    const kl_op *op, const kl_resource *r, const char *ns, const char *name, const char *what, kl_err *err)
{
    bool named = verbs[op->verb].named || (op->verb == KL_CREATE && op->subresource);
    if (named && (!name || !*name))
        return kl_fail(err, KL_EINVAL, "%s: a name is needed", what);
    if (r->namespaced && (!ns || !*ns)
        && (named || op->verb == KL_CREATE || op->verb == KL_DELETE_COLLECTION))
        return kl_fail(err, KL_EINVAL, "%s: %s are namespaced: name the namespace", what, r->plural);
    if (op->rv_match && *op->rv_match && !op->initial_events && (!op->rv || !*op->rv))
        return kl_fail(err, KL_EINVAL, "%s: resourceVersionMatch needs a resourceVersion", what);
    if (op->verb == KL_CREATE || op->verb == KL_UPDATE || op->verb == KL_APPLY)
        return check_body(op, r, ns, name, what, err);
    return KL_OK;
}

kl_status kl__request_make(const char *server, const kl_op *op, const kl_resource *r,
    const char *field_manager, kl__request *out, kl_err *err)
{
    bool from_body = op->verb == KL_CREATE || op->verb == KL_UPDATE || op->verb == KL_APPLY;
    bool many = op->verb == KL_LIST || op->verb == KL_WATCH || op->verb == KL_DELETE_COLLECTION;
    const char *ns = NULL, *name = op->name;
    if (r->namespaced) {
        ns = op->ns ? op->ns : from_body ? kl_object_namespace(op->body) : NULL;
        if (!ns && !many)
            ns = op->default_ns;
        if (ns && !*ns && many)
            ns = NULL; /* "" is all namespaces */
    }
    if (!name && from_body && op->verb != KL_CREATE)
        name = kl_object_name(op->body);
    kl__request q = {.method = verbs[op->verb].method,
        .accept = accept_of(op),
        .wants_object = op->verb == KL_CREATE,
        .shape = shape_of(op),
        .own_429 = op->subresource && !strcmp(op->subresource, "eviction")};
    char *resource = kl_resource_display(r);
    q.what = describe(op, resource, ns, name || !from_body ? name : kl_object_name(op->body));
    q.grant = grant_text(op, r, ns);
    q.traceparent = op->traceparent ? kl_sprintf("traceparent: %s", op->traceparent) : NULL;
    kl_free(resource);
    kl_buf url = KL_BUF_INIT;
    params p = {.n = 0};
    add_query(op, field_manager, &p);
    const char *in_path = (op->verb == KL_CREATE && !op->subresource) || many ? NULL : name;
    kl_status st = preflight(op, r, ns, name, q.what, err);
    const char *sub[] = {op->subresource, NULL};
    kl_url_request where = {.base = server,
        .group = r->group,
        .version = r->version,
        .resource = r->plural,
        .ns = ns,
        .name = in_path,
        .subresource = sub,
        .params = p.v,
        .nparams = p.n};
    if (!st && (st = kl_url_build(&where, &url, err)))
        kl_err_prefix(err, "%s", q.what);
    if (!st)
        st = make_body(op, &q, err);
    kl_free(p.fields);
    q.url = kl_buf_take(&url);
    if (st)
        kl__request_fini(&q);
    else
        *out = q;
    return st;
}

void kl__request_fini(kl__request *q)
{
    kl_free(q->url);
    kl_free(q->what);
    kl_free(q->grant);
    kl_free(q->traceparent);
    kl_free(q->protobuf_of);
    kl_buf_fini(&q->body);
    *q = (kl__request){0};
}

/* --- a copy that stands on its own -------------------------------------------------------- */

/* Every string member of kl_op. */
#define EACH_STRING(f)                                                                                       \
    f(kind) f(ns) f(default_ns) f(name) f(subresource) f(field_manager) f(field_validation) f(propagation)   \
        f(uid) f(precondition_rv) f(labels) f(fields) f(continue_token) f(rv) f(rv_match) f(include)         \
            f(traceparent)

kl__op_copy *kl__op_copy_new(const kl_op *op)
{
    kl__op_copy *c = kl_new(kl__op_copy);
    c->op = *op;
#define COPY(field) c->op.field = kl_strdup(op->field);
    EACH_STRING(COPY)
    c->op.body = kl_value_ref(op->body);
    if (op->resource) {
        kl_resource_copy(&c->resource, op->resource);
        c->op.resource = &c->resource;
    }
    return c;
}

void kl__op_copy_free(kl__op_copy *c)
{
    if (!c)
        return;
#define DROP(field) kl_free((char *)c->op.field);
    EACH_STRING(DROP)
    kl_value_unref(c->op.body);
    if (c->op.resource)
        kl_resource_fini(&c->resource);
    kl_free(c);
}
