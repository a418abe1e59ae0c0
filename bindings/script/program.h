/* program.h - loads scripts as programs of the runtime, and describes them. */
#ifndef LKL_PROGRAM_H
#define LKL_PROGRAM_H

#include <stdint.h>
#include "state/bundle.h"
#include "script/isolate.h"
#include "run/reconciler.h"

/* Loads a script and the modules it requires as one program (a generation). Nothing is contacted: a script
 * does no I/O while loading. Syntax errors, errors while loading and invalid specs (with "did you mean") name
 * file and line. Any thread. */
KL_NODISCARD kl_status lkl_program_load(const char *path, kl_program **out, kl_err *err);
/* The same for a text without a file; `path` is its name, and modules come from its directory. */
KL_NODISCARD kl_status lkl_program_load_text(
    const char *path, const char *text, size_t len, kl_program **out, kl_err *err);
/* The same from an object of texts, such as a ConfigMap's data: see lkl_bundle_init_texts. Keeps a reference
 * to it. */
KL_NODISCARD kl_status lkl_program_load_texts(
    const char *name, const kl_value *texts, const char *main, kl_program **out, kl_err *err);
/* The same from a complete bundle, which it takes. */
KL_NODISCARD kl_status lkl_program_load_bundle(lkl_bundle *bundle, kl_program **out, kl_err *err);
/* Its bundle, and its data about processes; both belong to the program. */
const lkl_bundle *lkl_program_bundle(const kl_program *p);
lkl_isolation *lkl_program_isolation(kl_program *p);
/* A hash over the sources of the script and its modules: equal digests, equal logic. */
uint64_t lkl_program_digest(const kl_program *p);
/* Its files, the script first; NULL-terminated, belongs to the program. */
const char *const *lkl_program_files(const kl_program *p);
/* The tables of its controllers and webhooks as data, without their functions. Commands that
 * describe a script read them (lua/kubelua/script.lua). Borrowed. */
const kl_value *lkl_program_tables(const kl_program *p);
/* What `kubelua check` prints: controllers, kinds, indexes. Caller kl_free()s. */
char *lkl_program_describe(const kl_program *p);

#endif
