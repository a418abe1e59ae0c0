/* discovery.h - which resources the server has: fetched, kept, told. Inside net; kl_client_resolve and
 * friends are its public face. */
#ifndef KL_CLIENT_DISCOVERY_H
#define KL_CLIENT_DISCOVERY_H

#include "base/shelf.h"
#include "client/client.h"

typedef struct kl__discovery kl__discovery;

/* The shelf (borrowed) remembers documents; what is younger than `ttl` there is believed without asking. */
kl__discovery *kl__discovery_new(kl_client *c, kl_shelf *shelf, kl_time ttl);
/* After the calls thread has ended. */
void kl__discovery_free(kl__discovery *d);

#endif
