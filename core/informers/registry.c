/* registry.c - the table of shared informers, and which scope includes another. */
#include "informers/registry.h"

#include <string.h>

#include "base/locks.h"
#include "base/mem.h"
#include "base/texts.h"

/* --- scopes ------------------------------------------------------------------------------- */

void kl__scope_fini(kl__scope *c)
{
    kl_texts_free(c->namespaces);
    kl_free(c->labels);
    kl_free(c->fields);
    kl_projection_unref(c->keep);
    *c = (kl__scope){0};
}

static bool same_text(const char *a, const char *b) { return !a || !b ? a == b : !strcmp(a, b); }

/* Whether a keeps everything that b keeps. Only simple cases are recognised; otherwise false. */
static bool keeps_as_much(const kl_projection *a, const kl_projection *b)
{
    static const char *const managed[] = {"metadata", "managedFields"};
    if (!a || kl_projection_equal(a, b))
        return true;
    kl_projection *without = kl_projection_without_managed_fields();
    bool enough = kl_projection_equal(a, without) && !kl_projection_keeps(b, managed, 2);
    kl_projection_unref(without);
    return enough;
}

static bool same_objects(const kl__scope *a, const kl__scope *b)
{
    return a->divided == b->divided && kl_texts_same(a->namespaces, b->namespaces)
        && same_text(a->labels, b->labels) && same_text(a->fields, b->fields);
}

bool kl__scope_serves(const kl__scope *a, const kl__scope *b)
{
    return (!a->metadata || b->metadata) && keeps_as_much(a->keep, b->keep) && same_objects(a, b);
}

bool kl__scope_equal(const kl__scope *a, const kl__scope *b)
{
    return a->metadata == b->metadata && kl_projection_equal(a->keep, b->keep) && same_objects(a, b);
}

bool kl__scope_streams(const kl__scope *c)
{
    static const char *const annotations[] = {"metadata", "annotations"};
    return kl_projection_keeps(c->keep, annotations, 2);
}

/* --- the table ---------------------------------------------------------------------------- */

void kl__registry_init(kl__registry *r)
{
    kl_mutex_init_as(&r->mu, KL_LOCK_INFORMERS);
    kl_cond_init(&r->cond);
    r->entries = NULL;
}

void kl__registry_fini(kl__registry *r)
{
    kl_cond_fini(&r->cond);
    kl_mutex_fini(&r->mu);
}

void kl__registry_add_locked(
    kl__registry *r, kl__entry *e, const char *kind, const char *label, kl__scope *scope)
{
    e->kind = kl_strdup(kind);
    e->label = kl_strdup(label);
    e->scope = *scope;
    *scope = (kl__scope){0};
    e->users = 1;
    e->next = r->entries;
    r->entries = e;
}

kl__entry *kl__registry_join_locked(kl__registry *r, const char *kind, const kl__scope *scope,
    bool (*fits)(const kl__entry *e, const kl__scope *scope))
{
    for (kl__entry *e = r->entries; e; e = e->next)
        if (e->users && !e->hidden && !strcmp(e->kind, kind) && fits(e, scope)) {
            e->users++;
            return e;
        }
    return NULL;
}

void kl__registry_drop_locked(kl__registry *r, kl__entry *e)
{
    for (kl__entry **at = &r->entries; *at; at = &(*at)->next)
        if (*at == e) {
            *at = e->next;
            break;
        }
    kl_free(e->kind);
    kl_free(e->label);
    kl__scope_fini(&e->scope);
    kl_cond_broadcast(&r->cond);
}

void kl__registry_tell(kl__registry *r)
{
    kl_lock(&r->mu);
    kl_cond_broadcast(&r->cond);
    kl_unlock(&r->mu);
}
