/* server.h - the embedded API server, which behaves like kube-apiserver, in memory. For `kubelua dev`,
 * `kubelua apiserver`, the demo and specs.
 *
 * Thread-safe: requests run on the HTTP thread, the functions below on any thread. */
#ifndef KL_SERVER_SERVER_H
#define KL_SERVER_SERVER_H

#include <stddef.h>
#include "base/clock.h"
#include "value/value.h"
#include "verbs/webhook.h"

typedef struct kl_server kl_server;

struct kl_httpd_request;

typedef struct kl_server_change { /* borrowed */
    const char *group, *plural;
    const char *type;          /* "ADDED", "MODIFIED", "DELETED"; static */
    const kl_value *old, *now; /* old NULL: the object is new */
} kl_server_change;

typedef struct kl_server_options {
    const char *listen;     /* "127.0.0.1:0" */
    kl_clock *clock;        /* NULL: real */
    size_t max_body;        /* 0: 16 MiB */
    size_t history;         /* watch events kept per resource before 410; 0: 10000 */
    kl_time bookmark_every; /* 0: 60 s */
    /* File of users, see rbac/tokens.h. NULL: none. Without rbac, requests still need no token */
    const char *tokens;
    bool tls;                       /* serves HTTPS, with a self-signed certificate unless these are set: */
    const char *tls_cert, *tls_key; /* files (PEM); NULL or both */
    const char *client_ca; /* file of authorities: their client certificates authenticate users by CN and O.
                              NULL: none */
    /* The file for audit events, and the file of the audit policy: see audit/audit.h. NULL: none; Metadata of
     * all requests */
    const char *audit_log, *audit_policy;
    bool rbac; /* requests need users, and Roles authorize them: see verbs/access.h */
    /* allows it to listen beyond this machine without authenticating clients, which is refused otherwise */
    bool insecure_anywhere;
    /* The directory that keeps the objects: every write is on disk before it is answered. NULL: in memory
     * only. Not with a fake clock */
    const char *data;
    /* Calls webhooks for the server. NULL: webhook configurations are stored, but have no effect. Calls under
     * way may end after the server has stopped. */
    kl_server_webhook_caller *webhook;
    void *webhook_arg;
    /* no listening socket: requests come through server/direct.h, and kl_server_url is NULL */
    bool unheard;
    /* Called for every change of a stored object, in order; for a deletion, `now` is the last state. Under
     * the server's lock: it must not call the server. May be NULL. */
    void (*changed)(void *arg, const kl_server_change *c);
    void *changed_arg;
    /* Deletes or orphans objects whose owners are deleted, as kube-controller-manager's garbage collector
     * does. Loaded or kept objects are checked when their owners change. */
    bool collect;
    bool fixtures; /* for tests, with `collect`: objects that arrive with missing owners are kept */
    /* Answers requests for paths below /kubelua/ (KL_SERVER_EXTRA), at once or later, as a kl_httpd_handler
     * does. With rbac, rules for nonResourceURLs decide which clients may make them. On the HTTP thread,
     * without the server's lock. NULL: there are no such paths. */
    void (*extra)(void *arg, struct kl_httpd_request *request);
    void *extra_arg;
    /* The seed of uids and generated names, so that the same calls create the same objects. 0: random. */
    uint64_t seed;
    /* It has the objects that kube-apiserver makes for itself: the Service `kubernetes`, APIServices and
     * others (verbs/first.h). Otherwise only the namespaces */
    bool complete;
    bool loads; /* the caller loads objects next: /readyz fails until kl_server_loaded */
} kl_server_options;

KL_NODISCARD kl_status kl_server_start(const kl_server_options *o, kl_server **out, kl_err *err);
void kl_server_stop(kl_server *s); /* ends watches, joins, frees */
#define KL_SERVER_EXTRA "/kubelua/"
/* With a fake clock, after it moved: ends watches and sends bookmarks that are due. */
void kl_server_tick(kl_server *s);
/* "http://127.0.0.1:PORT"; lives as long as s. NULL: s does not listen */
const char *kl_server_url(const kl_server *s);

/* Applies one object as `kubectl create` and a status write would: CRDs are established before it returns; a
 * status in the object is stored, too; missing namespaces are created; an existing object is updated. Errors
 * name kind and name. */
KL_NODISCARD kl_status kl_server_load(kl_server *s, const kl_value *object, kl_err *err);
/* The same for objects written by hand: unknown fields are errors. `tables`: they come from a language whose
 * empty table is also a list, so {} becomes [] where the kind has a list. */
KL_NODISCARD kl_status kl_server_load_strict(kl_server *s, const kl_value *object, bool tables, kl_err *err);
/* Loads every document of a YAML or JSON file, or of every *.yaml, *.yml and *.json file of a directory
 * (sorted), CRDs first. */
KL_NODISCARD kl_status kl_server_load_path(kl_server *s, const char *path, size_t *loaded, kl_err *err);
void kl_server_loaded(kl_server *s); /* see kl_server_options.loads */
/* --- for tests of controllers ------------------------------------------------------------- */
/* Sends a bookmark to every watch that accepts them; returns its resource version, which is new. A client
 * that got the bookmark has seen all earlier changes. */
uint64_t kl_server_mark(kl_server *s);
uint64_t kl_server_rv(kl_server *s); /* of the last change, or mark */
/* Saves the present state; kl_server_reset restores it, ignoring finalizers: newer objects are removed,
 * others get their saved state, and faults are cleared. Watches get the changes. False, with no change, if
 * kinds were added or removed since. */
void kl_server_keep(kl_server *s);
KL_NODISCARD bool kl_server_reset(kl_server *s);

/* The fault rules of the server (faults/faults.h); lives as long as s. */
struct kl_faults *kl_server_faults(kl_server *s);
/* With a fake clock, after it moved: releases requests and frames that faults delayed until now. Returns the
 * time of the next call, or KL_NEVER. */
kl_time kl_server_faults_tick(kl_server *s);

/* A kubeconfig for this server (YAML text); caller kl_free()s. */
char *kl_server_kubeconfig(const kl_server *s);

#endif
