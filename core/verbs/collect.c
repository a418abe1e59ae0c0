/* collect.c - the writes of the garbage collector: they are calls of the verbs. */
#include "verbs/collect.h"

#include "base/log.h"
#include "model/object.h"
#include "owners/collect.h"
#include "schema/edit.h"
#include "verbs/convert.h"
#include "verbs/plug.h"

void kl__collect_forget(kl__world *w)
{
    if (w->owners)
        kl__owners_forget(w->owners);
}

static kl__call call_for(kl__world *w, kl__kind *k, const kl_value *object)
{
    return (kl__call){.w = w,
        .kind = kl__kind_of_stored(w, k, object),
        .ns = kl_object_namespace(object),
        .name = kl_object_name(object),
        .manager = "kube-controller-manager",
        .manager_given = true,
        .validation = KL_FIELDS_IGNORE};
}

static void failed(const kl__call *c, const char *what, const kl_err *err)
{
    kl_warn("the garbage collector could not finish", "what=%s resource=%s namespace=%s name=%s why=%s", what,
        c->kind->plural, c->ns ? c->ns : "", c->name, kl_err_message(err));
}

static void patch(void *arg, kl__kind *k, const kl_value *object, const kl_value *metadata)
{
    const kl_value *out = NULL;
    kl_err err = KL_ERR_INIT;
    int code;
    kl__call c = call_for(arg, k, object);
    if (kl__verb_patch(&c, KL_PATCH_MERGE, false, metadata, &out, &code, &err))
        failed(&c, "patch", &err);
    kl_value_unref(out);
    kl_err_fini(&err);
}

static void delete_it(void *arg, kl__kind *k, const kl_value *object, const char *policy)
{
    const kl_value *options = NULL, *out = NULL;
    kl_err err = KL_ERR_INIT;
    kl__call c = call_for(arg, k, object);
    KL_EDIT(&options, kl_value_of_str(policy), "propagationPolicy");
    KL_EDIT(&options, kl_value_of_str(kl_object_uid(object)), "preconditions", "uid");
    if (kl__verb_delete(&c, options, &out, &err))
        failed(&c, "delete", &err);
    kl_value_unref(out);
    kl_value_unref(options);
    kl_err_fini(&err);
}

void kl__collect(kl__world *w)
{
    if (w->owners)
        kl__collector_run(&(kl__collector){
            .kinds = w->kinds, .owners = w->owners, .patch = patch, .remove = delete_it, .arg = w});
    if (w->tallies)
        kl__plug_recount(w);
}
