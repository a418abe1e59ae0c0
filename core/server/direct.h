/* direct.h - the server's verbs without HTTP, for a simulation in the same process, on one thread. Webhooks
 * are not called. */
#ifndef KL_SERVER_DIRECT_H
#define KL_SERVER_DIRECT_H

#include "server/server.h"

/* One resource at one version, as in discovery. Borrowed; valid until its definition is removed. */
typedef struct kl_server_kind {
    const char *group, *version, *kind, *plural;
    bool namespaced, status, scale; /* status, scale: it has the subresource */
} kl_server_kind;
/* "apps/v1/Deployment" by its parts; version "" is the preferred one. False: there is none. */
bool kl_server_find(
    kl_server *s, const char *group, const char *version, const char *kind, kl_server_kind *out);

typedef struct kl_server_call {           /* borrowed for the call */
    const char *group, *version, *plural; /* as from kl_server_find */
    const char *verb;                     /* "get", "list", "create", "update", "patch", "delete", ... */
    const char *ns, *name, *sub;          /* NULL when not given */
    const char *patch;                    /* "json", "merge", "strategic", "apply" */
    const char *manager;                  /* the field manager; never NULL */
    const char *labels, *fields;          /* selectors of "list" and "deletecollection"; may be NULL */
    const char *propagation, *uid, *rv;   /* preconditions of a deletion; may be NULL */
    bool force, dry_run;
    const kl_value *body;
} kl_server_call;

/* *out: a new reference to the answer that a client would get (NULL on failure), *code 200, 201 or 202.
 * Failures have code, reason and message as the Status would. */
KL_NODISCARD kl_status kl_server_do(
    kl_server *s, const kl_server_call *c, const kl_value **out, int *code, kl_err *err);

/* Stores the object unchanged, at a new resource version, without validation or defaults. Takes the
 * reference. KL_ENOTFOUND: there is no such kind. */
KL_NODISCARD kl_status kl_server_put(kl_server *s, const kl_value *object, kl_err *err);
/* Removes an object, ignoring finalizers. False: it did not exist. ns NULL: cluster scope. */
bool kl_server_lose(kl_server *s, const kl_server_kind *k, const char *ns, const char *name);
/* The object in that version of its kind, a new reference, or NULL. */
const kl_value *kl_server_look(kl_server *s, const kl_server_kind *k, const char *ns, const char *name);
/* Each object of a resource, sorted by key, as that version of it. `fn` must not call the server. */
void kl_server_each(
    kl_server *s, const kl_server_kind *k, void (*fn)(void *arg, const kl_value *object), void *arg);
/* A changed object in the version `k` of its kind; a new reference. */
const kl_value *kl_server_as(kl_server *s, const kl_server_kind *k, const kl_value *stored);

#endif
