/* discovery.h - which resources the server has. Inside net; kl_client_resolve and friends are its public face. */
#ifndef KL_NET_DISCOVERY_H
#define KL_NET_DISCOVERY_H

#include "net/client.h"

typedef struct kl__discovery kl__discovery;

kl__discovery *kl__discovery_new(kl_client *c);
/* After the calls thread has ended. */
void kl__discovery_free(kl__discovery *d);

#endif
