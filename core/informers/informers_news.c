/* informers_news.c - how a set of informers learns about new kinds: when one of them lacks its kind,
 * CustomResourceDefinitions and APIServices are watched by two more members, and their events end the waits
 * of all that are parked. */
#include "informers/informers_impl.h"

#include "base/mem.h"

/* --- a kind that is gone ------------------------------------------------------------------ */

static void looked_up(void *arg, kl_status st, const kl_resource *r, kl_err *err)
{
    (void)r;
    (void)err;
    if (st == KL_ENOTFOUND)
        kl_informer_clear(arg);
    kl_informer_unref(arg);
}

/* A 404 may come from a starting server, so discovery decides. Each failure forgets the old discovery and
 * fetches it again. */
static void look_up(kl__member *m)
{
    kl_client_discovery_forget(m->set->o.client);
    kl_client_resolve(m->set->o.client, m->entry.kind, looked_up, kl_informer_ref(m->informer));
}

/* --- news --------------------------------------------------------------------------------- */

static void kick_parked(void *arg)
{
    kl_informers *f = arg;
    kl_lock(&f->reg.mu);
    for (kl__entry *e = f->reg.entries; e; e = e->next) {
        kl__member *m = kl__member_of(e);
        kl_informer_stats st;
        if (e->hidden || !m->started || m->stopping)
            continue;
        kl_informer_stats_get(m->informer, &st);
        if (st.parked)
            kl_informer_kick(m->informer); /* only posts */
        kl_informer_stats_fini(&st);
    }
    kl_unlock(&f->reg.mu);
}

static uint64_t timer(void *arg, kl_time after, void (*fn)(void *), void *fn_arg)
{
    return kl_http_timer(kl_client_watch_http(((kl_informers *)arg)->o.client), after, fn, fn_arg);
}

static void timer_cancel(void *arg, uint64_t id)
{
    kl_http_timer_cancel(kl_client_watch_http(((kl_informers *)arg)->o.client), id);
}

void kl__members_news_init(kl_informers *f)
{
    kl__news_init(&f->news, f->o.clock,
        &(kl__news_hooks){
            .ask = kick_parked, .timer = timer, .timer_cancel = timer_cancel, .arg = f, .late = "1m"});
}

static void came(void *arg) { kl__news_came(&((kl__member *)arg)->set->news); }

static void on_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    (void)type;
    (void)old;
    (void)now;
    if (!(flags & KL_INITIAL))
        came(arg);
}

/* --- beginning and end -------------------------------------------------------------------- */

static bool is_news(const kl__member *m) { return m->entry.hidden; }

static void begin_one_locked(kl_informers *f, const char *kind, kl_projection *keep) KL_REQUIRES(f->reg.mu)
{
    kl_gvk g;
    if (kl_gvk_parse(kind, &g, NULL))
        return;
    char *label = kl_sprintf("news\n%s", kind);
    kl__member *m = kl__member_new_locked(f, &(kl_informer_want){.kind = kind, .keep = keep}, &g, label,
        &(kl_handler){.on_event = on_event, .on_synced = came});
    kl_free(label);
    kl_gvk_fini(&g);
    m->entry.hidden = m->started = true;
    kl_informer_start(m->informer);
}

static void begin(kl_informers *f)
{
    kl_projection *keep = kl__news_keep();
    kl_lock(&f->reg.mu);
    bool there = f->stopped || !kl__news_hopeful(&f->news);
    for (kl__entry *e = f->reg.entries; e; e = e->next)
        there |= e->hidden && !kl__member_of(e)->stopping;
    for (int i = 0; !there && i < KL__NEWS_KINDS; i++)
        begin_one_locked(f, kl__news_kinds[i], keep);
    kl_unlock(&f->reg.mu);
    kl_projection_unref(keep);
}

static void give_up(kl_informers *f, const char *why)
{
    kl__news_refused(&f->news, why);
    kl__members_stop(f, is_news);
}

void kl__members_news_end(kl_informers *f) { kl__members_stop(f, is_news); }

void kl__members_trouble(kl__member *m)
{
    kl_informers *f = m->set;
    kl_informer_stats st;
    kl_informer_stats_get(m->informer, &st);
    bool missing = st.parked && st.failure == KL_ENOTFOUND;
    if (m->entry.hidden && st.parked)
        give_up(f, st.message);
    else if (!m->entry.hidden && missing)
        begin(f);
    if (!m->entry.hidden && missing && st.objects)
        look_up(m);
    kl_informer_stats_fini(&st);
}
