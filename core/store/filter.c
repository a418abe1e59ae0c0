/* filter.c - selectors of lists and watches. Every kind selects by metadata.name and metadata.namespace;
 * some kinds have more fields, as kube-apiserver has them; CRDs name theirs in selectableFields. */
#include "store/filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "schema/status.h"

static const struct {
    const char *group, *plural, *fields;
} selectable[] = {
    {"", "pods",
        " spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork "
        "status.phase status.podIP status.podIPs status.nominatedNodeName "},
    {"", "nodes", " spec.unschedulable "},
    {"", "namespaces", " status.phase name "},
    {"", "secrets", " type "},
    {"", "services", " spec.clusterIP spec.type "},
    {"", "events",
        " involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid "
        "involvedObject.apiVersion"
        " involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source type "},
    {"events.k8s.io", "events",
        " regarding.kind regarding.namespace regarding.name regarding.uid regarding.apiVersion"
        " regarding.resourceVersion regarding.fieldPath reason reportingController type "},
    {"", "replicationcontrollers", " status.replicas "},
    {"apps", "replicasets", " status.replicas "},
    {"batch", "jobs", " status.successful "},
    {"certificates.k8s.io", "certificatesigningrequests", " spec.signerName "},
};

static bool can_select(const kl__kind *k, const char *field)
{
    if (!strcmp(field, "metadata.name") || !strcmp(field, "metadata.namespace"))
        return true;
    for (size_t i = 0; i < kl_value_len(k->selectable); i++) {
        const char *path = kl_value_str_at(kl_value_item(k->selectable, i), "jsonPath", NULL);
        if (path && *path == '.' && !strcmp(path + 1, field))
            return true;
    }
    char *word = kl_sprintf(" %s ", field);
    bool yes = false;
    for (size_t i = 0; i < sizeof selectable / sizeof *selectable && !yes; i++)
        yes = !strcmp(selectable[i].group, k->group) && !strcmp(selectable[i].plural, k->plural)
            && strstr(selectable[i].fields, word);
    kl_free(word);
    return yes;
}

/* Built-in kinds without fields of their own are worded by the machinery, the others by their conversion. */
static kl_status not_selectable(const kl__kind *k, const char *field, kl_err *err)
{
    bool own = kl_value_len(k->selectable) > 0 || k->custom;
    for (size_t i = 0; i < sizeof selectable / sizeof *selectable && !own; i++)
        own = !strcmp(selectable[i].group, k->group) && !strcmp(selectable[i].plural, k->plural);
    return own
        ? kl__fail_bad_request(err, "field label not supported: %s", field)
        : kl__fail_bad_request(err,
            "\"%s\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", field);
}

void kl__filter_fini(kl__filter *f)
{
    kl_free(f->ns);
    kl_selector_free(f->labels);
    kl_field_selector_free(f->fields);
    *f = (kl__filter){0};
}

kl_status kl__filter_init(
    kl__filter *f, const kl__kind *k, const char *ns, const char *labels, const char *fields, kl_err *err)
{
    kl_status st = KL_OK;
    *f = (kl__filter){.ns = kl_strdup(ns)};
    if (labels && *labels)
        st = kl_selector_parse(labels, &f->labels, err);
    if (!st && fields && *fields)
        st = kl_field_selector_parse(fields, &f->fields, err);
    if (st) {
        char *why = kl_strdup(kl_err_message(err));
        st = kl__fail_bad_request(err, "%s", why);
        kl_free(why);
    }
    for (size_t i = 0; !st && f->fields && i < kl_field_selector_len(f->fields); i++) {
        bool negated;
        const char *value, *field = kl_field_selector_term(f->fields, i, &negated, &value);
        if (!can_select(k, field))
            st = not_selectable(k, field, err);
    }
    if (st)
        kl__filter_fini(f);
    return st;
}

bool kl__filter_matches(const kl__filter *f, const kl_value *object)
{
    if (f->ns) {
        const char *ns = kl_object_namespace(object);
        if (!ns || strcmp(ns, f->ns))
            return false;
    }
    if (f->labels && !kl_selector_matches(f->labels, kl_value_at(object, "metadata", "labels", NULL)))
        return false;
    return !f->fields || kl_field_selector_selects(f->fields, object);
}

bool kl__filter_selects(const kl__filter *f) { return f->labels || f->fields; }
char *kl__filter_prefix(const kl__filter *f) { return f->ns ? kl_sprintf("%s/", f->ns) : kl_strdup(""); }
