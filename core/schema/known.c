/* known.c - one table of built-in kinds, made when it is first asked for. */
#include "schema/known.h"

#include <stdlib.h>
#include <string.h>
#include "base/sync.h"
#include "schema/kinds.h"

/* The list of conditions as Kubernetes' API conventions, and thereby most CRDs, have it. */
static const char ANY_OBJECT[] = "{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true,"
                                 "\"properties\":{\"status\":{\"type\":\"object\","
                                 "\"x-kubernetes-preserve-unknown-fields\":true,\"properties\":{"
                                 "\"conditions\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\","
                                 "\"x-kubernetes-list-map-keys\":[\"type\"],\"items\":{\"type\":\"object\","
                                 "\"required\":[\"type\"],\"x-kubernetes-preserve-unknown-fields\":true,"
                                 "\"properties\":{\"type\":{\"type\":\"string\"}}}}}}}}";

/* The table of kinds. It never changes once it is made. */
static struct {
    kl_mutex mu;
    kl__types *builtin KL_GUARDED_BY(mu);
    kl__types *others KL_GUARDED_BY(mu);
    kl__kinds *kinds KL_GUARDED_BY(mu);
} known = {.mu = KL_MUTEX_INIT};

static void read_all_locked(void) KL_REQUIRES(known.mu)
{
    const kl_value *json = NULL;
    known.builtin = kl__types_builtin();
    known.kinds = kl__kinds_new(known.builtin);
    if (kl_value_decode(ANY_OBJECT, sizeof ANY_OBJECT - 1, &json, NULL)
        || kl__types_of_crd(json, known.builtin, &known.others, NULL))
        abort(); /* the text is a constant */
    kl_value_unref(json);
}

const kl__schema *kl__schema_known(const char *group, const char *version, const char *kind)
{
    kl_lock(&known.mu);
    if (!known.kinds)
        read_all_locked();
    const kl__kind *k = kl__kinds_by_kind(known.kinds, group, version, kind);
    const kl__schema *s = k && k->schema ? k->schema : kl__types_root(known.others);
    kl_unlock(&known.mu);
    return s;
}

#ifdef KL_DEBUG
/* Frees the table at the end of the process, where every value that is still counted is a leak
 * (value/intern.c). */
__attribute__((destructor)) static void forget(void)
{
    kl_lock(&known.mu);
    kl__kinds_free(known.kinds);
    kl__types_free(known.others);
    kl__types_free(known.builtin);
    known.kinds = NULL;
    kl_unlock(&known.mu);
}
#endif
