/* spec.h - a controller as data: a script's spec table, after validation. Owned by its program, immutable. */
#ifndef KL_RUN_SPEC_H
#define KL_RUN_SPEC_H

#include <stdbool.h>
#include "base/clock.h"
#include "value/path.h"
#include "value/projection.h"
#include "model/selector.h"
#include "value/value.h"
#include "queue/workqueue.h"
#include "sharding/claims.h"

#define KL_NO_FN ((size_t)0) /* a program's functions are numbered from 1 */

/* Which changes of objects enqueue keys. All zero: every change. */
typedef struct kl_when {
    /* "generation", "labels", "annotations", "resourceVersion" or paths; NULL-terminated or NULL:
     * everything passes */
    char **words;
    size_t fn;             /* predicate function(now, old), or KL_NO_FN */
    kl_selector *selector; /* a change is ignored if it matches the object neither before nor after; NULL:
                            * none is ignored */
} kl_when;

typedef enum kl_map_how { KL_MAP_OWNER, KL_MAP_SAME_NAME, KL_MAP_VIA, KL_MAP_FN } kl_map_how;

typedef struct kl_watch_spec {
    char *kind; /* "v1/Secret" */
    kl_map_how how;
    char *via;    /* index on our own resource, queried with the watched object's key */
    size_t fn;    /* KL_MAP_FN: number of the program's function */
    kl_when when; /* which changes of the watched objects enqueue keys */
} kl_watch_spec;

/* A kind in `owns`. */
typedef struct kl_owned_spec {
    char *kind;
    kl_when when;
    bool unforced; /* an apply fails on conflicts instead of forcing */
} kl_owned_spec;

typedef struct kl_index_spec {
    char *kind; /* which resource it indexes */
    char *name;
    char *path; /* "spec.nodeName", or NULL when it is a function */
    size_t fn;
} kl_index_spec;

/* The cache keeps only these fields of objects of `kind`. */
typedef struct kl_fields_spec {
    char *kind;
    char **paths; /* NULL-terminated */
    kl_projection *keep;
} kl_fields_spec;

/* The selectors and namespaces for a kind other than the controller's resource. */
typedef struct kl_select_spec {
    char *kind;
    char *labels, *fields; /* NULL: all */
    char **namespaces; /* NULL-terminated, instead of the controller's namespaces; NULL: the controller's */
} kl_select_spec;

typedef enum kl_managed_fields { KL_MANAGED_DEFAULT, KL_MANAGED_KEPT, KL_MANAGED_DROPPED } kl_managed_fields;

/* A text for each object: the value at a path, or the result of a function; none if neither is set. */
typedef struct kl_text_of {
    kl_path *path;
    size_t fn; /* or KL_NO_FN */
} kl_text_of;

typedef enum kl_lead {
    KL_LEAD_MANAGER, /* it works while the process leads */
    KL_LEAD_OWN,     /* a lease of its own */
    KL_LEAD_NONE,    /* in every replica */
} kl_lead;

/* Which keys run again when new logic has taken over. */
typedef enum kl_reload_keys {
    KL_RELOAD_KEYS_DEFAULT, /* the manager's default, which is all */
    KL_RELOAD_KEYS_ALL,
    KL_RELOAD_KEYS_FAILING, /* keys whose last run failed, and those given up */
    KL_RELOAD_KEYS_NONE,    /* none: they run after changes and timers */
} kl_reload_keys;

/* A change never waits for initially listed objects, whatever their priorities: 49 is less than half of the
 * distance to KL_PRIORITY_LOW. */
#define KL_PRIORITY_MOST 49

typedef struct kl_controller_spec {
    char *name; /* lease and metric label; unique */
    /* field manager, in events and finalizers; NULL: the name. Controllers of one table for several kinds
     * have it in common */
    char *manager;
    char *resource; /* "example.com/v1/SecretSync" */
    /* the watched namespaces; NULL-terminated, or NULL: all that the manager watches */
    char **namespaces;
    char *select_labels, *select_fields; /* selectors for the resource, applied by the server; NULL: all */
    kl_select_spec *selects; /* the same for other kinds; a kind without an entry has no selectors */
    size_t n_selects;
    kl_when when;
    kl_watch_spec *watches;
    size_t n_watches;
    kl_index_spec *indexes;
    size_t n_indexes;
    kl_owned_spec *owns;
    size_t n_owns;
    char **reads;         /* kinds; NULL-terminated or NULL */
    char **metadata_only; /* kinds of which only metadata is fetched; NULL-terminated or NULL */
    kl_fields_spec *fields;
    size_t n_fields; /* a kind without an entry is kept in full */
    /* metadata.managedFields of those; default: the manager's */
    kl_managed_fields managed_fields;
    int workers;     /* threads; 0: the manager's default (--workers), which is 1 */
    int concurrency; /* keys in flight per worker; 0: 32 */
    kl_time timeout; /* wall time of one run, waits included; 0: none */
    /* processor time of a run between two waits, or of a function; 0: the program's default */
    kl_time cpu;
    size_t memory;  /* the limit of one worker's state in bytes; 0: none */
    bool isolate;   /* each state of it is a process of its own */
    kl_time resync; /* 0: none */
    kl_time every;  /* the interval at which all keys run; 0: never */
    char **cron;    /* times in UTC at which all keys run (base/cron.h); NULL-terminated or NULL */
    /* the priority of keys enqueued by changes, higher first; KL_PRIORITY_LOW is added for existing
     * objects */
    int priority;
    kl_text_of priority_of;    /* or a priority for each object: a whole number, cut to +-KL_PRIORITY_MOST */
    kl_text_of serial;         /* runs of equal texts do not overlap */
    kl_backoff_policy backoff; /* zero: the queue's defaults */
    /* failures in a row after which a key rests until its object changes; 0: never */
    int give_up;
    /* the maximum wait of a key for the caches to show its own writes; 0: the default; below 0: no wait */
    kl_time own_writes;
    char *finalizer; /* NULL: it has no finalize */
    kl_lead lead;
    bool lead_said; /* the script sets `lead`; if false, the command line may */
    kl_shard_by shard;
    kl_reload_keys on_reload;
    bool shard_own; /* shard by namespace, with caches of this replica's namespaces only */
    char **http;    /* the servers that ctx.http may reach: rules of http/reach.h; NULL-terminated or NULL */
    const kl_value *params; /* the script's own: an object, or NULL */
    const kl_value *given;  /* all params, if a deployment has set some; or NULL */
    /* name -> whether its value may be shown, for those that a deployment has set; or NULL */
    const kl_value *param_origins;
    const kl_value *param_rules; /* name -> rule (run/params.h), for params declared by a rule; or NULL */
} kl_controller_spec;

/* A webhook: `as` has its name, reads, workers and timeout; it has no resource. */
typedef struct kl_webhook_spec {
    kl_controller_spec as;
    bool mutating;
    bool converts; /* it is the conversion webhook of the CustomResourceDefinition with its name; the other
                      fields are unused */
    bool ignore;   /* failurePolicy Ignore: a failure here lets the request pass */
    char **kinds;  /* "apps/v1/Deployment", "apps/v1/Deployment/scale" or "*"; NULL-terminated */
    const kl_value *operations;
    const char *scope;     /* "*", "Namespaced" or "Cluster"; static */
    const kl_value *entry; /* the webhook in its configuration, but for clientConfig and rules */
} kl_webhook_spec;
void kl_webhook_spec_fini(kl_webhook_spec *s); /* likewise */

/* The field manager of its writes. Borrowed. */
const char *kl_controller_spec_manager(const kl_controller_spec *s);
/* The entry of `owns` for a kind, NULL when it is not there. Borrowed. */
const kl_owned_spec *kl_controller_spec_owned(const kl_controller_spec *s, const char *kind);
/* The fields of a kind that are kept; NULL: all. Borrowed. */
const kl_fields_spec *kl_controller_spec_fields(const kl_controller_spec *s, const char *kind);
/* Whether only metadata of this kind is fetched; `fields` may reduce it further. */
bool kl_controller_spec_metadata(const kl_controller_spec *s, const char *kind);
/* The selectors for a kind, the resource or another; NULL: all objects. Borrowed. */
void kl_controller_spec_select(
    const kl_controller_spec *s, const char *kind, const char **labels, const char **fields);
/* The namespaces of a kind that are watched, NULL-terminated; NULL: all that the manager sees. Borrowed. */
char **kl_controller_spec_namespaces(const kl_controller_spec *s, const char *kind);
/* Frees what the spec holds and zeroes it; the program that owns it calls this once, on any thread. */
void kl_controller_spec_fini(kl_controller_spec *s);

#endif
