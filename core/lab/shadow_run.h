/* shadow_run.h - records one run (its start, reads, requests, answers and result), so that another program
 * can run in its place. Made on the live run's worker thread, then handed over. Inside the shadow. */
#ifndef KL_LAB_SHADOW_RUN_H
#define KL_LAB_SHADOW_RUN_H

#include "base/map.h"
#include "base/sync.h"
#include "client/request.h"
#include "run/imagine.h"
#include "run/witness.h"

typedef struct kl_shadow_call { /* a request to a server, of the live run or the candidate */
    kl__op_copy *copy;
    const kl_resource *resource; /* NULL: unknown when the call was made */
    const char *ns;              /* into the copy; NULL: cluster scope */
    char *name;                  /* NULL: the server generates it, and no answer has come */
    kl_status status;
    int code;
    const kl_value *body;
    kl_err err;
    bool answered, used;
    bool writes; /* to the API server, or to another one */
} kl_shadow_call;

typedef struct kl_shadow_calls {
    kl_shadow_call **v;
    size_t n;
} kl_shadow_calls;

typedef enum kl_sight_kind { KL_SIGHT_GET, KL_SIGHT_LIST, KL_SIGHT_CALL } kl_sight_kind;

typedef struct kl_sight { /* a read, in the order of the run */
    kl_sight_kind what;
    const kl_resource *resource;
    char *ns, *name; /* of a get */
    char *question;  /* of a list: its text */
    kl_objects found;
    size_t call; /* KL_SIGHT_CALL: the index of the answered call */
} kl_sight;

typedef struct kl_ending {
    kl_result_kind result;
    kl_time after;
    char *message;
} kl_ending;

typedef struct kl_shadow_run {
    char *key;
    const kl_value *object;
    int attempt;
    const kl_value *memo; /* the memo of its key when it began; NULL: none */
    kl_cause cause;       /* owns what it refers to */
    kl_time wall, ended_wall;
    kl_sight *sights;
    size_t n_sights, n_found; /* objects in all sights */
    kl_shadow_calls live;
    kl_ending live_end;
    const char *unfit; /* why the candidate cannot repeat it; static. NULL: it can */
    /* Data of the candidate's run: */
    kl_mutex mu; /* guards `own`, which an answer may set on another thread */
    kl_shadow_calls own KL_GUARDED_BY(mu);
    kl_map *strayed;            /* objects that it has written differently from the live run */
    void *owner;                /* the live controller's entry in the shadow */
    struct kl_shadow_run *next; /* the next run of the same key */
} kl_shadow_run;

/* --- on the live run's worker thread ------------------------------------------------------ */
kl_shadow_run *kl_shadow_run_new(kl_run *r, void *owner);
void kl_shadow_run_free(kl_shadow_run *s);
void kl_shadow_run_saw(kl_shadow_run *s, kl_run *r, const kl_saw *x);
void kl_shadow_run_asked(kl_shadow_run *s, kl_run *r, const kl_asked *x);
void kl_shadow_run_answered(kl_shadow_run *s, kl_run *r, const kl_answered *x);
void kl_shadow_run_ended(kl_shadow_run *s, kl_run *r);

/* --- the candidate in its place, on its worker thread ------------------------------------- */
/* Fills an overlay with the inputs of the live run, each object as first seen. */
void kl_shadow_run_show(const kl_shadow_run *s, const kl_resource *own, kl_overlay *o);
bool kl_shadow_run_recall(kl_shadow_run *s, kl_run *r, const kl_op *op, kl_recalled *out);
bool kl_shadow_run_recall_list(kl_shadow_run *s, const char *kind, const kl_read_query *q, kl_objects *out);
/* A write of the candidate, which was simulated. Any thread. */
void kl_shadow_run_wrote(kl_shadow_run *s, const kl_imagined *x);

/* --- for both ---------------------------------------------------------------- */
/* Equal, except for times within the runs: two runs at different moments write different times. */
bool kl_shadow_alike(const kl_shadow_run *s, const kl_value *a, const kl_value *b);
bool kl_shadow_same_op(const kl_shadow_run *s, const kl_shadow_call *a, const kl_shadow_call *b);
kl_shadow_call *kl_shadow_call_new(const kl_op *op, const kl_resource *r);
void kl_shadow_call_free(kl_shadow_call *c);
/* "plural.group ns/name", or "POST https://..." for another server, without parts that may be keys; caller
 * frees. */
char *kl_shadow_object(const kl_shadow_call *c);

#endif
