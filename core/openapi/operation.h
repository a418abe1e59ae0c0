/* operation.h - one path with its operations, in both forms of documents (private to the room). Same thread
 * as the document. */
#ifndef KL_OPENAPI_OPERATION_H
#define KL_OPENAPI_OPERATION_H

#include "openapi/parts.h"

typedef struct kl__option {
    const char *name, *type;
    bool in_path; /* else in the query */
} kl__option;

#define KL_OPENAPI_OPTIONS 32   /* of one operation at most */
#define KL_OPENAPI_OPERATIONS 8 /* of one path at most */

typedef struct kl__operation {
    const char *method;
    const char *action;                 /* "list"; NULL: none, as for discovery */
    char *id, *says;                    /* owned: operationId and description */
    const char *group, *version, *kind; /* the kind that it works on; kind NULL: none */
    const kl__option *options[KL_OPENAPI_OPTIONS];
    size_t noptions;
    const char *sends;           /* a definition; NULL: no body */
    bool body_optional;          /* DeleteOptions may be left out */
    const char *answers;         /* a definition; NULL: text */
    const char *const *consumes; /* NULL: not listed */
    const char *const *produces;
    bool creates, accepts; /* the answer may also be 201, or 202 */
} kl__operation;

typedef struct kl__path {
    char *text; /* owned: "/api/v1/pods" */
    char *tag;  /* owned: "core_v1" */
    kl__operation operations[KL_OPENAPI_OPERATIONS];
    size_t n;
} kl__path;

/* Adds options, up to one without a name. */
void kl__operation_takes(kl__operation *o, const kl__option *options);
/* Writes the path as a member of the open object, marks the definitions that it refers to, and frees what
 * `path` owns. Options that all operations have belong to the path. */
void kl__openapi_path(kl_builder *b, kl__definitions *d, kl__dialect dialect, kl__path *path);

#endif
