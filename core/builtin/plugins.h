/* plugins.h - kube-apiserver's admission plugins, which change or refuse a write by looking at other objects:
 * Priority, RuntimeClass, DefaultStorageClass, TaintNodesByCondition, LimitRanger, ResourceQuota. Under the
 * server's lock. */
#ifndef KL_BUILTIN_PLUGINS_H
#define KL_BUILTIN_PLUGINS_H

#include "base/map.h"
#include "model/quantity.h"
#include "schema/kinds.h"
#include "value/value.h"

/* The other objects: of built-in kinds, borrowed for the call. */
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
    bool loaded;         /* it comes from another server: it gets defaults, and is never refused */
    const kl__around *around;
} kl__admitted;

/* Whether any plugin looks at writes of the kind. */
bool kl__plugins_care(const kl__kind *k);
/* Before webhooks: *o is replaced by the changed object; 403. */
KL_NODISCARD kl_status kl__plugins_add(const kl__admitted *a, const kl_value **o, kl_err *err);
/* After webhooks and validation: 403. */
KL_NODISCARD kl_status kl__plugins_check(const kl__admitted *a, const kl_value *o, kl_err *err);

/* limits.c: LimitRanger */
void kl__limits_add(const kl__admitted *a, const kl_value **pod);
KL_NODISCARD kl_status kl__limits_check(const kl__admitted *a, const kl_value *o, kl_err *err);
/* The sums of each resource over a pod's containers (`which`: "requests", "limits"), or that of a single init
 * container, if larger: kl_quantity by name. */
kl_map *kl__limits_totals(const kl_value *pod, const char *which);
void kl__limits_totals_free(kl_map *sums); /* NULL is fine */

/* quota.c: ResourceQuota. What an object uses: made once for all resources that are asked for. */
typedef struct kl__usage {
    const kl__kind *kind;
    const kl_value *o;         /* borrowed */
    kl_map *requests, *limits; /* of a pod that runs; else NULL */
} kl__usage;
void kl__usage_init(kl__usage *u, const kl__kind *k, const kl_value *o);
void kl__usage_fini(kl__usage *u);
/* The amount that the object uses of a resource of quotas ("pods", "limits.cpu", "count/jobs.batch"); the
 * caller owns it. NULL: nothing. */
kl_quantity *kl__quota_used(const kl__usage *u, const char *resource);
/* Whether the quota's scopes match the object. */
bool kl__quota_concerns(const kl_value *quota, const kl__kind *k, const kl_value *o);
/* 403 when the quota's status leaves too little. *used: the new status.used, a new reference, in both
 * cases. */
KL_NODISCARD kl_status kl__quota_charge(
    const kl__admitted *a, const kl_value *quota, const kl_value *o, const kl_value **used, kl_err *err);

#endif
