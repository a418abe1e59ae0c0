/* source.c - turns the cache's wishes into streams of the client, on the client's watch thread.
 *
 * The cache forbids callbacks after a cancel; the client always calls `done`. So each stream has a small record between the
 * two, which is muted on cancel and freed on done. */
#include "run/source.h"

#include <stdatomic.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/mem.h"

typedef struct client_source {
    kl_client_source_options o;
    char *ns, *labels, *fields;
    atomic_int refs;                   /* the informer's, and one per stream under way */
    kl_list transfers;                 /* watch thread only */
    uint64_t ids;
} client_source;

typedef struct transfer {
    kl_list link;
    client_source *source;
    kl_source_sink sink;
    uint64_t id, stream;               /* ours, the client's */
    bool muted;
    bool *over;                        /* tells start() that it ended inside the call; NULL afterwards */
} transfer;

static void source_unref(client_source *s)
{
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
        return;
    kl_free(s->ns);
    kl_free(s->labels);
    kl_free(s->fields);
    kl_projection_unref(s->o.keep);
    kl_free(s);
}

static kl_status transfer_item(void *arg, const kl_value *object, kl_err *err)
{
    transfer *t = arg;
    if (t->muted) {
        kl_value_unref(object);
        return kl_fail(err, KL_ECANCELLED, "the list was cancelled");
    }
    return t->sink.item(t->sink.arg, object, err);
}

static kl_status transfer_event(void *arg, const char *type, const kl_value *object, kl_err *err)
{
    transfer *t = arg;
    if (t->muted) {
        kl_value_unref(object);
        return kl_fail(err, KL_ECANCELLED, "the watch was cancelled");
    }
    return t->sink.event(t->sink.arg, type, object, err);
}

static const kl_value *transfer_known(void *arg, const char *ns, size_t nslen, const char *name, size_t namelen)
{
    transfer *t = arg;
    return t->muted ? NULL : t->sink.known(t->sink.arg, ns, nslen, name, namelen);
}

static void transfer_lull(void *arg)
{
    transfer *t = arg;
    if (!t->muted)
        t->sink.lull(t->sink.arg);
}

static void transfer_opened(void *arg)
{
    transfer *t = arg;
    if (!t->muted && t->sink.opened)
        t->sink.opened(t->sink.arg);
}

static void transfer_done(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    transfer *t = arg;
    if (!t->muted)
        t->sink.done(t->sink.arg, st, code, envelope, err);
    if (t->over)
        *t->over = true;
    kl_list_remove(&t->link);
    source_unref(t->source);
    kl_free(t);
}

static uint64_t start(client_source *s, kl_op *op, const kl_source_sink *sink, const char *api_version, const char *kind)
{
    transfer *t = kl_new(transfer);
    bool over = false;
    uint64_t id = t->id = ++s->ids;
    t->sink = *sink;
    t->source = s;
    t->over = &over;
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    kl_list_push(&s->transfers, &t->link);
    op->resource = s->o.resource;
    op->ns = s->ns;
    op->labels = s->labels;
    op->fields = s->fields;
    kl_stream_call call = {.item = transfer_item, .event = transfer_event, .lull = sink->lull ? transfer_lull : NULL, .opened = transfer_opened, .done = transfer_done, .arg = t,
        .known = sink->known ? transfer_known : NULL, .api_version = api_version, .kind = kind,
        .max_object = s->o.max_object, .keep = s->o.keep};
    uint64_t stream = kl_client_stream(s->o.client, op, &call);
    if (!over) {
        t->stream = stream;
        t->over = NULL;
    }
    return id;
}

static uint64_t source_list(void *self, const kl_list_request *r, const kl_source_sink *sink)
{
    client_source *s = self;
    kl_op op;
    kl_op_init(&op, KL_LIST, NULL);
    op.rv = r->rv;
    op.limit = r->limit;
    op.continue_token = r->continue_token;
    return start(s, &op, sink, r->api_version, r->kind);
}

static uint64_t source_watch(void *self, const kl_watch_request *r, const kl_source_sink *sink)
{
    client_source *s = self;
    kl_op op;
    kl_op_init(&op, KL_WATCH, NULL);
    op.rv = r->rv;
    op.timeout_seconds = r->timeout_seconds;
    op.bookmarks = r->bookmarks;
    op.initial_events = r->initial;
    return start(s, &op, sink, NULL, NULL);
}

static void source_cancel(void *self, uint64_t id)
{
    client_source *s = self;
    for (kl_list *n = s->transfers.next; n != &s->transfers; n = n->next) {
        transfer *t = KL_CONTAINER(n, transfer, link);
        if (t->id == id) {
            t->muted = true;
            kl_client_stream_cancel(s->o.client, t->stream);   /* may free t */
            return;
        }
    }
}

static uint64_t source_timer(void *self, kl_time after, void (*fn)(void *), void *arg)
{
    return kl_http_timer(kl_client_watch_http(((client_source *)self)->o.client), after, fn, arg);
}

static void source_timer_cancel(void *self, uint64_t id)
{
    kl_http_timer_cancel(kl_client_watch_http(((client_source *)self)->o.client), id);
}

static void source_post(void *self, void (*fn)(void *), void *arg)
{
    kl_http_post(kl_client_watch_http(((client_source *)self)->o.client), fn, arg);
}

static void source_free(void *self)
{
    source_unref(self);
}

void kl_client_source(const kl_client_source_options *o, kl_source *out)
{
    client_source *s = kl_new(client_source);
    s->o = *o;
    atomic_init(&s->refs, 1);
    kl_list_init(&s->transfers);
    s->ns = kl_strdup(o->ns);
    s->labels = kl_strdup(o->labels);
    s->fields = kl_strdup(o->fields);
    s->o.keep = kl_projection_ref(o->keep);
    *out = (kl_source){source_list, source_watch, source_cancel, source_timer, source_timer_cancel, source_post, source_free, s, true};
}
