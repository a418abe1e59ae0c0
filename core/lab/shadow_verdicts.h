/* shadow_verdicts.h - the results of a candidate's keys: their numbers, and the latest differences. Any
 * thread. */
#ifndef KL_LAB_SHADOW_VERDICTS_H
#define KL_LAB_SHADOW_VERDICTS_H

#include "lab/shadow_judge.h"

typedef struct kl_verdicts kl_verdicts;

typedef struct kl_verdict_counts {
    size_t keys[3]; /* by kl_verdict */
    uint64_t runs, skipped;
} kl_verdict_counts;

kl_verdicts *kl_verdicts_new(void);
void kl_verdicts_free(kl_verdicts *v);
/* A run of a key was judged; the worst of its runs counts for the key. `keys` gets the present numbers of
 * keys by verdict. True when the key is worse than before, and should be reported. */
bool kl_verdicts_add(kl_verdicts *v, const char *controller, const char *key, const kl_judgement *j,
    kl_time at, size_t keys[3]);
void kl_verdicts_skip(kl_verdicts *v); /* a run was not judged */
void kl_verdicts_count(kl_verdicts *v, kl_verdict_counts *out);
/* Into an open object: same, differs, fails, runs, skipped, keys (the last hundred) and kinds (the hundred
 * commonest differences: kind, verdict, how many keys, and the controller, key and diff of one). */
void kl_verdicts_build(kl_verdicts *v, kl_builder *b);

#endif
