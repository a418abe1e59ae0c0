/* log.h - appends lines to a file on its own thread, so that callers never wait for the disk.
 *
 * When another file has taken its name (a rotation), the next line goes there. A line that cannot be written,
 * or that finds more than LINES_MAX bytes waiting, is lost; the log reports the first lost line, and the
 * number of lost lines when writing works again. Any thread. */
#ifndef KL_AUDIT_LOG_H
#define KL_AUDIT_LOG_H

#include "base/buf.h"
#include "base/err.h"

typedef struct kl_audit_log kl_audit_log;

KL_NODISCARD kl_status kl_audit_log_open(const char *path, kl_audit_log **out, kl_err *err);
/* Writes the waiting lines, then frees. NULL is fine. */
void kl_audit_log_close(kl_audit_log *l);
/* One line without its end; copied. */
void kl_audit_log_add(kl_audit_log *l, const char *line, size_t n);

#endif
