/* render.c - objects in the version a client asked for.
 *
 * Versions of a CRD differ by name only (conversion None), or a webhook has made one of the other. Events are
 * stored as v1 and shown by events.k8s.io/v1 under its own names for the same fields; autoscalers are stored
 * as autoscaling/v2. */
#include "show/render.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "schema/edit.h"
#include "schema/normalize.h"
#include "show/scaler.h"

static const struct {
    const char *core, *events;
} event_fields[] = {
    {"message", "note"},
    {"involvedObject", "regarding"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingComponent", "reportingController"},
};

static bool is_new_event(const kl__kind *k) { return !strcmp(k->group, "events.k8s.io"); }

/* An Event with the field names of the other API; a new reference. */
static const kl_value *other_event(const kl_value *o, bool to_core)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(o); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(o, i, &key, &n);
        for (size_t f = 0; f < sizeof event_fields / sizeof *event_fields; f++)
            if (!strcmp(key, to_core ? event_fields[f].events : event_fields[f].core)) {
                key = to_core ? event_fields[f].core : event_fields[f].events;
                break;
            }
        /* the old API always tells who reports, even if nobody does */
        if (!to_core && !strncmp(key, "reporting", 9) && kl_value_str(v) && !*kl_value_str(v))
            continue;
        if (!strcmp(key, "apiVersion"))
            kl_build_kstr(b, key, to_core ? "v1" : "events.k8s.io/v1");
        else
            kl_build_kvalue(b, key, v);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

const kl_value *kl_render_stored(const kl__kind *k, const kl_value *o)
{
    if (is_new_event(k))
        kl__replace(&o, other_event(o, true));
    if (kl__is_old_scaler(k))
        kl__replace(&o, kl__scaler_to_v2(o));
    if (k->storage && !k->conversion && strcmp(k->storage, k->version)) {
        char *version = kl_sprintf("%s/%s", k->group, k->storage);
        KL_EDIT(&o, kl_value_of_str(version), "apiVersion");
        kl_free(version);
    }
    return o;
}

static bool is_of(const kl__kind *k, const kl_value *o)
{
    const char *version = kl_object_api_version(o);
    size_t n = strlen(k->group);
    return version && !strncmp(version, k->group, n) && version[n] == '/'
        && !strcmp(version + n + 1, k->version);
}

const kl_value *kl_render_version(const kl__kind *k, const kl_value *stored)
{
    if (is_new_event(k))
        return other_event(stored, false);
    if (kl__is_old_scaler(k))
        return kl__scaler_to_v1(stored);
    const kl_value *o = kl_value_ref(stored);
    if (k->conversion)
        return o;
    if (k->custom && !is_of(k, stored)) { /* stored as another version, perhaps before that became another */
        char *version = kl__kind_api_version(k);
        KL_EDIT(&o, kl_value_of_str(version), "apiVersion");
        kl_free(version);
    }
    if (k->custom && k->schema)
        kl__replace(&o, kl__normalize_custom(k->schema, o));
    return o;
}
