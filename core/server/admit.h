/* admit.h - authentication and authorization of requests. Under the lock. */
#ifndef KL_SERVER_ADMIT_H
#define KL_SERVER_ADMIT_H

#include "server/state.h"

/* The user of an allowed request, after impersonation; a new reference. NULL: the request was answered with
 * 401 or 403. */
const kl_value *kl__access_admit(kl_server *s, kl_httpd_request *http);

#endif
