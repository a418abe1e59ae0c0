/* shared.h - a script's memory beyond a run: kube.shared, values by name for all of a script's controllers,
 * and ctx.memo, a few fields for each key.
 *
 * Both are memory of this process (of one manager) and nothing more: they outlive reloads and the Lua states
 * of workers, and are gone when the process ends. Values are immutable and shared with every state. Their
 * size is limited; beyond the limit a write is refused, and nothing is evicted. */
#ifndef KL_RUN_SHARED_H
#define KL_RUN_SHARED_H

#include "metrics/custom.h"
#include "run/reconciler.h"

typedef struct kl_shared kl_shared; /* values by name */
struct kl_remote;

/* `what` is its name in messages, copied; max: bytes. */
kl_shared *kl_shared_new(const char *what, size_t max);
/* stands for a store in another process (run/remote.h) */
kl_shared *kl_shared_new_remote(const struct kl_remote *remote);
void kl_shared_free(kl_shared *s); /* NULL is fine */

/* Any thread; each call is atomic. A returned value is a new reference; NULL: no value has that name. */
const kl_value *kl_shared_get(kl_shared *s, const char *name);
/* v NULL removes the name. KL_ETOOBIG: it would exceed the limit. */
KL_NODISCARD kl_status kl_shared_set(kl_shared *s, const char *name, const kl_value *v, kl_err *err);
/* Adds a number; a missing one counts as 0. *out: the sum. KL_EINVAL: the present value is not a number, or
 * the sum exceeds what an integer, or a double, holds. */
KL_NODISCARD kl_status kl_shared_add(
    kl_shared *s, const char *name, const kl_value *by, const kl_value **out, kl_err *err);
/* Sets the name to v if its value equals `was` (NULL: if it has none); *done tells whether it was set. *is:
 * the present value. */
KL_NODISCARD kl_status kl_shared_swap(kl_shared *s, const char *name, const kl_value *was, const kl_value *v,
    bool *done, const kl_value **is, kl_err *err);
void kl_shared_forget(kl_shared *s, const char *name);
/* The names that begin with a prefix, sorted, NULL-terminated; the caller frees each and the list. */
char **kl_shared_names(kl_shared *s, const char *prefix);

/* One kl_shared for each script of a manager, by its name; a script that is loaded again gets its earlier
 * one. */
typedef struct kl_commons kl_commons;
kl_commons *kl_commons_new(void);
void kl_commons_free(kl_commons *c); /* NULL is fine */
/* any thread; borrowed, as long as the commons exist */
kl_shared *kl_commons_of(kl_commons *c, const char *script);

/* The metrics of scripts; borrowed, as long as the commons exist. */
kl_custom_metrics *kl_commons_metrics(kl_commons *c);

/* The store of a controller's memos, by key. A memo is removed with its object (kl_shared_forget, called on
 * the delete event). */
kl_shared *kl_memos_new(const char *controller);

/* --- of a run, on its worker's thread (memo.c) -------------------------------------------- */
kl_shared *kl_run_shared(kl_run *r); /* of its script; borrowed for the run */
void kl_run_count(kl_run *r, const kl_figure *f);
/* The memo of its key (an object, a new reference); NULL: it has none. A recreated object of the same name
 * starts without one. */
const kl_value *kl_run_memo(kl_run *r);
/* Sets a field of it, or removes it (v NULL). KL_ETOOBIG: it would exceed the limit of a memo, or of all of
 * them. */
KL_NODISCARD kl_status kl_run_memo_set(kl_run *r, const char *field, const kl_value *v, kl_err *err);

#endif
