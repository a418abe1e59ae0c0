/* bundle.h - the sources of one script: the script itself and every module that it required while loading,
 * from its directory or from the same object of texts (a ConfigMap).
 *
 * Read once, then immutable: every state of a generation, in any thread and at any time later, sees the
 * same text, whatever happens to the files. */
#ifndef LKL_BUNDLE_H
#define LKL_BUNDLE_H

#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "value/value.h"

typedef struct lkl_source {
    char *module; /* "batchresource", "a.b"; "" for the script */
    char *path;
    char *text;
    size_t len;
} lkl_source;

typedef struct lkl_bundle {
    char *dir;             /* where modules are searched */
    const kl_value *texts; /* instead of there: file name -> text; or NULL */
    lkl_source *sources;   /* [0] is the script */
    size_t n;
    const char **paths; /* NULL-terminated, into sources */
} lkl_bundle;

/* Its Lua code: without a byte order mark, and without the text of a first line that begins with `#` (for a
 * shell), whose newline stays, so that lines keep their numbers. Borrowed. */
const char *lkl_source_code(const lkl_source *s, size_t *len);

/* A script is at most this big: it is logic, not data. */
#define LKL_SOURCE_MAX ((size_t)4 << 20)

/* A script, or a directory with one: main.lua, init.lua, or the only *.lua that is not a test. */
KL_NODISCARD kl_status lkl_bundle_init(lkl_bundle *b, const char *script, kl_err *err);
/* The same from an object, file names with their texts, with `name` for messages. `main` NULL: as in a
 * directory. */
KL_NODISCARD kl_status lkl_bundle_init_texts(
    lkl_bundle *b, const char *name, const kl_value *texts, const char *main, kl_err *err);
/* The script is this text; `script` is its name, and its directory has the modules. */
void lkl_bundle_init_text(lkl_bundle *b, const char *script, const char *text, size_t len);
void lkl_bundle_fini(lkl_bundle *b);
const lkl_source *lkl_bundle_find(const lkl_bundle *b, const char *module);
/* Reads a module from the directory and keeps it: "a.b" is a/b.lua or a/b/init.lua. KL_ENOTFOUND names
 * both files. Among texts it is "a.b.lua". */
KL_NODISCARD kl_status lkl_bundle_read(
    lkl_bundle *b, const char *module, const lkl_source **out, kl_err *err);
/* Adds a source that was read elsewhere; takes `text`, which ends in NUL. */
void lkl_bundle_keep(lkl_bundle *b, const char *module, const char *path, char *text, size_t len);
uint64_t lkl_bundle_digest(const lkl_bundle *b);

#endif
