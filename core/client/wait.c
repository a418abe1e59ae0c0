/* wait.c - blocking calls: never on the client's own threads, which would wait for themselves. */
#include "client/client_impl.h"

#include <string.h>
#include "base/mem.h"

typedef struct waiter {
    kl_mutex mu;
    kl_cond ended;
    bool done;
    kl_status st;
    const kl_value *value;
    const kl_resource *resource;
    kl_err err;
} waiter;

static void waiter_begin(waiter *w)
{
    *w = (waiter){0};
    kl_mutex_init(&w->mu);
    kl_cond_init(&w->ended);
}

static void waiter_signal(waiter *w, kl_status st, kl_err *err)
{
    w->st = st;
    kl_err_move(&w->err, err);
    w->done = true;
    kl_cond_broadcast(&w->ended);
}

/* Waits for the end of the call, which comes at its deadline at the latest. */
static kl_status waiter_end(waiter *w, kl_err *err)
{
    kl_lock(&w->mu);
    while (!w->done)
        kl_cond_wait(&w->ended, &w->mu);
    kl_unlock(&w->mu);
    kl_cond_fini(&w->ended);
    kl_mutex_fini(&w->mu);
    if (w->st && err)
        kl_err_move(err, &w->err);
    kl_err_fini(&w->err);
    return w->st;
}

static void on_waited(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    waiter *w = arg;
    (void)code;
    kl_lock(&w->mu);
    w->value = kl_value_ref(body);
    waiter_signal(w, st, err);
    kl_unlock(&w->mu);
}

static kl_status check_thread(kl_client *c, kl_err *err)
{
    if (kl_http_on_thread(c->calls) || kl_http_on_thread(c->watches))
        return kl_fail(err, KL_EINTERNAL,
            "a blocking call on the client's own thread would wait for itself: use kl_client_do");
    return KL_OK;
}

static kl_status wait_for_value(waiter *w, const kl_value **out, kl_err *err)
{
    kl_status st = waiter_end(w, err);
    if (!st && out)
        *out = w->value;
    else
        kl_value_unref(w->value);
    return st;
}

kl_status kl_client_wait(kl_client *c, const kl_op *op, const kl_value **out, kl_err *err)
{
    waiter w;
    kl_status st = check_thread(c, err);
    if (st)
        return st;
    waiter_begin(&w);
    kl_client_do(c, op, on_waited, &w);
    return wait_for_value(&w, out, err);
}

kl_status kl_client_raw(kl_client *c, const char *method, const char *path, const char *content_type,
    const void *body, size_t len, const kl_value **out, kl_err *err)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    const char *known = NULL;
    waiter w;
    kl_status st = check_thread(c, err);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!strcmp(method, methods[i]))
            known = methods[i];
    if (!st && (!known || *path != '/'))
        st = kl_fail(err, KL_EINVAL,
            "\"%s %s\": give GET, POST, PUT, PATCH or DELETE and a path that begins with \"/\"", method,
            path);
    if (st)
        return st;
    waiter_begin(&w);
    kl__client_raw(c, known, path, content_type, body, len, on_waited, &w);
    return wait_for_value(&w, out, err);
}

static void on_resolve_waited(void *arg, kl_status st, const kl_resource *r, kl_err *err)
{
    waiter *w = arg;
    kl_lock(&w->mu);
    w->resource = r;
    waiter_signal(w, st, err);
    kl_unlock(&w->mu);
}

kl_status kl_client_resolve_wait(kl_client *c, const char *kind, const kl_resource **out, kl_err *err)
{
    waiter w;
    kl_status st = check_thread(c, err);
    if (st)
        return st;
    waiter_begin(&w);
    kl_client_resolve(c, kind, on_resolve_waited, &w);
    st = waiter_end(&w, err);
    if (!st)
        *out = w.resource;
    return st;
}
