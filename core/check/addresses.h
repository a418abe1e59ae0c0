/* addresses.h - checks addresses and ranges of the kinds that accept only the canonical form, with the
 * messages of apimachinery's util/validation/ip.go. forms.h has the checks of older kinds. Pure; any
 * thread. */
#ifndef KL_CHECK_ADDRESSES_H
#define KL_CHECK_ADDRESSES_H

#include "check/check.h"

typedef enum kl__address_form {
    KL_ADDRESS,  /* 10.9.8.7 */
    KL_NETWORK,  /* 10.9.8.0/24: no bits beyond the prefix */
    KL_INTERFACE /* 10.9.8.7/24 */
} kl__address_form;

/* Complains about `text` unless it is an address of that form in canonical spelling. */
void kl__check_address(kl__causes *c, const kl__place *at, const char *text, kl__address_form form);
/* Whether older kinds accept the text as an address or a network: with leading zeros, and IPv4 within IPv6.
 */
bool kl__reads_as(const char *text, kl__address_form form);
/* The bytes of such an address, and their number: 4, also for IPv4 within IPv6, or 16; 0: it is none. */
size_t kl__address_bytes(const char *text, unsigned char out[16]);
/* Warns of an address or a network (KL_NETWORK) of an older kind, which accepts more than the canonical
 * spelling. Says nothing about a text that is neither. */
void kl__warn_address(kl__causes *c, const kl__place *at, const char *text, kl__address_form form);
/* The family of a range: 4 or 6; 0: the text is not a range. */
int kl__network_family(const char *text);

#endif
