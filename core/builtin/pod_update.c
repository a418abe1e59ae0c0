/* pod_update.c - mutable fields of a pod's spec. Other changes are reported as by kube-apiserver, with a
 * diff; it prints its own structs there, we print JSON. */
#include "builtin/pod.h"

#include <string.h>

#include "base/mem.h"
#include "schema/edit.h"

static bool check_length(
    kl__causes *c, const kl_value *old, const kl_value *now, const char *member, const kl__place *at)
{
    if (kl_value_len(kl_value_get(old, member)) == kl_value_len(kl_value_get(now, member)))
        return true;
    kl__say_forbidden(c, KL_IN(at, member), "pod updates may not add or remove containers");
    return false;
}

/* kube-apiserver checks images of an update again. */
static void check_images(kl__causes *c, const kl_value *spec, const char *member, const kl__place *at)
{
    const kl_value *list = kl_value_get(spec, member);
    for (size_t i = 0; i < kl_value_len(list); i++)
        if (!*kl__text(kl_value_item(list, i), "image"))
            kl__say_required(c, KL_IN(KL_ITEM(KL_IN(at, member), i), "image"), "");
}

static bool check_deadline(kl__causes *c, const kl_value *old, const kl_value *now, const kl__place *up)
{
    const kl_value *was = kl_value_get(old, "activeDeadlineSeconds"),
                   *is = kl_value_get(now, "activeDeadlineSeconds");
    const kl__place *at = KL_IN(up, "activeDeadlineSeconds");
    int64_t n = kl_value_int_at(is, 0, NULL);
    if (is && (n < 0 || n > INT32_MAX))
        kl__say_invalid(c, at, is, "must be between 0 and 2147483647, inclusive");
    else if (is && was && n > kl_value_int_at(was, 0, NULL))
        kl__say_invalid(c, at, is, "must be less than or equal to previous value");
    else {
        if (!is && was)
            kl__say_invalid(c, at, NULL, "must not update from a positive integer to nil value");
        return true;
    }
    return false;
}

/* Tolerations may change their seconds, and new ones may come. */
static void check_tolerations(kl__causes *c, const kl_value *old, const kl_value *now, const kl__place *up)
{
    static const char *const kept[] = {"operator", "value", "effect", NULL};
    const kl_value *was = kl_value_get(old, "tolerations"), *is = kl_value_get(now, "tolerations");
    const kl__place *at = KL_IN(up, "tolerations");
    kl_finder present = {.key = "key", .more = kept, .empty_is_absent = true};
    kl_finder_add_all(&present, is);
    bool all = true;
    for (size_t i = 0; i < kl_value_len(was) && all; i++)
        all = kl_finder_find(&present, kl_value_item(was, i)) >= 0;
    kl_finder_fini(&present);
    if (all)
        kl__check_tolerations(c, is, at);
    else
        kl__say_forbidden(c, at, "existing toleration can not be modified except its tolerationSeconds");
}

static void check_gates(kl__causes *c, const kl_value *old, const kl_value *now, const kl__place *up)
{
    const kl_value *is = kl_value_get(now, "schedulingGates");
    kl_finder was = {.key = "name", .empty_is_absent = true};
    kl_finder_add_all(&was, kl_value_get(old, "schedulingGates"));
    for (size_t i = 0; i < kl_value_len(is); i++)
        if (kl_finder_find(&was, kl_value_item(is, i)) < 0)
            kl__say_forbidden(c, KL_IN(KL_ITEM(KL_IN(up, "schedulingGates"), i), "name"),
                "only deletion is allowed, but found new scheduling gate '%s'",
                kl__text(kl_value_item(is, i), "name"));
    kl_finder_fini(&was);
}

/* The containers in `now`, with the images of those in `old`. */
static const kl_value *with_images(const kl_value *now, const kl_value *old)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(now); i++) {
        const kl_value *one = kl_value_ref(kl_value_item(now, i));
        KL_EDIT(&one, kl_value_ref(kl_value_get(kl_value_item(old, i), "image")), "image");
        kl_build_value(b, one);
        kl_value_unref(one);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* The new spec, with the old values of all mutable fields. A new reference. */
static const kl_value *munged(const kl_value *old, const kl_value *now)
{
    static const char *const lists[] = {"containers", "initContainers"};
    static const char *const open[] = {"activeDeadlineSeconds", "schedulingGates", "tolerations"};
    static const char *const gated[] = {"nodeSelector", "affinity"};
    const kl_value *o = kl_value_ref(now);
    for (size_t i = 0; i < 2; i++)
        if (kl_value_len(kl_value_get(now, lists[i])))
            KL_EDIT(&o, with_images(kl_value_get(now, lists[i]), kl_value_get(old, lists[i])), lists[i]);
    for (size_t i = 0; i < 3; i++)
        if (kl_value_get(o, open[i]) || kl_value_get(old, open[i]))
            KL_EDIT(&o, kl_value_ref(kl_value_get(old, open[i])), open[i]);
    if (kl_value_int_at(old, 0, "terminationGracePeriodSeconds", NULL) < 0
        && kl_value_int_at(o, 0, "terminationGracePeriodSeconds", NULL) == 1)
        KL_EDIT(&o, kl_value_ref(kl_value_get(old, "terminationGracePeriodSeconds")),
            "terminationGracePeriodSeconds");
    for (size_t i = 0; i < 2 && kl_value_len(kl_value_get(old, "schedulingGates")); i++)
        if (kl_value_get(o, gated[i]) || kl_value_get(old, gated[i]))
            KL_EDIT(&o, kl_value_ref(kl_value_get(old, gated[i])), gated[i]);
    return o;
}

void kl__check_pod_update(kl__causes *c, const kl_value *old_pod, const kl_value *pod)
{
    const kl_value *old = kl_value_get(old_pod, "spec"), *now = kl_value_get(pod, "spec");
    const kl__place *at = KL_IN(NULL, "spec");
    if (!check_length(c, old, now, "containers", at))
        return;
    check_images(c, now, "containers", at);
    if (!check_length(c, old, now, "initContainers", at))
        return;
    check_images(c, now, "initContainers", at);
    if (!check_deadline(c, old, now, at))
        return;
    check_tolerations(c, old, now, at);
    check_gates(c, old, now, at);
    const kl_value *kept = munged(old, now);
    if (!kl_value_equal(kept, old)) {
        kl_buf diff = KL_BUF_INIT;
        kl__show_difference(old, kept, &diff);
        kl__say_forbidden(c, at,
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions "
            "to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
            "was previously negative)\n%s",
            kl_buf_str(&diff));
        kl_buf_fini(&diff);
    }
    kl_value_unref(kept);
}
