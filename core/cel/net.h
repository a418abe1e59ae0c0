/* net.h - URLs in their parts, and addresses as text (private to this room). Owner thread. */
#ifndef KL_CEL_NET_H
#define KL_CEL_NET_H

#include "cel/cel_impl.h"

typedef struct kl__curl {
    const char *text, *scheme, *host, *hostname, *port, *path, *query;
} kl__curl;

/* NULL, or what Go's url.ParseRequestURI says is wrong. The texts are allocated in `a`. */
const char *kl__curl_parse(kl__carena *a, const char *s, size_t n, kl__curl *u);
/* Names to lists of values. */
kl__cval kl__curl_query(kl__cev *e, const kl__curl *u);

/* An ip or cidr value (its memory, borrowed) as text, put behind what is in `out`; whether two are the same.
 */
void kl__cel_address(const void *o, bool cidr, kl_buf *out);
bool kl__cel_address_equal(const void *a, const void *b);

#endif
