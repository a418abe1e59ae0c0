/* redact.h - objects for files that people pass on: what Secrets and tokens say is replaced, so that it
 * can be compared but not read.
 *
 * A text becomes "redacted-" and a digest of it under a key that is drawn once and kept in memory alone:
 * equal texts stay equal, in `data` (whose base64 is looked through) and in `stringData` alike. Texts that
 * a program copied elsewhere are not found. Of requests to other servers (kind "ctx.http", and their answers)
 * go all headers but a few, keys of TLS, and members whose names sound like a secret. Immutable; any thread.
 */
#ifndef KL_MODEL_REDACT_H
#define KL_MODEL_REDACT_H

#include "value/value.h"

typedef struct kl_redaction {
    unsigned char key[16];
} kl_redaction;

void kl_redaction_init(kl_redaction *r); /* draws the key */
/* v as it may be shown, a new reference. `kind` is what v is, or is a patch of, where v does not say so
 * itself: as scripts write kinds, or NULL. Lists are looked through. NULL is fine. */
const kl_value *kl_redact(const kl_redaction *r, const char *kind, const kl_value *v);
/* What stands in a text's place. */
const kl_value *kl_redact_text(const kl_redaction *r, const char *text);
/* Whether a text, or its base64, stands for one that was redacted. */
bool kl_redacted(const char *text);

#endif
