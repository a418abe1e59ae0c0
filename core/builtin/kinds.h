/* kinds.h - the checks by kind; builtin.c has the table. Except for those of a status, each checks writes of
 * the object, not of its status. Pure; any thread. */
#ifndef KL_BUILTIN_KINDS_H
#define KL_BUILTIN_KINDS_H

#include "builtin/builtin.h"
#include "check/check.h"

/* Whether the spec equals that of `old`, which was valid, so that it needs no check. */
bool kl__write_same_spec(const kl__write *w);

void kl__check_data(const kl__write *w);
void kl__check_deployment(const kl__write *w);
void kl__check_replica_set(const kl__write *w);
void kl__check_controller(const kl__write *w); /* a ReplicationController */
void kl__check_pod_template(const kl__write *w);
void kl__check_stateful_set(const kl__write *w);
void kl__check_daemon_set(const kl__write *w);
void kl__check_job(const kl__write *w);
void kl__check_cron_job(const kl__write *w);
void kl__check_claim(const kl__write *w);
void kl__check_service(const kl__write *w);
void kl__check_role(const kl__write *w);
void kl__check_binding(const kl__write *w);
void kl__check_budget(const kl__write *w);
void kl__check_network_policy(const kl__write *w);
void kl__check_autoscaler(const kl__write *w);
void kl__check_ingress(const kl__write *w);
void kl__check_ingress_class(const kl__write *w);
void kl__check_slice(const kl__write *w); /* an EndpointSlice */
void kl__check_endpoints(const kl__write *w);
void kl__check_volume(const kl__write *w); /* a PersistentVolume */
void kl__check_storage_class(const kl__write *w);
void kl__check_attributes_class(const kl__write *w); /* a VolumeAttributesClass */
void kl__check_csi_capacity(const kl__write *w);     /* a CSIStorageCapacity */
void kl__check_csi_driver(const kl__write *w);
void kl__check_csi_node(const kl__write *w);
void kl__check_attachment(const kl__write *w); /* a VolumeAttachment */
void kl__check_lease(const kl__write *w);
void kl__check_revision(const kl__write *w); /* a ControllerRevision */
void kl__check_priority_class(const kl__write *w);
void kl__check_runtime_class(const kl__write *w);
void kl__check_namespace(const kl__write *w);
void kl__check_node(const kl__write *w);
void kl__check_node_status(const kl__write *w);
void kl__check_limit_range(const kl__write *w);
void kl__check_quota(const kl__write *w); /* a ResourceQuota */
void kl__check_quota_status(const kl__write *w);
/* Events created by events.k8s.io/v1 are checked strictly, and only their series may change. Causes have
 * core/v1's field names, in which Events are stored. */
void kl__check_event(const kl__write *w);

/* a write of a status, of any kind */
void kl__check_status(const kl__write *w);

/* Why robfig/cron refuses a CronJob's schedule, or NULL; caller frees. */
char *kl__schedule_fault(const char *schedule);

#endif
