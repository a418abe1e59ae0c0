/* client.h - Kubernetes calls: URL, credentials, retries, Status errors, discovery. Any thread unless said
 * otherwise.
 *
 * A kl_op describes one request in the API's terms. Its kind is resolved to a resource by discovery when
 * needed. Everything is asynchronous: `done` runs on the calls thread (streams: on the watch thread) exactly
 * once. */
#ifndef KL_CLIENT_CLIENT_H
#define KL_CLIENT_CLIENT_H

#include "base/clock.h"
#include "base/tenure.h"
#include "value/projection.h"
#include "model/resource.h"
#include "wire/stream.h"
#include "value/value.h"
#include "auth/config.h"
#include "http/http.h"

typedef struct kl_client kl_client;

typedef enum kl_verb {
    KL_GET,
    KL_LIST,
    KL_WATCH,
    KL_CREATE,
    KL_UPDATE,
    KL_PATCH,
    KL_APPLY,
    KL_DELETE,
    KL_DELETE_COLLECTION,
    KL_HTTP /* to a server that is not an API server: client/web.h */
} kl_verb;
/* the kind of such an op; no server has it */
#define KL_HTTP_KIND "ctx.http"
/* "get" ... "deletecollection"; RBAC's words (apply is "patch") via kl_verb_rbac */
const char *kl_verb_name(kl_verb v);
const char *kl_verb_rbac(kl_verb v);
bool kl_verb_is_write(kl_verb v);

typedef enum kl_patch_type { KL_PATCH_MERGE, KL_PATCH_JSON, KL_PATCH_STRATEGIC } kl_patch_type;

/* The form of a read: objects, their metadata alone (PartialObjectMetadata), or the server's Table. */
typedef enum kl_form { KL_AS_OBJECT, KL_AS_METADATA, KL_AS_TABLE } kl_form;

typedef struct kl_op { /* borrowed for the call; copied */
    kl_verb verb;
    const char *kind; /* "apps/v1/Deployment"; or `resource` */
    const kl_resource *resource;
    const char *ns; /* NULL: see default_ns */
    /* replaces a NULL ns when the resource is namespaced; not for list and watch, where NULL is all
     * namespaces */
    const char *default_ns;
    const char *name;
    const char *subresource;
    const kl_value *body; /* create, update, patch, apply */
    kl_patch_type patch_type;
    const char *field_manager;
    bool force, dry_run;
    bool always; /* sent even if it would change nothing (run/elide.h) */
    bool unread; /* the answer is ignored */
    /* the body was written by hand: the server's schemas convert and check it first, see KL_REASON_SCHEMA */
    bool check;
    const char *field_validation;               /* "Strict", "Warn", "Ignore" or NULL */
    const char *propagation;                    /* delete: "Foreground", "Background", "Orphan" or NULL */
    const char *uid, *precondition_rv;          /* delete preconditions */
    int64_t grace_seconds;                      /* delete: -1 unset */
    const char *labels, *fields;                /* selectors */
    int64_t limit;                              /* 0 none */
    const char *continue_token, *rv, *rv_match; /* rv_match: "Exact" or "NotOlderThan" */
    kl_form form;
    /* for a Table: "None", "Metadata" (the server's default) or "Object" beside the cells */
    const char *include;
    int64_t timeout_seconds;        /* watch, list */
    bool bookmarks, initial_events; /* watch */
    kl_time timeout;                /* call timeout; 0: 60 s */
    /* the right to send, checked again before each attempt; KL_ENOTLEADER when it does not hold */
    kl_mandate mandate;
    /* the header of W3C Trace Context (base/trace.h); NULL: none is sent */
    const char *traceparent;
    char *const *http; /* KL_HTTP: rules for allowed URLs (client/web.h), NULL-terminated */
    /* skips the limiter and the pace of a busy server: for leases */
    bool urgent;
} kl_op;
void kl_op_init(kl_op *op, kl_verb verb, const char *kind); /* zeroes, grace -1 */

/* Hooks for metrics. Called on the http threads, under a lock: must not call the client. Each may be NULL.
 * code 0: transport error. */
typedef struct kl_client_hooks {
    void *arg;
    /* after each attempt: rest_client_requests_total */
    void (*on_request)(void *arg, const char *method, const char *host, int code, kl_time took);
    /* after each but the first: rest_client_request_retries_total */
    void (*on_retry)(void *arg, const char *method, const char *host, int code);
    /* sizes of the bodies, after each complete answer; not for streams */
    void (*on_sizes)(void *arg, const char *method, const char *host, size_t sent, size_t received);
    /* after a wait for the limiter (for every request that it limits) or for the pace of a busy server */
    void (*on_delayed)(void *arg, const char *method, const char *host, kl_time waited);
    /* after a name was looked up for a new connection: rest_client_dns_resolution_duration_seconds. Not for
     * addresses */
    void (*on_lookup)(void *arg, const char *name, kl_time took);
} kl_client_hooks;

/* `body` and `err` are borrowed; body NULL on failure. code is the HTTP status or 0. */
typedef void kl_reply_fn(void *arg, kl_status st, int code, const kl_value *body, kl_err *err);

struct kl_web_call;
typedef struct kl_client_options {
    kl_config config;          /* moved into the client */
    kl_clock *clock;           /* NULL: real */
    const char *user_agent;    /* NULL: "kubelua/VERSION (linux/amd64)" */
    const char *field_manager; /* default of ops without one; NULL: "kubelua" */
    bool http1;
    /* reads everything as JSON; false: built-in kinds are read as protobuf, see wire/proto.h */
    bool no_protobuf;
    /* the disk cache of discovery and schemas (see kl_shelf_home); NULL: none */
    const char *cache_dir;
    /* entries younger than this are used without a request; 0: always revalidate */
    kl_time cache_ttl;
    bool no_check; /* op.check is ignored */
    kl_client_hooks hooks;
    bool allow_http; /* KL_HTTP is allowed, within its rules (--allow-http) */
    /* With allow_http: a stand-in that answers KL_HTTP instead of the servers (kl_web_stand_in in
     * client/web.h); NULL: none */
    void (*web_ask)(void *arg, struct kl_web_call *call, const kl_op *op);
    void *web_arg;
    /* The client-side limit: requests per second, after a burst (0: twice qps). qps 0: only the server limits
     * (429, pace.h). Not for watches, leases and discovery. */
    double qps;
    int burst;
    /* Called once for each text of a `Warning: 299` header; NULL: it is logged. On the http threads: must not
     * wait for the client. */
    void (*on_warning)(void *arg, const char *text, const char *call);
    void *on_warning_arg;
} kl_client_options;

KL_NODISCARD kl_status kl_client_new(kl_client_options *o, kl_client **out, kl_err *err);
/* Replaces the hooks (NULL: none). After it returns, the old ones are not called any more. Must not be called
 * from a hook. */
void kl_client_set_hooks(kl_client *c, const kl_client_hooks *hooks);
/* Before kl_client_free: cancels all calls and refuses new ones, so that no thread waits for a silent server
 * or a credential plugin. */
void kl_client_quit(kl_client *c);
void kl_client_free(kl_client *c); /* cancels, joins both threads */
const kl_config *kl_client_config(const kl_client *c);
bool kl_client_reaches(const kl_client *c);  /* its allow_http */
kl_http *kl_client_watch_http(kl_client *c); /* the watch thread: informers live there */
kl_http *kl_client_call_http(kl_client *c);

/* The reason of KL_EINVAL for an op with `check` whose body has fields or types that are not in the server's
 * OpenAPI v3. Nothing was sent. With field_validation "Warn" or "Ignore" only conversions are made: {} to [],
 * 3.0 to 3, where the schema says so. */
#define KL_REASON_SCHEMA "SchemaMismatch"

/* Sends an op. Invalid ops are reported through done, too. Returns an id for kl_client_cancel. */
uint64_t kl_client_do(kl_client *c, const kl_op *op, kl_reply_fn *done, void *arg);
void kl_client_cancel(kl_client *c, uint64_t id);
/* Blocks until the op is done; not on the client's own threads. *out is a new reference (out may be NULL). */
KL_NODISCARD kl_status kl_client_wait(kl_client *c, const kl_op *op, const kl_value **out, kl_err *err);
/* Requests any path: kl_client_raw(c, "GET", "/version", NULL, ...). JSON answers only. Blocks as
 * kl_client_wait. */
KL_NODISCARD kl_status kl_client_raw(kl_client *c, const char *method, const char *path_and_query,
    const char *content_type, const void *body, size_t len, const kl_value **out, kl_err *err);

/* A LIST or WATCH whose objects arrive one at a time on the watch thread. op->resource is required (see
 * kl_client_resolve). */
typedef struct kl_stream_call {
    /* callee owns object */
    kl_status (*item)(void *arg, const kl_value *object, kl_err *err);
    /* callee owns object */
    kl_status (*event)(void *arg, const char *type, const kl_value *object, kl_err *err);
    /* Called after one or more events when no more are ready, at the latest after a millisecond of events.
     * May be NULL. */
    void (*lull)(void *arg);
    /* The answer began with 2xx; a watch is then established. May be NULL. */
    void (*opened)(void *arg);
    /* Called once, last. For a list, envelope = {kind, apiVersion, metadata} (borrowed). st as for
     * kl_client_do; a watch that ended cleanly is KL_OK. */
    void (*done)(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err);
    void *arg;
    size_t max_object;
    /* Borrowed until done; see kl_stream_handler. All may be NULL. */
    kl_projection *keep;
    const char *api_version, *kind;
    const kl_value *(*known)(void *arg, const char *ns, size_t nslen, const char *name, size_t namelen);
    kl_status (*skipped)(void *arg, const kl_stream_skipped *object, kl_err *err);
} kl_stream_call;
uint64_t kl_client_stream(kl_client *c, const kl_op *op, const kl_stream_call *call); /* watch thread */
/* watch thread; done is called with KL_ECANCELLED, later or at once */
void kl_client_stream_cancel(kl_client *c, uint64_t id);

/* Calls fn each time the server answers again (any status below 500) after a request found no connection or
 * lost it. Both functions are called on the watch thread, where fn runs, and not by fn. */
uint64_t kl_client_heed(kl_client *c, void (*fn)(void *), void *arg);
void kl_client_heed_not(kl_client *c, uint64_t id);

/* --- discovery (aggregated, legacy fallback). Resources live as long as the client. ------- */
/* A kind is "apps/v1/Deployment", "apps/Deployment" or "Deployment", or a resource as in kubectl:
 * "deployments", "deployment", "deploy", "deployments.apps", "deployments.v1.apps". The core group wins; a
 * name in several other groups is KL_EINVAL. *out NULL with KL_ENOTFOUND when the server has no such kind
 * (the message lists existing groups or similar kinds). If discovery of a group fails, only lookups in that
 * group fail. Fetches on a miss; one fetch at a time. */
/* on the calls thread, or at once when cached */
typedef void kl_resolve_fn(void *arg, kl_status st, const kl_resource *r, kl_err *err);
void kl_client_resolve(kl_client *c, const char *kind, kl_resolve_fn *done, void *arg);
KL_NODISCARD kl_status kl_client_resolve_wait(
    kl_client *c, const char *kind, const kl_resource **out, kl_err *err);
/* NULL when not known yet */
const kl_resource *kl_client_resolve_cached(kl_client *c, const char *kind);
/* All known resources, core first, each group's preferred version first; the caller frees the array. NULL:
 * discovery has not run yet. */
const kl_resource **kl_client_resources(kl_client *c, size_t *n);
/* The group versions whose discovery failed: "metrics.k8s.io/v1beta1", why, ..., NULL. The caller frees
 * the strings and the array. */
char **kl_client_discovery_failures(kl_client *c);
/* the next resolve fetches again; resources handed out stay valid */
void kl_client_discovery_forget(kl_client *c);

#endif
