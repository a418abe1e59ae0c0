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
/* The family of a range: 4 or 6; 0: the text is not a range. */
int kl__network_family(const char *text);

#endif
