/* informer.c - one resource kept in sync: reflector + indexer + handlers.
 *
 *   watch thread:  source callback -> reflector step -> do what it says (list, watch, wait)
 *        | apply: at once, or on the executor, in order
 *   apply context: indexer put -> handlers
 *
 * Everything that changes the store or calls a handler runs in the apply context, one thing after the other: so a handler
 * that comes late gets a snapshot and then the events, none lost and none twice. Between start and stop the informer holds
 * a reference to itself, and every posted job holds one. */
#include "cache/informer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "cache/indexer.h"
#include "cache/reflector.h"
#include "model/object.h"

struct kl_subscription {
    kl_informer *informer;       /* a reference until unsubscribed */
    kl_handler handler;
    atomic_int refs;             /* the subscriber's, and the apply context's while it knows it */
    bool active, synced;         /* apply context: gets events; was told on_synced */
    bool dead;                   /* under informer->mu, as is */
    uint64_t caller;             /* the thread that runs its callback now, or 0 */
};

struct kl_informer {
    atomic_int refs;
    kl_source source;
    kl_clock *clock;
    char *resource, *api_version, *kind, *ns;
    void (*execute)(void *arg, void (*fn)(void *), void *fnarg);
    void *execute_arg;
    kl_indexer *indexer;
    _Atomic bool synced;
    _Atomic uint64_t events;
    _Atomic kl_time last_event;

    /* watch thread */
    kl_reflector *reflector;
    bool running;                /* started and not stopped */
    bool ended;                  /* stopped, and nothing is left in the executor, which may be gone */
    uint64_t turn;               /* counts what was performed */
    uint64_t request;            /* the open list or watch, 0 none */
    uint64_t timer;              /* 0 none */
    kl_time timer_at;
    const kl_value **page;       /* what the list has brought so far */
    size_t n_page, cap_page;
    kl_err stream_error;         /* the ERROR event of the open watch */
    bool has_stream_error;

    /* apply context */
    kl_subscription **active;    /* those known here, each a reference; brought up to date when subs_version moves */
    size_t n_active;
    uint64_t active_version;
    bool stopped;

    kl_mutex mu;
    kl_cond idle;                /* a callback of a dead subscription has ended */
    /* under mu: */
    kl_subscription **subs;
    size_t n_subs;
    uint64_t subs_version;
    const char *state;           /* what the reflector said last */
    char *message;
    bool parked;
    kl_reflector_counts counts;
};

/* --- life --------------------------------------------------------------------------------------------------------------------- */

kl_informer *kl_informer_new(const kl_informer_options *o)
{
    kl_informer *i = kl_new(kl_informer);
    atomic_init(&i->refs, 1);
    i->source = o->source;
    i->clock = o->clock;
    i->resource = kl_strdup(o->resource ? o->resource : "objects");
    i->api_version = kl_strdup(o->api_version);
    i->kind = kl_strdup(o->kind);
    i->ns = kl_strdup(o->namespace_);
    i->execute = o->execute;
    i->execute_arg = o->execute_arg;
    i->indexer = kl_indexer_new();
    i->reflector = kl_reflector_new(o->seed, o->page_size);
    i->state = kl_reflector_state(i->reflector);
    kl_mutex_init(&i->mu);
    kl_cond_init(&i->idle);
    return i;
}

kl_informer *kl_informer_ref(kl_informer *i)
{
    atomic_fetch_add_explicit(&i->refs, 1, memory_order_relaxed);
    return i;
}

static void sub_unref(kl_subscription *s)
{
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
        kl_free(s);
}

static void drop_page(kl_informer *i)
{
    for (size_t k = 0; k < i->n_page; k++)
        kl_value_unref(i->page[k]);
    kl_free(i->page);
    i->page = NULL;
    i->n_page = i->cap_page = 0;
}

void kl_informer_unref(kl_informer *i)
{
    if (!i || atomic_fetch_sub_explicit(&i->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (i->source.free)
        i->source.free(i->source.self);
    for (size_t k = 0; k < i->n_active; k++)
        sub_unref(i->active[k]);
    kl_free(i->active);
    kl_free(i->subs);
    drop_page(i);
    kl_err_fini(&i->stream_error);
    kl_reflector_free(i->reflector);
    kl_indexer_free(i->indexer);
    kl_cond_fini(&i->idle);
    kl_mutex_fini(&i->mu);
    kl_free(i->message);
    kl_free(i->resource);
    kl_free(i->api_version);
    kl_free(i->kind);
    kl_free(i->ns);
    kl_free(i);
}

/* --- jobs: from any thread to the watch thread, from there to the apply context ------------------------------------------------ */

typedef struct job {
    kl_informer *i;              /* a reference */
    void (*fn)(kl_informer *i, struct job *j);
    kl_subscription *sub;
    void (*call)(void *arg);
    void *call_arg;
    kl_event_type type;
    const kl_value *object;
    const kl_value **page;
    size_t n_page;
    char *rv;
} job;

static job *job_new(kl_informer *i, void (*fn)(kl_informer *, job *))
{
    job *j = kl_new(job);
    j->i = kl_informer_ref(i);
    j->fn = fn;
    return j;
}

static void job_run(void *arg)
{
    job *j = arg;
    kl_informer *i = j->i;
    j->fn(i, j);
    kl_free(j->rv);
    kl_free(j);
    kl_informer_unref(i);
}

/* On the watch thread: into the apply context. */
static void apply(kl_informer *i, job *j)
{
    if (i->execute && !i->ended)
        i->execute(i->execute_arg, job_run, j);
    else
        job_run(j);
}

static void job_forward(void *arg)
{
    job *j = arg;
    apply(j->i, j);
}

static void post_watch(kl_informer *i, job *j) { i->source.post(i->source.self, job_run, j); }
static void post_apply(kl_informer *i, job *j) { i->source.post(i->source.self, job_forward, j); }

/* --- the apply context: handlers -------------------------------------------------------------------------------------------------- */

/* Marks the callback as running, so that unsubscribe can wait for it; false when nobody wants it any more. */
static bool enter(kl_informer *i, kl_subscription *s)
{
    kl_lock(&i->mu);
    bool wanted = !s->dead;
    if (wanted)
        s->caller = kl_thread_self();
    kl_unlock(&i->mu);
    return wanted;
}

static void leave(kl_informer *i, kl_subscription *s)
{
    kl_lock(&i->mu);
    s->caller = 0;
    if (s->dead)
        kl_cond_broadcast(&i->idle);
    kl_unlock(&i->mu);
}

static void tell(kl_informer *i, kl_subscription *s, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    if (!s->handler.on_event || !enter(i, s))
        return;
    s->handler.on_event(s->handler.arg, type, old, now, flags);
    leave(i, s);
}

static void tell_synced(kl_informer *i, kl_subscription *s)
{
    if (s->synced)
        return;
    s->synced = true;
    if (!s->handler.on_synced || !enter(i, s))
        return;
    s->handler.on_synced(s->handler.arg);
    leave(i, s);
}

/* The subscriptions as the apply context knows them. Handlers may come and go while it walks over them: what it walks
 * over changes only here. */
static void refresh_active(kl_informer *i)
{
    kl_subscription **fresh = NULL, **old = i->active;
    size_t n = 0, n_old = i->n_active;
    kl_lock(&i->mu);
    bool stale = i->active_version != i->subs_version;
    if (stale) {
        fresh = kl_new_array(kl_subscription *, i->n_subs + 1);
        for (; n < i->n_subs; n++) {
            fresh[n] = i->subs[n];
            atomic_fetch_add_explicit(&fresh[n]->refs, 1, memory_order_relaxed);
        }
        i->active_version = i->subs_version;
    }
    kl_unlock(&i->mu);
    if (!stale)
        return;
    i->active = fresh;
    i->n_active = n;
    for (size_t k = 0; k < n_old; k++)
        sub_unref(old[k]);
    kl_free(old);
}

static void dispatch(kl_informer *i, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    for (size_t k = 0; k < i->n_active; k++)
        if (i->active[k]->active)
            tell(i, i->active[k], type, old, now, flags);
}

/* --- the apply context: changes ------------------------------------------------------------------------------------------------------ */

static bool same_text(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

static bool reborn(const kl_value *old, const kl_value *now)
{
    const char *a = kl_object_uid(old), *b = kl_object_uid(now);
    return a && b && strcmp(a, b);
}

/* Nobody needs to hear of it: the very value, or the same resourceVersion of the same incarnation. */
static bool unchanged(const kl_value *old, const kl_value *now)
{
    return old == now || (same_text(kl_object_rv(old), kl_object_rv(now)) && !reborn(old, now));
}

static void apply_event(kl_informer *i, kl_event_type type, const kl_value *o)
{
    char key[KL_KEY_MAX];
    if (!kl_indexer_key(o, key))
        return;
    refresh_active(i);
    if (type == KL_DELETED) {
        const kl_value *old = kl_indexer_put(i->indexer, key, NULL);
        kl_indexer_set_rv(i->indexer, kl_object_rv(o));
        if (old)                                  /* o is the last state, with the resourceVersion of the delete */
            dispatch(i, KL_DELETED, o, NULL, 0);
        kl_value_unref(old);
        return;
    }
    const kl_value *before = kl_indexer_lookup(i->indexer, key);
    bool news = !before || !unchanged(before, o);
    kl_value_unref(before);
    if (news) {
        const kl_value *old = kl_indexer_put(i->indexer, key, o);
        kl_indexer_set_rv(i->indexer, kl_object_rv(o));
        if (old && reborn(old, o)) {
            dispatch(i, KL_DELETED, old, NULL, 0);
            dispatch(i, KL_ADDED, NULL, o, 0);
        } else {
            dispatch(i, old ? KL_MODIFIED : KL_ADDED, old, o, 0);
        }
        kl_value_unref(old);
    }
}

static void job_event(kl_informer *i, job *j)
{
    if (!i->stopped)
        apply_event(i, j->type, j->object);
    kl_value_unref(j->object);
}

static void job_rv(kl_informer *i, job *j)
{
    kl_indexer_set_rv(i->indexer, j->rv);
}

typedef struct change { const kl_value *old, *now; } change;      /* references */
typedef struct changes { change *v; size_t len, cap; } changes;

static void changes_add(changes *c, const kl_value *old, const kl_value *now)
{
    if (c->len == c->cap)
        c->v = kl_realloc(c->v, (c->cap = c->cap ? 2 * c->cap : 16) * sizeof *c->v);
    c->v[c->len++] = (change){ old, now };
}

static void changes_tell(kl_informer *i, changes *c, unsigned flags)
{
    for (size_t k = 0; k < c->len; k++) {
        change *x = &c->v[k];
        dispatch(i, !x->now ? KL_DELETED : x->old ? KL_MODIFIED : KL_ADDED, x->old, x->now, flags);
        kl_value_unref(x->old);
        kl_value_unref(x->now);
    }
    kl_free(c->v);
}

typedef struct keyed { const char *ns, *name; const kl_value *object; } keyed;

/* As strcmp of the keys would, which do not exist in one piece: the end of a namespace reads as '/'. */
static int by_key(const void *pa, const void *pb)
{
    const keyed *a = pa, *b = pb;
    const char *x = a->ns ? a->ns : "", *y = b->ns ? b->ns : "";
    if (x != y) {
        while (*x && *x == *y)
            x++, y++;
        unsigned char cx = *x ? (unsigned char)*x : '/', cy = *y ? (unsigned char)*y : '/';
        if (cx != cy)
            return cx < cy ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

/* Servers list in key order, which the indexer likes best; not all of them do. */
static void sort_page(const kl_value **page, size_t n)
{
    keyed *k = kl_new_array(keyed, n + 1);
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        k[i] = (keyed){ kl_object_namespace(page[i]), kl_object_name(page[i]), page[i] };
        sorted &= !i || by_key(&k[i - 1], &k[i]) < 0;
    }
    if (!sorted)
        qsort(k, n, sizeof *k, by_key);
    for (size_t i = 0; i < n && !sorted; i++)
        page[i] = k[i].object;
    kl_free(k);
}

/* The list is the whole truth: the store becomes it, then handlers hear of the difference, deletes first. */
static void apply_replace(kl_informer *i, const kl_value **page, size_t n, const char *rv)
{
    changes gone = {0}, rest = {0};
    kl_objects lost;
    char key[KL_KEY_MAX];
    sort_page(page, n);
    kl_indexer_mark(i->indexer);
    for (size_t k = 0; k < n; k++) {
        if (!kl_indexer_key(page[k], key))
            continue;
        const kl_value *before = kl_indexer_keep(i->indexer, key);
        if (!before || !unchanged(before, page[k])) {
            const kl_value *old = kl_indexer_put(i->indexer, key, page[k]);
            if (old && reborn(old, page[k])) {
                changes_add(&gone, old, NULL);
                old = NULL;
            }
            changes_add(&rest, old, kl_value_ref(page[k]));
        }
        kl_value_unref(before);
    }
    kl_indexer_take_unmarked(i->indexer, &lost);
    for (size_t k = 0; k < lost.len; k++)
        changes_add(&gone, lost.v[k], NULL);          /* takes the reference over */
    kl_free(lost.v);
    kl_indexer_set_rv(i->indexer, rv);
    bool first = !atomic_load(&i->synced);
    refresh_active(i);
    changes_tell(i, &gone, KL_RELIST);
    changes_tell(i, &rest, first ? KL_INITIAL : KL_RELIST);
    atomic_store(&i->synced, true);
    for (size_t k = 0; k < i->n_active; k++)
        if (i->active[k]->active)
            tell_synced(i, i->active[k]);
}

static void job_replace(kl_informer *i, job *j)
{
    if (!i->stopped)
        apply_replace(i, j->page, j->n_page, j->rv);
    for (size_t k = 0; k < j->n_page; k++)
        kl_value_unref(j->page[k]);
    kl_free(j->page);
}

/* --- the watch thread: doing what the reflector says ------------------------------------------------------------------------------------ */

static void step(kl_informer *i, const kl_reflector_input *in);

static kl_err error_of_done(kl_status st, int code, const kl_err *err)
{
    kl_err e = KL_ERR_INIT;
    if (err)
        kl_err_copy(&e, err);
    if (!e.message)
        kl_fail(&e, st, "%s", kl_status_name(st));
    e.status = st;
    if (!e.http_code)
        e.http_code = code;
    return e;
}

static kl_status list_item(void *arg, const kl_value *object, kl_err *err)
{
    kl_informer *i = arg;
    const kl_value *o = kl_object_with_type(object, i->api_version, i->kind);
    kl_value_unref(object);
    char key[KL_KEY_MAX];
    if (!kl_indexer_key(o, key)) {
        kl_value_unref(o);
        return kl_fail(err, KL_ESERVER, "the list of %s holds an item without a usable metadata.name: the server's answer is no list of objects", i->resource);
    }
    if (i->n_page == i->cap_page)
        i->page = kl_realloc(i->page, (i->cap_page = i->cap_page ? 2 * i->cap_page : 64) * sizeof *i->page);
    i->page[i->n_page++] = o;
    return KL_OK;
}

static bool is_list(const kl_value *envelope)
{
    const char *kind = kl_value_str_at(envelope, "kind", NULL);
    size_t n = kind ? strlen(kind) : 0;
    return n >= 4 && !strcmp(kind + n - 4, "List");
}

static void list_done(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    kl_informer *i = arg;
    i->request = 0;
    kl_err e = KL_ERR_INIT;
    if (st) {
        e = error_of_done(st, code, err);
    } else if (!is_list(envelope)) {
        const char *kind = kl_value_str_at(envelope, "kind", NULL);
        st = kl_fail(&e, KL_ESERVER, "listing %s brought a %s where a list was expected", i->resource, kind ? kind : "thing without kind");
    }
    if (st)
        step(i, &(kl_reflector_input){ .kind = KL_REFLECTOR_LIST_FAILED, .err = &e });
    else
        step(i, &(kl_reflector_input){
            .kind = KL_REFLECTOR_PAGE,
            .rv = kl_value_str_at(envelope, "metadata", "resourceVersion", NULL),
            .continue_token = kl_value_str_at(envelope, "metadata", "continue", NULL),
        });
    kl_err_fini(&e);
}

static void watch_opened(void *arg)
{
    step(arg, &(kl_reflector_input){ .kind = KL_REFLECTOR_OPENED });
}

static kl_status status_of(int64_t code, const char *reason)
{
    if (code == 410 || same_text(reason, "Expired") || same_text(reason, "Gone"))
        return KL_EGONE;
    switch (code) {
    case 401: return KL_EAUTH;
    case 403: return KL_EFORBIDDEN;
    case 404: return KL_ENOTFOUND;
    case 429: return KL_ETHROTTLED;
    case 504: return KL_ETIMEOUT;
    }
    return code >= 400 && code < 500 ? KL_EREJECTED : KL_ESERVER;
}

/* The Status of an ERROR event as an error. */
static void stream_error_set(kl_informer *i, const kl_value *status)
{
    kl_err *e = &i->stream_error;
    int64_t code = kl_value_int_at(status, 0, "code", NULL);
    const char *reason = kl_value_str_at(status, "reason", NULL), *message = kl_value_str_at(status, "message", NULL);
    kl_err_fini(e);
    kl_fail(e, status_of(code, reason), "the watch of %s was ended by the server: %s", i->resource, message ? message : reason ? reason : "it did not say why");
    e->http_code = (int)code;
    e->reason = kl_strdup(reason);
    const kl_value *details = kl_value_at(status, "details", NULL);
    if (details)
        e->details = kl_value_to_json(details);
    e->retry_after_ns = KL_SECONDS(kl_value_int_at(details, 0, "retryAfterSeconds", NULL));
    i->has_stream_error = true;
}

static kl_status watch_event(void *arg, const char *word, const kl_value *o, kl_err *err)
{
    kl_informer *i = arg;
    kl_event_type type;
    const char *kind = kl_object_kind(o);
    if (!kl_event_parse(word, &type)) {
        kl_warn("unknown watch event skipped", "resource=%s type=%.40s", i->resource, word);
        kl_value_unref(o);
        return KL_OK;
    }
    if (type == KL_ERROR) {                       /* done follows, and tells the reflector */
        stream_error_set(i, o);
        kl_value_unref(o);
        if (err)
            kl_err_copy(err, &i->stream_error);
        return i->stream_error.status;
    }
    char key[KL_KEY_MAX];
    if ((i->kind && kind && strcmp(kind, i->kind)) || (type != KL_BOOKMARK && !kl_indexer_key(o, key))) {
        kl_warn("foreign object in a watch skipped", "resource=%s kind=%.80s", i->resource, kind ? kind : "");
        kl_value_unref(o);
        return KL_OK;
    }
    const char *rv = kl_object_rv(o);
    job *j = job_new(i, type == KL_BOOKMARK ? job_rv : job_event);
    j->type = type;
    j->object = type == KL_BOOKMARK ? NULL : kl_object_with_type(o, i->api_version, i->kind);
    j->rv = type == KL_BOOKMARK ? kl_strdup(rv) : NULL;
    apply(i, j);
    if (type != KL_BOOKMARK)
        atomic_fetch_add_explicit(&i->events, 1, memory_order_relaxed);
    atomic_store_explicit(&i->last_event, kl_clock_now(i->clock), memory_order_relaxed);
    step(i, &(kl_reflector_input){ .kind = KL_REFLECTOR_FRAME, .type = type, .rv = rv });
    kl_value_unref(o);
    return KL_OK;
}

static void watch_done(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    (void)envelope;
    kl_informer *i = arg;
    i->request = 0;
    kl_err e = KL_ERR_INIT;
    kl_reflector_input_kind kind = KL_REFLECTOR_ENDED;
    if (i->has_stream_error) {
        kl_err_move(&e, &i->stream_error);
        i->has_stream_error = false;
        kind = KL_REFLECTOR_STREAM_ERROR;
    } else if (st) {
        e = error_of_done(st, code, err);
    }
    step(i, &(kl_reflector_input){ .kind = kind, .err = e.status ? &e : NULL });
    kl_err_fini(&e);
}

static void timer_fired(void *arg)
{
    kl_informer *i = arg;
    i->timer = 0;
    step(i, &(kl_reflector_input){ .kind = KL_REFLECTOR_TIMER });
}

static void timer_clear(kl_informer *i)
{
    if (i->timer)
        i->source.timer_cancel(i->source.self, i->timer);
    i->timer = 0;
}

/* A timer that fires early does no harm, so the one that runs is kept while the end only moves away. */
static void timer_set(kl_informer *i, kl_time until)
{
    if (until == KL_NEVER) {
        timer_clear(i);
        return;
    }
    if (i->timer && i->timer_at <= until)
        return;
    timer_clear(i);
    kl_time now = kl_clock_now(i->clock);
    i->timer_at = until;
    i->timer = i->source.timer(i->source.self, until > now ? until - now : 0, timer_fired, i);
}

static void close_request(kl_informer *i)
{
    uint64_t open = i->request;
    i->request = 0;
    if (open)
        i->source.cancel(i->source.self, open);
    kl_err_fini(&i->stream_error);
    i->has_stream_error = false;
}

static void replace_store(kl_informer *i)
{
    job *j = job_new(i, job_replace);
    j->page = i->page;
    j->n_page = i->n_page;
    j->rv = kl_strdup(kl_reflector_rv(i->reflector));
    i->page = NULL;
    i->n_page = i->cap_page = 0;
    kl_debug("listed", "resource=%s objects=%zu rv=%s", i->resource, j->n_page, j->rv);
    apply(i, j);
}

static void perform(kl_informer *i, const kl_reflector_action *a)
{
    static const kl_source_sink list_sink = { .item = list_item, .done = list_done };
    static const kl_source_sink watch_sink = { .event = watch_event, .opened = watch_opened, .done = watch_done };
    kl_source_sink sink = a->what == KL_REFLECTOR_LIST ? list_sink : watch_sink;
    sink.arg = i;
    if (a->complete)
        replace_store(i);
    if (a->what != KL_REFLECTOR_GO_ON) {
        close_request(i);
        timer_clear(i);
        if (a->what != KL_REFLECTOR_LIST || !a->list.continue_token)
            drop_page(i);
    }
    uint64_t turn = a->what == KL_REFLECTOR_GO_ON ? i->turn : ++i->turn, request = 0;
    if (a->what == KL_REFLECTOR_LIST)
        request = i->source.list(i->source.self, &a->list, &sink);
    else if (a->what == KL_REFLECTOR_WATCH)
        request = i->source.watch(i->source.self, &a->watch, &sink);
    if (turn != i->turn)
        return;                                   /* it failed on the spot, and what follows from that is under way */
    if (request)
        i->request = request;
    timer_set(i, a->until);
}

/* What other threads may want to know. */
static void publish(kl_informer *i)
{
    kl_reflector *r = i->reflector;
    char *message = kl_strdup(kl_reflector_message(r));
    kl_lock(&i->mu);
    char *old = i->message;
    i->state = kl_reflector_state(r);
    i->message = message;
    i->parked = kl_reflector_parked(r);
    i->counts = *kl_reflector_counters(r);
    kl_unlock(&i->mu);
    kl_free(old);
}

static void log_trouble(const kl_informer *i, const kl_err *err, kl_time wait)
{
    char text[512];
    kl_warn(kl_reflector_parked(i->reflector) ? "informer is parked" : "list or watch failed", "resource=%s namespace=%s next=%s in=%.1fs error=%s",
            i->resource, i->ns ? i->ns : "", kl_reflector_state(i->reflector), (double)wait / (double)KL_SECONDS(1),
            kl_log_quote(err->message, text, sizeof text));
}

static void step(kl_informer *i, const kl_reflector_input *in)
{
    if (!i->running)
        return;
    kl_time now = kl_clock_now(i->clock);
    bool troubled = kl_reflector_message(i->reflector) != NULL;
    kl_reflector_action a = kl_reflector_step(i->reflector, in, now);
    if (in->kind != KL_REFLECTOR_FRAME || troubled)
        publish(i);
    if (in->err && in->err->status)
        log_trouble(i, in->err, a.what == KL_REFLECTOR_WAIT ? a.until - now : 0);
    perform(i, &a);
}

/* --- start, stop, kick ------------------------------------------------------------------------------------------------------------------- */

static void job_start(kl_informer *i, job *j)
{
    (void)j;
    if (i->running || strcmp(kl_reflector_state(i->reflector), "idle"))
        return;
    i->running = true;
    kl_informer_ref(i);
    step(i, &(kl_reflector_input){ .kind = KL_REFLECTOR_START });
}

static void job_kick(kl_informer *i, job *j)
{
    (void)j;
    step(i, &(kl_reflector_input){ .kind = KL_REFLECTOR_KICK });
}

static void job_stopped(kl_informer *i, job *j)
{
    i->ended = true;
    if (j->call)
        j->call(j->call_arg);
}

/* The last in the apply context: what was queued before it has run, what comes after it finds `stopped`. */
static void job_last(kl_informer *i, job *j)
{
    i->stopped = true;
    job *k = job_new(i, job_stopped);
    k->call = j->call;
    k->call_arg = j->call_arg;
    if (i->execute)
        post_watch(i, k);
    else
        job_run(k);
}

static void job_stop(kl_informer *i, job *j)
{
    bool was = i->running;
    kl_reflector_action a = kl_reflector_step(i->reflector, &(kl_reflector_input){ .kind = KL_REFLECTOR_STOP }, kl_clock_now(i->clock));
    perform(i, &a);
    i->running = false;
    publish(i);
    job *k = job_new(i, job_last);
    k->call = j->call;
    k->call_arg = j->call_arg;
    apply(i, k);
    if (was)
        kl_informer_unref(i);                     /* the one of job_start */
}

void kl_informer_start(kl_informer *i) { post_watch(i, job_new(i, job_start)); }
void kl_informer_kick(kl_informer *i) { post_watch(i, job_new(i, job_kick)); }

void kl_informer_stop(kl_informer *i, void (*stopped)(void *arg), void *arg)
{
    job *j = job_new(i, job_stop);
    j->call = stopped;
    j->call_arg = arg;
    post_watch(i, j);
}

/* --- handlers -------------------------------------------------------------------------------------------------------------------------------- */

/* Tells one handler of all that is there. */
static void tell_all(kl_informer *i, kl_subscription *s, kl_event_type type, unsigned flags)
{
    kl_objects all;
    if (kl_indexer_list(i->indexer, NULL, &all, NULL))
        return;
    for (size_t k = 0; k < all.len; k++)
        tell(i, s, type, type == KL_MODIFIED ? all.v[k] : NULL, all.v[k], flags);
    kl_objects_fini(&all);
}

static void job_activate(kl_informer *i, job *j)
{
    kl_subscription *s = j->sub;
    if (!i->stopped) {
        s->active = true;
        tell_all(i, s, KL_ADDED, KL_INITIAL);
        if (atomic_load(&i->synced))
            tell_synced(i, s);
    }
    sub_unref(s);
}

static void job_resync(kl_informer *i, job *j)
{
    if (!i->stopped && j->sub->active)
        tell_all(i, j->sub, KL_MODIFIED, KL_RESYNC);
    sub_unref(j->sub);
}

static void post_for_sub(kl_informer *i, kl_subscription *s, void (*fn)(kl_informer *, job *))
{
    job *j = job_new(i, fn);
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    j->sub = s;
    post_apply(i, j);
}

kl_subscription *kl_informer_subscribe(kl_informer *i, const kl_handler *h)
{
    kl_subscription *s = kl_new(kl_subscription);
    s->informer = kl_informer_ref(i);
    s->handler = *h;
    atomic_init(&s->refs, 1);
    kl_lock(&i->mu);
    i->subs = kl_realloc(i->subs, (i->n_subs + 1) * sizeof *i->subs);
    i->subs[i->n_subs++] = s;
    i->subs_version++;
    kl_unlock(&i->mu);
    post_for_sub(i, s, job_activate);
    return s;
}

void kl_informer_unsubscribe(kl_subscription *s)
{
    if (!s)
        return;
    kl_informer *i = s->informer;
    kl_lock(&i->mu);
    s->dead = true;
    for (size_t k = 0; k < i->n_subs; k++)
        if (i->subs[k] == s) {
            memmove(&i->subs[k], &i->subs[k + 1], (i->n_subs - k - 1) * sizeof *i->subs);
            i->n_subs--;
            break;
        }
    i->subs_version++;
    while (s->caller && s->caller != kl_thread_self())
        kl_cond_wait(&i->idle, &i->mu);
    kl_unlock(&i->mu);
    sub_unref(s);
    kl_informer_unref(i);
}

void kl_informer_resync(kl_informer *i, kl_subscription *s)
{
    post_for_sub(i, s, job_resync);
}

/* --- reading and indexes ------------------------------------------------------------------------------------------------------------------------ */

bool kl_informer_synced(const kl_informer *i) { return atomic_load(&i->synced); }
const kl_value *kl_informer_lookup(kl_informer *i, const char *key) { return kl_indexer_lookup(i->indexer, key); }
size_t kl_informer_count(kl_informer *i) { return kl_indexer_count(i->indexer); }

kl_status kl_informer_list(kl_informer *i, const kl_query *q, kl_objects *out, kl_err *err)
{
    kl_status st = kl_indexer_list(i->indexer, q, out, err);
    if (st)
        kl_err_prefix(err, "%s", i->resource);
    return st;
}

kl_status kl_informer_add_index_path(kl_informer *i, const char *name, const char *path, kl_err *err)
{
    return kl_indexer_add_path(i->indexer, name, path, err);
}

static void job_fill(kl_informer *i, job *j)
{
    if (!i->stopped)
        kl_indexer_fill(i->indexer);
    if (j->call)                     /* even then: it may free what it was given */
        j->call(j->call_arg);
}

static void job_sweep(kl_informer *i, job *j)
{
    (void)j;
    kl_indexer_sweep(i->indexer);
}

kl_status kl_informer_add_index_fn(kl_informer *i, const char *name, kl_index_fn *fn, void *arg, void (*free_arg)(void *),
                                   void (*ready)(void *), void *ready_arg, kl_err *err)
{
    bool fresh;
    kl_status st = kl_indexer_reserve_fn(i->indexer, name, fn, arg, free_arg, &fresh, err);
    if (st)
        return st;
    /* When another user reserved it, its job runs before ours. */
    job *j = job_new(i, job_fill);
    j->call = ready;
    j->call_arg = ready_arg;
    post_apply(i, j);
    return KL_OK;
}

void kl_informer_drop_index(kl_informer *i, const char *name)
{
    if (kl_indexer_drop(i->indexer, name))
        post_apply(i, job_new(i, job_sweep));
}

/* --- state ---------------------------------------------------------------------------------------------------------------------------------------- */

void kl_informer_stats_get(kl_informer *i, kl_informer_stats *out)
{
    *out = (kl_informer_stats){
        .synced = kl_informer_synced(i), .objects = kl_indexer_count(i->indexer), .bytes = kl_indexer_bytes(i->indexer),
        .events = atomic_load(&i->events), .last_event = atomic_load(&i->last_event), .rv = kl_indexer_rv(i->indexer),
    };
    kl_lock(&i->mu);
    out->parked = i->parked;
    out->state = kl_strdup(i->state);
    out->message = kl_strdup(i->message);
    out->lists = i->counts.lists;
    out->watches = i->counts.watches;
    out->errors = i->counts.errors;
    out->short_watches = i->counts.short_watches;
    out->stalls = i->counts.stalls;
    kl_unlock(&i->mu);
}

void kl_informer_stats_fini(kl_informer_stats *s)
{
    kl_free(s->rv);
    kl_free(s->state);
    kl_free(s->message);
    *s = (kl_informer_stats){0};
}
