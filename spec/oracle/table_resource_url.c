/* table_resource_url.c - where requests go. Of `dynamic` the method and the URL are compared; body and headers are the
 * client's. `list_options` is left out: the library was asked without a registered version and always said no. */
#include <string.h>
#include "base/mem.h"
#include "net/url.h"
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
        q->params[q->r.nparams++] = (kl_url_param){ key, value };
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

static const struct verb { const char *name, *method; bool named; } verbs[] = {
    { "get", "GET", true }, { "list", "GET", false }, { "watch", "GET", false }, { "create", "POST", false }, { "update", "PUT", true },
    { "updateStatus", "PUT", true }, { "patch", "PATCH", true }, { "apply", "PATCH", true }, { "delete", "DELETE", true },
    { "deletecollection", "DELETE", false },
};

/* What the dynamic client makes of a verb and its options: whether the name stands in the path, and the query. */
static kl_status dynamic(const oracle_case *c, kl_builder *b, kl_err *err)
{
    static const char *const queries[] = { "labelSelector", "fieldSelector", "resourceVersion", "continue", "limit", "fieldManager", "force" };
    const kl_value *options = kl_value_get(c->in, "options");
    const struct verb *v = verbs, *end = verbs + sizeof verbs / sizeof *verbs;
    const char *name, *type = kl_value_str_at(options, "type", NULL);
    request q = {0};
    kl_status st = oracle_str(c->in, "verb", &name, err);
    size_t i;

    if (!st)
        st = read_request(c, &q, err);
    if (st)
        return st;
    while (v < end && strcmp(v->name, name))
        v++;
    if (v == end)
        return kl_fail(err, ORACLE_BAD_CASE, "unknown verb %s", name);
    if (!v->named && !(!strcmp(name, "create") && *q.sub))
        q.r.name = NULL;
    if (!strcmp(name, "updateStatus"))
        q.sub[0] = "status", q.sub[1] = NULL;
    for (i = 0; i < sizeof queries / sizeof *queries; i++)
        add_param(&q, queries[i], kl_value_str_at(options, queries[i], NULL));
    if (!strcmp(name, "watch")) {
        add_param(&q, "watch", "true");
        add_param(&q, "allowWatchBookmarks", "true");
    }
    if (type && !strcmp(type, "application/apply-patch+yaml"))
        add_param(&q, "force", "true");
    kl_build_kstr(b, "method", v->method);
    return build_url(c, &q, b, err);
}

static bool same_target(const oracle_case *c, const kl_value *got)
{
    return kl_value_equal(kl_value_get(c->want, "url"), kl_value_get(got, "url")) && kl_value_equal(kl_value_get(c->want, "method"), kl_value_get(got, "method"));
}

static const oracle_op ops[] = {
    { "request", of_request, NULL }, { "abspath", abspath, NULL }, { "request_uri", request_uri, NULL }, { "dynamic", dynamic, same_target }, { 0 },
};
ORACLE_TABLE("resource_url", ops)
