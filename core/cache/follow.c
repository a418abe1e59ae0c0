/* follow.c - the watch thread: source callback -> reflector step -> action.
 *
 * One request and one timer are open at a time. The objects of a list are kept aside until its last page has
 * arrived, then passed to the apply context as a whole. */
#include "cache/informer_impl.h"

#include <string.h>
#include "base/log.h"
#include "base/mem.h"
#include "model/object.h"

/* The longest pause that a server may ask for. */
#define RETRY_AFTER_MAX KL_SECONDS(24 * 3600)

/* The kind of a list of metadata only. */
#define METADATA_LIST "PartialObjectMetadataList"

static void show_page(kl__follower *f) { atomic_store_explicit(&f->coming, f->n_page, memory_order_relaxed); }

void kl__follow_drop_page(kl__follower *f)
{
    for (size_t k = 0; k < f->n_page; k++)
        kl_value_unref(f->page[k]);
    kl_free(f->page);
    f->page = NULL;
    f->n_page = f->cap_page = f->page_kept = 0;
    kl_map_free(f->page_of, NULL);
    f->page_of = NULL;
    kl_free(f->last_key);
    f->last_key = NULL;
    show_page(f);
}

/* Drops the objects of an aborted page: it will be requested again. */
static void drop_part(kl__follower *f)
{
    while (f->n_page > f->page_kept)
        kl_value_unref(f->page[--f->n_page]);
    show_page(f);
}

static void collect(kl__follower *f, const kl_value *o)
{
    if (f->n_page == f->cap_page)
        f->page = kl_realloc(f->page, (f->cap_page = f->cap_page ? 2 * f->cap_page : 64) * sizeof *f->page);
    f->page[f->n_page++] = o;
    show_page(f);
}

/* --- initial events: ADDED for existing objects, perhaps changes, then the bookmark -------- */

/* Needed from the first event that is not an ADDED: the place of each object in the page. */
static void page_index(kl__follower *f)
{
    char key[KL_KEY_MAX];
    f->page_of = kl_map_new();
    for (size_t k = 0; k < f->n_page; k++)
        if (kl_indexer_key(f->page[k], key))
            kl_map_set(f->page_of, key, (void *)(uintptr_t)(k + 1));
}

static void collect_initial(kl__follower *f, kl_event_type type, const kl_value *o, const char *key)
{
    if (type != KL_ADDED && !f->page_of)
        page_index(f);
    size_t at = f->page_of ? (uintptr_t)kl_map_get(f->page_of, key) : 0;
    if (at && type == KL_DELETED) { /* the last one moves into its place */
        char last[KL_KEY_MAX];
        kl_map_take(f->page_of, key);
        kl_value_unref(f->page[at - 1]);
        f->page[at - 1] = f->page[--f->n_page];
        if (at <= f->n_page && kl_indexer_key(f->page[at - 1], last))
            kl_map_set(f->page_of, last, (void *)(uintptr_t)at);
    } else if (at) {
        kl_value_unref(f->page[at - 1]);
        f->page[at - 1] = kl_value_ref(o);
    } else if (type != KL_DELETED) {
        collect(f, kl_value_ref(o));
        if (f->page_of)
            kl_map_set(f->page_of, key, (void *)(uintptr_t)f->n_page);
    }
}

/* --- pages: in key order, as in etcd; objects out of order are looked up ------------------- */

static bool is_behind_all(kl__follower *f, const char *key)
{
    if (f->last_key && strcmp(key, f->last_key) <= 0)
        return false;
    kl_free(f->last_key);
    f->last_key = kl_strdup(key);
    return true;
}

/* Whether the page that has just arrived has an item that earlier pages did not have. */
static bool page_is_news(kl__follower *f)
{
    char key[KL_KEY_MAX];
    bool news = false;
    size_t came = f->n_page;
    if (came == f->page_kept)
        return false;
    if (!f->page_of && kl_indexer_key(f->page[came - 1], key) && is_behind_all(f, key))
        return true;
    if (!f->page_of) {
        f->n_page = f->page_kept;
        page_index(f);
        f->n_page = came;
    }
    for (size_t k = f->page_kept; k < came; k++)
        if (kl_indexer_key(f->page[k], key)) {
            news |= !kl_map_get(f->page_of, key);
            kl_map_set(f->page_of, key, (void *)(uintptr_t)(k + 1));
        }
    return news;
}

void kl__follow_step(kl__follower *f, const kl_reflector_input *in);

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
    kl__follower *f = arg;
    const char *kind = kl_object_kind(object);
    if (kind && f->i->kind && strcmp(kind, f->i->kind)) {
        kl_fail(err, KL_ESERVER, "the list of %s contains a %.80s: the server's answer is not a list of %s",
            f->i->resource, kind, f->i->kind);
        kl_value_unref(object);
        return KL_ESERVER;
    }
    f->typed = kind != NULL;
    const kl_value *o = kl_object_with_type(object, f->i->api_version, f->i->kind);
    kl_value_unref(object);
    char key[KL_KEY_MAX];
    if (!kl_indexer_key(o, key)) {
        kl_value_unref(o);
        return kl_fail(err, KL_ESERVER,
            "the list of %s contains an item without a usable metadata.name: the server's answer is not a "
            "list of objects",
            f->i->resource);
    }
    collect(f, o);
    return KL_OK;
}

static bool is_list(const char *kind)
{
    size_t n = kind ? strlen(kind) : 0;
    return n > 4 && !strcmp(kind + n - 4, "List");
}

/* The kind and "List": the name of all lists, except for CRDs with another listKind. */
static bool is_list_of(const kl__follower *f, const char *kind)
{
    size_t n = f->i->kind ? strlen(f->i->kind) : 0;
    return !f->i->kind || (is_list(kind) && n + 4 == strlen(kind) && !strncmp(kind, f->i->kind, n));
}

/* A list that replaces the store must be of this kind: an empty list of another kind would empty the store. A
 * custom list kind is accepted when the items have their kind, or while the store is empty; then it is
 * remembered. */
static kl_status list_check(kl__follower *f, const kl_value *envelope, kl_err *err)
{
    const char *kind = kl_value_str_at(envelope, "kind", NULL),
               *version = kl_value_str_at(envelope, "apiVersion", NULL);
    if (!is_list(kind))
        return kl_fail(err, KL_ESERVER, "listing %s returned a %s where a list was expected", f->i->resource,
            kind ? kind : "value without kind");
    if (!strcmp(kind, METADATA_LIST) || (is_list_of(f, kind) && !f->i->api_version))
        return KL_OK;
    if (f->i->api_version && (!version || strcmp(version, f->i->api_version)))
        return kl_fail(err, KL_ESERVER, "listing %s returned a %s of %s where %s was expected",
            f->i->resource, kind, version ? version : "no apiVersion", f->i->api_version);
    if (is_list_of(f, kind))
        return KL_OK;
    bool known = f->list_kind && !strcmp(kind, f->list_kind);
    bool believed = f->n_page ? f->typed : !atomic_load(&f->listed);
    if (!known && (f->list_kind || !believed))
        return kl_fail(err, KL_ESERVER, "listing %s returned a %s where a list of %s was expected",
            f->i->resource, kind, f->i->kind);
    if (!known)
        f->list_kind = kl_strdup(kind);
    return KL_OK;
}

/* Records that the server has sent data about the kind. */
static kl_time heard(kl__follower *f)
{
    kl_time now = kl_clock_now(f->i->clock);
    atomic_store_explicit(&f->i->last_event, now, memory_order_relaxed);
    return now;
}

static void list_done(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    kl__follower *f = arg;
    f->request = 0;
    kl_err e = KL_ERR_INIT;
    if (st)
        e = error_of_done(st, code, err);
    else {
        (void)heard(f);
        st = list_check(f, envelope, &e);
    }
    if (st)
        kl__follow_step(f, &(kl_reflector_input){.kind = KL_REFLECTOR_LIST_FAILED, .err = &e});
    else
        kl__follow_step(f,
            &(kl_reflector_input){
                .kind = KL_REFLECTOR_PAGE,
                .rv = kl_value_str_at(envelope, "metadata", "resourceVersion", NULL),
                .continue_token = kl_value_str_at(envelope, "metadata", "continue", NULL),
                .barren = !page_is_news(f),
            });
    kl_err_fini(&e);
}

static const kl_value *last_known(void *arg, const char *ns, size_t nslen, const char *name, size_t namelen)
{
    kl__follower *f = arg;
    char key[KL_KEY_MAX];
    if (nslen + namelen + 2 > sizeof key)
        return NULL;
    if (nslen) {
        memcpy(key, ns, nslen);
        key[nslen++] = '/';
    }
    memcpy(key + nslen, name, namelen);
    key[nslen + namelen] = '\0';
    return kl_indexer_lookup(f->i->indexer, key);
}

/* --- objects that are too large ----------------------------------------------------------- */

/* Skips an object that is too large. Returns its last cached state, which stays, as a new reference, or
 * NULL. */
static const kl_value *skip_one(kl__follower *f, const kl_source_skipped *x)
{
    const kl_value *known = x->namelen ? last_known(f, x->ns, x->nslen, x->name, x->namelen) : NULL;
    atomic_fetch_add_explicit(&f->i->skipped, 1, memory_order_relaxed);
    kl_warn("an object is too large and is left out", "resource=%s cached=%s error=%s", f->i->resource,
        known ? "\"its last state that fit\"" : "no", kl_log_quoted(x->message));
    return known;
}

static kl_status list_skipped(void *arg, const kl_source_skipped *x, kl_err *err)
{
    kl__follower *f = arg;
    (void)err;
    const kl_value *known = skip_one(f, x);
    if (known)
        collect(f, known);
    return KL_OK;
}

/* A deleted object must leave the store, also when its last state is too large: then a new list removes
 * it. */
static kl_status watch_skipped(void *arg, const kl_source_skipped *x, kl_err *err)
{
    kl__follower *f = arg;
    kl_event_type type;
    char key[KL_KEY_MAX];
    const kl_value *known = skip_one(f, x);
    kl_status st = KL_OK;
    if (!kl_event_parse(x->type, &type))
        type = KL_MODIFIED;
    if (known && f->streaming && kl_indexer_key(known, key))
        collect_initial(f, type, known, key);
    else if (known && type == KL_DELETED)
        st = kl_fail(err, KL_EGONE, "%s, and was deleted: a list follows", x->message);
    kl_value_unref(known);
    if (!st) /* the watch is alive; the version moves with the next event */
        kl__follow_step(f, &(kl_reflector_input){.kind = KL_REFLECTOR_FRAME, .type = KL_ADDED});
    return st;
}

static void watch_opened(void *arg)
{
    (void)heard(arg);
    kl__follow_step(arg, &(kl_reflector_input){.kind = KL_REFLECTOR_OPENED});
}

static kl_status status_of(int64_t code, const char *reason)
{
    if (code == 410 || (reason && (!strcmp(reason, "Expired") || !strcmp(reason, "Gone"))))
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
static void stream_error_set(kl__follower *f, const kl_value *status)
{
    kl_err *e = &f->stream_error;
    int64_t code = kl_value_int_at(status, 0, "code", NULL);
    const char *reason = kl_value_str_at(status, "reason", NULL),
               *message = kl_value_str_at(status, "message", NULL);
    kl_err_fini(e);
    kl_fail(e, status_of(code, reason), "the watch of %s was ended by the server: %s", f->i->resource,
        message      ? message
            : reason ? reason
                     : "no reason given");
    e->http_code = (int)code;
    e->reason = kl_strdup(reason);
    const kl_value *details = kl_value_at(status, "details", NULL);
    if (details)
        e->details = kl_value_to_json(details);
    e->retry_after_ns = kl_seconds_within(
        kl_value_int_at(details, 0, "retryAfterSeconds", NULL), RETRY_AFTER_MAX);
    f->has_stream_error = true;
}

/* The annotation and its value as KEP-3157 has them: any other value means nothing. */
static bool ends_initial_events(const kl_value *bookmark)
{
    const char *v = kl_value_str_at(bookmark, "metadata", "annotations", "k8s.io/initial-events-end", NULL);
    return v && !strcmp(v, "true");
}

static void stream_event(kl__follower *f, kl_event_type type, const kl_value *o, const char *key)
{
    const kl_value *typed = kl_object_with_type(o, f->i->api_version, f->i->kind);
    if (type != KL_BOOKMARK)
        collect_initial(f, type, typed, key);
    kl_value_unref(typed);
}

static void watch_apply(kl__follower *f, kl_event_type type, const kl_value *o, const char *rv)
{
    kl__job *j = kl__job_of(f, type == KL_BOOKMARK ? kl__apply_rv : kl__apply_event);
    j->type = type;
    j->object = type == KL_BOOKMARK ? NULL : kl_object_with_type(o, f->i->api_version, f->i->kind);
    j->rv = type == KL_BOOKMARK ? kl_strdup(rv) : NULL;
    atomic_store(&f->i->bringing, f->source.lulls ? kl_thread_self() : 0);
    kl__job_apply(f->i, j);
    atomic_store(&f->i->bringing, 0);
}

static kl_status watch_event(void *arg, const char *word, const kl_value *o, kl_err *err)
{
    kl__follower *f = arg;
    kl_event_type type;
    const char *kind = kl_object_kind(o);
    if (!kl_event_parse(word, &type)) {
        kl_warn("unknown watch event skipped", "resource=%s type=%.40s", f->i->resource, word);
        kl_value_unref(o);
        return KL_OK;
    }
    if (type == KL_ERROR) { /* done follows, and tells the reflector */
        stream_error_set(f, o);
        kl_value_unref(o);
        if (err)
            kl_err_copy(err, &f->stream_error);
        return f->stream_error.status;
    }
    char key[KL_KEY_MAX];
    if ((f->i->kind && kind && strcmp(kind, f->i->kind))
        || (type != KL_BOOKMARK && !kl_indexer_key(o, key))) {
        kl_warn(
            "foreign object in a watch skipped", "resource=%s kind=%.80s", f->i->resource, kind ? kind : "");
        kl_value_unref(o);
        return KL_OK;
    }
    kl_time now = heard(f);
    if (type != KL_BOOKMARK)
        atomic_store_explicit(&f->i->last_change, now, memory_order_relaxed);
    kl_reflector_input in = {.kind = KL_REFLECTOR_FRAME, .type = type, .rv = kl_object_rv(o)};
    if (type == KL_BOOKMARK)
        in.initial_end = f->streaming && ends_initial_events(o);
    else if (!f->streaming)
        atomic_fetch_add_explicit(&f->i->events, 1, memory_order_relaxed);
    if (f->streaming)
        stream_event(f, type, o, key);
    else
        watch_apply(f, type, o, in.rv);
    kl__follow_step(f, &in);
    kl_value_unref(o);
    return KL_OK;
}

static void watch_lull(void *arg)
{
    kl__follower *f = arg;
    if (f->i->owes_lull) {
        f->i->owes_lull = false;
        kl__job_lull(f->i);
    }
}

static void watch_done(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    (void)envelope;
    kl__follower *f = arg;
    f->request = 0;
    watch_lull(f);
    kl_err e = KL_ERR_INIT;
    kl_reflector_input_kind kind = KL_REFLECTOR_ENDED;
    if (f->has_stream_error) {
        kl_err_move(&e, &f->stream_error);
        f->has_stream_error = false;
        kind = KL_REFLECTOR_STREAM_ERROR;
    } else if (st) {
        e = error_of_done(st, code, err);
    }
    kl__follow_step(f, &(kl_reflector_input){.kind = kind, .err = e.status ? &e : NULL});
    kl_err_fini(&e);
}

static void timer_fired(void *arg)
{
    kl__follower *f = arg;
    f->timer = 0;
    kl__follow_step(f, &(kl_reflector_input){.kind = KL_REFLECTOR_TIMER});
}

static void timer_clear(kl__follower *f)
{
    if (f->timer)
        f->source.timer_cancel(f->source.self, f->timer);
    f->timer = 0;
}

/* A timer that fires early does no harm, so the one that runs is kept while the end only moves away. */
static void timer_set(kl__follower *f, kl_time until)
{
    if (until == KL_NEVER) {
        timer_clear(f);
        return;
    }
    if (f->timer && f->timer_at <= until)
        return;
    timer_clear(f);
    kl_time now = kl_clock_now(f->i->clock);
    f->timer_at = until;
    f->timer = f->source.timer(f->source.self, until > now ? until - now : 0, timer_fired, f);
}

static void close_request(kl__follower *f)
{
    uint64_t open = f->request;
    f->request = 0;
    watch_lull(f);
    if (open)
        f->source.cancel(f->source.self, open);
    kl_err_fini(&f->stream_error);
    f->has_stream_error = false;
}

static void replace_store(kl__follower *f)
{
    kl__job *j = kl__job_of(f, kl__apply_replace);
    j->page = f->page;
    j->n_page = f->n_page;
    j->rv = kl_strdup(kl_reflector_rv(f->reflector));
    f->page = NULL;
    f->n_page = 0;
    kl__follow_drop_page(f);
    f->streaming = false;
    kl_debug("listed", "resource=%s objects=%zu rv=%s", f->i->resource, j->n_page, j->rv);
    kl__job_apply(f->i, j);
}

void kl__follow_perform(kl__follower *f, const kl_reflector_action *a)
{
    static const kl_source_sink list_sink = {.item = list_item, .done = list_done, .skipped = list_skipped};
    static const kl_source_sink watch_sink = {.event = watch_event,
        .lull = watch_lull,
        .opened = watch_opened,
        .done = watch_done,
        .skipped = watch_skipped};
    kl_source_sink sink = a->what == KL_REFLECTOR_LIST ? list_sink : watch_sink;
    sink.arg = f;
    if (a->complete)
        replace_store(f);
    if (a->what == KL_REFLECTOR_WATCH || kl_indexer_count(f->i->indexer))
        /* the decoder reuses the nodes of unchanged parts */
        sink.known = last_known;
    if (a->what != KL_REFLECTOR_GO_ON) {
        close_request(f);
        timer_clear(f);
        if (a->keep)
            drop_part(f);
        else if (a->what != KL_REFLECTOR_LIST || !a->list.continue_token)
            kl__follow_drop_page(f);
        f->page_kept = f->n_page; /* the page that the continue token belongs to is complete */
        f->streaming = a->what == KL_REFLECTOR_WATCH && a->watch.initial;
    }
    uint64_t turn = a->what == KL_REFLECTOR_GO_ON ? f->turn : ++f->turn, request = 0;
    kl_list_request list = a->list;
    list.api_version = f->i->api_version;
    list.kind = f->i->kind;
    if (a->what == KL_REFLECTOR_LIST)
        request = f->source.list(f->source.self, &list, &sink);
    else if (a->what == KL_REFLECTOR_WATCH)
        request = f->source.watch(f->source.self, &a->watch, &sink);
    if (turn != f->turn)
        /* the request failed at once, and the failure was already handled */
        return;
    if (request)
        f->request = request;
    timer_set(f, a->until);
}

void kl__follow_stop(kl__follower *f)
{
    kl_reflector_action a = kl_reflector_step(
        f->reflector, &(kl_reflector_input){.kind = KL_REFLECTOR_STOP}, kl_clock_now(f->i->clock));
    kl__follow_perform(f, &a);
}

/* Publishes the state for other threads. */
void kl__follow_publish(kl__follower *f)
{
    kl_reflector *r = f->reflector;
    char *message = kl_strdup(kl_reflector_message(r));
    kl_lock(&f->i->mu);
    char *old = f->message;
    bool news = f->parked != kl_reflector_parked(r) || !old != !message || (old && strcmp(old, message))
        || f->counts.errors != kl_reflector_counters(r)->errors;
    f->state = kl_reflector_state(r);
    f->message = message;
    f->failure = kl_reflector_failure(r);
    f->parked = kl_reflector_parked(r);
    f->counts = *kl_reflector_counters(r);
    kl_unlock(&f->i->mu);
    kl_free(old);
    if (news && f->i->on_trouble)
        f->i->on_trouble(f->i->trouble_arg);
}

static void log_trouble(const kl__follower *f, const kl_err *err, kl_time wait)
{
    char text[512];
    kl_warn(kl_reflector_parked(f->reflector) ? "informer is parked" : "list or watch failed",
        "resource=%s namespace=%s next=%s in=%.1fs error=%s", f->i->resource, f->ns ? f->ns : "",
        kl_reflector_state(f->reflector), (double)wait / (double)KL_SECONDS(1),
        kl_log_quote(err->message, text, sizeof text));
}

static void log_fallback(const kl__follower *f, const kl_err *err)
{
    char text[512];
    kl_info("this watch sent no initial events; falling back to a list", "resource=%s namespace=%s error=%s",
        f->i->resource, f->ns ? f->ns : "",
        kl_log_quote(err ? kl_err_message(err) : "the server was silent", text, sizeof text));
}

void kl__follow_step(kl__follower *f, const kl_reflector_input *in)
{
    if (!f->i->running)
        return;
    kl_time now = kl_clock_now(f->i->clock);
    bool troubled = kl_reflector_message(f->reflector) != NULL;
    uint64_t fallbacks = kl_reflector_counters(f->reflector)->fallbacks;
    kl_reflector_action a = kl_reflector_step(f->reflector, in, now);
    if (in->kind != KL_REFLECTOR_FRAME || troubled)
        kl__follow_publish(f);
    if (kl_reflector_counters(f->reflector)->fallbacks != fallbacks)
        log_fallback(f, in->err);
    else if (in->kind == KL_REFLECTOR_PAGE && a.what == KL_REFLECTOR_WAIT)
        kl_warn("a list never ends", "resource=%s namespace=%s in=%.1fs error=%s", f->i->resource,
            f->ns ? f->ns : "", (double)(a.until - now) / (double)KL_SECONDS(1),
            kl_log_quoted(kl_reflector_message(f->reflector)));
    else if (in->err && in->err->status)
        log_trouble(f, in->err, a.what == KL_REFLECTOR_WAIT ? a.until - now : 0);
    kl__follow_perform(f, &a);
}
