/* table_resource_url.c - the URLs of requests, and for `dynamic` the whole request. `list_options` is left
 * out: the library was called without a registered version and always failed; table_list_params.c has those
 * cases. */
#include <string.h>
#include "base/mem.h"
#include "client/request.h"
#include "http/url.h"
#include "oracle.h"

#define PARAMS_MAX 64
#define SEGMENTS_MAX 32

typedef struct request {
    kl_url_request r;
    kl_url_param params[PARAMS_MAX];
    const char *sub[SEGMENTS_MAX], *suffix[SEGMENTS_MAX];
} request;

static const char *const *strings(const kl_value *list, const char *out[SEGMENTS_MAX])
{
    size_t i;

    for (i = 0; i < kl_value_len(list) && i < SEGMENTS_MAX - 1; i++)
        out[i] = kl_value_str(kl_value_item(list, i));
    out[i] = NULL;
    return out;
}

static void add_param(request *q, const char *key, const char *value)
{
    if (key && value && q->r.nparams < PARAMS_MAX)
        q->params[q->r.nparams++] = (kl_url_param){key, value};
}

static kl_status read_request(const oracle_case *c, request *q, kl_err *err)
{
    const char *group;
    kl_status st = oracle_str(c->in, "base", &q->r.base, err);

    if (!st)
        st = oracle_str(c->in, "group", &group, err);
    if (!st)
        st = oracle_str(c->in, "version", &q->r.version, err);
    if (!st)
        st = oracle_str(c->in, "resource", &q->r.resource, err);
    if (st)
        return st;
    q->r.group = group;
    q->r.ns = kl_value_str_at(c->in, "namespace", NULL);
    q->r.name = kl_value_str_at(c->in, "name", NULL);
    q->r.subresource = strings(kl_value_get(c->in, "subresource"), q->sub);
    q->r.suffix = strings(kl_value_get(c->in, "suffix"), q->suffix);
    q->r.params = q->params;
    return KL_OK;
}

static kl_status build_url(const oracle_case *c, const request *q, kl_builder *b, kl_err *err)
{
    kl_buf url = KL_BUF_INIT;
    kl_status st = kl_url_build(&q->r, &url, err);

    if (!st) {
        kl_build_kstr(b, "url", kl_buf_str(&url));
        if (!strcmp(c->op, "request"))
            kl_build_kstr(b, "requestURI", kl_url_target(kl_buf_str(&url)));
    }
    kl_buf_fini(&url);
    return st;
}

static kl_status of_request(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *params = kl_value_get(c->in, "params");
    request q = {0};
    kl_status st = read_request(c, &q, err);
    size_t i, j;

    if (st)
        return st;
    for (i = 0; i < kl_value_len(params); i++) {
        const char *key;
        const kl_value *values = kl_value_member(params, i, &key, NULL);

        for (j = 0; j < kl_value_len(values); j++)
            add_param(&q, key, kl_value_str(kl_value_item(values, j)));
    }
    return build_url(c, &q, b, err);
}

static kl_status abspath(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const char *base, *arg, *segments[SEGMENTS_MAX];
    kl_buf url = KL_BUF_INIT;
    size_t n = 0;
    char *copy, *rest, *segment;
    kl_status st = oracle_str(c->in, "base", &base, err);

    if (!st)
        st = oracle_str(c->in, "arg", &arg, err);
    if (st)
        return st;
    copy = rest = kl_strdup(arg);
    while (n < SEGMENTS_MAX && (segment = strsep(&rest, "|")))
        segments[n++] = segment;
    st = kl_url_abspath(base, segments, n, &url, err);
    if (!st)
        kl_build_kstr(b, "url", kl_buf_str(&url));
    kl_free(copy);
    kl_buf_fini(&url);
    return st;
}

static kl_status request_uri(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const char *base, *arg;
    kl_buf url = KL_BUF_INIT;
    kl_status st = oracle_str(c->in, "base", &base, err);

    if (!st)
        st = oracle_str(c->in, "arg", &arg, err);
    if (!st)
        st = kl_url_request_uri(base, arg, &url, err);
    if (!st)
        kl_build_kstr(b, "url", kl_buf_str(&url));
    kl_buf_fini(&url);
    return st;
}

static const struct verb {
    const char *name;
    kl_verb verb;
} verbs[] = {
    {"get", KL_GET},
    {"list", KL_LIST},
    {"watch", KL_WATCH},
    {"create", KL_CREATE},
    {"update", KL_UPDATE},
    {"updateStatus", KL_UPDATE},
    {"patch", KL_PATCH},
    {"apply", KL_APPLY},
    {"delete", KL_DELETE},
    {"deletecollection", KL_DELETE_COLLECTION},
};

static kl_status read_verb(const oracle_case *c, kl_op *op, kl_err *err)
{
    const char *name;
    kl_status st = oracle_str(c->in, "verb", &name, err);
    size_t i;

    if (st)
        return st;
    for (i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(verbs[i].name, name)) {
            kl_op_init(op, verbs[i].verb, NULL);
            return KL_OK;
        }
    return kl_fail(err, ORACLE_BAD_CASE, "unknown verb %s", name);
}

static void read_options(const oracle_case *c, kl_op *op)
{
    const kl_value *o = kl_value_get(c->in, "options");
    const char *type = kl_value_str_at(o, "type", NULL);

    op->labels = kl_value_str_at(o, "labelSelector", NULL);
    op->fields = kl_value_str_at(o, "fieldSelector", NULL);
    op->rv = kl_value_str_at(o, "resourceVersion", NULL);
    op->continue_token = kl_value_str_at(o, "continue", NULL);
    op->field_manager = kl_value_str_at(o, "fieldManager", NULL);
    op->propagation = kl_value_str_at(o, "propagationPolicy", NULL);
    op->force = kl_value_get(o, "force") != NULL;
    op->bookmarks = op->verb == KL_WATCH;
    if (!type)
        return;
    op->patch_type = strstr(type, "/json-patch") ? KL_PATCH_JSON
        : strstr(type, "strategic")              ? KL_PATCH_STRATEGIC
                                                 : KL_PATCH_MERGE;
    if (strstr(type, "apply-patch")) {
        op->verb = KL_APPLY;
        op->force = true;
    }
}

/* What the Go program sent: for patches {} (we refuse that as a JSON patch, so [] stands for it), else an
 * object with this name. */
static const kl_value *body_of(const request *q, const char *verb, bool json_patch)
{
    kl_builder *b = kl_builder_new();

    if (!strcmp(verb, "patch")) {
        if (json_patch)
            kl_build_array(b);
        else
            kl_build_object(b);
    } else {
        char *api = kl_api_version(q->r.group, q->r.version);

        kl_build_object(b);
        kl_build_kstr(b, "apiVersion", api);
        kl_build_kstr(b, "kind", "Thing");
        kl_build_key(b, "metadata");
        kl_build_object(b);
        kl_build_kstr(b, "name", q->r.name ? q->r.name : "");
        kl_build_end(b);
        kl_free(api);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static kl_status dynamic(const oracle_case *c, kl_builder *b, kl_err *err)
{
    request q = {0};
    kl__request sent;
    kl_op op;
    kl_status st = read_verb(c, &op, err);

    if (!st)
        st = read_request(c, &q, err);
    if (st)
        return st;
    read_options(c, &op);
    kl_resource r = {.group = (char *)q.r.group,
        .version = (char *)q.r.version,
        .kind = "Thing",
        .plural = (char *)q.r.resource,
        .namespaced = q.r.ns && *q.r.ns};
    op.resource = &r;
    op.ns = q.r.ns;
    op.name = q.r.name;
    op.subresource = strcmp(kl_value_str_at(c->in, "verb", NULL), "updateStatus") ? q.sub[0] : "status";
    op.body = body_of(
        &q, kl_value_str_at(c->in, "verb", NULL), op.verb == KL_PATCH && op.patch_type == KL_PATCH_JSON);
    st = kl__request_make(q.r.base, &op, &r, NULL, &sent, err);
    kl_value_unref(op.body);
    if (st)
        return st;
    kl_build_kstr(b, "method", sent.method);
    kl_build_kstr(b, "url", sent.url);
    kl_build_kstr(b, "accept", sent.accept);
    kl_build_kstr(b, "contentType", sent.content_type ? sent.content_type : "");
    kl_build_kstr(b, "body", kl_buf_str(&sent.body));
    kl__request_fini(&sent);
    return KL_OK;
}

static bool same_body(const char *want, const char *got)
{
    const kl_value *w = NULL, *g = NULL;
    bool same;

    if (!*want || !*got)
        return !*want && !*got;
    same = !kl_value_decode(want, strlen(want), &w, NULL) && !kl_value_decode(got, strlen(got), &g, NULL)
        && (kl_value_equal(w, g)
            || (kl_value_len(w) == 0 && kl_value_type(g) == KL_ARRAY && kl_value_len(g) == 0));
    kl_value_unref(w);
    kl_value_unref(g);
    return same;
}

static bool same_request(const oracle_case *c, const kl_value *got)
{
    static const char *const exact[] = {"method", "url", "accept", "contentType"};
    size_t i;

    for (i = 0; i < sizeof exact / sizeof *exact; i++)
        if (!kl_value_equal(kl_value_get(c->want, exact[i]), kl_value_get(got, exact[i])))
            return false;
    return same_body(kl_value_str_at(c->want, "body", NULL), kl_value_str_at(got, "body", NULL));
}

static const oracle_op ops[] = {
    {"request", of_request, NULL},
    {"abspath", abspath, NULL},
    {"request_uri", request_uri, NULL},
    {"dynamic", dynamic, same_request},
    {0},
};
ORACLE_TABLE("resource_url", ops)
