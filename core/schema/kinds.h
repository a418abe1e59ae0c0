/* kinds.h - the kinds that the server serves: built-in ones and those of established CRDs. Under the server's
 * lock. */
#ifndef KL_SCHEMA_KINDS_H
#define KL_SCHEMA_KINDS_H

#include "value/value.h"
#include "schema/schema.h"

typedef struct kl__bucket kl__bucket;

typedef struct kl__sub {
    char *name;                   /* "status" */
    char *group, *version, *kind; /* its kind; group and version "" are those of its resource */
    char **verbs;
} kl__sub;

/* One resource at one version. Versions of a resource share the bucket of its objects. */
typedef struct kl__kind {
    char *group, *version, *kind, *list_kind, *plural, *singular;
    char **short_names, **categories, **verbs; /* NULL-terminated */
    kl__sub *subs;
    size_t nsubs;
    bool namespaced;
    bool custom;                /* from a CRD */
    kl__types *types;           /* CRD: owned */
    const kl__schema *schema;   /* NULL: none known */
    const kl_value *columns;    /* CRD: the additionalPrinterColumns that are shown; NULL: it gives none */
    const kl_value *scale;      /* CRD: subresources.scale, or NULL */
    const kl_value *selectable; /* CRD: selectableFields, or NULL */
    struct kl_cel_rules *rules; /* CRD: x-kubernetes-validations of this version, or NULL; owned */
    char *storage;              /* CRD: the version objects are stored at */
    const kl_value *conversion; /* CRD: spec.conversion.webhook; NULL: versions differ only in apiVersion */
    char *deprecation;          /* the warning of each answer; NULL: none */
    kl__bucket *bucket;
    const kl_value *plain; /* CRD: an object that pruning and defaulting left as it was; NULL: none known */
} kl__kind;

typedef struct kl__kinds kl__kinds;

kl__kinds *kl__kinds_new(const kl__types *builtin); /* with the built-in kinds */
void kl__kinds_free(kl__kinds *k);
/* takes over `kind`; an existing kind with the same names is updated in place */
void kl__kinds_add(kl__kinds *k, kl__kind *kind);
/* Removes the kinds of a CRD, except versions named in `keep` (NULL-terminated, or NULL). They stay readable
 * until kl__kinds_bury, with which the next call begins, because the call that removed them may still answer
 * in one of them. */
void kl__kinds_remove(kl__kinds *k, const char *group, const char *plural, const char *const *keep);
void kl__kinds_bury(kl__kinds *k);
void kl__kind_free(kl__kind *kind);

/* Borrowed, NULL when absent. */
kl__kind *kl__kinds_get(const kl__kinds *k, const char *group, const char *version, const char *plural);
/* Any version of the bucket's resource, or NULL. */
kl__kind *kl__kinds_of_bucket(const kl__kinds *k, const kl__bucket *b);
kl__kind *kl__kinds_by_kind(const kl__kinds *k, const char *group, const char *version, const char *kind);
/* Every kind in the order of discovery. */
size_t kl__kinds_len(const kl__kinds *k);
kl__kind *kl__kinds_at(const kl__kinds *k, size_t i);
/* version NULL: any */
bool kl__kinds_has_group(const kl__kinds *k, const char *group, const char *version);
/* Compares versions in Kubernetes' order: v2 before v1 before v1beta1. */
int kl__version_compare(const char *a, const char *b);

bool kl__kind_has_verb(const kl__kind *k, const char *verb);
const kl__sub *kl__kind_sub(const kl__kind *k, const char *name);
bool kl__words_have(char *const *words, const char *word);
char **kl__words_copy(char *const *words);
void kl__words_free(char **words);
char *kl__kind_api_version(const kl__kind *k); /* "apps/v1"; caller frees */
char *kl__kind_display(const kl__kind *k);     /* "pods", "deployments.apps"; caller frees */
/* Whether "group/plural" of the kind is one of `words`, which are separated by spaces; the core group is
 * "". */
bool kl__kind_among(const kl__kind *k, const char *words);

#endif
