/* names.c - the names that objects of a kind may have. */
#include "schema/names.h"

#include <string.h>

#include "model/names.h"

const char *kl__bad_name(const kl__kind *k, const char *name)
{
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
