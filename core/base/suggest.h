/* suggest.h - "did you mean": the nearest of some words. Pure; any thread. */
#ifndef KL_BASE_SUGGEST_H
#define KL_BASE_SUGGEST_H

#include <stddef.h>

/* How many single-letter insertions, removals, replacements and swaps of neighbours lead from a to b;
 * letter case does not count. */
size_t kl_edit_distance(const char *a, const char *b);
/* The candidate near enough to be a typo of `word` (at most a third of its letters, plus one, are wrong), or
 * NULL. Letter case, "-" and "_" do not count. Of equally near candidates, the one that shares more first
 * letters with `word` wins. Borrowed. */
const char *kl_suggest(const char *word, const char *const *candidates, size_t n);

#endif
