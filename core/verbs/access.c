/* access.c - from a user to yes or no, by the roles that are stored; from a token to its user. */
#include "verbs/access.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"
#include "rbac/tokens.h"

/* ------------------------------------------------------------------ where roles are */

static const kl__bucket *bucket(kl__world *w, const char *plural)
{
    return kl__store_bucket(w->store, KL_RBAC_GROUP, plural);
}

static const kl_value *find_role(void *arg, const char *ns, const char *name)
{
    char *key = kl_key_join(ns, name);
    const kl__entry *e = kl__bucket_get(bucket(arg, ns ? "roles" : "clusterroles"), key);
    kl_free(key);
    return e ? e->object : NULL;
}

static void each_binding(
    void *arg, const char *ns, void (*fn)(void *fn_arg, const kl_value *binding), void *fn_arg)
{
    const kl__bucket *b = bucket(arg, ns ? "rolebindings" : "clusterrolebindings");
    for (size_t i = 0; i < b->len; i++) {
        const char *in = ns ? kl_object_namespace(b->v[i]->object) : NULL;
        if (!ns || (in && !strcmp(in, ns)))
            fn(fn_arg, b->v[i]->object);
    }
}

kl_rbac_source kl__access_source(kl__world *w)
{
    return (kl_rbac_source){.role = find_role, .bindings = each_binding, .arg = w};
}

bool kl__access_allows(kl__world *w, const kl_value *user, const kl_rbac_request *request, kl_buf *why)
{
    if (!w->rbac)
        return true;
    kl_rbac_source source = kl__access_source(w);
    return kl_rbac_allows(&source, user, request, why);
}

/* A service account, from its token. */
static const kl_value *account(const char *user, const char *uid)
{
    const char *ns = user + sizeof "system:serviceaccount:" - 1;
    char *groups = kl_sprintf(
        "system:serviceaccounts,system:serviceaccounts:%.*s,system:authenticated", (int)strcspn(ns, ":"), ns);
    const kl_value *v = kl__user_new(user, uid, groups);
    kl_free(groups);
    return v;
}

bool kl__access_asked(
    kl__world *w, const kl_value *asker, const kl_value *attributes, kl__reasons *kept, const char **reason)
{
    const char *user = kl_value_str_at(attributes, "user", NULL);
    const kl_value *who = user ? account(user, NULL) : kl_value_ref(asker ? asker : w->anybody);
    kl_rbac_request r = {.verb = kl_value_str_at(attributes, "verb", NULL),
        .path = kl_value_str_at(attributes, "path", NULL),
        .group = kl_value_str_at(attributes, "group", NULL),
        .resource = kl_value_str_at(attributes, "resource", NULL),
        .sub = kl_value_str_at(attributes, "subresource", NULL),
        .ns = kl_value_str_at(attributes, "namespace", NULL),
        .name = kl_value_str_at(attributes, "name", NULL)};
    kl_buf why = KL_BUF_INIT;
    bool yes = kl__access_allows(w, who, &r, &why);
    if (why.len) {
        kept->v = kl_realloc(kept->v, (kept->n + 1) * sizeof *kept->v);
        *reason = kept->v[kept->n++] = kl_strdup(kl_buf_str(&why));
    }
    kl_buf_fini(&why);
    kl_value_unref(who);
    return yes;
}

void kl__reasons_fini(kl__reasons *kept)
{
    for (size_t i = 0; i < kept->n; i++)
        kl_free(kept->v[i]);
    kl_free(kept->v);
}

/* ------------------------------------------------------------------ whose token */

/* The service account of an issued token; a new reference, or NULL. */
static const kl_value *of_issued(const kl__world *w, const char *token)
{
    const kl_value *claims = kl__issued_claims(w->issued, kl__world_wall(w), token);
    if (!claims)
        return NULL;
    const char *ns = kl_value_str_at(claims, "kubernetes.io", "namespace", NULL),
               *name = kl_value_str_at(claims, "kubernetes.io", "serviceaccount", "name", NULL),
               *uid = kl_value_str_at(claims, "kubernetes.io", "serviceaccount", "uid", NULL);
    char *key = kl_key_join(ns, name);
    const kl__entry *e = kl__bucket_get(kl__store_bucket(w->store, "", "serviceaccounts"), key);
    kl_free(key);
    return e && !strcmp(kl_object_uid(e->object), uid) ? account(kl_value_str_at(claims, "sub", NULL), uid)
                                                       : NULL;
}

const kl_value *kl__access_of_token(const kl__world *w, const char *token)
{
    if (!token || !*token)
        return NULL;
    const kl_value *user = kl_value_ref(w->tokens ? kl_map_get(w->tokens, token) : NULL);
    if (!user)
        user = of_issued(w, token);
    return user || w->rbac || w->tokens ? user : kl_value_ref(w->anybody);
}
