/* bundle.h - the sources of one script: the script itself and every module of its directory that it required while loading.
 *
 * Read once, then immutable: every state of a generation, in any thread and at any time later, sees the same text, whatever
 * happens to the files. */
#ifndef LKL_BUNDLE_H
#define LKL_BUNDLE_H

#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

typedef struct lkl_source {
    char *module;              /* "batchresource", "a.b"; "" for the script */
    char *path;
    char *text;
    size_t len;
} lkl_source;

typedef struct lkl_bundle {
    char *dir;                 /* where modules are looked for */
    lkl_source *sources;       /* [0] is the script */
    size_t n;
    const char **paths;        /* NULL-terminated, into sources */
} lkl_bundle;

/* A script is at most this big: it is logic, not data. */
#define LKL_SOURCE_MAX ((size_t)4 << 20)

KL_NODISCARD kl_status lkl_bundle_init(lkl_bundle *b, const char *script, kl_err *err);
/* The script is this text; `script` says what it is called and whose directory has its modules. */
void lkl_bundle_init_text(lkl_bundle *b, const char *script, const char *text, size_t len);
void lkl_bundle_fini(lkl_bundle *b);
const lkl_source *lkl_bundle_find(const lkl_bundle *b, const char *module);
/* Reads a module from the directory and keeps it: "a.b" is a/b.lua or a/b/init.lua. KL_ENOTFOUND names both files. */
KL_NODISCARD kl_status lkl_bundle_read(lkl_bundle *b, const char *module, const lkl_source **out, kl_err *err);
uint64_t lkl_bundle_digest(const lkl_bundle *b);

#endif
