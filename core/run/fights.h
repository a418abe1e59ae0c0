/* fights.h - keys that turn in circles: one that its own writes wake again and again, and one whose writes
 * somebody else changes back. No clock, no I/O: it hears of runs, and of what woke them, and says which
 * keys have to go slower.
 *
 *   began -> wrote* -> ended       a loop: run after run is woken by what the one before wrote, and writes
 * something else a fight: we write a field, another manager changes it, we write it again, and so on
 *
 * Such a key waits a second before its next run, then two, up to KL_FIGHTS_DELAY_MAX, until it is quiet.
 * Any thread. */
#ifndef KL_RUN_FIGHTS_H
#define KL_RUN_FIGHTS_H

#include <stdbool.h>
#include "base/clock.h"
#include "value/value.h"

/* So many runs in a row are no convergence any more; slower ones than that, on average, harm nobody. */
#define KL_FIGHTS_LOOP_RUNS 20
#define KL_FIGHTS_LOOP_PACE KL_SECONDS(3)
/* So many times a field goes back and forth; slower is two people who try something. */
#define KL_FIGHTS_ROUNDS 5
#define KL_FIGHTS_ROUND_PACE KL_MINUTES(1)
#define KL_FIGHTS_DELAY_MIN KL_SECONDS(1)
#define KL_FIGHTS_DELAY_MAX KL_MINUTES(1)
/* Keys that are looked at, at once; those that wrote lately. */
#define KL_FIGHTS_KEYS 1000

typedef struct kl_fights kl_fights;

typedef enum kl_fight_kind { KL_FIGHT_NONE, KL_FIGHT_LOOP, KL_FIGHT_FIELD } kl_fight_kind;

typedef struct kl_fight {
    kl_fight_kind kind;
    bool over; /* it is quiet again */
    unsigned rounds;
    kl_time lasted, delay;
    char *object; /* "v1/ConfigMap ns/name" */
    /* of the field that is fought over, or the first one that a loop changes; NULL: not known */
    char *path;
    char *other; /* who else writes it; NULL: not known, since managedFields are not kept */
} kl_fight;
void kl_fight_fini(kl_fight *f);

/* manager: the name under which the runs write; copied. */
kl_fights *kl_fights_new(const char *manager);
void kl_fights_free(kl_fights *f);
void kl_fights_clear(kl_fights *f); /* the logic is another: it starts with a clean slate */
/* The key has to wait, until then. */
bool kl_fights_holds(kl_fights *f, const char *key, kl_time now, kl_time *until);
/* woke: the object whose event brought the key, as it was then; NULL: something else did. Borrowed, as the
 * answer of a write that the server took. */
void kl_fights_began(kl_fights *f, const char *key, const kl_value *woke, kl_time now);
void kl_fights_wrote(kl_fights *f, const char *key, const kl_value *answer, kl_time now);
/* True with *out when there is something to tell: a circle, once, or its end. */
bool kl_fights_ended(kl_fights *f, const char *key, kl_time now, kl_fight *out);
size_t kl_fights_held(kl_fights *f); /* keys that go slower now */

#endif
