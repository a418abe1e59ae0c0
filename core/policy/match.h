/* match.h - whether rules and selectors of webhooks and policies match a request. Under the lock that guards
 * the kinds. */
#ifndef KL_POLICY_MATCH_H
#define KL_POLICY_MATCH_H

#include "schema/kinds.h"
#include "value/value.h"

#define KL_ADMISSION_GROUP "admissionregistration.k8s.io"

/* A request as rules see it. Everything is borrowed. */
typedef struct kl_match {
    const kl__kinds *kinds;
    const kl__kind *kind;
    const char *operation;   /* "CREATE", "UPDATE", "DELETE" */
    const char *sub, *ns;    /* or NULL */
    const char *name;        /* NULL: rules with resourceNames do not match it */
    const kl_value *old, *o; /* the old object, the new object; or NULL */
} kl_match;

/* The kind, in one of its versions, for which the rules (RuleWithOperations, or with resourceNames) match the
 * request; NULL: none. `policy` is a matchPolicy. */
const kl__kind *kl_match_kind(const kl_match *m, const kl_value *rules, const char *policy);
/* Whether namespaceSelector and objectSelector of `holder` select the request. */
bool kl_match_selects(const kl_match *m, const kl_value *holder);
/* A LabelSelector that is absent or empty selects everything; an invalid one selects nothing. */
bool kl_match_labels(const kl_value *selector, const kl_value *labels);
/* The namespace of the request, borrowed; NULL: it has none. */
const kl_value *kl_match_namespace(const kl_match *m);
/* Whether the request is about a namespace itself. */
bool kl_match_own(const kl_match *m);

#endif
