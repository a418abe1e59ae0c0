/* informers.c - the shared informers of one client. A member is found by its selection until its last
 * release; its memory stays until the watch thread has finished. */
#include "informers/informers_impl.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/texts.h"
#include "informers/source.h"

#define MAX_OBJECT_DEFAULT ((size_t)16 << 20)

kl_informers *kl_informers_new(const kl_informers_options *o)
{
    kl_informers *f = kl_new(kl_informers);
    f->o = *o;
    if (!f->o.clock)
        f->o.clock = kl_clock_real();
    if (!f->o.max_object)
        f->o.max_object = MAX_OBJECT_DEFAULT;
    kl__members_news_init(f);
    kl__registry_init(&f->reg);
    return f;
}

static void member_free_locked(kl_informers *f, kl__member *m) KL_REQUIRES(f->reg.mu)
{
    kl_informer_unref(m->informer);
    kl__registry_drop_locked(&f->reg, &m->entry);
    kl_free(m);
}

/* --- what the watch thread says ----------------------------------------------------------- */

static void on_synced(void *arg) { kl__registry_tell(&((kl__member *)arg)->set->reg); }

static void on_trouble(void *arg)
{
    kl__member *m = arg;
    kl__members_trouble(m);
    if (m->set->o.on_trouble && !m->entry.hidden)
        m->set->o.on_trouble(m->set->o.arg, m->informer);
}

static void on_stopped(void *arg)
{
    kl__member *m = arg;
    kl_informers *f = m->set;
    if (m->entry.hidden)
        kl__news_quiet(&f->news);
    kl_lock(&f->reg.mu);
    m->over = true;
    kl_cond_broadcast(&f->reg.cond);
    kl_unlock(&f->reg.mu);
}

/* --- coming and going --------------------------------------------------------------------- */

static void reap_locked(kl_informers *f) KL_REQUIRES(f->reg.mu)
{
    for (kl__entry *e = f->reg.entries, *next; e; e = next) {
        kl__member *m = kl__member_of(e);
        next = e->next;
        if (m->over && !e->users)
            member_free_locked(f, m);
    }
}

/* Only equal selections share an informer: a script must not see objects or fields that it did not select. */
static bool fits(const kl__entry *e, const kl__scope *scope) { return kl__scope_equal(&e->scope, scope); }

static char *text_copy(const char *text) { return text && *text ? kl_strdup(text) : NULL; }

static kl__scope scope_of(const kl_informer_want *w)
{
    char *const ns[] = {(char *)w->ns, NULL};
    return (kl__scope){.keep = kl_projection_ref(w->keep),
        .namespaces = w->ns && *w->ns ? kl_texts_copy(ns) : NULL,
        .labels = text_copy(w->labels),
        .fields = text_copy(w->fields)};
}

kl__member *kl__member_new_locked(
    kl_informers *f, const kl_informer_want *w, const kl_gvk *g, const char *label, const kl_handler *handler)
{
    kl__scope scope = scope_of(w);
    kl__member *m = kl_new(kl__member);
    m->set = f;
    kl__registry_add_locked(&f->reg, &m->entry, w->kind, label, &scope);
    char *api_version = kl_api_version(g->group, g->version);
    kl_informer_options o = {.clock = f->o.clock,
        .resource = w->kind,
        .api_version = api_version,
        .kind = g->kind,
        .namespace_ = w->ns,
        .seed = kl_hash(label, strlen(label)),
        .stream = f->o.stream && kl__scope_streams(&m->entry.scope),
        .on_trouble = on_trouble,
        .trouble_arg = m};
    kl_client_source(&(kl_client_source_options){.client = f->o.client,
                         .kind = w->kind,
                         .ns = w->ns,
                         .labels = w->labels,
                         .fields = w->fields,
                         .max_object = f->o.max_object,
                         .keep = w->keep},
        &o.source);
    m->informer = kl_informer_new(&o);
    kl_handler h = *handler;
    h.arg = m;
    m->sub = kl_informer_subscribe(m->informer, &h);
    kl_free(api_version);
    return m;
}

kl_status kl_informers_acquire(kl_informers *f, const kl_informer_want *w, kl_informer **out, kl_err *err)
{
    kl_gvk g;
    kl_status st = kl_gvk_parse(w->kind, &g, err);
    if (st)
        return st;
    if (!*g.version) {
        kl_gvk_fini(&g);
        return kl_fail(err, KL_EINVAL,
            "informers: \"%s\" lacks its version; write \"v1/Pod\" or \"group/version/Kind\"", w->kind);
    }
    char *label = kl_sprintf("%s\n%s\n%s\n%s", w->kind, w->ns ? w->ns : "", w->labels ? w->labels : "",
        w->fields ? w->fields : "");
    kl__scope scope = scope_of(w);
    kl_lock(&f->reg.mu);
    reap_locked(f);
    bool stopped = f->stopped;
    kl__entry *e = stopped ? NULL : kl__registry_join_locked(&f->reg, w->kind, &scope, fits);
    kl__member *m = e ? kl__member_of(e)
        : stopped     ? NULL
                      : kl__member_new_locked(f, w, &g, label, &(kl_handler){.on_synced = on_synced});
    kl_unlock(&f->reg.mu);
    kl__scope_fini(&scope);
    kl_free(label);
    kl_gvk_fini(&g);
    if (stopped)
        return kl_fail(err, KL_EINVAL, "informers: they were shut down; create new ones");
    *out = m->informer;
    return KL_OK;
}

/* Called without the lock: unsubscribing waits for the subscription's callback, which takes the lock. */
static void member_stop(kl__member *m, kl_subscription *sub)
{
    kl_informer_unsubscribe(sub);
    kl_informer_stop(m->informer, on_stopped, m);
}

void kl_informers_release(kl_informers *f, kl_informer *i)
{
    kl__member *last = NULL;
    kl_subscription *sub = NULL;
    bool others = false;
    kl_lock(&f->reg.mu);
    for (kl__entry *e = f->reg.entries; e; e = e->next) {
        kl__member *m = kl__member_of(e);
        if (m->informer == i && m->entry.users) {
            if (!--m->entry.users && !m->stopping) {
                last = m;
                m->stopping = true;
                sub = m->sub;
                m->sub = NULL;
            }
            break;
        }
    }
    for (kl__entry *e = f->reg.entries; e; e = e->next)
        others |= e->users && !e->hidden;
    reap_locked(f);
    kl_unlock(&f->reg.mu);
    if (last)
        member_stop(last, sub);
    if (!others)
        kl__members_news_end(f);
}

static kl__member *running_locked(const kl_informers *f, bool (*which)(const kl__member *m))
    KL_REQUIRES(f->reg.mu)
{
    for (kl__entry *e = f->reg.entries; e; e = e->next) {
        kl__member *m = kl__member_of(e);
        if (!m->stopping && (!which || which(m)))
            return m;
    }
    return NULL;
}

void kl__members_stop(kl_informers *f, bool (*which)(const kl__member *m))
{
    kl_lock(&f->reg.mu);
    for (kl__member *m; (m = running_locked(f, which));) {
        m->stopping = true;
        if (m->entry.hidden)
            m->entry.users = 0; /* no other thread refers to a hidden member */
        kl_subscription *sub = m->sub;
        m->sub = NULL;
        kl_informer *i = kl_informer_ref(m->informer);
        kl_unlock(&f->reg.mu);
        kl_informer_unsubscribe(sub);
        kl_informer_stop(i, on_stopped, m); /* only posts: on_stopped runs later */
        kl_informer_unref(i);
        kl_lock(&f->reg.mu);
    }
    kl_unlock(&f->reg.mu);
}

/* --- all of them -------------------------------------------------------------------------- */

void kl_informers_start(kl_informers *f)
{
    kl_lock(&f->reg.mu);
    for (kl__entry *e = f->reg.entries; e; e = e->next) {
        kl__member *m = kl__member_of(e);
        if (!m->started && !m->stopping) {
            m->started = true;
            kl_informer_start(m->informer); /* posts; never waits */
        }
    }
    kl_unlock(&f->reg.mu);
}

static bool synced_locked(kl_informers *f) KL_REQUIRES(f->reg.mu)
{
    for (kl__entry *e = f->reg.entries; e; e = e->next) {
        kl__member *m = kl__member_of(e);
        if (m->started && !m->stopping && !m->entry.hidden && !kl_informer_synced(m->informer))
            return false;
    }
    return !f->stopped;
}

bool kl_informers_wait(kl_informers *f, kl_time deadline)
{
    kl_lock(&f->reg.mu);
    while (!synced_locked(f) && !f->stopped && kl_cond_wait_until(&f->reg.cond, &f->reg.mu, deadline))
        continue;
    bool synced = synced_locked(f);
    kl_unlock(&f->reg.mu);
    return synced;
}

static bool over_locked(const kl_informers *f) KL_REQUIRES(f->reg.mu)
{
    for (kl__entry *e = f->reg.entries; e; e = e->next)
        if (!kl__member_of(e)->over)
            return false;
    return true;
}

void kl_informers_stop(kl_informers *f)
{
    kl_lock(&f->reg.mu);
    f->stopped = true;
    kl_unlock(&f->reg.mu);
    kl__members_stop(f, NULL);
    kl_lock(&f->reg.mu);
    while (!over_locked(f))
        kl_cond_wait(&f->reg.cond, &f->reg.mu);
    kl_cond_broadcast(&f->reg.cond);
    kl_unlock(&f->reg.mu);
}

void kl_informers_free(kl_informers *f)
{
    if (!f)
        return;
    kl_informers_stop(f);
    kl_lock(&f->reg.mu);
    while (f->reg.entries)
        member_free_locked(f, kl__member_of(f->reg.entries));
    kl_unlock(&f->reg.mu);
    kl__registry_fini(&f->reg);
    kl_free(f);
}
