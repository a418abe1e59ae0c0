/* texts.h - sets of texts as they are kept in specs and options: NULL-terminated arrays of strings. Any
 * thread. */
#ifndef KL_BASE_TEXTS_H
#define KL_BASE_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

size_t kl_texts_len(char *const *t); /* NULL: 0 */
/* The set of `n` texts, or of those before a NULL: sorted, each once. The caller frees it (kl_texts_free). */
char **kl_texts_set(char *const *t, size_t n);
char **kl_texts_copy(char *const *t);
void kl_texts_free(char **t); /* NULL is fine */
/* The functions below take sets, which are sorted. */
/* NULL differs from the empty set */
bool kl_texts_same(char *const *a, char *const *b);
bool kl_texts_has(char *const *t, const char *text); /* NULL has none */
/* The index of the first text that is not before the first n bytes of `text`. */
size_t kl_texts_find(char *const *t, size_t len, const char *text, size_t n, bool *found);

#endif
