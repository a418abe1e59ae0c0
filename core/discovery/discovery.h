/* discovery.h - a server's discovery documents: groups, versions and resources, in the legacy and the
 * aggregated form. Under the lock that guards kinds and objects. */
#ifndef KL_DISCOVERY_DISCOVERY_H
#define KL_DISCOVERY_DISCOVERY_H

#include "base/buf.h"
#include "schema/kinds.h"
#include "store/store.h"

typedef struct kl_discovery {
    const kl__kinds *kinds;
    const kl__bucket *services; /* APIServices; NULL: none */
    const char *address;        /* where clients reach the server: HOST:PORT */
} kl_discovery;

typedef struct kl_discovery_answer {
    int code;
    char *type; /* of the body */
    kl_buf body;
    bool tagged; /* the answer gets an ETag, so that clients may cache it */
    bool lines;  /* the body is indented already, and is sent unchanged */
} kl_discovery_answer;

/* The document at a path; `accept` is the request's header, or NULL. False: there is no such document. Else
 * *out is kl_discovery_answer_fini()ed. */
bool kl_discovery_page(const kl_discovery *d, const char *path, const char *accept, kl_discovery_answer *out);
void kl_discovery_answer_fini(kl_discovery_answer *a);

#endif
