/* services.c - validation of Services, in kube-apiserver's order. */
#include "check/forms.h"
#include "builtin/kinds.h"
#include "builtin/service.h"

#include <string.h>

#include "base/mem.h"

#define SPEC KL_IN(NULL, "spec")

static bool is(const kl_value *spec, const char *type) { return kl__is(spec, "type", type); }

/* ------------------------------------------------------------------ addresses and families */

static void check_pair(kl__causes *c, const kl_value *spec)
{
    const kl_value *ips = kl_value_get(spec, "clusterIPs");
    const kl__place *at = KL_IN(SPEC, "clusterIPs");
    const char *one = kl__text(spec, "clusterIP");
    if (*one && !kl_value_len(ips))
        kl__say_required(c, at, "");
    else if (*one && strcmp(kl__item_text(ips, 0), one))
        kl__say_invalid(c, at, ips, "first value must match `clusterIP`");
    else if (!*one && kl_value_len(ips))
        kl__say_invalid(c, at, ips, "must be empty when `clusterIP` is not specified");
}

void kl__check_families(kl__causes *c, const kl_value *spec)
{
    const kl_value *families = kl_value_get(spec, "ipFamilies"), *ips = kl_value_get(spec, "clusterIPs");
    const kl__place *in = KL_IN(SPEC, "ipFamilies"), *at = KL_IN(SPEC, "clusterIPs");
    if (is(spec, "ExternalName"))
        return;
    check_pair(c, spec);
    kl_finder before_it = {0};
    for (size_t i = 0; i < kl_value_len(families); i++) {
        const kl_value *family = kl_value_item(families, i);
        if (!kl__one_of(kl__item_text(families, i), "IPv4 IPv6"))
            kl__say_unsupported(c, KL_ITEM(in, i), family, "IPv4 IPv6");
        if (kl_finder_repeats(&before_it, family))
            kl__say_duplicate(c, KL_ITEM(in, i), family);
    }
    kl_finder_fini(&before_it);
    kl__check_word(c, spec, SPEC, "ipFamilyPolicy", false, "PreferDualStack RequireDualStack SingleStack");
    size_t before = c->len;
    for (size_t i = 0; i < kl_value_len(ips); i++) {
        if (i || strcmp(kl__item_text(ips, 0), "None"))
            kl__check_form(c, KL_ITEM(at, i), kl__item_text(ips, i), KL_IP);
        else if (kl_value_len(ips) > 1)
            kl__say_invalid(c, at, ips, "'None' must be the first and only value");
    }
    bool bad = c->len > before;
    if (kl_value_len(ips) > 2)
        kl__say_invalid(c, at, ips, "may only hold up to 2 values");
    if (bad)
        return;
    if (kl_value_len(ips) > 1 && !strchr(kl__item_text(ips, 0), ':') == !strchr(kl__item_text(ips, 1), ':'))
        kl__say_invalid(c, at, ips, "may specify no more than one IP for each IP family");
    for (size_t i = 0; !kl__service_headless(spec) && i < kl_value_len(ips) && i < kl_value_len(families);
         i++) {
        bool six = strchr(kl__item_text(ips, i), ':');
        if (!strcmp(kl__item_text(families, i), "IPv4") && six)
            kl__say_invalid_text(c, KL_ITEM(at, i), kl__item_text(ips, i),
                "expected an IPv4 value as indicated by `ipFamilies[%zu]`", i);
        if (!strcmp(kl__item_text(families, i), "IPv6") && !six)
            kl__say_invalid_text(c, KL_ITEM(at, i), kl__item_text(ips, i),
                "expected an IPv6 value as indicated by `ipFamilies[%zu]`", i);
    }
}

static void check_kept(kl__causes *c, const kl_value *old, const kl_value *spec)
{
    const kl_value *was = kl_value_get(old, "clusterIPs"), *ips = kl_value_get(spec, "clusterIPs"),
                   *had = kl_value_get(old, "ipFamilies"), *families = kl_value_get(spec, "ipFamilies");
    const kl__place *at = KL_IN(SPEC, "clusterIPs");
    bool headless = kl__service_headless(spec), before = kl__service_headless(old);
    if (is(spec, "ExternalName") || is(old, "ExternalName") || (headless && before))
        return;
    if (kl_value_len(was) && !kl_value_len(ips))
        kl__say_invalid(c, KL_ITEM(at, 0), ips, "primary clusterIP can not be unset");
    for (size_t i = 0; i < kl_value_len(was) && i < kl_value_len(ips); i++)
        if (strcmp(kl__item_text(was, i), kl__item_text(ips, i)))
            kl__say_invalid(c, KL_ITEM(at, i), ips, "may not change once set");
    if (headless == before && kl_value_len(had) == kl_value_len(families))
        for (size_t i = 0; i < kl_value_len(had); i++)
            if (strcmp(kl__item_text(had, i), kl__item_text(families, i)))
                kl__say_invalid(
                    c, KL_ITEM(KL_IN(SPEC, "ipFamilies"), 0), families, "may not change once set");
}

/* ------------------------------------------------------------------ types and ports */

static void check_type(kl__causes *c, const kl_value *spec)
{
    static const char *const forbidden[] = {"clusterIPs", "ipFamilies", "ipFamilyPolicy"};
    if (!kl_value_len(kl_value_get(spec, "ports")) && !kl__service_headless(spec)
        && !is(spec, "ExternalName"))
        kl__say_required(c, KL_IN(SPEC, "ports"), "");
    if (kl__one_of(kl__text(spec, "type"), "LoadBalancer NodePort") && kl__service_headless(spec))
        kl__say_invalid_text(c, KL_ITEM(KL_IN(SPEC, "clusterIPs"), 0), "None",
            "may not be set to 'None' for %s services", kl__text(spec, "type"));
    if (!is(spec, "ExternalName"))
        return;
    for (size_t i = 0; i < 3; i++)
        if (kl_value_len(kl_value_get(spec, forbidden[i])))
            kl__say_forbidden(c, KL_IN(SPEC, forbidden[i]), "may not be set for ExternalName services");
    const char *name = kl__text(spec, "externalName");
    size_t n = strlen(name);
    char *bare = kl_strndup(name, n && name[n - 1] == '.' ? n - 1 : n);
    if (!*bare)
        kl__say_required(c, KL_IN(SPEC, "externalName"), "");
    else
        kl__check_form(c, KL_IN(SPEC, "externalName"), bare, KL_DNS_SUBDOMAIN);
    kl_free(bare);
}

static void check_one_port(kl__causes *c, const kl_value *list, size_t i, kl_finder *names)
{
    const kl_value *p = kl_value_item(list, i);
    const kl__place *at = KL_ITEM(KL_IN(SPEC, "ports"), i);
    int64_t n = kl_value_int_at(p, 0, "port", NULL);
    if (!*kl__text(p, "name")) {
        if (kl_value_len(list) > 1)
            kl__say_required(c, KL_IN(at, "name"), "");
    } else {
        kl__check_member(c, p, at, "name", KL_DNS_LABEL);
        if (kl_finder_repeats(names, p))
            kl__say_duplicate(c, KL_IN(at, "name"), kl_value_get(p, "name"));
    }
    if (n < 1 || n > 65535)
        kl__say_invalid_int(c, KL_IN(at, "port"), n, "must be between 1 and 65535, inclusive");
    kl__check_word(c, p, at, "protocol", true, "SCTP TCP UDP");
    kl__check_port(c, kl_value_get(p, "targetPort"), KL_IN(at, "targetPort"));
    kl__check_member(c, p, at, "appProtocol", KL_QUALIFIED);
}

static void check_affinity(kl__causes *c, const kl_value *spec)
{
    const kl_value *config = kl_value_get(spec, "sessionAffinityConfig"),
                   *seconds = kl_value_at(config, "clientIP", "timeoutSeconds", NULL);
    int64_t n = kl_value_int_at(seconds, 1, NULL);
    kl__check_word(c, spec, SPEC, "sessionAffinity", true, "ClientIP None");
    if (kl__is(spec, "sessionAffinity", "ClientIP") && (n <= 0 || n > 86400))
        kl__say_invalid(c, KL_IN(KL_IN(KL_IN(SPEC, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds"),
            seconds, "must be greater than 0 and less than 86400");
    else if (kl__is(spec, "sessionAffinity", "None") && config)
        kl__say_forbidden(
            c, KL_IN(SPEC, "sessionAffinityConfig"), "must not be set when session affinity is None");
}

static const char *family_fault(const char *ip)
{
    if (!strcmp(ip, "0.0.0.0") || !strcmp(ip, "::"))
        return "may not be unspecified (%s)";
    return !strncmp(ip, "127.", 4) || !strcmp(ip, "::1")
        ? "may not be in the loopback range (127.0.0.0/8, ::1/128)"
        : !strncmp(ip, "169.254.", 8) ? "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
                                      : NULL;
}

static void check_external_ips(kl__causes *c, const kl_value *spec)
{
    const kl_value *list = kl_value_get(spec, "externalIPs");
    const kl__place *in = KL_IN(SPEC, "externalIPs");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *ip = kl__item_text(list, i), *why = family_fault(ip);
        size_t before = c->len;
        kl__check_form(c, KL_ITEM(in, i), ip, KL_IP);
        if (c->len == before && why && strchr(why, '%'))
            kl__say_invalid_text(c, KL_ITEM(in, i), ip, "may not be unspecified (%s)", ip);
        else if (c->len == before && why)
            kl__say_invalid_text(c, KL_ITEM(in, i), ip, "%s", why);
    }
}

/* A port in the form in which kube-apiserver prints its struct. */
static const kl_value *go_port(const kl_value *p)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "Name", "");
    kl_build_kstr(b, "Protocol", kl__text(p, "protocol"));
    kl_build_key(b, "AppProtocol");
    kl_build_null(b);
    kl_build_kint(b, "Port", kl_value_int_at(p, 0, "port", NULL));
    kl_build_kint(b, "TargetPort", 0);
    kl_build_kint(b, "NodePort", 0);
    kl_build_end(b);
    return kl_builder_done(b);
}

static void check_twice(kl__causes *c, const kl_value *list, const char *member)
{
    static const char *const protocol[] = {"protocol", NULL};
    bool whole = !strcmp(member, "port");
    kl_finder ports = {.key = member, .more = protocol, .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *p = kl_value_item(list, i), *n = kl_value_get(p, member);
        const kl__place *at = KL_ITEM(KL_IN(SPEC, "ports"), i);
        if (!n || !kl_finder_repeats(&ports, p))
            continue;
        const kl_value *shown = whole ? go_port(p) : kl_value_ref(n);
        kl__say_duplicate(c, whole ? at : KL_IN(at, member), shown);
        kl_value_unref(shown);
    }
    kl_finder_fini(&ports);
}

static void check_ports(kl__causes *c, const kl_value *spec)
{
    const kl_value *list = kl_value_get(spec, "ports");
    for (size_t i = 0; i < kl_value_len(list) && is(spec, "ClusterIP"); i++)
        if (kl_value_int_at(kl_value_item(list, i), 0, "nodePort", NULL))
            kl__say_forbidden(c, KL_IN(KL_ITEM(KL_IN(SPEC, "ports"), i), "nodePort"),
                "may not be used when `type` is 'ClusterIP'");
    check_twice(c, list, "nodePort");
    check_twice(c, list, "port");
}

/* ------------------------------------------------------------------ balancers and policies */

static void check_balancer(kl__causes *c, const kl_value *spec)
{
    static const char only[] = "may only be used when `type` is 'LoadBalancer'";
    const kl_value *ranges = kl_value_get(spec, "loadBalancerSourceRanges");
    const kl__place *at = KL_IN(SPEC, "LoadBalancerSourceRanges"); /* kube-apiserver spells it so */
    bool balanced = is(spec, "LoadBalancer");
    if (kl_value_len(ranges) && !balanced)
        kl__say_forbidden(c, at, "%s", only);
    for (size_t i = 0; i < kl_value_len(ranges); i++)
        kl__check_form(c, KL_ITEM(at, i), kl__item_text(ranges, i), KL_CIDR);
    if (kl_value_get(spec, "allocateLoadBalancerNodePorts") && !balanced)
        kl__say_forbidden(c, KL_IN(SPEC, "allocateLoadBalancerNodePorts"), "%s", only);
    if (balanced)
        kl__check_member(c, spec, SPEC, "loadBalancerClass", KL_QUALIFIED);
    else if (kl_value_get(spec, "loadBalancerClass"))
        kl__say_forbidden(c, KL_IN(SPEC, "loadBalancerClass"), "%s", only);
}

static void check_policies(kl__causes *c, const kl_value *spec)
{
    const kl_value *policy = kl_value_get(spec, "externalTrafficPolicy"),
                   *health = kl_value_get(spec, "healthCheckNodePort");
    bool outside = kl__one_of(kl__text(spec, "type"), "NodePort LoadBalancer")
        || (is(spec, "ClusterIP") && kl_value_len(kl_value_get(spec, "externalIPs"))),
         checked = is(spec, "LoadBalancer") && kl__is(spec, "externalTrafficPolicy", "Local");
    if (!outside && *kl__text(spec, "externalTrafficPolicy"))
        kl__say_invalid(c, KL_IN(SPEC, "externalTrafficPolicy"), policy,
            "may only be set for externally-accessible services");
    else if (outside)
        kl__check_word(c, spec, SPEC, "externalTrafficPolicy", true, "Cluster Local");
    if (!checked && kl_value_int_at(health, 0, NULL))
        kl__say_invalid(c, KL_IN(SPEC, "healthCheckNodePort"), health,
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
    else if (checked)
        kl__check_range(c, spec, SPEC, "healthCheckNodePort", 1, 65535);
    kl__check_word(c, spec, SPEC, "internalTrafficPolicy", false, "Cluster Local");
    kl__check_word(c, spec, SPEC, "trafficDistribution", false, "PreferClose PreferSameZone PreferSameNode");
}

void kl__check_service(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *spec = kl_value_get(w->o, "spec"), *old = kl_value_get(w->old, "spec"), *list;
    if (kl__write_same_spec(w))
        return;
    if (old) {
        check_kept(c, old, spec);
        if (is(old, "LoadBalancer") && is(spec, "LoadBalancer")
            && !kl_value_equal(
                kl_value_get(old, "loadBalancerClass"), kl_value_get(spec, "loadBalancerClass")))
            kl__say_invalid(c, KL_IN(SPEC, "loadBalancerClass"), kl_value_get(spec, "loadBalancerClass"),
                "may not change once set");
    }
    check_type(c, spec);
    list = kl_value_get(spec, "ports");
    kl_finder names = {.key = "name"};
    for (size_t i = 0; i < kl_value_len(list); i++)
        check_one_port(c, list, i, &names);
    kl_finder_fini(&names);
    kl__check_labels(c, kl_value_get(spec, "selector"), KL_IN(SPEC, "selector"));
    check_affinity(c, spec);
    kl__check_families(c, spec);
    check_external_ips(c, spec);
    kl__check_word(c, spec, SPEC, "type", true, "ClusterIP ExternalName LoadBalancer NodePort");
    check_ports(c, spec);
    check_balancer(c, spec);
    check_policies(c, spec);
}
