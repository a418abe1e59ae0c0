/* syntax.h - the words of Go's encoding/json for a text that is not JSON: clients read them in answers. Pure.
 */
#ifndef KL_SERVER_SYNTAX_H
#define KL_SERVER_SYNTAX_H

#include <stddef.h>

/* What Go says of the first mistake in the syntax of `text`; the caller frees it. NULL: there is none. */
char *kl__json_mistake(const char *text, size_t n);

/* Calls `each` for each key that an object of the text has more than once, with its path: "a.b", "a[0].b".
 * The text is JSON that kl_value_decode_last reads. */
void kl__json_repeated(const char *text, size_t n, void (*each)(void *arg, const char *path), void *arg);

#endif
