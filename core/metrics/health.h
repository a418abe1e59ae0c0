/* health.h - checks with names and reasons, and the text of their results, as controller-runtime and
 * kube-apiserver write it for probes and people. A list of checks belongs to one thread. */
#ifndef KL_METRICS_HEALTH_H
#define KL_METRICS_HEALTH_H

#include "base/buf.h"
#include "base/err.h"

typedef struct kl_checks {
    struct {
        char *name, *why;
    } * v; /* why NULL: good */
    size_t n;
} kl_checks;

void kl_checks_add(kl_checks *c, const char *name, const char *why); /* copies both */
void kl_checks_fini(kl_checks *c);

typedef struct kl_health_query {
    const char *only; /* one check; NULL or "": all of them */
    char *const *exclude;
    size_t n_exclude;
    bool verbose;
    /* show reasons; otherwise "reason withheld". A single check is always shown in full */
    bool reasons;
} kl_health_query;

/* The status code and the body of the answer. The checks are sorted by name. */
int kl_health_answer(kl_checks *c, const kl_health_query *q, kl_buf *out);
/* "name: why; name: why" of failed checks, sorted; NULL when all pass. Caller frees. */
char *kl_health_failures(kl_checks *c);

#endif
