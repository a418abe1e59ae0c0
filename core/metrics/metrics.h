/* metrics.h - counters, gauges and histograms under the names of controller-runtime and client-go , and their
 * Prometheus text. Any thread. */
#ifndef KL_METRICS_METRICS_H
#define KL_METRICS_METRICS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/clock.h"

typedef struct kl_metrics kl_metrics;
typedef struct kl_controller_metrics kl_controller_metrics;

typedef enum kl_outcome {
    KL_OUTCOME_SUCCESS,
    KL_OUTCOME_ERROR,
    KL_OUTCOME_REQUEUE,
    KL_OUTCOME_REQUEUE_AFTER,
    KL_OUTCOMES
} kl_outcome;

/* The budget that a run, or a function of the script, exceeded. */
typedef enum kl_spent { KL_SPENT_CPU, KL_SPENT_TIME, KL_SPENT_MEMORY, KL_SPENT_PROCESS, KL_SPENT } kl_spent;

/* Heap object, the caller owns; free after everything that records into it has ended. */
kl_metrics *kl_metrics_new(void);
void kl_metrics_free(kl_metrics *m);

/* The series of one controller, made (at zero) on first use; lives as long as m, or as kl_metrics_enter
 * says. */
kl_controller_metrics *kl_metrics_controller(kl_metrics *m, const char *name, int max_concurrent);
/* The same for a controller that may end, which kl_metrics_leave tells. Of ended controllers the last
 * KL_METRICS_ENDED keep their series; those of earlier ones are freed: scripts choose names anew at each
 * reload. */
kl_controller_metrics *kl_metrics_enter(kl_metrics *m, const char *name, int max_concurrent);
void kl_metrics_leave(kl_metrics *m, kl_controller_metrics *c);
#define KL_METRICS_ENDED 100
void kl_metrics_reconcile(kl_controller_metrics *c, kl_outcome outcome, kl_time took);
void kl_metrics_terminal(kl_controller_metrics *c);
void kl_metrics_panic(kl_controller_metrics *c);
void kl_metrics_timeout(kl_controller_metrics *c);
/* kubelua_budget_exceeded_total{controller,budget} */
void kl_metrics_spent(kl_controller_metrics *c, kl_spent what);
/* Adds time that a script's functions spent on events. */
void kl_metrics_mapped(kl_controller_metrics *c, kl_time took);
void kl_metrics_elided(kl_controller_metrics *c); /* kubelua_elided_writes_total{controller} */
/* kubelua_own_writes_waits_total{controller} */
void kl_metrics_own_writes_wait(kl_controller_metrics *c);
/* kubelua_own_writes_timeouts_total{controller} */
void kl_metrics_own_writes_timeout(kl_controller_metrics *c);
/* kubelua_write_loops_total{controller}, kubelua_field_fights_total{controller} */
void kl_metrics_circle(kl_controller_metrics *c, bool fight);
/* kubelua_reload_ended_runs_total{controller} */
void kl_metrics_outlived(kl_controller_metrics *c);
void kl_metrics_active(kl_controller_metrics *c, int by);
void kl_metrics_queue_latency(kl_controller_metrics *c, kl_time waited);
void kl_metrics_work_duration(kl_controller_metrics *c, kl_time took);
uint64_t kl_metrics_runs(kl_controller_metrics *c);
uint64_t kl_metrics_errors(kl_controller_metrics *c);

/* The histogram of run times or, with `waited`, of the times that keys wait for a worker. False for a
 * controller without series. */
#define KL_HISTOGRAM_MAX 40
typedef struct kl_histogram {
    const double *le; /* n bounds in seconds, ascending */
    size_t n;
    uint64_t in[KL_HISTOGRAM_MAX + 1]; /* not cumulative; the last is beyond all bounds */
} kl_histogram;
bool kl_metrics_latency(kl_metrics *m, const char *controller, bool waited, kl_histogram *out);

/* rest_client_requests_total{code,method,host} and the latency histogram; code 0 is "<error>". */
void kl_metrics_request(kl_metrics *m, const char *method, const char *host, int code, kl_time took);
/* rest_client_request_retries_total{code,verb,host} */
void kl_metrics_retry(kl_metrics *m, const char *method, const char *host, int code);
/* rest_client_rate_limiter_duration_seconds{verb,host} */
void kl_metrics_delay(kl_metrics *m, const char *method, const char *host, kl_time waited);
/* rest_client_request_size_bytes{verb,host} and rest_client_response_size_bytes, of the bodies */
void kl_metrics_sizes(kl_metrics *m, const char *method, const char *host, size_t sent, size_t received);
/* rest_client_dns_resolution_duration_seconds{host} */
void kl_metrics_lookup(kl_metrics *m, const char *host, kl_time took);
/* leader_election_master_status{name} */
void kl_metrics_leader(kl_metrics *m, const char *lease_name, bool leading);
/* leader_election_slowpath_total{name}: a renewal had to read the lease first */
void kl_metrics_leader_slow(kl_metrics *m, const char *lease_name);

/* certwatcher_read_certificate_total, and _errors_total */
void kl_metrics_certificate(kl_metrics *m, bool good);

/* Writes all of the above. The manager appends the gauges that live elsewhere (queues, informers) through the
 * functions below. */
void kl_metrics_write(kl_metrics *m, kl_buf *out);
void kl_metrics_head(kl_buf *out, const char *name, const char *type, const char *help);
/* The bound of a bucket as Go writes it, because `le` is compared as text: the shortest digits that give this
 * number, with an exponent from 1e+06 on. */
void kl_metrics_bound(double v, char out[32]);
/* `{k="v"` or `,k="v"`, with v escaped; the caller closes the brace. */
void kl_metrics_label(kl_buf *out, bool first, const char *k, const char *v);
void kl_metrics_number(kl_buf *out, double v);
/* labels: "k", "v", ..., NULL. */
void kl_metrics_sample(kl_buf *out, const char *name, double value, ...) __attribute__((sentinel));

#endif
