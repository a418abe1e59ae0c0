/* access.c - from a user to yes or no, by the roles that are stored; from a token to its user. */
#include "verbs/access.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"
#include "model/time.h"
#include "rbac/tokens.h"

/* ------------------------------------------------------------------ where roles are */

static const kl_value *stored(
    const kl__world *w, const char *group, const char *plural, const char *ns, const char *name)
{
    char *key = kl_key_join(ns, name);
    const kl__entry *e = kl__bucket_get(kl__store_bucket(w->store, group, plural), key);
    kl_free(key);
    return e ? e->object : NULL;
}

static const kl_value *find_role(void *arg, const char *ns, const char *name)
{
    return stored(arg, KL_RBAC_GROUP, ns ? "roles" : "clusterroles", ns, name);
}

static void each_binding(
    void *arg, const char *ns, void (*fn)(void *fn_arg, const kl_value *binding), void *fn_arg)
{
    const kl__world *w = arg;
    const kl__bucket *b = kl__store_bucket(
        w->store, KL_RBAC_GROUP, ns ? "rolebindings" : "clusterrolebindings");
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

static void put_extra(kl_builder *b, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    char *name = kl_sprintf("authentication.kubernetes.io/%s", key);
    kl_build_key(b, name);
    kl_build_array(b);
    kl_build_str(b, value);
    kl_build_end(b);
    kl_free(name);
}

/* The facts about the user in a token, beside the name: the token itself, and the pod and node that it is
 * bound to. */
static const kl_value *extra_of(const kl_value *claims)
{
    static const char *const bound[] = {"node", "pod"};
    kl_builder *b = kl_builder_new();
    char *id = kl_sprintf("JTI=%s", kl_value_str_at(claims, "jti", NULL));
    kl_build_object(b);
    put_extra(b, "credential-id", id);
    kl_free(id);
    for (size_t i = 0; i < sizeof bound / sizeof *bound; i++) {
        const kl_value *ref = kl_value_at(claims, "kubernetes.io", bound[i], NULL);
        char *name = kl_sprintf("%s-name", bound[i]), *uid = kl_sprintf("%s-uid", bound[i]);
        put_extra(b, name, kl_value_str_at(ref, "name", NULL));
        put_extra(b, uid, kl_value_str_at(ref, "uid", NULL));
        kl_free(name);
        kl_free(uid);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* A service account, from its token. */
static const kl_value *account(const char *user, const char *uid, const kl_value *claims)
{
    const char *ns = user + sizeof "system:serviceaccount:" - 1;
    char *groups = kl_sprintf(
        "system:serviceaccounts,system:serviceaccounts:%.*s,system:authenticated", (int)strcspn(ns, ":"), ns);
    const kl_value *v = kl__user_new(user, uid, groups);
    kl_free(groups);
    if (claims) {
        const kl_value *extra = extra_of(claims), *with = kl_value_with_at(v, extra, "extra", NULL);
        kl_value_unref(extra);
        kl_value_unref(v);
        v = with;
    }
    return v;
}

bool kl__access_asked(
    kl__world *w, const kl_value *asker, const kl_value *attributes, kl__reasons *kept, const char **reason)
{
    const char *user = kl_value_str_at(attributes, "user", NULL);
    const kl_value *who = user ? account(user, NULL, NULL) : kl_value_ref(asker ? asker : w->anybody);
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

/* The kinds that a token may be bound to, and the claim for each. */
static const struct {
    const char *kind, *plural, *claim;
    bool namespaced;
} bindings[] = {
    {"Secret", "secrets", "secret", true}, {"Pod", "pods", "pod", true}, {"Node", "nodes", "node", false}};

const char *kl__access_bound_claim(const char *kind)
{
    for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++)
        if (!strcmp(bindings[i].kind, kind))
            return bindings[i].claim;
    return NULL;
}

/* Whether the object's deletion time passed more than a minute ago. Until then its tokens are good. */
static bool long_deleted(const kl__world *w, const kl_value *o)
{
    const char *text = kl_value_str_at(o, "metadata", "deletionTimestamp", NULL);
    int64_t sec;
    int32_t nsec;
    return text && !kl_time_parse(text, &sec, &nsec, NULL)
        && KL_SECONDS(sec) < kl__world_wall(w) - KL_SECONDS(60);
}

/* Whether the account and the object in the claims still exist, with the same uids; *why if not. */
static bool still_there(const kl__world *w, const kl_value *claims, char **why)
{
    const kl_value *ours = kl_value_get(claims, "kubernetes.io");
    const char *ns = kl_value_str_at(ours, "namespace", NULL),
               *name = kl_value_str_at(ours, "serviceaccount", "name", NULL),
               *uid = kl_value_str_at(ours, "serviceaccount", "uid", NULL);
    const kl_value *account = stored(w, "", "serviceaccounts", ns, name);
    if (!account)
        *why = kl_sprintf("serviceaccounts \"%s\" not found", name);
    else if (long_deleted(w, account))
        *why = kl_sprintf("service account %s/%s has been deleted", ns, name);
    else if (strcmp(kl_object_uid(account), uid))
        *why = kl_sprintf("service account UID (%s) does not match claim (%s)", kl_object_uid(account), uid);
    for (size_t i = 0; !*why && i < sizeof bindings / sizeof *bindings; i++) {
        const kl_value *claim = kl_value_get(ours, bindings[i].claim);
        if (!claim || (!bindings[i].namespaced && kl_value_get(ours, "pod"))) /* a pod's node only informs */
            continue;
        uid = kl_value_str_at(claim, "uid", NULL);
        const kl_value *o = stored(w, "", bindings[i].plural, bindings[i].namespaced ? ns : NULL,
            kl_value_str_at(claim, "name", NULL));
        if (!o || long_deleted(w, o))
            *why = kl_strdup("service account token has been invalidated");
        else if (strcmp(kl_object_uid(o), uid))
            *why = kl_sprintf("%s UID (%s) does not match service account %s ref claim (%s)",
                bindings[i].claim, kl_object_uid(o), bindings[i].claim, uid);
    }
    return !*why;
}

/* The requested audiences, or the API server's own. A new reference. */
static const kl_value *asked_audiences(const kl_value *audiences)
{
    if (kl_value_len(audiences))
        return kl_value_ref(audiences);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_str(b, KL_AUDIENCE);
    kl_build_end(b);
    return kl_builder_done(b);
}

const kl_value *kl__access_audiences(const kl__world *w, const char *token, const kl_value *audiences)
{
    const kl_value *claims = kl__issued_claims(w->issued, kl__world_wall(w), token),
                   *own = kl_value_get(claims, "aud"), *asked = asked_audiences(audiences);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(asked); i++) {
        const char *one = kl_value_str(kl_value_item(asked, i));
        if (one && (claims ? kl_value_has_str(own, one) : !strcmp(one, KL_AUDIENCE)))
            kl_build_str(b, one);
    }
    kl_build_end(b);
    kl_value_unref(asked);
    return kl_builder_done(b);
}

static void put_list(kl_buf *b, const kl_value *list)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl_buf_printf(b, "%s\"%s\"", i ? " " : "", kl_value_str(kl_value_item(list, i)));
}

/* The failure of a token that is for other audiences. */
static char *for_others(const kl_value *own, const kl_value *audiences)
{
    const kl_value *asked = asked_audiences(audiences);
    kl_buf text = KL_BUF_INIT;
    kl_buf_puts(&text, "token audiences [");
    put_list(&text, own);
    kl_buf_puts(&text, "] is invalid for the target audiences [");
    put_list(&text, asked);
    kl_buf_puts(&text, "]");
    kl_value_unref(asked);
    return kl_buf_take(&text);
}

const kl_value *kl__access_of_token(
    const kl__world *w, const char *token, const kl_value *audiences, char **why)
{
    if (!token || !*token)
        return NULL;
    const kl_value *claims = kl__issued_claims(w->issued, kl__world_wall(w), token), *user = NULL,
                   *meant = kl__access_audiences(w, token, audiences);
    bool ours = kl_value_len(meant);
    char *wrong = NULL;
    kl_value_unref(meant);
    if (!claims && ours) {
        user = kl_value_ref(w->tokens ? kl_map_get(w->tokens, token) : NULL);
        if (!user && !w->rbac && !w->tokens)
            user = kl_value_ref(w->anybody);
    } else if (claims && !ours)
        wrong = for_others(kl_value_get(claims, "aud"), audiences);
    else if (claims && still_there(w, claims, &wrong))
        user = account(kl_value_str_at(claims, "sub", NULL),
            kl_value_str_at(claims, "kubernetes.io", "serviceaccount", "uid", NULL), claims);
    if (!user && why)
        *why = wrong ? kl_sprintf("[invalid bearer token, %s]", wrong) : kl_strdup("invalid bearer token");
    kl_free(wrong);
    return user;
}
