/* service.h - Services: what they are given, and what is refused. What is taken already is the caller's to
 * know. Pure; any thread. */
#ifndef KL_BUILTIN_SERVICE_H
#define KL_BUILTIN_SERVICE_H

#include "builtin/builtin.h"

/* Where cluster IPs come from, and node ports. */
#define KL_SERVICE_RANGE "10.96.0.0/12"
#define KL_NODE_PORT_MIN 30000
#define KL_NODE_PORT_MAX 32767

typedef struct kl__taken {
    void *arg;
    bool (*address)(void *arg, const char *ip); /* it is another Service's */
    bool (*port)(void *arg, int64_t port);      /* it is a node port of another Service */
    uint64_t *next;                             /* where a search begins; moves on */
    bool any_address;                           /* those out of the range are taken as they are */
} kl__taken;

/* Addresses, families and node ports where `*o` says none, from `old` (NULL on create) or new ones. With a
 * complaint nothing else is to be checked. *o is replaced. */
void kl__service_allot(const kl__taken *t, const kl_value *old, const kl_value **o, kl__causes *c);
/* What a Service had for its old type and does not need for the new one goes. */
void kl__service_drop(const kl_value *old, const kl_value **o);
/* clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy: whether they fit together */
void kl__check_families(kl__causes *c, const kl_value *spec);

static inline bool kl__service_headless(const kl_value *spec)
{
    const kl_value *list = kl_value_get(spec, "clusterIPs");
    const char *first = kl_value_str(kl_value_item(list, 0));
    return kl_value_len(list) == 1 && first && first[0] == 'N' && first[1] == 'o' && first[2] == 'n'
        && first[3] == 'e' && !first[4];
}

#endif
