/* container.c - validation of containers, with complaints in kube-apiserver's order. */
#include "builtin/pod.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define LIST(o, member, v, i)                                                                                \
    for (size_t i = 0; i < kl_value_len(kl_value_get(o, member)); i++)                                       \
        for (const kl_value *v = kl_value_item(kl_value_get(o, member), i); v; v = NULL)

static void check_ports(kl__causes *c, const kl_value *container, const kl__place *at)
{
    const kl_value *list = kl_value_get(container, "ports");
    const kl__place *in = KL_IN(at, "ports");
    kl_finder names = {.key = "name"};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *p = kl_value_item(list, i);
        const kl__place *here = KL_ITEM(in, i);
        if (*kl__text(p, "name") && !kl__check_member(c, p, here, "name", KL_PORT_NAME)
            && kl_finder_repeats(&names, p))
            kl__say_duplicate(c, KL_IN(here, "name"), kl_value_get(p, "name"));
        if (!kl_value_int_at(p, 0, "containerPort", NULL))
            kl__say_required(c, KL_IN(here, "containerPort"), "");
        else
            kl__check_range(c, p, here, "containerPort", 1, 65535);
        if (kl_value_int_at(p, 0, "hostPort", NULL))
            kl__check_range(c, p, here, "hostPort", 1, 65535);
        kl__check_word(c, p, here, "protocol", true, "SCTP TCP UDP");
    }
    kl_finder_fini(&names);
}

/* ------------------------------------------------------------------ environment */

static const char env_fields[] = "metadata.name metadata.namespace metadata.uid spec.nodeName "
                                 "spec.serviceAccountName status.hostIP status.hostIPs status.podIP "
                                 "status.podIPs";
static const char resource_fields[] = "limits.cpu limits.ephemeral-storage limits.memory requests.cpu "
                                      "requests.ephemeral-storage requests.memory";

static void check_field_ref(kl__causes *c, const kl_value *ref, const kl__place *at)
{
    const kl_value *path = kl_value_get(ref, "fieldPath");
    const char *text = kl__text(ref, "fieldPath");
    const kl__place *here = KL_IN(at, "fieldPath");
    if (!*text) {
        kl__say_required(c, here, "");
        return;
    }
    bool subscript = !strncmp(text, "metadata.labels['", 17) || !strncmp(text, "metadata.annotations['", 22);
    if (subscript || kl__one_of(text, env_fields))
        return;
    if (kl__one_of(text, "metadata.labels metadata.annotations"))
        kl__say_unsupported(c, here, path, env_fields);
    else
        kl__say_invalid(c, here, path, "error converting fieldPath: field label not supported: %s", text);
}

static void check_key_ref(kl__causes *c, const kl_value *ref, const kl__place *at)
{
    kl__check_form(c, KL_IN(at, "name"), kl__text(ref, "name"), KL_DNS_SUBDOMAIN);
    if (!*kl__text(ref, "key"))
        kl__say_required(c, KL_IN(at, "key"), "");
    else
        kl__check_member(c, ref, at, "key", KL_CONFIG_KEY);
}

static void check_resource_ref(kl__causes *c, const kl_value *ref, const kl__place *at)
{
    const char *text = kl__text(ref, "resource");
    if (!*text)
        kl__say_required(c, KL_IN(at, "resource"), "");
    else if (!kl__one_of(text, resource_fields) && strncmp(text, "requests.hugepages-", 19)
        && strncmp(text, "limits.hugepages-", 17))
        kl__say_unsupported(c, KL_IN(at, "resource"), kl_value_get(ref, "resource"), resource_fields);
}

static void check_value_from(kl__causes *c, const kl_value *env, const kl__place *env_at)
{
    static const struct {
        const char *member;
        void (*check)(kl__causes *c, const kl_value *ref, const kl__place *at);
    } sources[] = {{"fieldRef", check_field_ref}, {"resourceFieldRef", check_resource_ref},
        {"configMapKeyRef", check_key_ref}, {"secretKeyRef", check_key_ref}, {"fileKeyRef", NULL}};
    const kl_value *from = kl_value_get(env, "valueFrom");
    const kl__place *at = KL_IN(env_at, "valueFrom");
    int n = 0;
    if (!from)
        return;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        const kl_value *ref = kl_value_get(from, sources[i].member);
        n += ref != NULL;
        if (ref && sources[i].check)
            sources[i].check(c, ref, KL_IN(at, sources[i].member));
    }
    if (!n)
        kl__say_invalid_text(c, at, "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`");
    else if (*kl__text(env, "value"))
        kl__say_invalid_text(c, at, "", "may not be specified when `value` is not empty");
    else if (n > 1)
        kl__say_invalid_text(c, at, "", "may not have more than one field specified at a time");
}

static void check_env(kl__causes *c, const kl_value *container, const kl__place *at)
{
    const kl__place *in = KL_IN(at, "env"), *from = KL_IN(at, "envFrom");
    LIST(container, "env", e, i)
    {
        const kl__place *here = KL_ITEM(in, i);
        if (!*kl__text(e, "name"))
            kl__say_required(c, KL_IN(here, "name"), "");
        else
            kl__check_member(c, e, here, "name", KL_ENV_NAME);
        check_value_from(c, e, here);
    }
    LIST(container, "envFrom", e, i)
    {
        static const char *const refs[] = {"configMapRef", "secretRef"};
        const kl__place *here = KL_ITEM(from, i);
        int n = 0;
        kl__check_member(c, e, here, "prefix", KL_ENV_NAME);
        for (size_t k = 0; k < 2; k++) {
            const kl_value *ref = kl_value_get(e, refs[k]);
            n += ref != NULL;
            if (ref && !*kl__text(ref, "name"))
                kl__say_required(c, KL_IN(KL_IN(here, refs[k]), "name"), "");
            else if (ref)
                kl__check_member(c, ref, KL_IN(here, refs[k]), "name", KL_DNS_SUBDOMAIN);
        }
        if (!n)
            kl__say_invalid_text(c, from, "", "must specify one of: `configMapRef` or `secretRef`");
        else if (n > 1)
            kl__say_invalid_text(c, from, "", "may not have more than one field specified at a time");
    }
}

/* ------------------------------------------------------------------ volumes */

static void check_propagation(
    kl__causes *c, const kl_value *container, const kl_value *m, const kl__place *in)
{
    kl__check_word(c, m, in, "mountPropagation", false, "Bidirectional HostToContainer None");
    if (kl__is(m, "mountPropagation", "Bidirectional")
        && !kl__true(kl_value_get(container, "securityContext"), "privileged"))
        kl__say_forbidden(c, KL_IN(in, "mountPropagation"),
            "Bidirectional mount propagation is available only to privileged containers");
}

static void check_mounts(const kl__pod_look *p, const kl_value *container, const kl__place *at)
{
    kl__causes *c = p->causes;
    const kl__place *in = KL_IN(at, "volumeMounts");
    const kl_value *list = kl_value_get(container, "volumeMounts"),
                   *devices = kl_value_get(container, "volumeDevices");
    kl_finder paths = {.key = "mountPath", .empty_is_absent = true};
    kl_finder device_names = {.key = "name"}, device_paths = {.key = "devicePath", .empty_is_absent = true};
    kl_finder_add_all(&device_names, devices);
    kl_finder_add_all(&device_paths, devices);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *m = kl_value_item(list, i);
        const kl__place *here = KL_ITEM(in, i);
        const char *name = kl__text(m, "name"), *path = kl__text(m, "mountPath"),
                   *sub = kl__text(m, "subPath"), *expr = kl__text(m, "subPathExpr");
        bool found;
        kl__check_present(c, m, here, "name");
        kl__pod_volume(p, name, &found);
        if (!found)
            kl__say_not_found(c, KL_IN(here, "name"), name);
        kl__check_present(c, m, here, "mountPath");
        if (kl_finder_repeats(&paths, m))
            kl__say_invalid_text(c, KL_IN(here, "mountPath"), path, "must be unique");
        if (*name && kl_finder_find_text(&device_names, name) >= 0)
            kl__say_invalid_text(c, KL_IN(here, "name"), name, "must not already exist in volumeDevices");
        if (kl_finder_find_text(&device_paths, path) >= 0)
            kl__say_invalid_text(
                c, KL_IN(here, "mountPath"), path, "must not already exist as a path in volumeDevices");
        if (*sub)
            kl__check_relative_path(c, KL_IN(in, "subPath"), sub);
        if (*expr && *sub)
            kl__say_invalid_text(
                c, KL_IN(here, "subPathExpr"), expr, "subPathExpr and subPath are mutually exclusive");
        if (*expr)
            kl__check_relative_path(c, KL_IN(in, "subPathExpr"), expr);
        check_propagation(c, container, m, in);
    }
    kl_finder_fini(&paths);
    kl_finder_fini(&device_names);
    kl_finder_fini(&device_paths);
}

static void check_devices(const kl__pod_look *p, const kl_value *container, const kl__place *at)
{
    kl__causes *c = p->causes;
    const kl__place *in = KL_IN(at, "volumeDevices");
    const kl_value *list = kl_value_get(container, "volumeDevices");
    kl_finder names = {.key = "name"}, paths = {.key = "devicePath", .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *d = kl_value_item(list, i);
        const kl__place *here = KL_ITEM(in, i);
        const char *name = kl__text(d, "name"), *path = kl__text(d, "devicePath");
        bool found;
        const kl_value *v = kl__pod_volume(p, name, &found);
        kl__check_present(c, d, here, "name");
        if (*name && kl_finder_repeats(&names, d))
            kl__say_invalid_text(c, KL_IN(here, "name"), name, "must be unique");
        if (found && v && !kl_value_get(v, "persistentVolumeClaim") && !kl_value_get(v, "ephemeral"))
            kl__say_invalid_text(c, KL_IN(here, "name"), name,
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
        if (!found)
            kl__say_not_found(c, KL_IN(here, "name"), name);
        kl__check_present(c, d, here, "devicePath");
        if (kl_finder_repeats(&paths, d))
            kl__say_invalid_text(c, KL_IN(here, "devicePath"), path, "must be unique");
    }
    kl_finder_fini(&names);
    kl_finder_fini(&paths);
}

/* ------------------------------------------------------------------ probes and hooks */

static void check_http(kl__causes *c, const kl_value *h, const kl__place *at)
{
    kl__check_present(c, h, at, "path");
    kl__check_port(c, kl_value_get(h, "port"), KL_IN(at, "port"));
    if (!kl__one_of(kl__text(h, "scheme"), "HTTP HTTPS"))
        kl__say_unsupported(c, KL_IN(at, "scheme"), kl_value_get(h, "scheme"), "HTTP HTTPS");
    LIST(h, "httpHeaders", header, i)
    {
        kl__check_form(c, KL_IN(at, "httpHeaders"), kl__text(header, "name"), KL_HEADER_NAME);
    }
}

static void check_sleep(kl__causes *c, const kl_value *pod_spec, const kl_value *h, const kl__place *at)
{
    int64_t most = kl_value_int_at(pod_spec, 30, "terminationGracePeriodSeconds", NULL),
            n = kl_value_int_at(h, 0, "seconds", NULL);
    if (n < 0 || n > most)
        kl__say_invalid_int(c, at, n,
            "must be non-negative and less than terminationGracePeriodSeconds (%lld)", (long long)most);
}

static void check_handler(kl__causes *c, const kl_value *pod_spec, const kl_value *h, const kl__place *at)
{
    static const char *const members[] = {"exec", "httpGet", "tcpSocket", "grpc", "sleep"};
    int n = 0;
    for (size_t i = 0; i < 5; i++) {
        const kl_value *one = kl_value_get(h, members[i]);
        const kl__place *here = KL_IN(at, members[i]);
        if (!one)
            continue;
        if (n++)
            kl__say_forbidden(c, here, "may not specify more than 1 handler type");
        else if (i == 0 && !kl_value_len(kl_value_get(one, "command")))
            kl__say_required(c, KL_IN(here, "command"), "");
        else if (i == 1)
            check_http(c, one, here);
        else if (i == 2 || i == 3)
            kl__check_port(c, kl_value_get(one, "port"), KL_IN(here, "port"));
        else if (i == 4)
            check_sleep(c, pod_spec, one, here);
    }
    if (!n)
        kl__say_required(c, at, "must specify a handler type");
}

static void check_probe(
    kl__causes *c, const kl_value *spec, const kl_value *container, const kl__place *up, const char *member)
{
    const kl_value *probe = kl_value_get(container, member);
    const kl__place *at = KL_IN(up, member);
    if (!probe)
        return;
    check_handler(c, spec, probe, at);
    kl__check_naturals(
        c, probe, at, "initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold");
    const kl_value *grace = kl_value_get(probe, "terminationGracePeriodSeconds");
    if (!strcmp(member, "readinessProbe")) {
        if (grace)
            kl__say_invalid(
                c, KL_IN(at, "terminationGracePeriodSeconds"), grace, "must not be set for readinessProbes");
        return;
    }
    if (grace && kl_value_int_at(grace, 0, NULL) <= 0)
        kl__say_invalid(c, KL_IN(at, "terminationGracePeriodSeconds"), grace, "must be greater than 0");
    const kl_value *success = kl_value_get(probe, "successThreshold");
    if (success && kl_value_int_at(success, 1, NULL) != 1)
        kl__say_invalid(c, KL_IN(at, "successThreshold"), success, "must be 1");
}

/* Only long-running containers may have probes and lifecycle hooks. */
static void check_life(const kl__pod_look *p, const kl_value *container, const kl__place *at)
{
    static const char *const hooks[] = {"postStart", "preStop"},
                             *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
    const kl_value *life = kl_value_get(container, "lifecycle");
    const kl__place *in = KL_IN(at, "lifecycle");
    for (size_t i = 0; life && i < 2; i++)
        if (kl_value_get(life, hooks[i]))
            check_handler(p->causes, p->spec, kl_value_get(life, hooks[i]), KL_IN(in, hooks[i]));
    if (life && kl_value_get(life, "stopSignal") && !kl_value_get(p->spec, "os"))
        kl__say_forbidden(
            p->causes, KL_IN(in, "stopSignal"), "may not be set for containers with empty `spec.os.name`");
    for (size_t i = 0; i < 3; i++)
        check_probe(p->causes, p->spec, container, at, probes[i]);
}

/* ------------------------------------------------------------------ one container */

static void check_security(kl__causes *c, const kl_value *container, const kl__place *up)
{
    const kl_value *s = kl_value_get(container, "securityContext"), *profile;
    const kl__place *at = KL_IN(up, "securityContext");
    if (!s)
        return;
    kl__check_range(c, s, at, "runAsUser", 0, INT32_MAX);
    kl__check_range(c, s, at, "runAsGroup", 0, INT32_MAX);
    kl__check_word(c, s, at, "procMount", false, "Default Unmasked");
    if ((profile = kl_value_get(s, "seccompProfile"))) {
        const kl__place *in = KL_IN(at, "seccompProfile");
        if (!*kl__text(profile, "type"))
            kl__say_required(c, KL_IN(in, "type"), "type is required when seccompProfile is set");
        else
            kl__check_word(c, profile, in, "type", true, "Localhost RuntimeDefault Unconfined");
        if (kl__is(profile, "type", "Localhost") && !kl_value_get(profile, "localhostProfile"))
            kl__say_required(c, KL_IN(in, "localhostProfile"), "must be set when seccomp type is Localhost");
    }
    const kl_value *escalates = kl_value_get(s, "allowPrivilegeEscalation");
    if (escalates && !kl_value_bool(escalates, true) && kl__true(s, "privileged"))
        kl__say_invalid(c, at, s, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
}

static void check_common(const kl__pod_look *p, const kl_value *container, const kl__place *at)
{
    kl__causes *c = p->causes;
    kl__check_present(c, container, at, "name");
    kl__check_member(c, container, at, "name", KL_DNS_LABEL);
    kl__check_present(c, container, at, "image");
    kl__check_word(c, container, at, "terminationMessagePolicy", true, "File FallbackToLogsOnError");
    check_ports(c, container, at);
    check_env(c, container, at);
    check_mounts(p, container, at);
    check_devices(p, container, at);
    kl__check_word(c, container, at, "imagePullPolicy", true, "Always IfNotPresent Never");
    kl__check_resources(c, kl_value_get(container, "resources"), KL_IN(at, "resources"));
    check_security(c, container, at);
}

/* `taken`: the host ports of the containers before, by number, protocol and address. */
static void check_host_ports(kl__causes *c, kl_finder *taken, const kl_value *container, const kl__place *at)
{
    const kl_value *ports = kl_value_get(container, "ports");
    for (size_t i = 0; i < kl_value_len(ports); i++) {
        const kl_value *one = kl_value_item(ports, i);
        int64_t n = kl_value_int_at(one, 0, "hostPort", NULL);
        if (!n || !kl_finder_repeats(taken, one))
            continue;
        char *shown = kl_sprintf(
            "%s/%s/%lld", kl__text(one, "protocol"), kl__text(one, "hostIP"), (long long)n);
        const kl_value *v = kl_value_of_str(shown);
        kl__say_duplicate(c, KL_IN(KL_ITEM(KL_IN(at, "ports"), i), "hostPort"), v);
        kl_value_unref(v);
        kl_free(shown);
    }
}

/* what makes two host ports one, beside the number */
static const char *const of_host_port[] = {"protocol", "hostIP", NULL};

static void check_main(const kl__pod_look *p, const kl_value *list, kl_finder *names, const kl__place *in)
{
    kl__causes *c = p->causes;
    kl_finder host_ports = {.key = "hostPort", .more = of_host_port, .empty_is_absent = true};
    if (!kl_value_len(list))
        kl__say_required(c, in, "");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        const kl__place *here = KL_ITEM(in, i);
        check_common(p, one, here);
        if (kl_finder_repeats(names, one))
            kl__say_duplicate(c, KL_IN(here, "name"), kl_value_get(one, "name"));
        check_life(p, one, here);
    }
    for (size_t i = 0; i < kl_value_len(list); i++)
        check_host_ports(c, &host_ports, kl_value_item(list, i), KL_ITEM(in, i));
    kl_finder_fini(&host_ports);
}

/* Init containers run one after the other, so they may share host ports. `main`: the names of the containers;
 * `names` takes those of the init containers. */
static void check_init(
    const kl__pod_look *p, const kl_finder *main, const kl_value *list, kl_finder *names, const kl__place *in)
{
    static const char *const forbidden[] = {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"};
    kl__causes *c = p->causes;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i), *policy = kl_value_get(one, "restartPolicy");
        const kl__place *here = KL_ITEM(in, i);
        kl_finder host_ports = {.key = "hostPort", .more = of_host_port, .empty_is_absent = true};
        check_common(p, one, here);
        kl__check_word(c, one, here, "restartPolicy", false, "Always");
        bool again = *kl__text(one, "name") && kl_finder_repeats(names, one);
        if (again || kl_finder_find(main, one) >= 0)
            kl__say_duplicate(c, KL_IN(here, "name"), kl_value_get(one, "name"));
        check_host_ports(c, &host_ports, one, here);
        kl_finder_fini(&host_ports);
        if (policy && kl__is(one, "restartPolicy", "Always"))
            check_life(p, one, here);
        else
            for (size_t k = 0; k < 4; k++)
                if (kl_value_get(one, forbidden[k]))
                    kl__say_forbidden(c, KL_IN(here, forbidden[k]),
                        "may not be set for init containers without restartPolicy=Always");
    }
}

static void check_ephemeral(const kl__pod_look *p, const kl_finder *main, const kl_finder *init,
    const kl_value *list, const kl__place *in)
{
    static const char *const forbidden[] = {
        "ports", "resources", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"};
    kl__causes *c = p->causes;
    kl_finder names = {.key = "name", .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        const kl__place *here = KL_ITEM(in, i);
        const char *target = kl__text(one, "targetContainerName");
        check_common(p, one, here);
        if (kl_finder_repeats(&names, one) || kl_finder_find(main, one) >= 0
            || kl_finder_find(init, one) >= 0)
            kl__say_duplicate(c, KL_IN(here, "name"), kl_value_get(one, "name"));
        if (*target && kl_finder_find_text(main, target) < 0 && kl_finder_find_text(init, target) < 0)
            kl__say_not_found(c, KL_IN(here, "targetContainerName"), target);
        for (size_t k = 0; k < 6; k++)
            if (kl_value_len(kl_value_get(one, forbidden[k])))
                kl__say_forbidden(c, KL_IN(here, forbidden[k]), "cannot be set for an Ephemeral Container");
    }
    kl_finder_fini(&names);
}

void kl__check_containers(const kl__pod_look *p, const kl__place *spec)
{
    kl_finder main = {.key = "name", .empty_is_absent = true}, init = main;
    check_main(p, kl_value_get(p->spec, "containers"), &main, KL_IN(spec, "containers"));
    check_init(p, &main, kl_value_get(p->spec, "initContainers"), &init, KL_IN(spec, "initContainers"));
    check_ephemeral(
        p, &main, &init, kl_value_get(p->spec, "ephemeralContainers"), KL_IN(spec, "ephemeralContainers"));
    kl_finder_fini(&main);
    kl_finder_fini(&init);
}
