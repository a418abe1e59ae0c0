/* access.c - from a request to a user, from a user to yes or no.
 *
 *   token or certificate --> user --impersonation, if allowed--> user --core/rbac--> served, or 403 */
#include "server/access.h"

#include <string.h>
#include <strings.h>

#include "audit/audit.h"
#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"
#include "schema/status.h"
#include "server/rest.h"
#include "rbac/attributes.h"
#include "rbac/mask.h"
#include "rbac/tokens.h"

#define AUTHENTICATED "system:authenticated"

/* ------------------------------------------------------------------ where roles are */

static const kl__bucket *bucket(kl_server *s, const char *plural)
{
    return kl__store_bucket(s->store, KL_RBAC_GROUP, plural);
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

kl_rbac_source kl__access_source(kl_server *s)
{
    return (kl_rbac_source){.role = find_role, .bindings = each_binding, .arg = s};
}

bool kl__access_allows(kl_server *s, const kl_value *user, const kl_rbac_request *request, kl_buf *why)
{
    if (!s->rbac)
        return true;
    kl_rbac_source source = kl__access_source(s);
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
    kl_server *s, const kl_value *asker, const kl_value *attributes, kl__reasons *kept, const char **reason)
{
    const char *user = kl_value_str_at(attributes, "user", NULL);
    const kl_value *who = user ? account(user, NULL) : kl_value_ref(asker ? asker : s->anybody);
    kl_rbac_request r = {.verb = kl_value_str_at(attributes, "verb", NULL),
        .path = kl_value_str_at(attributes, "path", NULL),
        .group = kl_value_str_at(attributes, "group", NULL),
        .resource = kl_value_str_at(attributes, "resource", NULL),
        .sub = kl_value_str_at(attributes, "subresource", NULL),
        .ns = kl_value_str_at(attributes, "namespace", NULL),
        .name = kl_value_str_at(attributes, "name", NULL)};
    kl_buf why = KL_BUF_INIT;
    bool yes = kl__access_allows(s, who, &r, &why);
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

/* ------------------------------------------------------------------ who asks */

/* The service account of an issued token; a new reference, or NULL. */
static const kl_value *of_issued(const kl_server *s, const char *token)
{
    const kl_value *claims = kl__issued_claims(s->issued, kl__server_wall(s), token);
    if (!claims)
        return NULL;
    const char *ns = kl_value_str_at(claims, "kubernetes.io", "namespace", NULL),
               *name = kl_value_str_at(claims, "kubernetes.io", "serviceaccount", "name", NULL),
               *uid = kl_value_str_at(claims, "kubernetes.io", "serviceaccount", "uid", NULL);
    char *key = kl_key_join(ns, name);
    const kl__entry *e = kl__bucket_get(kl__store_bucket(s->store, "", "serviceaccounts"), key);
    kl_free(key);
    return e && !strcmp(kl_object_uid(e->object), uid) ? account(kl_value_str_at(claims, "sub", NULL), uid)
                                                       : NULL;
}

const kl_value *kl__access_of_token(const kl_server *s, const char *token)
{
    if (!token || !*token)
        return NULL;
    const kl_value *user = kl_value_ref(s->tokens ? kl_map_get(s->tokens, token) : NULL);
    if (!user)
        user = of_issued(s, token);
    return user || s->rbac || s->tokens ? user : kl_value_ref(s->anybody);
}

/* A new reference; NULL: unknown token. */
static const kl_value *who(const kl_server *s, kl_httpd_request *http)
{
    const char *given = kl_httpd_header(http, "Authorization");
    const char *token = given && !strncasecmp(given, "Bearer ", 7) ? given + 7 + strspn(given + 7, " ")
                                                                   : NULL;
    char *cn = NULL, *organizations = NULL;
    const kl_value *user;
    kl_peer peer = kl_httpd_client(http, &cn, &organizations);
    if (peer == KL_PEER_GOOD && *cn) {
        char *groups = kl_sprintf("%s%s" AUTHENTICATED, organizations, *organizations ? "," : "");
        user = kl__user_new(cn, NULL, groups);
        kl_free(groups);
    } else
        user = kl__access_of_token(s, token);
    kl_free(cn);
    kl_free(organizations);
    if (user)
        return user;
    if (!s->rbac)
        return kl_value_ref(s->anybody);
    return given || peer == KL_PEER_BAD ? NULL
                                        : kl__user_new("system:anonymous", NULL, "system:unauthenticated");
}

static kl_status refuse(const kl_value *user, const kl_rbac_request *r, const kl_buf *why, kl_err *err)
{
    kl_buf what = KL_BUF_INIT, name = KL_BUF_INIT;
    const char *group = r->group ? r->group : "";
    kl_rbac_say(user, r, &what);
    if (!r->path) {
        kl_buf_printf(&name, "%s%s%s ", r->resource, *group ? "." : "", group);
        if (r->name && *r->name)
            kl_buf_printf(&name, "\"%s\" ", r->name);
        kl_buf_puts(&name, "is ");
    }
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "name", r->name && *r->name && !r->path ? r->name : NULL);
    kl_build_kstr(b, "group", *group ? group : NULL);
    kl_build_kstr(b, "kind", r->path ? NULL : r->resource);
    kl_build_end(b);
    kl_status st = kl__api_fail(err, 403, "Forbidden", kl_builder_done(b), "%sforbidden: %s%s%s",
        kl_buf_str(&name), kl_buf_str(&what), why->len ? ": " : "", kl_buf_str(why));
    kl_buf_fini(&what);
    kl_buf_fini(&name);
    return st;
}

static kl_status check(kl_server *s, const kl_value *user, const kl_rbac_request *r, kl_err *err)
{
    kl_buf why = KL_BUF_INIT;
    kl_status st = KL_OK;
    if (!kl__access_allows(s, user, r, &why))
        st = refuse(user, r, &why, err);
    kl_buf_fini(&why);
    return st;
}

/* ------------------------------------------------------------------ may he? */

typedef struct checking {
    kl_server *s;
    const kl_value *user;
    kl_err *err;
} checking;

static bool may_wear(void *arg, const kl_rbac_request *r)
{
    const checking *c = arg;
    return !check(c->s, c->user, r, c->err);
}

/* Replaces *user by the impersonated user. */
static kl_status impersonate(kl_server *s, kl_httpd_request *http, const kl_value **user, kl_err *err)
{
    const kl_value *masked = NULL;
    switch (kl_rbac_mask(http, may_wear, &(checking){s, *user, err}, &masked)) {
    case KL_MASK_NONE: return KL_OK;
    case KL_MASK_REFUSED: return KL_EFORBIDDEN; /* and err says why */
    case KL_MASK_NAMELESS:
        return kl__api_fail(err, 500, "InternalError", NULL,
            "Internal error occurred: impersonation of a group, uid or extra without a user");
    case KL_MASK_WORN: break;
    }
    kl_value_unref(*user);
    *user = masked;
    return KL_OK;
}

const kl_value *kl__access_admit(kl_server *s, kl_httpd_request *http)
{
    kl_err err = KL_ERR_INIT;
    kl__asked asked;
    const kl_value *user = who(s, http);
    kl_audit_record *record = kl_audit_attend(s->audit, http, user);
    kl_status st = user ? impersonate(s, http, &user, &err)
                        : kl__api_fail(&err, 401, "Unauthorized", NULL, "Unauthorized");
    if (user)
        kl_audit_impersonated(record, user);
    if (!st && s->rbac) {
        kl_buf why = KL_BUF_INIT;
        kl__access_read(http, &asked);
        bool yes = kl__access_allows(s, user, &asked.request, &why);
        kl_audit_decided(record, yes, kl_buf_str(&why));
        if (!yes)
            st = refuse(user, &asked.request, &why, &err);
        kl__access_read_fini(&asked);
        kl_buf_fini(&why);
    } else if (!st)
        kl_audit_decided(record, true, "");
    if (st) {
        kl__reply_error(http, NULL, &err);
        kl_value_unref(user);
        user = NULL;
    }
    kl_err_fini(&err);
    return user;
}
