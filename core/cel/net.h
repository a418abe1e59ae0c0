/* net.h - URLs in their parts, and addresses as text (private to this room). Owner thread. */
#ifndef KL_CEL_NET_H
#define KL_CEL_NET_H

#include "cel/cel_impl.h"

typedef struct kl__curl {
    const char *text, *scheme, *host, *hostname, *port, *path, *query;
} kl__curl;

/* NULL, or the error of Go's url.ParseRequestURI. The texts are allocated in `a`. */
const char *kl__curl_parse(kl__carena *a, const char *s, size_t n, kl__curl *u);
/* Names to lists of values. */
kl__cval kl__curl_query(kl__cev *e, const kl__curl *u);

/* Appends an ip or cidr value (its memory, borrowed) as text to `out`; whether two such values are equal. */
void kl__cel_address(const void *o, bool cidr, kl_buf *out);
bool kl__cel_address_equal(const void *a, const void *b);

#endif
