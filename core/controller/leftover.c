/* leftover.c - one scan of the cache for each generation without `finalize`. */
#include "controller/leftover.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "model/object.h"
#include "controller/wiring_impl.h"

static void tell(kl_wiring *w, const kl_objects *all, const char *finalizer)
{
    const kl_controller_spec *s = w->logic.spec;
    size_t n = 0;
    const kl_value *first = NULL;
    for (size_t i = 0; i < all->len; i++) {
        if (!kl_object_has_finalizer(all->v[i], finalizer))
            continue;
        first = first ? first : all->v[i];
        n++;
    }
    if (!n)
        return;
    char *key = kl_object_key(first);
    kl_warn("objects still carry the finalizer of this controller, which has no finalize: they cannot be "
            "deleted; kubelua release-finalizers removes it",
        "controller=%s resource=%s finalizer=%s objects=%zu first=%s", s->name, s->resource, finalizer, n,
        key);
    kl_free(key);
}

void kl_leftover_tell(kl_wiring *w, const char *before)
{
    const kl_controller_spec *s = w->logic.spec;
    kl_objects all = {0};
    if (s->finalizer || !w->needs[0].informer
        || kl_informer_list(w->needs[0].informer, &(kl_query){0}, &all, NULL))
        return;
    char *usual = kl_sprintf("kubelua.dev/%s", kl_controller_spec_manager(s));
    tell(w, &all, usual);
    if (before && strcmp(before, usual))
        tell(w, &all, before);
    kl_free(usual);
    kl_objects_fini(&all);
}
