/* lease_watch.c - an informer of one object, by the field selector metadata.name: it lists, watches and
 * retries by the reflector's rules, and RBAC with resourceNames is sufficient. Its events are posted to the
 * loop. */
#include "election/lease_watch.h"

#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "cache/informer.h"
#include "informers/source.h"

/* A Lease is far smaller; a larger object is not ours. */
#define LEASE_MAX ((size_t)1 << 20)

struct kl_lease_watch {
    kl_loop *loop;
    kl_informer *informer;
    kl_subscription *subscription;
    char *name;
    void (*changed)(void *arg, const kl_value *lease);
    void *arg;
    void (*gone)(void *arg);
    void *gone_arg;
    bool ended; /* loop only */
    bool told;  /* watch thread only */
};

typedef struct news {
    kl_lease_watch *w;
    const kl_value *lease;
} news;

/* Posted before the informer has stopped, so w still exists. */
static void tell(void *arg)
{
    news *n = arg;
    if (!n->w->ended)
        n->w->changed(n->w->arg, n->lease);
    kl_value_unref(n->lease);
    kl_free(n);
}

static void on_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    kl_lease_watch *w = arg;
    (void)type, (void)old, (void)flags;
    news *n = kl_new(news);
    *n = (news){w, kl_value_ref(now)};
    kl_loop_post(w->loop, tell, n);
}

static void on_trouble(void *arg)
{
    kl_lease_watch *w = arg;
    kl_informer_stats st;
    kl_informer_stats_get(w->informer, &st);
    if (st.parked && !w->told) {
        kl_info("the lease cannot be watched and is polled instead: grant list and watch of leases for "
                "faster takeover",
            "lease=%s", w->name);
        w->told = true;
    }
    kl_informer_stats_fini(&st);
}

kl_lease_watch *kl_lease_watch_new(kl_client *client, kl_loop *loop, kl_clock *clock, const char *ns,
    const char *name, void (*changed)(void *arg, const kl_value *lease), void *arg)
{
    kl_lease_watch *w = kl_new(kl_lease_watch);
    char *fields = kl_sprintf("metadata.name=%s", name);
    w->loop = loop;
    w->name = kl_strdup(name);
    w->changed = changed;
    w->arg = arg;
    kl_informer_options o = {.clock = clock,
        .resource = "leases.coordination.k8s.io",
        .api_version = "coordination.k8s.io/v1",
        .kind = "Lease",
        .namespace_ = ns,
        .seed = kl_hash(name, strlen(name)),
        .on_trouble = on_trouble,
        .trouble_arg = w};
    kl_client_source(
        &(kl_client_source_options){
            .client = client, .kind = KL_LEASE_KIND, .ns = ns, .fields = fields, .max_object = LEASE_MAX},
        &o.source);
    kl_free(fields);
    w->informer = kl_informer_new(&o);
    w->subscription = kl_informer_subscribe(w->informer, &(kl_handler){.on_event = on_event, .arg = w});
    kl_informer_start(w->informer);
    return w;
}

static void w_free(void *arg)
{
    kl_lease_watch *w = arg;
    kl_informer_unref(w->informer);
    if (w->gone)
        w->gone(w->gone_arg);
    kl_free(w->name);
    kl_free(w);
}

static void stopped(void *arg)
{
    kl_lease_watch *w = arg;
    kl_loop_post(w->loop, w_free, w);
}

void kl_lease_watch_end(kl_lease_watch *w, void (*gone)(void *arg), void *arg)
{
    w->ended = true;
    w->gone = gone;
    w->gone_arg = arg;
    kl_informer_unsubscribe(w->subscription);
    kl_informer_stop(w->informer, stopped, w);
}
