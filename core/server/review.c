/* review.c - answers reviews. Without --authorization-mode RBAC every user may do everything; but a server
 * with a file of tokens says so only of system:masters, because its reviews may be about other users. With
 * RBAC, core/rbac answers. */
#include "server/review.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "schema/edit.h"
#include "schema/status.h"
#include "verbs/access.h"
#include "server/reply.h"

static const char ALL_RULES[] =
    "{\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]}],"
    "\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}],\"incomplete\":false}";

static void put_members(kl_builder *b, const kl_value *object)
{
    for (size_t i = 0; i < kl_value_len(object); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(object, i, &key, &n);
        kl_build_keyn(b, key, n);
        kl_build_value(b, v);
    }
}

static void token_status(kl_builder *b, const kl__world *w, const kl_value *spec)
{
    const char *token = kl_value_str(kl_value_get(spec, "token"));
    const kl_value *audiences = kl_value_get(spec, "audiences");
    char *why = NULL;
    const kl_value *user = kl__access_of_token(w, token, audiences, &why);
    if (user) {
        kl_build_key(b, "authenticated");
        kl_build_bool(b, true);
        kl_build_kvalue(b, "user", user);
        const kl_value *meant = kl__access_audiences(w, token, audiences);
        kl_build_kvalue(b, "audiences", meant);
        kl_value_unref(meant);
    } else {
        kl_build_key(b, "user");
        kl_build_object(b);
        kl_build_end(b);
        kl_build_kstr(b, "error", why ? why : "invalid bearer token");
    }
    kl_free(why);
    kl_value_unref(user);
}

/* ------------------------------------------------------------------ access reviews */

static kl_rbac_request asked(const kl_value *spec)
{
    const kl_value *r = kl_value_get(spec, "resourceAttributes"),
                   *p = kl_value_get(spec, "nonResourceAttributes");
    const kl_value *from = r ? r : p;
    const char *verb = kl_value_str_at(from, "verb", NULL), *path = kl_value_str_at(p, "path", NULL);
    return (kl_rbac_request){.verb = verb ? verb : "",
        .path = r  ? NULL
            : path ? path
                   : "",
        .group = kl_value_str_at(r, "group", NULL),
        .version = kl_value_str_at(r, "version", NULL),
        .resource = kl_value_str_at(r, "resource", NULL),
        .sub = kl_value_str_at(r, "subresource", NULL),
        .ns = kl_value_str_at(r, "namespace", NULL),
        .name = kl_value_str_at(r, "name", NULL)};
}

/* The user whom a review is about; a new reference. */
static const kl_value *asked_about(const kl__call *c, const kl_value *spec)
{
    if (!strncmp(c->kind->plural, "self", 4))
        return kl_value_ref(c->user);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kvalue(b, "username", kl_value_get(spec, "user"));
    kl_build_kvalue(b, "uid", kl_value_get(spec, "uid"));
    kl_build_kvalue(b, "groups", kl_value_get(spec, "groups"));
    kl_build_end(b);
    return kl_builder_done(b);
}

static void access_status(kl_builder *b, const kl__call *c, const kl_value *spec)
{
    kl_buf why = KL_BUF_INIT;
    const kl_value *user = asked_about(c, spec);
    kl_rbac_request request = asked(spec);
    bool allowed = kl__access_allows(c->w, user, &request, &why);
    if (!c->w->rbac && c->w->tokens && strncmp(c->kind->plural, "self", 4))
        allowed = kl_rbac_in_group(user, KL_RBAC_MASTERS);
    kl_build_key(b, "allowed");
    kl_build_bool(b, allowed);
    if (why.len)
        kl_build_kstr(b, "reason", kl_buf_str(&why));
    kl_value_unref(user);
    kl_buf_fini(&why);
}

static void invalid_text(kl__causes *causes, const char *field, const char *bad, const char *why)
{
    const kl_value *shown = kl_value_of_str(bad ? bad : "");
    kl__cause_invalid(causes, field, shown, "%s", why);
    kl_value_unref(shown);
}

/* nonResourceAttributes as Go prints its struct; a new reference, or NULL. */
static const kl_value *shown_path(const kl_value *p)
{
    const char *path = kl_value_str_at(p, "path", NULL), *verb = kl_value_str_at(p, "verb", NULL);
    if (!p)
        return NULL;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "Path", path ? path : "");
    kl_build_kstr(b, "Verb", verb ? verb : "");
    kl_build_end(b);
    return kl_builder_done(b);
}

/* Checks the namespace of a LocalSubjectAccessReview: it must be that of the resource. */
static void check_local(const kl__call *c, const kl_value *spec, const kl_value *path, kl__causes *causes)
{
    const kl_value *r = kl_value_get(spec, "resourceAttributes");
    const char *ns = kl_value_str_at(r, "namespace", NULL);
    if (r && strcmp(ns ? ns : "", c->ns))
        invalid_text(causes, "spec.resourceAttributes.namespace", ns, "must match metadata.namespace");
    if (path)
        kl__cause_invalid(causes, "spec.nonResourceAttributes", path, "disallowed on this kind of request");
}

/* Metadata that a review must not have, as kube-apiserver checks it: including the field manager, which is
 * not shown here. */
static void check_metadata(const kl__call *c, const kl_value *body, kl__causes *causes)
{
    bool local = !strncmp(c->kind->plural, "local", 5);
    const kl_value *metadata = kl_value_ref(kl_value_get(body, "metadata")), *rest;
    KL_CUT(&metadata, "managedFields");
    rest = kl_value_ref(metadata);
    KL_CUT(&rest, "namespace");
    if (kl_value_len(local ? rest : metadata))
        kl__cause_invalid(
            causes, "metadata", metadata, local ? "must be empty except for namespace" : "must be empty");
    kl_value_unref(rest);
    kl_value_unref(metadata);
}

static kl_status check_access(const kl__call *c, const kl_value *body, kl_err *err)
{
    kl__causes causes = {0};
    const kl_value *spec = kl_value_get(body, "spec"), *r = kl_value_get(spec, "resourceAttributes"),
                   *p = kl_value_get(spec, "nonResourceAttributes"), *path = shown_path(p);
    if (r && p)
        kl__cause_invalid(&causes, "spec.nonResourceAttributes", path,
            "cannot be specified in combination with resourceAttributes");
    if (!r && !p)
        kl__cause_invalid(&causes, "spec.resourceAttributes", NULL,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified");
    const char *user = kl_value_str_at(spec, "user", NULL);
    if (strncmp(c->kind->plural, "self", 4) && (!user || !*user)
        && !kl_value_len(kl_value_get(spec, "groups")))
        invalid_text(&causes, "spec.user", "", "at least one of user or group must be specified");
    if (!strncmp(c->kind->plural, "local", 5))
        check_local(c, spec, path, &causes);
    check_metadata(c, body, &causes);
    kl_value_unref(path);
    return kl__fail_causes(err, c->kind->group, "", "", &causes); /* kube-apiserver names no kind */
}

/* ------------------------------------------------------------------ rules reviews */

static void put_rules(kl_builder *b, const kl_value *rules, const char *key, bool resources)
{
    static const char *const of_resources[] = {"verbs", "apiGroups", "resources", "resourceNames", NULL},
                             *const of_paths[] = {"verbs", "nonResourceURLs", NULL};
    kl_build_key(b, key);
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(rules); i++) {
        const kl_value *rule = kl_value_item(rules, i);
        if (!kl_value_len(kl_value_get(rule, resources ? "resources" : "nonResourceURLs")))
            continue;
        kl_build_object(b);
        for (const char *const *m = resources ? of_resources : of_paths; *m; m++)
            kl_build_kvalue(b, *m, kl_value_get(rule, *m));
        kl_build_end(b);
    }
    kl_build_end(b);
}

static void rules_status(kl_builder *b, const kl__call *c, const char *ns)
{
    const kl_value *all = NULL;
    if (!c->w->rbac) {
        if (!kl_value_decode(ALL_RULES, sizeof ALL_RULES - 1, &all, NULL))
            put_members(b, all);
        kl_value_unref(all);
        return;
    }
    kl_buf errors = KL_BUF_INIT;
    kl_rbac_source source = kl__access_source(c->w);
    all = kl_rbac_rules(&source, c->user, ns, &errors);
    put_rules(b, all, "resourceRules", true);
    put_rules(b, all, "nonResourceRules", false);
    kl_build_key(b, "incomplete");
    kl_build_bool(b, errors.len > 0);
    if (errors.len)
        kl_build_kstr(b, "evaluationError", kl_buf_str(&errors));
    kl_buf_fini(&errors);
    kl_value_unref(all);
}

/* ------------------------------------------------------------------ */

static const kl_value *answer(const kl__call *c, const kl_value *spec)
{
    const char *plural = c->kind->plural;
    char *version = kl__kind_api_version(c->kind);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", c->kind->kind);
    kl_build_kstr(b, "apiVersion", version);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_end(b);
    if (strcmp(plural, "selfsubjectreviews"))
        kl_build_kvalue(b, "spec", spec);
    kl_build_key(b, "status");
    kl_build_object(b);
    if (strstr(plural, "accessreviews"))
        access_status(b, c, spec);
    else if (!strcmp(plural, "tokenreviews"))
        token_status(b, c->w, spec);
    else if (!strcmp(plural, "selfsubjectreviews"))
        kl_build_kvalue(b, "userInfo", c->user);
    else
        rules_status(b, c, kl_value_str_at(spec, "namespace", NULL));
    kl_build_end(b);
    kl_build_end(b);
    kl_free(version);
    return kl_builder_done(b);
}

bool kl__review(const kl__call *c, const kl_value *body, kl_httpd_request *http)
{
    const char *plural = c->kind->plural;
    const kl_value *spec = kl_value_get(body, "spec");
    bool access = strstr(plural, "accessreviews") != NULL;
    if (!access && strcmp(plural, "tokenreviews") && strcmp(plural, "selfsubjectreviews")
        && strcmp(plural, "selfsubjectrulesreviews"))
        return false;
    kl_err err = KL_ERR_INIT;
    kl_status st = KL_OK;
    if (access)
        st = check_access(c, body, &err);
    if (!strcmp(plural, "tokenreviews") && !kl_value_len(kl_value_get(spec, "token")))
        st = kl__fail_bad_request(&err, "token is required for TokenReview in authentication");
    if (!st && !strcmp(plural, "selfsubjectrulesreviews") && !kl_value_len(kl_value_get(spec, "namespace")))
        st = kl__fail_bad_request(&err, "no namespace on request");
    if (st)
        kl__reply_error(http, NULL, &err);
    else {
        const kl_value *out = answer(c, spec);
        kl__reply_value(http, 201, NULL, out);
        kl_value_unref(out);
    }
    kl_err_fini(&err);
    return true;
}
