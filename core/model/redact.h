/* redact.h - redacts objects in files that people pass on: values of Secrets and tokens are replaced so that
 * they can be compared but not read.
 *
 * A text becomes "redacted-" and a keyed digest; the key is drawn once and kept only in memory. Equal texts
 * stay equal, in `data` (whose base64 is decoded first) and in `stringData` alike. Texts that a program
 * copied elsewhere are not found. Unknown members of a Secret are redacted as well. In requests to other
 * servers (kind "ctx.http") and their answers, most headers, TLS keys and members with names like a secret's
 * are redacted. Immutable; any thread. */
#ifndef KL_MODEL_REDACT_H
#define KL_MODEL_REDACT_H

#include "value/value.h"

typedef struct kl_redaction {
    unsigned char key[16];
} kl_redaction;

void kl_redaction_init(kl_redaction *r); /* draws the key */
/* v redacted, a new reference. Where v has no kind, `kind` gives it, or that of the object that v patches, as
 * scripts write kinds; it may be NULL. Lists are searched. NULL is fine. */
const kl_value *kl_redact(const kl_redaction *r, const char *kind, const kl_value *v);
/* Whether `kind`, as scripts write kinds, names Secrets. NULL is fine. */
bool kl_redacts_kind(const char *kind);
/* The replacement of a text. */
const kl_value *kl_redact_text(const kl_redaction *r, const char *text);
/* Whether a text, or its base64, is a replacement. */
bool kl_redacted(const char *text);

#endif
