/* kinds.c - news of kinds: CustomResourceDefinitions and APIServices, watched as soon as a kind is missed,
 * wake what waits for one.
 *
 *   nobody misses a kind --missing, parked--> watched --event--> discovery is forgotten; who waits asks, now and a few times more
 *                                               `--forbidden, not there--> given up for ten minutes; who waits asks every 1 to 30 s
 *
 * Of these objects only the conditions are kept. */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "informers/caches_impl.h"
#include "informers/kinds.h"

const char *const kl__news_kinds[KL__NEWS_KINDS] = {
    "apiextensions.k8s.io/v1/CustomResourceDefinition", "apiregistration.k8s.io/v1/APIService"};

kl_projection *kl__news_keep(void)
{
    static const char *const paths[] = {"status.conditions"};
    kl_projection *keep = NULL;
    return kl_projection_new(paths, 1, &keep, NULL) ? NULL : keep;
}

kl_time kl__news_wait(int step)
{
    static const kl_time waits[] = {KL_MILLISECONDS(150), KL_MILLISECONDS(500), KL_SECONDS(2), KL_SECONDS(6)};
    return step < (int)(sizeof waits / sizeof *waits) ? waits[step] : 0;
}

struct kl__news *kl__news_new(void)
{
    struct kl__news *n = kl_new(struct kl__news);
    n->given_up = -1;
    atomic_init(&n->pending, false);
    return n;
}

void kl__news_end(kl_caches *s)
{
    kl_loop_timer_cancel(s->o.loop, s->news->timer);
    s->news->timer = 0;
    for (int i = 0; i < KL__NEWS_KINDS; i++) {
        kl_cache *c = s->news->caches[i];
        s->news->caches[i] = NULL;
        if (c)
            kl__cache_stop(c);
    }
}

void kl__news_give_up(kl_caches *s, const char *why)
{
    if (!s->news->told)
        kl_info("kinds that appear are found by asking, up to 30 s late: CustomResourceDefinitions and "
                "APIServices cannot be watched",
            "error=%s", kl_log_quoted(why));
    s->news->told = true;
    s->news->given_up = kl_clock_now(s->o.clock);
    kl__news_end(s);
}

void kl__news_begin(kl_caches *s)
{
    bool in_vain = s->news->given_up >= 0 && kl_clock_now(s->o.clock) - s->news->given_up < KL__NEWS_GIVEN_UP;
    if (!s->o.watch_kinds || in_vain || s->news->caches[0])
        return;
    kl_projection *keep = kl__news_keep();
    for (int i = 0; i < KL__NEWS_KINDS; i++) {
        kl__scope scope = {.keep = kl_projection_ref(keep)};
        kl_cache *c = s->news->caches[i] = kl__cache_new(s, kl__news_kinds[i], kl__news_kinds[i], &scope);
        c->is_news = true;
        c->users = 1;
        kl_lock(&s->mu);
        s->alive++;
        kl_unlock(&s->mu);
    }
    kl_projection_unref(keep);
    for (int i = 0; i < KL__NEWS_KINDS && s->news->caches[i]; i++)
        kl__cache_resolve(s->news->caches[i]);
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

/* Those that are known now, borrowed: asking may bring answers at once, and with them others. The array is
 * the caller's. */
static kl_cache **all_of(kl_caches *s, size_t *n)
{
    size_t it = 0;
    const char *label;
    void *v;
    kl_lock(&s->mu);
    kl_cache **all = kl_new_array(kl_cache *, kl_map_len(s->by_kind) + 1);
    for (*n = 0; kl_map_next(s->by_kind, &it, &label, &v); ++*n)
        all[*n] = v;
    kl_unlock(&s->mu);
    return all;
}

/* An informer that found its kind gone, or closed to it, wants news; those of the news themselves have the
 * last word. */
void kl__news_look(kl_caches *s)
{
    bool parked = false;
    char *why = NULL;
    size_t n;
    for (int i = 0; i < KL__NEWS_KINDS && !why; i++)
        if (s->news->caches[i] && s->news->caches[i]->informer)
            (void)is_parked(s->news->caches[i]->informer, &why);
    if (why)
        kl__news_give_up(s, why);
    kl_free(why);
    kl_cache **all = all_of(s, &n);
    for (size_t i = 0; i < n; i++)
        if (all[i]->informer) {
            kl__cache_look(all[i]);
            parked |= is_parked(all[i]->informer, NULL);
        }
    kl_free(all);
    if (parked)
        kl__news_begin(s);
}

/* Those that miss their kind ask for it now. */
static void ask_again(kl_caches *s)
{
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

static void news_again(void *arg)
{
    kl_caches *s = arg;
    s->news->timer = 0;
    ask_again(s);
    kl_time wait = kl__news_wait(s->news->step++);
    if (wait)
        s->news->timer = kl_loop_timer(s->o.loop, wait, news_again, s);
}

static void news_on_loop(void *arg)
{
    kl_caches *s = arg;
    atomic_store(&s->news->pending, false);
    if (!s->news->caches[0])
        return;
    s->origin.forget(s->origin.arg);
    kl_loop_timer_cancel(s->o.loop, s->news->timer);
    s->news->step = 0;
    news_again(s);
}

/* On the watch thread: the first list is there, which may have what was missed a moment before. */
void kl__news_came(void *arg)
{
    kl_caches *s = arg;
    if (!atomic_exchange(&s->news->pending, true))
        kl_loop_post(s->o.loop, news_on_loop, s);
}

void kl__news_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    (void)type;
    (void)old;
    (void)now;
    if (!(flags & KL_INITIAL))
        kl__news_came(arg);
}
