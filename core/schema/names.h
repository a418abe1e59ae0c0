/* names.h - kube-apiserver's messages about invalid names; model/names.h decides. Pure; any thread. */
#ifndef KL_SCHEMA_NAMES_H
#define KL_SCHEMA_NAMES_H

#include "schema/kinds.h"

#define KL_LABEL_REGEX "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define KL_SUBDOMAIN_REGEX KL_LABEL_REGEX "(\\." KL_LABEL_REGEX ")*"
#define KL_REGEX_USED(regex) "regex used for validation is '" regex "')"

#define KL_NO_LABEL                                                                                          \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "  \
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', " KL_REGEX_USED(KL_LABEL_REGEX)
#define KL_NO_SUBDOMAIN                                                                                      \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "    \
    "must start and end with an alphanumeric character (e.g. 'example.com', " KL_REGEX_USED(                 \
        KL_SUBDOMAIN_REGEX)
#define KL_NO_LABEL_1035                                                                                     \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "  \
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', " KL_REGEX_USED(      \
        "[a-z]([-a-z0-9]*[a-z0-9])?")

#define KL_NAME_TOO_LONG(n) "must be no more than " #n " characters"

#define KL_FAULTS_MAX 5
/* The faults of a label's key, "example.com/name", and of its value: static sentences, and their number. */
size_t kl__qualified_faults(const char *s, const char *out[KL_FAULTS_MAX]);
size_t kl__label_value_faults(const char *s, const char *out[KL_FAULTS_MAX]);

/* The fault of the name of an object of that kind, or NULL. Static. */
const char *kl__bad_name(const kl__kind *k, const char *name);

#endif
