/* addresses.c - IPAddresses and ServiceCIDRs (pkg/apis/networking/validation). Services get their addresses
 * from builtin/allot.c, independent of these objects. */
#include "serving/parts.h"

#include <string.h>

#include "check/addresses.h"
#include "check/forms.h"
#include "model/object.h"

#define SPEC KL_IN(NULL, "spec")
#define CIDRS KL_IN(SPEC, "cidrs")

/* ------------------------------------------------------------------ IPAddress */

static void check_parent(kl__causes *c, const kl_value *parent, const kl__place *at)
{
    kl__check_member(c, parent, at, "group", KL_DNS_SUBDOMAIN);
    kl__check_present(c, parent, at, "resource");
    kl__check_member(c, parent, at, "resource", KL_PATH_SEGMENT);
    kl__check_present(c, parent, at, "name");
    kl__check_member(c, parent, at, "name", KL_PATH_SEGMENT);
    kl__check_member(c, parent, at, "namespace", KL_PATH_SEGMENT);
}

void kl__check_ip_address(const kl__write *w)
{
    const kl_value *parent = kl_value_at(w->o, "spec", "parentRef", NULL);
    const kl__place *at = KL_IN(SPEC, "parentRef");
    const char *name = kl_object_name(w->o);
    if (name && *name)
        kl__check_address(w->causes, KL_IN(KL_IN(NULL, "metadata"), "name"), name, KL_ADDRESS);
    if (parent)
        check_parent(w->causes, parent, at);
    else
        kl__say_required(w->causes, at, "");
    if (w->old && !kl_value_equal(kl_value_at(w->old, "spec", "parentRef", NULL), parent)) {
        const kl_value *shown = parent ? kl__as_go(parent, "Group Resource Namespace Name") : NULL;
        kl__say_invalid(w->causes, at, shown, "field is immutable");
        kl_value_unref(shown);
    }
}

/* ------------------------------------------------------------------ ServiceCIDR */

static void check_ranges(kl__causes *c, const kl_value *spec)
{
    const kl_value *list = kl_value_get(spec, "cidrs");
    if (!kl_value_len(list)) {
        kl__say_required(c, CIDRS, "at least one CIDR required");
        return;
    }
    if (kl_value_len(list) > 2) {
        const kl_value *shown = kl__as_go(spec, "CIDRs=cidrs?");
        kl__say_invalid(c, CIDRS, shown, "may only hold up to 2 values");
        kl_value_unref(shown);
        return;
    }
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl__check_address(c, KL_ITEM(CIDRS, i), kl__item_text(list, i), KL_NETWORK);
    int family = kl__network_family(kl__item_text(list, 0));
    if (kl_value_len(list) == 2 && family && family == kl__network_family(kl__item_text(list, 1)))
        kl__say_invalid(c, CIDRS, list,
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64");
}

static void check_changed(kl__causes *c, const kl_value *old, const kl_value *spec)
{
    const kl_value *was = kl_value_get(old, "cidrs"), *is = kl_value_get(spec, "cidrs");
    size_t had = kl_value_len(was), have = kl_value_len(is);
    if (had != have && (had != 1 || have != 2)) {
        kl__say_invalid(c, CIDRS, is, "field is immutable");
        return;
    }
    for (size_t i = 0; i < had; i++)
        if (strcmp(kl__item_text(was, i), kl__item_text(is, i)) != 0)
            kl__say_invalid_text(c, KL_ITEM(CIDRS, i), kl__item_text(is, i), "field is immutable");
    if (had != have)
        check_ranges(c, spec);
}

void kl__check_service_cidr(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec");
    if (w->sub)
        return;
    if (w->old)
        check_changed(w->causes, kl_value_get(w->old, "spec"), spec);
    else
        check_ranges(w->causes, spec);
}
