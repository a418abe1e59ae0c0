/* locks.c - records the locks that each thread holds, in debug builds, and aborts a process that takes them
 * in another order than that of locks.h. */
#include "base/locks.h"
#include "base/sync.h"

#ifdef KL_DEBUG

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 16 /* locks that one thread holds at once, at most */

typedef struct held {
    const void *lock;
    int rank;
    const char *place;
} held;

static _Thread_local held mine[MOST];
static _Thread_local int n_mine;

static __attribute__((noreturn)) void end(const char *what, const char *held, const char *why)
{
    fprintf(stderr, "kubelua: %s while the lock of %s is held%s\n", what, held, why);
    abort();
}

/* A zero-initialised spin lock has no name, and comes last in the order. */
static held held_of(const void *lock, const kl__lock_id *id)
{
    return (held){lock,
        !id->place     ? KL_LOCK_LAST
            : id->rank ? id->rank
                       : KL_LOCK_LEAF,
        id->place ? id->place : "a spin lock"};
}

void kl__lock_wanted(const void *lock, const kl__lock_id *id)
{
    held h = held_of(lock, id);
    char what[256];
    for (int i = 0; i < n_mine; i++)
        if (mine[i].rank >= h.rank) {
            snprintf(what, sizeof what, "the lock of %s is taken", h.place);
            end(what, mine[i].place, "; base/locks.h has the order");
        }
    if (n_mine == MOST)
        end("a lock is taken", mine[0].place, "; that exceeds the maximum number of held locks");
    mine[n_mine++] = h;
}

void kl__lock_dropped(const void *lock)
{
    for (int i = n_mine; i-- > 0;)
        if (mine[i].lock == lock) {
            memmove(&mine[i], &mine[i + 1], (size_t)(--n_mine - i) * sizeof *mine);
            return;
        }
    end("a lock is released", "nobody", "");
}

void kl__locks_only(const void *lock, const char *what)
{
    for (int i = 0; i < n_mine; i++)
        if (mine[i].lock != lock)
            end(what, mine[i].place, "");
}

#endif
