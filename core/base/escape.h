/* escape.h - text as JSON writes it. Any thread. */
#ifndef KL_BASE_ESCAPE_H
#define KL_BASE_ESCAPE_H

#include "base/buf.h"

/* Adds the inside of a JSON string, without quotes. s is UTF-8; invalid bytes are copied unchanged. */
void kl_json_escape(kl_buf *out, const char *s, size_t n);
/* The same for text that may be anything: U+FFFD for each byte that is not UTF-8. */
void kl_json_escape_any(kl_buf *out, const char *s, size_t n);

#endif
