/* listwatch.h - a set of caches whose lists and watches come from memory: no thread, no socket. Requests of
 * caches are answered in kl_listwatch_pump.
 *
 * One thread owns the whole set and runs every callback. */
#ifndef KL_LAB_LISTWATCH_H
#define KL_LAB_LISTWATCH_H

#include "base/loop.h"
#include "informers/caches.h"

typedef struct kl_listwatch kl_listwatch;

/* The list and watch of one cache. */
typedef struct kl_listwatch_feed {
    const kl_resource *resource;
    const char *label; /* of the cache: its kind and its selection */
    const char *ns;    /* NULL: all */
    /* selectors; NULL: all. `opened` may set them to NULL if the objects that `each` gives are selected
     * already */
    const char *labels, *fields;
    void *mine; /* for `opened`, which may set it */
} kl_listwatch_feed;

/* Takes its own reference. False: the feed's namespace or selectors exclude the object, or the list has
 * ended. */
typedef bool kl_listwatch_item(void *arg, const kl_value *object);

typedef struct kl_listwatch_options {
    const char *name; /* of its loops */
    kl_clock *clock;
    bool timers; /* due timers of the loops run, too; false: they never run */
    bool drop_managed_fields;
    const char *where; /* "the recording": the source, for messages about kinds that `resolve` does not know
                        */
    /* NULL: there is no such kind. A resource outlives the kl_listwatch. */
    const kl_resource *(*resolve)(void *arg, const char *kind);
    /* Calls `item` with each object that the feed may have in a list. */
    void (*each)(void *arg, const kl_listwatch_feed *f, kl_listwatch_item *item, void *item_arg);
    void (*opened)(void *arg, kl_listwatch_feed *f); /* NULL: nobody asks */
    void (*closed)(void *arg, kl_listwatch_feed *f); /* NULL: nobody asks */
    void *arg;
} kl_listwatch_options;

/* Copies the options; name and where are static. */
kl_listwatch *kl_listwatch_new(const kl_listwatch_options *o);
/* Pumps a last time, then frees. */
void kl_listwatch_free(kl_listwatch *l);
kl_caches *kl_listwatch_caches(kl_listwatch *l);
kl_loop *kl_listwatch_loop(kl_listwatch *l);
kl_loop *kl_listwatch_mapper(kl_listwatch *l);
/* Answers requests and runs the loops until no work is left. */
void kl_listwatch_pump(kl_listwatch *l);
/* Sends an event ("ADDED", "MODIFIED", "DELETED") to the watches for which `for_it` returns true. A watch
 * whose selectors do not match the object gets DELETED. */
void kl_listwatch_tell(kl_listwatch *l, bool (*for_it)(void *ctx, const kl_listwatch_feed *f), void *ctx,
    const char *type, const kl_value *object);
/* A new id, unique among lists, watches and the owner's own ids. */
uint64_t kl_listwatch_id(kl_listwatch *l);

#endif
