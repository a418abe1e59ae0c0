/* cells.h - the computed cells of tables. Each appends one JSON value for object `o` at wall time `now`.
 * Pure. */
#ifndef KL_SHOW_CELLS_H
#define KL_SHOW_CELLS_H

#include "base/clock.h"
#include "value/value.h"

void kl_cell_text(const char *text, kl_buf *out); /* NULL is "" */
/* How long ago an RFC 3339 time was, in kubectl's form ("3h2m"); false when it is not a time. */
bool kl_cell_since(const char *text, kl_time now, char *out, size_t n);
/* The same as a cell; `absent` in place of what is not a time. */
void kl_cell_age(const char *text, kl_time now, const char *absent, kl_buf *out);
int kl__cell_by_text(const void *a, const void *b);          /* for qsort of const char * */
void kl_cell_duration(int64_t seconds, char *out, size_t n); /* two units while small, one when large */
/* the condition of that type in status.conditions; borrowed, or NULL */
const kl_value *kl_cell_condition(const kl_value *o, const char *type);

/* Columns of pods, in kube-apiserver's words: Init:0/1, CrashLoopBackOff, Terminating, 2 (3h2m ago). */
void kl_cell_pod_ready(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_pod_status(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_pod_restarts(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_pod_ip(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_pod_node(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_pod_nominated(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_pod_gates(const kl_value *o, kl_time now, kl_buf *out);

/* Columns of nodes, services and events (cells_core.c). */
void kl_cell_node_status(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_node_roles(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_node_internal(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_node_external(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_node_os(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_node_kernel(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_node_runtime(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_service_external(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_service_ports(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_event_seen(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_event_object(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_event_message(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_event_source(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_event_first(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_event_count(const kl_value *o, kl_time now, kl_buf *out);

/* Columns of other kinds (cells_kinds.c), in the order of the kinds there. */
void kl_cell_job_status(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_job_completions(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_job_duration(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_cron_suspend(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_cron_active(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_cron_last(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_cron_zone(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_role_ref(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_users(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_groups(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_accounts(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_csr_duration(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_csr_condition(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_min_available(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_max_unavailable(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_hpa_reference(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_hpa_min(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_hpa_targets(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_quota_requests(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_quota_limits(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_ingress_class(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_ingress_hosts(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_ingress_address(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_ingress_ports(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_service_address(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_storage_status(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_storage_class(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_storage_attributes(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_volume_modes(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_volume_claim(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_claim_capacity(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_claim_modes(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_api_service(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_api_available(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_flow_distinguisher(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_flow_dangling(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_level_shares(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_level_queues(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_level_hand(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_level_length(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_service_ranges(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_address_parent(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_claim_state(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_class_name(const kl_value *o, kl_time now, kl_buf *out);

/* Columns of endpoints, drivers, admission and the like (cells_cluster.c). */
void kl_cell_endpoints(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_slice_ports(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_slice_endpoints(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_account_secrets(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_controller(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_parameters(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_driver_attaches(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_driver_tokens(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_driver_modes(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_node_drivers(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_webhooks(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_validations(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_param_kind(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_param_ref(const kl_value *o, kl_time now, kl_buf *out);

#endif
