/* telemetry.h - metrics that are read at scrape time: the state of queues, caches, events and the process. */
#ifndef KL_OBSERVE_TELEMETRY_H
#define KL_OBSERVE_TELEMETRY_H

#include "base/buf.h"
#include "queue/workqueue.h"
#include "informers/caches.h"
#include "events/recorder.h"

typedef struct kl_queue_of {
    const char *controller;
    kl_workqueue *queue;
} kl_queue_of;

/* workqueue_depth and the other queue metrics that are not histograms, under the names of controller-runtime.
 * The queues must live until it returns. */
void kl_telemetry_queues(kl_buf *out, const kl_queue_of *v, size_t n, kl_time now);
/* kubelua_informer_* by kind; any thread */
void kl_telemetry_informers(kl_buf *out, kl_caches *caches, kl_time now);
/* kubelua_events_*; any thread */
void kl_telemetry_events(kl_buf *out, kl_recorder *recorder);
/* process_*: processor time, memory, descriptors, network, under the names of Prometheus' own clients. Any
 * thread. */
void kl_telemetry_process(kl_buf *out);

#endif
