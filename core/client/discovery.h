/* discovery.h - fetches, caches and looks up the server's resources. kl_client_resolve and
 * related functions are its public interface. */
#ifndef KL_CLIENT_DISCOVERY_H
#define KL_CLIENT_DISCOVERY_H

#include "base/shelf.h"
#include "client/client.h"

typedef struct kl__discovery kl__discovery;

/* The shelf (borrowed) caches documents; those younger than `ttl` are used without a request. */
kl__discovery *kl__discovery_new(kl_client *c, kl_shelf *shelf, kl_time ttl);
/* After the calls thread has ended. */
void kl__discovery_free(kl__discovery *d);

#endif
