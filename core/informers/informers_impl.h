/* informers_impl.h - the internals of a set of informers: informers.c (members) and informers_news.c (news of
 * kinds). */
#ifndef KL_INFORMERS_INFORMERS_IMPL_H
#define KL_INFORMERS_INFORMERS_IMPL_H

#include "base/heap.h"
#include "informers/informers.h"
#include "informers/kinds.h"
#include "informers/registry.h"

typedef struct kl__member {
    kl__entry entry; /* hidden: created by the set itself, its only user (informers_news.c) */
    kl_informers *set;
    kl_informer *informer;  /* a reference */
    kl_subscription *sub;   /* reports the sync; NULL once it stops */
    bool started, stopping; /* stopping: a stop was requested */
    bool over;              /* the informer has stopped */
} kl__member;

struct kl_informers {
    kl_informers_options o;
    kl__registry reg; /* of members. Its condition: an informer synced or stopped */
    bool stopped KL_GUARDED_BY(reg.mu);
    kl__news news; /* watch thread */
};

/* --- informers.c -------------------------------------------------------------------------- */
static inline kl__member *kl__member_of(kl__entry *e) { return KL_CONTAINER(e, kl__member, entry); }
/* A member with one user, in the list, not started. */
kl__member *kl__member_new_locked(kl_informers *f, const kl_informer_want *w, const kl_gvk *g,
    const char *label, const kl_handler *h) KL_REQUIRES(f->reg.mu);
/* Requests a stop of the members for which `which` returns true (NULL: all), without waiting. */
void kl__members_stop(kl_informers *f, bool (*which)(const kl__member *m));

/* --- informers_news.c: the watch thread, but for kl__members_news_end --------------------- */
void kl__members_news_init(kl_informers *f); /* any thread, before all others */
/* A member has failed, or recovered. */
void kl__members_trouble(kl__member *m);
/* No member that could wait for a kind is left. Any thread. */
void kl__members_news_end(kl_informers *f);

#endif
