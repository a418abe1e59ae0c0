/* gate.h - limits the concurrent streams to one server. The http thread's.
 *
 * libcurl 7.88 opens a connection for every transfer that finds the open ones full. So the gate of a server
 * admits as many as the open connections can carry, then one more, which opens the next connection; the
 * others wait until it has connected:
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
/* p has its connection: those that waited for it may continue */
void kl__gate_connected(kl__pass *p);
/* p leaves, from any state. True when it was to open the connection that others wait for and failed
 * (`no_connection`): the caller ends the waiting ones, too. */
bool kl__gate_leave(kl__pass *p, bool no_connection);

#define KL__PASS_OF(list) KL_CONTAINER(list, kl__pass, link)

#endif
