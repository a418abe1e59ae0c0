/* own_writes.c - awaited versions, waiting keys, and the progress of caches. */
#include <string.h>

#include "base/locks.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/object.h"
#include "model/time.h"
#include "run/own_impl.h"

kl_own_writes *kl_own_writes_new(
    const char *controller, kl_workqueue *q, kl_clock *clock, kl_controller_metrics *metrics)
{
    kl_own_writes *o = kl_new(kl_own_writes);
    o->controller = controller;
    o->queue = q;
    o->clock = clock;
    o->metrics = metrics;
    kl_mutex_init_as(&o->mu, KL_LOCK_MARKS);
    kl_list_init(&o->places);
    o->marks = kl_map_new();
    return o;
}

void kl_own_writes_free(kl_own_writes *o)
{
    if (!o)
        return;
    kl_map_free(o->marks, NULL); /* empty: without places nothing is owed */
    kl_mutex_fini(&o->mu);
    kl_free(o);
}

/* --- entries and marks -------------------------------------------------------------------- */

static bool is_number(const kl__entry *e) { return e->what == KL__COUNTED || e->what == KL__NUMBERED; }

static void entry_free_locked(kl__entry *e)
{
    if (e->what == KL__COUNTED)
        kl_heap_remove(&e->place->counted[e->part], &e->node);
    else
        kl_list_remove(&e->of_place);
    e->mark->counted -= is_number(e);
    kl_list_remove(&e->of_mark);
    atomic_fetch_sub(&e->place->owes, 1);
    kl_free(e->ns);
    kl_free(e->key);
    kl_free(e->uid);
    kl_free(e->rv);
    kl_free(e->before);
    kl_free(e);
}

static kl__mark *mark_at_locked(kl_own_writes *o, const char *name) KL_REQUIRES(o->mu)
{
    kl__mark *m = kl_map_get(o->marks, name);
    if (m)
        return m;
    m = kl_new(kl__mark);
    m->name = kl_strdup(name);
    kl_list_init(&m->entries);
    kl_list_init(&m->shown);
    kl_map_set(o->marks, name, m);
    atomic_fetch_add(&o->n_marks, 1);
    return m;
}

/* Whether both are of one part of one cache, where only the higher number matters. */
static bool supersedes(const kl__entry *e, const kl__entry *have, const kl__place *p)
{
    bool same_ns = !e->ns || !have->ns ? e->ns == have->ns : !strcmp(e->ns, have->ns);
    return have->what == e->what && have->place == p && have->part == e->part
        && (e->what == KL__COUNTED || same_ns);
}

void kl__own_add_locked(
    kl_own_writes *o, const char *name, kl__place *p, kl__entry *e, uint64_t rv, kl_time until)
{
    kl__mark *m = mark_at_locked(o, name);
    m->until = until;
    for (kl_list *n = m->entries.next; is_number(e) && n != &m->entries; n = n->next) {
        kl__entry *have = KL_CONTAINER(n, kl__entry, of_mark);
        if (!supersedes(e, have, p))
            continue;
        if (e->what == KL__COUNTED && (uint64_t)have->node.when < rv)
            kl_heap_move(&p->counted[e->part], &have->node, (kl_time)rv);
        if (have->number < rv)
            have->number = rv;
        kl_free(have->key);
        have->key = e->key;
        kl_free(e->ns);
        kl_free(e);
        return;
    }
    e->number = rv;
    e->mark = m;
    e->place = p;
    kl_list_init(&e->of_place);
    kl_list_push(&m->entries, &e->of_mark);
    atomic_fetch_add(&p->owes, 1);
    m->counted += is_number(e);
    if (e->what == KL__COUNTED)
        kl_heap_push(&p->counted[e->part], &e->node, (kl_time)rv);
    else
        kl_list_push(&p->others, &e->of_place);
}

static bool exact_shown(const kl__entry *e, const kl_value *now)
{
    const char *rv = now ? kl_object_rv(now) : NULL;
    if (!rv)
        return e->before != NULL;
    return !strcmp(rv, e->rv) || !e->before || strcmp(rv, e->before) != 0;
}

/* The incarnation left the cache, or has the field that the write set. */
static bool gone_or_set(const kl__entry *e, const kl_value *now)
{
    const char *uid = now ? kl_object_uid(now) : NULL;
    return !now || (e->uid && uid && strcmp(uid, e->uid) != 0)
        || (e->what == KL__SET && kl_value_at(now, e->effect->at, e->effect->field, NULL));
}

/* A deletion is checked when all writes are shown: a created and deleted object may never have arrived. */
static bool entry_shown(const kl__entry *e)
{
    kl_informer *i = e->place->informer;
    if (e->what == KL__COUNTED)
        return kl_informer_seen(i, e->part) >= (uint64_t)e->node.when;
    if (kl_informer_changing(i) && !kl_informer_covers(i, e->ns))
        return true; /* the cache holds nothing of that namespace */
    if (e->what == KL__NUMBERED)
        return kl_informer_seen_in(i, e->ns) >= e->number;
    if (e->what == KL__GONE && e->mark->counted)
        return false;
    const kl_value *now = kl_informer_lookup(e->place->informer, e->key);
    bool shown = e->what == KL__EXACT ? exact_shown(e, now) : gone_or_set(e, now);
    kl_value_unref(now);
    return shown;
}

/* Frees the entries that are shown: numbers first, so that deletions are looked at. */
static void mark_look_locked(kl__mark *m)
{
    for (int round = 0; round < 2; round++)
        for (kl_list *n = m->entries.next, *next; n != &m->entries; n = next) {
            kl__entry *e = KL_CONTAINER(n, kl__entry, of_mark);
            next = n->next;
            if (is_number(e) == !round && entry_shown(e))
                entry_free_locked(e);
        }
}

/* Moves a mark without debts from the map to `done`, to be freed. */
static bool mark_settle_locked(kl_own_writes *o, kl__mark *m, kl_list *done) KL_REQUIRES(o->mu)
{
    if (!kl_list_empty(&m->entries))
        return false;
    kl_map_take(o->marks, m->name);
    atomic_fetch_sub(&o->n_marks, 1);
    kl_list_push(done, &m->shown);
    return true;
}

/* Called without the lock: releases the waiting keys of the marks, and frees the marks. */
static void marks_end(kl_own_writes *o, kl_list *done)
{
    kl_time now = kl_clock_now(o->clock);
    for (kl_list *n; (n = kl_list_shift(done));) {
        kl__mark *m = KL_CONTAINER(n, kl__mark, shown);
        for (size_t i = 0; i < m->n_waiting; i++) {
            kl_workqueue_release(o->queue, m->waiting[i], now);
            kl_free(m->waiting[i]);
        }
        kl_free(m->waiting);
        kl_free(m->name);
        kl_free(m);
    }
}

/* --- the caches --------------------------------------------------------------------------- */

static void counted_shown_locked(kl_own_writes *o, kl__place *p, kl_list *done) KL_REQUIRES(o->mu)
{
    for (size_t part = 0; part < kl_informer_parts(p->informer); part++) {
        kl_time reached = (kl_time)kl_informer_seen(p->informer, (int)part);
        for (kl_heap_node *h; (h = kl_heap_peek(&p->counted[part])) && h->when <= reached;) {
            kl__mark *m = KL_CONTAINER(h, kl__entry, node)->mark;
            entry_free_locked(KL_CONTAINER(h, kl__entry, node));
            if (!m->counted)
                mark_look_locked(m);
            mark_settle_locked(o, m, done);
        }
    }
}

static void others_shown_locked(kl_own_writes *o, kl__place *p, bool numbers, kl_list *done)
    KL_REQUIRES(o->mu)
{
    for (kl_list *n = p->others.next, *next; n != &p->others; n = next) {
        kl__entry *e = KL_CONTAINER(n, kl__entry, of_place);
        kl__mark *m = e->mark;
        next = n->next;
        if (is_number(e) != numbers || !entry_shown(e))
            continue;
        entry_free_locked(e);
        mark_settle_locked(o, m, done);
    }
}

static void on_progress(void *arg)
{
    kl__place *p = arg;
    kl_own_writes *o = p->o;
    kl_list done;
    if (!atomic_load(&p->owes))
        return;
    kl_list_init(&done);
    kl_lock(&o->mu);
    counted_shown_locked(o, p, &done);
    others_shown_locked(o, p, true, &done);
    others_shown_locked(o, p, false, &done);
    kl_unlock(&o->mu);
    marks_end(o, &done);
}

static kl__place *place_of_locked(kl_own_writes *o, const kl_informer *i) KL_REQUIRES(o->mu)
{
    for (kl_list *n = o->places.next; n != &o->places; n = n->next)
        if (KL_CONTAINER(n, kl__place, link)->informer == i)
            return KL_CONTAINER(n, kl__place, link);
    return NULL;
}

/* Selectors were checked when the cache was begun with them. */
static void place_select(kl__place *p, const char *labels, const char *fields)
{
    kl_err err = KL_ERR_INIT;
    if (labels && kl_selector_parse(labels, &p->labels, &err))
        p->labels = NULL;
    if (fields && kl_field_selector_parse(fields, &p->fields, &err))
        p->fields = NULL;
    kl_err_fini(&err);
}

void kl_own_writes_watch(
    kl_own_writes *o, kl_informer *i, const kl_resource *r, const char *labels, const char *fields)
{
    kl_lock(&o->mu);
    kl__place *p = place_of_locked(o, i);
    if (p)
        p->users++;
    kl_unlock(&o->mu);
    if (p)
        return;
    p = kl_new(kl__place);
    p->o = o;
    p->informer = kl_informer_ref(i);
    p->resource = r;
    p->users = 1;
    place_select(p, labels, fields);
    p->counted = kl_new_array(kl_heap, kl_informer_parts(i) + 1);
    for (size_t k = 0; k < kl_informer_parts(i); k++)
        kl_heap_init(&p->counted[k]);
    kl_list_init(&p->others);
    kl_lock(&o->mu);
    kl_list_push(&o->places, &p->link);
    kl_unlock(&o->mu);
    p->sub = kl_informer_subscribe(i, &(kl_handler){.on_progress = on_progress, .arg = p});
}

/* Drops all debts of the place, shown or not. */
static void place_forget_locked(kl_own_writes *o, kl__place *p, kl_list *done) KL_REQUIRES(o->mu)
{
    for (size_t k = 0; k < kl_informer_parts(p->informer); k++)
        for (kl_heap_node *h; (h = kl_heap_peek(&p->counted[k]));) {
            kl__mark *m = KL_CONTAINER(h, kl__entry, node)->mark;
            entry_free_locked(KL_CONTAINER(h, kl__entry, node));
            mark_settle_locked(o, m, done);
        }
    while (!kl_list_empty(&p->others)) {
        kl__mark *m = KL_CONTAINER(p->others.next, kl__entry, of_place)->mark;
        entry_free_locked(KL_CONTAINER(p->others.next, kl__entry, of_place));
        mark_settle_locked(o, m, done);
    }
}

void kl_own_writes_unwatch(kl_own_writes *o, kl_informer *i)
{
    kl_list done;
    kl_list_init(&done);
    kl_lock(&o->mu);
    kl__place *p = place_of_locked(o, i);
    bool last = p && !--p->users;
    if (last) {
        kl_list_remove(&p->link);
        place_forget_locked(o, p, &done);
    }
    kl_unlock(&o->mu);
    marks_end(o, &done);
    if (!last)
        return;
    kl_informer_unsubscribe(p->sub); /* waits for a callback, which may want the lock */
    for (size_t k = 0; k < kl_informer_parts(i); k++)
        kl_heap_fini(&p->counted[k]);
    kl_free(p->counted);
    kl_selector_free(p->labels);
    kl_field_selector_free(p->fields);
    kl_informer_unref(p->informer);
    kl_free(p);
}

/* --- who waits ---------------------------------------------------------------------------- */

static char *entry_text(const kl__entry *e)
{
    char *kind = kl_gvk_text(
        e->place->resource->group, e->place->resource->version, e->place->resource->kind);
    char *text = kl_sprintf("%s%s %s", e->what == KL__GONE ? "the deletion of " : "", kind, e->key);
    kl_free(kind);
    return text;
}

static char *mark_text(const kl__mark *m)
{
    return entry_text(KL_CONTAINER(m->entries.next, kl__entry, of_mark));
}

/* Gives up a mark whose time is over. */
static void mark_give_up_locked(kl_own_writes *o, kl__mark *m, const char *key, kl_list *done)
    KL_REQUIRES(o->mu)
{
    char *what = mark_text(m);
    kl_warn("the cache does not show earlier writes yet; running anyway", "controller=%s key=%s waits_for=%s",
        o->controller, key, kl_log_quoted(what));
    kl_free(what);
    while (!kl_list_empty(&m->entries))
        entry_free_locked(KL_CONTAINER(m->entries.next, kl__entry, of_mark));
    mark_settle_locked(o, m, done);
    if (o->metrics)
        kl_metrics_own_writes_timeout(o->metrics);
}

static void mark_wait(kl_own_writes *o, kl__mark *m, const char *key)
{
    if (!m->told && o->metrics)
        kl_metrics_own_writes_wait(o->metrics);
    m->told = true;
    for (size_t i = 0; i < m->n_waiting; i++)
        if (!strcmp(m->waiting[i], key))
            return;
    m->waiting = kl_realloc(m->waiting, (m->n_waiting + 1) * sizeof *m->waiting);
    m->waiting[m->n_waiting++] = kl_strdup(key);
}

bool kl_own_writes_owed(kl_own_writes *o, const char *name, const char *key, kl_time now, kl_time *until)
{
    kl_list done;
    bool owed = false;
    if (!atomic_load(&o->n_marks))
        return false;
    kl_list_init(&done);
    kl_lock(&o->mu);
    kl__mark *m = kl_map_get(o->marks, name);
    if (m)
        mark_look_locked(m);
    if (m && !mark_settle_locked(o, m, &done)) {
        owed = now < m->until;
        *until = m->until;
        if (owed)
            mark_wait(o, m, key);
        else
            mark_give_up_locked(o, m, key, &done);
    }
    kl_unlock(&o->mu);
    marks_end(o, &done);
    return owed;
}

char *kl_own_writes_why(kl_own_writes *o, const char *name)
{
    kl_lock(&o->mu);
    const kl__mark *m = kl_map_get(o->marks, name);
    char *text = m ? mark_text(m) : NULL;
    kl_unlock(&o->mu);
    return text;
}

char *kl_own_writes_first(kl_own_writes *o)
{
    char *text = NULL;
    size_t it = 0;
    const char *name;
    void *v;
    kl_lock(&o->mu);
    while (!text && kl_map_next(o->marks, &it, &name, &v)) {
        const kl__mark *m = v;
        char *what = m->n_waiting ? mark_text(m) : NULL;
        if (what)
            text = kl_sprintf("%s: %s", m->waiting[0], what);
        kl_free(what);
    }
    kl_unlock(&o->mu);
    return text;
}
