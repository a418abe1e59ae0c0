/* rules_impl.h - the tree of rules (private to rules.c and rules_check.c). */
#ifndef KL_RULES_RULES_IMPL_H
#define KL_RULES_RULES_IMPL_H

#include "cel/types.h"
#include "rules/rules.h"

typedef struct kl__crule {
    const kl_value *json; /* as written */
    kl_cel *rule, *message;
    char *failure; /* why it does not compile */
    char *field;   /* the normal form of fieldPath, or NULL */
    bool optional; /* optionalOldSelf */
    bool old;      /* uses oldSelf */
} kl__crule;

typedef struct kl__cplace kl__cplace;
struct kl__cplace {
    const kl_value *schema;
    const kl__ctype *type;
    kl__crule *rules;
    size_t nrules;
    kl_cel_env *env[2]; /* oldSelf as it is, and optional */
    kl__cplace *items, *values;
    struct kl__cmember {
        const char *key;
        kl__cplace *place;
    } * members;
    size_t nmembers;
};

struct kl_cel_rules {
    const kl_value *schema;
    kl_cel_env *types;
    kl__cplace *root;
};

static inline const char *kl__crule_text(const kl__crule *r, const char *key)
{
    const char *s = kl_value_str_at(r->json, key, NULL);
    return s ? s : "";
}

#endif
