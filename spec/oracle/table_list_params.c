/* table_list_params.c - the URL of a list or watch with every ListOptions that client-go sends. The
 * answers are of spec/realserver/listparams. */
#include <string.h>
#include "base/mem.h"
#include "client/request.h"
#include "oracle.h"

static kl_status list_params(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *o = kl_value_get(c->in, "listOptions");
    const char *base, *group, *version, *resource;
    kl__request q;
    kl_op op;
    kl_status st = oracle_str(c->in, "base", &base, err);

    if (!st)
        st = oracle_str(c->in, "group", &group, err);
    if (!st)
        st = oracle_str(c->in, "version", &version, err);
    if (!st)
        st = oracle_str(c->in, "resource", &resource, err);
    if (st)
        return st;
    kl_op_init(&op, kl_value_bool(kl_value_get(o, "watch"), false) ? KL_WATCH : KL_LIST, NULL);
    op.ns = kl_value_str_at(c->in, "namespace", NULL);
    op.labels = kl_value_str_at(o, "labelSelector", NULL);
    op.fields = kl_value_str_at(o, "fieldSelector", NULL);
    op.rv = kl_value_str_at(o, "resourceVersion", NULL);
    op.rv_match = kl_value_str_at(o, "resourceVersionMatch", NULL);
    op.continue_token = kl_value_str_at(o, "continue", NULL);
    op.limit = kl_value_int_at(o, 0, "limit", NULL);
    op.timeout_seconds = kl_value_int_at(o, 0, "timeoutSeconds", NULL);
    op.bookmarks = kl_value_bool(kl_value_get(o, "allowWatchBookmarks"), false);
    op.initial_events = kl_value_bool(kl_value_get(o, "sendInitialEvents"), false);
    kl_resource r = {.group = (char *)group,
        .version = (char *)version,
        .kind = "Thing",
        .plural = (char *)resource,
        .namespaced = op.ns || !strcmp(resource, "deployments")};
    st = kl__request_make(base, &op, &r, NULL, &q, err);
    if (st)
        return st;
    kl_build_kstr(b, "url", q.url);
    kl__request_fini(&q);
    return KL_OK;
}

static const oracle_op ops[] = {{"list_params", list_params, NULL}, {0}};
ORACLE_TABLE("list_params", ops)
