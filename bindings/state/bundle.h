/* bundle.h - the sources of one script: the script itself and every module that it required while loading,
 * from its directory or from the same object of strings (a ConfigMap).
 *
 * Read once, then immutable: every state of a generation, on any thread and at any later time, sees the same
 * text, even if the files change. */
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
    char *dir;             /* the directory of modules */
    const kl_value *texts; /* used instead of the directory: file name -> text; or NULL */
    lkl_source *sources;   /* [0] is the script */
    size_t n;
    const char **paths; /* NULL-terminated, into sources */
} lkl_bundle;

/* The source's Lua code, borrowed: without a byte order mark, and without the text of a first line that
 * begins with `#` (for a shell). Its newline stays, so that lines keep their numbers. */
const char *lkl_source_code(const lkl_source *s, size_t *len);

/* The maximum size of a script, which is logic, not data. */
#define LKL_SOURCE_MAX ((size_t)4 << 20)

/* A script, or a directory with one: main.lua, init.lua, or the only *.lua that is not a test. */
KL_NODISCARD kl_status lkl_bundle_init(lkl_bundle *b, const char *script, kl_err *err);
/* The same from an object, file names with their texts, with `name` for messages. `main` NULL: as in a
 * directory. */
KL_NODISCARD kl_status lkl_bundle_init_texts(
    lkl_bundle *b, const char *name, const kl_value *texts, const char *main, kl_err *err);
/* The same with this text as the script; `script` is its name, and modules come from its directory. */
void lkl_bundle_init_text(lkl_bundle *b, const char *script, const char *text, size_t len);
void lkl_bundle_fini(lkl_bundle *b);
const lkl_source *lkl_bundle_find(const lkl_bundle *b, const char *module);
/* Reads a module from the directory and keeps it: "a.b" is a/b.lua or a/b/init.lua. KL_ENOTFOUND names
 * both files. Among texts it is "a.b.lua". */
KL_NODISCARD kl_status lkl_bundle_read(
    lkl_bundle *b, const char *module, const lkl_source **out, kl_err *err);
/* Adds a source that other code has read; takes `text`, which is NUL-terminated. */
void lkl_bundle_keep(lkl_bundle *b, const char *module, const char *path, char *text, size_t len);
uint64_t lkl_bundle_digest(const lkl_bundle *b);

#endif
