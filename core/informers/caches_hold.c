/* caches_hold.c - caches whose users select namespaces: each is listed and watched while a user holds it. */
#include <string.h>

#include "base/mem.h"
#include "base/texts.h"
#include "informers/caches_impl.h"

/* The namespaces that one user holds; a cache has few users. */
typedef struct kl__hold {
    struct kl__hold *next;
    const void *user;
    char **namespaces;
} kl__hold;

static void hold_free(kl__hold *h)
{
    kl_texts_free(h->namespaces);
    kl_free(h);
}

void kl__cache_holds_free(kl_cache *c)
{
    for (kl__hold *h = c->held, *next; h; h = next) {
        next = h->next;
        hold_free(h);
    }
    kl_texts_free(c->present);
}

static char **held_by_any(const kl_cache *c)
{
    size_t n = 0;
    for (const kl__hold *h = c->held; h; h = h->next)
        n += kl_texts_len(h->namespaces);
    char **all = kl_new_array(char *, n + 1), **set;
    n = 0;
    for (const kl__hold *h = c->held; h; h = h->next)
        for (char **ns = h->namespaces; *ns; ns++)
            all[n++] = *ns;
    set = kl_texts_set(all, n);
    kl_free(all);
    return set;
}

void kl__cache_fit(kl_cache *c)
{
    char **want = held_by_any(c), **had = c->present;
    for (char **ns = had; ns && *ns; ns++)
        if (!kl_texts_has(want, *ns))
            kl_informer_drop_part(c->informer, *ns);
    for (char **ns = want; *ns; ns++)
        if (!kl_texts_has(had, *ns)) {
            kl_informer_part p = kl__cache_part(c, *ns);
            kl_informer_add_part(c->informer, &p);
        }
    c->present = want;
    kl_texts_free(had);
}

static void let_go(kl_cache *c, const void *user)
{
    for (kl__hold **at = &c->held, *h; (h = *at); at = &h->next)
        if (h->user == user) {
            *at = h->next;
            hold_free(h);
            return;
        }
}

void kl_cache_hold(kl_cache *c, const void *user, char *const *namespaces)
{
    if (!c->entry.scope.divided)
        return;
    let_go(c, user);
    if (namespaces) {
        kl__hold *h = kl_new(kl__hold);
        *h = (kl__hold){c->held, user, kl_texts_copy(namespaces)};
        c->held = h;
    }
    if (c->informer)
        kl__cache_fit(c);
}

bool kl_cache_covers(kl_cache *c, const char *ns)
{
    kl_informer *i = kl_cache_informer(c);
    if (!i)
        return false;
    return c->same || !c->resource->namespaced ? kl_informer_synced(i) : kl_informer_covers(i, ns);
}

const char *kl_caches_namespace(const kl_caches *s) { return s->o.ns; }
