/* rules.h - x-kubernetes-validations of a schema: compiled once, checked against each written object.
 * Immutable once made; any thread. */
#ifndef KL_RULES_RULES_H
#define KL_RULES_RULES_H

#include "cel/cel.h"

typedef struct kl_cel_rules kl_cel_rules;

/* A complaint about an object or a schema: `reason` as in causes ("FieldValueInvalid"), the field, and the
 * message. `warns`: the fault is old, so it is only a warning. */
typedef void kl_cel_complain(
    void *arg, bool warns, const char *reason, const char *field, const char *message);

/* The rules in a structural schema of a resource, or NULL when it has none. `complain` (may be NULL) is
 * called for rules that are invalid or may cost too much, with fields that begin with `path`. `accepted`: the
 * same schema was accepted before, so only the total of its costs counts. */
kl_cel_rules *kl_cel_rules_new(
    const kl_value *schema, const char *path, bool accepted, kl_cel_complain *complain, void *arg);
/* Whether the defaults in that schema satisfy the rules; the fields of complaints begin with `path`. */
void kl_cel_rules_check_defaults(
    const kl_cel_rules *r, const char *path, kl_cel_complain *complain, void *arg);
void kl_cel_rules_free(kl_cel_rules *r); /* NULL is fine */

/* Whether `object` satisfies the rules; `old` is the object that it replaces, or NULL. An unchanged part that
 * broke a rule before gets only a warning. */
void kl_cel_rules_check(
    const kl_cel_rules *r, const kl_value *object, const kl_value *old, kl_cel_complain *complain, void *arg);

#endif
