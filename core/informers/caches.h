/* caches.h - one shared informer per kind, started by its first user and stopped by its last.
 *
 *   resolving --found--> running --404, and discovery agrees--> gone: its objects are deleted --listed again--> running
 *       ^  `--no such kind, no answer--> missing --news, or later--> resolving
 *
 * A running informer syncs, watches, parks and recovers without help.
 *
 * News of kinds come from a watch of CustomResourceDefinitions and APIServices, which begins when the first
 * kind is missing or an informer is parked, and ends with the last cache. Where that watch is forbidden,
 * missing kinds are polled every 1 to 30 s.
 *
 * Everything here runs on the manager's loop unless stated otherwise. */
#ifndef KL_INFORMERS_CACHES_H
#define KL_INFORMERS_CACHES_H

#include "cache/informer.h"
#include "client/client.h"
#include "base/loop.h"

typedef struct kl_caches kl_caches;
typedef struct kl_cache kl_cache;

/* One list and watch that a cache wants. Borrowed for the call. */
typedef struct kl_cache_source {
    /* the cache's kind, with its selection unless that is the default */
    const char *label;
    const char *ns;              /* NULL: all */
    const char *labels, *fields; /* selectors; NULL: all */
    /* only metadata of each object is fetched; it has the object's kind nevertheless */
    bool metadata;
    kl_projection *keep; /* NULL: everything */
} kl_cache_source;

/* The source of kinds and objects: the client in production, a script in specs. */
typedef struct kl_caches_origin {
    /* calls done on any thread; resources outlive the set */
    void (*resolve)(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg);
    /* called before a kind is resolved again */
    void (*forget)(void *arg);
    void (*source)(void *arg, const kl_resource *r, const kl_cache_source *w, kl_source *out);
    void *arg;
} kl_caches_origin;

typedef struct kl_caches_options {
    kl_client *client;
    const kl_caches_origin *origin; /* copied; NULL: client */
    kl_clock *clock;
    kl_loop *loop, *mapper; /* mapper: where function indexes run */
    const char *ns;         /* borrowed; NULL: all namespaces */
    size_t max_object;
    bool drop_managed_fields, quiet; /* quiet: a missing kind is logged at debug */
    /* caches begin with the initial events of a watch rather than with lists, if the server supports it */
    bool stream;
    bool watch_kinds;           /* see above; false: missing kinds are only polled */
    void (*changed)(void *arg); /* a cache was resolved, synced, or lost its kind; on the loop */
    void *changed_arg;
    /* `begun` is called for each informer before its start, `ended` before its stop. On the loop; a
     * subscriber from `begun` unsubscribes in `ended` at the latest. Both may be NULL. */
    void (*begun)(
        void *arg, const char *kind, const kl_resource *r, const kl_cache_source *want, kl_informer *i);
    void (*ended)(void *arg, kl_informer *i);
    void *begun_arg;
} kl_caches_options;

kl_caches *kl_caches_new(const kl_caches_options *o);
/* After the release of every cache. Waits for the informers to stop, so do not call it on the loop. */
void kl_caches_free(kl_caches *s);
/* Shutdown starts: scripts' functions, on which the stop of informers would wait, are no longer called, those
 * of earlier generations included. Any thread. */
void kl_caches_end(kl_caches *s);
bool kl_caches_ending(const kl_caches *s);
/* What the index functions of all scripts took since their last pause, counted by whoever calls them. Mapper
 * thread. */
typedef struct kl_indexing {
    kl_time since, taken;
    kl_time cpu;  /* of the thread, at the beginning */
    kl_time most; /* of one script */
} kl_indexing;
kl_indexing *kl_caches_indexing(kl_caches *s);

/* A user's selection of a kind. Borrowed for the call; all zero: every object that the set sees, with the
 * projection of the options. */
typedef struct kl_want {
    bool cut;            /* `keep` applies to each object, instead of the options */
    kl_projection *keep; /* NULL: everything */
    const char *what;    /* for people: "spec.nodeName, status.phase"; or NULL */
    bool metadata;       /* only metadata is fetched (PartialObjectMetadata) */
    /* for a namespaced kind: only objects in these; NULL-terminated. NULL: all that the set sees */
    char *const *namespaces;
    /* for a namespaced kind: of `namespaces`, only those that its users hold (kl_cache_hold) */
    bool divided;
    /* selectors of the requests; an object that no longer matches leaves the cache as if deleted. NULL:
     * all */
    const char *labels, *fields;
} kl_want;

/* The shared cache of a kind, begun when this is its first user; never NULL. Each acquire needs one release,
 * and the last release stops the informer. want NULL: all zero. It returns an existing cache that has the
 * same objects with at least these fields, or begins another. On the loop. */
kl_cache *kl_caches_acquire(kl_caches *s, const char *kind, const kl_want *want);
void kl_cache_release(kl_cache *c);

const char *kl_cache_kind(const kl_cache *c);
kl_informer *kl_cache_informer(kl_cache *c);       /* borrowed; NULL until resolved, then fixed. */
const kl_resource *kl_cache_resource(kl_cache *c); /* NULL until resolved */
/* The kind was deleted and recreated with another scope or plural. Its users should acquire it again, which
 * gives a fresh cache. */
bool kl_cache_outdated(const kl_cache *c);
/* Why the cache is not usable: "the server has no such kind ...", the missing RBAC rule, or another reason
 * why it cannot list and watch; NULL when it is usable. Caller frees. */
char *kl_cache_problem(kl_cache *c);
/* From now on the cache's events are applied on the mapper loop. Cannot be undone. */
void kl_cache_use_mapper(kl_cache *c);

/* Sets the namespaces that `user` holds of a divided cache: each is listed and watched while any user holds
 * it. `namespaces`: a set (base/texts.h), copied; NULL: none, as required before the user's release. */
void kl_cache_hold(kl_cache *c, const void *user, char *const *namespaces);
/* Whether the cache has all objects of a namespace; for cluster-scoped kinds: whether it is synced. `changed`
 * is called when a namespace becomes complete. */
bool kl_cache_covers(kl_cache *c, const char *ns);
/* The only namespace that the set watches, or NULL: all. Borrowed. */
const char *kl_caches_namespace(const kl_caches *s);

/* The `changed` hook of the options, for other code that reports changes. */
void kl_caches_notify(kl_caches *s, void (**changed)(void *), void **arg);

/* The kind of a cache that is behind: its kind is being looked up, or its informer has not reached rv. NULL:
 * no cache is behind. Caller frees. On the loop. */
char *kl_caches_behind(kl_caches *s, uint64_t rv);
/* Calls fn for every cache that has an informer; `kind` includes its selection: "v1/Pod (spec.nodeName;
 * labels app=x)". Any thread; under the set's lock: do not call back. */
void kl_caches_each(kl_caches *s, void (*fn)(void *arg, const char *kind, kl_informer *i), void *arg);

#endif
