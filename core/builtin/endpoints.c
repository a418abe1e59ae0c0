/* endpoints.c - where a Service's traffic goes: EndpointSlices, and the Endpoints that came before them
 * (pkg/apis/discovery/validation, ValidateEndpoints of pkg/apis/core). */
#include "check/addresses.h"
#include "check/forms.h"
#include "builtin/kinds.h"

#include <netinet/in.h>
#include <string.h>

#include "base/mem.h"
#include "model/names.h"

#define ENDPOINTS_MAX 1000
#define ADDRESSES_MAX 100
#define PORTS_MAX 20000
#define ZONES_MAX 8

static const char protocols[] = "SCTP TCP UDP";

/* `ip` cannot be reached from another machine. */
static void check_reachable(kl__causes *c, const char *ip, const kl__place *at)
{
    unsigned char bytes[16];
    struct in6_addr v6;
    bool nowhere, loopback, local, multicast;
    size_t len = kl__address_bytes(ip, bytes);
    if (len == 4) {
        uint32_t n = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
        nowhere = !n;
        loopback = n >> 24 == 127;
        local = n >> 16 == 0xa9fe;
        multicast = n >> 8 == 0xe00000;
    } else if (len == 16) {
        memcpy(&v6, bytes, sizeof v6);
        nowhere = IN6_IS_ADDR_UNSPECIFIED(&v6);
        loopback = IN6_IS_ADDR_LOOPBACK(&v6);
        local = IN6_IS_ADDR_LINKLOCAL(&v6);
        multicast = IN6_IS_ADDR_MC_LINKLOCAL(&v6);
    } else {
        kl__say_invalid_text(c, at, ip, "must be a valid IP address");
        return;
    }
    if (nowhere)
        kl__say_invalid_text(c, at, ip, "may not be unspecified (%s)", ip);
    if (loopback)
        kl__say_invalid_text(c, at, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    if (local)
        kl__say_invalid_text(c, at, ip, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    if (multicast)
        kl__say_invalid_text(
            c, at, ip, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
}

/* ------------------------------------------------------------------ EndpointSlice */

static void check_slice_address(
    kl__causes *c, const char *type, const char *ip, const kl__place *list, size_t i)
{
    const kl__place *at = KL_ITEM(list, i);
    size_t before = c->len;
    if (!strcmp(type, "FQDN")) {
        kl__check_form(c, at, ip, KL_DNS_SUBDOMAIN);
        return;
    }
    if (!kl__one_of(type, "IPv4 IPv6"))
        return;
    if (!strcmp(type, "IPv6"))
        kl__check_address(c, at, ip, KL_ADDRESS);
    else
        kl__check_form(c, at, ip, KL_IP);
    if (c->len > before)
        return;
    if ((strchr(ip, ':') != NULL) != !strcmp(type, "IPv6"))
        kl__say_invalid_text(c, list, ip, "must be an %s address", type); /* kube-apiserver names no item */
    check_reachable(c, ip, at);
}

static void check_zones(kl__causes *c, const kl_value *zones, const kl__place *at)
{
    if (kl_value_len(zones) > ZONES_MAX) {
        kl__say_too_many(c, at, kl_value_len(zones), ZONES_MAX);
        return;
    }
    kl_finder names = {.key = "name", .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(zones); i++) {
        const kl_value *zone = kl_value_item(zones, i);
        if (kl_finder_repeats(&names, zone))
            kl__say_duplicate(c, KL_IN(KL_ITEM(at, i), "name"), kl_value_get(zone, "name"));
        kl__check_form(c, KL_IN(KL_ITEM(at, i), "name"), kl__text(zone, "name"), KL_LABEL_VALUE);
    }
    kl_finder_fini(&names);
}

static void check_slice_endpoint(kl__causes *c, const char *type, const kl_value *e, const kl__place *at)
{
    const kl_value *list = kl_value_get(e, "addresses");
    const kl__place *in = KL_IN(at, "addresses");
    if (!kl_value_len(list))
        kl__say_required(c, in, "must contain at least 1 address");
    else if (kl_value_len(list) > ADDRESSES_MAX)
        kl__say_too_many(c, in, kl_value_len(list), ADDRESSES_MAX);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        check_slice_address(c, type, kl__item_text(list, i), in, i);
    }
    if (kl_value_get(e, "nodeName"))
        kl__check_form(c, KL_IN(at, "nodeName"), kl__text(e, "nodeName"), KL_DNS_SUBDOMAIN);
    if (kl_value_get(e, "hostname"))
        kl__check_form(c, KL_IN(at, "hostname"), kl__text(e, "hostname"), KL_DNS_LABEL);
    check_zones(c, kl_value_at(e, "hints", "forZones", NULL), KL_IN(KL_IN(at, "hints"), "forZones"));
}

static void check_protocol(kl__causes *c, const kl_value *port, const kl__place *at)
{
    if (!kl_value_get(port, "protocol"))
        kl__say_required(c, KL_IN(at, "protocol"), "");
    else
        kl__check_word(c, port, at, "protocol", true, protocols);
    kl__check_member(c, port, at, "appProtocol", KL_QUALIFIED);
}

static void check_slice_ports(kl__causes *c, const kl_value *list, const kl__place *in)
{
    if (kl_value_len(list) > PORTS_MAX) {
        kl__say_too_many(c, in, kl_value_len(list), PORTS_MAX);
        return;
    }
    kl_finder names = {.key = "name", .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *port = kl_value_item(list, i);
        const kl__place *at = KL_ITEM(in, i);
        kl__check_member(c, port, at, "name", KL_DNS_LABEL);
        if (kl_finder_repeats(&names, port))
            kl__say_duplicate(c, KL_IN(at, "name"), kl_value_get(port, "name"));
        check_protocol(c, port, at);
    }
    kl_finder_fini(&names);
}

void kl__check_slice(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *list = kl_value_get(w->o, "endpoints");
    const char *type = kl__text(w->o, "addressType");
    const kl__place *in = KL_IN(NULL, "endpoints");
    kl__check_word(c, w->o, NULL, "addressType", true, "FQDN IPv4 IPv6");
    check_slice_ports(c, kl_value_get(w->o, "ports"), KL_IN(NULL, "ports"));
    if (w->old && kl_value_equal(kl_value_get(w->old, "endpoints"), list))
        list = NULL;
    if (kl_value_len(list) > ENDPOINTS_MAX)
        kl__say_too_many(c, in, kl_value_len(list), ENDPOINTS_MAX);
    else
        for (size_t i = 0; i < kl_value_len(list); i++)
            check_slice_endpoint(c, type, kl_value_item(list, i), KL_ITEM(in, i));
    if (w->old)
        kl__check_same(c, w->old, w->o, NULL, "addressType");
}

/* ------------------------------------------------------------------ Endpoints */

static void check_addresses(kl__causes *c, const kl_value *list, const kl__place *in)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        const kl__place *at = KL_ITEM(in, i);
        kl__check_form(c, KL_IN(at, "ip"), kl__text(one, "ip"), KL_IP);
        kl__check_member(c, one, at, "hostname", KL_DNS_LABEL);
        if (kl_value_get(one, "nodeName"))
            kl__check_form(c, KL_IN(at, "nodeName"), kl__text(one, "nodeName"), KL_DNS_SUBDOMAIN);
        check_reachable(c, kl__text(one, "ip"), KL_IN(at, "ip"));
    }
}

static void check_ports(kl__causes *c, const kl_value *list, const kl__place *in)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *port = kl_value_item(list, i);
        const kl__place *at = KL_ITEM(in, i);
        if (kl_value_len(list) > 1)
            kl__check_present(c, port, at, "name");
        kl__check_member(c, port, at, "name", KL_DNS_LABEL);
        kl__check_port(c, kl_value_get(port, "port"), KL_IN(at, "port"));
        check_protocol(c, port, at);
    }
}

void kl__check_endpoints(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *subsets = kl_value_get(w->o, "subsets");
    if (w->old && kl_value_equal(kl_value_get(w->old, "subsets"), subsets))
        return;
    for (size_t i = 0; i < kl_value_len(subsets); i++) {
        const kl_value *s = kl_value_item(subsets, i), *ready = kl_value_get(s, "addresses"),
                       *unready = kl_value_get(s, "notReadyAddresses");
        const kl__place *at = KL_ITEM(KL_IN(NULL, "subsets"), i);
        if (!kl_value_len(ready) && !kl_value_len(unready))
            kl__say_required(c, at, "must specify `addresses` or `notReadyAddresses`");
        check_addresses(c, ready, KL_IN(at, "addresses"));
        check_addresses(c, unready, KL_IN(at, "notReadyAddresses"));
        check_ports(c, kl_value_get(s, "ports"), KL_IN(at, "ports"));
    }
}
