/* policies.c - disruption budgets and network policies. */
#include "check/forms.h"
#include "builtin/kinds.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/names.h"

#define SPEC KL_IN(NULL, "spec")

/* ------------------------------------------------------------------ PodDisruptionBudget */

static void check_share(kl__causes *c, const kl_value *spec, const char *member)
{
    const kl_value *v = kl_value_get(spec, member);
    const char *text = kl_value_str(v);
    if (!text)
        kl__check_natural(c, spec, SPEC, member);
    else if (kl_name_percent(text))
        kl__check_form(c, KL_IN(SPEC, member), text, KL_PERCENT);
    else if (strtol(text, NULL, 10) > 100)
        kl__say_invalid(c, KL_IN(SPEC, member), v, "must not be greater than 100%%");
}

void kl__check_budget(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec");
    if (kl__write_same_spec(w))
        return;
    if (kl_value_get(spec, "minAvailable") && kl_value_get(spec, "maxUnavailable")) {
        const kl_value *shown = kl__as_go(
            spec, "MinAvailable? Selector? MaxUnavailable? UnhealthyPodEvictionPolicy?");
        kl__say_invalid(w->causes, SPEC, shown, "minAvailable and maxUnavailable cannot be both set");
        kl_value_unref(shown);
    }
    check_share(w->causes, spec, "minAvailable");
    check_share(w->causes, spec, "maxUnavailable");
    kl__check_selector(w->causes, kl_value_get(spec, "selector"), KL_IN(SPEC, "selector"));
    kl__check_word(w->causes, spec, SPEC, "unhealthyPodEvictionPolicy", false, "AlwaysAllow IfHealthyBudget");
}

/* ------------------------------------------------------------------ NetworkPolicy */

static void check_end_port(kl__causes *c, const kl_value *p, const kl__place *at)
{
    const kl_value *port = kl_value_get(p, "port"), *end = kl_value_get(p, "endPort");
    const kl__place *in = KL_IN(at, "endPort");
    if (!end)
        return;
    if (!port)
        kl__say_invalid(c, in, end, "may not be specified when `port` is not specified");
    else if (kl_value_str(port))
        kl__say_invalid(c, in, end, "may not be specified when `port` is non-numeric");
    else {
        if (kl_value_int_at(end, 0, NULL) < kl_value_int_at(port, 0, NULL))
            kl__say_invalid(c, in, port, "must be greater than or equal to `port`");
        kl__check_range(c, p, at, "endPort", 1, 65535);
    }
}

static void check_peer(kl__causes *c, const kl_value *peer, const kl__place *at)
{
    const kl_value *pods = kl_value_get(peer, "podSelector"),
                   *spaces = kl_value_get(peer, "namespaceSelector"), *block = kl_value_get(peer, "ipBlock");
    kl__check_selector(c, pods, KL_IN(at, "podSelector"));
    kl__check_selector(c, spaces, KL_IN(at, "namespaceSelector"));
    if (block && !*kl__text(block, "cidr"))
        kl__say_required(c, KL_IN(KL_IN(at, "ipBlock"), "cidr"), "");
    else if (block)
        kl__check_member(c, block, KL_IN(at, "ipBlock"), "cidr", KL_CIDR);
    if (!pods && !spaces && !block)
        kl__say_required(c, at, "must specify a peer");
    else if (block && (pods || spaces))
        kl__say_forbidden(c, at, "may not specify both ipBlock and another peer");
}

static void check_direction(kl__causes *c, const kl_value *spec, const char *member, const char *peers)
{
    const kl_value *rules = kl_value_get(spec, member);
    for (size_t i = 0; i < kl_value_len(rules); i++) {
        const kl_value *ports = kl_value_get(kl_value_item(rules, i), "ports"),
                       *list = kl_value_get(kl_value_item(rules, i), peers);
        const kl__place *at = KL_ITEM(KL_IN(SPEC, member), i), *ports_in = KL_IN(at, "ports"),
                        *in = KL_IN(at, peers);
        for (size_t k = 0; k < kl_value_len(ports); k++) {
            const kl_value *p = kl_value_item(ports, k);
            kl__check_word(c, p, KL_ITEM(ports_in, k), "protocol", false, "TCP UDP SCTP");
            if (kl_value_get(p, "port") && !kl_value_str(kl_value_get(p, "port")))
                kl__check_port(c, kl_value_get(p, "port"), KL_IN(KL_ITEM(ports_in, k), "port"));
            check_end_port(c, p, KL_ITEM(ports_in, k));
            if (kl_value_str(kl_value_get(p, "port")))
                kl__check_port(c, kl_value_get(p, "port"), KL_IN(KL_ITEM(ports_in, k), "port"));
        }
        for (size_t k = 0; k < kl_value_len(list); k++)
            check_peer(c, kl_value_item(list, k), KL_ITEM(in, k));
    }
}

void kl__check_network_policy(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec"), *types = kl_value_get(spec, "policyTypes");
    const kl__place *in = KL_IN(SPEC, "policyTypes");
    if (kl__write_same_spec(w))
        return;
    kl__check_selector(w->causes, kl_value_get(spec, "podSelector"), KL_IN(SPEC, "podSelector"));
    check_direction(w->causes, spec, "ingress", "from");
    check_direction(w->causes, spec, "egress", "to");
    if (kl_value_len(types) > 2)
        kl__say_invalid(w->causes, in, types, "may not specify more than two policyTypes");
    for (size_t i = 0; i < kl_value_len(types) && kl_value_len(types) <= 2; i++) {
        if (!kl__one_of(kl__item_text(types, i), "Ingress Egress"))
            kl__say_unsupported(w->causes, KL_ITEM(in, i), kl_value_item(types, i), "Ingress Egress");
    }
}
