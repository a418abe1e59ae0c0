/* cells.h - the cells of tables that take some thinking. Each appends one JSON value for object `o` at
 * wall time `now`. Pure. */
#ifndef KL_SHOW_CELLS_H
#define KL_SHOW_CELLS_H

#include "base/clock.h"
#include "value/value.h"

void kl_cell_text(const char *text, kl_buf *out); /* NULL is "" */
/* How long ago an RFC 3339 time was, as people say it ("3h2m"); false when it is no time. */
bool kl_cell_since(const char *text, kl_time now, char *out, size_t n);
/* of status.conditions; borrowed, or NULL */
const kl_value *kl_cell_condition(const kl_value *o, const char *type);

/* Columns of pods, worded as kube-apiserver does: Init:0/1, CrashLoopBackOff, Terminating, 2 (3h2m ago). */
void kl_cell_pod_ready(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_pod_status(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_pod_restarts(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_pod_ip(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_pod_node(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_pod_nominated(const kl_value *o, kl_time now, kl_buf *out);
void kl_cell_pod_gates(const kl_value *o, kl_time now, kl_buf *out);

#endif
