/* answer.h - what an HTTP answer of the API server means: Status objects, codes without one, Retry-After.
 * Pure. Any thread. */
#ifndef KL_CLIENT_ANSWER_H
#define KL_CLIENT_ANSWER_H

#include "base/clock.h"
#include "value/value.h"
#include "client/request.h"

/* The received answer, borrowed. */
typedef struct kl__answer {
    int code;
    const char *body;
    size_t n;
    kl_time retry_after;     /* 0 and less: none */
    const char *credentials; /* describes the sent credentials, for a 401; NULL: none */
} kl__answer;

/* Turns an answer that is not a success into an error; returns its status. A 404 about objects counts only in
 * an API server's form (a Status, or Go's "404 page not found"); any other 404 is KL_ESERVER without a
 * code. */
kl_status kl__answer_fail(const kl__request *q, const kl__answer *a, kl_err *err);
/* The same for a Status object that is already a value (in-stream errors, 200 with a failed Status). */
kl_status kl__answer_fail_status(const kl__request *q, int code, const kl_value *status, kl_err *err);
/* A body is not the expected JSON: KL_ESERVER, naming URL and place. `story` is the decoder's error. */
kl_status kl__answer_garbage(
    const kl__request *q, const char *body, size_t n, const kl_err *story, kl_err *err);
/* Refuses a successful answer that is not a Kubernetes object, or not the requested list: an empty body, a
 * proxy's JSON. v may be NULL. */
KL_NODISCARD kl_status kl__answer_check(const kl__request *q, const kl_value *v, kl_err *err);
/* A 3xx is an error, because credentials are never sent elsewhere. `location` may be NULL; the message hides
 * its secret parts. */
kl_status kl__answer_redirect(const kl__request *q, int code, const char *location, kl_err *err);
/* Retry-After: seconds, or an HTTP date against `wall`. -1: the header is absent or invalid. */
kl_time kl__retry_after(const char *header, kl_time wall);
/* The text of a `Warning: 299 - "..."` header; NULL for other codes. Caller frees. */
char *kl__warning_text(const char *header);

#endif
