/* pairfile.h - a certificate and its key in one file, which a new pair replaces at once: what client-go's
 * FileStore leaves on disk.
 *
 *   DIR/NAME-current.pem -> NAME-2026-01-02-15-04-05.pem
 *
 * The pair is the certificates, then the key; readable by its owner alone.
 *
 * A pair is written and synced under a name of its own before the link is moved, so whoever opens the link
 * sees one whole pair. A link NAME-updated.pem alone is a move that a crash interrupted; the next read
 * completes it. The previous pair is removed. One writer per name; readers at any time. */
#ifndef KL_BASE_PAIRFILE_H
#define KL_BASE_PAIRFILE_H

#include "base/clock.h"
#include "base/err.h"

/* The path of the link; caller frees. */
char *kl_pairfile_path(const char *dir, const char *name);
/* The pair's text; the caller wipes and frees it. KL_ENOTFOUND when there is none yet; KL_EIO names the
 * path. */
KL_NODISCARD kl_status kl_pairfile_read(const char *dir, const char *name, char **out, kl_err *err);
/* Makes the directory when it is missing. `now` is wall time and names the file. KL_EEXISTS when the
 * link's name is taken by a file. */
KL_NODISCARD kl_status kl_pairfile_write(
    const char *dir, const char *name, const char *pem, kl_time now, kl_err *err);

#endif
