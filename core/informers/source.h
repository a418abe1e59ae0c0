/* source.h - the client as the cache's list/watch source. */
#ifndef KL_INFORMERS_SOURCE_H
#define KL_INFORMERS_SOURCE_H

#include "cache/source.h"
#include "client/client.h"

typedef struct kl_client_source_options {
    kl_client *client;           /* outlives the source */
    const kl_resource *resource; /* lives as long as the client; NULL: `kind` is used */
    /* looked up before the first request, and again after every failure; a missing kind is reported as a 404.
     * Copied */
    const char *kind;
    const char *ns;              /* copied; NULL: all */
    const char *labels, *fields; /* selectors; copied; NULL */
    /* PartialObjectMetadata is requested, and delivered with the objects' own kind */
    bool metadata;
    size_t max_object;
    kl_projection *keep; /* of each object; NULL: all. A reference is taken */
} kl_client_source_options;

/* Fills *out; out->free releases it. Its users must have stopped before the client is freed. */
void kl_client_source(const kl_client_source_options *o, kl_source *out);

#endif
