/* escape.h - escapes text for JSON, and for output to people. Any thread. */
#ifndef KL_BASE_ESCAPE_H
#define KL_BASE_ESCAPE_H

#include <stdbool.h>
#include "base/buf.h"

/* Adds the inside of a JSON string, without quotes. s is UTF-8; invalid bytes are copied unchanged. */
void kl_json_escape(kl_buf *out, const char *s, size_t n);
/* The same for untrusted text that may be printed: each byte that is not UTF-8 becomes U+FFFD, and what
 * kl_visible_escape spells out becomes an escape such as \u009b. */
void kl_json_escape_any(kl_buf *out, const char *s, size_t n);

/* Adds text of scripts, servers and files for a terminal or a log. Control characters, characters that change
 * the direction of text, and those that some readers take for line ends are spelled out. ESC is ^[, as in
 * kubectl; others are \r, \x07, \u009b, \u202e; a byte that is not UTF-8 is \x9b. Tabs stay, and line ends
 * unless `one_line`. */
void kl_visible_escape(kl_buf *out, const char *s, size_t n, bool one_line);

#endif
