/* discovery.h - a server's discovery documents: groups, versions and resources, in the legacy and the
 * aggregated form. Under the lock that guards kinds and objects. */
#ifndef KL_DISCOVERY_DISCOVERY_H
#define KL_DISCOVERY_DISCOVERY_H

#include "schema/kinds.h"
#include "store/store.h"

typedef struct kl_discovery {
    const kl__kinds *kinds;
    const kl__bucket *services; /* APIServices; NULL: none */
    const char *address;        /* where clients reach the server: HOST:PORT */
} kl_discovery;

typedef struct kl_discovery_answer {
    int code;
    const kl_value *page; /* the document; NULL: `text` is the answer */
    const char *text;
    bool routed; /* kube-apiserver reads the Accept header of its route first, see show/accept.h */
} kl_discovery_answer;

/* The document at a path. `aggregated` is the version of the aggregated form ("v2", "v2beta1") that the
 * client accepts, or NULL; only /api and /apis have that form. Returns false if there is no such document.
 * The caller owns out->page. */
bool kl_discovery_page(
    const kl_discovery *d, const char *path, const char *aggregated, kl_discovery_answer *out);
/* The text of /version, indented. */
extern const char kl_discovery_version[];
/* Whether slashes alone follow `page` in a path. */
bool kl_discovery_is(const char *path, const char *page);

#endif
