/* watch.c - fans changes out to streams.
 *
 * A change reaches a watch as its selectors see it:
 *
 *   was out, is in   ADDED
 *   was in, is in    MODIFIED
 *   was in, is out   DELETED, with the state before at the new resourceVersion
 *
 * Everything is written under the server's lock, so a watch sees changes in the order of their resource
 * versions; the stream only queues bytes and has a bound of its own. One event is encoded once per version
 * and form. */
#include "server/watch.h"

#include <inttypes.h>
#include <string.h>

#include "base/heap.h"
#include "base/locks.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/object.h"
#include "schema/edit.h"
#include "schema/status.h"
#include "custom/queue.h"
#include "verbs/convert.h"
#include "show/answer.h"

/* kube-apiserver sends the first bookmark soon after the initial state and one shortly before the end. */
#define FIRST_BOOKMARK KL_SECONDS(1)
#define LAST_BOOKMARK KL_SECONDS(2)
/* How often to check streams for readers that hung up silently. */
#define LOOK_AGAIN KL_SECONDS(5)
/* The bytes of events that may wait for a reader, beside the initial ones. A watch with more is ended, as
 * kube-apiserver ends one whose buffer is full. The client may begin again from its last version. */
#define BACKLOG ((size_t)4 << 20)

typedef struct watch {
    kl_list all, here; /* in the server's list, and in the bucket's */
    kl__kind *kind;
    kl__filter filter;
    kl_show_form form;
    kl_httpd_stream *stream;
    bool bookmarks, headed;     /* headed: a table's columns were sent */
    kl_time next_bookmark, end; /* KL_NEVER: none */
    uint64_t told;              /* the resource version that the reader knows */
    size_t most;                /* bytes that may wait for its reader */
    /* with a conversion webhook: events that wait for its answers; NULL: none wait */
    kl_convert_queue *queue;
    struct ask *ask; /* the webhook call under way */
    kl_fault_watch *faults;
} watch;

/* The receiver of a conversion webhook's answers, which may come after the end of the server. */
struct kl_hub {
    kl_mutex mu;  /* held while an answer is processed; taken before the server's lock */
    kl_server *s; /* NULL: the server is gone */
    atomic_size_t refs;
};

typedef struct ask {
    struct kl_hub *hub;
    watch *w; /* NULL: the watch has ended. Under the server's lock */
} ask;

#define WATCH_OF_ALL(l) KL_CONTAINER(l, watch, all)
#define WATCH_OF_HERE(l) KL_CONTAINER(l, watch, here)

static void refuse(kl_httpd_stream *stream, const kl_show_form *form, const kl_err *err)
{
    kl_buf text = KL_BUF_INIT;
    const kl_value *status = kl__status_of(err);
    kl_show_error_event(status, form, &text);
    kl_value_unref(status);
    kl_httpd_stream_write(stream, text.data, text.len);
    kl_buf_fini(&text);
}

static void refuse_past(watch *w)
{
    kl_err err = KL_ERR_INIT;
    kl__fail_expired(&err, "too old resource version: %" PRIu64 " (%" PRIu64 ")", w->told, w->told + 1);
    refuse(w->stream, &w->form, &err);
    kl_err_fini(&err);
}

static void watch_end(watch *w)
{
    kl_list_remove(&w->all);
    kl_list_remove(&w->here);
    if (kl_fault_watch_expired(w->faults))
        refuse_past(w);
    kl_fault_watch_free(w->faults);
    if (w->ask)
        w->ask->w = NULL;
    kl_convert_queue_free(w->queue);
    kl_httpd_stream_close(w->stream);
    kl__filter_fini(&w->filter);
    kl_free(w);
}

/* Queues an event. Ends the watch if its reader is too slow. */
static bool put_now(void *arg, const kl_buf *text)
{
    watch *w = arg;
    size_t waits = kl_httpd_stream_queued(w->stream);
    if (waits + BACKLOG < w->most)
        w->most = waits + BACKLOG;
    bool fits = waits + text->len <= w->most || !waits;
    if (!fits) {
        kl_info("a watch was closed because its client reads too slowly", "kind=%s bytes=%zu", w->kind->kind,
            waits);
        kl_httpd_stream_cut(w->stream);
    }
    return fits && kl_httpd_stream_write(w->stream, text->data, text->len);
}

static bool put(watch *w, const kl_buf *text) { return kl_fault_watch_put(w->faults, text, false); }

/* Encodes an event for this watch. `object` is in storage form. False ends the watch. */
static bool encode(
    const kl_server *s, const watch *w, const char *type, const kl_value *object, bool columns, kl_buf *out)
{
    kl_err err = KL_ERR_INIT;
    kl_show_change c = {.type = type, .stored = object, .columns = columns, .now = kl__world_wall(&s->world)};
    kl_status st = kl_show_event(w->kind, &w->form, &c, out, &err);
    if (st)
        kl_warn("a watch ended: an object cannot be encoded for it", "kind=%s name=%s error=%s",
            w->kind->kind, kl_object_name(object), kl_err_message(&err));
    kl_err_fini(&err);
    return !st;
}

static bool send(const kl_server *s, watch *w, const char *type, const kl_value *object, uint64_t rv)
{
    kl_buf text = KL_BUF_INIT;
    bool ok = encode(s, w, type, object, !w->headed, &text) && put(w, &text);
    w->headed = true;
    w->told = rv;
    kl_buf_fini(&text);
    return ok;
}

/* `o` with another resource version; a new reference. */
static const kl_value *at_rv(const kl_value *o, uint64_t rv)
{
    char *text = kl_sprintf("%" PRIu64, rv);
    o = kl_value_ref(o);
    KL_EDIT(&o, kl_value_of_str(text), "metadata", "resourceVersion");
    kl_free(text);
    return o;
}

/* A change as a filter sees it: the type and the object of the event (a new reference). False: no event. */
static bool seen_as(const kl__filter *f, const kl__change *c, const char **type, const kl_value **object)
{
    bool before = c->old && kl__filter_matches(f, c->old),
         after = c->type != KL_DELETED && kl__filter_matches(f, c->now);
    if (!before && !after)
        return false;
    *type = after ? before ? "MODIFIED" : "ADDED" : "DELETED";
    *object = after             ? kl_value_ref(c->now)
        : c->type == KL_DELETED ? kl_value_ref(c->now)
                                : at_rv(c->old, c->rv);
    return true;
}

static bool bookmark(watch *w, uint64_t rv, bool initial_end)
{
    kl_buf text = KL_BUF_INIT;
    bool ok = !kl_show_bookmark(w->kind, &w->form, rv, initial_end, &text, NULL)
        && kl_fault_watch_put(w->faults, &text, true);
    kl_buf_fini(&text);
    w->told = rv;
    return ok;
}

/* Sends a mark that tells a test which version the watch has reached. Faults do not delay it. */
static bool mark(watch *w, uint64_t rv)
{
    kl_buf text = KL_BUF_INIT;
    bool ok = !kl_show_bookmark(w->kind, &w->form, rv, false, &text, NULL) && put_now(w, &text);
    kl_buf_fini(&text);
    w->told = rv;
    return ok;
}

/* Sends the queued events whose objects are known. False: the watch must end. */
static bool tell_queued(kl_server *s, watch *w)
{
    kl_err err = KL_ERR_INIT;
    const kl_convert_entry *t;
    kl_status st = KL_OK;
    bool ok = true;
    while (ok && !(st = kl_convert_queue_next(w->queue, &t, &err))) {
        const char *type;
        const kl_value *object;
        if (t->mark)
            ok = bookmark(w, t->change.rv, t->initial_end);
        else if (seen_as(&w->filter, &t->change, &type, &object)) {
            ok = send(s, w, type, object, t->change.rv);
            kl_value_unref(object);
        }
    }
    if (st == KL_EAGAIN)
        kl_cond_signal(&s->wake); /* the ticker makes the call */
    else if (ok && st != KL_ENOTFOUND) {
        refuse(w->stream, &w->form, &err);
        ok = false;
    }
    kl_err_fini(&err);
    return ok;
}

void kl__watch_change(void *server, kl__bucket *b, const kl__change *c)
{
    kl_server *s = server;
    kl_buf shared = KL_BUF_INIT; /* the last complete encoding, and the kind and form that it is for */
    const kl__kind *made_for = NULL;
    kl_show_media made_in = KL_MEDIA_JSON;
    const kl_value *made_of = NULL;
    const char *made_type = NULL;
    for (kl_list *l = b->watches.next, *next; l != &b->watches; l = next) {
        watch *w = WATCH_OF_HERE(l);
        next = l->next;
        const char *type;
        const kl_value *object;
        if (w->queue) {
            kl_convert_queue_push(w->queue, c);
            if (!tell_queued(s, w))
                watch_end(w);
            continue;
        }
        if (!seen_as(&w->filter, c, &type, &object))
            continue;
        bool ok;
        if (w->form.kind == KL_FORM_WHOLE && object == c->now) {
            ok = true;
            if (made_for != w->kind || made_in != w->form.media || made_of != object
                || strcmp(made_type, type)) {
                kl_buf_clear(&shared);
                ok = encode(s, w, type, object, false, &shared);
                made_for = ok ? w->kind : NULL;
                made_in = w->form.media;
                made_of = object;
                made_type = type;
            }
            w->told = c->rv;
            ok = ok && put(w, &shared);
        } else
            ok = send(s, w, type, object, c->rv);
        kl_value_unref(object);
        if (!ok)
            watch_end(w);
    }
    kl_buf_fini(&shared);
}

/* Queues the present objects, or the changes since a version. */
static bool queue_start(kl_server *s, watch *w, const kl__watch_options *o)
{
    kl__bucket *b = w->kind->bucket;
    kl__picture p = {0};
    char *prefix = kl__filter_prefix(&w->filter);
    w->queue = kl_convert_queue_new(w->kind, kl__filter_selects(&w->filter), s->world.webhook);
    if (o->initial && !kl__bucket_picture(b, prefix, prefix, 0, SIZE_MAX, &p)) {
        uint64_t rv = kl__store_rv(s->world.store);
        for (size_t i = 0; i < p.len; i++)
            kl_convert_queue_push(w->queue, &(kl__change){.rv = rv, .type = KL_ADDED, .now = p.objects[i]});
        w->told = rv;
        if (o->initial_end && o->bookmarks)
            kl_convert_queue_mark(w->queue, rv, true);
    }
    for (size_t i = 0; i < b->count && !o->initial; i++)
        if (kl__bucket_change(b, i)->rv > o->rv)
            kl_convert_queue_push(w->queue, kl__bucket_change(b, i));
    kl__picture_fini(&p);
    kl_free(prefix);
    return tell_queued(s, w);
}

void kl__watch_start(
    kl_server *s, kl__kind *k, kl__filter *filter, const kl__watch_options *o, kl_httpd_stream *stream)
{
    kl_time now = kl_clock_now(s->world.clock);
    kl__bucket *b = k->bucket;
    watch *w = kl_new(watch);
    w->kind = k;
    w->filter = *filter;
    *filter = (kl__filter){0};
    w->form = o->form;
    w->stream = stream;
    w->bookmarks = o->bookmarks;
    w->told = o->rv;
    w->most = SIZE_MAX; /* the initial objects are never cut */
    w->end = o->timeout ? now + o->timeout : KL_NEVER;
    w->next_bookmark = o->bookmarks
        ? now + (s->bookmark_every < FIRST_BOOKMARK ? s->bookmark_every : FIRST_BOOKMARK)
        : KL_NEVER;
    kl_list_push(&s->watches, &w->all);
    kl_list_push(&b->watches, &w->here);
    w->faults = kl_fault_watch_new(s->faults, o->facts, o->plan, put_now, w, stream);
    kl_time later;
    bool ok = kl_fault_watch_look(w->faults, &later);
    if (!ok)
        ;
    else if (k->conversion)
        ok = queue_start(s, w, o);
    else if (o->initial) {
        kl__picture p;
        char *prefix = kl__filter_prefix(&w->filter);
        if (!kl__bucket_picture(b, prefix, prefix, 0, SIZE_MAX, &p)) {
            for (size_t i = 0; i < p.len && ok; i++)
                if (kl__filter_matches(&w->filter, p.objects[i]))
                    ok = send(s, w, "ADDED", p.objects[i], w->told);
            kl__picture_fini(&p);
        }
        kl_free(prefix);
        w->told = kl__store_rv(s->world.store);
        if (ok && o->initial_end && o->bookmarks)
            ok = bookmark(w, w->told, true);
    } else
        for (size_t i = 0; i < b->count && ok; i++) {
            const kl__change *c = kl__bucket_change(b, i);
            const char *type;
            const kl_value *object;
            if (c->rv <= o->rv || !seen_as(&w->filter, c, &type, &object))
                continue;
            ok = send(s, w, type, object, c->rv);
            kl_value_unref(object);
        }
    if (!ok)
        watch_end(w);
    else
        kl_cond_signal(&s->wake);
}

void kl__watches_mark(kl_server *s, uint64_t rv)
{
    for (kl_list *l = s->watches.next, *next; l != &s->watches; l = next) {
        watch *w = WATCH_OF_ALL(l);
        next = l->next;
        bool waits = w->bookmarks && w->queue && kl_convert_queue_len(w->queue);
        if (waits)
            kl_convert_queue_mark(w->queue, rv, false);
        if (kl_httpd_stream_gone(w->stream) || (w->bookmarks && !waits && !mark(w, rv)))
            watch_end(w);
    }
}

kl_time kl__watches_look(kl_server *s)
{
    kl_time again = KL_NEVER, later;
    for (kl_list *l = s->watches.next, *next; l != &s->watches; l = next) {
        watch *w = WATCH_OF_ALL(l);
        next = l->next;
        if (!kl_fault_watch_look(w->faults, &later))
            watch_end(w);
        again = later < again ? later : again;
    }
    return again;
}

kl_time kl__watches_tick(kl_server *s, kl_time now)
{
    kl_time again = kl__watches_look(s);
    uint64_t rv = kl__store_rv(s->world.store);
    for (kl_list *l = s->watches.next, *next; l != &s->watches; l = next) {
        watch *w = WATCH_OF_ALL(l);
        next = l->next;
        if (w->end <= now || kl_httpd_stream_gone(w->stream)) {
            watch_end(w);
            continue;
        }
        if (w->next_bookmark <= now) {
            w->next_bookmark = now + s->bookmark_every;
            if (w->end != KL_NEVER && w->end - LAST_BOOKMARK > now
                && w->end - LAST_BOOKMARK < w->next_bookmark)
                w->next_bookmark = w->end - LAST_BOOKMARK;
            bool waits = w->queue && kl_convert_queue_len(w->queue);
            if (rv != w->told && !waits && !bookmark(w, rv, false)) {
                watch_end(w);
                continue;
            }
        }
        if (w->queue && kl_conversions_wait(kl_convert_queue_conversions(w->queue)))
            again = now; /* kl__watches_ask first */
        kl_time look = now + LOOK_AGAIN;
        kl_time due = w->end < w->next_bookmark ? w->end : w->next_bookmark;
        due = due < look ? due : look;
        again = due < again ? due : again;
    }
    return again;
}

void kl__watches_drop(void *server, const char *group, const char *plural, const char *const *keep)
{
    kl_server *s = server;
    for (kl_list *l = s->watches.next, *next; l != &s->watches; l = next) {
        watch *w = WATCH_OF_ALL(l);
        next = l->next;
        bool gone = !strcmp(w->kind->group, group) && !strcmp(w->kind->plural, plural);
        for (const char *const *v = keep; gone && *v; v++)
            gone = strcmp(*v, w->kind->version) != 0;
        if (gone)
            watch_end(w);
    }
}

void kl__watches_stop(kl_server *s)
{
    while (!kl_list_empty(&s->watches))
        watch_end(WATCH_OF_ALL(s->watches.next));
}

void kl__watch_refuse(kl_httpd_stream *stream, const kl_show_form *form, const kl_err *err)
{
    refuse(stream, form, err);
    kl_httpd_stream_close(stream);
}

/* ------------------------------------------------------------------ calls of conversion webhooks */

struct kl_hub *kl__hub_new(kl_server *s)
{
    struct kl_hub *hub = kl_new(struct kl_hub);
    kl_mutex_init_as(&hub->mu, KL_LOCK_HUB);
    hub->s = s;
    atomic_init(&hub->refs, 1);
    return hub;
}

static void hub_unref(struct kl_hub *hub)
{
    if (atomic_fetch_sub(&hub->refs, 1) != 1)
        return;
    kl_mutex_fini(&hub->mu);
    kl_free(hub);
}

void kl__hub_leave(struct kl_hub *hub)
{
    kl_lock(&hub->mu);
    hub->s = NULL;
    kl_unlock(&hub->mu);
    hub_unref(hub);
}

static void answered(void *arg, int code, const char *text, size_t n, const char *failure)
{
    ask *a = arg;
    kl_lock(&a->hub->mu);
    kl_server *s = a->hub->s;
    if (s) {
        kl_lock(&s->mu);
        watch *w = a->w;
        if (w) {
            w->ask = NULL;
            kl_conversions_answer(kl_convert_queue_conversions(w->queue), code, text, n, failure);
            if (!tell_queued(s, w))
                watch_end(w);
        }
        kl_unlock(&s->mu);
    }
    kl_unlock(&a->hub->mu);
    hub_unref(a->hub);
    kl_free(a);
}

bool kl__watches_ask(kl_server *s)
{
    ask *a = NULL;
    kl_conversion_call call;
    kl_lock(&s->mu);
    for (kl_list *l = s->watches.next; !a && s->world.webhook && l != &s->watches; l = l->next) {
        watch *w = WATCH_OF_ALL(l);
        if (!w->queue || !kl_conversions_wait(kl_convert_queue_conversions(w->queue)))
            continue;
        a = w->ask = kl_new(ask);
        *a = (ask){.hub = s->hub, .w = w};
        atomic_fetch_add(&s->hub->refs, 1);
        kl_conversions_call(kl_convert_queue_conversions(w->queue), &call);
    }
    kl_unlock(&s->mu);
    if (!a)
        return false;
    kl__conversion_send(&s->world, &call, answered, a);
    return true;
}
