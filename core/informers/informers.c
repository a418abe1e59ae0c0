/* informers.c - the shared informers of one client. A member is known under what it was wanted for, until
 * nobody wants it; its memory stays until the watch thread has said goodbye. */
#include "informers/informers_impl.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
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
    f->news_given_up = -1;
    kl_mutex_init(&f->mu);
    kl_cond_init(&f->cond);
    return f;
}

static void member_free(kl__member *m)
{
    kl_informer_unref(m->informer);
    kl_projection_unref(m->keep);
    kl_free(m->label);
    kl_free(m->kind);
    kl_free(m);
}

/* --- what the watch thread says ----------------------------------------------------------- */

static void on_synced(void *arg)
{
    kl_informers *f = ((kl__member *)arg)->set;
    kl_lock(&f->mu);
    kl_cond_broadcast(&f->cond);
    kl_unlock(&f->mu);
}

static void on_trouble(void *arg)
{
    kl__member *m = arg;
    kl__members_trouble(m);
    if (m->set->o.on_trouble && !m->is_news)
        m->set->o.on_trouble(m->set->o.arg, m->informer);
}

static void on_stopped(void *arg)
{
    kl__member *m = arg;
    kl_informers *f = m->set;
    if (m->is_news)
        kl__members_news_over(f);
    kl_lock(&f->mu);
    m->over = true;
    kl_cond_broadcast(&f->cond);
    kl_unlock(&f->mu);
}

/* --- coming and going --------------------------------------------------------------------- */

static void reap_locked(kl_informers *f) KL_REQUIRES(f->mu);
static void reap_locked(kl_informers *f)
{
    for (kl__member **at = &f->members, *m; (m = *at);) {
        if (m->over && !m->users) {
            *at = m->next;
            member_free(m);
        } else {
            at = &m->next;
        }
    }
}

static kl__member *find_locked(kl_informers *f, const char *label, const kl_projection *keep)
    KL_REQUIRES(f->mu);
static kl__member *find_locked(kl_informers *f, const char *label, const kl_projection *keep)
{
    for (kl__member *m = f->members; m; m = m->next)
        if (m->users && !strcmp(m->label, label) && kl_projection_equal(m->keep, keep))
            return m;
    return NULL;
}

kl__member *kl__member_new_locked(
    kl_informers *f, const kl_informer_want *w, const kl_gvk *g, char *label, const kl_handler *handler)
{
    /* the end of initial events is told in one */
    static const char *const annotations[] = {"metadata", "annotations"};
    kl__member *m = kl_new(kl__member);
    m->set = f;
    m->label = label;
    m->kind = kl_strdup(w->kind);
    m->keep = kl_projection_ref(w->keep);
    m->users = 1;
    char *api_version = kl_api_version(g->group, g->version);
    kl_informer_options o = {.clock = f->o.clock,
        .resource = w->kind,
        .api_version = api_version,
        .kind = g->kind,
        .namespace_ = w->ns,
        .seed = kl_hash(label, strlen(label)),
        .stream = f->o.stream && kl_projection_keeps(w->keep, annotations, 2),
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
    m->next = f->members;
    f->members = m;
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
    kl_lock(&f->mu);
    reap_locked(f);
    bool stopped = f->stopped;
    kl__member *m = stopped ? NULL : find_locked(f, label, w->keep);
    if (m) {
        m->users++;
    } else if (!stopped) {
        m = kl__member_new_locked(f, w, &g, label, &(kl_handler){.on_synced = on_synced});
        label = NULL;
    }
    kl_unlock(&f->mu);
    kl_free(label);
    kl_gvk_fini(&g);
    if (stopped)
        return kl_fail(err, KL_EINVAL, "informers: they were shut down; make new ones");
    *out = m->informer;
    return KL_OK;
}

/* Not under the lock: it waits for the subscription's callback, which takes it. */
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
    kl_lock(&f->mu);
    for (kl__member *m = f->members; m; m = m->next)
        if (m->informer == i && m->users) {
            if (!--m->users && !m->stopping) {
                last = m;
                m->stopping = true;
                sub = m->sub;
                m->sub = NULL;
            }
            break;
        }
    for (kl__member *m = f->members; m; m = m->next)
        others |= m->users && !m->is_news;
    reap_locked(f);
    kl_unlock(&f->mu);
    if (last)
        member_stop(last, sub);
    if (!others)
        kl__members_news_end(f);
}

static kl__member *running_locked(const kl_informers *f, bool (*which)(const kl__member *m))
    KL_REQUIRES(f->mu);
static kl__member *running_locked(const kl_informers *f, bool (*which)(const kl__member *m))
{
    for (kl__member *m = f->members; m; m = m->next)
        if (!m->stopping && (!which || which(m)))
            return m;
    return NULL;
}

void kl__members_stop(kl_informers *f, bool (*which)(const kl__member *m))
{
    kl_lock(&f->mu);
    for (kl__member *m; (m = running_locked(f, which));) {
        m->stopping = true;
        if (m->is_news)
            m->users = 0; /* once it is over, nobody knows it any more */
        kl_subscription *sub = m->sub;
        m->sub = NULL;
        kl_informer *i = kl_informer_ref(m->informer);
        kl_unlock(&f->mu);
        kl_informer_unsubscribe(sub);
        kl_informer_stop(i, on_stopped, m); /* what frees it comes later */
        kl_informer_unref(i);
        kl_lock(&f->mu);
    }
    kl_unlock(&f->mu);
}

/* --- all of them -------------------------------------------------------------------------- */

void kl_informers_start(kl_informers *f)
{
    kl_lock(&f->mu);
    for (kl__member *m = f->members; m; m = m->next)
        if (!m->started && !m->stopping) {
            m->started = true;
            kl_informer_start(m->informer); /* posts; waits for nothing */
        }
    kl_unlock(&f->mu);
}

static bool synced_locked(kl_informers *f) KL_REQUIRES(f->mu);
static bool synced_locked(kl_informers *f)
{
    for (kl__member *m = f->members; m; m = m->next)
        if (m->started && !m->stopping && !m->is_news && !kl_informer_synced(m->informer))
            return false;
    return !f->stopped;
}

bool kl_informers_wait(kl_informers *f, kl_time deadline)
{
    kl_lock(&f->mu);
    while (!synced_locked(f) && !f->stopped && kl_cond_wait_until(&f->cond, &f->mu, deadline))
        continue;
    bool synced = synced_locked(f);
    kl_unlock(&f->mu);
    return synced;
}

static bool over_locked(const kl_informers *f) KL_REQUIRES(f->mu);
static bool over_locked(const kl_informers *f)
{
    for (const kl__member *m = f->members; m; m = m->next)
        if (!m->over)
            return false;
    return true;
}

void kl_informers_stop(kl_informers *f)
{
    kl_lock(&f->mu);
    f->stopped = true;
    kl_unlock(&f->mu);
    kl__members_stop(f, NULL);
    kl_lock(&f->mu);
    while (!over_locked(f))
        kl_cond_wait(&f->cond, &f->mu);
    kl_cond_broadcast(&f->cond);
    kl_unlock(&f->mu);
}

void kl_informers_free(kl_informers *f)
{
    if (!f)
        return;
    kl_informers_stop(f);
    for (kl__member *m = f->members, *next; m; m = next) {
        next = m->next;
        member_free(m);
    }
    kl_cond_fini(&f->cond);
    kl_mutex_fini(&f->mu);
    kl_free(f);
}
