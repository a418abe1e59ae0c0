/* replay.h - runs a recording (lab/past.h) again, with the same scripts or others, and compares their writes
 * with the recorded ones.
 *
 * One thread, no network, a clock set to the recording's times: the same recording and scripts give the same
 * report, on any machine. Each run gets the inputs of the recorded run, matched by its requests: cache reads,
 * the time of day, answers. A request that was not recorded is answered from the recording's state at that
 * moment and this run's writes (run/overlay.h). Writes of one run do not change what later runs see: each is
 * compared separately. */
#ifndef KL_LAB_REPLAY_H
#define KL_LAB_REPLAY_H

#include "lab/past.h"

typedef enum kl_replay_verdict {
    KL_REPLAY_SAME,
    KL_REPLAY_DIFFERS, /* other writes, or another result */
    KL_REPLAY_FAILS,   /* it fails now; the recorded run did not */
    /* the recorded run was aborted, or the recording ends first, so there is nothing to compare */
    KL_REPLAY_CUT,
} kl_replay_verdict;

typedef enum kl_replay_how { KL_REPLAY_OTHER, KL_REPLAY_NEW, KL_REPLAY_MISSING } kl_replay_how;

typedef struct kl_replay_change { /* of a write */
    /* OTHER: written differently; NEW: only by the replay; MISSING: only by the recorded run */
    kl_replay_how how;
    const kl_value *then, *now; /* the calls (kl_record_op); NULL: none */
    /* the fields of the object that differ: "data.a: 1 -> 2"; may be "" */
    const char *text;
    const char *kind; /* the same without values (lab/differences.h): "patch v1/ConfigMap: data.a" */
} kl_replay_change;

typedef struct kl_replayed { /* borrowed for the call */
    const kl_past_run *run;
    kl_replay_verdict verdict;
    const kl_replay_change *changes;
    size_t n_changes;
    const char *result, *message; /* of the replay; message NULL: none */
    kl_time after;                /* -1: none given */
    bool result_differs;
    size_t writes; /* of the replay */
} kl_replayed;

typedef struct kl_replay_options {
    const kl_past *past;
    kl_program *const *programs;
    size_t n_programs;
    kl_time until; /* runs that began later are left out; 0: none */
    /* only runs of this key are reported; the others still run. NULL: all */
    const char *key;
    void (*told)(void *arg, const kl_replayed *x); /* each run, when it has ended; may be NULL */
    void *arg;
} kl_replay_options;

typedef struct kl_replay_sum {
    size_t runs, same, differ, fail, cut;
    size_t others;      /* runs of controllers that no program has */
    kl_time span, took; /* of the recording; real time that the replay took */
    /* notes about the report; the caller frees them (kl_replay_sum_fini) */
    char **notes;
    size_t n_notes;
} kl_replay_sum;

/* KL_EINVAL: no program has a controller of the recording; KL_ESCRIPT: one cannot be opened. */
KL_NODISCARD kl_status kl_replay(const kl_replay_options *o, kl_replay_sum *out, kl_err *err);
void kl_replay_sum_fini(kl_replay_sum *s);

#endif
