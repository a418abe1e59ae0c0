/* review.c - without tokens of its own the server knows nobody: any token is an administrator's, and
 * everything is allowed. With them a token is its user's or nobody's, and who is in system:masters may do
 * everything, others nothing. */
#include "server/review.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "schema/kinds.h"
#include "show/render.h"
#include "server/rest.h"

#define MASTERS "system:masters"

typedef struct user {
    char *name, *uid;
    char *groups; /* with commas between */
} user;

static const char ALL_RULES[] =
    "{\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]}],"
    "\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}],\"incomplete\":false}";

static void put_user(kl_builder *b, const char *key, const char *name, const char *uid, const char *groups)
{
    kl_build_key(b, key);
    kl_build_object(b);
    kl_build_kstr(b, "username", name);
    kl_build_kstr(b, "uid", uid);
    kl_build_key(b, "groups");
    kl_build_array(b);
    for (const char *p = groups; *p;) {
        size_t n = strcspn(p, ",");
        kl_build_strn(b, p, n);
        p += n + (p[n] == ',');
    }
    kl_build_end(b);
    kl_build_end(b);
}

static void token_status(kl_builder *b, kl_map *tokens, const char *token)
{
    const user *u = tokens && token ? kl_map_get(tokens, token) : NULL;
    bool known = token && *token && (u || !tokens);
    if (known) {
        kl_build_key(b, "authenticated");
        kl_build_bool(b, true);
        put_user(b, "user", u ? u->name : "kubelua", u ? u->uid : NULL, u ? u->groups : MASTERS);
    } else {
        kl_build_key(b, "user");
        kl_build_object(b);
        kl_build_end(b);
        kl_build_kstr(b, "error", "[invalid bearer token]");
    }
}

static bool is_master(const kl_value *spec)
{
    const kl_value *groups = kl_value_get(spec, "groups");
    for (size_t i = 0; i < kl_value_len(groups); i++) {
        const char *g = kl_value_str(kl_value_item(groups, i));
        if (g && !strcmp(g, MASTERS))
            return true;
    }
    return false;
}

static void rules_status(kl_builder *b)
{
    const kl_value *all = NULL;
    if (!kl_value_decode(ALL_RULES, sizeof ALL_RULES - 1, &all, NULL))
        for (size_t i = 0; i < kl_value_len(all); i++) {
            const char *key;
            size_t n;
            const kl_value *v = kl_value_member(all, i, &key, &n);
            kl_build_kvalue(b, key, v);
        }
    kl_value_unref(all);
}

bool kl__review(const kl__call *c, const kl_value *body, kl_httpd_request *http)
{
    const char *plural = c->kind->plural;
    const kl_value *spec = kl_value_get(body, "spec");
    bool access = strstr(plural, "accessreviews") != NULL, token = !strcmp(plural, "tokenreviews"),
         self = !strcmp(plural, "selfsubjectreviews");
    if (!access && !token && !self && strcmp(plural, "selfsubjectrulesreviews"))
        return false;
    char *version = kl__kind_api_version(c->kind);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", c->kind->kind);
    kl_build_kstr(b, "apiVersion", version);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_end(b);
    kl_build_kvalue(b, "spec", spec);
    kl_build_key(b, "status");
    kl_build_object(b);
    if (access) {
        kl_build_key(b, "allowed");
        kl_build_bool(b, !c->s->tokens || !strncmp(plural, "self", 4) || is_master(spec));
    } else if (token) {
        token_status(b, c->s->tokens, kl_value_str(kl_value_get(spec, "token")));
    } else if (self) {
        put_user(b, "userInfo", "kubelua", NULL, MASTERS);
    } else {
        rules_status(b);
    }
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *out = kl_builder_done(b);
    kl__reply_value(http, 201, NULL, out);
    kl_value_unref(out);
    kl_free(version);
    return true;
}

/* --- the file ----------------------------------------------------------------------------- */

static void user_free(void *p)
{
    user *u = p;
    kl_free(u->name);
    kl_free(u->uid);
    kl_free(u->groups);
    kl_free(u);
}

void kl__tokens_free(kl_map *tokens) { kl_map_free(tokens, user_free); }

/* The next field of a line, with or without quotes; the text is cut up. */
static char *field(char **rest)
{
    char *s = *rest, *end;
    if (*s == '"') {
        end = strchr(++s, '"');
        end = end ? end : s + strlen(s);
        *rest = end + (*end == '"');
        *rest += **rest == ',';
    } else {
        end = s + strcspn(s, ",");
        *rest = end + (*end == ',');
    }
    *end = '\0';
    return s;
}

static kl_status take_line(kl_map *tokens, const char *path, int number, char *line, kl_err *err)
{
    line[strcspn(line, "\r")] = '\0';
    if (!*line || *line == '#')
        return KL_OK;
    char *rest = line, *token = field(&rest), *name = field(&rest), *uid = field(&rest),
         *groups = field(&rest);
    if (!*token || !*name)
        return kl_fail(err, KL_ESYNTAX, "%s:%d: a line is token,user,uid,\"group,group\"", path, number);
    user *u = kl_new(user);
    *u = (user){kl_strdup(name), kl_strdup(uid), kl_strdup(groups)};
    void *old = kl_map_set(tokens, token, u);
    if (old)
        user_free(old);
    return KL_OK;
}

kl_status kl__tokens_read(const char *path, kl_map **out, kl_err *err)
{
    kl_buf text = KL_BUF_INIT;
    kl_status st = kl_file_read_given(path, "a file of tokens", &text, err);
    kl_map *tokens = kl_map_new();
    char *line = text.len ? text.data : NULL, *end = line ? line + text.len : NULL;
    for (int number = 1; !st && line && line < end; number++) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        char *own = kl_strndup(line, (size_t)((next ? next : end) - line));
        st = take_line(tokens, path, number, own, err);
        kl_free(own);
        line = next ? next + 1 : end;
    }
    kl_buf_fini(&text);
    if (st)
        kl__tokens_free(tokens);
    else
        *out = tokens;
    return st;
}
