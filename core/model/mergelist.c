/* mergelist.c - the lists of the built-in kinds whose elements have names, by the fields they stand in. */
#include "model/mergelist.h"

#include <string.h>

static const struct {
    const char *field;
    bool everywhere;
    kl_merge_keys how;
} known[] = {
    {"finalizers", true, {.set = true}},
    {"ownerReferences", true, {.keys = {"uid"}}},
    {"conditions", true, {.keys = {"type"}}},
    {"containers", false, {.keys = {"name"}}},
    {"initContainers", false, {.keys = {"name"}}},
    {"ephemeralContainers", false, {.keys = {"name"}}},
    {"env", false, {.keys = {"name"}}},
    {"volumes", false, {.keys = {"name"}}},
    {"volumeMounts", false, {.keys = {"mountPath"}}},
    {"volumeDevices", false, {.keys = {"devicePath"}}},
    {"imagePullSecrets", false, {.keys = {"name"}}},
    {"secrets", false, {.keys = {"name"}}},
    {"hostAliases", false, {.keys = {"ip"}}},
    {"topologySpreadConstraints", false, {.keys = {"topologyKey", "whenUnsatisfiable"}}},
    {"schedulingGates", false, {.keys = {"name"}}},
    {"resourceClaims", false, {.keys = {"name"}}},
    {"claims", false, {.keys = {"name"}}},
    {"webhooks", false, {.keys = {"name"}}},
    {"ports", false, {.keys = {"containerPort", "protocol"}}},
    {"ports", false, {.keys = {"port", "protocol"}}},
};

static bool have(const kl_value *list, const kl_merge_keys *k)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *x = kl_value_item(list, i);
        if (k->set ? kl_value_type(x) != KL_STRING : !kl_value_get(x, k->keys[0]))
            return false;
    }
    return true;
}

bool kl_merge_keys_of(
    const char *field, bool builtin, const kl_value *a, const kl_value *b, kl_merge_keys *out)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].field, field) && (builtin || known[i].everywhere) && have(a, &known[i].how)
            && have(b, &known[i].how)) {
            *out = known[i].how;
            return true;
        }
    return false;
}

static bool same_key(const char *key, const kl_value *x, const kl_value *y)
{
    const kl_value *a = kl_value_get(x, key), *b = kl_value_get(y, key);
    if (!strcmp(key, "protocol") && (!a || !b)) { /* the server's default */
        const char *p = a ? kl_value_str(a) : b ? kl_value_str(b) : "TCP";
        return p && !strcmp(p, "TCP");
    }
    return a == b || (a && b && kl_value_equal(a, b));
}

bool kl_merge_same(const kl_merge_keys *k, const kl_value *x, const kl_value *y)
{
    if (k->set)
        return kl_value_equal(x, y);
    for (size_t i = 0; i < KL_MERGE_KEYS_MAX && k->keys[i]; i++)
        if (!same_key(k->keys[i], x, y))
            return false;
    return true;
}

size_t kl_merge_find(const kl_merge_keys *k, const kl_value *list, const kl_value *x)
{
    size_t i = 0, n = kl_value_len(list);
    while (i < n && !kl_merge_same(k, kl_value_item(list, i), x))
        i++;
    return i;
}

bool kl_merge_builtin(const char *group)
{
    size_t n = group ? strlen(group) : 0;
    return !n || !strchr(group, '.')
        || (n > 7 && !strcmp(group + n - 7, ".k8s.io") && !strstr(group, ".x-k8s.io"));
}
