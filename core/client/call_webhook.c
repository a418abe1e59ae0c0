/* call_webhook.c - one thread and its connections, made when the first webhook is called. */
#include "client/call_webhook.h"

#include <string.h>

#include "base/buf.h"
#include "base/locks.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "http/http.h"

/* A review with a patch of the largest object. */
#define ANSWER_MAX ((size_t)16 << 20)

struct kl_webhook_caller {
    kl_mutex mu;
    kl_http *http; /* NULL until the first call */
};

typedef struct call {
    kl_buf body;
    kl_time timeout;
    kl_webhook_called *done;
    void *arg;
} call;

kl_webhook_caller *kl_webhook_caller_new(void)
{
    kl_webhook_caller *c = kl_new(kl_webhook_caller);
    kl_mutex_init_as(&c->mu, KL_LOCK_WEB);
    return c;
}

void kl_webhook_caller_free(kl_webhook_caller *c)
{
    if (!c)
        return;
    kl_http_free(c->http);
    kl_mutex_fini(&c->mu);
    kl_free(c);
}

static kl_status on_data(void *arg, const char *data, size_t n, kl_err *err)
{
    call *k = arg;
    if (kl_buf_add(&k->body, data, n))
        return kl_fail(err, KL_ETOOBIG, "the answer is larger than %zu bytes", ANSWER_MAX);
    return KL_OK;
}

static void on_done(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    (void)sent;
    call *k = arg;
    const char *why = !st ? NULL : st == KL_ETIMEOUT ? "context deadline exceeded" : kl_err_message(err);
    k->done(k->arg, code, kl_buf_str(&k->body), k->body.len, why);
    kl_buf_fini(&k->body);
    kl_free(k);
}

static kl_status find_http(kl_webhook_caller *c, kl_http **out, kl_err *err)
{
    static const kl_http_options options = {.name = "kl-admission", .user_agent = "kube-apiserver-admission"};
    kl_lock(&c->mu);
    kl_status st = c->http ? KL_OK : kl_http_new(&options, &c->http, err);
    *out = c->http;
    kl_unlock(&c->mu);
    return st;
}

void kl_webhook_call(kl_webhook_caller *c, const char *url, const char *ca, const char *body, size_t len,
    kl_time timeout, kl_webhook_called *done, void *arg)
{
    static const char *const headers[] = {"Content-Type: application/json", "Accept: application/json", NULL};
    call *k = kl_new(call);
    *k = (call){.timeout = timeout, .done = done, .arg = arg};
    kl_buf_init(&k->body, ANSWER_MAX);
    /* Calls with the same CA share connections. */
    uint64_t generation = ca ? kl_hash(ca, strlen(ca)) | 1 : 0;
    kl_err err = KL_ERR_INIT;
    kl_http *http;
    kl_status st = find_http(c, &http, &err);
    if (!st
        && !kl_http_submit(http,
            &(kl_http_request){.method = "POST",
                .url = url,
                .headers = headers,
                .body = body,
                .body_len = len,
                .proxy = "",
                .tls = {.ca_pem = ca, .generation = generation},
                .connect_timeout = timeout,
                .total_timeout = timeout,
                .on_data = on_data,
                .on_done = on_done,
                .arg = k}))
        st = kl_fail(&err, KL_ECANCELLED, "the server is stopping");
    if (st)
        on_done(k, st, 0, false, &err);
    kl_err_fini(&err);
}
