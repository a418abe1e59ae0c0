/* state.h - internals shared by the parts of the API server: the server itself, and one call as the verbs see
 * it. */
#ifndef KL_SERVER_STATE_H
#define KL_SERVER_STATE_H

#include "faults/faults.h"
#include "httpd/httpd.h"
#include "base/list.h"
#include "base/random.h"
#include "base/sync.h"
#include "schema/kinds.h"
#include "server/server.h"
#include "store/store.h"

struct kl_server {
    kl_clock *clock;
    kl_time bookmark_every;
    kl_httpd *httpd;
    /* it listens on this machine alone: other names in Host headers are refused */
    bool loopback;
    char *url;
    kl_mutex mu;      /* guards everything below; the types are immutable */
    kl__types *types; /* built-in */
    kl__kinds *kinds;
    kl__store *store;
    struct kl__owners *owners; /* the garbage collector's graph; NULL: there is none */
    kl_list watches;           /* every running watch */
    struct kl_hub *hub;        /* for answers to watches, see watch.c */
    uint64_t next_address;     /* of service cluster IPs */
    kl_cond wake;
    /* bookmarks and timeouts; NULL under a fake clock, whose owner calls kl_server_tick */
    kl_thread *ticker;
    bool stopping;
    struct kl_map *tokens; /* tokens of users, or NULL: see tokens.h */
    struct kl_map *issued; /* tokens of service accounts, and their claims: see tokens.h */
    bool rbac;
    kl_keyring *ring;        /* NULL: plain HTTP */
    char *ca;                /* PEM: verifies the self-signed certificate; NULL: there is none */
    const kl_value *anybody; /* the user of a request without a token, where none is needed */
    char *own_token;         /* an administrator's token, for kl_server_kubeconfig; NULL: none is needed */
    /* see kl_server_options */
    void (*webhook)(void *arg, const kl_server_webhook *call, kl_server_webhook_done *done, void *done_arg);
    void *webhook_arg;
    void (*changed)(void *arg, const kl_server_change *c);
    void *changed_arg;
    void (*extra)(void *arg, kl_httpd_request *request);
    void *extra_arg;
    kl_random chance; /* of uids and generated names; `seeded`, or unused */
    bool seeded;
    kl_faults *faults;
    struct kl_archive *archive;   /* the archive, or NULL; see durable.h */
    bool undoing;                 /* the present changes are an undo for the archive */
    struct kl_policies *policies; /* compiled ones */
    struct kl_audit *audit;       /* or NULL */
    struct kl__kept *kept;        /* the state saved by kl_server_keep, or NULL; see keep.c */
};

typedef enum kl__validation { KL_FIELDS_WARN, KL_FIELDS_STRICT, KL_FIELDS_IGNORE } kl__validation;

/* One call. Strings are borrowed from its maker. */
typedef struct kl__call {
    kl_server *s;
    struct kl_audit_record *audit; /* its audit record; NULL: none */
    kl__kind *kind;
    const char *ns, *name, *sub; /* NULL when not given */
    /* The body of a subresource may have its own kind ("autoscaling/v1", "Scale"), which webhooks get; NULL:
     * the resource's. */
    const char *own_version, *own_kind;
    const kl_value *user; /* the user; NULL: the server itself */
    const char *manager;  /* never NULL */
    bool manager_given;   /* by ?fieldManager= */
    bool dry_run;
    bool any_status; /* kl_server_load: status and uid are part of the object */
    kl__validation validation;
    /* answers of webhooks so far (admission.h); NULL: they are not called */
    struct kl__admission *admission;
    /* answers of conversion webhooks (convert.h); NULL: they cannot be called */
    struct kl_conversions *conversions;
    kl_buf *warnings; /* "Warning: ...\r\n" lines, or NULL */
    /* of a request: what faults may make of it */
    const kl_fault_call *facts;
    kl_fault_plan *plan;
} kl__call;

/* The verbs. Under the lock. On success *out is a new reference to the client's answer (storage form); *code
 * 200, 201 or 202. */
KL_NODISCARD kl_status kl__verb_create(
    const kl__call *c, const kl_value *body, const kl_value **out, kl_err *err);
KL_NODISCARD kl_status kl__verb_update(
    const kl__call *c, const kl_value *body, const kl_value **out, int *code, kl_err *err);
typedef enum kl__patch { KL_PATCH_JSON, KL_PATCH_MERGE, KL_PATCH_STRATEGIC, KL_PATCH_APPLY } kl__patch;
KL_NODISCARD kl_status kl__verb_patch(const kl__call *c, kl__patch type, bool force, const kl_value *patch,
    const kl_value **out, int *code, kl_err *err);
KL_NODISCARD kl_status kl__verb_delete(
    const kl__call *c, const kl_value *options, const kl_value **out, int *code, kl_err *err);
/* The stored object of the call, borrowed; or 404. */
KL_NODISCARD kl_status kl__verb_get(const kl__call *c, const kl_value **out, kl_err *err);

/* Ends the watches of a resource's versions that are not in `keep` (NULL-terminated). */
void kl__watches_drop(kl_server *s, const char *group, const char *plural, const char *const *keep);
void kl__kept_free(struct kl__kept *k);
void kl__call_warn(const kl__call *c, const char *fmt, ...) KL_PRINTF(2, 3);
kl_time kl__server_wall(const kl_server *s);

#endif
