/* content.c - JSON always, protobuf where both sides know the kind. See content.h. */
#include "client/content.h"

#include <string.h>
#include <strings.h>
#include "base/log.h"
#include "base/mem.h"
#include "wire/proto.h"

#define JSON_TYPE "application/json"
#define LIKE_MAX ((size_t)32 << 10) /* bytes of an answer that is kept to decode the next one faster */

static void choose(kl_client *c, const kl_op *op, const kl_resource *r, kl__request *q)
{
    bool reads = op->verb == KL_GET || op->verb == KL_LIST || op->verb == KL_WATCH;
    bool whole = !op->subresource || !strcmp(op->subresource, "status") || !strcmp(op->subresource, "scale");
    if (c->no_protobuf || !reads || !whole || strncmp(q->accept, JSON_TYPE, sizeof JSON_TYPE - 1)
        || strstr(q->accept, "as=Table"))
        return;
    char *api_version = kl_sprintf("%s%s%s", r->group, *r->group ? "/" : "", r->version);
    if (op->form == KL_AS_METADATA || kl_proto_has(api_version, r->kind)) {
        char *of = kl_sprintf("%s/%s", api_version, r->plural);
        kl_lock(&c->mu);
        bool refused = kl_map_has(c->json_only, of);
        kl_unlock(&c->mu);
        if (refused)
            kl_free(of);
        else
            q->protobuf_of = of;
    }
    kl_free(api_version);
}

kl_status kl__content_request(
    kl_client *c, const kl_op *op, const kl_resource *r, kl__request *q, kl_err *err)
{
    kl_status st = kl__request_make(c->config.server, op, r, c->field_manager, q, err);
    if (!st)
        choose(c, op, r, q);
    return st;
}

/* The parameters of the JSON type (";as=PartialObjectMetadata;...") are those of protobuf, too. */
char *kl__content_accept(const kl__request *q)
{
    if (!q->protobuf_of)
        return kl_strdup(q->accept);
    const char *params = q->accept + sizeof JSON_TYPE - 1;
    return kl_sprintf(KL_PROTO_TYPE "%.*s,%s", (int)strcspn(params, ","), params, q->accept);
}

bool kl__content_is_protobuf(const char *type)
{
    return type && !strncasecmp(type, KL_PROTO_TYPE, sizeof KL_PROTO_TYPE - 1);
}

static void json_from_now_on(kl_client *c, kl__request *q, const char *why)
{
    kl_lock(&c->mu);
    bool known = kl_map_has(c->json_only, q->protobuf_of);
    kl_map_set(c->json_only, q->protobuf_of, NULL);
    kl_unlock(&c->mu);
    if (!known)
        kl_info("the server rejected protobuf; using JSON from now on", "resource=%s reason=%s",
            q->protobuf_of, why);
    kl_free(q->protobuf_of);
    q->protobuf_of = NULL;
}

bool kl__content_refused(kl_client *c, kl__request *q, int code)
{
    if (!q->protobuf_of || (code != 406 && code != 415))
        return false;
    json_from_now_on(c, q, code == 406 ? "406" : "415");
    return true;
}

void kl__content_outdated(kl_client *c, kl__request *q)
{
    if (q->protobuf_of)
        json_from_now_on(c, q, "newer-server");
}

static kl_proto_reader *reader(kl_client *c)
{
    return c->reader = c->reader ? c->reader : kl_proto_reader_new();
}

kl_status kl__content_decode(
    kl_client *c, kl__request *q, const char *body, size_t n, const kl_value **out, kl_err *err)
{
    kl_err story = KL_ERR_INIT;
    const kl_value *v = NULL;
    bool outdated = false;
    q->in_protobuf = kl_proto_is(body, n);
    if (q->in_protobuf)
        kl_debug("it answers in protobuf", "call=%s", q->what);
    kl_status st = q->in_protobuf ? kl_proto_read(reader(c), body, n, c->like, &v, &outdated, &story)
                                  : kl_value_decode_like(body, n, c->like, &v, &story);
    if (outdated && q->protobuf_of) {
        kl_value_unref(v);
        kl_err_fini(&story);
        kl__content_outdated(c, q);
        return KL_EAGAIN;
    }
    if (st)
        st = kl__answer_garbage(q, body, n, &story, err);
    else
        *out = v;
    if (!st && n <= LIKE_MAX) {
        kl_value_unref(c->like);
        c->like = kl_value_ref(v);
    }
    kl_err_fini(&story);
    return st;
}
