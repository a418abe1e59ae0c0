/* resources.c - requests and limits. Most pods have plain quantities, which are not parsed. */
#include "builtin/pod.h"

#include <string.h>

#include "base/mem.h"
#include "model/names.h"
#include "model/quantity.h"

static bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

static bool native(const char *name) { return !strchr(name, '/') || strstr(name, "kubernetes.io/"); }

static bool extended(const char *name)
{
    return !native(name) && !starts(name, "requests.") && !kl_name_qualified(name);
}

static const char standard[] =
    "cpu memory ephemeral-storage requests.cpu requests.memory requests.ephemeral-storage limits.cpu "
    "limits.memory limits.ephemeral-storage pods resourcequotas services replicationcontrollers secrets "
    "configmaps persistentvolumeclaims storage requests.storage services.nodeports services.loadbalancers";
static const char counted[] = "pods resourcequotas services replicationcontrollers secrets configmaps "
                              "persistentvolumeclaims services.nodeports services.loadbalancers";

bool kl__may_overcommit(const char *name) { return native(name) && !starts(name, "hugepages-"); }

void kl__check_resource_name(kl__causes *c, const char *name, const kl__place *at)
{
    size_t before = c->len;
    kl__check_form(c, at, name, KL_QUALIFIED);
    if (c->len == before && !strchr(name, '/') && !starts(name, "hugepages-")
        && !starts(name, "requests.hugepages-") && !kl__one_of(name, standard))
        kl__say_invalid_text(c, at, name, "must be a standard resource type or fully qualified");
}

void kl__check_container_resource_name(kl__causes *c, const char *name, const kl__place *at)
{
    bool plain = !strchr(name, '/');
    if (kl__one_of(name, "cpu memory ephemeral-storage"))
        return;
    kl__check_resource_name(c, name, at);
    if (plain && !starts(name, "hugepages-"))
        kl__say_invalid_text(c, at, name, "must be a standard resource for containers");
    else if (!plain && !native(name) && !extended(name))
        kl__say_invalid_text(c, at, name, "doesn't follow extended resource name standard");
}

void kl__check_quantity(kl__causes *c, const char *resource, const kl_value *q, const kl__place *at)
{
    const char *text = kl_value_str(q);
    if (!text)
        return;
    if (*text == '-')
        kl__say_invalid(c, at, q, "must be greater than or equal to 0");
    if (!strpbrk(text, "munE.e") || (!kl__one_of(resource, counted) && !extended(resource)))
        return;
    kl_quantity *n = kl__quantity_of(kl_value_str(q));
    int64_t milli = 0;
    if (n && kl_quantity_milli(n, &milli) && milli % 1000)
        kl__say_invalid(c, at, q, "must be an integer");
    kl_quantity_free(n);
}

static void check_request(
    kl__causes *c, const char *name, const kl_value *request, const kl_value *limit, const kl__place *at)
{
    bool overcommit = kl__may_overcommit(name);
    if (!limit) {
        if (!overcommit)
            kl__say_required(c, KL_IN(at, "limits"), "Limit must be set for non overcommitable resources");
        return;
    }
    if (kl_value_equal(request, limit))
        return;
    kl_quantity *a = kl__quantity_of(kl_value_str(request)), *b = kl__quantity_of(kl_value_str(limit));
    int order = a && b ? kl_quantity_cmp(a, b) : 0;
    if (order && !overcommit)
        kl__say_invalid(
            c, KL_IN(at, "requests"), request, "must be equal to %s limit of %s", name, kl_value_str(limit));
    else if (order > 0)
        kl__say_invalid(c, KL_IN(at, "requests"), request, "must be less than or equal to %s limit of %s",
            name, kl_value_str(limit));
    kl_quantity_free(a);
    kl_quantity_free(b);
}

void kl__check_resources(kl__causes *c, const kl_value *resources, const kl__place *at)
{
    static const char *const members[] = {"limits", "requests"};
    const kl_value *limits = kl_value_get(resources, "limits");
    bool huge = false, plain = false;
    for (size_t k = 0; k < 2; k++) {
        const kl_value *map = kl_value_get(resources, members[k]);
        for (size_t i = 0; i < kl_value_len(map); i++) {
            const char *name;
            size_t n;
            const kl_value *q = kl_value_member(map, i, &name, &n);
            const kl__place *here = KL_KEYED(KL_IN(at, members[k]), name, n);
            kl__check_container_resource_name(c, name, here);
            kl__check_quantity(c, name, q, here);
            if (k)
                check_request(c, name, q, kl_value_getn(limits, name, n), at);
            huge = huge || starts(name, "hugepages-");
            plain = plain || kl__one_of(name, "cpu memory");
        }
    }
    if (huge && !plain)
        kl__say_forbidden(c, at, "HugePages require cpu or memory");
}
