/* plug.c - what admission plugins see of the server, and the statuses of quotas. */
#include "verbs/plug.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "builtin/plugins.h"
#include "model/object.h"
#include "schema/edit.h"
#include "verbs/tally.h"

static const kl_value *find_around(void *arg, const char *group, const char *plural, const char *name)
{
    const kl__call *c = arg;
    const kl__kind *k = kl__kinds_get(c->w->kinds, group, "v1", plural);
    const kl__entry *e = k ? kl__bucket_get(k->bucket, name) : NULL;
    return e ? e->object : NULL;
}

static void each_around(void *arg, const char *group, const char *plural, const char *ns,
    void (*fn)(void *to, const kl_value *o), void *to)
{
    const kl__call *c = arg;
    const kl__kind *k = kl__kinds_get(c->w->kinds, group, "v1", plural);
    char *prefix = ns ? kl_sprintf("%s/", ns) : kl_strdup("");
    for (size_t i = k ? kl__bucket_from(k->bucket, prefix) : 0;
         k && i < k->bucket->len && !strncmp(k->bucket->v[i]->key, prefix, strlen(prefix)); i++)
        fn(to, k->bucket->v[i]->object);
    kl_free(prefix);
}

static bool cares(const kl__call *c) { return !c->kind->custom && !c->sub && kl__plugins_care(c->kind); }

static kl__admitted admitted(const kl__call *c, const kl_value *old, const kl__around *around)
{
    return (kl__admitted){
        .kind = c->kind, .ns = c->ns, .old = old, .loaded = c->any_status, .around = around};
}

kl_status kl__plug_add(const kl__call *c, const kl_value *old, const kl_value **o, kl_err *err)
{
    kl__around around = {find_around, each_around, (void *)c};
    kl__admitted a = admitted(c, old, &around);
    return cares(c) ? kl__plugins_add(&a, o, err) : KL_OK;
}

kl_status kl__plug_check(const kl__call *c, const kl_value *old, const kl_value *o, kl_err *err)
{
    kl__around around = {find_around, each_around, (void *)c};
    kl__admitted a = admitted(c, old, &around);
    return cares(c) ? kl__plugins_check(&a, o, err) : KL_OK;
}

/* ------------------------------------------------------------------ quotas */

static void write_status(kl__world *w, kl__kind *k, const kl_value *quota, const kl_value *status)
{
    const kl_value *o = kl_value_ref(quota), *out = NULL;
    kl_err err = KL_ERR_INIT;
    int code;
    kl__call c = {.w = w,
        .kind = k,
        .ns = kl_object_namespace(quota),
        .name = kl_object_name(quota),
        .sub = "status",
        .manager = "kube-apiserver",
        .manager_given = true,
        .validation = KL_FIELDS_IGNORE};
    KL_EDIT(&o, kl_value_ref(status), "status");
    if (kl__verb_update(&c, o, &out, &code, &err))
        kl_warn("the status of a quota could not be written", "namespace=%s name=%s why=%s", c.ns, c.name,
            kl_err_message(&err));
    kl_value_unref(out);
    kl_value_unref(o);
    kl_err_fini(&err);
}

struct found {
    const kl_value **v;
    size_t n;
};

static void keep(void *to, const kl_value *o)
{
    struct found *f = to;
    f->v = kl_realloc(f->v, (f->n + 1) * sizeof *f->v);
    f->v[f->n++] = kl_value_ref(o);
}

static void found_fini(struct found *f)
{
    for (size_t i = 0; i < f->n; i++)
        kl_value_unref(f->v[i]);
    kl_free(f->v);
}

kl_status kl__plug_charge(const kl__call *c, const kl_value *old, const kl_value *o, bool dry, kl_err *err)
{
    kl__kind *k = kl__kinds_get(c->w->kinds, "", "v1", "resourcequotas");
    if (!c->ns || c->sub || c->any_status || !k || !k->bucket->len)
        return KL_OK;
    kl__around around = {find_around, each_around, (void *)c};
    kl__admitted a = admitted(c, old, &around);
    struct found quotas = {0};
    kl_status st = KL_OK;
    each_around((void *)c, "", "resourcequotas", c->ns, keep, &quotas);
    const kl_value **used = kl_new_array(const kl_value *, quotas.n + 1);
    for (size_t i = 0; i < quotas.n && !st; i++)
        st = kl__quota_charge(&a, quotas.v[i], o, &used[i], err);
    for (size_t i = 0; i < quotas.n; i++) {
        const kl_value *status = kl_value_ref(kl_value_get(quotas.v[i], "status"));
        if (!st && !dry && !c->dry_run && !kl_value_equal(used[i], kl_value_get(status, "used"))) {
            KL_EDIT(&status, kl_value_ref(used[i]), "used");
            write_status(c->w, k, quotas.v[i], status);
        }
        kl_value_unref(status);
        kl_value_unref(used[i]);
    }
    kl_free(used);
    found_fini(&quotas);
    return st;
}

static void write_used(void *arg, const kl_value *quota, const kl_value *used)
{
    kl__world *w = arg;
    const kl_value *hard = kl_value_at(quota, "spec", "hard", NULL),
                   *status = kl_value_ref(kl_value_get(quota, "status"));
    if (!kl_value_equal(kl_value_get(status, "hard"), hard)
        || !kl_value_equal(kl_value_get(status, "used"), used)) {
        KL_EDIT(&status, kl_value_ref(hard), "hard");
        KL_EDIT(&status, kl_value_ref(used), "used");
        write_status(w, kl__kinds_get(w->kinds, "", "v1", "resourcequotas"), quota, status);
    }
    kl_value_unref(status);
}

void kl__plug_recount(kl__world *w) { kl__tallies_due(w->tallies, write_used, w); }
