/* rule.c - the lists of a rule that webhooks and policies have in common. */
#include "policy/rule.h"

/* Checks a list: it is not empty, and "*" stands alone. */
static void check_words(
    kl__causes *c, const kl_value *rule, const char *member, const char *what, const kl__place *at)
{
    const kl_value *list = kl_value_get(rule, member);
    const kl__place *in = KL_IN(at, member);
    if (!kl_value_len(list))
        kl__say_required(c, in, "");
    if (kl_value_len(list) > 1 && kl_value_has_str(list, "*"))
        kl__say_invalid(c, in, list, "if '*' is present, must not specify other %s", what);
}

void kl__check_rule_head(kl__causes *c, const kl_value *rule, const kl__place *at)
{
    static const char words[] = "* CONNECT CREATE DELETE UPDATE";
    const kl_value *ops = kl_value_get(rule, "operations"), *versions = kl_value_get(rule, "apiVersions");
    check_words(c, rule, "operations", "operations", at);
    for (size_t i = 0; i < kl_value_len(ops); i++)
        if (!kl__one_of(kl__item_text(ops, i), words))
            kl__say_unsupported(c, KL_ITEM(KL_IN(at, "operations"), i), kl_value_item(ops, i), words);
    check_words(c, rule, "apiGroups", "API groups", at);
    check_words(c, rule, "apiVersions", "API versions", at);
    for (size_t i = 0; i < kl_value_len(versions); i++)
        if (!*kl__item_text(versions, i))
            kl__say_required(c, KL_ITEM(KL_IN(at, "apiVersions"), i), "");
}
