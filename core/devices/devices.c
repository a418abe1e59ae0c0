/* devices.c - the table of kinds; their defaults, and fields that are dropped. */
#include "devices/devices.h"

#include <string.h>

#include "builtin/fill.h"
#include "devices/parts.h"
#include "schema/edit.h"

#define GROUP "resource.k8s.io/"

/* Drops fields of features that are off in Kubernetes 1.34. */
static void cut(const kl_value **o, const char *const *members)
{
    for (; *members; members++)
        if (!kl__absent(*o, *members))
            KL_CUT(o, *members);
}

/* ------------------------------------------------------------------ defaults */

static void request(const kl_value **r)
{
    static const char *const off[] = {"capacity", NULL};
    const char *mode = kl_value_str_at(*r, "allocationMode", NULL);
    cut(r, off);
    if (!mode || !*mode)
        KL_EDIT(r, kl_value_of_str("ExactCount"), "allocationMode");
    else if (strcmp(mode, "ExactCount") != 0)
        return;
    if (!kl_value_int_at(*r, 0, "count", NULL))
        KL_EDIT(r, kl_value_of_int(1), "count");
}

static void choice(const kl_value **r)
{
    kl__inside(r, "exactly", request);
    kl__each_inside(r, "firstAvailable", request);
}
static void wanted(const kl_value **devices) { kl__each_inside(devices, "requests", choice); }
static void claim_spec(const kl_value **spec) { kl__inside(spec, "devices", wanted); }

static void result(const kl_value **r)
{
    static const char *const off[] = {
        "bindingConditions", "bindingFailureConditions", "shareID", "consumedCapacity", NULL};
    cut(r, off);
}
static void allocated(const kl_value **devices) { kl__each_inside(devices, "results", result); }
static void allocation(const kl_value **a)
{
    static const char *const off[] = {"allocationTimestamp", NULL};
    cut(a, off);
    kl__inside(a, "devices", allocated);
}
static void report(const kl_value **d)
{
    static const char *const off[] = {"shareID", NULL};
    cut(d, off);
}
static void claim_status(const kl_value **status)
{
    kl__inside(status, "allocation", allocation);
    kl__each_inside(status, "devices", report);
}
static void claim(const kl_value **o)
{
    kl__inside(o, "spec", claim_spec);
    kl__inside(o, "status", claim_status);
}

static void template_spec(const kl_value **spec) { kl__inside(spec, "spec", claim_spec); }
static void template(const kl_value **o) { kl__inside(o, "spec", template_spec); }

static void class_spec(const kl_value **spec)
{
    static const char *const off[] = {"extendedResourceName", NULL};
    cut(spec, off);
}
static void class(const kl_value **o) { kl__inside(o, "spec", class_spec); }

/* Removes the policies of capacities. */
static void capacities(const kl_value **map)
{
    static const char *const off[] = {"requestPolicy", NULL};
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(*map); i++) {
        const char *key;
        size_t n;
        const kl_value *one = kl_value_ref(kl_value_member(*map, i, &key, &n));
        cut(&one, off);
        kl_build_keyn(b, key, n);
        kl_build_value(b, one);
        kl_value_unref(one);
    }
    kl_build_end(b);
    kl__replace(map, kl_builder_done(b));
}
static void device(const kl_value **d)
{
    static const char *const off[] = {"taints", "consumesCounters", "nodeName", "nodeSelector", "allNodes",
        "bindingConditions", "bindingFailureConditions", "bindsToNode", "allowMultipleAllocations", NULL};
    cut(d, off);
    kl__inside(d, "capacity", capacities);
}
static void slice_spec(const kl_value **spec)
{
    static const char *const off[] = {"sharedCounters", "perDeviceNodeSelection", NULL};
    cut(spec, off);
    kl__each_inside(spec, "devices", device);
}
static void slice(const kl_value **o) { kl__inside(o, "spec", slice_spec); }

void kl__devices_fill(const kl__kind *k, const kl_value **o)
{
    static const struct {
        const char *kind;
        kl__edit_fn *fill;
    } kinds[] = {
        {GROUP "resourceclaims", claim},
        {GROUP "resourceclaimtemplates", template},
        {GROUP "deviceclasses", class},
        {GROUP "resourceslices", slice},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kl__kind_among(k, kinds[i].kind))
            kinds[i].fill(o);
}

/* ------------------------------------------------------------------ status */

kl_finder kl__device_ids(void)
{
    static const char *const more[] = {"pool", "device", NULL};
    return (kl_finder){.key = "driver", .more = more, .empty_is_absent = true};
}

static const kl_value *results(const kl_value *o)
{
    return kl_value_at(o, "status", "allocation", "devices", "results", NULL);
}

void kl__devices_status(const kl__kind *k, const kl_value *old, const kl_value **o)
{
    const kl_value *list = kl_value_at(*o, "status", "devices", NULL);
    if (!kl__kind_among(k, GROUP "resourceclaims") || !list)
        return;
    kl_finder was = kl__device_ids(), is = was;
    kl_builder *b = kl_builder_new();
    size_t kept = 0;
    kl_finder_add_all(&was, results(old));
    kl_finder_add_all(&is, results(*o));
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        if (kl_finder_find(&was, one) >= 0 && kl_finder_find(&is, one) < 0)
            continue;
        kl_build_value(b, one);
        kept++;
    }
    kl_build_end(b);
    const kl_value *left = kl_builder_done(b);
    kl_finder_fini(&was);
    kl_finder_fini(&is);
    if (kept < kl_value_len(list))
        KL_EDIT(o, kept ? kl_value_ref(left) : NULL, "status", "devices");
    kl_value_unref(left);
}
