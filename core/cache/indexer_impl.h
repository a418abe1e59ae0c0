/* indexer_impl.h - the internals of an indexer, for the files that implement it only.
 *
 *   indexer.c   keys, versions, one object put         query.c   answers to lists
 *   lists.c     the store becomes a list               edit.c    memory that a writer adds and retires
 *   indexes.c   indexes that come and go               cells.c   number -> pointer, in versions
 *   buckets.c   where an object stands                 tree.c    ordered sets of numbers, in versions
 *                                                      names.c   hash -> numbers
 *
 * An object has a number, and so has a bucket (the objects that have one value in one index). A version of
 * the store is {cells of objects, cells of buckets, the set of all objects}, immutable, and readers hold one
 * by a pin (base/epoch.h). A writer copies the nodes on the path that it changes, once per edit, and then
 * publishes the new version with one store: a list sees one moment. `names` maps a key to its number, for all
 * versions: an entry is made before the version with the key is published and removed after the one without
 * it; readers check the number in their version. */
#ifndef KL_CACHE_INDEXER_IMPL_H
#define KL_CACHE_INDEXER_IMPL_H

#include <stdatomic.h>
#include "base/epoch.h"
#include "base/sync.h"
#include "cache/indexer.h"
#include "value/path.h"

#define KL__NONE UINT32_MAX /* no number */

/* --- edit.c: the memory of one writer. What readers may still use is freed after their pins. --- */
typedef struct kl__limbo {
    void *p;
    uint64_t epoch;
} kl__limbo;
typedef struct kl__limbos {
    kl__limbo *v;
    size_t from, len, cap;
} kl__limbos;
typedef struct kl__edit {
    /* this edit's number: memory marked with it is not published yet, so it may be changed in place */
    uint64_t now;
    kl__limbos memory, values; /* retired: memory to free, values to unref */
    /* the epoch that the last edit ended; the earliest one that was pinned then */
    uint64_t ended, oldest;
} kl__edit;

void kl__edit_drop(kl__edit *e, void *p, uint64_t made);  /* p was made in edit `made`; NULL is fine */
void kl__edit_drop_value(kl__edit *e, const kl_value *v); /* takes the reference over */
/* after the new version is published: begins the next edit */
void kl__edit_shown(kl__edit *e);
void kl__edit_fini(kl__edit *e); /* no reader left */

/* --- cells.c: number -> pointer. A number that was not set gives NULL. ------------------------------ */
/* shift: of the root's digit in a number; 0: the root is a leaf */
typedef struct kl__cells {
    void *root;
    uint32_t shift;
} kl__cells;
void *kl__cells_get(const kl__cells *c, uint32_t number);
void kl__cells_set(kl__edit *e, kl__cells *c, uint32_t number, void *p);
/* no reader left; does not free what the cells point to */
void kl__cells_fini(kl__cells *c);

/* --- tree.c: an ordered set of numbers ---------------------------------------------------- */
typedef struct kl__key {
    const char *ns, *name;
} kl__key; /* ns "" for cluster scope */
typedef struct kl__tnode kl__tnode;
/* root NULL: empty, or the single member `only` */
typedef struct kl__set {
    kl__tnode *root;
    uint32_t len, only;
} kl__set;
typedef struct kl__order {
    kl__key (*key)(const void *of, uint32_t number);
    const void *of;
} kl__order;

int kl__key_compare(kl__key a, kl__key b); /* as strcmp of "ns/name" */
/* false: it was in the set already */
bool kl__set_add(kl__edit *e, kl__set *s, const kl__order *o, uint32_t number);
/* false: it was not in the set */
bool kl__set_remove(kl__edit *e, kl__set *s, const kl__order *o, uint32_t number);
/* the number of keys before key */
uint32_t kl__set_rank(const kl__set *s, const kl__order *o, kl__key key);
bool kl__set_has(const kl__set *s, const kl__order *o, kl__key key);
/* Calls see for members from rank `from` to below `to`, in order, while it returns true. False when it
 * stopped. */
typedef bool kl__see(void *arg, uint32_t number);
bool kl__set_walk(const kl__set *s, uint32_t from, uint32_t to, kl__see *see, void *arg);
void kl__set_drop(kl__edit *e, kl__set *s); /* e NULL: no reader left */

/* --- names.c: a hash (a tag: never 0) -> the numbers entered under it --------------------- */
typedef struct kl__slots kl__slots;
/* The writer's tables: the next version takes their slots. */
typedef struct kl__names {
    kl__slots *slots;
    size_t live, used;
} kl__names;
typedef struct kl__probe {
    const kl__slots *slots;
    uint32_t tag;
    size_t at;
} kl__probe;
kl__probe kl__names_probe(const kl__slots *s, uint32_t tag);
bool kl__probe_next(kl__probe *p, uint32_t *number); /* candidates; false: no more */
void kl__names_add(kl__edit *e, kl__names *n, uint32_t tag, uint32_t number);
void kl__names_remove(kl__names *n, uint32_t tag, uint32_t number);
void kl__names_fini(kl__names *n);

/* --- numbers with names and cells: of objects, and of buckets ----------------------------- */
typedef struct kl__gone {
    uint32_t tag, number;
} kl__gone;
/* a number that no version after `epoch` has */
typedef struct kl__spare {
    uint64_t epoch;
    uint32_t number;
} kl__spare;
typedef struct kl__table {
    kl__names names;
    kl__cells cells;  /* of the next version */
    uint32_t end;     /* all numbers in use are below it */
    kl__spare *spare; /* freed numbers, from..n; reused when no reader can know them */
    size_t from_spare, n_spare, cap_spare;
    kl__gone *gone; /* removed in this edit: their names go when it is published */
    size_t n_gone, cap_gone;
} kl__table;
uint32_t kl__table_add(kl__edit *e, kl__table *t, uint32_t tag, void *p);
void kl__table_remove(kl__edit *e, kl__table *t, uint32_t tag, uint32_t number);
void kl__table_shown(const kl__edit *e, kl__table *t);
void kl__table_fini(kl__table *t);

/* A zeroed array whose elements never move. The writer changes it; readers use their version's elements. */
#define KL__CHUNK 256u /* elements in a chunk */
typedef struct kl__chunks {
    char **v;
    uint32_t len;
} kl__chunks; /* len: room for chunks */
void *kl__chunks_at(kl__edit *e, kl__chunks *c, size_t size, uint32_t i);
void kl__chunks_fini(kl__chunks *c);

/* --- indexes ------------------------------------------------------------------------------ */
typedef struct kl__index {
    char *name;
    kl_path *path; /* a path index, */
    char *label;   /* or one label, created automatically and without a name, */
    /* or a function; none of the three: the namespace index, which is answered from the keys */
    kl_index_fn *fn;
    void *arg;
    void (*free_arg)(void *);
    uint32_t id; /* part of its buckets' tags */
    /* of a function index: object number -> its buckets, an array or NULL */
    kl__chunks stands;
    int users;
    bool live;       /* the writer keeps it up to date */
    uint32_t filled; /* of a function index: objects with lower numbers are in it */
    bool swept;      /* dropped, and its buckets are being removed */
} kl__index;

typedef struct kl__bucket {
    uint64_t made; /* the edit */
    const kl__index *of;
    kl__set set;
    uint32_t tag;
    bool any; /* the objects that have any value; `value` is "" then */
    char value[];
} kl__bucket;

typedef struct kl__index_list { /* the indexes of one version; immutable */
    size_t len;
    /* ready: knows all objects, readers may use it */
    struct kl__listed {
        kl__index *index;
        bool ready;
    } v[];
} kl__index_list;

typedef struct kl__numbers {
    uint32_t *v;
    size_t len, cap;
} kl__numbers;

/* The values of function indexes for one object: texts one after the other with their NULs. */
typedef struct kl__said {
    kl__index *index;
    size_t at;
} kl__said;
typedef struct kl__sayings {
    kl_buf text;
    kl__said *v;
    size_t len, cap;
} kl__sayings;

/* --- the whole ---------------------------------------------------------------------------- */
typedef struct kl__version {
    kl__cells objects, buckets;
    const kl__slots *object_names, *bucket_names; /* may also name objects of later versions */
    kl__set all;
    const kl__index_list *indexes;
    char *const *keys; /* the chunks' */
    uint32_t end;      /* the objects' numbers are below */
    char rv[];
} kl__version;

/* Remembered positions of fields in objects, for one reader: a pin's holder uses those of its place. */
typedef struct kl__fields {
    kl_lookup metadata, labels;
} kl__fields;
/* one version, as long as it is pinned */
typedef struct kl__sight {
    const kl__version *v;
    kl__fields *fields;
    unsigned pin;
} kl__sight;

#define KL__WISHES 8 /* labels that may get an index of their own */

struct kl_indexer {
    _Atomic(kl__version *) shown;
    kl__fields *fields[KL_EPOCH_PLACES]; /* by place; made on first use */
    struct {
        _Atomic uint32_t tag, count;
    } wish[KL__WISHES];
    _Atomic uint64_t generation; /* of the function indexes that are live */
    kl_mutex mu;                 /* for writers; it guards: */
    kl__edit edit;
    kl__table objects, buckets;
    kl__set all;
    kl__chunks keys; /* object number -> kl__key: strings that all states of the object share */
    kl__index_list *indexes;
    kl__index **dropped;
    size_t n_dropped;
    uint32_t index_ids;
    char *rv; /* never NULL */
    size_t rv_cap;
    kl__numbers was, will; /* buckets of the object in hand */
    /* the apply context's: */
    kl__index **fns; /* as of fns_generation */
    size_t n_fns;
    uint64_t fns_generation;
    kl__sayings said;
    kl_lookup metadata, ns, name, uid, resource_version; /* their paths in objects */
};

/* --- indexer.c ---------------------------------------------------------------------------- */
uint32_t kl__tag(uint64_t hash);
uint32_t kl__key_tag(const char *text);
void kl__show_locked(kl_indexer *ix) KL_REQUIRES(ix->mu); /* publishes the changes */
kl__order kl__order_of(kl_indexer *ix);                   /* by the keys that the writer keeps */
kl__sight kl__look(kl_indexer *ix);                       /* any thread; until kl__look_away */
void kl__look_away(const kl__sight *s);
kl__order kl__order_in(const kl__sight *s); /* by the keys of a version */
void kl__set_rv_locked(kl_indexer *ix, const char *rv) KL_REQUIRES(ix->mu);

/* The apply context's. As kl_indexer_key, and the key as it stands in the object. */
bool kl__key_of(kl_indexer *ix, const kl_value *o, char text[KL_KEY_MAX], kl__key *key);
/* Stores o under its key; said[from..to] are its values of function indexes. False: unchanged. *old, the
 * previous object, is borrowed until the version is published. */
bool kl__put_locked(kl_indexer *ix, const char *text, kl__key key, const kl_value *o, size_t from, size_t to,
    uint32_t *number, const kl_value **old) KL_REQUIRES(ix->mu);
/* borrowed as above */
const kl_value *kl__remove_locked(kl_indexer *ix, const char *text, uint32_t number) KL_REQUIRES(ix->mu);

/* Function indexes run before the lock is taken: refresh, ask (into ix->said), lock; repeat when no longer
 * fresh. */
void kl__fns_refresh(kl_indexer *ix);
bool kl__fns_fresh(kl_indexer *ix);
void kl__fns_ask(kl_indexer *ix, const kl_value *o);
void kl__fns_forget(kl_indexer *ix);
/* o is unchanged: no function need run */
bool kl__fns_know(kl_indexer *ix, const char *text, kl__key key, const kl_value *o);

/* --- buckets.c ---------------------------------------------------------------------------- */
void kl__say(kl__sayings *s, kl__index *x, const kl_value *o); /* runs a script: not under the lock */
void kl__sayings_fini(kl__sayings *s);
const kl__bucket *kl__bucket_find(
    const kl__slots *names, const kl__cells *cells, const kl__index *x, const char *value, bool any);
void kl__bucket_remove_locked(kl_indexer *ix, uint32_t number, kl__bucket *b) KL_REQUIRES(ix->mu);
/* The object under `number` was `old` (NULL: absent) and is now `now`; said[from..to]: what the function
 * indexes emitted for `now`. */
void kl__indexes_update_locked(kl_indexer *ix, uint32_t number, const kl_value *old, const kl_value *now,
    const kl__sayings *said, size_t from, size_t to) KL_REQUIRES(ix->mu);
/* The same for one index. indexed: it contains `old`; an index that is being filled may not. */
void kl__index_part_locked(kl_indexer *ix, const kl__index *x, uint32_t number, const kl_value *old,
    const kl_value *now, bool indexed) KL_REQUIRES(ix->mu);
void kl__index_fn_locked(kl_indexer *ix, kl__index *x, uint32_t number, const kl_value *now,
    const kl__sayings *said, size_t from, size_t to) KL_REQUIRES(ix->mu);
void kl__index_forget(kl__index *x); /* frees the memory of a function index */

/* --- indexes.c ---------------------------------------------------------------------------- */
const struct kl__listed *kl__index_find(const kl__index_list *l, const char *name); /* or NULL */
const struct kl__listed *kl__index_find_label(const kl__index_list *l, const char *label);
/* builds the index unless it exists; takes the lock */
void kl__index_label(kl_indexer *ix, const char *label);
void kl__indexes_init_locked(kl_indexer *ix) KL_REQUIRES(ix->mu); /* the namespace */
void kl__indexes_fini(kl_indexer *ix);                            /* no reader left */

#endif
