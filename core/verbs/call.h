/* call.h - the verbs: what a call does to an object. A call has a user and a kind, and is independent of
 * HTTP. All functions under the lock of the world's owner. */
#ifndef KL_VERBS_CALL_H
#define KL_VERBS_CALL_H

#include "base/random.h"
#include "schema/kinds.h"
#include "store/store.h"
#include "verbs/webhook.h"

/* The objects, and everything that verbs need to know about them. */
typedef struct kl__world {
    kl_clock *clock;
    kl__types *types; /* built-in; immutable */
    kl__kinds *kinds;
    kl__store *store;
    struct kl__owners *owners;   /* the garbage collector's graph; NULL: there is none */
    struct kl__tallies *tallies; /* of quotas (verbs/tally.h); NULL: others write their statuses */
    uint64_t next_address;       /* of service cluster IPs */
    kl_random chance;            /* of uids and generated names; `seeded`, or unused */
    bool seeded;
    struct kl_policies *policies;      /* compiled ones */
    bool rbac;                         /* Roles decide what users may do */
    bool complete;                     /* it has what kube-apiserver makes for itself: see first.h */
    kl_time renewal;                   /* ... and renews its Lease then: see presence.h */
    kl_time look;                      /* ... and looks at its ConfigMaps then ... */
    kl_time tracking;                  /* ... of which it may make one not before then */
    char *authorities;                 /* of clients, for one of them: PEM text, or NULL */
    struct kl_map *tokens;             /* of users, or NULL: see rbac/tokens.h */
    struct kl__issuer *issuer;         /* signs tokens of service accounts */
    struct kl_map *issued;             /* of service accounts, and their claims: see rbac/tokens.h */
    const kl_value *anybody;           /* the user of a request without a token, if none is needed */
    kl_server_webhook_caller *webhook; /* NULL: webhooks are not called */
    void *webhook_arg;
    /* Called before the versions of a resource that are not in `keep` (NULL-terminated) cease to be
     * served. */
    void (*unserved)(void *arg, const char *group, const char *plural, const char *const *keep);
    void *unserved_arg;
} kl__world;

typedef enum kl__validation { KL_FIELDS_WARN, KL_FIELDS_STRICT, KL_FIELDS_IGNORE } kl__validation;

/* One call. Strings are borrowed from its maker. */
typedef struct kl__call {
    kl__world *w;
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
    /* What strict decoding says of repeated keys in the body, or the warnings about them; or NULL. */
    kl_buf *repeated;
    kl_buf *warnings; /* "Warning: ...\r\n" lines, or NULL */
} kl__call;

/* On success *out is a new reference to the client's answer (storage form), and *code is 200 or 201. */
KL_NODISCARD kl_status kl__verb_create(
    const kl__call *c, const kl_value *body, const kl_value **out, kl_err *err);
KL_NODISCARD kl_status kl__verb_update(
    const kl__call *c, const kl_value *body, const kl_value **out, int *code, kl_err *err);
typedef enum kl__patch { KL_PATCH_JSON, KL_PATCH_MERGE, KL_PATCH_STRATEGIC, KL_PATCH_APPLY } kl__patch;
KL_NODISCARD kl_status kl__verb_patch(const kl__call *c, kl__patch type, bool force, const kl_value *patch,
    const kl_value **out, int *code, kl_err *err);
KL_NODISCARD kl_status kl__verb_delete(
    const kl__call *c, const kl_value *options, const kl_value **out, kl_err *err);
/* The stored object of the call, borrowed; or 404. */
KL_NODISCARD kl_status kl__verb_get(const kl__call *c, const kl_value **out, kl_err *err);

/* Adds a Warning header to the answer, if the call collects them. */
void kl__call_warn(const kl__call *c, const char *fmt, ...) KL_PRINTF(2, 3);
/* The same once the body is decoded, which begins with kl__call_warned. */
void kl__call_warn_later(const kl__call *c, const char *fmt, ...) KL_PRINTF(2, 3);
void kl__call_warned(const kl__call *c);
kl_time kl__world_wall(const kl__world *w);
/* A new uid; a new reference. */
const kl_value *kl__world_uid(kl__world *w);

#endif
