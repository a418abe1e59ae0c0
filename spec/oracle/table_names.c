/* table_names.c - of backoff_time_names: what may be a name, and parts in percent. Our messages have words
 * of their own, so of a check only its verdict is compared. */
#include <string.h>
#include "model/names.h"
#include "value/share.h"
#include "oracle.h"

static kl_status verdict(const oracle_case *c, kl_name_check *check, kl_builder *b, kl_err *err)
{
    const char *s;
    kl_status st = oracle_str(c->in, "s", &s, err);

    if (!st)
        oracle_build_bool(b, "valid", !check(s));
    return st;
}

static bool same_verdict(const oracle_case *c, const kl_value *got)
{
    return kl_value_equal(kl_value_get(c->want, "valid"), kl_value_get(got, "valid"));
}

#define CHECK(op, check)                                                                                     \
    static kl_status op(const oracle_case *c, kl_builder *b, kl_err *err)                                    \
    {                                                                                                        \
        return verdict(c, check, b, err);                                                                    \
    }
CHECK(dns1123_label, kl_name_dns1123_label)
CHECK(dns1123_subdomain, kl_name_dns1123_subdomain)
CHECK(dns1035_label, kl_name_dns1035_label)
CHECK(qualified_name, kl_name_qualified)
CHECK(label_value, kl_name_label_value)
CHECK(port_name, kl_name_port)
CHECK(config_map_key, kl_name_config_map_key)
CHECK(env_var_name, kl_name_env_var)
CHECK(percent, kl_name_percent)
CHECK(ip, kl_name_ip)
CHECK(cidr, kl_name_cidr)

static void build_complaints(kl_builder *b, const char *path, size_t n)
{
    kl_build_key(b, "errors");
    kl_build_array(b);
    while (n--) {
        kl_build_object(b);
        kl_build_kstr(b, "path", path);
        kl_build_kstr(b, "type", "FieldValueInvalid");
        kl_build_end(b);
    }
    kl_build_end(b);
}

static kl_status annotations(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *all = kl_value_get(c->in, "annotations");
    const char *key;
    size_t n = 0, i;

    (void)err;
    for (i = 0; kl_value_member(all, i, &key, NULL); i++)
        n += kl_name_annotation_key(key) != NULL;
    build_complaints(b, "metadata.annotations", n);
    return KL_OK;
}

static kl_status finalizer_name(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const char *s;
    kl_status st = oracle_str(c->in, "s", &s, err);

    if (!st)
        build_complaints(b, "metadata.finalizers", kl_name_qualified(s) != NULL);
    return st;
}

/* Go says two things about an empty name where we say one. */
static bool same_complaint(const oracle_case *c, const kl_value *got)
{
    const kl_value *want = kl_value_get(c->want, "errors"), *have = kl_value_get(got, "errors");

    return !kl_value_len(want) == !kl_value_len(have)
        && kl_value_equal(kl_value_item(want, 0), kl_value_item(have, 0));
}

static unsigned last_letter(void *seen, unsigned below)
{
    ++*(int *)seen;
    return below - 1;
}

static unsigned nth_letter(void *n, unsigned below) { return (unsigned)*(int *)n % below; }

static kl_status generate_name(const oracle_case *c, kl_builder *b, kl_err *err)
{
    char name[KL_NAME_GENERATED_MAX], alphabet[KL_NAME_GENERATED_MAX];
    const char *base;
    int asked = 0, i;
    kl_status st = oracle_str(c->in, "base", &base, err);
    size_t total;

    if (st)
        return st;
    total = strlen(kl_name_generate(base, last_letter, &asked, name));
    name[total - (size_t)asked] = '\0';
    kl_build_kstr(b, "prefix", name);
    kl_build_kint(b, "suffixLen", asked);
    kl_build_kint(b, "totalLen", (int64_t)total);
    for (i = 0; i < 27; i++) {
        char one[KL_NAME_GENERATED_MAX];

        alphabet[i] = kl_name_generate("", nth_letter, &i, one)[0];
    }
    alphabet[i] = '\0';
    kl_build_kstr(b, "suffixAlphabet", alphabet);
    return KL_OK;
}

static kl_status generate_name_prefix_valid(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const char *base;
    kl_status st = oracle_str(c->in, "base", &base, err);

    if (st)
        return st;
    oracle_build_bool(b, "label", !kl_name_prefix(base, kl_name_dns1123_label));
    oracle_build_bool(b, "subdomain", !kl_name_prefix(base, kl_name_dns1123_subdomain));
    return KL_OK;
}

static kl_status int_or_string(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *v = NULL;
    const char *json;
    int64_t total, value = 0;
    kl_status st = oracle_str(c->in, "json", &json, err);

    if (!st)
        st = oracle_int(c->in, "total", &total, err);
    if (!st && kl_value_decode(json, strlen(json), &v, err))
        st = KL_EINVAL;
    if (!st)
        st = kl_share_of(v, total, kl_value_bool(kl_value_get(c->in, "roundUp"), false), &value, err);
    kl_value_unref(v);
    if (!st)
        kl_build_kint(b, "value", value);
    return st;
}

static bool same_value(const oracle_case *c, const kl_value *got)
{
    return kl_value_equal(kl_value_get(c->want, "value"), kl_value_get(got, "value"));
}

static const oracle_op ops[] = {
    {"dns1123_label", dns1123_label, same_verdict},
    {"dns1123_subdomain", dns1123_subdomain, same_verdict},
    {"dns1035_label", dns1035_label, same_verdict},
    {"qualified_name", qualified_name, same_verdict},
    {"label_value", label_value, same_verdict},
    {"port_name", port_name, same_verdict},
    {"config_map_key", config_map_key, same_verdict},
    {"env_var_name", env_var_name, same_verdict},
    {"percent", percent, same_verdict},
    {"ip", ip, same_verdict},
    {"cidr", cidr, same_verdict},
    {"annotations", annotations, same_complaint},
    {"finalizer_name", finalizer_name, same_complaint},
    {"generate_name", generate_name, NULL},
    {"generate_name_prefix_valid", generate_name_prefix_valid, NULL},
    {"int_or_string", int_or_string, same_value},
    {0},
};
ORACLE_TABLE("backoff_time_names", ops)
