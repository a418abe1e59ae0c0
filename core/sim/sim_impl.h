/* sim_impl.h - the inside of a simulation: sim.c (controllers and their turns), sim_world.c (caches and
 * calls). One thread. */
#ifndef KL_SIM_SIM_IMPL_H
#define KL_SIM_SIM_IMPL_H

#include "controller/wiring.h"
#include "lab/listwatch.h"
#include "sim/sim.h"

/* --- sim_world.c ----------------------------------------------------------------------------- */
typedef struct kl__scene kl__scene;
kl__scene *kl__scene_new(const kl_sim_options *o, kl_clock *clock, kl_err *err);
void kl__scene_free(kl__scene *s);
kl_listwatch *kl__scene_listwatch(kl__scene *s);
kl_server *kl__scene_server(kl__scene *s);
/* NULL: the server has no such kind */
const kl_resource *kl__scene_resource(kl__scene *s, const char *kind);
/* Sends changes to the caches, which call their listeners. True: there were some. */
bool kl__scene_flush(kl__scene *s);
size_t kl__scene_objects(const kl__scene *s); /* changes so far: a bound of the work */
/* kl_door_options.send: answers before it returns. The scene's `wrote` gets writes. */
uint64_t kl__scene_send(void *scene, const kl_op *op, kl_reply_fn *done, void *done_arg);
void kl__scene_heard(kl__scene *s, void (*fn)(void *arg, const kl_sim_wrote *w), void *arg);

#endif
