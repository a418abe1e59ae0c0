/* custom.h - metrics that scripts declare: kube.counter, kube.gauge, kube.histogram.
 *
 * A family belongs to every script that declares it, and outlives reloads for as long as one of them does.
 * The number of its series is limited; samples beyond the limit are counted and dropped, because a metric
 * must not fail a run. Any thread. */
#ifndef KL_METRICS_CUSTOM_H
#define KL_METRICS_CUSTOM_H

#include "base/buf.h"
#include "value/value.h"

typedef struct kl_custom_metrics kl_custom_metrics;

typedef enum kl_figure_act {
    KL_FIGURE_ADD,     /* to a counter (never negative) or a gauge */
    KL_FIGURE_SET,     /* a gauge */
    KL_FIGURE_FORGET,  /* a gauge: removes its series */
    KL_FIGURE_OBSERVE, /* a histogram */
    KL_FIGURE_ACTS
} kl_figure_act;

/* One sample of a script. All borrowed. */
typedef struct kl_figure {
    const char *name;
    kl_figure_act act;
    const kl_value *labels; /* an object of texts by declared label; NULL: none */
    double by;
} kl_figure;

#define KL_SERIES_MAX 1000       /* the limit of a family without `series` */
#define KL_LABELS_BYTES_MAX 1024 /* of one series */
/* About how many bytes of /metrics a script's series may take; they do not count in the script's `memory`. */
#define KL_SERIES_TEXT_MAX ((size_t)32 << 20)

kl_custom_metrics *kl_custom_metrics_new(void);
void kl_custom_metrics_free(kl_custom_metrics *m); /* NULL is fine */

/* Replaces the declarations of a script, checked by lua/kubelua/metrics.lua: name -> {type, help, labels,
 * buckets, series}, or NULL for none. Families that only this script declared and now drops are removed;
 * changed ones restart. KL_EEXISTS: another script declares one in another form; nothing changed.
 */
KL_NODISCARD kl_status kl_custom_metrics_declare(
    kl_custom_metrics *m, const char *script, const kl_value *declared, kl_err *err);

/* Records a sample. One without a matching declaration is dropped silently: it comes from a run on an older
 * generation. */
void kl_custom_metrics_record(kl_custom_metrics *m, const kl_figure *f);

/* The value of one series, which is the sum for a histogram. *n (NULL is fine) is a histogram's number of
 * observations. False: there is no such series. f->act and f->by are ignored. */
bool kl_custom_metrics_get(kl_custom_metrics *m, const kl_figure *f, double *value, uint64_t *n);

/* Appends Prometheus' text format. */
void kl_custom_metrics_write(kl_custom_metrics *m, kl_buf *out);
/* Adds the families, for people, to an open array: {cluster (if not NULL), name, type, help, total, dropped,
 * series: [{labels, value, count}]}, with at most `most` series of each, in the order of their labels. */
void kl_custom_metrics_show(kl_custom_metrics *m, const char *cluster, size_t most, kl_builder *b);

#endif
