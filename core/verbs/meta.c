/* meta.c - checks of the metadata that a write sends, as often as kube-apiserver makes them. */
#include "verbs/meta.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"
#include "owners/owners.h"
#include "schema/limits.h"
#include "schema/names.h"
#include "schema/validate.h"
#include "verbs/verbs_impl.h"

/* ------------------------------------------------------------------ of a new object */

/* Complains about a name to generate from, whose last dash stands before more. */
static void check_generated(const kl__call *c, const kl_value *o, kl__causes *causes)
{
    const kl_value *base = kl_value_at(o, "metadata", "generateName", NULL);
    const char *text = kl_value_str(base);
    size_t n = text ? strlen(text) : 0;
    char *whole = n > 1 && text[n - 1] == '-' ? kl_sprintf("%.*sa", (int)n - 2, text) : kl_strdup(text);
    const char *bad = kl__has_nul(base) ? "must not contain NUL" : n ? kl__bad_name(c->kind, whole) : NULL;
    if (bad)
        kl__cause_invalid(causes, "metadata.generateName", base, "%s", bad);
    kl_free(whole);
}

static void check_name(const kl__call *c, const kl_value *o, kl__causes *causes)
{
    const char *name = kl_object_name(o);
    check_generated(c, o, causes);
    if (!name || !*name) {
        kl__cause_required(causes, "metadata.name", "name or generateName is required");
        return;
    }
    const kl_value *whole = kl_value_at(o, "metadata", "name", NULL);
    const char *bad = kl__has_nul(whole) ? "must not contain NUL" : kl__bad_name(c->kind, name);
    if (bad)
        kl__cause_invalid(causes, "metadata.name", whole, "%s", bad);
}

/* Of kinds without a generation of their own a client may set one. */
static void check_generation(const kl_value *o, kl__causes *causes)
{
    const kl_value *v = kl_value_at(o, "metadata", "generation", NULL);
    int64_t n;
    if (kl_value_int(v, &n) && n < 0)
        kl__cause_invalid(causes, "metadata.generation", v, "must be greater than or equal to 0");
}

static const char *text_of(const kl_value *list, size_t i)
{
    const char *text = kl_value_str(kl_value_item(list, i));
    return text ? text : "";
}

static void check_finalizers(const kl_value *o, kl__causes *causes)
{
    const kl_value *list = kl_value_at(o, "metadata", "finalizers", NULL);
    const char *why[KL_FAULTS_MAX];
    for (size_t i = 0; i < kl_value_len(list); i++) {
        size_t n = kl__qualified_faults(text_of(list, i), why);
        for (size_t k = 0; k < n; k++)
            kl__cause_invalid(causes, "metadata.finalizers", kl_value_item(list, i), "%s", why[k]);
    }
    if (kl_object_has_finalizer(o, KL_FINALIZER_ORPHAN)
        && kl_object_has_finalizer(o, KL_FINALIZER_FOREGROUND))
        kl__cause_invalid(causes, "metadata.finalizers", list,
            "finalizer " KL_FINALIZER_ORPHAN " and " KL_FINALIZER_FOREGROUND " cannot be both set");
}

/* Kinds of the first packages know which finalizers have no domain. */
static void check_domains(const kl__call *c, const kl_value *o, kl__causes *causes)
{
    static const char *const foreign[] = {"admissionregistration.k8s.io", "apiextensions.k8s.io",
        "apiregistration.k8s.io", "coordination.k8s.io", "node.k8s.io", "policy"};
    static const char *const standard[] = {"kubernetes", KL_FINALIZER_ORPHAN, KL_FINALIZER_FOREGROUND};
    const kl_value *list = kl_value_at(o, "metadata", "finalizers", NULL);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (c->kind->custom || !strcmp(c->kind->group, foreign[i]))
            return;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *name = text_of(list, i);
        bool known = strchr(name, '/') != NULL;
        for (size_t k = 0; k < sizeof standard / sizeof *standard; k++)
            known = known || !strcmp(name, standard[k]);
        char *field = known ? NULL : kl_sprintf("metadata.finalizers[%zu]", i);
        if (field)
            kl__cause_invalid(causes, field, kl_value_item(list, i),
                "name is neither a standard finalizer name nor is it fully qualified");
        kl_free(field);
    }
}

/* What every object may not have. */
static void check_maps(const kl_value *o, kl__causes *causes)
{
    const kl_value *annotations = kl_value_at(o, "metadata", "annotations", NULL);
    kl__validate_labels("metadata.labels", kl_value_at(o, "metadata", "labels", NULL), causes);
    kl__validate_annotations("metadata.annotations", annotations, causes);
    kl__limits_annotations("metadata.annotations", annotations, causes);
    kl__validate_owners(o, causes);
}

/* The prefix of a name may not lead elsewhere in a path. */
static void check_prefix(const kl_value *o, kl__causes *causes)
{
    const kl_value *base = kl_value_at(o, "metadata", "generateName", NULL);
    const char *text = kl_value_str(base);
    for (const char *bad = "/%"; text && *bad; bad++)
        if (strchr(text, *bad))
            kl__cause_invalid(causes, "metadata.generateName", base, "may not contain '%c'", *bad);
}

static void check_rest(const kl_value *o, kl__causes *causes)
{
    check_generation(o, causes);
    check_maps(o, causes);
    check_finalizers(o, causes);
}

void kl__meta_check_new(const kl__call *c, const kl_value *o, kl__causes *causes)
{
    check_name(c, o, causes);
    check_rest(o, causes);
    check_domains(c, o, causes);
}

/* ------------------------------------------------------------------ of an update */

static void check_new_finalizers(const kl_value *old, const kl_value *o, kl__causes *causes)
{
    if (!kl_object_deleting(old))
        return;
    const kl_value *now = kl_value_at(o, "metadata", "finalizers", NULL),
                   *had = kl_value_at(old, "metadata", "finalizers", NULL);
    kl_map *known = kl_map_new();
    for (size_t i = 0; i < kl_value_len(had); i++) {
        const char *name = kl_value_str(kl_value_item(had, i));
        if (name)
            kl_map_set(known, name, known);
    }
    kl_buf added = KL_BUF_INIT;
    for (size_t i = 0; i < kl_value_len(now); i++) {
        const char *name = kl_value_str(kl_value_item(now, i));
        if (name && !kl_map_get(known, name))
            kl_buf_printf(&added, "%s\"%s\"", added.len ? ", " : "", name);
    }
    kl_map_free(known, NULL);
    if (added.len) {
        char *why = kl_sprintf("no new finalizers can be added if the object is being deleted, found new "
                               "finalizers []string{%s}",
            kl_buf_str(&added));
        kl__cause_forbidden(causes, "metadata.finalizers", why);
        kl_free(why);
    }
    kl_buf_fini(&added);
}

/* Complains about changes of what the server sets, and no write may change. */
static void check_fixed(const kl_value *old, const kl_value *o, kl__causes *causes)
{
    static const char *const fixed[] = {"uid", "deletionTimestamp", "deletionGracePeriodSeconds"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        const kl_value *was = kl_value_at(old, "metadata", fixed[i], NULL),
                       *is = kl_value_at(o, "metadata", fixed[i], NULL);
        const char *text = kl_value_str(is);
        bool kept = !is || (text && !*text) || (i == 1 && was) || kl_value_equal(was, is);
        char *field = kept ? NULL : kl_sprintf("metadata.%s", fixed[i]);
        if (field)
            kl__cause_invalid(causes, field, is, "field is immutable");
        kl_free(field);
    }
}

/* How often and in which order a kind checks the metadata in its own update: N as those of a new object, U
 * against the old one. Mostly U. */
static const char *checks_of(const kl__call *c)
{
    static const struct {
        const char *checks, *kinds, *sub; /* sub NULL: any; "": none */
    } known[] = {
        {"N",
            "admissionregistration.k8s.io/mutatingwebhookconfigurations "
            "admissionregistration.k8s.io/validatingwebhookconfigurations "
            "admissionregistration.k8s.io/validatingadmissionpolicies "
            "admissionregistration.k8s.io/validatingadmissionpolicybindings /limitranges "
            "discovery.k8s.io/endpointslices flowcontrol.apiserver.k8s.io/flowschemas "
            "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
            ""},
        {"", "policy/poddisruptionbudgets", NULL},
        {"",
            "batch/cronjobs admissionregistration.k8s.io/validatingadmissionpolicies "
            "flowcontrol.apiserver.k8s.io/flowschemas "
            "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
            "status"},
        {"UN",
            "apps/controllerrevisions /configmaps /endpoints /pods /secrets /serviceaccounts "
            "networking.k8s.io/ingresses networking.k8s.io/ingressclasses "
            "apiregistration.k8s.io/apiservices",
            ""},
        {"UN", "/pods", "ephemeralcontainers"},
        {"UN", "/pods", "resize"},
        {"NU",
            "batch/jobs /namespaces /nodes /replicationcontrollers "
            "networking.k8s.io/ipaddresses networking.k8s.io/networkpolicies node.k8s.io/runtimeclasses "
            "resource.k8s.io/deviceclasses resource.k8s.io/resourceclaims "
            "resource.k8s.io/resourceclaimtemplates storage.k8s.io/csistoragecapacities "
            "storage.k8s.io/storageclasses",
            ""},
        {"NU", "certificates.k8s.io/certificatesigningrequests", NULL},
        {"NNU",
            "rbac.authorization.k8s.io/roles rbac.authorization.k8s.io/rolebindings "
            "rbac.authorization.k8s.io/clusterroles rbac.authorization.k8s.io/clusterrolebindings",
            ""},
        {"NUN", "/persistentvolumeclaims storage.k8s.io/volumeattributesclasses", ""},
        {"NN", "/persistentvolumes storage.k8s.io/csinodes storage.k8s.io/volumeattachments", ""},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((!known[i].sub || !strcmp(known[i].sub, c->sub ? c->sub : ""))
            && kl__kind_among(c->kind, known[i].kinds))
            return known[i].checks;
    return "U";
}

static void check_update(const kl_value *old, const kl_value *sent, const kl_value *o, kl__causes *causes)
{
    check_new_finalizers(old, o, causes);
    check_fixed(old, sent, causes);
    check_maps(o, causes);
}

void kl__meta_check_update(
    const kl__call *c, const kl_value *old, const kl_value *sent, const kl_value *o, kl__causes *causes)
{
    check_prefix(o, causes);
    check_rest(o, causes);
    check_update(old, sent, o, causes);
    for (const char *p = checks_of(c); *p; p++) {
        if (*p == 'N')
            kl__meta_check_new(c, o, causes);
        else {
            check_update(old, sent, o, causes);
            check_domains(c, o, causes);
        }
    }
}
