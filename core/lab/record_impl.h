/* record_impl.h - the inside of a recording, for record.c (files, and contents of caches) and record_run.c
 * (runs). */
#ifndef KL_LAB_RECORD_IMPL_H
#define KL_LAB_RECORD_IMPL_H

#include "base/map.h"
#include "base/sync.h"
#include "base/tape.h"
#include "lab/record.h"

typedef struct kl__taped { /* a cache of the manager */
    kl_record *record;
    uint64_t id;
    char *kind;
    kl_buf line;     /* its "cache" record */
    kl_map *objects; /* key -> the object and its number */
    kl_informer *informer;
    kl_subscription *sub;
    bool synced;
} kl__taped;

struct kl_record {
    kl_record_options o;
    kl_witness witness;
    kl_redaction redaction;
    char name[33]; /* of the recording */
    kl_mutex mu;
    kl_tape *tape KL_GUARDED_BY(mu);
    kl_buf line KL_GUARDED_BY(mu);
    const kl_value *scripts KL_GUARDED_BY(mu);
    uint64_t file KL_GUARDED_BY(mu), objects KL_GUARDED_BY(mu), sets KL_GUARDED_BY(mu),
        caches KL_GUARDED_BY(mu);
    size_t began KL_GUARDED_BY(mu); /* bytes at the beginning of a file that repeat the caches' contents */
    size_t running KL_GUARDED_BY(mu);
    kl_time flushed KL_GUARDED_BY(mu);
    kl__taped **open KL_GUARDED_BY(mu);
    size_t n_open KL_GUARDED_BY(mu);
    kl_map *kinds KL_GUARDED_BY(mu); /* name -> its line, as text */
    kl_map *lists KL_GUARDED_BY(mu); /* kind and query -> the last result of that list (record_run.c) */
};

/* --- record.c: the present line (r->line), made by begin, put, end ------------------ */
void kl__line_begin_locked(kl_record *r, const char *what) KL_REQUIRES(r->mu);
void kl__line_end_locked(kl_record *r) KL_REQUIRES(r->mu);
void kl__put_value(kl_buf *b, const char *key, const kl_value *v);
void kl__put_text(kl_buf *b, const char *key, const char *text); /* nothing when text is NULL */
void kl__put_number(kl_buf *b, const char *key, int64_t n);
/* The redacted value; kind as for kl_redact. */
void kl__put_shown(kl_record *r, kl_buf *b, const char *key, const char *kind, const kl_value *v);
/* The number of an object that a run found, written to the tape if it is new. Not while a line is being
 * written. */
uint64_t kl__object_locked(kl_record *r, const char *kind, const kl_value *v) KL_REQUIRES(r->mu);
void kl__kind_locked(kl_record *r, const char *kind, const kl_resource *res) KL_REQUIRES(r->mu);
/* Call it after each record: begins the next file when this one is full. */
void kl__record_done_locked(kl_record *r) KL_REQUIRES(r->mu);

/* --- record_run.c ------------------------------------------------------------------------- */
void kl__record_witness(kl_record *r, kl_witness *out);
/* The next list of each query is written in full. */
void kl__lists_forget_locked(kl_record *r) KL_REQUIRES(r->mu);

#endif
