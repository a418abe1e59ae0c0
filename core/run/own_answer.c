/* own_answer.c - the object's state from the answer to a write, and the versions that caches owe. */
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "run/own_impl.h"

static bool same_resource(const kl_resource *a, const kl_resource *b)
{
    return !strcmp(a->plural, b->plural) && !strcmp(a->group, b->group);
}

/* --- does the place hold it? -------------------------------------------------------------- */

static bool selected(const kl__place *p, const kl_value *object)
{
    return (!p->labels || kl_selector_matches(p->labels, kl_value_at(object, "metadata", "labels", NULL)))
        && (!p->fields || kl_field_selector_selects(p->fields, object));
}

/* --- one object --------------------------------------------------------------------------- */

typedef struct subject {    /* what was written, borrowed */
    const kl_value *object; /* the server's object; NULL: none */
    const char *ns, *name, *uid;
    bool whole;               /* `object` is the written object, not another kind (a Scale) about it */
    bool gone;                /* the object was deleted at once */
    const kl__effect *effect; /* not NULL: the answer has no version, and this is what caches will show */
} subject;

static void owe_locked(kl_own_writes *o, const char *name, kl__place *p, const subject *s, kl_time until)
    KL_REQUIRES(o->mu)
{
    const char *ns = p->resource->namespaced ? s->ns : NULL;
    bool changing = kl_informer_changing(p->informer);
    int part = kl_informer_part_of(p->informer, ns);
    if ((changing ? !kl_informer_covers(p->informer, ns) : part < 0) || !s->name)
        return;
    char *key = kl_key_join(ns, s->name);
    const kl_value *now = kl_informer_lookup(p->informer, key);
    const char *rv = s->object ? kl_object_rv(s->object) : NULL,
               *uid = s->uid ? s->uid
        : now                ? kl_object_uid(now)
                             : NULL;
    bool selects = p->labels || p->fields,
         inside = !selects || (s->whole ? selected(p, s->object) : now != NULL);
    uint64_t n = kl_rv_number(rv);
    kl__entry *e = NULL;
    if (s->effect) {
        if (uid && !kl_value_at(now, s->effect->at, s->effect->field, NULL)) {
            e = kl_new(kl__entry);
            e->what = KL__SET;
            e->uid = kl_strdup(uid);
            e->effect = s->effect;
        }
    } else if (s->gone || (!inside && now)) {
        e = kl_new(kl__entry);
        e->what = KL__GONE;
        e->uid = kl_strdup(uid);
    } else if (inside && n && n < INT64_MAX) {
        e = kl_new(kl__entry);
        e->what = changing ? KL__NUMBERED : KL__COUNTED;
    } else if (inside && rv && s->whole) {
        const char *before = now ? kl_object_rv(now) : NULL;
        if (!before || strcmp(before, rv)) {
            e = kl_new(kl__entry);
            e->what = KL__EXACT;
            e->rv = kl_strdup(rv);
            e->before = kl_strdup(before);
        }
    }
    kl_value_unref(now);
    if (!e) {
        kl_free(key);
        return;
    }
    e->part = part;
    e->ns = kl_strdup(ns);
    e->key = key;
    kl__own_add_locked(o, name, p, e, n, until);
}

static void owe(kl_own_writes *o, const char *name, const kl_resource *r, const subject *s, kl_time until)
{
    kl_lock(&o->mu);
    for (kl_list *n = o->places.next; n != &o->places; n = n->next) {
        kl__place *p = KL_CONTAINER(n, kl__place, link);
        if (same_resource(p->resource, r))
            owe_locked(o, name, p, s, until);
    }
    kl_unlock(&o->mu);
}

/* --- answers ------------------------------------------------------------------------------ */

/* A deleted object in the answer still exists while it ends gracefully, or has finalizers. */
static bool lingers(const kl_value *object)
{
    if (!kl_object_deleting(object))
        return false;
    int64_t grace = 0;
    return kl_value_len(kl_value_at(object, "metadata", "finalizers", NULL))
        || (kl_value_int(kl_value_at(object, "metadata", "deletionGracePeriodSeconds", NULL), &grace)
            && grace > 0);
}

static void note_object(kl_own_writes *o, const char *name, const kl_written *x, const kl_value *object,
    bool deleted, kl_time until)
{
    const char *kind = kl_object_kind(object), *ns = kl_object_namespace(object), *n = kl_object_name(object);
    subject s = {.object = object,
        .ns = ns ? ns : x->ns,
        .name = n ? n : x->name,
        .uid = kl_object_uid(object),
        .gone = deleted && !lingers(object),
        .whole = deleted || !x->subresource || (kind && !strcmp(kind, x->resource->kind))};
    owe(o, name, x->resource, &s, until);
}

/* Binding and eviction, whose answers are a Status. NULL: the write has no such effect. */
static const kl__effect *effect_of(const kl_written *x)
{
    static const kl__effect effects[] = {
        {"binding", "spec", "nodeName"}, {"eviction", "metadata", "deletionTimestamp"}};
    for (size_t i = 0; x->subresource && i < sizeof effects / sizeof *effects; i++)
        if (!strcmp(x->subresource, effects[i].subresource))
            return &effects[i];
    return NULL;
}

void kl_own_writes_note(kl_own_writes *o, const char *name, const kl_written *x, kl_time until)
{
    const kl_value *items = kl_value_get(x->answer, "items"), *details = kl_value_get(x->answer, "details");
    const char *kind = x->answer ? kl_object_kind(x->answer) : NULL;
    bool deleted = x->verb == KL_DELETE || x->verb == KL_DELETE_COLLECTION;
    if (x->verb == KL_DELETE_COLLECTION) {
        for (size_t i = 0; i < kl_value_len(items); i++)
            note_object(o, name, x, kl_value_item(items, i), true, until);
    } else if (kind && !strcmp(kind, "Status")) {
        const kl__effect *effect = effect_of(x);
        if (deleted && !x->subresource)
            owe(o, name, x->resource,
                &(subject){.ns = x->ns,
                    .name = x->name,
                    .uid = kl_value_str_at(details, "uid", NULL),
                    .whole = true,
                    .gone = true},
                until);
        else if (effect)
            owe(o, name, x->resource, &(subject){.ns = x->ns, .name = x->name, .effect = effect}, until);
    } else if (x->answer) {
        note_object(o, name, x, x->answer, deleted, until);
    }
}
