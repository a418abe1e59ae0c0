/* informers_impl.h - a set of informers from the inside: informers.c (who comes and goes) and
 * informers_news.c (news of kinds). */
#ifndef KL_INFORMERS_INFORMERS_IMPL_H
#define KL_INFORMERS_INFORMERS_IMPL_H

#include "base/sync.h"
#include "informers/informers.h"

typedef struct kl__member {
    struct kl__member *next;
    kl_informers *set;
    kl_informer *informer; /* a reference */
    kl_subscription *sub;  /* tells of the sync; NULL once it stops */
    char *kind, *label;
    kl_projection *keep;
    int users;              /* those of news have one: the set */
    bool is_news;           /* begun by the set itself, see informers_news.c */
    bool started, stopping; /* stopping: the informer was asked to */
    bool over;              /* and it has */
} kl__member;

struct kl_informers {
    kl_informers_options o;
    kl_mutex mu;
    kl_cond cond;                          /* some informer synced or stopped */
    kl__member *members KL_GUARDED_BY(mu); /* those that stop, too */
    bool stopped KL_GUARDED_BY(mu);
    kl_time news_given_up KL_GUARDED_BY(mu); /* when kinds could not be watched; -1: never */
    /* watch thread */
    uint64_t news_timer;
    int news_step;
};

/* --- informers.c -------------------------------------------------------------------------- */
/* A member with one user, in the list, not started. */
kl__member *kl__member_new_locked(kl_informers *f, const kl_informer_want *w, const kl_gvk *g, char *label,
    const kl_handler *h) KL_REQUIRES(f->mu);
/* Asks those to stop that `which` says (NULL: all), and waits for nothing. */
void kl__members_stop(kl_informers *f, bool (*which)(const kl__member *m));

/* --- informers_news.c: the watch thread, but for kl__members_news_end --------------------- */
/* A member has trouble, or is well again. */
void kl__members_trouble(kl__member *m);
/* Nobody is left who could wait for a kind. Any thread. */
void kl__members_news_end(kl_informers *f);
/* A member of news has stopped. */
void kl__members_news_over(kl_informers *f);

#endif
