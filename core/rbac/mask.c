/* mask.c - impersonation: see apiserver/pkg/endpoints/filters. Each part of a mask needs its own
 * permission. */
#include "rbac/mask.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define AUTHENTICATED "system:authenticated"
#define SERVICE_ACCOUNT "system:serviceaccount:"

typedef struct mask {
    const char *name, *uid;
    kl_builder *groups, *extra;
    size_t ngroups, nextra;
    bool authenticated, anonymous;
    bool (*may)(void *arg, const kl_rbac_request *r);
    void *arg;
    bool refused;
} mask;

static void may_wear(
    mask *m, const char *group, const char *resource, const char *sub, const char *ns, const char *name)
{
    kl_rbac_request r = {
        .verb = "impersonate", .group = group, .resource = resource, .sub = sub, .ns = ns, .name = name};
    m->refused = m->refused || !m->may(m->arg, &r);
}

static void wear_user(mask *m, const char *name)
{
    m->name = name;
    m->anonymous = !strcmp(name, "system:anonymous");
    size_t n = sizeof SERVICE_ACCOUNT - 1;
    const char *colon = strncmp(name, SERVICE_ACCOUNT, n) ? NULL : strchr(name + n, ':');
    if (!colon) {
        may_wear(m, "", "users", NULL, NULL, name);
        return;
    }
    char *ns = kl_strndup(name + n, (size_t)(colon - name) - n);
    may_wear(m, "", "serviceaccounts", NULL, ns, colon + 1);
    kl_free(ns);
}

static void on_header(void *arg, const char *name, const char *value)
{
    static const char extra[] = "Impersonate-Extra-";
    mask *m = arg;
    if (!strcasecmp(name, "Impersonate-Group")) {
        m->ngroups++;
        m->authenticated |= !strcmp(value, AUTHENTICATED) || !strcmp(value, "system:unauthenticated");
        may_wear(m, "", "groups", NULL, NULL, value);
        kl_build_str(m->groups, value);
    } else if (!strcasecmp(name, "Impersonate-Uid")) {
        m->uid = value;
        may_wear(m, "authentication.k8s.io", "uids", NULL, NULL, value);
    } else if (!strncasecmp(name, extra, sizeof extra - 1)) {
        char *key = kl_strdup(name + sizeof extra - 1);
        for (char *p = key; *p; p++)
            *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
        may_wear(m, "authentication.k8s.io", "userextras", key, NULL, value);
        kl_build_key(m->extra, key);
        kl_build_array(m->extra);
        kl_build_str(m->extra, value);
        kl_build_end(m->extra);
        m->nextra++;
        kl_free(key);
    }
}

/* Adds the groups that a name implies. */
static void add_groups(mask *m)
{
    size_t n = sizeof SERVICE_ACCOUNT - 1;
    const char *colon = strncmp(m->name, SERVICE_ACCOUNT, n) ? NULL : strchr(m->name + n, ':');
    if (colon && !m->ngroups) {
        char *own = kl_sprintf("system:serviceaccounts:%.*s", (int)(colon - m->name - (long)n), m->name + n);
        kl_build_str(m->groups, "system:serviceaccounts");
        kl_build_str(m->groups, own);
        kl_free(own);
    }
    if (m->anonymous && !m->authenticated)
        kl_build_str(m->groups, "system:unauthenticated");
    else if (!m->authenticated)
        kl_build_str(m->groups, AUTHENTICATED);
}

static const kl_value *masked_user(const mask *m, const kl_value *groups, const kl_value *extra)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "username", m->name);
    kl_build_kstr(b, "uid", m->uid);
    kl_build_kvalue(b, "groups", groups);
    kl_build_kvalue(b, "extra", m->nextra ? extra : NULL);
    kl_build_end(b);
    return kl_builder_done(b);
}

kl_mask kl_rbac_mask(const kl_httpd_request *http, bool (*may)(void *arg, const kl_rbac_request *r),
    void *arg, const kl_value **user)
{
    const char *name = kl_httpd_header(http, "Impersonate-User");
    mask m = {.groups = kl_builder_new(), .extra = kl_builder_new(), .may = may, .arg = arg};
    kl_mask out = KL_MASK_NONE;
    kl_build_array(m.groups);
    kl_build_object(m.extra);
    if (name && *name)
        wear_user(&m, name);
    kl_httpd_header_each(http, on_header, &m);
    if (m.name)
        add_groups(&m);
    kl_build_end(m.groups);
    kl_build_end(m.extra);
    const kl_value *groups = kl_builder_done(m.groups), *extra = kl_builder_done(m.extra);
    if (m.refused)
        out = KL_MASK_REFUSED;
    else if (m.name) {
        *user = masked_user(&m, groups, extra);
        out = KL_MASK_WORN;
    } else if (m.ngroups || m.nextra || m.uid)
        out = KL_MASK_NAMELESS;
    kl_value_unref(groups);
    kl_value_unref(extra);
    return out;
}
