/* spec.h - a controller as data: what a script's spec table says, after validation. Owned by its program, immutable. */
#ifndef KL_RUN_SPEC_H
#define KL_RUN_SPEC_H

#include <stdbool.h>
#include "base/clock.h"
#include "model/projection.h"
#include "model/value.h"

#define KL_NO_FN ((size_t)-1)

typedef enum kl_map_how { KL_MAP_OWNER, KL_MAP_SAME_NAME, KL_MAP_VIA, KL_MAP_FN } kl_map_how;

typedef struct kl_watch_spec {
    char *kind;                /* "v1/Secret" */
    kl_map_how how;
    char *via;                 /* index on our own resource: the watched object's key is looked up there */
    size_t fn;                 /* KL_MAP_FN: number of the program's function */
} kl_watch_spec;

typedef struct kl_index_spec {
    char *kind;                /* which resource it indexes */
    char *name;
    char *path;                /* "spec.nodeName", or NULL when it is a function */
    size_t fn;
} kl_index_spec;

/* Of this kind only some fields are kept in the cache. */
typedef struct kl_fields_spec {
    char *kind;
    char **paths;              /* NULL-terminated */
    kl_projection *keep;
} kl_fields_spec;

typedef enum kl_managed_fields { KL_MANAGED_DEFAULT, KL_MANAGED_KEPT, KL_MANAGED_DROPPED } kl_managed_fields;

typedef struct kl_controller_spec {
    char *name;                /* field manager, lease and metric label */
    char *resource;            /* "example.com/v1/SecretSync" */
    char **when;               /* "generation", "labels", "annotations", "resourceVersion" or paths; NULL-terminated or NULL: everything passes */
    size_t when_fn;            /* predicate function(now, old), or KL_NO_FN */
    kl_watch_spec *watches; size_t n_watches;
    kl_index_spec *indexes; size_t n_indexes;
    char **owns, **reads;      /* kinds; NULL-terminated or NULL */
    kl_fields_spec *fields; size_t n_fields;       /* kinds that are not in here are kept whole */
    kl_managed_fields managed_fields;              /* metadata.managedFields of those; default: as the manager says */
    int workers;               /* threads; 0: the manager's default (--workers), which is 1 */
    int concurrency;           /* keys in flight per worker; 0: 32 */
    kl_time timeout;           /* wall time of one run, waits included; 0: none */
    kl_time resync;            /* 0: none */
    const kl_value *params;    /* an object, or NULL */
} kl_controller_spec;

/* What of a kind is kept: NULL when the controller has not said which fields. Borrowed. */
const kl_fields_spec *kl_controller_spec_fields(const kl_controller_spec *s, const char *kind);
/* Frees what the spec holds and zeroes it; the program that owns it calls this once, on any thread. */
void kl_controller_spec_fini(kl_controller_spec *s);

#endif
