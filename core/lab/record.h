/* record.h - writes all inputs and results of runs into files (base/tape.h), so that the runs can be repeated
 * elsewhere (lab/replay.h).
 *
 * A file is lines of JSON, one record each. "t" is its type:
 *
 *   tape       the first line of a file: format, version, which recording, the number of this file, scripts
 *   kind       a resource, under the name that scripts have for its kind
 *   cache      a cache (c) was begun: label, kind, selectors          synced, closed   of that cache
 *   object     an object (o) that a run or a cache saw: v
 *   put        a cache received object o (v where it is new)           gone   it lost the object of a key
 *   began      a run (r): when, controller, worker, key, attempt, generation, epoch, its object
 *   get, list  a read of the caches, and what it found
 *   believed   a cached object that a run assumed current
 *   clock      the time of day that a run got
 *   set        what a list found (s): objects, or another set with a part of it replaced
 *   asked      a request of a run (n) to the server, a sleep, or a lookup of a kind
 *   answered   the answer to it
 *   ended      how the run ended
 *
 * Lines are in the order of events, as far as threads have one. A run's records contain everything that it
 * saw, so a replay does not depend on the order between threads. Each file begins with the contents of the
 * caches, so that it can be read without the earlier ones. */
#ifndef KL_LAB_RECORD_H
#define KL_LAB_RECORD_H

#include "model/redact.h"
#include "informers/caches.h"
#include "run/witness.h"

#define KL_RECORD_FORMAT 1
/* The default size of all files of a recording. */
#define KL_RECORD_MAX ((size_t)256 << 20)
#define KL_RECORD_MAX_LEAST ((size_t)1 << 20)

typedef struct kl_record kl_record;

typedef struct kl_record_options {
    const char *path;
    size_t max;   /* 0: KL_RECORD_MAX */
    bool secrets; /* Secrets and tokens are recorded as they are; else redacted (model/redact.h) */
    /* the scripts, for the header: a list of {path, digest}; may be NULL */
    const kl_value *scripts;
    kl_clock *clock; /* NULL: real */
} kl_record_options;

KL_NODISCARD kl_status kl_record_new(const kl_record_options *o, kl_record **out, kl_err *err);
void kl_record_free(kl_record *r);                 /* after its manager */
const kl_witness *kl_record_witness(kl_record *r); /* borrowed */
/* Records that the scripts have changed. Any thread. */
void kl_record_scripts(kl_record *r, const kl_value *scripts);
/* For kl_caches_options: begun and ended. */
void kl_record_cache_begun(
    void *record, const char *kind, const kl_resource *r, const kl_cache_source *want, kl_informer *i);
void kl_record_cache_ended(void *record, kl_informer *i);

/* --- formats that the recording and its reader share ---------------------------------------- */
/* A call as a value, complete, a new reference: two calls are the same when these are equal. `kind` in the
 * script's words. */
const kl_value *kl_record_op(const kl_op *op);
/* The query of a list, as one text. */
void kl_record_query(const kl_read_query *q, kl_buf *out);

#endif
