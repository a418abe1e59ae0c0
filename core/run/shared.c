/* shared.c - a map and a lock. Values are built, measured and released outside of it. */
#include "run/shared.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "run/remote.h"

#define SHARED_MAX ((size_t)16 << 20) /* kube.shared of a script */
#define MEMOS_MAX ((size_t)64 << 20)  /* of all keys of a controller */
#define ENTRY_BYTES 64                /* what the map and malloc take for each */

typedef struct entry {
    const kl_value *v;
    size_t bytes;
} entry;

struct kl_shared {
    const struct kl_remote *remote; /* another process has it; NULL: it is here */
    char *what;
    size_t max;
    kl_mutex mu;
    kl_map *entries KL_GUARDED_BY(mu);
    size_t bytes KL_GUARDED_BY(mu);
};

kl_shared *kl_shared_new(const char *what, size_t max)
{
    kl_shared *s = kl_new(kl_shared);
    s->what = kl_strdup(what);
    s->max = max;
    kl_mutex_init(&s->mu);
    s->entries = kl_map_new();
    return s;
}

kl_shared *kl_shared_new_remote(const struct kl_remote *remote)
{
    kl_shared *s = kl_shared_new("", 0);
    s->remote = remote;
    return s;
}

static void entry_free(void *p)
{
    entry *e = p;
    if (e)
        kl_value_unref(e->v);
    kl_free(e);
}

void kl_shared_free(kl_shared *s)
{
    if (!s)
        return;
    kl_map_free(s->entries, entry_free);
    kl_mutex_fini(&s->mu);
    kl_free(s->what);
    kl_free(s);
}

static const kl_value *value_locked(kl_shared *s, const char *name) KL_REQUIRES(s->mu)
{
    entry *e = kl_map_get(s->entries, name);
    return e ? kl_value_ref(e->v) : NULL;
}

const kl_value *kl_shared_get(kl_shared *s, const char *name)
{
    if (s->remote)
        return s->remote->shared_get(s->remote, name);
    kl_lock(&s->mu);
    const kl_value *v = value_locked(s, name);
    kl_unlock(&s->mu);
    return v;
}

/* --- writing ------------------------------------------------------------------------------ */

static entry *entry_new(const char *name, const kl_value *v)
{
    if (!v)
        return NULL;
    entry *e = kl_new(entry);
    *e = (entry){kl_value_ref(v), strlen(name) + ENTRY_BYTES + kl_value_bytes(v)};
    return e;
}

/* Takes `fresh` (NULL: removes the name). *old: the value to free, which is `fresh` if it does not fit.
 * Returns 0, or then the bytes in use and 1. */
static size_t put_locked(kl_shared *s, const char *name, entry *fresh, entry **old) KL_REQUIRES(s->mu)
{
    entry *had = kl_map_get(s->entries, name);
    size_t bytes = s->bytes, without = bytes - (had ? had->bytes : 0);
    *old = fresh;
    if (fresh && fresh->bytes > s->max - without)
        return bytes + 1;
    s->bytes = without + (fresh ? fresh->bytes : 0);
    *old = fresh ? kl_map_set(s->entries, name, fresh) : kl_map_take(s->entries, name);
    return 0;
}

static kl_status too_big(const kl_shared *s, const char *name, size_t wanted, size_t there, kl_err *err)
{
    return kl_fail(err, KL_ETOOBIG,
        "%s may hold %zu KiB and holds %zu; the %zu KiB of \"%s\" do not fit: set fields that are no longer "
        "needed to nil, or keep the value in objects",
        s->what, s->max >> 10, there >> 10, (wanted + 1023) >> 10, name);
}

/* Called after the lock: frees what was replaced, or tells that nothing was. */
static kl_status put_done(const kl_shared *s, const char *name, entry *old, size_t full, kl_err *err)
{
    kl_status st = full ? too_big(s, name, old->bytes, full - 1, err) : KL_OK;
    entry_free(old);
    return st;
}

kl_status kl_shared_set(kl_shared *s, const char *name, const kl_value *v, kl_err *err)
{
    if (s->remote)
        return s->remote->shared_set(s->remote, name, v, err);
    entry *fresh = entry_new(name, v), *old;
    kl_lock(&s->mu);
    size_t full = put_locked(s, name, fresh, &old);
    kl_unlock(&s->mu);
    return put_done(s, name, old, full, err);
}

void kl_shared_forget(kl_shared *s, const char *name)
{
    entry *old;
    kl_lock(&s->mu);
    (void)put_locked(s, name, NULL, &old);
    kl_unlock(&s->mu);
    entry_free(old);
}

kl_status kl_shared_swap(kl_shared *s, const char *name, const kl_value *was, const kl_value *v, bool *done,
    const kl_value **is, kl_err *err)
{
    if (s->remote)
        return s->remote->shared_swap(s->remote, name, was, v, done, is, err);
    entry *fresh = entry_new(name, v), *old = fresh;
    size_t full = 0;
    kl_lock(&s->mu);
    const kl_value *there = value_locked(s, name);
    bool same = there && was ? kl_value_equal(there, was) : !there && !was;
    if (same)
        full = put_locked(s, name, fresh, &old);
    kl_unlock(&s->mu);
    kl_status st = put_done(s, name, old, full, err);
    if (!st) {
        *done = same;
        *is = same ? kl_value_ref(v) : kl_value_ref(there);
    }
    kl_value_unref(there);
    return st;
}

static bool is_number(const kl_value *v)
{
    kl_type t = kl_value_type(v);
    return t == KL_INT || t == KL_UINT || t == KL_DOUBLE;
}

/* NULL: the sum does not fit. */
static const kl_value *sum(const kl_value *a, const kl_value *b)
{
    int64_t x = 0, y, n;
    if ((!a || (kl_value_type(a) == KL_INT && kl_value_int(a, &x))) && kl_value_type(b) == KL_INT
        && kl_value_int(b, &y))
        return __builtin_add_overflow(x, y, &n) ? NULL : kl_value_of_int(n);
    double both = kl_value_double(a, 0) + kl_value_double(b, 0);
    return isfinite(both) ? kl_value_of_double(both) : NULL;
}

kl_status kl_shared_add(kl_shared *s, const char *name, const kl_value *by, const kl_value **out, kl_err *err)
{
    if (s->remote)
        return s->remote->shared_add(s->remote, name, by, out, err);
    for (bool done = false;;) {
        const kl_value *was = kl_shared_get(s, name), *is = NULL;
        if (was && !is_number(was)) {
            kl_status st = kl_fail(err, KL_EINVAL, "\"%s\" of %s is not a number but %s", name, s->what,
                kl_value_type_name(was));
            kl_value_unref(was);
            return st;
        }
        const kl_value *n = sum(was, by);
        kl_status st = n
            ? kl_shared_swap(s, name, was, n, &done, &is, err)
            : kl_fail(err, KL_EINVAL, "\"%s\" of %s would be more than a number holds", name, s->what);
        kl_value_unref(was);
        kl_value_unref(n);
        if (done)
            *out = is;
        else
            kl_value_unref(is);
        if (st || done)
            return st;
    }
}

char **kl_shared_names(kl_shared *s, const char *prefix)
{
    if (s->remote)
        return s->remote->shared_names(s->remote, prefix);
    kl_lock(&s->mu);
    char **names = kl_map_sorted_keys(s->entries);
    size_t n = 0;
    for (char **name = names; *name; name++)
        if (!strncmp(*name, prefix, strlen(prefix)))
            names[n++] = kl_strdup(*name);
    names[n] = NULL;
    kl_unlock(&s->mu);
    return names;
}

/* --- of all scripts ----------------------------------------------------------------------- */

struct kl_commons {
    kl_mutex mu;
    kl_map *scripts KL_GUARDED_BY(mu); /* name -> kl_shared */
    kl_custom_metrics *metrics;
};

kl_commons *kl_commons_new(void)
{
    kl_commons *c = kl_new(kl_commons);
    kl_mutex_init(&c->mu);
    c->scripts = kl_map_new();
    c->metrics = kl_custom_metrics_new();
    return c;
}

static void shared_free(void *p) { kl_shared_free(p); }

void kl_commons_free(kl_commons *c)
{
    if (!c)
        return;
    kl_map_free(c->scripts, shared_free);
    kl_custom_metrics_free(c->metrics);
    kl_mutex_fini(&c->mu);
    kl_free(c);
}

kl_shared *kl_commons_of(kl_commons *c, const char *script)
{
    kl_lock(&c->mu);
    kl_shared *s = kl_map_get(c->scripts, script);
    if (!s) {
        char *what = kl_sprintf("kube.shared of %s", script);
        kl_map_set(c->scripts, script, s = kl_shared_new(what, SHARED_MAX));
        kl_free(what);
    }
    kl_unlock(&c->mu);
    return s;
}

kl_custom_metrics *kl_commons_metrics(kl_commons *c) { return c->metrics; }

kl_shared *kl_memos_new(const char *controller)
{
    char *what = kl_sprintf("ctx.memo of all keys of %s", controller);
    kl_shared *s = kl_shared_new(what, MEMOS_MAX);
    kl_free(what);
    return s;
}
