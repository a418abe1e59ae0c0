/* metadata.c - labels, annotations and owner references of every object. */
#include <string.h>

#include "base/mem.h"
#include "schema/validate.h"

static bool alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool name_part(const char *s, size_t n)
{
    if (!n || n > 63 || !alnum(s[0]) || !alnum(s[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!alnum(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
            return false;
    return true;
}

static const char qualified[] = "name part must consist of alphanumeric characters, '-', '_' or '.', and "
                                "must start and end with an alphanumeric character "
                                "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

static bool qualified_name(const char *key, size_t n)
{
    const char *slash = memchr(key, '/', n);
    if (slash && slash == key)
        return false;
    const char *name = slash ? slash + 1 : key;
    return name_part(name, (size_t)(key + n - name)) && !memchr(name, '/', (size_t)(key + n - name));
}

static void check_map(const char *at, const kl_value *o, const char *which, bool values, kl__causes *causes)
{
    const kl_value *map = kl_value_at(o, "metadata", which, NULL);
    char *field = kl_sprintf("%smetadata.%s", at, which);
    for (size_t i = 0; i < kl_value_len(map); i++) {
        const char *key;
        size_t n, len = 0;
        const kl_value *v = kl_value_member(map, i, &key, &n);
        const char *text = kl_value_strn(v, &len);
        if (!qualified_name(key, n)) {
            const kl_value *k = kl_value_of_strn(key, n);
            kl__cause_invalid(causes, field, k, "%s", qualified);
            kl_value_unref(k);
        }
        if (values && text && len && !name_part(text, len))
            kl__cause_invalid(causes, field, v,
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
                "'.', and must start and end with an "
                "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
                "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
    }
    kl_free(field);
}

static void check(const char *at, const kl_value *o, kl__causes *causes)
{
    check_map(at, o, "labels", true, causes);
    check_map(at, o, "annotations", false, causes);
    const kl_value *owners = kl_value_at(o, "metadata", "ownerReferences", NULL);
    int controllers = 0;
    for (size_t i = 0; i < kl_value_len(owners); i++) {
        static const char *const must[] = {"apiVersion", "kind", "name", "uid"};
        const kl_value *owner = kl_value_item(owners, i);
        for (size_t k = 0; k < 4; k++) {
            const char *text = kl_value_str(kl_value_get(owner, must[k]));
            if (!text || !*text) {
                char *field = kl_sprintf("%smetadata.ownerReferences[%zu].%s", at, i, must[k]);
                kl__cause_add(causes, "FieldValueInvalid", field, "Invalid value: \"\": must not be empty");
                kl_free(field);
            }
        }
        controllers += kl_value_bool(kl_value_get(owner, "controller"), false);
    }
    if (controllers > 1) {
        char *field = kl_sprintf("%smetadata.ownerReferences", at);
        kl__cause_add(causes, "FieldValueInvalid", field,
            "Invalid value: only one reference can have Controller set to true");
        kl_free(field);
    }
}

void kl__validate_metadata(const kl_value *o, kl__causes *causes) { check("", o, causes); }

void kl__validate_metadata_at(const char *path, const kl_value *o, kl__causes *causes)
{
    char *at = kl_sprintf("%s.", path);
    check(at, o, causes);
    kl_free(at);
}
