/* conditions.c - metav1.Condition, as kube-apiserver checks it where it does. */
#include "check/conditions.h"

#include <string.h>

#include "check/forms.h"

#define REASON_MAX 1024
#define MESSAGE_MAX (32 * 1024)

static bool reason_fits(const char *s)
{
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    size_t n = strlen(s);
    bool letter = (*s >= 'A' && *s <= 'Z') || (*s >= 'a' && *s <= 'z');
    return letter && strchr(word, s[n - 1])
        && strspn(s, "_,:ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == n;
}

static void check_condition(kl__causes *c, const kl_value *o, const kl__place *at)
{
    const char *status = kl__text(o, "status"), *reason = kl__text(o, "reason");
    int64_t generation = kl_value_int_at(o, 0, "observedGeneration", NULL);
    kl__check_form(c, KL_IN(at, "type"), kl__text(o, "type"), KL_QUALIFIED);
    if (!kl__one_of(status, "False True Unknown"))
        kl__say_unsupported(c, KL_IN(at, "status"), kl_value_get(o, "status"), "False True Unknown");
    if (generation < 0)
        kl__say_invalid_int(
            c, KL_IN(at, "observedGeneration"), generation, "must be greater than or equal to zero");
    kl__check_present(c, o, at, "lastTransitionTime");
    kl__check_present(c, o, at, "reason");
    if (*reason && !reason_fits(reason))
        kl__say_invalid(c, KL_IN(at, "reason"), kl_value_get(o, "reason"),
            "a condition reason must start with alphabetic character, optionally followed by a string of "
            "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
            "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or "
            "'ReasonA:ReasonB', " KL_REGEX_USED("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"));
    if (strlen(reason) > REASON_MAX)
        kl__say_too_long(c, KL_IN(at, "reason"), REASON_MAX);
    if (strlen(kl__text(o, "message")) > MESSAGE_MAX)
        kl__say_too_long(c, KL_IN(at, "message"), MESSAGE_MAX);
}

/* A repeated type is reported before the faults of its condition. */
void kl__check_conditions(kl__causes *c, const kl_value *list, const kl__place *at)
{
    kl_finder types = {.key = "type", .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        if (kl_finder_repeats(&types, one))
            kl__say_duplicate(c, KL_IN(KL_ITEM(at, i), "type"), kl_value_get(one, "type"));
        check_condition(c, one, KL_ITEM(at, i));
    }
    kl_finder_fini(&types);
}
