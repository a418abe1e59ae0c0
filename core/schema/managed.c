/* managed.c - metadata.managedFields: ownership of fields, and the changes that an apply may make.
 *
 * The rules are those of structured-merge-diff's Updater. An update takes what it changes from everyone. An
 * apply owns exactly what its configuration names: a field that it named last time and names no more is
 * removed, unless another manager owns it too; changing another manager's field is a conflict. */
#include "schema/managed.h"

#include <string.h>

#include "base/mem.h"
#include "schema/edit.h"
#include "schema/normalize.h"
#include "schema/last_applied.h"
#include "schema/managers.h"
#include "schema/status.h"
#include "schema/typed.h"

static bool same(const char *a, const char *b) { return !strcmp(a ? a : "", b ? b : ""); }

/* The index of the writer's own entry, which is made when absent. */
static size_t own_entry(kl__managers *o, const kl__writer *w, const char *operation)
{
    const kl__manager mine = {.name = (char *)w->manager,
        .operation = (char *)operation,
        .api_version = (char *)w->api_version,
        .sub = (char *)w->sub};
    kl__manager *e = kl__managers_find(o, &mine);
    if (e) {
        kl_free(e->api_version);
        e->api_version = kl_strdup(w->api_version);
        return (size_t)(e - o->v);
    }
    *kl__managers_add(o) = (kl__manager){.name = kl_strdup(w->manager),
        .operation = kl_strdup(operation),
        .api_version = kl_strdup(w->api_version),
        .sub = kl_strdup(w->sub),
        .set = kl__fieldset_new()};
    return o->len - 1;
}

/* The others lose what they own in versions that the kind does not have. */
static void forget_versions(kl__managers *o, size_t self, const kl__writer *w)
{
    for (size_t i = 0; w->knows && i < o->len; i++) {
        kl__manager *e = &o->v[i];
        if (i == self || same(e->api_version, w->api_version)
            || w->knows(w->arg, e->api_version ? e->api_version : ""))
            continue;
        kl__fieldset_free(e->set);
        e->set = kl__fieldset_new();
    }
}

/* Removes fields that have no owners: identity, and the server's bookkeeping. */
static void strip(kl__fieldset *set, const kl__writer *w)
{
    static const char *const metadata[] = {"f:name", "f:namespace", "f:creationTimestamp", "f:selfLink",
        "f:uid", "f:generation", "f:managedFields", "f:resourceVersion"};
    kl__fieldset_drop(set, "f:apiVersion");
    kl__fieldset_drop(set, "f:kind");
    kl__fieldset *meta = kl__fieldset_kid(set, "f:metadata");
    if (meta) {
        meta->member = false;
        for (size_t i = 0; i < sizeof metadata / sizeof *metadata; i++)
            kl__fieldset_drop(meta, metadata[i]);
        if (kl__fieldset_empty(meta))
            kl__fieldset_drop(set, "f:metadata");
    }
    if (w->no_status)
        kl__fieldset_drop(set, "f:status");
    for (size_t i = set->len; w->only_status && i-- > 0;)
        if (strcmp(set->kids[i]->element, "f:status"))
            kl__fieldset_drop(set, set->kids[i]->element);
}

static const kl_value *without_owners(const kl_value *o)
{
    o = kl_value_ref(o);
    if (kl_value_at(o, "metadata", "managedFields", NULL))
        KL_CUT(&o, "metadata", "managedFields");
    return o;
}

static bool cleared(const kl_value *object)
{
    const kl_value *list = kl_value_at(object, "metadata", "managedFields", NULL),
                   *first = kl_value_item(list, 0);
    return kl_value_len(list) == 1 && kl_value_type(first) == KL_OBJECT && !kl_value_len(first);
}

/* Whether the client sent valid owners, which then replace the stored ones. */
static bool brings_owners(const kl_value *object)
{
    const kl_value *list = kl_value_at(object, "metadata", "managedFields", NULL);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *operation = kl_value_str_at(kl_value_item(list, i), "operation", NULL);
        if (!operation || (strcmp(operation, "Apply") && strcmp(operation, "Update"))
            || kl_value_type(kl_value_get(kl_value_item(list, i), "fieldsV1")) != KL_OBJECT)
            return false;
    }
    return kl_value_len(list) > 0;
}

static void set_time(kl__manager *e, const kl__writer *w)
{
    kl_free(e->time);
    e->time = kl_strdup(w->now);
}

static bool is_elsewhere(const kl__manager *e, const kl__writer *w)
{
    return w->other && same(e->api_version, w->other->api_version);
}

/* The changes from `a` to `b`, in the writer's version and, if there is another one, in that too. */
typedef struct seen {
    kl__changes here, there;
} seen;

/* A write that keeps the old status changes nothing there, whatever it says. */
static void forget_status(kl__changes *c, const kl__writer *w)
{
    kl__fieldset *const sets[] = {c->added, c->modified, c->removed};
    for (size_t i = 0; w->no_status && i < sizeof sets / sizeof *sets; i++)
        kl__fieldset_drop(sets[i], "f:status");
}

static void compare(const kl__schema *s, const kl__writer *w, const kl_value *a, const kl_value *b, seen *out)
{
    *out = (seen){0};
    kl__typed_compare(s, a, b, &out->here);
    forget_status(&out->here, w);
    if (!w->other)
        return;
    const kl_value *x = a ? w->other->convert(a) : NULL, *y = w->other->convert(b);
    kl__typed_compare(w->other->schema, x, y, &out->there);
    forget_status(&out->there, w);
    kl_value_unref(x);
    kl_value_unref(y);
}

static void seen_fini(seen *c, const kl__writer *w)
{
    kl__changes_fini(&c->here);
    if (w->other)
        kl__changes_fini(&c->there);
}

/* Removes the values that only a schema gives. */
static void without_defaults(const kl__schema *s, const kl_value **o)
{
    for (size_t i = 0; i < s->nfields; i++) {
        const kl__field *f = &s->fields[i];
        const kl_value *x = kl_value_ref(kl_value_get(*o, f->name));
        if (x && f->filled)
            without_defaults(f->schema, &x);
        if (x && (f->filled || f->schema->dflt))
            KL_EDIT(o, f->schema->dflt ? NULL : kl_value_ref(x), f->name);
        kl_value_unref(x);
    }
}

/* A new object in Go, whose values nobody set; NULL for a custom resource. */
static const kl_value *zero_of(const kl__schema *s)
{
    const kl_value *zero = NULL;
    if (!s || s->custom)
        return NULL;
    const kl_value *none = kl_value_empty(KL_OBJECT);
    if (kl__normalize(s, none, true, NULL, &zero, NULL))
        zero = NULL;
    else
        without_defaults(s, &zero);
    kl_value_unref(none);
    return zero;
}

void kl__managed_update(
    const kl__schema *s, const kl__writer *w, const kl_value *old, const kl_value **object)
{
    if (cleared(*object)) {
        KL_CUT(object, "metadata", "managedFields");
        return;
    }
    kl__managers o = kl__managers_of(brings_owners(*object) ? *object : old);
    if (old && !o.len) { /* an object that nobody owned stays so until an apply */
        KL_CUT(object, "metadata", "managedFields");
        kl__managers_fini(&o);
        return;
    }
    const kl_value *a = old ? without_owners(old) : zero_of(s), *b = without_owners(*object);
    seen both;
    compare(s, w, a, b, &both);
    const kl__changes c = both.here;
    size_t self = own_entry(&o, w, "Update");
    forget_versions(&o, self, w);
    for (size_t i = 0; i < o.len; i++) {
        kl__manager *e = &o.v[i];
        if (i == self)
            continue;
        const kl__changes *lost = is_elsewhere(e, w) ? &both.there : &both.here;
        kl__fieldset_subtract(e->set, lost->added);
        kl__fieldset_subtract(e->set, lost->modified);
        kl__fieldset_subtract(e->set, lost->removed);
    }
    kl__fieldset *took = kl__fieldset_copy(c.modified);
    kl__fieldset_add(took, c.added);
    strip(took, w);
    kl__fieldset_subtract(o.v[self].set, c.removed);
    kl__fieldset_add(o.v[self].set, took);
    if (!kl__fieldset_empty(took))
        set_time(&o.v[self], w);
    kl__managers_cap(&o);
    kl__managers_write(&o, object);
    kl__fieldset_free(took);
    seen_fini(&both, w);
    kl_value_unref(a);
    kl_value_unref(b);
    kl__managers_fini(&o);
}

/* ------------------------------------------------------------------ apply */

static kl__fieldset *fields_of(const kl__schema *s, const kl_value *v)
{
    kl__fieldset *set = kl__fieldset_new();
    if (v)
        kl__typed_fields(s, v, set);
    kl__typed_name_fields(s, set);
    return set;
}

static kl__fieldset *named(const kl__schema *s, const kl__fieldset *set)
{
    kl__fieldset *copy = kl__fieldset_copy(set);
    kl__typed_name_fields(s, copy);
    return copy;
}

/* Removes fields that `last` owned and no manager owns now from `merged`. Takes merged, returns the rest. */
static const kl_value *prune(
    const kl__schema *s, const kl_value *merged, const kl__managers *o, const kl__fieldset *last)
{
    if (kl__fieldset_empty(last))
        return merged;
    kl__fieldset *was = named(s, last), *claimed = kl__fieldset_new(), *there = fields_of(s, merged);
    for (size_t i = 0; i < o->len; i++)
        kl__fieldset_add(claimed, o->v[i].set);
    kl__typed_name_fields(s, claimed);
    const kl_value *pruned = kl__typed_remove(s, merged, was);

    /* give back what others own */
    kl__fieldset *left = fields_of(s, pruned), *gone = kl__fieldset_copy(there);
    kl__fieldset_subtract(gone, left);
    kl__fieldset_subtract(gone, claimed);
    kl_value_unref(pruned);
    pruned = kl__typed_remove(s, merged, gone);
    kl__fieldset_free(left);
    kl__fieldset_free(gone);

    /* and what `last` did not own */
    left = fields_of(s, pruned);
    gone = kl__fieldset_copy(there);
    kl__fieldset_subtract(gone, left);
    kl__fieldset_intersect(gone, was);
    kl_value_unref(pruned);
    pruned = kl__typed_remove(s, merged, gone);
    kl__fieldset_free(left);
    kl__fieldset_free(gone);
    kl__fieldset_free(was);
    kl__fieldset_free(claimed);
    kl__fieldset_free(there);
    kl_value_unref(merged);
    return pruned;
}

struct conflicts {
    kl_builder *causes;
    kl_buf lines, only;
    const kl__manager *who;
    size_t count;
};

static void owner_text(const kl__manager *e, kl_buf *out)
{
    kl_buf_printf(out, "\"%s\"", e->name ? e->name : "");
    if (e->sub && *e->sub)
        kl_buf_printf(out, " with subresource \"%s\"", e->sub);
    if (same(e->operation, "Update"))
        kl_buf_printf(out, " using %s", e->api_version ? e->api_version : "");
}

static void one_conflict(void *arg, const char *path)
{
    struct conflicts *c = arg;
    kl_buf who = KL_BUF_INIT;
    owner_text(c->who, &who);
    char *message = kl_sprintf("conflict with %s", kl_buf_str(&who));
    kl_build_object(c->causes);
    kl_build_kstr(c->causes, "reason", "FieldManagerConflict");
    kl_build_kstr(c->causes, "message", message);
    kl_build_kstr(c->causes, "field", path);
    kl_build_end(c->causes);
    kl_buf_printf(&c->lines, "\n- %s", path);
    kl_buf_clear(&c->only);
    kl_buf_printf(&c->only, "%s: %s", message, path);
    c->count++;
    kl_free(message);
    kl_buf_fini(&who);
}

/* The fields that an apply changes, in the version of the owner; join_touched() has been called. */
static const kl__fieldset *touched_of(const seen *c, const kl__manager *e, const kl__writer *w)
{
    return is_elsewhere(e, w) ? c->there.modified : c->here.modified;
}

static void join_touched(seen *c, const kl__writer *w)
{
    strip(c->here.added, w);
    strip(c->here.modified, w);
    kl__fieldset_add(c->here.modified, c->here.added);
    if (w->other)
        kl__fieldset_add(c->there.modified, c->there.added);
}

/* Fails with 409 if another owner's field changes, unless it is `allowed`. Otherwise, and with `force`, the
 * other owners lose the fields. */
static kl_status settle_conflicts(kl__managers *o, size_t self, const kl__writer *w, const seen *changes,
    const kl__fieldset *allowed, bool force, kl_err *err)
{
    struct conflicts c = {.causes = kl_builder_new()};
    kl_build_object(c.causes);
    kl_build_key(c.causes, "causes");
    kl_build_array(c.causes);
    for (size_t i = 0; i < o->len && !force; i++) {
        kl__fieldset *theirs = kl__fieldset_copy(o->v[i].set);
        kl__fieldset_intersect(theirs, touched_of(changes, &o->v[i], w));
        if (allowed)
            kl__fieldset_subtract(theirs, allowed);
        if (i != self && !kl__fieldset_empty(theirs)) {
            kl_buf who = KL_BUF_INIT;
            owner_text(&o->v[i], &who);
            kl_buf_printf(&c.lines, "%sconflicts with %s:", c.count ? "\n" : "", kl_buf_str(&who));
            kl_buf_fini(&who);
            c.who = &o->v[i];
            kl__fieldset_each(theirs, one_conflict, &c);
        }
        kl__fieldset_free(theirs);
    }
    kl_build_end(c.causes);
    kl_build_end(c.causes);
    const kl_value *details = kl_builder_done(c.causes);
    kl_status st = KL_OK;
    if (c.count) {
        st = kl__api_fail(err, 409, "Conflict", details, "Apply failed with %zu conflict%s: %s", c.count,
            c.count > 1 ? "s" : "", kl_buf_str(c.count > 1 ? &c.lines : &c.only));
    } else {
        kl_value_unref(details);
        for (size_t i = 0; i < o->len; i++)
            if (i != self) {
                bool there = is_elsewhere(&o->v[i], w);
                kl__fieldset_subtract(o->v[i].set, touched_of(changes, &o->v[i], w));
                kl__fieldset_subtract(o->v[i].set, there ? changes->there.removed : changes->here.removed);
            }
    }
    kl_buf_fini(&c.lines);
    kl_buf_fini(&c.only);
    return st;
}

kl_status kl__managed_apply(const kl__schema *s, const kl__writer *w, bool force, const kl_value *live,
    const kl_value *config, const kl_value **out, kl_err *err)
{
    kl__managers o = kl__managers_of(live);
    if (live && !o.len && !w->owners_unknown) { /* nobody owns what is there: it gets an owner */
        kl__writer before = *w;
        const kl_value *owned = kl_value_ref(live);
        before.manager = "before-first-apply";
        kl__managed_update(s, &before, NULL, &owned);
        kl__managers_fini(&o);
        o = kl__managers_of(owned);
        kl_value_unref(owned);
    }
    const kl_value *base = live ? without_owners(live) : NULL, *wanted = without_owners(config);
    const kl_value *merged = kl__typed_merge(s, base, wanted);
    size_t self = own_entry(&o, w, "Apply");
    forget_versions(&o, self, w);
    kl__fieldset *last = o.v[self].set, *now = kl__fieldset_new();
    kl__typed_fields(s, wanted, now);
    o.v[self].set = now;
    merged = prune(s, merged, &o, last); /* before `now` is stripped: its names count as claimed, too */
    strip(now, w);
    seen changes;
    compare(s, w, base, merged, &changes);
    join_touched(&changes, w);
    kl__fieldset *allowed = same(w->manager, "kubectl") ? kl__last_applied_fields(s, base) : NULL;
    kl_status st = settle_conflicts(&o, self, w, &changes, allowed, force, err);
    kl__fieldset_free(allowed);
    if (!st) {
        if (!base || !kl_value_equal(base, merged))
            set_time(&o.v[self], w);
        kl__managers_write(&o, &merged);
        *out = merged;
    } else
        kl_value_unref(merged);
    seen_fini(&changes, w);
    kl__fieldset_free(last);
    kl_value_unref(base);
    kl_value_unref(wanted);
    kl__managers_fini(&o);
    return st;
}

/* ------------------------------------------------------------------ equality */

bool kl__managed_same(const kl_value *a, const kl_value *b)
{
    const kl_value *x = without_owners(a), *y = without_owners(b);
    bool yes = kl_value_equal(x, y)
        && kl_value_len(kl_value_at(a, "metadata", "managedFields", NULL))
            == kl_value_len(kl_value_at(b, "metadata", "managedFields", NULL));
    kl_value_unref(x);
    kl_value_unref(y);
    return yes && kl__managers_same(a, b);
}
