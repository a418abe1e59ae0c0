/* replay_impl.h - the inside of a replay: replay.c (events in order, workers), replay_world.c (contents of
 * the caches), replay_run.c (inputs of a run), replay_compare.c (its writes). One thread. */
#ifndef KL_LAB_REPLAY_IMPL_H
#define KL_LAB_REPLAY_IMPL_H

#include "base/map.h"
#include "run/overlay.h"
#include "lab/listwatch.h"
#include "lab/replay.h"
#include "run/run_impl.h"
#include "controller/wiring.h"

#define KL__NO_MATCH ((size_t)-1)

/* --- replay_world.c ----------------------------------------------------------------------- */
typedef struct kl__world kl__world;
kl__world *kl__world_new(const kl_past *p, kl_clock *clock);
void kl__world_free(kl__world *w);
kl_listwatch *kl__world_listwatch(kl__world *w);
void kl__world_event(kl__world *w, const kl_past_event *e); /* of caches */
/* NULL: the recording does not have it */
const kl_resource *kl__world_resource(kl__world *w, const char *kind);
/* The object as caches held it, borrowed until the next event; NULL: it does not exist, or is unknown. ns
 * NULL: cluster scope. */
const kl_value *kl__world_object(kl__world *w, const kl_resource *r, const char *ns, const char *name);
bool kl__world_has(kl__world *w, const kl_resource *r); /* whether a cache held objects of it */
/* Each object of a resource (ns NULL: of all namespaces) once. */
void kl__world_each(
    kl__world *w, const kl_resource *r, const char *ns, void (*fn)(void *arg, const kl_value *v), void *arg);
/* Reads by scripts that are not in the recording: one text each. */
char **kl__world_missing(kl__world *w, size_t *n);

/* --- the engine --------------------------------------------------------------------------- */
typedef enum kl__wait { KL__WAITS_NOT, KL__WAITS_CALL, KL__WAITS_SLEEP } kl__wait;

typedef struct kl__wrote { /* a write of the replayed run */
    const kl_value *op;
    size_t match; /* the recorded write that matches, or KL__NO_MATCH */
    /* if they differ: the object after the recorded write, and after this one; NULL: none, or unknown */
    const kl_value *then, *now;
    /* known: `now` (and with a match, `then`) are the results. same: nothing to report */
    bool known, same;
} kl__wrote;

typedef struct kl__live { /* a run of the recording, running again */
    struct kl__engine *e;
    kl_past_run *past;
    struct kl__crew *worker;
    kl_run *run;        /* while it lasts */
    kl_queue_item item; /* the queue's entry for it */
    bool over;
    /* it began after `until`: it runs for its side effects, and is not reported */
    bool late;
    kl__wait waits;
    bool ready, blocks; /* its answer is available; the worker blocks until it has it */
    size_t match;       /* the recorded request that matches the one it waits for */
    uint64_t id;
    const kl_value *op; /* the call that it waits for */
    kl_reply_fn *done;
    void *done_arg;
    bool *used;                           /* which of past->asked were matched */
    size_t gets, lists, believed, clocks; /* the next recorded read of each sort */
    unsigned asked;
    kl_overlay *overlay;
    kl__wrote *wrote;
    size_t n_wrote;
    kl_result_kind result;
    kl_time after;
    char *message;
} kl__live;

typedef struct kl__engine {
    const kl_replay_options *o;
    kl_replay_sum *sum;
    kl_clock *clock;
    kl__world *world;
    kl_door *door;
    kl_commons *commons;
    kl_map *live;       /* id -> kl__live */
    size_t wanted_live; /* how many of them are reported */
    kl__live *now;      /* the run whose code executes, or NULL */
    struct kl__part *parts;
    size_t n_parts;
    const kl_logic *wanted;  /* of the run that is about to begin */
    struct kl__crew *called; /* the worker that may take a key */
    uint64_t ids;
} kl__engine;

/* --- replay_run.c ------------------------------------------------------------------------- */
bool kl__told_get(void *engine, const char *kind, const char *ns, const char *name, const kl_value **out);
bool kl__told_list(void *engine, const char *kind, const kl_read_query *q, kl_objects *out);
kl_time kl__told_wall(void *crew, kl_run *r);
const kl_value *kl__told_believed(void *crew, kl_run *r, const char *kind, const char *ns, const char *name);
void kl__told_resolve(void *crew, const char *kind, kl_resolve_fn *done, void *done_arg);
void kl__heard_asked(void *engine, kl_run *r, const kl_asked *x);
uint64_t kl__take_call(void *engine, const kl_op *op, kl_reply_fn *done, void *done_arg);
void kl__drop_call(void *engine, uint64_t id);
void kl__give_answer(kl__live *l); /* delivers the answer of a ready run */
kl__engine *kl__engine_of(void *crew);

/* --- replay_compare.c --------------------------------------------------------------------- */
/* A request to another server without its headers and TLS settings; any other op unchanged. A new
 * reference. */
const kl_value *kl__told_op(const kl_value *op);
/* Such a request of the replay, redacted: secrets stay equal to those of `then` (NULL: there was none). A new
 * reference. */
const kl_value *kl__shown_op(const kl_value *then, const kl_value *now);
/* Equal, except where the recording is redacted and the replay is not. */
bool kl__same_op(const kl_value *then, const kl_value *now);
void kl__compare(kl__live *l); /* when it has ended: reports and counts it */
void kl__live_free(void *live);

#endif
