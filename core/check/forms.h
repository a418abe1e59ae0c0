/* forms.h - kube-apiserver's messages about invalid names, labels, ports and addresses. model/names.h decides
 * what is valid; these messages are made for invalid texts only. Pure; any thread. */
#ifndef KL_CHECK_FORMS_H
#define KL_CHECK_FORMS_H

#include "check/check.h"
#include "schema/names.h"

typedef enum kl__form {
    KL_DNS_LABEL,
    KL_DNS_SUBDOMAIN,
    KL_DNS_1035,
    KL_DNS_WILDCARD,
    KL_QUALIFIED,
    KL_LABEL_VALUE,
    KL_PORT_NAME,
    KL_CONFIG_KEY,
    KL_ENV_NAME,
    KL_PERCENT,
    KL_HEADER_NAME,
    KL_PATH_SEGMENT,
    KL_HTTP_PATH,
    KL_IP,
    KL_CIDR,
} kl__form;

/* The faults of `text`: static sentences; returns their number. 0: it is valid. */
size_t kl__faults(const char *text, kl__form f, const char *out[KL_FAULTS_MAX]);
/* One complaint for each fault, about the text at that place. */
void kl__check_form(kl__causes *c, const kl__place *at, const char *text, kl__form f);
/* The same for a member of `o`, unless it is absent or empty. Returns whether there was a complaint. */
bool kl__check_member(kl__causes *c, const kl_value *o, const kl__place *at, const char *member, kl__form f);

/* Checks labels; every complaint names the place of the map, not of the label. `labels` may be NULL. */
void kl__check_labels(kl__causes *c, const kl_value *labels, const kl__place *at);
/* Checks a list of a rule (verbs, groups...): an empty list is a complaint with the text `missing`, which may
 * be "", and "*" must stand alone. Returns whether the caller must check the items. */
bool kl__check_star_list(kl__causes *c, const kl_value *rule, const char *member, const char *missing,
    const char *others, const kl__place *at);
/* metav1.LabelSelector, or NULL */
void kl__check_selector(kl__causes *c, const kl_value *selector, const kl__place *at);
/* a number from 1 to 65535, or a text that is a port's name; `at` is the port's place. NULL is 0. */
void kl__check_port(kl__causes *c, const kl_value *port, const kl__place *at);
/* no segment of the path is ".." */
void kl__check_no_way_up(kl__causes *c, const kl__place *at, const char *path);
/* the same, and it does not begin with '/' */
void kl__check_relative_path(kl__causes *c, const kl__place *at, const char *path);

#endif
