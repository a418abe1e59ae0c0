/* gate.h - how many streams go to one server at a time. Inside net; the http thread's.
 *
 * libcurl 7.88 opens a connection for every transfer that finds the open ones full. So the gate of a
 * server lets in what the open connections can carry, then one more, the opener of the next; the others
 * wait until it is through:
 *
 *   waiting --next--> admitted --leave--> gone         admitted <= max_streams * connections, but for the opener
 */
#ifndef KL_HTTP_GATE_H
#define KL_HTTP_GATE_H

#include "base/heap.h"
#include "base/list.h"

typedef struct kl__gate {
    int admitted;            /* passes that are in */
    int sockets;             /* open ones: the owner counts here */
    int ready;               /* sockets when the opener set out */
    struct kl__pass *opener; /* on its way to a connection, maybe a new one; NULL */
    kl_list waiting;         /* passes by `link` */
} kl__gate;

typedef struct kl__pass { /* one transfer's; zeroed by kl__gate_enter */
    kl_list link;
    kl__gate *gate;
    bool admitted;
} kl__pass;

void kl__gate_init(kl__gate *g);
void kl__gate_enter(kl__gate *g, kl__pass *p); /* queues up */
/* The next that may go in, now admitted; NULL: none waits or there is no room. */
kl__pass *kl__gate_next(kl__gate *g, int max_streams);
/* p has its connection: whoever waited for it may go on */
void kl__gate_connected(kl__pass *p);
/* p goes, from where it is. True when it was to make the connection that others wait for, and
 * `no_connection` says that it could not: those who wait share its fate, and the caller ends them. */
bool kl__gate_leave(kl__pass *p, bool no_connection);

#define KL__PASS_OF(list) KL_CONTAINER(list, kl__pass, link)

#endif
