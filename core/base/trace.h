/* trace.h - W3C Trace Context (https://www.w3.org/TR/trace-context/): the trace that a request belongs to,
 * and its span. */
#ifndef KL_BASE_TRACE_H
#define KL_BASE_TRACE_H

#include <stdbool.h>

typedef struct kl_trace {
    char trace[33]; /* 32 hex digits, lower case */
    char span[17];  /* 16 */
} kl_trace;

#define KL_TRACEPARENT_MAX 56

/* A `traceparent` header's trace and span; false when the header is missing or not well-formed (the caller
 * then begins a new trace). */
bool kl_trace_parse(const char *header, kl_trace *out);
/* Fills in out->span only, from `seed` and out->trace: another seed gives another span. */
void kl_trace_span(const char *seed, kl_trace *out);
/* "00-TRACE-SPAN-01" into out, which is returned. */
const char *kl_trace_header(const kl_trace *t, char out[KL_TRACEPARENT_MAX]);

#endif
