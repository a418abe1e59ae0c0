/* address.h - IP addresses as Go prints them (RFC 5952). Pure; any thread. */
#ifndef KL_MODEL_ADDRESS_H
#define KL_MODEL_ADDRESS_H

#include <stddef.h>
#include "base/buf.h"

/* Appends the address of these 4 or 16 bytes. inet_ntop prints ::1.2.3.4 where Go prints ::102:304. */
void kl_address_print(const unsigned char *bytes, size_t n, kl_buf *out);

#endif
