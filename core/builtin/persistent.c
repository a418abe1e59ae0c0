/* persistent.c - PersistentVolumes, storage classes, CSI drivers and what they attach
 * (ValidatePersistentVolumeSpec of pkg/apis/core, pkg/apis/storage/validation). Sources of vendors that have
 * left Kubernetes are not checked. */
#include "check/forms.h"
#include "builtin/kinds.h"
#include "builtin/pod.h"
#include "builtin/storage.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "schema/edit.h"

#define SPEC KL_IN(NULL, "spec")
#define PARAMETERS_MAX 512
#define PARAMETERS_BYTES (256 * 1024)

#define DRIVER_MAX 63
#define NODE_ID_MAX 256

/* In lower case; the caller frees it. */
static char *lowered(const char *name)
{
    char *lower = kl_strdup(name);
    for (char *p = lower; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return lower;
}

/* ------------------------------------------------------------------ PersistentVolume */

static void check_local(kl__causes *c, const kl_value *v, const kl__place *at)
{
    if (*kl__text(v, "path"))
        kl__check_no_way_up(c, KL_IN(at, "path"), kl__text(v, "path"));
    else
        kl__say_required(c, KL_IN(at, "path"), "");
}

void kl__check_driver(kl__causes *c, const char *name, const kl__place *at)
{
    const char *faults[KL_FAULTS_MAX];
    char *lower = lowered(name);
    if (!*name)
        kl__say_required(c, at, "");
    if (strlen(name) > DRIVER_MAX)
        kl__say_too_long(c, at, DRIVER_MAX);
    size_t n = kl__faults(lower, KL_DNS_SUBDOMAIN, faults);
    for (size_t i = 0; i < n; i++)
        kl__say_invalid_text(c, at, name, "%s", faults[i]);
    kl_free(lower);
}

static void check_csi(kl__causes *c, const kl_value *v, const kl__place *at)
{
    kl__check_driver(c, kl__text(v, "driver"), KL_IN(at, "driver"));
    kl__check_present(c, v, at, "volumeHandle");
}

static const struct {
    const char *member;
    void (*check)(kl__causes *c, const kl_value *v, const kl__place *at);
} sources[] = {
    {"hostPath", kl__check_host_path},
    {"gcePersistentDisk", NULL},
    {"awsElasticBlockStore", NULL},
    {"glusterfs", NULL},
    {"flocker", NULL},
    {"nfs", kl__check_nfs},
    {"rbd", NULL},
    {"quobyte", NULL},
    {"cephfs", NULL},
    {"iscsi", NULL},
    {"cinder", NULL},
    {"fc", NULL},
    {"flexVolume", NULL},
    {"azureFile", NULL},
    {"vsphereVolume", NULL},
    {"photonPersistentDisk", NULL},
    {"azureDisk", NULL},
    {"portworxVolume", NULL},
    {"scaleIO", NULL},
    {"local", check_local},
    {"storageos", NULL},
    {"csi", check_csi},
};
#define NSOURCES (sizeof sources / sizeof *sources)

static void check_capacity(kl__causes *c, const kl_value *capacity)
{
    const kl__place *at = KL_IN(SPEC, "capacity");
    if (!kl_value_len(capacity))
        kl__say_required(c, at, "");
    if (kl_value_len(capacity) != 1 || !kl_value_get(capacity, "storage")) {
        const kl_value *none = kl_value_null();
        kl__say_unsupported(c, at, capacity ? capacity : none, "storage");
        kl_value_unref(none);
    }
    for (size_t i = 0; i < kl_value_len(capacity); i++) {
        const char *name;
        size_t n;
        const kl_value *size = kl_value_member(capacity, i, &name, &n);
        kl__check_size(c, size, KL_KEYED(at, name, n));
    }
}

static void check_volume_source(kl__causes *c, const kl_value *spec)
{
    bool any = false;
    for (size_t i = 0; i < NSOURCES; i++) {
        const kl_value *v = kl_value_get(spec, sources[i].member);
        const kl__place *at = KL_IN(SPEC, sources[i].member);
        if (v && any)
            kl__say_forbidden(c, at, "may not specify more than 1 volume type");
        else if (v && sources[i].check)
            sources[i].check(c, v, at);
        if (v && !any && !strcmp(sources[i].member, "local") && !kl_value_get(spec, "nodeAffinity"))
            kl__say_required(c, KL_IN(SPEC, "nodeAffinity"), "Local volume requires node affinity");
        any = any || v;
    }
    if (!any)
        kl__say_required(c, SPEC, "must specify a volume type");
}

static void check_volume_spec(kl__causes *c, const kl_value *spec)
{
    const kl_value *affinity = kl_value_get(spec, "nodeAffinity"),
                   *required = kl_value_get(affinity, "required");
    const kl__place *at = KL_IN(SPEC, "nodeAffinity");
    const char *path = kl_value_str_at(spec, "hostPath", "path", NULL);
    if (!kl_value_len(kl_value_get(spec, "accessModes")))
        kl__say_required(c, KL_IN(SPEC, "accessModes"), "");
    kl__check_access_modes(c, spec, SPEC);
    check_capacity(c, kl_value_get(spec, "capacity"));
    kl__check_word(c, spec, SPEC, "persistentVolumeReclaimPolicy", false, "Delete Recycle Retain");
    if (affinity && !required)
        kl__say_required(c, KL_IN(at, "required"), "must specify required node constraints");
    else if (affinity)
        kl__check_node_selector(c, required, KL_IN(at, "required"));
    check_volume_source(c, spec);
    if (path && *path && strspn(path, "/") == strlen(path)
        && kl__is(spec, "persistentVolumeReclaimPolicy", "Recycle"))
        kl__say_forbidden(c, KL_IN(SPEC, "persistentVolumeReclaimPolicy"),
            "may not be 'recycle' for a hostPath mount of '/'");
    kl__check_member(c, spec, SPEC, "storageClassName", KL_DNS_SUBDOMAIN);
    kl__check_word(c, spec, SPEC, "volumeMode", false, "Block Filesystem");
    kl__check_member(c, spec, SPEC, "volumeAttributesClassName", KL_DNS_SUBDOMAIN);
}

/* The part of a spec that says where the volume is; the caller owns the reference. */
static const kl_value *source_of(const kl_value *spec)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < NSOURCES; i++)
        if (kl_value_get(spec, sources[i].member)) {
            kl_build_key(b, sources[i].member);
            kl_build_value(b, kl_value_get(spec, sources[i].member));
        }
    kl_build_end(b);
    return kl_builder_done(b);
}

static void check_volume_update(kl__causes *c, const kl_value *old, const kl_value *now)
{
    const kl_value *was = source_of(old), *is = source_of(now), *mode = kl_value_get(now, "volumeMode"),
                   *affinity = kl_value_get(now, "nodeAffinity"), *had = kl_value_get(old, "nodeAffinity");
    if (!kl_value_equal(was, is)) {
        kl_buf diff = KL_BUF_INIT;
        kl__show_difference(was, is, &diff);
        kl__say_forbidden(c, KL_IN(SPEC, "persistentvolumesource"),
            "spec.persistentvolumesource is immutable after creation\n%s", kl_buf_str(&diff));
        kl_buf_fini(&diff);
    }
    kl_value_unref(was);
    kl_value_unref(is);
    if (!kl_value_equal(kl_value_get(old, "volumeMode"), mode))
        kl__say_invalid(c, KL_IN(NULL, "volumeMode"), mode, "field is immutable");
    if (had && !kl_value_equal(had, affinity))
        kl__say_invalid(c, KL_IN(NULL, "nodeAffinity"), affinity,
            "field is immutable, except for updating from beta label to GA");
}

void kl__check_volume(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec");
    if (kl__write_same_spec(w))
        return;
    check_volume_spec(w->causes, spec);
    if (w->old)
        check_volume_update(w->causes, kl_value_get(w->old, "spec"), spec);
}

/* ------------------------------------------------------------------ StorageClass */

static void check_provisioner(kl__causes *c, const char *name, const kl__place *at)
{
    char *lower = lowered(name);
    if (!*name)
        kl__say_required(c, at, "");
    else
        kl__check_form(c, at, lower, KL_QUALIFIED);
    kl_free(lower);
}

static void check_parameters(kl__causes *c, const kl_value *map, const kl__place *at)
{
    size_t bytes = 0;
    if (kl_value_len(map) > PARAMETERS_MAX)
        kl__say_too_long(c, at, PARAMETERS_MAX);
    for (size_t i = 0; i < kl_value_len(map); i++) {
        const char *key, *text;
        size_t n, len;
        text = kl_value_strn(kl_value_member(map, i, &key, &n), &len);
        if (!n)
            kl__say_invalid_text(c, at, "", "field can not be empty.");
        bytes += n + (text ? len : 0);
    }
    if (bytes > PARAMETERS_BYTES)
        kl__say_too_long(c, at, PARAMETERS_BYTES);
}

static void check_topology(kl__causes *c, const kl_value *term, const kl__place *up)
{
    const kl_value *list = kl_value_get(term, "matchLabelExpressions");
    const kl__place *in = KL_IN(up, "matchLabelExpressions");
    kl_finder keys = {.key = "key", .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i), *values = kl_value_get(one, "values");
        const kl__place *at = KL_ITEM(in, i), *values_at = KL_IN(at, "values");
        kl_finder own = {0};
        if (!kl_value_len(values))
            kl__say_required(c, values_at, "");
        for (size_t k = 0; k < kl_value_len(values); k++)
            if (kl_finder_repeats(&own, kl_value_item(values, k)))
                kl__say_duplicate(c, KL_ITEM(values_at, k), kl_value_item(values, k));
        kl_finder_fini(&own);
        kl__check_form(c, KL_IN(at, "key"), kl__text(one, "key"), KL_QUALIFIED);
        if (kl_finder_repeats(&keys, one))
            kl__say_duplicate(c, KL_IN(at, "key"), kl_value_get(one, "key"));
    }
    kl_finder_fini(&keys);
}

void kl__check_storage_class(const kl__write *w)
{
    static const char *const fixed[] = {"parameters", "provisioner", "reclaimPolicy"};
    kl__causes *c = w->causes;
    const kl_value *list = kl_value_get(w->o, "allowedTopologies");
    const kl__place *in = KL_IN(NULL, "allowedTopologies");
    check_provisioner(c, kl__text(w->o, "provisioner"), KL_IN(NULL, "provisioner"));
    check_parameters(c, kl_value_get(w->o, "parameters"), KL_IN(NULL, "parameters"));
    kl__check_word(c, w->o, NULL, "reclaimPolicy", false, "Delete Retain");
    kl__check_word(c, w->o, NULL, "volumeBindingMode", true, "Immediate WaitForFirstConsumer");
    for (size_t i = 0; i < kl_value_len(list); i++)
        check_topology(c, kl_value_item(list, i), KL_ITEM(in, i));
    for (size_t i = 0; w->old && i < 3; i++)
        if (!kl_value_equal(kl_value_get(w->old, fixed[i]), kl_value_get(w->o, fixed[i])))
            kl__say_forbidden(c, KL_IN(NULL, fixed[i]), "updates to %s are forbidden.", fixed[i]);
    if (w->old)
        kl__check_same(c, w->old, w->o, NULL, "volumeBindingMode");
}

/* ------------------------------------------------------------------ VolumeAttributesClass */

void kl__check_attributes_class(const kl__write *w)
{
    static const char *const fixed[] = {"driverName", "parameters"};
    const kl_value *parameters = kl_value_get(w->o, "parameters");
    check_provisioner(w->causes, kl__text(w->o, "driverName"), KL_IN(NULL, "driverName"));
    if (kl_value_len(parameters))
        check_parameters(w->causes, parameters, KL_IN(NULL, "parameters"));
    else
        kl__say_required(w->causes, KL_IN(NULL, "parameters"), "must contain at least one key/value pair");
    for (size_t i = 0; w->old && i < 2; i++)
        if (!kl_value_equal(kl_value_get(w->old, fixed[i]), kl_value_get(w->o, fixed[i])))
            kl__say_forbidden(w->causes, KL_IN(NULL, fixed[i]), "updates to %s are forbidden.", fixed[i]);
}

/* ------------------------------------------------------------------ CSIStorageCapacity */

void kl__check_csi_capacity(const kl__write *w)
{
    const kl_value *topology = kl_value_get(w->o, "nodeTopology");
    const char *capacity = kl__text(w->o, "capacity");
    kl_quantity *q = kl__quantity_of(capacity);
    if (topology)
        kl__check_selector(w->causes, topology, KL_IN(NULL, "nodeTopology"));
    kl__check_form(
        w->causes, KL_IN(NULL, "storageClassName"), kl__text(w->o, "storageClassName"), KL_DNS_SUBDOMAIN);
    if (q && kl_quantity_sign(q) < 0)
        kl__say_invalid_text(
            w->causes, KL_IN(NULL, "capacity"), capacity, "must be greater than or equal to 0");
    kl_quantity_free(q);
    if (w->old) {
        kl__check_same(w->causes, w->old, w->o, NULL, "nodeTopology");
        kl__check_same(w->causes, w->old, w->o, NULL, "storageClassName");
    }
}

/* ------------------------------------------------------------------ CSIDriver */

void kl__check_csi_driver(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *spec = kl_value_get(w->o, "spec"), *tokens = kl_value_get(spec, "tokenRequests"),
                   *modes = kl_value_get(spec, "volumeLifecycleModes");
    const kl__place *in = KL_IN(SPEC, "tokenRequests");
    kl__check_word(c, spec, SPEC, "fsGroupPolicy", true, "File None ReadWriteOnceWithFSType");
    kl_finder audiences = {.key = "audience", .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(tokens); i++) {
        const kl_value *one = kl_value_item(tokens, i), *seconds = kl_value_get(one, "expirationSeconds");
        const kl__place *at = KL_ITEM(in, i);
        if (kl_finder_repeats(&audiences, one))
            kl__say_duplicate(c, KL_IN(at, "audience"), kl_value_get(one, "audience"));
        else if (seconds && kl_value_int_at(seconds, 0, NULL) < 600)
            kl__say_invalid(c, KL_IN(at, "expirationSeconds"), seconds,
                "may not specify a duration less than 10 minutes");
    }
    kl_finder_fini(&audiences);
    for (size_t i = 0; i < kl_value_len(modes); i++) {
        if (!kl__one_of(kl__item_text(modes, i), "Persistent Ephemeral"))
            kl__say_unsupported(
                c, KL_IN(SPEC, "volumeLifecycleModes"), kl_value_item(modes, i), "Persistent Ephemeral");
    }
    if (!w->old)
        return;
    const kl_value *was = kl_value_get(w->old, "spec"), *attach = kl_value_get(spec, "attachRequired");
    if (!kl_value_equal(attach, kl_value_get(was, "attachRequired"))) /* so does kube-apiserver call it */
        kl__say_invalid(c, KL_IN(SPEC, "attachedRequired"), attach, "field is immutable");
    if (!kl_value_equal(modes, kl_value_get(was, "volumeLifecycleModes")))
        kl__say_invalid(c, KL_IN(SPEC, "volumeLifecycleModes"), modes, "field is immutable");
}

/* ------------------------------------------------------------------ CSINode */

static void check_keys(kl__causes *c, const kl_value *keys, const kl__place *at)
{
    kl_finder before = {0};
    for (size_t i = 0; i < kl_value_len(keys); i++) {
        const char *key = kl_value_str(kl_value_item(keys, i));
        if (!*key)
            kl__say_required(c, at, "");
        if (kl_finder_repeats(&before, kl_value_item(keys, i)))
            kl__say_duplicate(c, at, kl_value_item(keys, i));
        kl__check_form(c, at, key, KL_QUALIFIED);
    }
    kl_finder_fini(&before);
}

static void check_node_drivers(kl__causes *c, const kl_value *drivers)
{
    const kl__place *in = KL_IN(SPEC, "drivers");
    kl_finder names = {.key = "name", .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(drivers); i++) {
        const kl_value *one = kl_value_item(drivers, i);
        const kl__place *at = KL_ITEM(in, i);
        const char *id = kl__text(one, "nodeID"), *name = kl__text(one, "name");
        kl__check_driver(c, name, KL_IN(at, "name"));
        if (!*id)
            kl__say_required(c, KL_IN(at, "nodeID"), "");
        if (strlen(id) > NODE_ID_MAX)
            kl__say_invalid_text(c, KL_IN(at, "nodeID"), id, "must be %d characters or less", NODE_ID_MAX);
        kl__check_natural(c, kl_value_get(one, "allocatable"), KL_IN(at, "allocatable"), "count");
        if (kl_finder_repeats(&names, one))
            kl__say_duplicate(c, KL_IN(at, "name"), kl_value_get(one, "name"));
        check_keys(c, kl_value_get(one, "topologyKeys"), at);
    }
    kl_finder_fini(&names);
}

static const kl_value *driver_as_go(const kl_value *driver)
{
    const kl_value *shown = kl__as_go(driver, "Name NodeID TopologyKeys? Allocatable?"),
                   *room = kl_value_get(driver, "allocatable");
    if (room)
        KL_EDIT(&shown, kl__as_go(room, "Count?"), "Allocatable");
    return shown;
}

void kl__check_csi_node(const kl__write *w)
{
    const kl_value *now = kl_value_at(w->o, "spec", "drivers", NULL),
                   *old = kl_value_at(w->old, "spec", "drivers", NULL);
    for (int i = 0; i < (w->old ? 2 : 1); i++) /* kube-apiserver reports each fault twice */
        check_node_drivers(w->causes, now);
    kl_finder names = {.key = "name", .empty_is_absent = true};
    kl_finder_add_all(&names, now);
    for (size_t i = 0; i < kl_value_len(old); i++) {
        long at = kl_finder_find(&names, kl_value_item(old, i));
        if (at < 0 || kl_value_equal(kl_value_item(old, i), names.v[at]))
            continue;
        const kl_value *shown = driver_as_go(names.v[at]);
        kl__say_invalid(w->causes, KL_IN(SPEC, "drivers"), shown, "field is immutable");
        kl_value_unref(shown);
    }
    kl_finder_fini(&names);
}

/* ------------------------------------------------------------------ VolumeAttachment */

static void check_attachment(kl__causes *c, const kl_value *spec)
{
    const kl_value *source = kl_value_get(spec, "source"),
                   *inlined = kl_value_get(source, "inlineVolumeSpec"),
                   *name = kl_value_get(source, "persistentVolumeName");
    const kl__place *at = KL_IN(SPEC, "source");
    static const char one[] = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    kl__check_present(c, spec, SPEC, "attacher");
    if (!inlined && !name)
        kl__say_required(c, at, one);
    else if (inlined && name)
        kl__say_forbidden(c, at, "%s", one);
    else if (name && !kl_value_len(name))
        kl__say_required(c, KL_IN(at, "persistentVolumeName"), "must specify non empty persistentVolumeName");
    kl__check_form(c, KL_IN(SPEC, "nodeName"), kl__text(spec, "nodeName"), KL_DNS_SUBDOMAIN);
}

static const kl_value *attachment_as_go(const kl_value *spec)
{
    const kl_value *shown = kl__as_go(spec, "Attacher Source NodeName");
    KL_EDIT(
        &shown, kl__as_go(kl_value_get(spec, "source"), "PersistentVolumeName? InlineVolumeSpec?"), "Source");
    return shown;
}

void kl__check_attachment(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec"),
                   *name = kl_value_at(spec, "source", "persistentVolumeName", NULL);
    for (int i = 0; i < (w->old ? 2 : 1); i++) /* kube-apiserver reports each fault twice */
        check_attachment(w->causes, spec);
    if (!w->old) {
        kl__check_driver(w->causes, kl__text(spec, "attacher"), KL_IN(SPEC, "attacher"));
        if (name)
            kl__check_form(w->causes, KL_IN(KL_IN(SPEC, "source"), "persistentVolumeName"),
                kl_value_str(name), KL_DNS_SUBDOMAIN);
    } else if (!kl__write_same_spec(w)) {
        const kl_value *shown = attachment_as_go(spec);
        kl__say_invalid(w->causes, SPEC, shown, "field is immutable");
        kl_value_unref(shown);
    }
}
