/* token.h - the tokens of JSON text (private to core/value).
 *
 * Functions take a place in the decoder's text and return the place after the token, or NULL after setting
 * the decoder's error. */
#ifndef KL_VALUE_TOKEN_H
#define KL_VALUE_TOKEN_H

#include "value/decode.h"

/* Both return NULL. The second is about the character at `at`, or about the end of the text. */
const char *kl__fail_at(kl__decoder *d, const char *at, const char *what);
const char *kl__unexpected(kl__decoder *d, const char *at, const char *wanted);

/* The rest of a string, from after its opening quote; returns the place after the closing one. *s is in the
 * text, or in scratch when something was escaped. */
const char *kl__string_text(kl__decoder *d, const char *p, const char **s, size_t *n);
/* a new reference */
const char *kl__number(kl__decoder *d, const char *p, kl__h *out);
const char *kl__literal(kl__decoder *d, const char *p, const char *w, size_t n, kl__h is, kl__h *out);
/* Skips white space; servers write none. */
const char *kl__spaces(const char *p, const char *end);
static inline const char *kl__space(const kl__decoder *d, const char *p)
{
    return p < d->end && (unsigned char)*p <= ' ' ? kl__spaces(p, d->end) : p;
}

#endif
