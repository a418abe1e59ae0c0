/* past.h - a recording (lab/record.h) in memory: events in order, and each run with all its inputs. Owner
 * thread; immutable once read. */
#ifndef KL_LAB_PAST_H
#define KL_LAB_PAST_H

#include "model/resource.h"
#include "lab/record.h"

typedef struct kl_past_kind {
    const char *name; /* as scripts call it */
    kl_resource resource;
} kl_past_kind;

typedef struct kl_past_cache {
    const char *label, *kind, *labels, *fields; /* labels, fields: selectors, or NULL */
    bool metadata;
} kl_past_cache;

typedef struct kl_past_set {
    size_t n;
    const kl_value **v;
} kl_past_set;

typedef struct kl_past_saw { /* one read */
    const char *kind, *ns, *name;
    const char *query;      /* of a list */
    const kl_value *found;  /* of a get; NULL: none */
    const kl_past_set *set; /* of a list */
} kl_past_saw;
typedef struct kl_past_saws {
    kl_past_saw *v;
    size_t n;
} kl_past_saws;

typedef struct kl_past_asked {
    const char *what;   /* "call", "sleep", "discovery" */
    const kl_value *op; /* of a call (kl_record_op) */
    const char *kind;   /* of a discovery */
    bool elsewhere, answered;
    kl_status status;
    int code;
    const kl_value *body;  /* or NULL */
    const kl_value *error; /* of a failure: {code, reason, message, details, retry} */
    kl_time at;            /* of the answer */
} kl_past_asked;

typedef struct kl_past_run {
    const char *id, *controller, *key;
    int worker, attempt, generation;
    int64_t epoch;
    kl_time at; /* wall time */
    const kl_value *object;
    const kl_value *params; /* the params that differed from the script's; or NULL */
    const kl_value *memo;   /* the memo of its key when it began; NULL: none */
    const char *why;        /* kl_why_name, or NULL */
    /* the object whose event triggered it: apiVersion, kind, names, version; or NULL */
    const kl_value *by;
    unsigned events;
    kl_past_saws gets, lists, believed;
    kl_time *clocks;
    size_t n_clocks;
    kl_past_asked *asked;
    size_t n_asked;
    bool ended, cut;              /* cut: the run was aborted, and its result is void */
    const char *result, *message; /* message NULL: none */
    kl_time after;                /* -1: none given */
} kl_past_run;

typedef enum kl_past_what {
    KL_PAST_CACHE,
    KL_PAST_PUT,
    KL_PAST_GONE,
    KL_PAST_CLOSED,
    KL_PAST_BEGAN,
    KL_PAST_ANSWERED,
    KL_PAST_ENDED
} kl_past_what;

typedef struct kl_past_event {
    kl_past_what what;
    size_t cache;           /* CACHE, PUT, GONE, CLOSED: its place in caches */
    const kl_value *object; /* PUT */
    const char *key;        /* GONE */
    kl_past_run *run;       /* BEGAN, ANSWERED, ENDED */
    size_t n;               /* ANSWERED: its place in run->asked */
    kl_time at;             /* of runs: wall time */
} kl_past_event;

typedef struct kl_past {
    const char *version, *recording, *secrets;
    const kl_value *scripts; /* [{path, digest}], or NULL */
    uint64_t first_file;     /* 1: no earlier file is missing */
    size_t n_files;
    kl_past_kind *kinds;
    size_t n_kinds;
    kl_past_cache *caches;
    size_t n_caches;
    kl_past_run **runs;
    size_t n_runs; /* in the order in which they began */
    kl_past_event *events;
    size_t n_events;
    kl_time began, ended; /* wall time of the first and the last dated record */
    size_t headless;      /* runs that began before the recording, and are skipped */
    bool torn;            /* the last line was cut: the process died while it wrote */
} kl_past;

/* Reads FILE, preceded by FILE.1 and so on while they belong to the same recording. KL_ESYNTAX names file and
 * line; KL_EIO; KL_ETOOBIG. */
KL_NODISCARD kl_status kl_past_read(const char *path, kl_past **out, kl_err *err);
/* The same for a text; `name` is for messages. */
KL_NODISCARD kl_status kl_past_read_text(
    const char *name, const char *text, size_t n, kl_past **out, kl_err *err);
void kl_past_free(kl_past *p); /* NULL is fine */

#endif
