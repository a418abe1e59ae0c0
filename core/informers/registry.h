/* registry.h - who shares which informer, for both kinds of sets.
 *
 *   nobody has it --add--> users > 0 --the last leaves--> stopping: not found any more --drop--> freed
 *
 * caches.c keeps its entries on a manager's loop, looks a kind up before it makes the informer, and shares a
 * larger one. informers.c is called by any thread and has the informer at once, for indexes and handlers
 * that come before the start; what it shares is exactly what was asked for. The table, its lock and the
 * comparison of wishes are the same, and are here. */
#ifndef KL_INFORMERS_REGISTRY_H
#define KL_INFORMERS_REGISTRY_H

#include "base/sync.h"
#include "value/projection.h"

/* Which objects an informer holds, and what of them. */
typedef struct kl__scope {
    kl_projection *keep; /* NULL: everything */
    bool metadata;
    char **namespaces;     /* sorted, NULL-terminated; NULL: what the set sees */
    bool divided;          /* of these, those that its users hold */
    char *labels, *fields; /* NULL: all */
} kl__scope;

void kl__scope_fini(kl__scope *c);
bool kl__scope_serves(const kl__scope *a, const kl__scope *b); /* who wants b is well served with a */
bool kl__scope_equal(const kl__scope *a, const kl__scope *b);
/* The end of a watch's initial events is told in an annotation: whether that is kept. */
bool kl__scope_streams(const kl__scope *c);

/* One shared informer: the first member of what a set keeps of it. */
typedef struct kl__entry {
    struct kl__entry *next;
    char *kind, *label; /* label: what tells it from others of its kind */
    kl__scope scope;
    int users;   /* changed under the registry's lock */
    bool hidden; /* begun by the set itself: nobody joins it */
} kl__entry;

typedef struct kl__registry {
    kl_mutex mu;
    kl_cond cond;                         /* an entry was dropped, or what the set says */
    kl__entry *entries KL_GUARDED_BY(mu); /* the newest first, those that stop included */
} kl__registry;

void kl__registry_init(kl__registry *r);
void kl__registry_fini(kl__registry *r); /* it is empty */
/* Puts e into the table with one user; the texts are copied, the scope is taken over. */
void kl__registry_add_locked(
    kl__registry *r, kl__entry *e, const char *kind, const char *label, kl__scope *scope) KL_REQUIRES(r->mu);
/* The entry of a kind that `fits`, with one user more; NULL: there is none. */
kl__entry *kl__registry_join_locked(kl__registry *r, const char *kind, const kl__scope *scope,
    bool (*fits)(const kl__entry *e, const kl__scope *scope)) KL_REQUIRES(r->mu);
/* Takes e out and frees what add made; e itself is the caller's. Tells those who wait for it. */
void kl__registry_drop_locked(kl__registry *r, kl__entry *e) KL_REQUIRES(r->mu);
/* Tells those who wait on the registry's condition. */
void kl__registry_tell(kl__registry *r);

#endif
