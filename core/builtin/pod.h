/* pod.h - pods and the templates of workloads. Pure; any thread. */
#ifndef KL_BUILTIN_POD_H
#define KL_BUILTIN_POD_H

#include "check/forms.h"

/* What the checks of one pod's spec share. */
typedef struct kl__pod_look {
    kl__causes *causes;
    const kl_value *spec;
    const kl_value *claims; /* a StatefulSet's volumeClaimTemplates: their names are volumes too; or NULL */
    kl_finder volumes;      /* the valid ones by name */
    kl_finder claimed;      /* metadata of `claims` by name */
    bool template;          /* not a pod */
} kl__pod_look;

/* `old` NULL on create. `sub` as in kl__call: the subresource that is written, or NULL. */
void kl__check_pod(kl__causes *c, const char *sub, const kl_value *old, const kl_value *pod);
/* A PodTemplateSpec; `claims` may be NULL. */
void kl__check_template(kl__causes *c, const kl_value *template, const kl_value *claims, const kl__place *at);

/* --- shared between pod.c and its parts ------------------------------------------------------ */
void kl__check_containers(const kl__pod_look *p, const kl__place *spec);
void kl__check_volumes(kl__pod_look *p, const kl__place *at);
/* the volume with this name; *found: whether a valid one exists */
const kl_value *kl__pod_volume(const kl__pod_look *p, const char *name, bool *found);
void kl__check_affinity(kl__causes *c, const kl_value *affinity, const kl__place *at);
void kl__check_node_selector(kl__causes *c, const kl_value *selector, const kl__place *at);
void kl__check_toleration(kl__causes *c, const kl_value *toleration, const kl__place *at);
void kl__check_tolerations(kl__causes *c, const kl_value *list, const kl__place *at);
void kl__check_spread(kl__causes *c, const kl_value *list, const kl__place *at);
/* requests and limits of a container */
void kl__check_resources(kl__causes *c, const kl_value *resources, const kl__place *at);
/* a resource's name: a standard one or qualified; one that containers may request */
void kl__check_resource_name(kl__causes *c, const char *name, const kl__place *at);
void kl__check_container_resource_name(kl__causes *c, const char *name, const kl__place *at);
/* Whether the resource may be overcommitted. */
bool kl__may_overcommit(const char *name);
/* a present quantity: at least 0, and an integer if its resource is counted */
void kl__check_quantity(kl__causes *c, const char *resource, const kl_value *q, const kl__place *at);
/* fields that an update of a pod may not change */
void kl__check_pod_update(kl__causes *c, const kl_value *old, const kl_value *pod);

#endif
