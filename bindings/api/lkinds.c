/* lkinds.c - the kinds that every server has, by any of their names, where no server can be asked: a script
 * that is loaded, `check` without a cluster. The same table and the same rules as a client's discovery of the
 * embedded server (client/catalog.h). Any thread. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sync.h"
#include "client/catalog.h"
#include "discovery/discovery.h"
#include "schema/kinds.h"
#include "schema/schema.h"
#include "state/border.h"
#include "state/budget.h"

/* What the search for near names costs, in the steps of a script's budget. */
#define SEARCH_STEPS (1 << 18)

/* Made on first use, and constant after that. */
static struct {
    kl_mutex mu;
    kl__pool pool KL_GUARDED_BY(mu);
    kl__catalog *catalog KL_GUARDED_BY(mu);
} builtin = {.mu = KL_MUTEX_INIT};

static void read_page(const kl_discovery *d, kl__catalog *c, const char *path)
{
    kl_discovery_answer a;
    if (!kl_discovery_page(d, path, "v2", &a))
        abort(); /* both paths have a page */
    kl__catalog_aggregated(c, a.page);
    kl_value_unref(a.page);
}

static const kl__catalog *known_locked(void) KL_REQUIRES(builtin.mu)
{
    if (!builtin.catalog) {
        kl__types *types = kl__types_builtin();
        kl__kinds *kinds = kl__kinds_new(types);
        kl_discovery d = {.kinds = kinds};
        builtin.catalog = kl__catalog_new(&builtin.pool, NULL, 0);
        read_page(&d, builtin.catalog, "/api");
        read_page(&d, builtin.catalog, "/apis");
        kl__catalog_done(builtin.catalog);
        kl__kinds_free(kinds);
        kl__types_free(types);
    }
    return builtin.catalog;
}

#ifdef KL_DEBUG
/* At the end of the process: a value that is still counted afterwards is a leak. */
__attribute__((destructor)) static void forget(void)
{
    kl_lock(&builtin.mu);
    kl__catalog_free(builtin.catalog);
    kl__pool_fini(&builtin.pool);
    builtin.catalog = NULL;
    kl_unlock(&builtin.mu);
}
#endif

/* The full name of the kind, which the caller frees; NULL: *err says why there is none. */
static char *full_name(const char *word, kl_err *err)
{
    const kl_resource *r = NULL;
    kl_lock(&builtin.mu);
    const kl__catalog *known = known_locked();
    kl_status st = kl__catalog_find(known, word, &r, err);
    char *text = st ? NULL : kl_gvk_text(r->group, r->version, r->kind);
    if (st == KL_ENOTFOUND) {
        kl_buf near = KL_BUF_INIT;
        kl__catalog_near(known, word, &near);
        kl_err_fini(err);
        (void)kl_fail(err, st, "no built-in kind has the name \"%s\"%s%s in full: \"group/version/Kind\"",
            word, kl_buf_str(&near), near.len ? " A kind of a CRD is written" : "; write a kind of a CRD");
        kl_buf_fini(&near);
    }
    kl_unlock(&builtin.mu);
    return text;
}

static const lkl_class text_class = {"kubelua.text", kl_free, NULL, NULL};

/* core.kind(word): "apps/v1/Deployment" of "deploy", "deployments", "Deployment", "deployments.apps", ...;
 * nil and why when no built-in kind has that name, or several have. */
static int kind(lua_State *L)
{
    kl_err err = KL_ERR_INIT;
    const char *word = lkl__text(L, 1);
    lkl_box *box = lkl_box_new(L, &text_class, 0);
    box->ptr = full_name(word, &err);
    lua_pushstring(L, box->ptr); /* a NULL pushes nil */
    if (box->ptr)
        return 1;
    lkl__push_message(L, &err);
    if (lkl__border(L)->counted)
        lkl_budget_spend(L, SEARCH_STEPS);
    return 2;
}

void lkl__open_kinds(lua_State *L)
{
    lua_pushcfunction(L, kind);
    lua_setfield(L, -2, "kind");
}
