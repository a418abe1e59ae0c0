/* time.h - durations ("1h5m0.5s") as Go's time package and timestamps as metav1.Time and MicroTime. Pure;
 * any thread. */
#ifndef KL_MODEL_TIME_H
#define KL_MODEL_TIME_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"

KL_NODISCARD kl_status kl_duration_parse(const char *text, kl_time *out, kl_err *err);
#define KL_DURATION_MAX 40
/* Go's Duration.String(); returns out */
char *kl_duration_format(kl_time d, char out[KL_DURATION_MAX]);

/* RFC 3339 as metav1.Time reads it: any fraction, or none. Unix seconds and nanoseconds (years 0..9999). */
KL_NODISCARD kl_status kl_time_parse(const char *text, int64_t *sec, int32_t *nsec, kl_err *err);
/* The same with a fraction of exactly six digits, as metav1.MicroTime (a Lease) reads it. */
KL_NODISCARD kl_status kl_time_parse_micro(const char *text, int64_t *sec, int32_t *nsec, kl_err *err);
/* Go's time.Parse error for a text that those do not read. The caller frees it with kl_free. */
char *kl_time_why_not(const char *text, bool micro);
/* Go's zero time, 0001-01-01T00:00:00Z, which JSON carries as null. */
#define KL_TIME_ZERO_SEC (-62135596800)
#define KL_TIME_MAX 40
/* metav1.Time: UTC, seconds */
char *kl_time_format(int64_t sec, char out[KL_TIME_MAX]);
char *kl_time_format_micro(int64_t sec, int32_t nsec, char out[KL_TIME_MAX]); /* MicroTime: six digits */
/* metav1.Time of nanoseconds since the epoch */
char *kl_time_format_wall(kl_time wall, char out[KL_TIME_MAX]);

#endif
