/* gate.c - counts and a queue; it knows nothing about transfers.
 *
 * An idle server's connection may be dead unnoticed, so the first transfer always goes alone. */
#include "http/gate.h"

void kl__gate_init(kl__gate *g)
{
    *g = (kl__gate){.opener = NULL};
    kl_list_init(&g->waiting);
}

void kl__gate_enter(kl__gate *g, kl__pass *p)
{
    *p = (kl__pass){.gate = g};
    kl_list_init(&p->link);
    kl_list_push(&g->waiting, &p->link);
}

kl__pass *kl__gate_next(kl__gate *g, int max_streams)
{
    if (kl_list_empty(&g->waiting))
        return NULL;
    int connections = g->opener ? g->ready : g->sockets;
    bool room = g->admitted && g->admitted < connections * max_streams;
    if (!room && g->opener)
        return NULL;
    kl__pass *p = KL__PASS_OF(kl_list_shift(&g->waiting));
    if (!room) {
        g->opener = p;
        g->ready = g->admitted ? g->sockets : 0;
    }
    p->admitted = true;
    g->admitted++;
    return p;
}

void kl__gate_connected(kl__pass *p)
{
    if (p->gate && p->gate->opener == p)
        p->gate->opener = NULL;
}

bool kl__gate_leave(kl__pass *p, bool no_connection)
{
    kl__gate *g = p->gate;
    kl_list_remove(&p->link);
    p->gate = NULL;
    if (!p->admitted)
        return false;
    g->admitted--;
    if (g->opener != p)
        return false;
    g->opener = NULL;
    return no_connection && !g->admitted;
}
