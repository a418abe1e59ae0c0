/* web_stream.c - answers that are read piece by piece.
 *
 *   sent --head--> opened: nobody reads --read--> somebody reads --bytes, or the end--> nobody reads
 *   opened --the end was told, close, cancel, the web goes--> gone
 *
 * A stream belongs to the thread of its connections. A stand-in's stream is complete from the start, and
 * belongs to its reader. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "client/web_impl.h"

/* From this size on we stop reading from the server; data on its way may still arrive. */
#define HIGH ((size_t)256 << 10)

void kl__web_stream_open(kl_web_call *x)
{
    kl_reply_fn *done = x->done;
    char *id = kl_sprintf("%llu", (unsigned long long)x->id);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kint(b, "status", x->code);
    kl_build_key(b, "headers");
    if (x->headers)
        kl_build_value(b, x->headers);
    else {
        kl_build_object(b);
        kl_build_end(b);
    }
    if (x->moved)
        kl_build_kstr(b, "url", x->url);
    kl_build_kstr(b, "stream", id);
    kl_build_end(b);
    kl_free(id);
    const kl_value *v = kl_builder_done(b);
    x->opened = true;
    x->done = NULL;
    x->max = kl_value_int_at(x->order, INT64_MAX, "max", NULL);
    done(x->arg, KL_OK, x->code, v, NULL);
    kl_value_unref(v);
}

static void hold_back(kl_web_call *x, bool on)
{
    if (x->paused != on && x->http_id)
        kl_http_pause(x->http, x->http_id, on);
    x->paused = on;
}

static const kl_value *take_bytes(kl_web_call *x)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl__web_build_body(b, kl_buf_str(&x->body), x->body.len);
    kl_build_end(b);
    kl_buf_clear(&x->body);
    return kl_builder_done(b);
}

/* Answers the reader with the pending data. x may be freed after this. */
static void tell(kl_web_call *x)
{
    kl_reply_fn *done = x->done;
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    kl_status st = KL_OK;
    void *arg = x->arg;
    int code = x->code;
    bool bytes = x->body.len;
    if (!done || (!bytes && !x->ended))
        return;
    x->done = NULL;
    if (bytes) {
        v = take_bytes(x);
        hold_back(x, false);
    } else {
        const kl_value *yes = kl_value_of_bool(true);
        st = x->end;
        kl_err_move(&err, &x->story);
        v = st ? NULL : kl_value_with(NULL, "ended", yes);
        kl_value_unref(yes);
        kl__web_call_over(x);
    }
    done(arg, st, code, v, &err);
    kl_err_fini(&err);
    kl_value_unref(v);
}

kl_status kl__web_stream_data(kl_web_call *x, const char *data, size_t n, kl_err *err)
{
    x->total += (int64_t)n;
    if (x->total > x->max)
        return kl_fail(
            err, KL_ETOOBIG, "the stream has more than %lld bytes, which is its max", (long long)x->max);
    kl_status st = kl_buf_add(&x->body, data, n);
    if (!st && x->body.len >= HIGH) {
        tell(x);
        if (x->body.len >= HIGH)
            hold_back(x, true);
    }
    return st;
}

void kl__web_stream_lull(void *call)
{
    kl_web_call *x = call;
    if (x->opened)
        tell(x);
}

void kl__web_stream_end(kl_web_call *x, kl_status st, kl_err *err)
{
    x->ended = true;
    x->end = st;
    kl_err_move(&x->story, err);
    if (x->cancelled && !x->done)
        kl__web_call_over(x);
    else
        tell(x);
}

/* --- reads and closes --------------------------------------------------------------------- */

typedef struct request {
    kl_web *w;
    uint64_t id;
    bool close;
    char *url;
    kl_reply_fn *done;
    void *arg;
} request;

static void fail(const request *q, kl_status st, const char *why)
{
    kl_err err = KL_ERR_INIT;
    (void)kl_fail(&err, st, "%s", why);
    q->done(q->arg, st, 0, NULL, &err);
    kl_err_fini(&err);
}

static kl_web_call *find(kl_web *w, uint64_t id)
{
    kl_lock(&w->mu);
    kl_web_call *x = kl_slots_get(&w->calls, id);
    kl_unlock(&w->mu);
    return x;
}

static void close_stream(kl_web_call *x)
{
    if (x && x->opened)
        kl__web_call_cancel(x);
}

/* The URL limits a stream to scripts whose rules allow it. */
static void serve(void *arg)
{
    request *q = arg;
    kl_web_call *x = find(q->w, q->id);
    if (x && (!x->opened || strcmp(x->first, q->url) != 0))
        x = NULL;
    if (q->close) {
        close_stream(x);
        const kl_value *v = kl_value_empty(KL_OBJECT);
        q->done(q->arg, KL_OK, 200, v, NULL);
        kl_value_unref(v);
    } else if (!x || x->cancelled) {
        fail(q, KL_ECANCELLED, "this stream is over");
    } else if (x->done) {
        fail(q, KL_EINVAL, "another call reads this stream already");
    } else {
        x->done = q->done;
        x->arg = q->arg;
        tell(x);
    }
    kl_free(q->url);
    kl_free(q);
}

uint64_t kl__web_stream_do(kl_web *w, const kl_op *op, kl_reply_fn *done, void *arg)
{
    const char *read = kl_value_str_at(op->body, "read", NULL),
               *close = kl_value_str_at(op->body, "close", NULL), *text = read ? read : close;
    request *q = kl_new(request);
    *q = (request){.w = w,
        .id = text ? strtoull(text, NULL, 10) : 0,
        .close = !read,
        .url = kl_strdup(op->name),
        .done = done,
        .arg = arg};
    uint64_t id = q->id;
    kl_lock(&w->mu);
    kl_web_call *x = kl_slots_get(&w->calls, id);
    kl_http *http = x ? x->http : NULL;
    kl_unlock(&w->mu);
    if (http)
        kl_http_post(http, serve, q);
    else
        serve(q);
    return read ? id : 0;
}
