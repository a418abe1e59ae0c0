/* rule.c - the lists of a rule that webhooks and policies have in common. */
#include "policy/rule.h"

#include "check/forms.h"

void kl__check_rule_head(kl__causes *c, const kl_value *rule, const kl__place *at)
{
    static const char words[] = "* CONNECT CREATE DELETE UPDATE";
    const kl_value *ops = kl_value_get(rule, "operations"), *versions = kl_value_get(rule, "apiVersions");
    kl__check_star_list(c, rule, "operations", "", "operations", at);
    for (size_t i = 0; i < kl_value_len(ops); i++)
        if (!kl__one_of(kl__item_text(ops, i), words))
            kl__say_unsupported(c, KL_ITEM(KL_IN(at, "operations"), i), kl_value_item(ops, i), words);
    kl__check_star_list(c, rule, "apiGroups", "", "API groups", at);
    kl__check_star_list(c, rule, "apiVersions", "", "API versions", at);
    for (size_t i = 0; i < kl_value_len(versions); i++)
        if (!*kl__item_text(versions, i))
            kl__say_required(c, KL_ITEM(KL_IN(at, "apiVersions"), i), "");
}
