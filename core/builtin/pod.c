/* pod.c - a pod's spec, field by field in kube-apiserver's order. */
#include "builtin/pod.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"

static void check_host_network(const kl__pod_look *p, const kl__place *at)
{
    const kl_value *list = kl_value_get(p->spec, "containers");
    const kl__place *in = KL_IN(at, "containers");
    if (!kl__true(p->spec, "hostNetwork"))
        return;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *ports = kl_value_get(kl_value_item(list, i), "ports");
        const kl__place *here = KL_IN(KL_ITEM(in, i), "ports");
        for (size_t k = 0; k < kl_value_len(ports); k++) {
            const kl_value *port = kl_value_item(ports, k);
            int64_t host = kl_value_int_at(port, 0, "hostPort", NULL);
            if ((!p->template || host) && host != kl_value_int_at(port, 0, "containerPort", NULL))
                kl__say_invalid_int(p->causes, KL_IN(KL_ITEM(here, k), "hostPort"), host,
                    "must match `containerPort` when `hostNetwork` is true");
        }
    }
}

static void check_security(kl__causes *c, const kl_value *s, const kl__place *at)
{
    const kl_value *groups = kl_value_get(s, "supplementalGroups"), *profile;
    const kl__place *in = KL_IN(at, "supplementalGroups"), *seccomp = KL_IN(at, "seccompProfile");
    kl__check_range(c, s, at, "fsGroup", 0, INT32_MAX);
    kl__check_range(c, s, at, "runAsUser", 0, INT32_MAX);
    kl__check_range(c, s, at, "runAsGroup", 0, INT32_MAX);
    for (size_t i = 0; i < kl_value_len(groups); i++) {
        int64_t n = kl_value_int_at(kl_value_item(groups, i), 0, NULL);
        if (n < 0 || n > INT32_MAX)
            kl__say_invalid_int(c, KL_ITEM(in, i), n, "must be between 0 and 2147483647, inclusive");
    }
    kl__check_word(c, s, at, "fsGroupChangePolicy", false, "Always OnRootMismatch");
    if ((profile = kl_value_get(s, "seccompProfile"))) {
        if (!*kl__text(profile, "type"))
            kl__say_required(c, KL_IN(seccomp, "type"), "type is required when seccompProfile is set");
        else
            kl__check_word(c, profile, seccomp, "type", true, "Localhost RuntimeDefault Unconfined");
    }
    kl__check_word(c, s, at, "supplementalGroupsPolicy", false, "Merge Strict");
}

static void check_dns(kl__causes *c, const kl_value *spec, const kl__place *at)
{
    const kl_value *dns = kl_value_get(spec, "dnsConfig"), *servers = kl_value_get(dns, "nameservers"),
                   *options = kl_value_get(dns, "options");
    const kl__place *in = KL_IN(at, "dnsConfig"), *servers_in = KL_IN(in, "nameservers");
    bool none = kl__is(spec, "dnsPolicy", "None");
    if (none && !dns)
        kl__say_required(c, in, "must provide `dnsConfig` when `dnsPolicy` is None");
    else if (none && !kl_value_len(servers))
        kl__say_required(c, servers_in, "must provide at least one DNS nameserver when `dnsPolicy` is None");
    if (!dns || (none && !kl_value_len(servers)))
        return;
    if (kl_value_len(servers) > 3)
        kl__say_invalid(c, servers_in, servers, "must not have more than 3 nameservers");
    for (size_t i = 0; i < kl_value_len(servers); i++) {
        kl__check_form(c, KL_ITEM(servers_in, i), kl__item_text(servers, i), KL_IP);
    }
    if (kl_value_len(kl_value_get(dns, "searches")) > 32)
        kl__say_invalid(c, KL_IN(in, "searches"), kl_value_get(dns, "searches"),
            "must not have more than 32 search paths");
    for (size_t i = 0; i < kl_value_len(options); i++)
        if (!*kl__text(kl_value_item(options, i), "name"))
            kl__say_required(c, KL_ITEM(KL_IN(in, "options"), i), "must not be empty");
}

static void check_gates(kl__causes *c, const kl_value *spec, const kl__place *at)
{
    const kl_value *ready = kl_value_get(spec, "readinessGates"),
                   *gates = kl_value_get(spec, "schedulingGates");
    const kl__place *in = KL_IN(at, "readinessGates"), *gates_in = KL_IN(at, "schedulingGates");
    for (size_t i = 0; i < kl_value_len(ready); i++)
        kl__check_form(c, KL_IN(KL_ITEM(in, i), "conditionType"),
            kl__text(kl_value_item(ready, i), "conditionType"), KL_QUALIFIED);
    kl_finder names = {.key = "name"};
    for (size_t i = 0; i < kl_value_len(gates); i++) {
        const kl_value *gate = kl_value_item(gates, i);
        kl__check_form(c, KL_ITEM(gates_in, i), kl__text(gate, "name"), KL_QUALIFIED);
        if (kl_finder_repeats(&names, gate))
            kl__say_duplicate(c, KL_ITEM(gates_in, i), kl_value_get(gate, "name"));
    }
    kl_finder_fini(&names);
}

static void check_aliases(kl__causes *c, const kl_value *list, const kl__place *in)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i), *names = kl_value_get(one, "hostnames");
        const kl__place *at = KL_ITEM(in, i);
        kl__check_form(c, KL_IN(at, "ip"), kl__text(one, "ip"), KL_IP);
        for (size_t k = 0; k < kl_value_len(names); k++) {
            kl__check_form(c, KL_ITEM(KL_IN(at, "hostnames"), k), kl__item_text(names, k), KL_DNS_SUBDOMAIN);
        }
    }
}

static void check_rest(const kl__pod_look *p, const kl__place *at)
{
    kl__causes *c = p->causes;
    const kl_value *o = p->spec;
    kl__check_member(c, o, at, "serviceAccountName", KL_DNS_SUBDOMAIN);
    kl__check_member(c, o, at, "nodeName", KL_DNS_SUBDOMAIN);
    kl__check_range(c, o, at, "activeDeadlineSeconds", 1, INT32_MAX);
    kl__check_member(c, o, at, "hostname", KL_DNS_LABEL);
    kl__check_member(c, o, at, "subdomain", KL_DNS_LABEL);
    kl__check_tolerations(c, kl_value_get(o, "tolerations"), KL_IN(at, "tolerations"));
    check_aliases(c, kl_value_get(o, "hostAliases"), KL_IN(at, "hostAliases"));
    kl__check_member(c, o, at, "priorityClassName", KL_DNS_SUBDOMAIN);
    kl__check_member(c, o, at, "runtimeClassName", KL_DNS_SUBDOMAIN);
    kl__check_word(c, o, at, "preemptionPolicy", false, "PreemptLowerPriority Never");
    const kl_value *os = kl_value_get(o, "os");
    if (os && !*kl__text(os, "name"))
        kl__say_required(c, KL_IN(KL_IN(at, "os"), "name"), "");
    else if (os && !kl__one_of(kl__text(os, "name"), "linux windows"))
        kl__say_unsupported(c, KL_IN(at, "os"), kl_value_get(os, "name"), "linux windows");
}

static void check_spec(kl__pod_look *p, const kl__place *at)
{
    kl__causes *c = p->causes;
    const kl_value *o = p->spec;
    kl__check_volumes(p, KL_IN(at, "volumes"));
    kl__check_containers(p, at);
    check_host_network(p, at);
    kl__check_word(c, o, at, "restartPolicy", true, "Always OnFailure Never");
    kl__check_word(c, o, at, "dnsPolicy", true, "ClusterFirstWithHostNet ClusterFirst Default None");
    kl__check_labels(c, kl_value_get(o, "nodeSelector"), KL_IN(at, "nodeSelector"));
    check_security(c, kl_value_get(o, "securityContext"), KL_IN(at, "securityContext"));
    kl__check_affinity(c, kl_value_get(o, "affinity"), KL_IN(at, "affinity"));
    check_dns(c, o, at);
    check_gates(c, o, at);
    kl__check_spread(c, kl_value_get(o, "topologySpreadConstraints"), KL_IN(at, "topologySpreadConstraints"));
    check_rest(p, at);
    kl_finder_fini(&p->volumes);
    kl_finder_fini(&p->claimed);
}

/* Rejects image names with white space around them. */
static void check_images(kl__causes *c, const kl_value *spec, const char *member, const kl__place *at)
{
    const kl_value *list = kl_value_get(spec, member);
    const kl__place *in = KL_IN(at, member);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *image = kl__text(kl_value_item(list, i), "image");
        size_t n = strlen(image);
        if (n && (strspn(image, " \t\n\r") || strchr(" \t\n\r", image[n - 1])))
            kl__say_invalid_text(
                c, KL_IN(KL_ITEM(in, i), "image"), image, "must not have leading or trailing whitespace");
    }
}

/* A projected token requires a service account. */
static void check_tokens(kl__causes *c, const kl_value *spec, const kl__place *at)
{
    const kl_value *volumes = kl_value_get(spec, "volumes");
    for (size_t i = 0; i < kl_value_len(volumes) && !*kl__text(spec, "serviceAccountName"); i++) {
        const kl_value *list = kl_value_at(kl_value_item(volumes, i), "projected", "sources", NULL);
        const kl__place *in = KL_IN(KL_IN(KL_ITEM(KL_IN(at, "volumes"), i), "projected"), "sources");
        for (size_t k = 0; k < kl_value_len(list); k++)
            if (kl_value_get(kl_value_item(list, k), "serviceAccountToken"))
                kl__say_forbidden(c, KL_IN(KL_ITEM(in, k), "serviceAccountToken"),
                    "must not be specified when serviceAccountName is not set");
    }
}

void kl__check_pod(kl__causes *c, const char *sub, const kl_value *old, const kl_value *pod)
{
    const kl_value *spec = kl_value_get(pod, "spec");
    const kl__place *at = KL_IN(NULL, "spec");
    if (sub && !strcmp(sub, "status"))
        return; /* a write to /status cannot change the spec */
    if (old && kl_value_equal(kl_value_get(old, "spec"), spec))
        return; /* an unchanged spec is valid */
    kl__pod_look p = {.causes = c, .spec = spec};
    check_spec(&p, at);
    check_tokens(c, spec, at);
    check_images(c, spec, "containers", at);
    check_images(c, spec, "initContainers", at);
    if (old && !sub)
        kl__check_pod_update(c, old, pod);
    if (old)
        return;
    if (kl_value_len(kl_value_get(spec, "ephemeralContainers")))
        kl__say_forbidden(c, KL_IN(at, "ephemeralContainers"), "cannot be set on create");
    if (*kl__text(spec, "nodeName") && kl_value_len(kl_value_get(spec, "schedulingGates")))
        kl__say_forbidden(
            c, KL_IN(at, "nodeName"), "cannot be set until all schedulingGates have been cleared");
}

void kl__check_template(kl__causes *c, const kl_value *template, const kl_value *claims, const kl__place *at)
{
    kl__pod_look p = {
        .causes = c, .spec = kl_value_get(template, "spec"), .claims = claims, .template = true};
    kl__check_labels(c, kl_value_at(template, "metadata", "labels", NULL), KL_IN(at, "labels"));
    check_spec(&p, KL_IN(at, "spec"));
    if (kl_value_len(kl_value_get(p.spec, "ephemeralContainers")))
        kl__say_forbidden(c, KL_IN(KL_IN(at, "spec"), "ephemeralContainers"),
            "ephemeral containers not allowed in pod template");
}
