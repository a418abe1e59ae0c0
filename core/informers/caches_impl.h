/* caches_impl.h - what the parts of the shared informers know of each other. Inside run. */
#ifndef KL_INFORMERS_CACHES_IMPL_H
#define KL_INFORMERS_CACHES_IMPL_H

#include <stdatomic.h>
#include "base/map.h"
#include "base/sync.h"
#include "informers/caches.h"
#include "informers/kinds.h"

struct kl_caches {
    kl_caches_options o;
    kl_caches_origin origin;
    kl_mutex mu;
    kl_cond cond;
    kl_map *by_kind KL_GUARDED_BY(mu); /* by label; not those of news */
    kl_projection *usual;              /* what is kept where nobody says */
    size_t alive KL_GUARDED_BY(mu);    /* caches not freed yet, released ones included */
    struct kl__news *news;
};

/* Of kinds: see kinds.c. Loop only, but for `pending`. */
struct kl__news {
    kl_cache *caches[KL__NEWS_KINDS]; /* NULL: not watched */
    int used;                         /* caches with users; the last one to go ends the watch */
    /* when it was found that this may not be watched; -1: it may, as far as we know */
    kl_time given_up;
    bool told; /* that, once */
    int step;
    uint64_t timer;
    atomic_bool pending; /* an event is on its way to the loop */
};

/* Which objects a cache holds, and what of them. */
typedef struct kl__scope {
    kl_projection *keep; /* NULL: everything */
    bool metadata;
    char **namespaces;     /* sorted, NULL-terminated; NULL: what the set sees */
    bool divided;          /* of these, those that its users hold */
    char *labels, *fields; /* NULL: all */
} kl__scope;

struct kl_cache {
    kl_caches *set;
    bool is_news;
    /* label: the kind, and what is wanted of it when that is not the usual */
    char *kind, *label;
    char *what; /* in words, what is kept; NULL */
    kl__scope scope;
    /* the kind has no namespaces, so they make no difference: another's user. NULL: it works by itself */
    kl_cache *same;
    struct kl__hold *held; /* loop only: what each user of a divided one holds */
    char **present;        /* the parts that its informer has: a set; NULL: none were said */
    int users;             /* loop only */
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
    char *told;          /* the informer's trouble, as last logged */
    kl_time retry;
    uint64_t timer;
    atomic_bool use_mapper;
};

/* A cache that is in no map yet, with no user. Takes the scope over. */
kl_cache *kl__cache_new(kl_caches *s, const char *kind, const char *label, kl__scope *scope);
void kl__cache_resolve(kl_cache *c);
/* Its informer has news: is the kind still there, and what is to be said? */
void kl__cache_look(kl_cache *c);
/* Nobody uses it any more: it frees itself when its informer has stopped. */
void kl__cache_stop(kl_cache *c);

/* --- caches_want.c ------------------------------------------------------------------------ */
void kl__scope_init(kl__scope *out, const kl_caches *s, const kl_want *w);
void kl__scope_fini(kl__scope *c);
bool kl__scope_serves(const kl__scope *a, const kl__scope *b); /* who wants b is well served with a */
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

/* --- kinds.c; on the loop ----------------------------------------------------------------- */
struct kl__news *kl__news_new(void);
/* Somebody misses a kind: news of kinds are worth having. */
void kl__news_begin(kl_caches *s);
void kl__news_end(kl_caches *s);
void kl__news_give_up(kl_caches *s, const char *why);
/* Some informer has news of its own: one that is parked wants to hear of kinds; one of ours that is, will
 * not. */
void kl__news_look(kl_caches *s);
/* What the informers of CRDs and API services call, on the watch thread. */
void kl__news_event(
    void *caches, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags);
void kl__news_came(void *caches);

#endif
