/* admit.c - finds the user of a request, and decides whether it is served.
 *
 *   token or certificate --> user --impersonation, if allowed--> user --core/rbac--> served, or 403 */
#include "server/admit.h"

#include <string.h>
#include <strings.h>

#include "audit/audit.h"
#include "base/mem.h"
#include "schema/status.h"
#include "server/reply.h"
#include "rbac/attributes.h"
#include "rbac/mask.h"
#include "rbac/tokens.h"
#include "verbs/access.h"

#define AUTHENTICATED "system:authenticated"

/* ------------------------------------------------------------------ the user */

/* The user of a request, a new reference; NULL: its token is unknown. */
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
        user = kl__access_of_token(&s->world, token, NULL, NULL);
    kl_free(cn);
    kl_free(organizations);
    if (user)
        return user;
    if (!s->world.rbac)
        return kl_value_ref(s->world.anybody);
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
    if (!kl__access_allows(&s->world, user, r, &why))
        st = refuse(user, r, &why, err);
    kl_buf_fini(&why);
    return st;
}

/* ------------------------------------------------------------------ the decision */

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
    case KL_MASK_REFUSED: return KL_EFORBIDDEN; /* err says why */
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
    if (!st && s->world.rbac) {
        kl_buf why = KL_BUF_INIT;
        kl__access_read(http, &asked);
        bool yes = kl__access_allows(&s->world, user, &asked.request, &why);
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
