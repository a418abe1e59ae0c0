/* archive.h - the only door to SQLite: the objects of a server in a directory, so that they survive the
 * process, however it ends.
 *
 * Changes are queued under the owner's lock, in their order, and written by the archive's thread: all changes
 * that arrived meanwhile are one transaction and one fsync. Callers that need the result wait outside that
 * lock. A change that could not be written is handed back with all that were queued after it; the owner
 * undoes them. */
#ifndef KL_ARCHIVE_ARCHIVE_H
#define KL_ARCHIVE_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>
#include "value/value.h"

typedef struct kl_archive kl_archive;

typedef struct kl_archive_options {
    const char *dir; /* created when missing; only the owner may read its files */
    /* On the archive's thread, without locks: a write failed. The owner takes its lock, then
     * kl_archive_take_lost, and undoes what that returns. */
    void (*failed)(void *arg);
    void *arg;
} kl_archive_options;

/* One object, or one change of one. */
typedef struct kl_archive_item {
    const char *group, *plural, *key;
    uint64_t rv;
    const kl_value *old, *now; /* old NULL: it is new; now NULL: it is gone */
} kl_archive_item;

/* KL_EIO, with the way out, when the directory cannot be used, another process uses it, or its file is
 * damaged or has another format. */
KL_NODISCARD kl_status kl_archive_open(const kl_archive_options *o, kl_archive **out, kl_err *err);
/* Writes what is queued, stops, frees; NULL is fine. The caller makes sure that nothing is added
 * meanwhile. */
void kl_archive_close(kl_archive *a);

/* --- before the first kl_archive_add, on the opener's thread ------------------------------------ */
/* The version of the latest change ever written; 0: none. */
uint64_t kl_archive_rv(const kl_archive *a);
/* Each object, sorted by resource and key; `old` is NULL. Definitions of resources (`first` names them:
 * "customresourcedefinitions") come before the others. fn's failure ends it. */
KL_NODISCARD kl_status kl_archive_each(kl_archive *a,
    kl_status (*fn)(void *arg, const kl_archive_item *item, kl_err *err), void *arg, kl_err *err);
/* Each resource with the version of its latest change; only group, plural and rv are set. */
KL_NODISCARD kl_status kl_archive_resources(
    kl_archive *a, void (*fn)(void *arg, const kl_archive_item *item), void *arg, kl_err *err);

/* --- under the owner's lock --------------------------------------------------------------------- */
/* Queues a change; copies the strings, refers to the values. Never waits. */
void kl_archive_add(kl_archive *a, const kl_archive_item *change);
/* Calls done once, when all changes added so far are on disk (`failure` NULL), or were handed back
 * (`failure`, borrowed, says why). done runs on the archive's thread, without locks. Returns true, and never
 * calls done, when all is on disk already.
 */
typedef void kl_archive_done(void *arg, const char *failure);
bool kl_archive_when(kl_archive *a, kl_archive_done *done, void *arg);
/* From `failed`: the changes that are not on disk, in order. Freed with kl_archive_free_lost, without the
 * lock: that calls the waiting done functions. */
typedef struct kl_archive_lost {
    kl_archive_item *v;
    size_t n;
    void *hold;
} kl_archive_lost;
void kl_archive_take_lost(kl_archive *a, kl_archive_lost *out);
void kl_archive_free_lost(kl_archive *a, kl_archive_lost *lost);

/* Waits until all that was added so far is on disk; KL_EIO says why it is not. Call it without the owner's
 * lock, on any thread but the archive's. */
KL_NODISCARD kl_status kl_archive_settle(kl_archive *a, kl_err *err);

#endif
