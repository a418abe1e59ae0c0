/* handlers.c - calls subscribers, and never calls one that has unsubscribed.
 *
 * The apply context walks over its own list of subscriptions, brought up to date between rounds, so they
 * may come and go at any time. Around each callback the subscription is marked with the calling thread:
 * unsubscribe waits for that mark to go, unless it is its own. */
#include "cache/informer_impl.h"

#include <string.h>
#include "base/mem.h"

void kl__subscription_unref(kl_subscription *s)
{
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
        kl_free(s);
}

/* Marks the callback as running, so that unsubscribe can wait for it; false when it has unsubscribed. */
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

static void tell(kl_informer *i, kl_subscription *s, kl_event_type type, const kl_value *old,
    const kl_value *now, unsigned flags)
{
    if (!s->handler.on_event || !enter(i, s))
        return;
    s->handler.on_event(s->handler.arg, type, old, now, flags);
    s->told = true;
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

/* Updates the apply context's own list of subscriptions, which changes only here: handlers may come and go
 * while it walks over the list. */
void kl__handlers_refresh(kl_informer *i)
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
        kl__subscription_unref(old[k]);
    kl_free(old);
}

void kl__handlers_tell(
    kl_informer *i, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    for (size_t k = 0; k < i->n_active; k++)
        if (i->active[k]->active)
            tell(i, i->active[k], type, old, now, flags);
}

void kl__handlers_tell_synced(kl_informer *i)
{
    for (size_t k = 0; k < i->n_active; k++)
        if (i->active[k]->active)
            tell_synced(i, i->active[k]);
}

static void tell_progress(kl_informer *i)
{
    kl__handlers_refresh(i);
    for (size_t k = 0; k < i->n_active; k++)
        if (i->active[k]->handler.on_progress && enter(i, i->active[k])) {
            i->active[k]->handler.on_progress(i->active[k]->handler.arg);
            leave(i, i->active[k]);
        }
}

void kl__handlers_lull(kl_informer *i)
{
    if (i->moved && !i->stopped)
        tell_progress(i);
    i->moved = false;
    for (size_t k = 0; k < i->n_active; k++) {
        kl_subscription *s = i->active[k];
        if (!s->told)
            continue;
        s->told = false;
        if (s->handler.on_lull && enter(i, s)) {
            s->handler.on_lull(s->handler.arg);
            leave(i, s);
        }
    }
}

/* --- coming and going --------------------------------------------------------------------- */

/* Calls one handler for all existing objects. */
static void tell_all(kl_informer *i, kl_subscription *s, kl_event_type type, unsigned flags)
{
    kl_objects all;
    if (kl_indexer_list(i->indexer, NULL, &all, NULL))
        return;
    for (size_t k = 0; k < all.len; k++)
        tell(i, s, type, type == KL_MODIFIED ? all.v[k] : NULL, all.v[k], flags);
    kl_objects_fini(&all);
}

static void job_activate(kl_informer *i, kl__job *j)
{
    kl_subscription *s = j->sub;
    if (!i->stopped) {
        s->active = true;
        if (s->handler.on_event)
            tell_all(i, s, KL_ADDED, KL_INITIAL);
        if (atomic_load(&i->synced))
            tell_synced(i, s);
    }
    kl__subscription_unref(s);
}

static void job_resync(kl_informer *i, kl__job *j)
{
    if (!i->stopped && j->sub->active)
        tell_all(i, j->sub, KL_MODIFIED, KL_RESYNC);
    kl__subscription_unref(j->sub);
}

static void post_for_sub(kl_informer *i, kl_subscription *s, void (*fn)(kl_informer *, kl__job *))
{
    kl__job *j = kl__job_new(i, fn);
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    j->sub = s;
    kl__job_post(i, j);
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
    kl__subscription_unref(s);
    kl_informer_unref(i);
}

void kl_informer_resync(kl_informer *i, kl_subscription *s) { post_for_sub(i, s, job_resync); }
