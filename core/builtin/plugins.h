/* plugins.h - kube-apiserver's admission plugins that change or refuse a write because of other objects:
 * Priority, DefaultTolerationSeconds, RuntimeClass, DefaultStorageClass, TaintNodesByCondition, LimitRanger,
 * ResourceQuota. Under the server's lock. */
#ifndef KL_BUILTIN_PLUGINS_H
#define KL_BUILTIN_PLUGINS_H

#include "base/map.h"
#include "model/quantity.h"
#include "schema/kinds.h"
#include "value/value.h"

/* Access to the other objects, of built-in kinds; borrowed for the call. */
typedef struct kl__around {
    /* an object of the cluster, or NULL */
    const kl_value *(*find)(void *arg, const char *group, const char *plural, const char *name);
    /* calls `fn` with each object of a resource; ns NULL: of the cluster */
    void (*each)(void *arg, const char *group, const char *plural, const char *ns,
        void (*fn)(void *to, const kl_value *o), void *to);
    void *arg;
} kl__around;

typedef struct kl__admitted {
    const kl__kind *kind;
    const char *ns;      /* NULL: of the cluster */
    const kl_value *old; /* NULL on create */
    bool loaded;         /* the object comes from another server: it gets defaults, and is never refused */
    const kl__around *around;
} kl__admitted;

/* Whether any plugin handles writes of the kind. */
bool kl__plugins_care(const kl__kind *k);
/* Before webhooks: *o is replaced by the changed object; 403. */
KL_NODISCARD kl_status kl__plugins_add(const kl__admitted *a, const kl_value **o, kl_err *err);
/* After webhooks and validation: 403. */
KL_NODISCARD kl_status kl__plugins_check(const kl__admitted *a, const kl_value *o, kl_err *err);

/* limits.c: LimitRanger */
void kl__limits_add(const kl__admitted *a, const kl_value **pod);
KL_NODISCARD kl_status kl__limits_check(const kl__admitted *a, const kl_value *o, kl_err *err);
/* The sums of each resource over a pod's containers (`which`: "requests", "limits"), or a single init
 * container's amount if that is larger: kl_quantity by name. */
kl_map *kl__limits_totals(const kl_value *pod, const char *which);
void kl__limits_totals_free(kl_map *sums); /* NULL is fine */

/* quota.c: ResourceQuota. An object's use of resources, computed once for all questions. */
typedef struct kl__usage {
    const kl__kind *kind;
    const kl_value *o;         /* borrowed */
    kl_map *requests, *limits; /* of a pod that runs; else NULL */
} kl__usage;
void kl__usage_init(kl__usage *u, const kl__kind *k, const kl_value *o);
void kl__usage_fini(kl__usage *u);
/* How much of a quota's resource ("pods", "limits.cpu", "count/jobs.batch") the object uses; the caller owns
 * it. NULL: none. */
kl_quantity *kl__quota_used(const kl__usage *u, const char *resource);
/* Whether the quota's scopes match the object. */
bool kl__quota_concerns(const kl_value *quota, const kl__kind *k, const kl_value *o);
/* 403 when the quota's status leaves too little. *used is the new status.used, a new reference, even then. */
KL_NODISCARD kl_status kl__quota_charge(
    const kl__admitted *a, const kl_value *quota, const kl_value *o, const kl_value **used, kl_err *err);

#endif
