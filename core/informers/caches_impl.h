/* caches_impl.h - the internals of the shared informers. Inside this room. */
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
    kl_projection *usual; /* the default projection */
    /* loop only, but for `pending` */
    kl__news news;
    kl_cache *kinds[KL__NEWS_KINDS]; /* the caches that watch kinds; NULL: none */
    int used;                        /* caches with users; the last one to go ends the watch */
    atomic_bool pending;             /* an event is on its way to the loop */
    atomic_bool ending;
    kl_indexing indexing; /* mapper thread */
};

struct kl_cache {
    /* label: the kind, and its selection unless that is the default. hidden: one of `kinds` */
    kl__entry entry;
    kl_caches *set;
    char *what; /* the kept fields, for messages; or NULL */
    /* for a cluster-scoped kind: the cache without a choice of namespaces, whose informer serves this one,
     * too. NULL: it has its own informer */
    kl_cache *same;
    struct kl__hold *held; /* loop only: the namespaces that each user of a divided cache holds */
    char **present;        /* the parts that its informer has: a set; NULL: none were set */
    /* loop only: counts a running resolve and a stopping informer, which keep the memory alive */
    int holds;
    bool resolving;
    const kl_resource *resource;
    kl_informer *informer;
    kl_subscription *sub; /* reports the sync */
    char *problem;        /* the kind is missing, gone, or cannot be looked up; NULL: none */
    bool gone;            /* it is missing after it existed */
    /* it was gone and is listed again: discovery has not confirmed yet that it is the same */
    bool unsure;
    atomic_bool strange; /* it delivered an object of another scope */
    bool outdated;       /* the kind came back with another scope or plural */
    /* a newer cache has its label: only its present users use it. Under the registry's lock */
    bool replaced;
    char *told; /* the informer's trouble, as last logged */
    kl_time retry;
    uint64_t timer;
    atomic_bool use_mapper;
};

/* A cache in the registry with one user. Takes over the scope. */
kl_cache *kl__cache_new_locked(kl_caches *s, const char *kind, const char *label, kl__scope *scope)
    KL_REQUIRES(s->reg.mu);
void kl__cache_resolve(kl_cache *c);
/* The cache's informer changed state: checks whether the kind still exists, and logs changes. */
void kl__cache_look(kl_cache *c);
/* Removes a user; returns whether it was the last. Without users the cache frees itself when its informer has
 * stopped. */
bool kl__cache_leave(kl_cache *c);
/* A copy of the list of caches that have users and were not replaced; a copy, because an immediate answer may
 * change the set. The caller frees the array; the caches are borrowed. */
kl_cache **kl__caches_all_locked(kl_caches *s, size_t *n) KL_REQUIRES(s->reg.mu);

/* --- caches_want.c ------------------------------------------------------------------------ */
void kl__scope_init(kl__scope *out, const kl_caches *s, const kl_want *w);
/* caller frees */
char *kl__scope_label(const kl__scope *c, const kl_caches *s, const char *kind, const char *what);

/* --- caches_hold.c; on the loop ----------------------------------------------------------- */
/* makes the informer of a divided cache watch exactly the held namespaces */
void kl__cache_fit(kl_cache *c);
void kl__cache_holds_free(kl_cache *c);

/* One list and watch of a cache, for its informer; ns NULL: everywhere. */
kl_informer_part kl__cache_part(kl_cache *c, const char *ns);

/* --- cache_problem.c ---------------------------------------------------------------------- */
/* The message of a refusal, with the way out: the missing rule, and the role that lacks it. Caller frees. */
char *kl__refusal_text(const kl_resource *r, const char *ns, const char *message);
/* Logs changes of a cache's trouble. Loop. */
void kl__cache_tell(kl_cache *c);

/* --- caches_news.c; on the loop ----------------------------------------------------------- */
void kl__kinds_init(kl_caches *s);
/* A kind is missing: starts the watch of kinds. */
void kl__kinds_begin(kl_caches *s);
void kl__kinds_end(kl_caches *s);
void kl__kinds_give_up(kl_caches *s, const char *why);
/* An informer changed state. A parked one needs news of kinds; when an informer of news is parked, the watch
 * of kinds is given up. */
void kl__kinds_look(kl_caches *s);
/* The callback of the informers of CRDs and API services, on the watch thread. */
void kl__kinds_event(
    void *caches, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags);
void kl__kinds_came(void *caches);

#endif
