/* strategy.c - the rules of kinds, as kube-apiserver's strategies have them: mostly tables of who behaves
 * how. */
#include "verbs/admission.h"
#include "verbs/strategy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "builtin/begin.h"
#include "warnings/warnings.h"
#include "builtin/habits.h"
#include "builtin/builtin.h"
#include "builtin/service.h"
#include "rules/rules.h"
#include "model/object.h"
#include "policy/hooks.h"
#include "policy/validate.h"
#include "schema/limits.h"
#include "builtin/defaults.h"
#include "builtin/csr.h"
#include "devices/devices.h"
#include "schema/edit.h"
#include "serving/serving.h"
#include "show/scaler.h"
#include "verbs/access.h"
#include "value/finder.h"
#include "verbs/lifecycle.h"
#include "verbs/off.h"
#include "schema/validate.h"

#define POLICIES "admissionregistration.k8s.io/validatingadmissionpolicies"
#define BINDINGS "admissionregistration.k8s.io/validatingadmissionpolicybindings"
#define RANGES "networking.k8s.io/servicecidrs"
#define VOLUMES "/persistentvolumeclaims /persistentvolumes"
#define CLAIMS "resource.k8s.io/resourceclaims"
/* Kinds whose status is created with them. */
#define STATUS_GIVEN "/nodes " RANGES

/* ------------------------------------------------------------------ create and update */

/* ------------------------------------------------------------------ services */

/* The other services, whose addresses and ports are looked at. */
struct others {
    const kl__call *c;
    const char *ns, *name;
};

static bool is_other(const struct others *others, const kl_value *o)
{
    const char *ns = kl_object_namespace(o), *name = kl_object_name(o);
    return !ns || !name || strcmp(ns, others->ns) || strcmp(name, others->name);
}

static bool address_taken(void *arg, const char *ip)
{
    const struct others *others = arg;
    const kl__bucket *b = others->c->kind->bucket;
    for (size_t i = 0; i < b->len; i++) {
        const char *have = kl_value_str_at(b->v[i]->object, "spec", "clusterIP", NULL);
        if (have && !strcmp(have, ip) && is_other(others, b->v[i]->object))
            return true;
    }
    return false;
}

static void mark_ports(void *arg, bool taken[KL_NODE_PORTS])
{
    const struct others *others = arg;
    const kl__bucket *b = others->c->kind->bucket;
    for (size_t i = 0; i < b->len; i++) {
        const kl_value *list = kl_value_at(b->v[i]->object, "spec", "ports", NULL);
        if (!is_other(others, b->v[i]->object))
            continue;
        for (size_t k = 0; k < kl_value_len(list); k++)
            kl__mark_port(taken, kl_value_int_at(kl_value_item(list, k), 0, "nodePort", NULL));
    }
}

static void allot(const kl__call *c, const kl_value *old, const kl_value **o, kl__causes *causes)
{
    const char *name = kl_object_name(*o);
    struct others others = {.c = c, .ns = c->ns ? c->ns : "", .name = old && name ? name : ""};
    kl__taken t = {.arg = &others,
        .address = address_taken,
        .ports = mark_ports,
        .next = &c->w->next_address,
        .any_address = c->any_status};
    kl__service_allot(&t, old, o, causes);
}

kl_status kl__strategy_ports(const kl__call *c, const kl_value *o, kl_err *err)
{
    char *twice = kl__kind_among(c->kind, "/services") && !c->sub ? kl__service_repeated_port(o) : NULL;
    kl_status st = twice ? kl__api_fail(err, 500, "", NULL, "duplicate nodePort: %s", twice) : KL_OK;
    kl_free(twice);
    return st;
}

/* ------------------------------------------------------------------ jobs, daemon sets */

static const char GENERATION[] = "deprecated.daemonset.template.generation";

static void put_absent(const kl_value **o, const char *key, const char *text)
{
    if (!kl_value_get(*o, key))
        KL_EDIT(o, kl_value_of_str(text), key);
}

/* A job without labels shows those of its pods. */
static void show_pod_labels(const kl_value **o, const kl_value *labels)
{
    if (!kl_value_len(kl_value_at(*o, "metadata", "labels", NULL)))
        KL_EDIT(o, kl_value_ref(labels), "metadata", "labels");
}

/* The pods of a job carry its uid and its name. */
static void job_labels(const kl_value **o)
{
    static const char *const uids[] = {"batch.kubernetes.io/controller-uid", "controller-uid"},
                             *const names[] = {"batch.kubernetes.io/job-name", "job-name"};
    const char *uid = kl_object_uid(*o), *name = kl_object_name(*o);
    const kl_value *selected = kl_value_ref(kl_value_at(*o, "spec", "selector", "matchLabels", NULL)),
                   *labels = kl_value_ref(kl_value_at(*o, "spec", "template", "metadata", "labels", NULL));
    put_absent(&selected, uids[0], uid);
    for (size_t i = 0; i < 2; i++) {
        put_absent(&labels, uids[i], uid);
        put_absent(&labels, names[i], name ? name : "");
    }
    KL_EDIT(o, selected, "spec", "selector", "matchLabels");
    show_pod_labels(o, labels);
    KL_EDIT(o, labels, "spec", "template", "metadata", "labels");
}

/* A daemon set counts the changes of its template in an annotation. */
static void template_generation(const kl_value *old, const kl_value **o)
{
    const char *had = kl_value_str(kl_object_annotation(old, GENERATION));
    bool same = kl_value_equal(
        kl_value_at(old, "spec", "template", NULL), kl_value_at(*o, "spec", "template", NULL));
    char text[32];
    snprintf(text, sizeof text, "%ld", had ? strtol(had, NULL, 10) + !same : 1L);
    KL_EDIT(o, kl_value_of_str(text), "metadata", "annotations", GENERATION);
}

bool kl__strategy_owned_as_sent(const kl__call *c)
{
    bool status = c->sub && !strcmp(c->sub, "status");
    return !c->sub || (!status && kl__kind_among(c->kind, "/pods"))
        || (status && kl__kind_among(c->kind, CLAIMS " " RANGES));
}

const kl_value *kl__strategy_owned(const kl__call *c, const kl_value *old, const kl_value *o)
{
    const kl_value *labels = kl_value_at(o, "spec", "template", "metadata", "labels", NULL);
    o = kl_value_ref(o);
    if (c->sub && kl__kind_among(c->kind, CLAIMS))
        KL_EDIT(&o, kl_value_ref(kl_value_get(old, "spec")), "spec");
    if (kl__is_old_scaler(c->kind)) { /* a target of the cpu, annotations of a status */
        kl__replace(&o, kl__scaler_to_v2(o));
        kl__replace(&o, kl__scaler_to_v1(o));
    }
    if (kl__kind_among(c->kind, "apps/daemonsets") && !kl_object_annotation(o, GENERATION))
        KL_EDIT(&o, kl_value_of_str("0"), "metadata", "annotations", GENERATION);
    if (kl__kind_among(c->kind, "batch/jobs") && kl_value_len(labels))
        show_pod_labels(&o, labels);
    return o;
}

static void empty_status(const kl__kind *k, const kl_value **o)
{
    const kl__field *f = k->custom ? NULL : kl__schema_field(k->schema, "status", 6);
    if (!f || !f->filled) {
        KL_CUT(o, "status");
        return;
    }
    KL_EDIT(o, kl__empty_status(k->group, k->plural), "status");
}

void kl__strategy_create(const kl__call *c, const kl_value **o, kl__causes *causes)
{
    const kl__kind *k = c->kind;
    kl__drop_off(k, o);
    if (kl__kind_sub(k, "status") && !c->any_status && !kl__kind_among(k, STATUS_GIVEN))
        empty_status(k, o);
    kl__serving_begin(k, kl__world_wall(c->w), o);
    if (kl__generation_kept(k))
        KL_EDIT(o, kl_value_of_int(1), "metadata", "generation");
    if (kl__kind_among(k, "/pods")) {
        if (!kl_value_str_at(*o, "status", "phase", NULL))
            KL_EDIT(o, kl_value_of_str("Pending"), "status", "phase");
        if (!kl_value_str_at(*o, "status", "qosClass", NULL))
            KL_EDIT(o, kl_value_of_str(kl__pod_qos(*o)), "status", "qosClass");
    }
    if (kl__kind_among(k, "/namespaces"))
        kl__namespace_begin(o);
    /* a loaded request keeps its requester */
    if (kl__kind_among(k, "certificates.k8s.io/certificatesigningrequests")
        && !(c->any_status && kl_value_at(*o, "spec", "username", NULL)))
        kl__csr_create(c->user ? c->user : c->w->anybody, o);
    if (kl__kind_among(k, VOLUMES) && !kl_value_str_at(*o, "status", "phase", NULL))
        KL_EDIT(o, kl_value_of_str("Pending"), "status", "phase");
    if (kl__kind_among(k, "/persistentvolumes"))
        kl__volume_phase(kl__world_wall(c->w), NULL, o);
    if (kl__kind_among(k, "/services"))
        allot(c, NULL, o, causes);
    if (kl__kind_among(k, "batch/jobs")
        && !kl_value_bool(kl_value_at(*o, "spec", "manualSelector", NULL), false))
        job_labels(o);
    if (kl__kind_among(k, "apps/daemonsets"))
        template_generation(NULL, o);
    if (kl__kind_among(k, "apiextensions.k8s.io/customresourcedefinitions"))
        kl__crd_prepare(c, NULL, o);
}

/* Replaces `o` by `old` with the `key` of o (absent if o has none). */
static void only_member(const kl_value **o, const kl_value *old, const char *key)
{
    const kl_value *x = kl_value_ref(kl_value_get(*o, key)), *n = kl_value_ref(old);
    KL_EDIT(&n, x, key);
    kl__replace(o, n);
}

/* Replaces `o` by `old` with the managers of o. */
static void only_owners(const kl_value **o, const kl_value *old)
{
    const kl_value *managers = kl_value_ref(kl_value_at(*o, "metadata", "managedFields", NULL));
    kl__replace(o, kl_value_ref(old));
    KL_EDIT(o, managers, "metadata", "managedFields");
}

/* The old containers with the resources of the new ones of the same name. */
static const kl_value *resized(const kl_value *old, const kl_value *now)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_finder names = {.key = "name"};
    kl_finder_add_all(&names, now);
    for (size_t i = 0; i < kl_value_len(old); i++) {
        const kl_value *x = kl_value_ref(kl_value_item(old, i));
        long at = kl_finder_find(&names, x);
        if (at >= 0)
            KL_EDIT(&x, kl_value_ref(kl_value_get(names.v[at], "resources")), "resources");
        kl_build_value(b, x);
        kl_value_unref(x);
    }
    kl_finder_fini(&names);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* Restores the metadata that a write of the status may not change: those members of these kinds. */
static void status_keeps(const kl__kind *k, const kl_value *old, const kl_value **o)
{
    static const struct {
        const char *kinds, *members[4];
    } kept[] = {
        {"apps/deployments", {"labels"}},
        {"/pods", {"ownerReferences"}},
        {"apiregistration.k8s.io/apiservices " CLAIMS " storage.k8s.io/volumeattachments " RANGES " "
         "admissionregistration.k8s.io/validatingadmissionpolicies flowcontrol.apiserver.k8s.io/flowschemas "
         "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
            {"labels", "annotations", "finalizers", "ownerReferences"}},
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        for (size_t m = 0; m < 4 && kept[i].members[m] && kl__kind_among(k, kept[i].kinds); m++) {
            const char *member = kept[i].members[m];
            const kl_value *was = kl_value_at(old, "metadata", member, NULL);
            if (was || kl_value_at(*o, "metadata", member, NULL))
                KL_EDIT(o, kl_value_ref(was), "metadata", member);
        }
}

void kl__strategy_update(const kl__call *c, const kl_value *old, const kl_value **o, kl__causes *causes)
{
    const kl__kind *k = c->kind;
    bool apart = kl__kind_sub(k, "status") != NULL;
    kl__drop_off(k, o);
    if (kl__kind_among(k, "certificates.k8s.io/certificatesigningrequests"))
        kl__csr_update(c->sub, kl__world_wall(c->w), old, o);
    else if (c->sub && !strcmp(c->sub, "ephemeralcontainers")) {
        const kl_value *added = kl_value_ref(kl_value_at(*o, "spec", "ephemeralContainers", NULL));
        only_owners(o, old);
        KL_EDIT(o, added, "spec", "ephemeralContainers");
    } else if (c->sub && !strcmp(c->sub, "resize")) {
        const kl_value *containers = resized(
            kl_value_at(old, "spec", "containers", NULL), kl_value_at(*o, "spec", "containers", NULL));
        only_owners(o, old);
        KL_EDIT(o, containers, "spec", "containers");
    } else if (c->sub && !strcmp(c->sub, "status")) {
        const kl_value *metadata = kl_value_ref(kl_value_get(*o, "metadata"));
        only_member(o, old, "status");
        /* labels and the like stay; the owner of the status is recorded */
        if (k->custom) {
            const kl_value *owners = kl_value_get(metadata, "managedFields");
            KL_EDIT(o, kl_value_ref(owners), "metadata", "managedFields");
        } else
            KL_EDIT(o, kl_value_ref(metadata), "metadata");
        kl_value_unref(metadata);
        status_keeps(k, old, o);
        const kl_value *qos = kl_value_at(old, "status", "qosClass", NULL);
        if (kl__kind_among(k, "/pods") && qos && !kl_value_str_at(*o, "status", "qosClass", NULL))
            KL_EDIT(o, kl_value_ref(qos), "status", "qosClass");
        if (kl__kind_among(k, "apps/daemonsets")) /* it is a part of the spec */
            KL_EDIT(o, kl_value_ref(kl_object_annotation(old, GENERATION)), "metadata", "annotations",
                GENERATION);
        kl__devices_status(k, old, o);
        if (kl__kind_among(k, VOLUMES) && !kl_value_str_at(*o, "status", "phase", NULL))
            KL_EDIT(o, kl_value_of_str("Pending"), "status", "phase");
        if (kl__kind_among(k, "/persistentvolumes"))
            kl__volume_phase(kl__world_wall(c->w), old, o);
    } else if (c->sub && !strcmp(c->sub, "finalize")) {
        const kl_value *finalizers = kl_value_ref(kl_value_at(*o, "spec", "finalizers", NULL));
        kl__replace(o, kl_value_ref(old));
        KL_EDIT(o, finalizers, "spec", "finalizers");
    } else {
        if (apart && !c->any_status && !kl__kind_among(k, RANGES)) {
            const kl_value *was = kl_value_get(old, "status");
            KL_EDIT(o, kl_value_ref(was), "status");
            if (kl__is_old_scaler(k))
                kl__scaler_keep_status(old, o);
        }
        if (kl__kind_among(k, "/namespaces"))
            KL_EDIT(o, kl_value_ref(kl_value_at(old, "spec", "finalizers", NULL)), "spec", "finalizers");
        if (kl__kind_among(k, "/services")) {
            kl__service_drop(old, o);
            allot(c, old, o, causes);
        }
        if (kl__kind_among(k, "apps/daemonsets"))
            template_generation(old, o);
        if (kl__kind_among(k, "batch/jobs") && !kl_value_at(*o, "spec", "selector", NULL))
            KL_EDIT(o, kl_value_ref(kl_value_at(old, "spec", "selector", NULL)), "spec", "selector");
        if (kl__kind_among(k, "apiextensions.k8s.io/customresourcedefinitions"))
            kl__crd_prepare(c, old, o);
    }
    if (kl__generation_moves(k, c->sub, old, *o))
        KL_EDIT(o, kl_value_of_int(kl_object_generation(old) + 1), "metadata", "generation");
}

/* ------------------------------------------------------------------ validation */

typedef struct heard {
    const kl__call *c;
    kl__causes *causes;
} heard;

static void complain(void *arg, bool warns, const char *reason, const char *field, const char *message)
{
    const heard *h = arg;
    if (warns)
        kl__call_warn(h->c, "%s: %s", field, message);
    else
        kl__cause_add(h->causes, reason, field, "%s", message);
}

/* Checks the rules of a custom resource. They may rely on its schema, so an object that breaks the schema is
 * not checked. */
static void check_rules(const kl__call *c, const kl_value *old, const kl_value *o, kl__causes *causes)
{
    static const char *const blocking[] = {"FieldValueNotSupported", "FieldValueRequired",
        "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"};
    heard h = {c, causes};
    if (!c->kind->rules)
        return;
    for (size_t i = 0; i < causes->len; i++)
        for (size_t k = 0; k < sizeof blocking / sizeof *blocking; k++)
            if (!strcmp(causes->v[i].reason, blocking[k])) {
                kl__cause_add(causes, "FieldValueInvalid", "<nil>",
                    "Invalid value: null: some validation rules were not checked because the object was "
                    "invalid; correct the existing errors to complete validation");
                return;
            }
    kl_cel_rules_check(c->kind->rules, o, old, complain, &h);
}

/* Of kinds of devices, whose checks ask for it: the object's namespace, borrowed, or NULL. */
static const kl_value *namespace_of_devices(const kl__call *c)
{
    if (!c->ns || strcmp(c->kind->group, "resource.k8s.io") != 0)
        return NULL;
    const kl__entry *e = kl__bucket_get(kl__store_bucket(c->w->store, "", "namespaces"), c->ns);
    return e ? e->object : NULL;
}

static void warn(const kl__call *c, const kl__write *w)
{
    kl__causes odd = {0};
    kl__builtin_warnings(w, &odd);
    for (size_t i = 0; i < odd.kept; i++)
        kl__call_warn(c, "%s%s%s", odd.v[i].field, *odd.v[i].field ? ": " : "", odd.v[i].message);
    kl__causes_fini(&odd);
}

void kl__strategy_validate(const kl__call *c, const kl_value *old, const kl_value *o, kl__causes *causes)
{
    kl__write w = {.kind = c->kind, .sub = c->sub, .old = old, .o = o, .causes = causes};
    if (c->kind->custom) {
        kl__validate_custom(c->kind->schema, o, c->sub && !strcmp(c->sub, "status"), causes);
        check_rules(c, old, o, causes);
    } else if (!kl__serving_validate(&w) && !kl__devices_validate(&w, namespace_of_devices(c)))
        kl__builtin_validate(&w);
    if (!c->sub && kl__kind_among(c->kind, POLICIES))
        kl_policy_validate(&w);
    if (kl__kind_among(c->kind, BINDINGS))
        kl_policy_validate_binding(&w);
    if (!causes->len)
        kl__access_check_params(c, &w);
    if (kl__kind_among(c->kind, "certificates.k8s.io/certificatesigningrequests"))
        kl__csr_validate(c->sub, old, o, causes);
    if (kl__kind_among(c->kind,
            " admissionregistration.k8s.io/mutatingwebhookconfigurations "
            "admissionregistration.k8s.io/validatingwebhookconfigurations "))
        kl_policy_validate_hooks(o, !strncmp(c->kind->plural, "mutating", 8), causes);
    kl__limits_validate(c->kind, o, causes);
    if (kl__kind_among(c->kind, "apiextensions.k8s.io/customresourcedefinitions"))
        kl__crd_validate(c, old, o, causes);
    if (!causes->len && c->warnings)
        warn(c, &w);
}
