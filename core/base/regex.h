/* regex.h - regular expressions in the syntax of Go's regexp package, which the schemas and rules of
 * Kubernetes use. The door of RE2.
 *
 * A match takes time linear in the text, whatever the pattern: patterns and texts come from clients. A regex
 * never changes once it is made; any thread may match with it. */
#ifndef KL_BASE_REGEX_H
#define KL_BASE_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/err.h"

typedef struct kl_regex kl_regex;

/* KL_EINVAL for a pattern that Go refuses; the message is Go's: "error parsing regexp: missing closing ]:
 * `[a`". A pattern whose program would be larger than 8 MiB is refused, too. The caller frees. */
KL_NODISCARD kl_status kl_regex_new(const char *pattern, size_t n, kl_regex **out, kl_err *err);
void kl_regex_free(kl_regex *r); /* NULL is fine */
/* Whether it matches anywhere in the text. */
bool kl_regex_matches(const kl_regex *r, const char *text, size_t n);
/* The leftmost match that begins at `from` or later, as offsets; false when there is none. */
bool kl_regex_find(const kl_regex *r, const char *text, size_t n, size_t from, size_t *begin, size_t *end);

#ifdef __cplusplus
}
#else
#include <stdatomic.h>
/* The regex in `slot`, compiled on the first call; the slot is NULL before. The slot's owner frees it. NULL
 * when Go refuses the pattern. Any thread. */
const kl_regex *kl_regex_once(_Atomic(kl_regex *) *slot, const char *pattern, size_t n);
#endif

#endif
