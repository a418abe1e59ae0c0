/* pod.c - warnings about pods and templates, in kube-apiserver's order. */
#include "warnings/warnings.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "check/addresses.h"
#include "schema/names.h"

/* ------------------------------------------------------------------ shared with other kinds */

const char *kl__old_node_label(const char *label)
{
    static const char *const labels[][2] = {
        {"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
        {"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
        {"failure-domain.beta.kubernetes.io/region",
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
        {"failure-domain.beta.kubernetes.io/zone",
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
        {"beta.kubernetes.io/instance-type",
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"},
        {"app.kubernetes.io/created-by", "deprecated since v1.9"},
        {"scheduler.alpha.kubernetes.io/preferAvoidPods",
            "deprecated since v1.22; use Taints and Tolerations instead"},
        {"node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"},
    };
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (!strcmp(label, labels[i][0]))
            return labels[i][1];
    return NULL;
}

void kl__warn_term(kl__causes *out, const kl_value *term, bool values, const kl__place *at)
{
    const kl_value *list = kl_value_get(term, "matchExpressions");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i), *some = values ? kl_value_get(one, "values") : NULL;
        const kl__place *in = KL_ITEM(KL_IN(at, "matchExpressions"), i);
        const char *label = kl__text(one, "key"), *why = kl__old_node_label(label);
        if (why)
            kl__say_odd(out, KL_IN(in, "key"), "%s is %s", label, why);
        for (size_t k = 0; k < kl_value_len(some); k++) {
            const char *value = kl__item_text(some, k), *faults[KL_FAULTS_MAX];
            size_t n = kl__label_value_faults(value, faults);
            for (size_t f = 0; f < n; f++)
                kl__say_odd(out, KL_ITEM(KL_IN(in, "values"), k), "%s is invalid, %s", value, faults[f]);
        }
    }
}

void kl__warn_annotations(
    kl__causes *out, const kl_value *meta, const kl__place *at, const char *const notes[][2])
{
    const kl_value *annotations = kl_value_get(meta, "annotations");
    const kl__place *in = KL_IN(KL_IN(at, "metadata"), "annotations");
    for (; annotations && (*notes)[0]; notes++)
        if (kl_value_get(annotations, (*notes)[0]))
            kl__say_odd(out, KL_KEYED(in, (*notes)[0], strlen((*notes)[0])), "%s", (*notes)[1]);
}

void kl__warn_source(kl__causes *out, const kl_value *volume, const kl__place *at)
{
    static const char *const sources[][2] = {
        {"cephfs", "deprecated in v1.28, non-functional in v1.31+"},
        {"photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
        {"gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
        {"scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
        {"flocker", "deprecated in v1.22, non-functional in v1.25+"},
        {"storageos", "deprecated in v1.22, non-functional in v1.25+"},
        {"quobyte", "deprecated in v1.22, non-functional in v1.25+"},
        {"glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
        {"rbd", "deprecated in v1.28, non-functional in v1.31+"},
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (kl_value_get(volume, sources[i][0])) /* messages have Go's spelling */
            kl__say_odd(out, KL_IN(at, !strcmp(sources[i][0], "storageos") ? "storageOS" : sources[i][0]),
                "%s", sources[i][1]);
}

void kl__warn_fraction(kl__causes *out, const kl_value *amounts, const char *resource, const kl__place *at)
{
    const char *text = kl__text(amounts, resource);
    kl_quantity *q = *text ? kl__quantity_of(text) : NULL;
    int64_t milli = 0;
    if (q && kl_quantity_milli(q, &milli) && milli % 1000)
        kl__say_odd(out, KL_KEYED(at, resource, strlen(resource)),
            "fractional byte value \"%s\" is invalid, must be an integer", text);
    kl_quantity_free(q);
}

void kl__warn_fractions(kl__causes *out, const kl_value *resources, const char *resource, const kl__place *at)
{
    kl__warn_fraction(out, kl_value_get(resources, "requests"), resource, KL_IN(at, "requests"));
    kl__warn_fraction(out, kl_value_get(resources, "limits"), resource, KL_IN(at, "limits"));
}

/* ------------------------------------------------------------------ scheduling */

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static void node_labels(kl__causes *out, const kl_value *spec, const kl__place *in)
{
    const kl_value *selector = kl_value_get(spec, "nodeSelector"),
                   *affinity = kl_value_at(spec, "affinity", "nodeAffinity", NULL);
    for (size_t i = 0; i < kl_value_len(selector); i++) {
        const char *key;
        size_t n;
        (void)kl_value_member(selector, i, &key, &n);
        const char *why = kl__old_node_label(key);
        if (why)
            kl__say_odd(out, KL_KEYED(KL_IN(in, "nodeSelector"), key, n), "%s", why);
    }
    const kl__place *at = KL_IN(KL_IN(in, "affinity"), "nodeAffinity");
    const kl_value *terms = kl_value_at(affinity, REQUIRED, "nodeSelectorTerms", NULL);
    for (size_t i = 0; i < kl_value_len(terms); i++)
        kl__warn_term(
            out, kl_value_item(terms, i), false, KL_ITEM(KL_IN(KL_IN(at, REQUIRED), "nodeSelectorTerms"), i));
    terms = kl_value_get(affinity, PREFERRED);
    for (size_t i = 0; i < kl_value_len(terms); i++)
        kl__warn_term(out, kl_value_get(kl_value_item(terms, i), "preference"), true,
            KL_IN(KL_ITEM(KL_IN(at, PREFERRED), i), "preference"));
}

static void no_selector(kl__causes *out, const kl_value *term, const kl__place *at)
{
    if (!kl_value_get(term, "labelSelector"))
        kl__say_odd(out, KL_IN(at, "labelSelector"), "a null labelSelector results in matching no pod");
}

static void spread(kl__causes *out, const kl_value *list, const kl__place *in)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        const char *key = kl__text(one, "topologyKey"), *why = kl__old_node_label(key);
        if (why)
            kl__say_odd(out, KL_IN(KL_ITEM(in, i), "topologyKey"), "%s is %s", key, why);
        no_selector(out, one, KL_ITEM(in, i));
    }
}

static void pod_affinity(kl__causes *out, const kl_value *spec, const kl__place *in, const char *which)
{
    const kl_value *affinity = kl_value_at(spec, "affinity", which, NULL),
                   *list = kl_value_get(affinity, REQUIRED);
    const kl__place *at = KL_IN(KL_IN(in, "affinity"), which);
    for (size_t i = 0; i < kl_value_len(list); i++)
        no_selector(out, kl_value_item(list, i), KL_ITEM(KL_IN(at, REQUIRED), i));
    list = kl_value_get(affinity, PREFERRED);
    for (size_t i = 0; i < kl_value_len(list); i++)
        no_selector(out, kl_value_get(kl_value_item(list, i), "podAffinityTerm"),
            KL_IN(KL_ITEM(KL_IN(at, PREFERRED), i), "podAffinityTerm"));
}

/* ------------------------------------------------------------------ containers */

/* A variable that is set again, without a reference to its value before. */
static void variables(kl__causes *out, const kl_value *env, const kl__place *in)
{
    kl_finder before = {.key = "name"};
    for (size_t i = 0; i < kl_value_len(env); i++) {
        const kl_value *one = kl_value_item(env, i);
        const char *name = kl__text(one, "name"), *value = kl__text(one, "value");
        if (!kl_finder_repeats(&before, one))
            continue;
        char *ref = kl_sprintf("$(%s)", name);
        if (kl_value_get(one, "valueFrom") || !strcmp(value, ref) || !strstr(value, ref))
            kl__say_odd(out, KL_ITEM(in, i),
                "hides previous definition of \"%s\", which may be dropped when using apply", name);
        kl_free(ref);
    }
    kl_finder_fini(&before);
}

/* Whether an AppArmorProfile is what an annotation of older versions says. */
static bool is_profile(const kl_value *profile, const char *note)
{
    static const char local[] = "localhost/";
    const char *type = kl__text(profile, "type"), *name = kl__text(profile, "localhostProfile");
    if (!strcmp(note, "unconfined"))
        return !strcmp(type, "Unconfined");
    if (!strcmp(note, "runtime/default"))
        return !strcmp(type, "RuntimeDefault");
    return !strncmp(note, local, sizeof local - 1) && !strcmp(type, "Localhost")
        && !strcmp(note + sizeof local - 1, name);
}

/* The annotation of a template's container that has no field in its place. Pods get the field. */
static void app_armor(
    kl__causes *out, const kl_value *spec, const kl_value *c, const kl_value *meta, const kl__place *top)
{
    const kl_value *profile = kl_value_at(spec, "securityContext", "appArmorProfile", NULL);
    if (!top || kl_value_at(c, "securityContext", "appArmorProfile", NULL))
        return;
    char *key = kl_sprintf("container.apparmor.security.beta.kubernetes.io/%s", kl__text(c, "name"));
    const char *note = kl_value_str_at(meta, "annotations", key, NULL);
    if (note && !(profile && is_profile(profile, note)))
        kl__say_odd(out, KL_KEYED(KL_IN(KL_IN(top, "metadata"), "annotations"), key, strlen(key)),
            "deprecated since v1.30; use the \"appArmorProfile\" field instead");
    kl_free(key);
}

static void container(kl__causes *out, const kl_value *spec, const kl_value *c, const kl_value *meta,
    const kl__place *at, const kl__place *top)
{
    static const char *const kinds[] = {"memory", "ephemeral-storage"},
                             *const lists[] = {"limits", "requests"};
    if (!kl_value_at(c, "securityContext", "seccompProfile", NULL)) {
        char *key = kl_sprintf("container.seccomp.security.alpha.kubernetes.io/%s", kl__text(c, "name"));
        kl__warn_annotations(out, meta, top,
            (const char *const[][2]){
                {key, "non-functional in v1.27+; use the \"seccompProfile\" field instead"}, {NULL, NULL}});
        kl_free(key);
    }
    app_armor(out, spec, c, meta, top);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++)
            kl__warn_fraction(out, kl_value_at(c, "resources", lists[k], NULL), kinds[i],
                KL_IN(KL_IN(at, "resources"), lists[k]));
    variables(out, kl_value_get(c, "env"), KL_IN(at, "env"));
}

/* ------------------------------------------------------------------ ports */

static const char *const LISTS[] = {"initContainers", "containers", "ephemeralContainers"};

typedef struct port {
    const kl_value *v;
    size_t list, container, i; /* where it is */
} port;

static char *port_place(const port *p, const char *spec)
{
    return kl_sprintf("%s.%s[%zu].ports[%zu]", spec, LISTS[p->list], p->container, p->i);
}

static int64_t number(const port *p, const char *member) { return kl_value_int_at(p->v, 0, member, NULL); }

/* What is odd about two ports of one number and protocol, or NULL. */
static const char *port_fault(const port *a, const port *b)
{
    const char *ip = kl__text(a->v, "hostIP"), *other = kl__text(b->v, "hostIP");
    int64_t host = number(a, "hostPort"), there = number(b, "hostPort");
    if (host == there && !strcmp(ip, other))
        return "duplicate";
    if (!host || !there)
        return "overlapping";
    return host == there && !*ip != !*other ? "dangerously ambiguous" : NULL;
}

static void clash(kl__causes *out, const port *all, size_t n, const char *spec)
{
    const port *p = &all[n];
    char *at = port_place(p, spec);
    for (size_t i = 0; i < n; i++) {
        if (number(&all[i], "containerPort") != number(p, "containerPort")
            || strcmp(kl__text(all[i].v, "protocol"), kl__text(p->v, "protocol")))
            continue;
        const char *fault = port_fault(p, &all[i]);
        char *other = fault ? port_place(&all[i], spec) : NULL;
        if (fault)
            kl__cause_add(out, "Warning", at, "%s port definition with %s", fault, other);
        kl_free(other);
    }
    kl_free(at);
}

static void name_clash(kl__causes *out, const port *all, size_t n, const char *spec)
{
    const char *name = kl__text(all[n].v, "name");
    for (size_t i = 0; *name && i < n; i++) {
        if (strcmp(kl__text(all[i].v, "name"), name))
            continue;
        char *at = port_place(&all[n], spec), *other = port_place(&all[i], spec);
        kl__cause_add(out, "Warning", at,
            "duplicate port name \"%s\" with %s, services and probes that select ports by name will use %s",
            name, other, other);
        kl_free(at);
        kl_free(other);
        return;
    }
}

/* The maximum number of ports that are compared with each other. */
#define PORTS_MAX 500

static void ports(kl__causes *out, const kl_value *spec, const char *spec_at)
{
    port all[PORTS_MAX];
    size_t n = 0;
    for (size_t l = 0; l < sizeof LISTS / sizeof *LISTS; l++) {
        const kl_value *list = kl_value_get(spec, LISTS[l]);
        for (size_t c = 0; c < kl_value_len(list); c++) {
            const kl_value *some = kl_value_get(kl_value_item(list, c), "ports");
            for (size_t i = 0; i < kl_value_len(some) && n < PORTS_MAX; i++)
                all[n++] = (port){kl_value_item(some, i), l, c, i};
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (*kl__text(all[i].v, "hostIP") && !number(&all[i], "hostPort")) {
            char *at = port_place(&all[i], spec_at);
            kl__cause_add(out, "Warning", at,
                "hostIP set without hostPort: {Name:%s HostPort:0 ContainerPort:%" PRId64
                " Protocol:%s HostIP:%s}",
                kl__text(all[i].v, "name"), number(&all[i], "containerPort"), kl__text(all[i].v, "protocol"),
                kl__text(all[i].v, "hostIP"));
            kl_free(at);
        }
        clash(out, all, i, spec_at);
    }
    for (size_t i = 0; i < n; i++)
        name_clash(out, all, i, spec_at);
}

/* ------------------------------------------------------------------ the whole */

static void repeated(
    kl__causes *out, const kl_value *list, const char *key, const char *word, const kl__place *in)
{
    kl_finder before = {.key = key};
    for (size_t i = 0; i < kl_value_len(list); i++)
        if (kl_finder_repeats(&before, kl_value_item(list, i)))
            kl__say_odd(out, KL_IN(KL_ITEM(in, i), key), "duplicate %s \"%s\"", word,
                kl__text(kl_value_item(list, i), key));
    kl_finder_fini(&before);
}

static void volumes(kl__causes *out, const kl_value *list, const kl__place *in)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl__place *at = KL_ITEM(in, i),
                        *claim = KL_IN(KL_IN(KL_IN(at, "ephemeral"), "volumeClaimTemplate"), "spec");
        const kl_value *resources = kl_value_at(
            kl_value_item(list, i), "ephemeral", "volumeClaimTemplate", "spec", "resources", NULL);
        kl__warn_source(out, kl_value_item(list, i), at);
        kl__warn_fractions(out, resources, "storage", KL_IN(claim, "resources"));
    }
}

static void addresses(kl__causes *out, const kl_value *spec, const kl__place *in)
{
    const kl_value *servers = kl_value_at(spec, "dnsConfig", "nameservers", NULL),
                   *aliases = kl_value_get(spec, "hostAliases");
    for (size_t i = 0; i < kl_value_len(servers); i++)
        kl__warn_address(out, KL_ITEM(KL_IN(KL_IN(in, "dnsConfig"), "nameservers"), i),
            kl__item_text(servers, i), KL_ADDRESS);
    for (size_t i = 0; i < kl_value_len(aliases); i++)
        kl__warn_address(out, KL_IN(KL_ITEM(KL_IN(in, "hostAliases"), i), "ip"),
            kl__text(kl_value_item(aliases, i), "ip"), KL_ADDRESS);
}

void kl__pod_warnings(kl__causes *out, const kl_value *pod, const kl__place *at)
{
    static const char *const notes[][2] = {
        {"scheduler.alpha.kubernetes.io/critical-pod",
            "non-functional in v1.16+; use the \"priorityClassName\" field instead"},
        {"security.alpha.kubernetes.io/sysctls",
            "non-functional in v1.11+; use the \"sysctls\" field instead"},
        {"security.alpha.kubernetes.io/unsafe-sysctls",
            "non-functional in v1.11+; use the \"sysctls\" field instead"},
        {NULL, NULL}};
    static const char *const seccomp[][2] = {
        {"seccomp.security.alpha.kubernetes.io/pod",
            "non-functional in v1.27+; use the \"seccompProfile\" field instead"},
        {NULL, NULL}};
    const kl_value *spec = kl_value_get(pod, "spec"), *meta = kl_value_get(pod, "metadata"),
                   *secrets = kl_value_get(spec, "imagePullSecrets"),
                   *overhead = kl_value_get(spec, "overhead");
    const kl__place *in = KL_IN(at, "spec");
    node_labels(out, spec, in);
    spread(out, kl_value_get(spec, "topologySpreadConstraints"), KL_IN(in, "topologySpreadConstraints"));
    kl__warn_annotations(out, meta, at, notes);
    volumes(out, kl_value_get(spec, "volumes"), KL_IN(in, "volumes"));
    kl__warn_paths(out, kl_value_get(spec, "volumes"));
    repeated(out, kl_value_get(spec, "hostAliases"), "ip", "ip", KL_IN(in, "hostAliases"));
    repeated(out, secrets, "name", "name", KL_IN(in, "imagePullSecrets"));
    for (size_t i = 0; i < kl_value_len(secrets); i++)
        if (!*kl__text(kl_value_item(secrets, i), "name"))
            kl__say_odd(
                out, KL_IN(KL_ITEM(KL_IN(in, "imagePullSecrets"), i), "name"), "invalid empty name \"\"");
    kl__warn_fraction(out, overhead, "memory", KL_IN(in, "overhead"));
    kl__warn_fraction(out, overhead, "ephemeral-storage", KL_IN(in, "overhead"));
    if (!kl_value_at(spec, "securityContext", "seccompProfile", NULL))
        kl__warn_annotations(out, meta, at, seccomp);
    for (size_t l = 0; l < sizeof LISTS / sizeof *LISTS; l++) {
        const kl_value *list = kl_value_get(spec, LISTS[l]);
        for (size_t i = 0; i < kl_value_len(list); i++)
            container(out, spec, kl_value_item(list, i), meta, KL_ITEM(KL_IN(in, LISTS[l]), i), at);
    }
    char *text = kl__place_text(in);
    ports(out, spec, text);
    kl_free(text);
    if (kl_value_int_at(spec, 0, "terminationGracePeriodSeconds", NULL) < 0)
        kl__say_odd(out, KL_IN(in, "terminationGracePeriodSeconds"),
            "must be >= 0; negative values are invalid and will be treated as 1");
    pod_affinity(out, spec, in, "podAffinity");
    pod_affinity(out, spec, in, "podAntiAffinity");
    addresses(out, spec, in);
}
