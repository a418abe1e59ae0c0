/* names.c - the names that objects of a kind may have, and the faults of labels. */
#include "schema/names.h"

#include <string.h>

#include "base/mem.h"
#include "model/names.h"

const char *kl__bad_name(const kl__kind *k, const char *name)
{
    if (kl__kind_among(k, "networking.k8s.io/ipaddresses"))
        return NULL; /* core/serving says more */
    /* any part of a path */
    if (kl__kind_among(k,
            "rbac.authorization.k8s.io/roles rbac.authorization.k8s.io/clusterroles "
            "rbac.authorization.k8s.io/rolebindings rbac.authorization.k8s.io/clusterrolebindings "
            "apiregistration.k8s.io/apiservices"))
        return kl_name_path_segment(name);
    size_t n = strlen(name);
    if (kl__kind_among(k, "/namespaces /services")) {
        bool service = kl__kind_among(k, "/services");
        if (n > KL_NAME_LABEL_MAX)
            return "must be no more than 63 characters";
        if (service)
            return kl_name_dns1035_label(name) ? KL_NO_LABEL_1035 : NULL;
        if (!kl_name_dns1123_label(name))
            return NULL;
        return kl_name_dns1123_subdomain(name) ? KL_NO_LABEL : "must not contain dots";
    }
    if (n > KL_NAME_SUBDOMAIN_MAX)
        return "must be no more than 253 characters";
    return kl_name_dns1123_subdomain(name) ? KL_NO_SUBDOMAIN : NULL;
}

#define ALNUM "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define QUALIFIED_REGEX "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
#define QUALIFIED_WORDS                                                                                      \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " \
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', " KL_REGEX_USED(QUALIFIED_REGEX)

size_t kl__qualified_faults(const char *s, const char *out[KL_FAULTS_MAX])
{
    if (!kl_name_qualified(s))
        return 0;
    const char *slash = strchr(s, '/'), *name = slash ? slash + 1 : s;
    size_t n = 0;
    if (strchr(name, '/')) {
        out[0] = "a qualified name " QUALIFIED_WORDS
                 " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
        return 1;
    }
    if (slash == s)
        out[n++] = "prefix part must be non-empty";
    else if (slash) {
        char *prefix = kl_strndup(s, (size_t)(slash - s));
        const char *why = kl_name_dns1123_subdomain(prefix);
        if (why && slash - s > KL_NAME_SUBDOMAIN_MAX)
            out[n++] = "prefix part " KL_NAME_TOO_LONG(253);
        else if (why)
            out[n++] = "prefix part " KL_NO_SUBDOMAIN;
        kl_free(prefix);
    }
    if (!*name)
        out[n++] = "name part must be non-empty";
    else if (strlen(name) > KL_NAME_LABEL_MAX)
        out[n++] = "name part " KL_NAME_TOO_LONG(63);
    char head[KL_NAME_LABEL_MAX + 1] = {0};
    strncpy(head, name, KL_NAME_LABEL_MAX);
    if (!*head || kl_name_qualified(head))
        out[n++] = "name part " QUALIFIED_WORDS;
    return n;
}

static const char bad_value[] =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', " KL_REGEX_USED("(" QUALIFIED_REGEX ")?");

size_t kl__label_value_faults(const char *s, const char *out[KL_FAULTS_MAX])
{
    if (!kl_name_label_value(s))
        return 0;
    size_t n = 0, len = strlen(s);
    if (len > KL_NAME_LABEL_MAX)
        out[n++] = KL_NAME_TOO_LONG(63);
    if (strspn(s, ALNUM "-_.") < len || !strchr(ALNUM, s[0]) || !strchr(ALNUM, s[len - 1]))
        out[n++] = bad_value;
    return n;
}
