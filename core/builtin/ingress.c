/* ingress.c - Ingresses and their classes (pkg/apis/networking/validation). */
#include "check/forms.h"
#include "builtin/fill.h"
#include "builtin/kinds.h"

#include <string.h>

#include "base/mem.h"
#include "model/names.h"

#define SPEC KL_IN(NULL, "spec")
#define CLASS_ANNOTATION "kubernetes.io/ingress.class"
#define CONTROLLER_MAX 250

/* A kind and a name in a group: a backend, or a class's parameters. */
static void check_reference(kl__causes *c, const kl_value *ref, const kl__place *at)
{
    static const char *const members[] = {"kind", "name"};
    if (kl_value_get(ref, "apiGroup"))
        kl__check_form(c, KL_IN(at, "apiGroup"), kl__text(ref, "apiGroup"), KL_DNS_SUBDOMAIN);
    for (size_t i = 0; i < 2; i++) {
        kl__check_present(c, ref, at, members[i]);
        kl__check_member(c, ref, at, members[i], KL_PATH_SEGMENT);
    }
}

static void check_service(kl__causes *c, const kl_value *service, const kl__place *backend)
{
    const kl__place *at = KL_IN(backend, "service"), *port_at = KL_IN(at, "port");
    const kl_value *port = kl_value_get(service, "port");
    bool named = *kl__text(port, "name"), numbered = kl_value_int_at(port, 0, "number", NULL) != 0;
    kl__check_present(c, service, at, "name");
    kl__check_member(c, service, at, "name", KL_DNS_1035);
    if (named && numbered)
        kl__say_invalid_text(c, backend, "", "cannot set both port name & port number");
    else if (named)
        kl__check_member(c, port, port_at, "name", KL_PORT_NAME);
    else if (numbered)
        kl__check_range(c, port, port_at, "number", 1, 65535);
    else
        kl__say_required(c, backend, "port name or number is required");
}

static void check_backend(kl__causes *c, const kl_value *backend, const kl__place *at)
{
    const kl_value *service = kl_value_get(backend, "service"), *resource = kl_value_get(backend, "resource");
    if (service && resource)
        kl__say_invalid_text(c, at, "", "cannot set both resource and service backends");
    else if (resource)
        check_reference(c, resource, KL_IN(at, "resource"));
    else if (service)
        check_service(c, service, at);
    else
        kl__say_invalid_text(c, at, "", "resource or service backend is required");
}

static void check_path(kl__causes *c, const kl_value *p, const kl__place *at)
{
    static const char *const inside[] = {"//", "/./", "/../", "%2f", "%2F"}, *const ends[] = {"/..", "/."};
    const char *type = kl__text(p, "pathType"), *path = kl__text(p, "path");
    const kl__place *path_at = KL_IN(at, "path");
    if (kl__absent(p, "pathType")) {
        kl__say_required(c, KL_IN(at, "pathType"), "pathType must be specified");
        return;
    }
    bool exact = kl__one_of(type, "Exact Prefix"), any = !strcmp(type, "ImplementationSpecific");
    if (!exact && !any)
        kl__say_unsupported(
            c, KL_IN(at, "pathType"), kl_value_get(p, "pathType"), "Exact ImplementationSpecific Prefix");
    if ((exact || (any && *path)) && *path != '/')
        kl__say_invalid_text(c, path_at, path, "must be an absolute path");
    for (size_t i = 0; exact && i < sizeof inside / sizeof *inside; i++)
        if (strstr(path, inside[i]))
            kl__say_invalid_text(c, path_at, path, "must not contain '%s'", inside[i]);
    for (size_t i = 0; exact && i < sizeof ends / sizeof *ends; i++)
        if (kl_ends_with(path, ends[i]))
            kl__say_invalid_text(c, path_at, path, "cannot end with '%s'", ends[i]);
    check_backend(c, kl_value_get(p, "backend"), KL_IN(at, "backend"));
}

static void check_host(kl__causes *c, const char *host, const kl__place *at)
{
    if (!kl_name_ip(host))
        kl__say_invalid_text(c, at, host, "must be a DNS name, not an IP address");
    kl__check_form(c, at, host, strchr(host, '*') ? KL_DNS_WILDCARD : KL_DNS_SUBDOMAIN);
}

static void check_rules(kl__causes *c, const kl_value *rules)
{
    for (size_t i = 0; i < kl_value_len(rules); i++) {
        const kl_value *rule = kl_value_item(rules, i), *http = kl_value_get(rule, "http"),
                       *paths = kl_value_get(http, "paths");
        const kl__place *at = KL_ITEM(KL_IN(SPEC, "rules"), i), *paths_at = KL_IN(KL_IN(at, "http"), "paths");
        if (*kl__text(rule, "host"))
            check_host(c, kl__text(rule, "host"), KL_IN(at, "host"));
        if (http && !kl_value_len(paths))
            kl__say_required(c, paths_at, "");
        for (size_t k = 0; k < kl_value_len(paths); k++)
            check_path(c, kl_value_item(paths, k), KL_ITEM(paths_at, k));
    }
}

static void check_tls(kl__causes *c, const kl_value *list)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i), *hosts = kl_value_get(one, "hosts");
        const kl__place *at = KL_ITEM(KL_IN(SPEC, "tls"), i), *hosts_at = KL_IN(at, "hosts");
        for (size_t k = 0; k < kl_value_len(hosts); k++) {
            const char *host = kl__item_text(hosts, k);
            kl__check_form(
                c, KL_ITEM(hosts_at, k), host, strchr(host, '*') ? KL_DNS_WILDCARD : KL_DNS_SUBDOMAIN);
        }
        kl__check_member(c, one, at, "secretName", KL_DNS_SUBDOMAIN);
    }
}

void kl__check_ingress(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *spec = kl_value_get(w->o, "spec"), *rules = kl_value_get(spec, "rules"),
                   *backend = kl_value_get(spec, "defaultBackend"),
                   *class = kl_value_get(spec, "ingressClassName");
    if (kl__write_same_spec(w))
        return;
    if (!kl_value_len(rules) && !backend)
        kl__say_invalid(c, SPEC, rules, "either `defaultBackend` or `rules` must be specified");
    if (backend)
        check_backend(c, backend, KL_IN(SPEC, "defaultBackend"));
    check_rules(c, rules);
    check_tls(c, kl_value_get(spec, "tls"));
    if (class)
        kl__check_form(
            c, KL_IN(SPEC, "ingressClassName"), kl__text(spec, "ingressClassName"), KL_DNS_SUBDOMAIN);
    const kl_value *noted = kl_value_at(w->o, "metadata", "annotations", CLASS_ANNOTATION, NULL);
    if (!w->old && class && noted && !kl_value_equal(class, noted))
        kl__say_invalid(c, KL_IN(KL_IN(NULL, "annotations"), CLASS_ANNOTATION), noted,
            "must match `ingressClassName` when both are specified");
}

/* ------------------------------------------------------------------ IngressClass */

static void check_controller(kl__causes *c, const char *name, const kl__place *at)
{
    const char *slash = strchr(name, '/');
    if (!*name) {
        kl__say_required(c, at, "");
        return;
    }
    if (strlen(name) > CONTROLLER_MAX)
        kl__say_too_long(c, at, CONTROLLER_MAX);
    if (!slash || slash == name || !slash[1]) {
        kl__say_invalid_text(c, at, name, "must be a domain-prefixed path (such as \"acme.io/foo\")");
        return;
    }
    char *host = kl_strndup(name, (size_t)(slash - name));
    kl__check_form(c, at, host, KL_DNS_SUBDOMAIN);
    kl_free(host);
    kl__check_form(c, at, slash + 1, KL_HTTP_PATH);
}

static void check_parameters(kl__causes *c, const kl_value *p, const kl__place *at)
{
    const char *scope = kl__text(p, "scope");
    const kl_value *ns = kl_value_get(p, "namespace");
    check_reference(c, p, at);
    if (!kl__absent(p, "scope") && !kl__one_of(scope, "Cluster Namespace"))
        kl__say_unsupported(c, KL_IN(at, "scope"), kl_value_get(p, "scope"), "Cluster Namespace");
    if (!strcmp(scope, "Namespace")) {
        if (!ns)
            kl__say_required(c, KL_IN(at, "namespace"), "`parameters.scope` is set to 'Namespace'");
        else
            kl__check_form(c, KL_IN(at, "namespace"), kl__text(p, "namespace"), KL_DNS_LABEL);
    } else if (!strcmp(scope, "Cluster") && ns)
        kl__say_forbidden(c, KL_IN(at, "namespace"), "`parameters.scope` is set to 'Cluster'");
}

void kl__check_ingress_class(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec"), *parameters = kl_value_get(spec, "parameters");
    if (kl__write_same_spec(w))
        return;
    if (w->old)
        kl__check_same(w->causes, kl_value_get(w->old, "spec"), spec, SPEC, "controller");
    check_controller(w->causes, kl__text(spec, "controller"), KL_IN(SPEC, "controller"));
    if (parameters)
        check_parameters(w->causes, parameters, KL_IN(SPEC, "parameters"));
}
