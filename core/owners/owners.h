/* owners.h - knows which objects name which owners, and which of them must be checked after a change.
 *
 * The caller acts on a check. Under the server's lock. */
#ifndef KL_OWNERS_OWNERS_H
#define KL_OWNERS_OWNERS_H

#include "store/store.h"

#define KL_FINALIZER_ORPHAN "orphan"
#define KL_FINALIZER_FOREGROUND "foregroundDeletion"

typedef struct kl__owners kl__owners;

typedef struct kl__place_of {
    kl__bucket *bucket;
    char *key;
} kl__place_of;

/* `fixtures`: for tests, a new object with missing owners is kept until another of its owners is deleted. */
kl__owners *kl__owners_new(bool fixtures);
void kl__owners_free(kl__owners *o); /* NULL is fine */
/* An object was added, changed or deleted: notes which of its dependents must be checked, or that it must be
 * checked itself. */
void kl__owners_change(kl__owners *o, kl__bucket *b, const kl__change *c);
/* The objects that name `uid` as an owner: a copy of `*n` places, which the caller frees with
 * kl__owners_drop. */
kl__place_of *kl__owners_dependents(const kl__owners *o, const char *uid, size_t *n);
void kl__owners_drop(kl__place_of *v, size_t n);
/* The next object to check; the caller frees its key. False: there is none. */
bool kl__owners_next(kl__owners *o, kl__place_of *out);
/* Whether an object with that uid was deleted since kl__owners_next last returned false. */
bool kl__owners_gone(const kl__owners *o, const char *uid);
/* Drops all pending checks. */
void kl__owners_forget(kl__owners *o);

#endif
