/* shadow_judge.h - whether a candidate's result matches that of the live run. Pure; any thread.
 *
 * Effects are compared as outcomes: the writes of both are applied to the original object, and the results
 * are compared. So a patch and an update with the same result are equal. For applies, the applied fields are
 * compared, too: they decide ownership. */
#ifndef KL_LAB_SHADOW_JUDGE_H
#define KL_LAB_SHADOW_JUDGE_H

#include "lab/shadow_run.h"

typedef enum kl_verdict { KL_SAME, KL_DIFFERS, KL_FAILS } kl_verdict;
const char *kl_verdict_name(kl_verdict v); /* "same", "differs", "fails"; static */

typedef struct kl_judgement {
    kl_verdict verdict;
    /* "v1/ConfigMap ns/a: data.x: \"1\" -> \"2\"; result: done -> after 30s", live -> candidate; NULL when
     * same */
    char *diff;
    char *kind; /* of this difference (lab/differences.h); NULL when same */
} kl_judgement;

/* `own` is the resource of the controller, `end` the candidate's result. The caller frees diff and kind. */
kl_judgement kl_shadow_judge(const kl_shadow_run *s, const kl_resource *own, const kl_ending *end);

#endif
