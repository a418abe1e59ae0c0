/* sim.h - controllers over a simulated cluster in memory, on one thread and on a clock that its owner moves:
 * the same programs, caches, queues and workers as in production; the embedded API server answers, without a
 * socket.
 *
 *   new -> put, load: the world -> start: programs -> (settle -> move)*
 *
 * The same calls have the same outcome, byte for byte. All calls on one thread; values may be read on any. */
#ifndef KL_SIM_SIM_H
#define KL_SIM_SIM_H

#include "run/worker.h"
#include "server/direct.h"

typedef struct kl_sim kl_sim;

/* A write of a controller, with its answer. Borrowed. */
typedef struct kl_sim_wrote {
    const char *controller;
    const kl_op *op;
    const kl_resource *resource;
    const char *ns;         /* NULL: cluster scope */
    const kl_value *answer; /* NULL: it failed */
    kl_status status;
    const kl_err *err;
} kl_sim_wrote;

typedef struct kl_sim_options {
    kl_time wall;  /* at which it begins */
    uint64_t seed; /* of uids, generated names and jitter; 0 is 1 */
    /* On the caller's thread, inside settle; each may be NULL and must not call the kl_sim. */
    void (*changed)(void *arg, const kl_server_change *c);
    void (*wrote)(void *arg, const kl_sim_wrote *w);
    void (*ran)(void *arg, const kl_ran *r);
    void (*event)(void *arg, const kl_news *n); /* component is filled */
    void *arg;
} kl_sim_options;

KL_NODISCARD kl_status kl_sim_new(const kl_sim_options *o, kl_sim **out, kl_err *err);
void kl_sim_free(kl_sim *s);
/* The simulated server. The controllers see direct writes to it at the next kl_sim_settle. */
kl_server *kl_sim_server(kl_sim *s);
kl_clock *kl_sim_clock(kl_sim *s);

/* Starts the controllers, once. Takes references. Every kind must exist. Enqueues each object of a
 * controller's kind. */
KL_NODISCARD kl_status kl_sim_start(kl_sim *s, kl_program *const *programs, size_t n, kl_err *err);
/* Runs ready keys until none is left, while time stands still. *next: the time (of kl_sim_clock) of the next
 * timer, or KL_NEVER. KL_ETIMEOUT: the work does not end. */
KL_NODISCARD kl_status kl_sim_settle(kl_sim *s, kl_time *next, kl_err *err);
void kl_sim_move(kl_sim *s, kl_time by);

/* A client's request: answered through done before it returns; its writes are not counted for a
 * controller. */
void kl_sim_call(kl_sim *s, const kl_op *op, kl_reply_fn *done, void *arg);
/* NULL: the server has no such kind. */
const kl_resource *kl_sim_resource(kl_sim *s, const char *kind);

typedef struct kl_sim_count {
    const char *controller;                 /* borrowed from the program */
    uint64_t runs, errors, writes, refused; /* refused: the number of failed writes among `writes` */
    size_t failing;                         /* keys, now */
    kl_time cpu;                            /* CPU time of its runs, by the real clock */
} kl_sim_count;
/* The i-th controller by name; false: there are fewer. */
bool kl_sim_count_of(kl_sim *s, size_t i, kl_sim_count *out);

#endif
