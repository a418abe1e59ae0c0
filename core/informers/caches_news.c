/* caches_news.c - how the caches of a manager learn about new kinds: two hidden caches watch them, on the
 * loop. */
#include "base/mem.h"
#include "informers/caches_impl.h"

void kl__kinds_end(kl_caches *s)
{
    kl__news_quiet(&s->news);
    for (int i = 0; i < KL__NEWS_KINDS; i++) {
        kl_cache *c = s->kinds[i];
        s->kinds[i] = NULL;
        if (c)
            (void)kl__cache_leave(c);
    }
}

void kl__kinds_give_up(kl_caches *s, const char *why)
{
    kl__news_refused(&s->news, why);
    kl__kinds_end(s);
}

void kl__kinds_begin(kl_caches *s)
{
    if (!s->o.watch_kinds || !kl__news_hopeful(&s->news) || s->kinds[0])
        return;
    kl_projection *keep = kl__news_keep();
    kl_lock(&s->reg.mu);
    for (int i = 0; i < KL__NEWS_KINDS; i++) {
        kl__scope scope = {.keep = kl_projection_ref(keep)};
        s->kinds[i] = kl__cache_new_locked(s, kl__news_kinds[i], kl__news_kinds[i], &scope);
        s->kinds[i]->entry.hidden = true;
    }
    kl_unlock(&s->reg.mu);
    kl_projection_unref(keep);
    for (int i = 0; i < KL__NEWS_KINDS && s->kinds[i]; i++)
        kl__cache_resolve(s->kinds[i]);
}

static bool is_parked(kl_informer *i, char **why)
{
    kl_informer_stats st;
    kl_informer_stats_get(i, &st);
    bool parked = st.parked;
    if (parked && why)
        *why = kl_strdup(st.message);
    kl_informer_stats_fini(&st);
    return parked;
}

static kl_cache **all_of(kl_caches *s, size_t *n)
{
    kl_lock(&s->reg.mu);
    kl_cache **all = kl__caches_all_locked(s, n);
    kl_unlock(&s->reg.mu);
    return all;
}

/* Starts the watches of new kinds while an informer is parked: its kind is gone or forbidden. Gives up when
 * one of these watches is parked itself. */
void kl__kinds_look(kl_caches *s)
{
    bool parked = false;
    char *why = NULL;
    size_t n;
    for (int i = 0; i < KL__NEWS_KINDS && !why; i++)
        if (s->kinds[i] && s->kinds[i]->informer)
            (void)is_parked(s->kinds[i]->informer, &why);
    if (why)
        kl__kinds_give_up(s, why);
    kl_free(why);
    kl_cache **all = all_of(s, &n);
    for (size_t i = 0; i < n; i++)
        if (all[i]->informer) {
            kl__cache_look(all[i]);
            parked |= is_parked(all[i]->informer, NULL);
        }
    kl_free(all);
    if (parked)
        kl__kinds_begin(s);
}

/* Every cache that lacks its kind looks it up now. */
static void ask_again(void *arg)
{
    kl_caches *s = arg;
    size_t n, waiting = 0;
    kl_cache **all = all_of(s, &n);
    for (size_t i = 0; i < n; i++) {
        kl_cache *c = all[i];
        if (c->informer && is_parked(c->informer, NULL))
            kl_informer_kick(c->informer);
        if (c->timer)
            all[waiting++] = c;
    }
    if (waiting)
        s->origin.forget(s->origin.arg);
    for (size_t i = 0; i < waiting; i++) {
        kl_loop_timer_cancel(s->o.loop, all[i]->timer);
        all[i]->timer = 0;
        all[i]->retry = 0;
        kl__cache_resolve(all[i]);
    }
    kl_free(all);
}

static void news_on_loop(void *arg)
{
    kl_caches *s = arg;
    atomic_store(&s->pending, false);
    if (!s->kinds[0])
        return;
    s->origin.forget(s->origin.arg);
    kl__news_came(&s->news);
}

/* On the watch thread: the first list has arrived, and may have a kind that was missing a moment before. */
void kl__kinds_came(void *arg)
{
    kl_caches *s = arg;
    if (!atomic_exchange(&s->pending, true))
        kl_loop_post(s->o.loop, news_on_loop, s);
}

void kl__kinds_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    (void)type;
    (void)old;
    (void)now;
    if (!(flags & KL_INITIAL))
        kl__kinds_came(arg);
}

static uint64_t timer(void *arg, kl_time after, void (*fn)(void *), void *fn_arg)
{
    return kl_loop_timer(((kl_caches *)arg)->o.loop, after, fn, fn_arg);
}

static void timer_cancel(void *arg, uint64_t id) { kl_loop_timer_cancel(((kl_caches *)arg)->o.loop, id); }

void kl__kinds_init(kl_caches *s)
{
    kl__news_init(&s->news, s->o.clock,
        &(kl__news_hooks){
            .ask = ask_again, .timer = timer, .timer_cancel = timer_cancel, .arg = s, .late = "30s"});
    atomic_init(&s->pending, false);
}
