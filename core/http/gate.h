/* gate.h - limits the concurrent streams to one server. Http thread only.
 *
 * libcurl 7.88 opens a connection for every transfer that finds the open ones full. So the gate of a server
 * admits as many as the open connections can carry, then one more, which opens the next connection; the
 * others wait until it has connected:
 *
 *   waiting --next--> admitted --leave--> gone         admitted <= max_streams * connections, but for the
 * opener */
#ifndef KL_HTTP_GATE_H
#define KL_HTTP_GATE_H

#include "base/heap.h"
#include "base/list.h"

typedef struct kl__gate {
    int admitted;            /* passes admitted now */
    int sockets;             /* open connections; the owner counts them */
    int ready;               /* `sockets` when the opener was admitted */
    struct kl__pass *opener; /* the pass that may open a connection; or NULL */
    kl_list waiting;         /* passes by `link` */
} kl__gate;

typedef struct kl__pass { /* part of a transfer; zeroed by kl__gate_enter */
    kl_list link;
    kl__gate *gate;
    bool admitted;
} kl__pass;

void kl__gate_init(kl__gate *g);
void kl__gate_enter(kl__gate *g, kl__pass *p); /* queues up */
/* Admits the next pass and returns it; NULL: none waits, or there is no room. */
kl__pass *kl__gate_next(kl__gate *g, int max_streams);
/* p has its connection: passes that waited for it may be admitted */
void kl__gate_connected(kl__pass *p);
/* p leaves, in any state. True when p was the opener and failed (`no_connection`): the caller fails the
 * waiting passes, too. */
bool kl__gate_leave(kl__pass *p, bool no_connection);

#define KL__PASS_OF(list) KL_CONTAINER(list, kl__pass, link)

#endif
