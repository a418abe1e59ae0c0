/* lwarnings.c - warnings of the API server: the client's threads store them, the state reads them at any
 * time.
 *
 * At most WARNINGS_MAX wait; further ones are only counted. The client reports each text once
 * (client/client.h), so a state that reads seldom misses nothing. */
#include <string.h>
#include "api/post.h"
#include "base/log.h"
#include "base/mem.h"

#define WARNINGS_MAX 256

struct lkl_warnings {
    bool log;    /* set once */
    kl_mutex mu; /* guards the rest */
    struct {
        char *text, *call;
    } v[WARNINGS_MAX];
    size_t n;
    lua_Integer missed;
};

lkl_warnings *lkl__warnings_new(bool log)
{
    lkl_warnings *w = kl_new(lkl_warnings);
    w->log = log;
    kl_mutex_init(&w->mu);
    return w;
}

/* Drops the first n. */
static void forget(lkl_warnings *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        kl_free(w->v[i].text);
        kl_free(w->v[i].call);
    }
    w->n -= n;
    memmove(w->v, w->v + n, w->n * sizeof *w->v);
    w->missed = 0;
}

void lkl__warnings_free(lkl_warnings *w)
{
    if (!w)
        return;
    forget(w, w->n);
    kl_mutex_fini(&w->mu);
    kl_free(w);
}

void lkl__warnings_add(void *arg, const char *text, const char *call)
{
    lkl_warnings *w = arg;
    char quoted[1024], what[256];
    if (w->log)
        kl_warn("the API server warns", "warning=%s call=%s", kl_log_quote(text, quoted, sizeof quoted),
            kl_log_quote(call, what, sizeof what));
    kl_lock(&w->mu);
    if (w->n < WARNINGS_MAX) {
        w->v[w->n].text = kl_strdup(text);
        w->v[w->n++].call = kl_strdup(call);
    } else
        w->missed++;
    kl_unlock(&w->mu);
}

/* The i-th text or call as a string on the stack; false when there is none. Copied, so that nothing is
 * held while Lua allocates. */
static bool push_part(lua_State *L, lkl_warnings *w, size_t i, bool call)
{
    kl_lock(&w->mu);
    char *part = i < w->n ? kl_strdup(call ? w->v[i].call : w->v[i].text) : NULL;
    kl_unlock(&w->mu);
    if (part)
        lkl__push_text(L, part);
    return part != NULL;
}

/* client:warnings(): {{ text =, call = }, ...} since the last call, and how many more were dropped */
int lkl__client_warnings(lua_State *L)
{
    lkl_hub *h = lkl_box_check(L, 1, &lkl__client_class);
    lkl_warnings *w = h->warnings;
    lua_settop(L, 1);
    lua_newtable(L);
    size_t n = 0;
    for (; push_part(L, w, n, false); n++) {
        lua_createtable(L, 0, 2);
        lua_insert(L, -2);
        lua_setfield(L, -2, "text");
        push_part(L, w, n, true);
        lua_setfield(L, -2, "call");
        lua_rawseti(L, 2, (lua_Integer)n + 1);
    }
    kl_lock(&w->mu);
    lua_Integer missed = w->missed;
    forget(w, n);
    kl_unlock(&w->mu);
    lua_pushinteger(L, missed);
    return 2;
}
