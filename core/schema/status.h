/* status.h - failures in the words of a Kubernetes API server. A failure travels as a kl_err with HTTP code,
 * reason, message and details; kl__status_of makes the v1 Status of it. Any thread; an error and a list of
 * causes belong to their maker. */
#ifndef KL_SCHEMA_STATUS_H
#define KL_SCHEMA_STATUS_H

#include "value/value.h"
#include "schema/kinds.h"

/* Any failure. `details` is taken (may be NULL). Returns the kl_status that goes with the code. */
kl_status kl__api_fail(
    kl_err *err, int code, const char *reason, const kl_value *details, const char *fmt, ...) KL_PRINTF(5, 6);
kl_status kl__fail_bad_request(kl_err *err, const char *fmt, ...) KL_PRINTF(2, 3);
kl_status kl__fail_not_found(kl_err *err, const kl__kind *k, const char *name);
/* `goes`: the present object is being deleted. `generated`: the name was to be a generated one. */
kl_status kl__fail_exists(kl_err *err, const kl__kind *k, const char *name, bool goes, bool generated);
kl_status kl__fail_conflict(kl_err *err, const kl__kind *k, const char *name, const char *fmt, ...)
    KL_PRINTF(4, 5);
/* "the object has been modified; ..." */
kl_status kl__fail_modified(kl_err *err, const kl__kind *k, const char *name);
kl_status kl__fail_forbidden(kl_err *err, const kl__kind *k, const char *name, const char *fmt, ...)
    KL_PRINTF(4, 5);
/* 500 with "Internal error occurred: " before the text, which is the cause as well */
kl_status kl__fail_internal(kl_err *err, const char *fmt, ...) KL_PRINTF(2, 3);
kl_status kl__fail_expired(kl_err *err, const char *fmt, ...) KL_PRINTF(2, 3);

/* Several complaints about one object, answered as one 422. An object of 3 MiB can cause a million of them,
 * so the first ones are kept and the others only counted. */
typedef struct kl__causes {
    struct kl__cause {
        char *reason, *message, *field;
    } * v;
    size_t len;  /* all */
    size_t kept; /* those in v */
    size_t bytes;
} kl__causes;
void kl__causes_fini(kl__causes *c);
/* Whether the next cause is only counted. If so, this has counted it, and the caller need not make its text,
 * which may show the whole object. */
bool kl__causes_full(kl__causes *c);
/* Appends the causes of `more` to those of `c`. */
void kl__causes_join(kl__causes *c, kl__causes *more);
/* `reason` is "FieldValueInvalid", "FieldValueRequired"...; the message is what follows "field: ". With
 * KL__CAUSE_FAILED the answer is 500 with this message alone. */
#define KL__CAUSE_FAILED "Failed"
void kl__cause_add(kl__causes *c, const char *reason, const char *field, const char *fmt, ...)
    KL_PRINTF(4, 5);
void kl__cause_invalid(kl__causes *c, const char *field, const kl_value *bad, const char *fmt, ...)
    KL_PRINTF(4, 5);
void kl__cause_required(kl__causes *c, const char *field, const char *why); /* why may be "" */
void kl__cause_forbidden(kl__causes *c, const char *field, const char *why);
/* "field: message", or "[field: message, ...]" of several; the caller frees it. */
char *kl__causes_text(const kl__causes *c);
/* KL_OK when there are none. Frees the causes in both cases. `group` and `kind` name the kind in the
 * message. */
kl_status kl__fail_causes(kl_err *err, const char *group, const char *kind, const char *name, kl__causes *c);

/* v1 Status; a new reference */
const kl_value *kl__status_of(const kl_err *err);
const kl_value *kl__status_success(const kl__kind *k, const char *name, const char *uid);
int kl__status_code(const kl_err *err);

#endif
