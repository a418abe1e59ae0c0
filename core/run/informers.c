/* informers.c - the shared informers of one client. A member is known under what it was wanted for, until nobody wants it; its memory
 * stays until the watch thread has said goodbye. */
#include "run/informers.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "run/source.h"

#define MAX_OBJECT_DEFAULT ((size_t)16 << 20)

typedef struct member {
    struct member *next;
    kl_informers *set;
    kl_informer *informer;             /* a reference */
    kl_subscription *sub;              /* tells of the sync; NULL once it stops */
    char *label;
    kl_projection *keep;
    int users;
    bool started, stopping;            /* stopping: the informer was asked to */
    bool over;                         /* and it has */
} member;

struct kl_informers {
    kl_informers_options o;
    kl_mutex mu;
    kl_cond cond;                      /* some informer synced or stopped */
    member *members KL_GUARDED_BY(mu); /* those that stop, too */
    bool stopped KL_GUARDED_BY(mu);
};

kl_informers *kl_informers_new(const kl_informers_options *o)
{
    kl_informers *f = kl_new(kl_informers);
    f->o = *o;
    if (!f->o.clock)
        f->o.clock = kl_clock_real();
    if (!f->o.max_object)
        f->o.max_object = MAX_OBJECT_DEFAULT;
    kl_mutex_init(&f->mu);
    kl_cond_init(&f->cond);
    return f;
}

static void member_free(member *m)
{
    kl_informer_unref(m->informer);
    kl_projection_unref(m->keep);
    kl_free(m->label);
    kl_free(m);
}

/* --- what the watch thread says ------------------------------------------------------------------------------------------- */

static void on_synced(void *arg)
{
    kl_informers *f = ((member *)arg)->set;
    kl_lock(&f->mu);
    kl_cond_broadcast(&f->cond);
    kl_unlock(&f->mu);
}

static void on_trouble(void *arg)
{
    member *m = arg;
    if (m->set->o.on_trouble)
        m->set->o.on_trouble(m->set->o.arg, m->informer);
}

static void on_stopped(void *arg)
{
    member *m = arg;
    kl_informers *f = m->set;
    kl_lock(&f->mu);
    m->over = true;
    kl_cond_broadcast(&f->cond);
    kl_unlock(&f->mu);
}

/* --- coming and going ------------------------------------------------------------------------------------------------------ */

static void reap_locked(kl_informers *f) KL_REQUIRES(f->mu);
static void reap_locked(kl_informers *f)
{
    for (member **at = &f->members, *m; (m = *at);) {
        if (m->over && !m->users) {
            *at = m->next;
            member_free(m);
        } else {
            at = &m->next;
        }
    }
}

static member *find_locked(kl_informers *f, const char *label, const kl_projection *keep) KL_REQUIRES(f->mu);
static member *find_locked(kl_informers *f, const char *label, const kl_projection *keep)
{
    for (member *m = f->members; m; m = m->next)
        if (m->users && !strcmp(m->label, label) && kl_projection_equal(m->keep, keep))
            return m;
    return NULL;
}

static member *member_new(kl_informers *f, const kl_informer_want *w, const kl_gvk *g, char *label)
{
    static const char *const annotations[] = {"metadata", "annotations"};      /* the end of initial events is told in one */
    member *m = kl_new(member);
    m->set = f;
    m->label = label;
    m->keep = kl_projection_ref(w->keep);
    m->users = 1;
    char *api_version = kl_api_version(g->group, g->version);
    kl_informer_options o = {.clock = f->o.clock, .resource = w->kind, .api_version = api_version, .kind = g->kind, .namespace_ = w->ns,
        .seed = kl_hash(label, strlen(label)), .stream = f->o.stream && kl_projection_keeps(w->keep, annotations, 2),
        .on_trouble = on_trouble, .trouble_arg = m};
    kl_client_source(&(kl_client_source_options){.client = f->o.client, .kind = w->kind, .ns = w->ns, .labels = w->labels,
        .fields = w->fields, .max_object = f->o.max_object, .keep = w->keep}, &o.source);
    m->informer = kl_informer_new(&o);
    m->sub = kl_informer_subscribe(m->informer, &(kl_handler){.on_synced = on_synced, .arg = m});
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
        return kl_fail(err, KL_EINVAL, "informers: \"%s\" lacks its version; write \"v1/Pod\" or \"group/version/Kind\"", w->kind);
    }
    char *label = kl_sprintf("%s\n%s\n%s\n%s", w->kind, w->ns ? w->ns : "", w->labels ? w->labels : "", w->fields ? w->fields : "");
    kl_lock(&f->mu);
    reap_locked(f);
    bool stopped = f->stopped;
    member *m = stopped ? NULL : find_locked(f, label, w->keep);
    if (m) {
        m->users++;
    } else if (!stopped) {
        m = member_new(f, w, &g, label);
        label = NULL;
        m->next = f->members;
        f->members = m;
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
static void member_stop(member *m, kl_subscription *sub)
{
    kl_informer_unsubscribe(sub);
    kl_informer_stop(m->informer, on_stopped, m);
}

void kl_informers_release(kl_informers *f, kl_informer *i)
{
    member *last = NULL;
    kl_subscription *sub = NULL;
    kl_lock(&f->mu);
    for (member *m = f->members; m; m = m->next)
        if (m->informer == i && m->users) {
            if (!--m->users && !m->stopping) {
                last = m;
                m->stopping = true;
                sub = m->sub;
                m->sub = NULL;
            }
            break;
        }
    reap_locked(f);
    kl_unlock(&f->mu);
    if (last)
        member_stop(last, sub);
}

/* --- all of them ------------------------------------------------------------------------------------------------------------- */

void kl_informers_start(kl_informers *f)
{
    kl_lock(&f->mu);
    for (member *m = f->members; m; m = m->next)
        if (!m->started && !m->stopping) {
            m->started = true;
            kl_informer_start(m->informer);        /* posts; waits for nothing */
        }
    kl_unlock(&f->mu);
}

static bool synced_locked(kl_informers *f) KL_REQUIRES(f->mu);
static bool synced_locked(kl_informers *f)
{
    for (member *m = f->members; m; m = m->next)
        if (m->started && !m->stopping && !kl_informer_synced(m->informer))
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
    for (const member *m = f->members; m; m = m->next)
        if (!m->over)
            return false;
    return true;
}

void kl_informers_stop(kl_informers *f)
{
    kl_lock(&f->mu);
    f->stopped = true;
    for (;;) {
        member *m = f->members;
        while (m && m->stopping)
            m = m->next;
        if (!m)
            break;
        m->stopping = true;
        kl_subscription *sub = m->sub;
        m->sub = NULL;
        kl_unlock(&f->mu);
        member_stop(m, sub);                       /* only who stops frees: m stays */
        kl_lock(&f->mu);
    }
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
    for (member *m = f->members, *next; m; m = next) {
        next = m->next;
        member_free(m);
    }
    kl_cond_fini(&f->cond);
    kl_mutex_fini(&f->mu);
    kl_free(f);
}
