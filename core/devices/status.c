/* status.c - the status of a ResourceClaim: the allocation, its users, and the reports of drivers. */
#include <string.h>

#include "base/mem.h"
#include "builtin/pod.h"
#include "builtin/storage.h"
#include "check/addresses.h"
#include "check/conditions.h"
#include "check/forms.h"
#include "devices/parts.h"

#define STATUS KL_IN(NULL, "status")
#define RESERVED_MAX 256
#define RESULTS_MAX 32
#define CONFIGS_MAX 64
#define CONDITIONS_MAX 8
#define DATA_MAX (10 * 1024)
#define INTERFACE_NAME_MAX 256
#define HARDWARE_ADDRESS_MAX 128
#define IPS_MAX 16

/* ------------------------------------------------------------------ reports of drivers */

static void check_interface(const kl__claim_look *look, const kl_value *ip, const kl__place *at)
{
    const char *text = kl_value_str(ip);
    kl__check_address(look->c, at, text ? text : "", KL_INTERFACE);
}

static void check_network(const kl__claim_look *look, const kl_value *n, const kl__place *at)
{
    if (strlen(kl__text(n, "interfaceName")) > INTERFACE_NAME_MAX)
        kl__say_too_long(look->c, KL_IN(at, "interfaceName"), INTERFACE_NAME_MAX);
    if (strlen(kl__text(n, "hardwareAddress")) > HARDWARE_ADDRESS_MAX)
        kl__say_too_long(look->c, KL_IN(at, "hardwareAddress"), HARDWARE_ADDRESS_MAX);
    kl__check_set(look, kl_value_get(n, "ips"), IPS_MAX, NULL, check_interface, KL_IN(at, "ips"));
}

/* Checks driver, pool and device, of a result or a report. */
static void check_device_id(kl__causes *c, const kl_value *o, const kl__place *at)
{
    kl__check_driver(c, kl__text(o, "driver"), KL_IN(at, "driver"));
    kl__check_pool_name(c, kl__text(o, "pool"), KL_IN(at, "pool"));
    kl__check_form(c, KL_IN(at, "device"), kl__text(o, "device"), KL_DNS_LABEL);
}

/* Go prints the parts of an id as empty structs. */
static const kl_value *id_as_go(void) { return kl__as_go(NULL, "Driver{} Pool{} Device{} ShareID{}"); }

static void check_reports(
    const kl__claim_look *look, const kl_value *list, const kl_value *results, const kl__place *in)
{
    kl_finder allocated = kl__device_ids(), before = allocated;
    const kl_value *shown = id_as_go();
    kl_finder_add_all(&allocated, results);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        const kl__place *at = KL_ITEM(in, i);
        check_device_id(look->c, one, at);
        if (kl_finder_find(&allocated, one) < 0)
            kl__say_invalid(look->c, at, shown, "must be an allocated device in the claim");
        if (kl_value_len(kl_value_get(one, "conditions")) > CONDITIONS_MAX)
            kl__say_too_many(look->c, KL_IN(at, "conditions"), kl_value_len(kl_value_get(one, "conditions")),
                CONDITIONS_MAX);
        kl__check_conditions(look->c, kl_value_get(one, "conditions"), KL_IN(at, "conditions"));
        if (kl_value_get(one, "data"))
            kl__check_raw(look->c, one, "data", DATA_MAX, at);
        check_network(look, kl_value_get(one, "networkData"), KL_IN(at, "networkData"));
    }
    for (size_t i = 0; i < kl_value_len(list); i++)
        if (kl_finder_repeats(&before, kl_value_item(list, i)))
            kl__say_duplicate(look->c, KL_IN(KL_ITEM(in, i), "deviceID"), shown);
    kl_value_unref(shown);
    kl_finder_fini(&before);
    kl_finder_fini(&allocated);
}

/* ------------------------------------------------------------------ the allocation */

static void check_consumer(const kl__claim_look *look, const kl_value *ref, const kl__place *at)
{
    kl__check_present(look->c, ref, at, "resource");
    kl__check_present(look->c, ref, at, "name");
    kl__check_present(look->c, ref, at, "uid");
}

static void check_result(const kl__claim_look *look, const kl_value *r, const kl__place *at)
{
    kl__check_request_ref(look, kl__text(r, "request"), KL_IN(at, "request"));
    check_device_id(look->c, r, at);
}

static void check_config(const kl__claim_look *look, const kl_value *config, const kl__place *at)
{
    kl__check_word(look->c, config, at, "source", true, "FromClaim FromClass");
    kl__check_request_refs(look, kl_value_get(config, "requests"), KL_IN(at, "requests"));
    kl__check_device_config(look->c, config, at);
}

static void check_allocation(const kl__claim_look *look, const kl_value *a, const kl__place *at)
{
    const kl_value *devices = kl_value_get(a, "devices"), *selector = kl_value_get(a, "nodeSelector");
    const kl__place *in = KL_IN(at, "devices");
    kl__check_items(look, kl_value_get(devices, "results"), RESULTS_MAX, check_result, KL_IN(in, "results"));
    kl__check_items(look, kl_value_get(devices, "config"), CONFIGS_MAX, check_config, KL_IN(in, "config"));
    if (selector)
        kl__check_node_selector(look->c, selector, KL_IN(at, "nodeSelector"));
}

#define ALLOCATION_AS_GO                                                                                     \
    "Devices{Results[Request Driver Pool Device AdminAccess? " KL_TOLERATIONS_AS_GO                          \
    " BindingConditions? BindingFailureConditions? ShareID? ConsumedCapacity?] Config[Source "               \
    "Requests? " KL_OPAQUE_AS_GO                                                                             \
    "]} NodeSelector?{NodeSelectorTerms[MatchExpressions[Key Operator Values?] "                             \
    "MatchFields[Key Operator Values?]]} AllocationTimestamp?"

static bool has_new_consumers(const kl_value *old, const kl_value *now)
{
    kl_finder had = {0};
    bool more = false;
    kl_finder_add_all(&had, old);
    for (size_t i = 0; i < kl_value_len(now); i++)
        more = more || kl_finder_find(&had, kl_value_item(now, i)) < 0;
    kl_finder_fini(&had);
    return more;
}

static bool granted(const kl_value *results)
{
    for (size_t i = 0; i < kl_value_len(results); i++)
        if (kl__true(kl_value_item(results, i), "adminAccess"))
            return true;
    return false;
}

void kl__check_claim_status(const kl__write *w, const kl_value *ns)
{
    kl__causes *c = w->causes;
    const kl_value *status = kl_value_get(w->o, "status"), *old = kl_value_get(w->old, "status"),
                   *reserved = kl_value_get(status, "reservedFor"), *a = kl_value_get(status, "allocation"),
                   *was = kl_value_get(old, "allocation"),
                   *results = kl_value_at(a, "devices", "results", NULL);
    const kl__place *at = KL_IN(STATUS, "allocation"), *reserved_at = KL_IN(STATUS, "reservedFor");
    kl__claim_look look;
    if (!granted(kl_value_at(was, "devices", "results", NULL)))
        kl__check_admin(c, results, NULL, ns, KL_IN(KL_IN(at, "devices"), "results"));
    kl__claim_look_init(&look, c, kl_value_at(w->o, "spec", "devices", NULL));
    kl__check_set(&look, reserved, RESERVED_MAX, "uid", check_consumer, reserved_at);
    check_reports(&look, kl_value_get(status, "devices"), results, KL_IN(STATUS, "devices"));
    if (kl_value_len(reserved) && !a)
        kl__say_forbidden(c, reserved_at, "may not be specified when `allocated` is not set");
    else if (kl_value_len(reserved) && kl_value_at(w->o, "metadata", "deletionTimestamp", NULL)
        && has_new_consumers(kl_value_get(old, "reservedFor"), reserved))
        kl__say_forbidden(c, reserved_at,
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set");
    if (was && a && !kl_value_equal(was, a)) {
        const kl_value *shown = kl__as_go(a, ALLOCATION_AS_GO);
        kl__say_invalid(c, at, shown, "field is immutable");
        kl_value_unref(shown);
    } else if (!was && a)
        check_allocation(&look, a, at);
    kl__claim_look_fini(&look);
}
