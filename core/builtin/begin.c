/* begin.c - what the server writes into new Namespaces, volumes and other objects. */
#include "builtin/begin.h"

#include <string.h>

#include "base/mem.h"
#include "model/time.h"
#include "schema/edit.h"

void kl__volume_phase(kl_time wall, const kl_value *old, const kl_value **o)
{
    const kl_value *phase = kl_value_at(*o, "status", "phase", NULL),
                   *since = kl_value_at(old, "status", "lastPhaseTransitionTime", NULL);
    char text[KL_TIME_MAX];
    if (!old && kl_value_at(*o, "status", "lastPhaseTransitionTime", NULL))
        return;
    if (!old || !kl_value_equal(kl_value_at(old, "status", "phase", NULL), phase))
        KL_EDIT(o, kl_value_of_str(kl_time_format_wall(wall, text)), "status", "lastPhaseTransitionTime");
    else if (since)
        KL_EDIT(o, kl_value_ref(since), "status", "lastPhaseTransitionTime");
}

void kl__namespace_begin(const kl_value **o)
{
    const kl_value *list = kl_value_at(*o, "spec", "finalizers", NULL);
    bool own = false;
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *name = kl_value_str(kl_value_item(list, i));
        own = own || (name && !strcmp(name, "kubernetes"));
        kl_build_value(b, kl_value_item(list, i));
    }
    if (!own)
        kl_build_str(b, "kubernetes");
    kl_build_end(b);
    KL_EDIT(o, kl_builder_done(b), "spec", "finalizers");
    KL_EDIT(o, kl_value_of_str("Active"), "status", "phase");
}
