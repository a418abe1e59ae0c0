/* names.h - what Kubernetes accepts as a name. Pure; any thread.
 *
 * Each check returns NULL when the text is valid, and otherwise a static phrase to follow the text: "must
 * consist of ...". Lengths are in bytes. */
#ifndef KL_MODEL_NAMES_H
#define KL_MODEL_NAMES_H

#include <stddef.h>

#define KL_NAME_LABEL_MAX 63
#define KL_NAME_SUBDOMAIN_MAX 253

const char *kl_name_dns1123_label(const char *s);     /* namespaces, containers: "my-name" */
const char *kl_name_dns1123_subdomain(const char *s); /* most objects: "a.example.com" */
const char *kl_name_dns1035_label(const char *s);     /* services: starts with a letter */
/* label and annotation keys, finalizers, resources: "example.com/My_name" */
const char *kl_name_qualified(const char *s);
const char *kl_name_label_value(const char *s); /* "" or like the name part of a qualified name */
const char *kl_name_port(const char *s);        /* container ports */
const char *kl_name_config_map_key(const char *s);
const char *kl_name_env_var(const char *s);
const char *kl_name_percent(const char *s);        /* "25%" */
const char *kl_name_annotation_key(const char *s); /* as qualified, upper case in the domain allowed */
/* "10.1.2.3", "2001:db8::1": no leading zeros, no zone, no IPv4 in IPv6 */
const char *kl_name_ip(const char *s);
const char *kl_name_cidr(const char *s); /* "10.1.0.0/16": no bits beyond the prefix */
/* one segment of a URL's path: not ".", "..", no '/' or '%' */
const char *kl_name_path_segment(const char *s);

typedef const char *kl_name_check(const char *s);
/* The check of a rule's name, "dns1123_label", "qualified", ...; NULL when there is none. kl_name_rules()
 * gives the names, NULL-terminated. */
kl_name_check *kl_name_rule(const char *rule);
const char *const *kl_name_rules(void);

/* generateName: the base is cut so that five more characters fit into a label. `random` gives the
 * characters. */
#define KL_NAME_GENERATED_MAX 64
#define KL_NAME_SUFFIX_LEN 5
char *kl_name_generate(const char *base, unsigned (*random)(void *arg, unsigned below), void *arg,
    char out[KL_NAME_GENERATED_MAX]);
/* The result of `check` for a generateName's base, which may end with '-' because more characters follow. */
const char *kl_name_prefix(const char *base, const char *(*check)(const char *));

#endif
