/* service.h - Services: their defaults and allocations, and their validation. The caller tells which
 * addresses and ports are taken. Pure; any thread. */
#ifndef KL_BUILTIN_SERVICE_H
#define KL_BUILTIN_SERVICE_H

#include "builtin/builtin.h"

/* The ranges of cluster IPs and node ports. */
#define KL_SERVICE_RANGE "10.96.0.0/12"
#define KL_NODE_PORT_MIN 30000
#define KL_NODE_PORT_MAX 32767
#define KL_NODE_PORTS (KL_NODE_PORT_MAX - KL_NODE_PORT_MIN + 1)

typedef struct kl__taken {
    void *arg;
    bool (*address)(void *arg, const char *ip); /* whether another Service has it */
    /* marks the node ports of other Services: taken[port - KL_NODE_PORT_MIN] */
    void (*ports)(void *arg, bool taken[KL_NODE_PORTS]);
    uint64_t *next;   /* where the search for a free address starts; advances */
    bool any_address; /* addresses outside of the range are accepted */
} kl__taken;

/* Fills in missing addresses, families and node ports, from `old` (NULL on create) or new ones. If it adds a
 * cause, the caller makes no further checks. *o is replaced. */
void kl__service_allot(const kl__taken *t, const kl_value *old, const kl_value **o, kl__causes *c);
/* The node port that two ports of the same protocol have, as Go prints it; the caller owns the text. NULL:
 * there is none. */
char *kl__service_repeated_port(const kl_value *service);
/* Removes fields that the Service needed only for its old type. */
void kl__service_drop(const kl_value *old, const kl_value **o);
/* whether clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy are consistent */
void kl__check_families(kl__causes *c, const kl_value *spec);

static inline void kl__mark_port(bool taken[KL_NODE_PORTS], int64_t port)
{
    if (port >= KL_NODE_PORT_MIN && port <= KL_NODE_PORT_MAX)
        taken[port - KL_NODE_PORT_MIN] = true;
}

static inline bool kl__service_headless(const kl_value *spec)
{
    const kl_value *list = kl_value_get(spec, "clusterIPs");
    const char *first = kl_value_str(kl_value_item(list, 0));
    return kl_value_len(list) == 1 && first && first[0] == 'N' && first[1] == 'o' && first[2] == 'n'
        && first[3] == 'e' && !first[4];
}

#endif
