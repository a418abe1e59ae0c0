/* hunt.h - the inside of the hunt for scripts that escape, crash or hang: hunt.c (batches of programs in
 * child processes), trial.c (one program, in all phases), outside.c (isolated programs),
 * request.c (what webhooks are asked), world.c (kinds, objects and a server, without a
 * socket), neighbour.c (a good controller beside it), fence.c (system calls that no script may cause).
 * Nothing here knows what a program does; generate.lua makes them. */
#ifndef HUNT_H
#define HUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "election/door.h"
#include "controller/wiring.h"

/* What parent and child both see. The parent reads it when the child has died. */
#define HUNT_SLOW_MAX 8
#define HUNT_BUCKETS 256 /* of latencies, see hunt_bucket */
typedef struct hunt_slow {
    uint64_t seed;
    double seconds;
    char what[32];
} hunt_slow;
#define HUNT_PHASES 32
typedef struct hunt_spent { /* by the thread that runs programs, in the phase of that name */
    char phase[32];
    double cpu;
} hunt_spent;
typedef struct hunt_page {
    _Atomic uint64_t seed;  /* the program under way */
    _Atomic uint64_t steps; /* grows with every phase: a child that does not get on hangs */
    _Atomic int thread;     /* that runs programs, of the child */
    /* wrong: what the oracle found, or ""; refused: why the last one did not load */
    char phase[32], wrong[1024], refused[256];
    uint64_t programs, loaded, replayed, stage_turns, attached, shadowed, bodies, calls, writes, failed_runs,
        web, isolated, succeeded, reviews, live_bytes_peak;
    _Atomic uint64_t latency[HUNT_BUCKETS];
    hunt_slow slow[HUNT_SLOW_MAX]; /* the slowest, first */
    hunt_spent spent[HUNT_PHASES];
} hunt_page;
extern hunt_page *the_page;
/* From now on the program is in that phase. */
void hunt_phase(const char *phase);
/* The oracle says no: the child ends. */
void hunt_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Something took so long, by the clock of the processor; `most`: what is allowed, generously. */
void hunt_took(const char *what, kl_time took, kl_time most);
int hunt_bucket(kl_time t); /* tenth parts of a power of two of microseconds */
kl_time hunt_cpu(void);     /* processor time of this thread */

/* --- world.c: owner thread, but for what says otherwise ----------------------------------- */
typedef struct world world;
typedef enum world_rule { WORLD_LEADS, WORLD_DRY_RUN, WORLD_NOT_LEADING } world_rule;
world *world_new(void);
void world_free(world *w);
/* Objects are as at the beginning again; a write that breaks the rule is wrong from now on. */
void world_begin(world *w, world_rule rule, uint64_t dice);
void world_pump(world *w);
void world_happen(world *w); /* some objects change, come, or are deleted */
kl_caches *world_caches(world *w);
kl_loop *world_loop(world *w);
kl_loop *world_mapper(world *w);
kl_clock *world_clock(world *w);
kl_door *world_door(world *w);
const kl_resource *world_resource(world *w, const char *kind); /* NULL: there is no such kind */
/* Each object as it is at the beginning; one of them, changed. */
void world_each(world *w, void (*fn)(void *arg, const kl_value *v), void *arg);
void world_change(world *w, kl_random *dice, void (*fn)(void *arg, const kl_value *v), void *arg);
/* A recording in which a controller `hunt` of this kind ran for each object, as text. The caller frees it. */
char *world_recording(world *w, const char *kind);

/* --- stage.c ------------------------------------------------------------------------------ */
typedef struct stage stage;
/* Before the fence is closed. */
stage *stage_new(world *w);
void stage_free(stage *s);
/* candidate: the same program once more, or NULL. No webhooks: they would listen. */
void stage_run(stage *s, world *w, kl_program *p, kl_program *candidate, kl_random *dice);

/* --- request.c ---------------------------------------------------------------------------- */
/* A new reference. */
const kl_value *request_new(kl_random *dice);
/* Makes the answer that the API server would get, and looks at it. */
void request_answered(const kl_value *request, const kl_value *decision);

/* --- outside.c ---------------------------------------------------------------------------- */
typedef struct outside outside;
/* Before the fence is closed. */
outside *outside_new(void);
void outside_free(outside *o);
/* Calls fn on a thread that the fence does not hold, and waits; no process may be left after it. */
void outside_do(outside *o, void (*fn)(void *arg), void *arg);

/* --- trial.c ------------------------------------------------------------------------------ */
typedef struct trial { /* what programs share */
    world *world;
    stage *stage;
    outside *outside;
    uint64_t staged;         /* one program in so many that can runs on the stage */
    const kl_value *modules; /* that they may require; NULL: files */
    /* The text of another program, of a controller of that kind if it can be; borrowed until the next one. */
    const char *(*generate)(uint64_t seed, const char *kind, size_t *len);
} trial;
/* Loads the program and runs all that it has, as seed says.
 * True when it loaded. */
bool trial_run(const trial *t, uint64_t seed, const char *text, size_t len);
/* Params as a deployment, or somebody at `kubelua attach`, may set them: names that scripts declare, values
 * of any type. A new reference. */
const kl_value *hunt_params(kl_random *dice);

/* --- neighbour.c -------------------------------------------------------------------------- */
typedef struct neighbour neighbour;
/* A controller whose keys come all the time and are answered on threads of its own; latencies go to the
 * page. */
neighbour *neighbour_new(world *w);
void neighbour_free(neighbour *n, world *w);

/* --- heap.c: what Lua states are made of -------------------------------------------------- */
/* Gives back what states left that are closed: leaks that they hid show. */
void heap_end(void);

/* --- fence.c ------------------------------------------------------------------------------ */
/* From now on this thread dies (hunt_wrong) when it touches a file, a socket or a process. Stays. */
void fence_close(void);

#endif
