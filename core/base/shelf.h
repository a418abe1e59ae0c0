/* shelf.h - a disk cache of a server's responses: a directory of small files.
 *
 * Each file has a tag (the server's name for this version: an ETag or a hash) and a checksum. Failures are
 * silent: a file that is missing, corrupt, too old or not ours reads as absent, and a shelf that cannot be
 * written stays empty. Files are 0600 in directories of 0700, and are replaced whole. Owner thread. */
#ifndef KL_BASE_SHELF_H
#define KL_BASE_SHELF_H

#include "base/buf.h"
#include "base/clock.h"

typedef struct kl_shelf kl_shelf;

/* `dir` is made when something is first put there. NULL: a shelf that holds nothing. */
kl_shelf *kl_shelf_new(const char *dir);
void kl_shelf_free(kl_shelf *s);
const char *kl_shelf_dir(const kl_shelf *s); /* NULL: it holds nothing */

/* The bytes stored under `name`, and their tag (caller frees; NULL allowed). *age: wall time since the last
 * put or touch, 0 when that is in the future. Names may hold "/"; anything but letters, digits, ".", "-", "_"
 * is spelled %XX. */
bool kl_shelf_get(const kl_shelf *s, const char *name, kl_time wall, kl_buf *bytes, char **tag, kl_time *age);
/* False when it could not be stored; logged once, at debug. */
bool kl_shelf_put(kl_shelf *s, const char *name, kl_time wall, const char *tag, const void *bytes, size_t n);
void kl_shelf_touch(const kl_shelf *s, const char *name, kl_time wall);
void kl_shelf_drop(const kl_shelf *s, const char *name);

/* Encodes and decodes a file's contents, without I/O. KL_ESYNTAX: torn, or not ours; *bytes points into the
 * text. */
void kl_shelf_pack(const char *tag, const void *bytes, size_t n, kl_buf *out);
KL_NODISCARD kl_status kl_shelf_unpack(
    const char *text, size_t len, char **tag, const char **bytes, size_t *n, kl_err *err);

/* The default directory: $KUBELUA_CACHE_DIR, $XDG_CACHE_HOME/kubelua or $HOME/.cache/kubelua. NULL when none
 * is set, or the first is "off". Caller frees. */
char *kl_shelf_home(void);

#endif
