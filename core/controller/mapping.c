/* mapping.c - from an event of some object to keys of the controller's resource.
 *
 * Paths, owners and names are mapped at once on the event's thread. A script's functions run on the mapper
 * thread: the event waits there under its key, and a later event of the same object joins it (oldest `old`,
 * newest `now`), so that the wait is bounded by the number of objects. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "model/object.h"
#include "value/path.h"
#include "run/cause.h"
#include "observe/flight.h"
#include "controller/wiring_impl.h"

/* --- priorities --------------------------------------------------------------------------- */

/* Events of existing and resynced objects have a lower priority than changes. */
static int priority_of(unsigned flags) { return flags & (KL_INITIAL | KL_RESYNC) ? KL_PRIORITY_LOW : 0; }

/* The effect of an event on its keys. */
typedef struct urge {
    int priority;
    kl_why why;
    const kl_value *by; /* the object of the event */
    kl_emit_fn *emit;   /* a callback that only gets the keys; NULL: they are enqueued */
    void *arg;
} urge;

static urge urge_of(const kl_value *old, const kl_value *now, unsigned flags)
{
    kl_why why = flags & KL_RESYNC ? KL_WHY_RESYNC
        : !now                     ? KL_WHY_DELETED
        : !old                     ? KL_WHY_ADDED
                                   : KL_WHY_CHANGED;
    return (urge){.priority = priority_of(flags), .why = why, .by = now ? now : old};
}

static int within(double n)
{
    return n > KL_PRIORITY_MOST ? KL_PRIORITY_MOST : n < -KL_PRIORITY_MOST ? -KL_PRIORITY_MOST : (int)n;
}

static void complain(kl_wiring *w, const char *what, const kl_value *o, kl_err *err)
{
    char *key = kl_object_key(o);
    kl_error(what, "controller=%s kind=%s key=%s error=%s", w->logic.spec->name, kl_object_kind(o), key,
        kl_log_quoted(kl_err_message(err)));
    kl_free(key);
}

static void take_number(void *arg, const char *text) { *(int *)arg = within(strtod(text, NULL)); }

int kl__own_priority(kl_wiring *w, void *state, const kl_value *object)
{
    const kl_controller_spec *s = w->logic.spec;
    int n = within(s->priority);
    if (s->priority_of.path && object) {
        const kl_value *v = kl_path_get(s->priority_of.path, object);
        if (kl_value_type(v) == KL_STRING)
            take_number(&n, kl_value_str(v));
        else if (v)
            n = within(kl_value_double(v, 0));
    } else if (s->priority_of.fn && state && object) {
        kl_err err = KL_ERR_INIT;
        kl_status st = w->logic.program->ops->index(state, s->priority_of.fn, object, take_number, &n, &err);
        if (st && !kl__mapper_state_spent(w->mapper, st, "`priority` function", object, &err))
            complain(w, "the `priority` function failed; the key gets the normal priority", object, &err);
        kl_err_fini(&err);
    }
    return n;
}

/* The urgency comes from the event, the rest from the script. */
static void enqueue(kl_wiring *w, void *state, const char *key, const kl_value *object, const urge *u)
{
    if (u->emit) {
        u->emit(u->arg, key);
        return;
    }
    if (w->o.ours && !w->o.ours(w->o.ours_arg, key))
        return;
    const kl_text_of *own = &w->logic.spec->priority_of;
    const kl_value *found = !object && (own->path || own->fn) ? kl_wiring_object(w, key) : NULL;
    int priority = u->priority + kl__own_priority(w, state, object ? object : found);
    kl_value_unref(found);
    kl_workqueue_add_with(w->o.queue, key,
        &(kl_add){.priority = priority, .cause = kl_cause_of(u->why, u->by)}, kl_clock_now(w->o.clock));
}

static void enqueue_object(kl_wiring *w, void *state, const kl_value *o, const urge *u)
{
    char *key = kl_object_key(o);
    if (key)
        enqueue(w, state, key, o, u);
    kl_free(key);
}

/* --- predicates --------------------------------------------------------------------------- */

static bool differs(const kl_value *a, const kl_value *b, const char *part)
{
    return !kl_value_equal(kl_value_at(a, "metadata", part, NULL), kl_value_at(b, "metadata", part, NULL));
}

static bool path_differs(const kl_value *a, const kl_value *b, const char *text)
{
    kl_path *p = NULL;
    if (kl_path_parse(text, &p, NULL))
        return true;
    bool d = !kl_value_equal(kl_path_get(p, a), kl_path_get(p, b));
    kl_path_free(p);
    return d;
}

static bool word_passes(const char *word, const kl_value *old, const kl_value *now)
{
    if (!strcmp(word, "generation")) /* kinds without one fall back to the resourceVersion */
        return kl_object_generation(now) ? kl_object_generation(now) != kl_object_generation(old)
                                         : differs(old, now, "resourceVersion");
    if (!strcmp(word, "labels") || !strcmp(word, "annotations") || !strcmp(word, "resourceVersion"))
        return differs(old, now, word);
    return path_differs(old, now, word);
}

/* Adds, deletes, resyncs and the begin of a deletion always pass. */
static bool is_update(const kl_value *old, const kl_value *now, unsigned flags)
{
    return old && now && !(flags & KL_RESYNC) && kl_object_deleting(now) == kl_object_deleting(old);
}

static bool words_pass(char **words, const kl_value *old, const kl_value *now)
{
    if (!words)
        return true;
    for (char **w = words; *w; w++)
        if (word_passes(*w, old, now))
            return true;
    return false;
}

typedef enum verdict { NO, YES, ASK } verdict; /* ASK: the script's predicate decides */

static bool matches(const kl_selector *s, const kl_value *o)
{
    return o && kl_selector_matches(s, kl_value_at(o, "metadata", "labels", NULL));
}

static verdict judge(const kl_when *when, const kl_value *old, const kl_value *now, unsigned flags)
{
    if (when->selector) {
        bool before = matches(when->selector, old), after = matches(when->selector, now);
        if (!before && !after)
            return NO;
        if (old && now && before != after)
            return YES; /* for this controller the object was added or deleted */
    }
    if (!is_update(old, now, flags))
        return YES;
    return !words_pass(when->words, old, now) ? NO : when->fn ? ASK : YES;
}

/* --- owners, names, indexes --------------------------------------------------------------- */

static bool is_our_kind(kl_wiring *w, const kl_value *ref)
{
    const kl_resource *r = w->needs[0].resource;
    const char *kind = kl_value_str_at(ref, "kind", NULL),
               *api_version = kl_value_str_at(ref, "apiVersion", NULL);
    if (!r || !kind || !api_version || strcmp(kind, r->kind))
        return false;
    char *group, *version; /* any version of the group is the same kind */
    kl_api_version_split(api_version, &group, &version);
    bool ours = !strcmp(group, r->group);
    kl_free(group);
    kl_free(version);
    return ours;
}

static void enqueue_owners(kl_wiring *w, void *state, const kl_value *o, bool controller_only, const urge *u)
{
    const kl_value *refs = kl_value_at(o, "metadata", "ownerReferences", NULL);
    for (size_t i = 0; i < kl_value_len(refs); i++) {
        const kl_value *ref = kl_value_item(refs, i);
        const char *name = kl_value_str_at(ref, "name", NULL);
        if (!name || (controller_only && !kl_value_bool(kl_value_get(ref, "controller"), false))
            || !is_our_kind(w, ref))
            continue;
        char *key = kl_key_join(w->needs[0].resource->namespaced ? kl_object_namespace(o) : NULL, name);
        enqueue(w, state, key, NULL, u);
        kl_free(key);
    }
}

static void enqueue_same_name(kl_wiring *w, void *state, const kl_value *o, const urge *u)
{
    if (!w->needs[0].resource || !kl_object_name(o))
        return;
    char *key = kl_key_join(
        w->needs[0].resource->namespaced ? kl_object_namespace(o) : NULL, kl_object_name(o));
    enqueue(w, state, key, NULL, u);
    kl_free(key);
}

/* Warns once: with divided caches, the replica of another namespace does not see this object. */
static void look_abroad(kl_wiring *w, const kl_value *from, const char *to)
{
    const char *ns = w->o.divided ? kl_object_namespace(from) : NULL;
    size_t n = ns ? strlen(ns) : 0;
    if (!n || (!strncmp(to, ns, n) && to[n] == '/') || atomic_exchange(&w->told_abroad, true))
        return;
    char *key = kl_object_key(from);
    kl_warn("an object maps to a key in another namespace, whose replica does not see that object: keep all "
            "namespaces, with shard = { by = \"namespace\", caches = \"all\" }",
        "controller=%s kind=%s key=%s leads_to=%s", w->logic.spec->name, kl_object_kind(from), key, to);
    kl_free(key);
}

static void enqueue_via(kl_wiring *w, void *state, const kl_value *o, const char *index, const urge *u)
{
    const char *name = kl__wired_index_name(w, &w->needs[0], index);
    char *key = kl_object_key(o);
    kl_objects found = {0};
    if (name && key && w->needs[0].informer
        && !kl_informer_list(w->needs[0].informer, &(kl_query){.index = name, .value = key}, &found, NULL))
        for (size_t i = 0; i < found.len; i++) {
            char *to = kl_object_key(found.v[i]);
            look_abroad(w, o, to);
            enqueue(w, state, to, found.v[i], u);
            kl_free(to);
        }
    kl_objects_fini(&found);
    kl_free(key);
}

/* Maps an object of a watched kind to keys, except by the script's functions. */
static void deliver_one(kl_feed *f, void *state, const kl_value *o, const urge *u)
{
    if (f->role == KL_ROLE_OWNS)
        enqueue_owners(f->w, state, o, true, u);
    else if (f->watch->how == KL_MAP_OWNER)
        enqueue_owners(f->w, state, o, false, u);
    else if (f->watch->how == KL_MAP_SAME_NAME)
        enqueue_same_name(f->w, state, o, u);
    else
        enqueue_via(f->w, state, o, f->watch->via, u);
}

/* --- functions: on the mapper thread ------------------------------------------------------ */

typedef struct pending_event {
    kl_wiring *w;
    kl_feed *feed;
    char *slot;
    const kl_value *old, *now;
    int priority; /* the highest of the events that joined */
    kl_why why;   /* of the last event that joined */
    bool ask;     /* none of them passes without the predicate */
} pending_event;

typedef struct emission {
    kl_wiring *w;
    void *state;
    const urge *u;
    const kl_value *from;
} emission;

static void emit_key(void *arg, const char *key)
{
    emission *e = arg;
    look_abroad(e->w, e->from, key);
    enqueue(e->w, e->state, key, NULL, e->u);
}

static char *of_kind(const char *function, const char *kind)
{
    return kl_sprintf("%s of watches[\"%s\"]", function, kind);
}

static void map_one(kl_feed *f, void *state, const kl_value *o, const urge *u)
{
    kl_err err = KL_ERR_INIT;
    kl_wiring *w = f->w;
    emission e = {w, state, u, o};
    kl_status st = w->logic.program->ops->map(state, f->watch->fn, &w->reader, o, emit_key, &e, &err);
    char *which = st ? of_kind("mapping function", f->watch->kind) : NULL;
    if (st && !kl__mapper_state_spent(w->mapper, st, which, o, &err))
        complain(w, "a mapping function failed; this event enqueued no key", o, &err);
    kl_free(which);
    kl_err_fini(&err);
}

/* An update may move an object from one owner to another: both states are mapped. state NULL: functions
 * cannot be called. */
static void deliver(kl_feed *f, void *state, const kl_value *old, const kl_value *now, const urge *u)
{
    const kl_value *both[] = {old, now};
    if (f->role == KL_ROLE_PRIMARY) {
        enqueue_object(f->w, state, now ? now : old, u);
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (!both[i] || (i == 1 && both[0] == both[1]))
            continue;
        if (f->role == KL_ROLE_OWNS || f->watch->how != KL_MAP_FN)
            deliver_one(f, state, both[i], u);
        else if (state)
            map_one(f, state, both[i], u);
    }
}

static bool predicate_passes(kl_wiring *w, void *state, const pending_event *e)
{
    kl_err err = KL_ERR_INIT;
    bool pass = true; /* a broken predicate must not hide changes */
    kl_status st = w->logic.program->ops->predicate(state, e->feed->when->fn, e->now, e->old, &pass, &err);
    char *which = !st                    ? NULL
        : e->feed->role == KL_ROLE_WATCH ? of_kind("`when` function", e->feed->watch->kind)
                                         : kl_strdup("`when` function");
    if (st && kl__mapper_state_spent(w->mapper, st, which, e->now, &err)) {
        pass = false; /* no further function is called */
    } else if (st) {
        complain(w, "the `when` function failed; the event is let through", e->now, &err);
        pass = true;
    }
    kl_free(which);
    kl_err_fini(&err);
    return pass;
}

/* Reports a dropped change; objects that were never ours do not count. */
static void tell_dropped(const kl_feed *f, const kl_value *old, const kl_value *now, const char *by)
{
    const kl_wiring *w = f->w;
    if (w->o.flight && old && now)
        kl_flight_dropped(w->o.flight, w->logic.spec->name,
            f->role == KL_ROLE_PRIMARY ? NULL : kl_cache_kind(f->need->cache), now, by);
}

static void run_pending(void *arg)
{
    pending_event *e = arg;
    kl_wiring *w = e->w;
    kl_lock(&w->mu);
    kl_map_take(w->pending, e->slot);
    kl_unlock(&w->mu);
    bool active = (atomic_load(&w->active) || atomic_load(&w->followed)) && !kl_wiring_spent(w);
    void *state = active ? kl__mapper_state_open(w->mapper) : NULL;
    kl_time begun = kl_clock_now(w->o.clock);
    bool ask = e->ask && state && e->old && e->now; /* a predicate that cannot run must not hide changes */
    if (active && ask && !predicate_passes(w, state, e))
        tell_dropped(e->feed, e->old, e->now, "the `when` function returned false");
    else if (active)
        deliver(e->feed, state, e->old, e->now,
            &(urge){.priority = e->priority, .why = e->why, .by = e->now ? e->now : e->old});
    kl__mapper_state_took(w->mapper, kl_clock_now(w->o.clock) - begun);
    kl_value_unref(e->old);
    kl_value_unref(e->now);
    kl_free(e->slot);
    kl_free(e);
    kl_wiring_unref(w);
}

static void defer(kl_feed *f, const kl_value *old, const kl_value *now, const urge *u, bool ask)
{
    kl_wiring *w = f->w;
    char *key = kl_object_key(now ? now : old), *slot = kl_sprintf("%p %s", (void *)f, key);
    kl_free(key);
    kl_lock(&w->mu);
    pending_event *e = kl_map_get(w->pending, slot);
    const kl_value *superseded = NULL;
    bool first = !e;
    if (e) {
        superseded = e->now;
        e->now = kl_value_ref(now);
        if (u->priority > e->priority)
            e->priority = u->priority;
        e->why = u->why;
        e->ask &= ask;
        kl_free(slot);
    } else {
        e = kl_new(pending_event);
        *e = (pending_event){
            kl_wiring_ref(w), f, slot, kl_value_ref(old), kl_value_ref(now), u->priority, u->why, ask};
        kl_map_set(w->pending, slot, e);
    }
    kl_unlock(&w->mu);
    kl_value_unref(superseded);
    if (first)
        kl_loop_post_in(w->o.mapper, w->mapper->line, run_pending, e);
}

typedef struct asking {
    kl_feed *f;
    const kl_value *object;
    urge u;
} asking;

static void ask_on_mapper(void *arg)
{
    asking *a = arg;
    void *state = kl__mapper_state_open(a->f->w->mapper);
    deliver(a->f, state, NULL, a->object, &a->u);
}

void kl__feed_keys(kl_feed *f, const kl_value *object, kl_emit_fn *emit, void *arg)
{
    asking a = {f, object, {.emit = emit, .arg = arg}};
    if (f->role == KL_ROLE_WATCH && f->watch->how == KL_MAP_FN)
        kl_loop_call(f->w->o.mapper, ask_on_mapper, &a);
    else
        deliver(f, NULL, NULL, object, &a.u);
}

/* --- the way in --------------------------------------------------------------------------- */

static void tell_deleted(kl_feed *f, const kl_value *o)
{
    if (f->role != KL_ROLE_PRIMARY || !f->w->o.deleted)
        return;
    char *key = kl_object_key(o);
    f->w->o.deleted(f->w->o.deleted_arg, key);
    kl_free(key);
}

void kl__feed_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    kl_feed *f = arg;
    kl_wiring *w = f->w;
    if (!atomic_load(&w->active))
        return;
    if (w->o.hold)
        w->o.hold(w->o.hold_arg);
    if (type == KL_DELETED) {
        tell_deleted(f, old ? old : now);
        now = NULL;
    }
    verdict v = judge(f->when, old, now, flags);
    if (v == NO) {
        tell_dropped(f, old, now,
            f->when->selector && !matches(f->when->selector, now)
                ? "its labels do not match the selector of `when`"
                : "none of the fields in `when` has changed");
        return;
    }
    bool fn = v == ASK || (f->role == KL_ROLE_WATCH && f->watch->how == KL_MAP_FN)
        || w->logic.spec->priority_of.fn;
    urge u = urge_of(old, now, flags);
    if (fn)
        defer(f, old, now, &u, v == ASK);
    else
        deliver(f, NULL, old, now, &u);
}

void kl__feed_lull(void *arg)
{
    kl_wiring *w = ((kl_feed *)arg)->w;
    if (w->o.release)
        w->o.release(w->o.hold_arg);
}

void kl__feed_synced(void *arg)
{
    kl_feed *f = arg;
    void (*changed)(void *), *changed_arg;
    atomic_store(&f->told, true);
    kl_caches_notify(f->w->o.caches, &changed, &changed_arg);
    if (changed)
        kl_loop_post(f->w->o.loop, changed, changed_arg);
}
