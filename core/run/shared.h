/* shared.h - what a script remembers beyond a run: kube.shared, values by name for all of a script's
 * controllers, and ctx.memo, a few fields for each key.
 *
 * Both are memory of this process (of one manager) and nothing more: they outlive reloads and the Lua
 * states of workers, and are gone when the process is. Values are immutable and shared with every state.
 * What they may take is bounded; beyond it a write is refused, and nothing is thrown out. */
#ifndef KL_RUN_SHARED_H
#define KL_RUN_SHARED_H

#include "metrics/custom.h"
#include "run/reconciler.h"

typedef struct kl_shared kl_shared; /* values by name */
struct kl_remote;

/* `what` is what messages call it, copied; max: bytes. */
kl_shared *kl_shared_new(const char *what, size_t max);
/* one that is in another process (run/remote.h) */
kl_shared *kl_shared_new_remote(const struct kl_remote *remote);
void kl_shared_free(kl_shared *s); /* NULL is fine */

/* Any thread; each is one step that no other comes between. A value that is given out is a new reference,
 * or NULL: there is none of that name. */
const kl_value *kl_shared_get(kl_shared *s, const char *name);
/* v NULL forgets the name. KL_ETOOBIG: it would take more than it may. */
KL_NODISCARD kl_status kl_shared_set(kl_shared *s, const char *name, const kl_value *v, kl_err *err);
/* Adds a number; one that is not there counts as 0. *out: the sum. KL_EINVAL: what is there is no number,
 * or integers beyond 64 bits. */
KL_NODISCARD kl_status kl_shared_add(
    kl_shared *s, const char *name, const kl_value *by, const kl_value **out, kl_err *err);
/* Sets it if it is `was` by value (NULL: if there is none), which *done tells. *is: what is there now. */
KL_NODISCARD kl_status kl_shared_swap(kl_shared *s, const char *name, const kl_value *was, const kl_value *v,
    bool *done, const kl_value **is, kl_err *err);
void kl_shared_forget(kl_shared *s, const char *name);
/* The names that begin with a prefix, sorted, NULL-terminated; the caller frees each and the list. */
char **kl_shared_names(kl_shared *s, const char *prefix);

/* One kl_shared for each script of a manager, by its name; a script that comes back finds its own. */
typedef struct kl_commons kl_commons;
kl_commons *kl_commons_new(void);
void kl_commons_free(kl_commons *c); /* NULL is fine */
/* any thread; borrowed, as long as the commons are there */
kl_shared *kl_commons_of(kl_commons *c, const char *script);

/* What scripts count; as long as the commons are there. */
kl_custom_metrics *kl_commons_metrics(kl_commons *c);

/* What the memos of a controller are kept in: by key. They are forgotten when their object is
 * (kl_shared_forget, by whoever hears of that). */
kl_shared *kl_memos_new(const char *controller);

/* --- of a run, on its worker's thread (memo.c) -------------------------------------------- */
kl_shared *kl_run_shared(kl_run *r); /* of its script; borrowed for the run */
void kl_run_count(kl_run *r, const kl_figure *f);
/* The memo of its key: an object, a new reference; NULL: nothing is remembered of this object. Another
 * object of the same name has its own. */
const kl_value *kl_run_memo(kl_run *r);
/* Sets a field of it, or removes it (v NULL). KL_ETOOBIG: it would take more than a memo may, or all of
 * them. */
KL_NODISCARD kl_status kl_run_memo_set(kl_run *r, const char *field, const kl_value *v, kl_err *err);

#endif
