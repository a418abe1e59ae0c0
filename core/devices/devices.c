/* devices.c - defaults, fields that are dropped, and reports that end with an allocation. */
#include "devices/devices.h"

#include <string.h>

#include "builtin/fill.h"
#include "devices/parts.h"
#include "schema/edit.h"

#define GROUP "resource.k8s.io/"

/* ------------------------------------------------------------------ defaults */

static void request(const kl_value **r)
{
    const char *mode = kl_value_str_at(*r, "allocationMode", NULL);
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
static void claim(const kl_value **o) { kl__inside(o, "spec", claim_spec); }
static void template_spec(const kl_value **spec) { kl__inside(spec, "spec", claim_spec); }
static void template(const kl_value **o) { kl__inside(o, "spec", template_spec); }

void kl__devices_fill(const kl__kind *k, const kl_value **o)
{
    if (kl__kind_among(k, GROUP "resourceclaims"))
        claim(o);
    if (kl__kind_among(k, GROUP "resourceclaimtemplates"))
        template(o);
}

/* ------------------------------------------------------------------ what is off */

static void cut_request(const kl_value **r)
{
    static const char *const off[] = {"capacity", NULL};
    kl__cut(r, off);
}
static void cut_choice(const kl_value **r)
{
    kl__inside(r, "exactly", cut_request);
    kl__each_inside(r, "firstAvailable", cut_request);
}
static void cut_wanted(const kl_value **devices) { kl__each_inside(devices, "requests", cut_choice); }
static void cut_claim_spec(const kl_value **spec) { kl__inside(spec, "devices", cut_wanted); }
static void cut_template_spec(const kl_value **spec) { kl__inside(spec, "spec", cut_claim_spec); }

static void result(const kl_value **r)
{
    static const char *const off[] = {
        "bindingConditions", "bindingFailureConditions", "shareID", "consumedCapacity", NULL};
    kl__cut(r, off);
}
static void allocated(const kl_value **devices) { kl__each_inside(devices, "results", result); }
static void allocation(const kl_value **a)
{
    static const char *const off[] = {"allocationTimestamp", NULL};
    kl__cut(a, off);
    kl__inside(a, "devices", allocated);
}
static void report(const kl_value **d)
{
    static const char *const off[] = {"shareID", NULL};
    kl__cut(d, off);
}
static void cut_claim_status(const kl_value **status)
{
    kl__inside(status, "allocation", allocation);
    kl__each_inside(status, "devices", report);
}

static void cut_class(const kl_value **spec)
{
    static const char *const off[] = {"extendedResourceName", NULL};
    kl__cut(spec, off);
}

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
        kl__cut(&one, off);
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
    kl__cut(d, off);
    kl__inside(d, "capacity", capacities);
}
static void cut_slice(const kl_value **spec)
{
    static const char *const off[] = {"sharedCounters", "perDeviceNodeSelection", NULL};
    kl__cut(spec, off);
    kl__each_inside(spec, "devices", device);
}
void kl__devices_drop(const kl__kind *k, const kl_value **o)
{
    static const struct {
        const char *kind, *member;
        kl__edit_fn *drop;
    } kinds[] = {
        {GROUP "resourceclaims", "spec", cut_claim_spec},
        {GROUP "resourceclaims", "status", cut_claim_status},
        {GROUP "resourceclaimtemplates", "spec", cut_template_spec},
        {GROUP "deviceclasses", "spec", cut_class},
        {GROUP "resourceslices", "spec", cut_slice},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kl__kind_among(k, kinds[i].kind))
            kl__inside(o, kinds[i].member, kinds[i].drop);
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
