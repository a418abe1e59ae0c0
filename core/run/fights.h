/* fights.h - detects write loops: a key that its own writes trigger again and again, and a key whose writes
 * another manager reverts. No clock, no I/O: it gets runs and their causes, and names keys to slow down.
 *
 *   began -> wrote* -> ended
 *
 *   a loop:  each run is triggered by the write of the previous run, and writes something else
 *   a fight: we write a field, another manager changes it, we write it again, and so on
 *
 * Such a key waits a second before its next run, then two, up to KL_FIGHTS_DELAY_MAX, until it is quiet. In
 * virtual time (tests) no key can wait: only loops are reported, again every KL_FIGHTS_STILL_RUNS. Any
 * thread. */
#ifndef KL_RUN_FIGHTS_H
#define KL_RUN_FIGHTS_H

#include <stdbool.h>
#include "base/clock.h"
#include "value/value.h"

/* More runs in a row than this are not convergence; loops with a longer average pace do no harm. */
#define KL_FIGHTS_LOOP_RUNS 20
#define KL_FIGHTS_LOOP_PACE KL_SECONDS(3)
/* The number of runs in virtual time, where a loop does no harm and a script may need many steps at one
 * moment. */
#define KL_FIGHTS_STILL_RUNS 200
/* How often a field must go back and forth; slower changes are people at work. */
#define KL_FIGHTS_ROUNDS 5
#define KL_FIGHTS_ROUND_PACE KL_MINUTES(1)
#define KL_FIGHTS_DELAY_MIN KL_SECONDS(1)
#define KL_FIGHTS_DELAY_MAX KL_MINUTES(1)
/* The number of keys under observation: those that wrote recently. */
#define KL_FIGHTS_KEYS 1000

typedef struct kl_fights kl_fights;

typedef enum kl_fight_kind { KL_FIGHT_NONE, KL_FIGHT_LOOP, KL_FIGHT_FIELD } kl_fight_kind;

typedef struct kl_fight {
    kl_fight_kind kind;
    bool over; /* it has settled */
    unsigned rounds;
    kl_time lasted, delay;
    char *object; /* "v1/ConfigMap ns/name" */
    /* the path of the disputed field, or of the first field that a loop changes; NULL: unknown */
    char *path;
    char *other; /* the other manager; NULL: unknown, since managedFields are not kept */
} kl_fight;
void kl_fight_fini(kl_fight *f);

/* manager: the name under which the runs write; copied. still: virtual time, which stands still while keys
 * run. */
kl_fights *kl_fights_new(const char *manager, bool still);
void kl_fights_free(kl_fights *f);
void kl_fights_clear(kl_fights *f); /* forgets all keys, since the logic has changed */
/* True: the key has to wait until *until. */
bool kl_fights_holds(kl_fights *f, const char *key, kl_time now, kl_time *until);
/* woke: the object, in that state, whose event triggered the key; NULL: another cause. answer: of an accepted
 * write. Both are borrowed. */
void kl_fights_began(kl_fights *f, const char *key, const kl_value *woke, kl_time now);
void kl_fights_wrote(kl_fights *f, const char *key, const kl_value *answer, kl_time now);
/* True with *out when there is something to report: a loop or a fight, once, or its end. */
bool kl_fights_ended(kl_fights *f, const char *key, kl_time now, kl_fight *out);
size_t kl_fights_held(kl_fights *f); /* keys that are slowed down now */

#endif
