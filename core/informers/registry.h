/* registry.h - the shared informers and their users, for both kinds of sets.
 *
 *   absent --add--> users > 0 --the last leaves--> stopping: not found any more --drop--> freed
 *
 * caches.c keeps its entries on a manager's loop, looks a kind up before it creates the informer, and also
 * shares one with a wider scope. informers.c is called by any thread and creates the informer at once, for
 * indexes and handlers that are added before the start; it shares only an equal scope. The table, its lock
 * and the comparison of scopes are common, and are here. */
#ifndef KL_INFORMERS_REGISTRY_H
#define KL_INFORMERS_REGISTRY_H

#include "base/sync.h"
#include "value/projection.h"

/* Which objects an informer holds, and which parts of them. */
typedef struct kl__scope {
    kl_projection *keep; /* NULL: everything */
    bool metadata;
    char **namespaces;     /* sorted, NULL-terminated; NULL: all that the set watches */
    bool divided;          /* only those of `namespaces` that its users hold */
    char *labels, *fields; /* NULL: all */
} kl__scope;

void kl__scope_fini(kl__scope *c);
bool kl__scope_serves(const kl__scope *a, const kl__scope *b); /* an informer with scope a can serve users of
                                                                  b */
bool kl__scope_equal(const kl__scope *a, const kl__scope *b);
/* Whether the projection keeps the annotation that marks the end of a watch's initial events. */
bool kl__scope_streams(const kl__scope *c);

/* One shared informer: the first member of a set's own struct. */
typedef struct kl__entry {
    struct kl__entry *next;
    char *kind, *label; /* label: distinguishes it from other informers of its kind */
    kl__scope scope;
    int users;   /* changed under the registry's lock */
    bool hidden; /* created by the set itself, and not shared */
} kl__entry;

typedef struct kl__registry {
    kl_mutex mu;
    kl_cond cond;                         /* an entry was dropped, or an event of the set */
    kl__entry *entries KL_GUARDED_BY(mu); /* the newest first, stopping ones included */
} kl__registry;

void kl__registry_init(kl__registry *r);
void kl__registry_fini(kl__registry *r); /* it is empty */
/* Puts e into the table with one user; the texts are copied, the scope is taken over. */
void kl__registry_add_locked(
    kl__registry *r, kl__entry *e, const char *kind, const char *label, kl__scope *scope) KL_REQUIRES(r->mu);
/* The entry of a kind for which `fits` returns true, with one more user; or NULL. */
kl__entry *kl__registry_join_locked(kl__registry *r, const char *kind, const kl__scope *scope,
    bool (*fits)(const kl__entry *e, const kl__scope *scope)) KL_REQUIRES(r->mu);
/* Removes e and frees what kl__registry_add_locked copied; the caller frees e. Wakes threads that wait for
 * it. */
void kl__registry_drop_locked(kl__registry *r, kl__entry *e) KL_REQUIRES(r->mu);
/* Wakes the threads that wait on the registry's condition. */
void kl__registry_tell(kl__registry *r);

#endif
