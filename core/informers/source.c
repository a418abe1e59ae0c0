/* source.c - turns the cache's requests into streams of the client, on the client's watch thread.
 *
 * The cache forbids callbacks after a cancel; the client always calls `done`. So each stream has a small
 * record between the two, which is muted on cancel and freed on done. A source that has only a kind uses
 * discovery first:
 *
 *   wish --lookup (calls thread)--> found: begin the stream (watch thread)
 *                                    missing: done, as a 404; the cache tries again later */
#include "informers/source.h"

#include <stdatomic.h>
#include <string.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/sync.h"
#include "model/object.h"

typedef struct client_source {
    kl_client_source_options o; /* o.resource: watch thread only */
    char *kind, *ns, *labels, *fields;
    bool asked;        /* watch thread: discovery has answered once */
    atomic_int refs;   /* the informer's, and one per stream under way */
    kl_list transfers; /* watch thread only */
    uint64_t ids;
} client_source;

typedef struct transfer {
    kl_list link;
    client_source *source;
    kl_source_sink sink;
    uint64_t id, stream; /* our id, and the client's */
    bool muted;
    bool *over;                     /* tells send() that it ended inside the call; NULL afterwards */
    struct lookup *lookup;          /* NULL unless the kind is being looked up; nothing was sent yet */
    const char *api_version, *kind; /* of the items; borrowed from the cache */
} transfer;

/* A request that waits for its kind. */
typedef struct lookup {
    transfer *t;   /* used on the watch thread */
    kl_http *http; /* of the watch thread; valid unless cancelled */
    kl_op op;
    char *rv, *token;
    kl_status st;
    kl_err err;
    const kl_resource *found;
    kl_mutex mu;
    bool cancelled KL_GUARDED_BY(mu);
} lookup;

static void source_unref(client_source *s)
{
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
        return;
    kl_free(s->kind);
    kl_free(s->ns);
    kl_free(s->labels);
    kl_free(s->fields);
    kl_projection_unref(s->o.keep);
    kl_free(s);
}

/* The kind in the server's answer when only metadata is requested. */
#define PARTIAL "PartialObjectMetadata"

/* Gives the object its own kind instead of PARTIAL; takes the reference over. */
static const kl_value *unmasked(const client_source *s, const kl_value *object)
{
    const char *kind = s->o.metadata ? kl_object_kind(object) : NULL;
    if (!kind || strcmp(kind, PARTIAL))
        return object;
    char *api_version = kl_api_version(s->o.resource->group, s->o.resource->version);
    const kl_value *as = kl_object_as(object, api_version, s->o.resource->kind);
    kl_free(api_version);
    kl_value_unref(object);
    return as;
}

static kl_status transfer_item(void *arg, const kl_value *object, kl_err *err)
{
    transfer *t = arg;
    if (t->muted) {
        kl_value_unref(object);
        return kl_fail(err, KL_ECANCELLED, "the list was cancelled");
    }
    return t->sink.item(t->sink.arg, unmasked(t->source, object), err);
}

static kl_status transfer_event(void *arg, const char *type, const kl_value *object, kl_err *err)
{
    transfer *t = arg;
    if (t->muted) {
        kl_value_unref(object);
        return kl_fail(err, KL_ECANCELLED, "the watch was cancelled");
    }
    return t->sink.event(t->sink.arg, type, unmasked(t->source, object), err);
}

static const kl_value *transfer_known(
    void *arg, const char *ns, size_t nslen, const char *name, size_t namelen)
{
    transfer *t = arg;
    return t->muted ? NULL : t->sink.known(t->sink.arg, ns, nslen, name, namelen);
}

static kl_status transfer_skipped(void *arg, const kl_stream_skipped *object, kl_err *err)
{
    transfer *t = arg;
    if (t->muted)
        return kl_fail(err, KL_ECANCELLED, "it was cancelled");
    kl_source_skipped x = {.type = object->type,
        .ns = object->ns,
        .name = object->name,
        .nslen = object->nslen,
        .namelen = object->namelen,
        .message = object->message};
    return t->sink.skipped(t->sink.arg, &x, err);
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

static void send(transfer *t, kl_op *op)
{
    client_source *s = t->source;
    bool over = false;
    t->over = &over;
    op->resource = s->o.resource;
    op->ns = s->o.resource->namespaced ? s->ns : NULL;
    op->labels = s->labels;
    op->fields = s->fields;
    op->form = s->o.metadata ? KL_AS_METADATA : KL_AS_OBJECT;
    kl_stream_call call = {.item = transfer_item,
        .event = transfer_event,
        .lull = t->sink.lull ? transfer_lull : NULL,
        .opened = transfer_opened,
        .done = transfer_done,
        .arg = t,
        .known = t->sink.known ? transfer_known : NULL,
        .skipped = t->sink.skipped ? transfer_skipped : NULL,
        .api_version = t->api_version,
        .kind = t->kind,
        .max_object = s->o.max_object,
        .keep = s->o.keep};
    uint64_t stream = kl_client_stream(s->o.client, op, &call);
    if (!over) {
        t->stream = stream;
        t->over = NULL;
    }
}

/* --- the kind ----------------------------------------------------------------------------- */

static void lookup_free(lookup *l)
{
    kl_err_fini(&l->err);
    kl_mutex_fini(&l->mu);
    kl_free(l->rv);
    kl_free(l->token);
    kl_free(l);
}

/* On the watch thread: the result of discovery. */
static void lookup_over(void *arg)
{
    lookup *l = arg;
    transfer *t = l->t;
    kl_lock(&l->mu);
    bool cancelled = l->cancelled;
    kl_unlock(&l->mu);
    if (!cancelled) {
        t->lookup = NULL;
        t->source->asked = true;
        t->source->o.resource = l->st ? NULL : l->found;
        if (!l->st)
            send(t, &l->op);
        else
            transfer_done(t, l->st, l->st == KL_ENOTFOUND ? 404 : l->err.http_code, NULL, &l->err);
    }
    lookup_free(l);
}

/* Called on the calls thread, or at once. The post, which never waits, is under the lock: after it a
 * canceller may free the client. */
static void lookup_answered(void *arg, kl_status st, const kl_resource *r, kl_err *err)
{
    lookup *l = arg;
    l->st = st;
    l->found = r;
    if (st && err)
        kl_err_copy(&l->err, err);
    kl_lock(&l->mu);
    bool cancelled = l->cancelled;
    if (!cancelled)
        kl_http_post(l->http, lookup_over, l);
    kl_unlock(&l->mu);
    if (cancelled)
        lookup_free(l);
}

static void look_up(transfer *t, const kl_op *op)
{
    client_source *s = t->source;
    lookup *l = t->lookup = kl_new(lookup);
    kl_mutex_init(&l->mu);
    l->t = t;
    l->http = kl_client_watch_http(s->o.client);
    l->op = *op;
    l->op.rv = l->rv = kl_strdup(op->rv);
    l->op.continue_token = l->token = kl_strdup(op->continue_token);
    if (s->asked)
        kl_client_discovery_forget(s->o.client);
    kl_client_resolve(s->o.client, s->kind, lookup_answered, l);
}

/* Cancels the lookup. Its pending answer then finds no transfer, and frees the lookup. */
static void look_away(transfer *t)
{
    lookup *l = t->lookup;
    kl_lock(&l->mu);
    l->cancelled = true;
    kl_unlock(&l->mu);
    kl_list_remove(&t->link);
    source_unref(t->source);
    kl_free(t);
}

/* --- the source --------------------------------------------------------------------------- */

static uint64_t start(
    client_source *s, kl_op *op, const kl_source_sink *sink, const char *api_version, const char *kind)
{
    transfer *t = kl_new(transfer);
    uint64_t id = t->id = ++s->ids;
    t->sink = *sink;
    t->source = s;
    t->api_version = api_version;
    t->kind = kind;
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    kl_list_push(&s->transfers, &t->link);
    if (s->o.resource)
        send(t, op);
    else
        look_up(t, op);
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
            if (t->lookup) {
                look_away(t);
                return;
            }
            t->muted = true;
            kl_client_stream_cancel(s->o.client, t->stream); /* may free t */
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

static uint64_t source_heed(void *self, void (*fn)(void *), void *arg)
{
    return kl_client_heed(((client_source *)self)->o.client, fn, arg);
}

static void source_heed_not(void *self, uint64_t id)
{
    kl_client_heed_not(((client_source *)self)->o.client, id);
}

static void source_free(void *self) { source_unref(self); }

void kl_client_source(const kl_client_source_options *o, kl_source *out)
{
    client_source *s = kl_new(client_source);
    s->o = *o;
    atomic_init(&s->refs, 1);
    kl_list_init(&s->transfers);
    s->kind = kl_strdup(o->kind);
    s->ns = kl_strdup(o->ns);
    s->labels = kl_strdup(o->labels);
    s->fields = kl_strdup(o->fields);
    s->o.keep = kl_projection_ref(o->keep);
    *out = (kl_source){source_list, source_watch, source_cancel, source_timer, source_timer_cancel,
        source_post, source_free, s, source_heed, source_heed_not, true};
}
