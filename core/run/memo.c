/* memo.c - the memos of keys. A memo is stored as {uid, fields}: a recreated object of the same name starts
 * without one. */
#include <string.h>

#include "run/remote.h"
#include "run/run_impl.h"
#include "run/shared.h"

#define MEMO_MAX ((size_t)64 << 10) /* of one key */

/* A worker without a shared store has its own. */
static kl_commons *commons_of(kl_worker *w)
{
    if (w->o.commons)
        return w->o.commons;
    if (!w->commons)
        w->commons = kl_commons_new();
    return w->commons;
}

static kl_shared *memos_of(kl_worker *w)
{
    if (w->o.memos)
        return w->o.memos;
    if (!w->memos)
        w->memos = kl_memos_new(w->o.name);
    return w->memos;
}

kl_shared *kl_run_shared(kl_run *r)
{
    if (r->w->o.remote)
        return r->w->o.remote->shared(r->w->o.remote);
    return kl_commons_of(commons_of(r->w), r->gen->logic->program->name);
}

void kl_run_count(kl_run *r, const kl_figure *f)
{
    if (r->w->o.remote)
        r->w->o.remote->count(r, f);
    else
        kl_custom_metrics_record(kl_commons_metrics(commons_of(r->w)), f);
}

static const char *uid_of(const kl_run *r)
{
    const char *uid = kl_value_str_at(r->object, "metadata", "uid", NULL);
    return uid ? uid : "";
}

const kl_value *kl_run_memo(kl_run *r)
{
    if (r->w->o.remote)
        return r->w->o.remote->memo(r);
    const kl_value *all = kl_shared_get(memos_of(r->w), r->key), *fields = NULL;
    const char *uid = kl_value_str_at(all, "uid", NULL);
    if (uid && !strcmp(uid, uid_of(r)))
        fields = kl_value_ref(kl_value_get(all, "fields"));
    kl_value_unref(all);
    return fields;
}

/* Stores {uid, fields}, or forgets the memo when there are no fields. */
static kl_status keep(kl_run *r, const kl_value *fields, kl_err *err)
{
    if (!kl_value_len(fields)) {
        kl_shared_forget(memos_of(r->w), r->key);
        return KL_OK;
    }
    const kl_value *uid = kl_value_of_str(uid_of(r)), *half = kl_value_with(NULL, "uid", uid),
                   *all = kl_value_with(half, "fields", fields);
    kl_status st = kl_shared_set(memos_of(r->w), r->key, all, err);
    kl_value_unref(uid);
    kl_value_unref(half);
    kl_value_unref(all);
    return st;
}

kl_status kl_run_memo_set(kl_run *r, const char *field, const kl_value *v, kl_err *err)
{
    if (r->w->o.remote)
        return r->w->o.remote->memo_set(r, field, v, err);
    const kl_value *had = kl_run_memo(r), *fields = kl_value_with(had, field, v);
    size_t bytes = kl_value_bytes(fields);
    kl_status st = v && bytes > MEMO_MAX ? kl_fail(err, KL_ETOOBIG,
                       "ctx.memo may hold %zu KiB for a key; with \"%s\" it would be %zu: set fields that "
                       "are no longer needed to nil, or keep the value in the object",
                       MEMO_MAX >> 10, field, (bytes + 1023) >> 10)
                                         : keep(r, fields, err);
    kl_value_unref(had);
    kl_value_unref(fields);
    return st;
}
