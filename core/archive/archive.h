/* archive.h - the only door to SQLite: keeps the objects of a server in a directory, so that they survive the
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
    /* Called when a write failed, on the archive's thread, without locks. The owner takes its lock, calls
     * kl_archive_take_lost, and undoes the returned changes. */
    void (*failed)(void *arg);
    void *arg;
} kl_archive_options;

/* One object, or one change of one. */
typedef struct kl_archive_item {
    const char *group, *plural, *key;
    uint64_t rv;
    const kl_value *old, *now; /* old NULL: new; now NULL: deleted */
} kl_archive_item;

/* KL_EIO, with advice, when the directory cannot be used, another process uses it, or its file is damaged or
 * has another format. Ignores SIGXFSZ in the whole process, so that a file size limit fails a write. */
KL_NODISCARD kl_status kl_archive_open(const kl_archive_options *o, kl_archive **out, kl_err *err);
/* Writes the queued changes, stops, frees; NULL is fine. The caller must add no change meanwhile. */
void kl_archive_close(kl_archive *a);

/* --- before the first kl_archive_add, on the opener's thread ------------------------------------ */
/* The version of the latest change ever written; 0: none. */
uint64_t kl_archive_rv(const kl_archive *a);
/* Each object, sorted by resource and key; `old` is NULL. Definitions of resources (`first` names them:
 * "customresourcedefinitions") come before the others. A failure of fn ends the call. */
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
 * calls done, if all of them are on disk already. */
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

/* Waits until all changes added so far are on disk; KL_EIO says why they are not. Call it without the owner's
 * lock, on any thread but the archive's. */
KL_NODISCARD kl_status kl_archive_settle(kl_archive *a, kl_err *err);

#endif
