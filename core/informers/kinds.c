/* kinds.c - the watched definitions of kinds, and the times of further look-ups. */
#include "informers/kinds.h"

#include "base/log.h"

/* Where watching kinds is forbidden, the next try comes after this time. */
#define GIVEN_UP KL_MINUTES(10)

const char *const kl__news_kinds[KL__NEWS_KINDS] = {
    "apiextensions.k8s.io/v1/CustomResourceDefinition", "apiregistration.k8s.io/v1/APIService"};

kl_projection *kl__news_keep(void)
{
    static const char *const paths[] = {"status.conditions"};
    kl_projection *keep = NULL;
    return kl_projection_new(paths, 1, &keep, NULL) ? NULL : keep;
}

void kl__news_init(kl__news *n, kl_clock *clock, const kl__news_hooks *h)
{
    *n = (kl__news){.h = *h, .clock = clock, .given_up = -1};
}

bool kl__news_hopeful(const kl__news *n)
{
    return n->given_up < 0 || kl_clock_now(n->clock) - n->given_up >= GIVEN_UP;
}

void kl__news_quiet(kl__news *n)
{
    if (n->timer)
        n->h.timer_cancel(n->h.arg, n->timer);
    n->timer = 0;
}

/* Discovery follows a CRD's status with a delay: after news it is fetched at once, and again after these
 * waits. 0: no more. */
static kl_time wait_after(int step)
{
    static const kl_time waits[] = {KL_MILLISECONDS(150), KL_MILLISECONDS(500), KL_SECONDS(2), KL_SECONDS(6)};
    return step < (int)(sizeof waits / sizeof *waits) ? waits[step] : 0;
}

static void ask(void *arg)
{
    kl__news *n = arg;
    n->timer = 0;
    n->h.ask(n->h.arg);
    kl_time wait = wait_after(n->step++);
    if (wait)
        n->timer = n->h.timer(n->h.arg, wait, ask, n);
}

void kl__news_came(kl__news *n)
{
    kl__news_quiet(n);
    n->step = 0;
    ask(n);
}

void kl__news_refused(kl__news *n, const char *why)
{
    if (n->given_up < 0)
        kl_info("new kinds are found late, by polling: CustomResourceDefinitions and APIServices "
                "cannot be watched",
            "late=%s error=%s", n->h.late, kl_log_quoted(why));
    n->given_up = kl_clock_now(n->clock);
}
