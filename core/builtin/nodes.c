/* nodes.c - Nodes (ValidateNode, ValidateNodeUpdate of pkg/apis/core). */
#include "check/forms.h"
#include "builtin/kinds.h"
#include "builtin/pod.h"

#include <string.h>

#include "base/mem.h"

#define SPEC KL_IN(NULL, "spec")
#define STATUS KL_IN(NULL, "status")

static void check_taint(kl__causes *c, const kl_value *t, const kl__place *at)
{
    kl__check_form(c, KL_IN(at, "key"), kl__text(t, "key"), KL_QUALIFIED);
    kl__check_member(c, t, at, "value", KL_LABEL_VALUE);
    kl__check_word(c, t, at, "effect", true, "NoSchedule PreferNoSchedule NoExecute");
}

static void check_taints(kl__causes *c, const kl_value *list)
{
    static const char *const effect[] = {"effect", NULL};
    const kl__place *in = KL_IN(KL_IN(NULL, "metadata"), "taints"); /* the path that kube-apiserver shows */
    kl_finder taints = {.key = "key", .more = effect, .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *t = kl_value_item(list, i);
        check_taint(c, t, KL_ITEM(in, i));
        if (!kl_finder_repeats(&taints, t))
            continue;
        const kl_value *shown = kl__as_go(t, "Key Value Effect TimeAdded?");
        kl__say_duplicate_because(c, KL_ITEM(in, i), shown, "taints must be unique by key and effect pair");
        kl_value_unref(shown);
    }
    kl_finder_fini(&taints);
}

static void check_amounts(kl__causes *c, const kl_value *o)
{
    static const char *const members[] = {"capacity", "allocatable"};
    for (size_t i = 0; i < 2; i++) {
        kl__sorted amounts = kl__members(kl_value_at(o, "status", members[i], NULL));
        const kl__place *in = KL_IN(STATUS, members[i]);
        for (size_t k = 0; k < amounts.len; k++)
            kl__check_quantity(c, amounts.v[k].key, amounts.v[k].v, KL_IN(in, amounts.v[k].key));
        kl_free(amounts.v);
    }
}

static void check_ranges(kl__causes *c, const kl_value *list)
{
    const kl__place *at = KL_IN(SPEC, "podCIDRs");
    size_t before = c->len, len = kl_value_len(list), v6 = 0;
    for (size_t i = 0; i < len; i++) {
        const char *text = kl__item_text(list, i);
        kl__check_form(c, KL_ITEM(at, i), text, KL_CIDR);
        v6 += strchr(text, ':') != NULL;
    }
    if (c->len == before && len > 1 && (len > 2 || v6 != 1))
        kl__say_invalid(c, at, list, "may specify no more than one CIDR for each IP family");
}

/* Forbidden changes of an update, also of the status. */
static void check_update(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *list = kl_value_at(w->o, "status", "addresses", NULL), *spec = kl_value_get(w->o, "spec"),
                   *old = kl_value_get(w->old, "spec"), *had = kl_value_get(old, "podCIDRs");
    const kl__place *in = KL_IN(STATUS, "addresses");
    kl_finder addresses = {0};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        if (!kl_finder_repeats(&addresses, kl_value_item(list, i)))
            continue;
        const kl_value *shown = kl__as_go(kl_value_item(list, i), "Type Address");
        kl__say_duplicate(c, KL_ITEM(in, i), shown);
        kl_value_unref(shown);
    }
    kl_finder_fini(&addresses);
    if (kl_value_len(had) && !kl_value_equal(had, kl_value_get(spec, "podCIDRs")))
        kl__say_forbidden(
            c, KL_IN(SPEC, "podCIDRs"), "node updates may not change podCIDR except from \"\" to valid");
    if (*kl__text(old, "providerID") && !kl__is(spec, "providerID", kl__text(old, "providerID")))
        kl__say_forbidden(
            c, KL_IN(SPEC, "providerID"), "node updates may not change providerID except from \"\" to valid");
    if (strcmp(kl__text(old, "externalID"), kl__text(spec, "externalID")) != 0)
        kl__say_forbidden(c, KL_IN(SPEC, "externalID"), "may not be updated");
}

void kl__check_node(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec");
    check_taints(w->causes, kl_value_get(spec, "taints"));
    if (!w->old || !kl_value_equal(kl_value_get(w->old, "status"), kl_value_get(w->o, "status")))
        check_amounts(w->causes, w->o);
    check_ranges(w->causes, kl_value_get(spec, "podCIDRs"));
    if (w->old)
        check_update(w);
}

void kl__check_node_status(const kl__write *w)
{
    check_amounts(w->causes, w->o);
    check_update(w);
}
