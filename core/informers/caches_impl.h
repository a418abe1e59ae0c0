/* caches_impl.h - what the parts of the shared informers know of each other. Inside this room. */
#ifndef KL_INFORMERS_CACHES_IMPL_H
#define KL_INFORMERS_CACHES_IMPL_H

#include <stdatomic.h>
#include "informers/caches.h"
#include "informers/kinds.h"
#include "informers/registry.h"

struct kl_caches {
    kl_caches_options o;
    kl_caches_origin origin;
    kl__registry reg;     /* of caches */
    kl_projection *usual; /* what is kept where nobody says */
    /* loop only, but for `pending` */
    kl__news news;
    kl_cache *kinds[KL__NEWS_KINDS]; /* what is watched for news; NULL: nothing */
    int used;                        /* caches with users; the last one to go ends the watch */
    atomic_bool pending;             /* an event is on its way to the loop */
};

struct kl_cache {
    /* label: the kind, and what is wanted of it when that is not the usual. hidden: one of `kinds` */
    kl__entry entry;
    kl_caches *set;
    char *what; /* in words, what is kept; NULL */
    /* the kind has no namespaces, so they make no difference: another's user. NULL: it works by itself */
    kl_cache *same;
    struct kl__hold *held; /* loop only: what each user of a divided one holds */
    char **present;        /* the parts that its informer has: a set; NULL: none were said */
    /* loop only: a resolve under way or a stopping informer keeps the memory */
    int holds;
    bool resolving;
    const kl_resource *resource;
    kl_informer *informer;
    kl_subscription *sub; /* tells us about the sync */
    char *problem;        /* missing, gone, or not to be looked up */
    bool gone;            /* the last of these after it had been there */
    /* it was gone and is listed again: discovery has yet to say that it is the same */
    bool unsure;
    atomic_bool strange; /* it brought an object of another scope */
    bool outdated;       /* it came back as another */
    /* under its label there is a newer one: only those who have it know it. Under the registry's lock */
    bool replaced;
    char *told; /* the informer's trouble, as last logged */
    kl_time retry;
    uint64_t timer;
    atomic_bool use_mapper;
};

/* A cache in the registry with one user. Takes the scope over. */
kl_cache *kl__cache_new_locked(kl_caches *s, const char *kind, const char *label, kl__scope *scope)
    KL_REQUIRES(s->reg.mu);
void kl__cache_resolve(kl_cache *c);
/* Its informer has news: is the kind still there, and what is to be said? */
void kl__cache_look(kl_cache *c);
/* One user less. Without any it frees itself when its informer has stopped; whether that was the last. */
bool kl__cache_leave(kl_cache *c);
/* Those that have users and are known by their labels, borrowed: asking may bring answers at once, and with
 * them others. The array is the caller's. */
kl_cache **kl__caches_all_locked(kl_caches *s, size_t *n) KL_REQUIRES(s->reg.mu);

/* --- caches_want.c ------------------------------------------------------------------------ */
void kl__scope_init(kl__scope *out, const kl_caches *s, const kl_want *w);
/* caller frees */
char *kl__scope_label(const kl__scope *c, const kl_caches *s, const char *kind, const char *what);

/* --- caches_hold.c; on the loop ----------------------------------------------------------- */
/* the informer of a divided one gets the parts that are held, and no others */
void kl__cache_fit(kl_cache *c);
void kl__cache_holds_free(kl_cache *c);

/* One list and watch of a cache, for its informer; ns NULL: everywhere. */
kl_informer_part kl__cache_part(kl_cache *c, const char *ns);

/* --- cache_problem.c ---------------------------------------------------------------------- */
/* A refusal in words that say what to do: the rule that is missing, and whose role it is missing from.
 * Caller frees. */
char *kl__refusal_text(const kl_resource *r, const char *ns, const char *message);
/* Logs what is new of a cache's trouble. Loop. */
void kl__cache_tell(kl_cache *c);

/* --- caches_news.c; on the loop ----------------------------------------------------------- */
void kl__kinds_init(kl_caches *s);
/* Somebody misses a kind: news of kinds are worth having. */
void kl__kinds_begin(kl_caches *s);
void kl__kinds_end(kl_caches *s);
void kl__kinds_give_up(kl_caches *s, const char *why);
/* Some informer has news of its own: one that is parked wants to hear of kinds; one of ours that is, will
 * not. */
void kl__kinds_look(kl_caches *s);
/* What the informers of CRDs and API services call, on the watch thread. */
void kl__kinds_event(
    void *caches, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags);
void kl__kinds_came(void *caches);

#endif
