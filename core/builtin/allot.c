/* allot.c - allocations of a Service. An update that omits a value keeps the old one; otherwise a new one is
 * allocated. */
#include "check/check.h"
#include "builtin/service.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "schema/edit.h"

#define SPEC KL_IN(NULL, "spec")
#define SEARCH_MAX 65536

static const kl_value *spec_of(const kl_value *o) { return kl_value_get(o, "spec"); }

static bool needs_address(const kl_value *spec) { return !kl__is(spec, "type", "ExternalName"); }

static bool needs_ports(const kl_value *spec)
{
    return kl__is(spec, "type", "NodePort")
        || (kl__is(spec, "type", "LoadBalancer")
            && kl_value_bool(kl_value_get(spec, "allocateLoadBalancerNodePorts"), true));
}

static bool needs_health_port(const kl_value *spec)
{
    return kl__is(spec, "type", "LoadBalancer") && kl__is(spec, "externalTrafficPolicy", "Local");
}

static const kl_value *list_of(const char *first, const char *second)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_str(b, first);
    if (second)
        kl_build_str(b, second);
    kl_build_end(b);
    return kl_builder_done(b);
}

static bool same(const kl_value *old, const kl_value *o, const char *member)
{
    return kl_value_equal(kl_value_get(spec_of(old), member), kl_value_get(spec_of(o), member));
}

/* ------------------------------------------------------------------ what there was */

/* The node port that a port of this name had, unless the new ports use it already. */
static int64_t old_port(const kl_value *old, const kl_value *now, const char *name)
{
    int64_t had = 0;
    for (size_t i = 0; i < kl_value_len(old); i++)
        if (kl__is(kl_value_item(old, i), "name", name))
            had = kl_value_int_at(kl_value_item(old, i), 0, "nodePort", NULL);
    for (size_t i = 0; i < kl_value_len(now); i++)
        if (had && kl_value_int_at(kl_value_item(now, i), 0, "nodePort", NULL) == had)
            return 0;
    return had;
}

static void keep_ports(const kl_value *old, const kl_value **o)
{
    const kl_value *had = kl_value_get(spec_of(old), "ports"), *now = kl_value_get(spec_of(*o), "ports");
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(now); i++) {
        const kl_value *p = kl_value_ref(kl_value_item(now, i));
        int64_t n = kl_value_int_at(p, 0, "nodePort", NULL) ? 0 : old_port(had, now, kl__text(p, "name"));
        if (n)
            KL_EDIT(&p, kl_value_of_int(n), "nodePort");
        kl_build_value(b, p);
        kl_value_unref(p);
    }
    kl_build_end(b);
    KL_EDIT(o, kl_builder_done(b), "spec", "ports");
}

static void keep_old(const kl_value *old, const kl_value **o)
{
    const kl_value *was = spec_of(old), *now = spec_of(*o);
    if (needs_address(was) && needs_address(now)) {
        if (!*kl__text(now, "clusterIP"))
            KL_EDIT(o, kl_value_ref(kl_value_get(was, "clusterIP")), "spec", "clusterIP");
        if (!kl_value_len(kl_value_get(spec_of(*o), "clusterIPs")) && kl_value_get(was, "clusterIPs"))
            KL_EDIT(o, kl_value_ref(kl_value_get(was, "clusterIPs")), "spec", "clusterIPs");
    }
    if (needs_ports(was) && needs_ports(now) && kl_value_len(kl_value_get(now, "ports")))
        keep_ports(old, o);
    if (needs_health_port(was) && needs_health_port(now)
        && !kl_value_int_at(now, 0, "healthCheckNodePort", NULL))
        KL_EDIT(o, kl_value_ref(kl_value_get(was, "healthCheckNodePort")), "spec", "healthCheckNodePort");
}

/* clusterIP and clusterIPs are equal: a change of one applies to both. */
static void normalize(const kl_value *old, const kl_value **o)
{
    const char *ip = kl__text(spec_of(*o), "clusterIP"), *was = kl__text(spec_of(old), "clusterIP");
    bool list = kl_value_len(kl_value_get(spec_of(*o), "clusterIPs"));
    if (!old) {
        if (*ip && !list)
            KL_EDIT(o, list_of(ip, NULL), "spec", "clusterIPs");
        return;
    }
    if (!strcmp(ip, was) || !same(old, *o, "clusterIPs"))
        return;
    if (*was && !*ip)
        KL_CUT(o, "spec", "clusterIPs");
    else
        KL_EDIT(o, list_of(ip, NULL), "spec", "clusterIPs");
}

/* ------------------------------------------------------------------ families */

static bool is_six(const char *ip) { return strchr(ip, ':') != NULL; }

/* The server has a single IPv4 range. */
static void check_stack(kl__causes *c, const kl_value *spec)
{
    const kl_value *policy = kl_value_get(spec, "ipFamilyPolicy"), *ips = kl_value_get(spec, "clusterIPs"),
                   *families = kl_value_get(spec, "ipFamilies");
    const kl__place *at = KL_IN(SPEC, "ipFamilyPolicy");
    bool single = kl__is(spec, "ipFamilyPolicy", "SingleStack");
    if (single && kl_value_len(ips) == 2)
        kl__say_invalid(c, at, policy,
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified");
    if (single && kl_value_len(families) == 2)
        kl__say_invalid(c, at, policy,
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified");
    for (size_t i = kl_value_len(families); i < kl_value_len(ips); i++) {
        const char *ip = kl_value_str(kl_value_item(ips, i));
        if (ip && is_six(ip))
            kl__say_invalid(
                c, KL_ITEM(KL_IN(SPEC, "clusterIPs"), i), ips, "IPv6 is not configured on this cluster");
    }
}

static void check_configured(kl__causes *c, const kl_value *spec)
{
    const kl_value *families = kl_value_get(spec, "ipFamilies");
    if (kl__is(spec, "ipFamilyPolicy", "RequireDualStack"))
        kl__say_invalid(c, KL_IN(SPEC, "ipFamilyPolicy"), kl_value_get(spec, "ipFamilyPolicy"),
            "this cluster is not configured for dual-stack services");
    for (size_t i = 0; i < kl_value_len(families); i++) {
        const char *family = kl_value_str(kl_value_item(families, i));
        if (family && strcmp(family, "IPv4"))
            kl__say_invalid_text(
                c, KL_ITEM(KL_IN(SPEC, "ipFamilies"), i), family, "not configured on this cluster");
    }
}

static void give_families(const kl_value *old, const kl_value **o, kl__causes *c)
{
    bool bare = kl__is(spec_of(*o), "clusterIP", "None")
        && !kl_value_len(kl_value_get(spec_of(*o), "selector"));
    const char *policy = kl__text(spec_of(old), "ipFamilyPolicy");
    if (!*kl__text(spec_of(*o), "ipFamilyPolicy")) {
        policy = *policy ? policy : bare ? "RequireDualStack" : "SingleStack";
        KL_EDIT(o, kl_value_of_str(policy), "spec", "ipFamilyPolicy");
    }
    kl__check_families(c, spec_of(*o));
    if (!c->len)
        check_stack(c, spec_of(*o));
    if (c->len)
        return;
    size_t have = kl_value_len(kl_value_get(spec_of(*o), "ipFamilies"));
    bool dual = !kl__is(spec_of(*o), "ipFamilyPolicy", "SingleStack");
    if (bare) {
        const char *first = have ? kl_value_str(kl_value_at(spec_of(*o), "ipFamilies", NULL)) : NULL;
        first = have ? kl_value_str(kl_value_item(kl_value_get(spec_of(*o), "ipFamilies"), 0)) : "IPv4";
        if (have < 2 && (dual || !have))
            KL_EDIT(o,
                list_of(first,
                    !dual                       ? NULL
                        : strcmp(first, "IPv4") ? "IPv4"
                                                : "IPv6"),
                "spec", "ipFamilies");
        return;
    }
    check_configured(c, spec_of(*o));
    if (!c->len && !have)
        KL_EDIT(o, list_of("IPv4", NULL), "spec", "ipFamilies");
}

/* ------------------------------------------------------------------ addresses */

static bool in_range(const char *ip)
{
    struct in_addr a;
    return inet_pton(AF_INET, ip, &a) == 1 && (ntohl(a.s_addr) & 0xfff00000u) == 0x0a600000u;
}

static void claim_address(const kl__taken *t, const kl_value *o, const char *ip, kl__causes *c)
{
    const kl_value *ips = kl_value_get(spec_of(o), "clusterIPs");
    const kl__place *at = KL_IN(SPEC, "clusterIPs");
    if (!t->any_address && !in_range(ip))
        kl__say_invalid(c, at, ips,
            "failed to allocate IP %s: the provided IP (%s) is not in the valid range. The range of valid "
            "IPs is " KL_SERVICE_RANGE,
            ip, ip);
    else if (t->address(t->arg, ip))
        kl__say_invalid(c, at, ips, "failed to allocate IP %s: provided IP is already allocated", ip);
}

static void give_address(const kl__taken *t, const kl_value **o, kl__causes *c)
{
    const char *ip = kl__text(spec_of(*o), "clusterIP");
    char text[32];
    if (!strcmp(ip, "None"))
        return;
    if (*ip) {
        claim_address(t, *o, ip, c);
        return;
    }
    for (size_t i = 0; i < SEARCH_MAX; i++) {
        uint64_t n = ++*t->next;
        snprintf(text, sizeof text, "10.96.%" PRIu64 ".%" PRIu64, n / 250 % 256, n % 250 + 1);
        if (!t->address(t->arg, text))
            break;
    }
    KL_EDIT(o, kl_value_of_str(text), "spec", "clusterIP");
    KL_EDIT(o, list_of(text, NULL), "spec", "clusterIPs");
}

/* ------------------------------------------------------------------ node ports */

static int64_t node_port(const kl_value *port) { return kl_value_int_at(port, 0, "nodePort", NULL); }

/* A port that is free, marked in `taken`, or 0 after a complaint. */
static int64_t free_port(const kl__taken *t, bool taken[KL_NODE_PORTS], kl__causes *c)
{
    for (int i = 0; i < KL_NODE_PORTS; i++) {
        size_t at = ++*t->next % KL_NODE_PORTS;
        if (taken[at])
            continue;
        taken[at] = true;
        return KL_NODE_PORT_MIN + (int64_t)at;
    }
    kl__cause_add(c, KL__CAUSE_FAILED, "spec.ports", "failed to allocate a nodePort: range is full");
    return 0;
}

/* `repeats`: a port before it has its number and protocol. `own`: one before it has its number. */
static void claim_port(
    int64_t n, size_t i, bool repeats, bool own, const bool taken[KL_NODE_PORTS], kl__causes *c)
{
    const kl__place *at = KL_IN(KL_ITEM(KL_IN(SPEC, "ports"), i), "nodePort");
    if (n < KL_NODE_PORT_MIN || n > KL_NODE_PORT_MAX)
        kl__say_invalid_int(c, at, n,
            "provided port is not in the valid range. The range of valid ports is %d-%d", KL_NODE_PORT_MIN,
            KL_NODE_PORT_MAX);
    else if (repeats || (!own && taken[n - KL_NODE_PORT_MIN]))
        kl__say_invalid_int(c, at, n, "provided port is already allocated");
}

static void give_ports(const kl__taken *t, const kl_value *old, const kl_value **o, kl__causes *c)
{
    static const char *const protocol[] = {"protocol", NULL};
    const kl_value *list = kl_value_get(spec_of(*o), "ports");
    bool others[KL_NODE_PORTS] = {false}, taken[KL_NODE_PORTS];
    kl_finder had = {.key = "nodePort"}, numbers = had,
              ports = {.key = "nodePort", .more = protocol, .empty_is_absent = true};
    kl_finder_add_all(&had, kl_value_get(spec_of(old), "ports"));
    t->ports(t->arg, others);
    memcpy(taken, others, sizeof taken);
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl__mark_port(taken, node_port(kl_value_item(list, i)));
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *p = kl_value_ref(kl_value_item(list, i));
        bool again = kl_finder_repeats(&ports, p), own = kl_finder_repeats(&numbers, p);
        int64_t n = node_port(p);
        if (!n && !c->len)
            KL_EDIT(&p, kl_value_of_int(free_port(t, taken, c)), "nodePort");
        else if (n && !c->len && kl_finder_find(&had, p) < 0)
            claim_port(n, i, again && !old, own, others, c);
        kl_build_value(b, p);
        kl_value_unref(p);
    }
    kl_build_end(b);
    kl_finder_fini(&had);
    kl_finder_fini(&numbers);
    kl_finder_fini(&ports);
    KL_EDIT(o, kl_builder_done(b), "spec", "ports");
}

char *kl__service_repeated_port(const kl_value *service)
{
    static const char *const protocol[] = {"protocol", NULL};
    const kl_value *list = needs_ports(spec_of(service)) ? kl_value_get(spec_of(service), "ports") : NULL;
    kl_finder ports = {.key = "nodePort", .more = protocol, .empty_is_absent = true};
    char *twice = NULL;
    for (size_t i = 0; i < kl_value_len(list) && !twice; i++) {
        const kl_value *p = kl_value_item(list, i);
        if (kl_finder_repeats(&ports, p) && node_port(p))
            twice = kl_sprintf("{%s %lld}", kl__text(p, "protocol"), (long long)node_port(p));
    }
    kl_finder_fini(&ports);
    return twice;
}

static void give_health_port(const kl__taken *t, const kl_value **o, kl__causes *c)
{
    const kl_value *list = kl_value_get(spec_of(*o), "ports");
    bool taken[KL_NODE_PORTS] = {false};
    t->ports(t->arg, taken);
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl__mark_port(taken, node_port(kl_value_item(list, i)));
    KL_EDIT(o, kl_value_of_int(free_port(t, taken, c)), "spec", "healthCheckNodePort");
}

void kl__service_allot(const kl__taken *t, const kl_value *old, const kl_value **o, kl__causes *c)
{
    if (old)
        keep_old(old, o);
    normalize(old, o);
    if (needs_address(spec_of(*o)))
        give_families(old, o, c);
    if (!c->len && needs_address(spec_of(*o)) && (!old || !needs_address(spec_of(old))))
        give_address(t, o, c);
    if (!c->len && needs_ports(spec_of(*o)) && kl_value_len(kl_value_get(spec_of(*o), "ports")))
        give_ports(t, old, o, c);
    if (!c->len && needs_health_port(spec_of(*o))
        && !kl_value_int_at(spec_of(*o), 0, "healthCheckNodePort", NULL))
        give_health_port(t, o, c);
}

/* ------------------------------------------------------------------ another type */

static void drop_same(const kl_value *old, const kl_value **o, const char *member)
{
    if (kl_value_get(spec_of(*o), member) && same(old, *o, member))
        KL_CUT(o, "spec", member);
}

static void drop_ports(const kl_value *old, const kl_value **o)
{
    const kl_value *list = kl_value_get(spec_of(*o), "ports");
    kl_finder had = {.key = "nodePort"};
    bool other = false; /* one that the old Service had not */
    kl_finder_add_all(&had, kl_value_get(spec_of(old), "ports"));
    for (size_t i = 0; i < kl_value_len(list) && !other; i++)
        other = node_port(kl_value_item(list, i)) && kl_finder_find(&had, kl_value_item(list, i)) < 0;
    kl_finder_fini(&had);
    if (other)
        return;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *p = kl_value_ref(kl_value_item(list, i));
        KL_CUT(&p, "nodePort");
        kl_build_value(b, p);
        kl_value_unref(p);
    }
    kl_build_end(b);
    KL_EDIT(o, kl_builder_done(b), "spec", "ports");
}

static bool reached_from_outside(const kl_value *spec)
{
    return kl__one_of(kl__text(spec, "type"), "NodePort LoadBalancer")
        || (kl__is(spec, "type", "ClusterIP") && kl_value_len(kl_value_get(spec, "externalIPs")));
}

static bool has_node_ports(const kl_value *spec)
{
    return kl__one_of(kl__text(spec, "type"), "NodePort LoadBalancer");
}

void kl__service_drop(const kl_value *old, const kl_value **o)
{
    static const char *const addresses[] = {
        "clusterIPs", "clusterIP", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"};
    const kl_value *was = spec_of(old);
    if (needs_address(was) && !needs_address(spec_of(*o)))
        for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
            drop_same(old, o, addresses[i]);
    if (has_node_ports(was) && !has_node_ports(spec_of(*o))
        && kl_value_len(kl_value_get(spec_of(*o), "ports")))
        drop_ports(old, o);
    if (needs_health_port(was) && !needs_health_port(spec_of(*o)))
        drop_same(old, o, "healthCheckNodePort");
    if (kl__is(was, "type", "LoadBalancer") && !kl__is(spec_of(*o), "type", "LoadBalancer")) {
        drop_same(old, o, "allocateLoadBalancerNodePorts");
        drop_same(old, o, "loadBalancerClass");
    }
    if (reached_from_outside(was) && !reached_from_outside(spec_of(*o)))
        drop_same(old, o, "externalTrafficPolicy");
}
