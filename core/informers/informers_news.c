/* informers_news.c - a set of informers hears of new kinds: when one of them misses its kind,
 * CustomResourceDefinitions and APIServices are watched by two more members, and their events end the
 * waits of all that are parked. */
#include "informers/informers_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "informers/kinds.h"

/* --- a kind that is gone ------------------------------------------------------------------ */

static void looked_up(void *arg, kl_status st, const kl_resource *r, kl_err *err)
{
    (void)r;
    (void)err;
    if (st == KL_ENOTFOUND)
        kl_informer_clear(arg);
    kl_informer_unref(arg);
}

/* A 404 may be a server that is only starting: discovery says whether it is more, and it says so only at
 * the second look. So each failure is a reason to look, and none is answered from what was known before. */
static void look_up(kl__member *m)
{
    kl_client_discovery_forget(m->set->o.client);
    kl_client_resolve(m->set->o.client, m->kind, looked_up, kl_informer_ref(m->informer));
}

/* --- news --------------------------------------------------------------------------------- */

static void kick_parked(kl_informers *f)
{
    kl_lock(&f->mu);
    for (kl__member *m = f->members; m; m = m->next) {
        kl_informer_stats st;
        if (m->is_news || !m->started || m->stopping)
            continue;
        kl_informer_stats_get(m->informer, &st);
        if (st.parked)
            kl_informer_kick(m->informer); /* posts */
        kl_informer_stats_fini(&st);
    }
    kl_unlock(&f->mu);
}

static void again(void *arg)
{
    kl_informers *f = arg;
    f->news_timer = 0;
    kick_parked(f);
    kl_time wait = kl__news_wait(f->news_step++);
    if (wait)
        f->news_timer = kl_http_timer(kl_client_watch_http(f->o.client), wait, again, f);
}

static void timer_clear(kl_informers *f)
{
    if (f->news_timer)
        kl_http_timer_cancel(kl_client_watch_http(f->o.client), f->news_timer);
    f->news_timer = 0;
}

static void came(void *arg)
{
    kl_informers *f = ((kl__member *)arg)->set;
    timer_clear(f);
    f->news_step = 0;
    again(f);
}

static void on_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    (void)type;
    (void)old;
    (void)now;
    if (!(flags & KL_INITIAL))
        came(arg);
}

/* --- beginning and end -------------------------------------------------------------------- */

static bool is_news(const kl__member *m) { return m->is_news; }

static void begin_one_locked(kl_informers *f, const char *kind, kl_projection *keep) KL_REQUIRES(f->mu);
static void begin_one_locked(kl_informers *f, const char *kind, kl_projection *keep)
{
    kl_gvk g;
    if (kl_gvk_parse(kind, &g, NULL))
        return;
    kl__member *m = kl__member_new_locked(f, &(kl_informer_want){.kind = kind, .keep = keep}, &g,
        kl_sprintf("news\n%s", kind), &(kl_handler){.on_event = on_event, .on_synced = came});
    kl_gvk_fini(&g);
    m->is_news = m->started = true;
    kl_informer_start(m->informer);
}

static void begin(kl_informers *f)
{
    kl_projection *keep = kl__news_keep();
    kl_lock(&f->mu);
    bool there = f->stopped
        || (f->news_given_up >= 0 && kl_clock_now(f->o.clock) - f->news_given_up < KL__NEWS_GIVEN_UP);
    for (kl__member *m = f->members; m; m = m->next)
        there |= m->is_news && !m->stopping;
    for (int i = 0; !there && i < KL__NEWS_KINDS; i++)
        begin_one_locked(f, kl__news_kinds[i], keep);
    kl_unlock(&f->mu);
    kl_projection_unref(keep);
}

static void give_up(kl_informers *f, const char *why)
{
    kl_lock(&f->mu);
    bool first = f->news_given_up < 0;
    f->news_given_up = kl_clock_now(f->o.clock);
    kl_unlock(&f->mu);
    if (first)
        kl_info("kinds that appear are found by asking, up to a minute late: CustomResourceDefinitions and "
                "APIServices cannot be watched",
            "error=%s", kl_log_quoted(why));
    kl__members_stop(f, is_news);
}

void kl__members_news_end(kl_informers *f) { kl__members_stop(f, is_news); }

void kl__members_news_over(kl_informers *f) { timer_clear(f); }

void kl__members_trouble(kl__member *m)
{
    kl_informers *f = m->set;
    kl_informer_stats st;
    kl_informer_stats_get(m->informer, &st);
    bool missing = st.parked && st.failure == KL_ENOTFOUND;
    if (m->is_news && st.parked)
        give_up(f, st.message);
    else if (!m->is_news && missing)
        begin(f);
    if (!m->is_news && missing && st.objects)
        look_up(m);
    kl_informer_stats_fini(&st);
}
