/* kubeconfig.c - kubeconfig files as data: shape, defaults, relative paths, merging.
 *
 * The shape is checked as Go's decoder checks it: wrong types and duplicate names are errors, unknown members
 * are not. Of several files the first that names a cluster, user or context wins with its whole entry; fields
 * are never mixed. */
#include "auth/kubeconfig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base64.h"
#include "base/file.h"
#include "base/mem.h"
#include "yaml/yaml.h"

#define FILE_MAX ((size_t)16 << 20)

/* A place in a file, for messages. */
typedef struct place {
    const char *file, *dir, *list;
    const char *name;
} place;

/* Rewrites the error of a file reader so that it names the file. */
static kl_status told(kl_status st, const char *path, kl_err *why, kl_err *err)
{
    const char *fact = st ? kl_err_message(why) + strlen(path) : "";
    if (st)
        kl_fail(
            err, st == KL_ETOOBIG ? st : KL_EIO, "%s%s%s", path, *fact == ':' ? " cannot be read" : "", fact);
    kl_err_fini(why);
    return st == KL_OK || st == KL_ETOOBIG ? st : KL_EIO;
}

kl_status kl__file_read(const char *path, kl_buf *out, kl_err *err)
{
    kl_err why = KL_ERR_INIT;
    return told(kl_file_read(path, "the file", out, &why), path, &why, err);
}

/* --- members, with types checked as in Go ------------------------------------------------- */

static kl_status wrong_type(const place *p, const char *key, const char *want, const kl_value *v, kl_err *err)
{
    kl_type t = kl_value_type(v);
    bool scalar = t == KL_BOOL || t == KL_INT || t == KL_UINT || t == KL_DOUBLE;
    return kl_fail(err, KL_ESYNTAX, "%s: %s%s%s%s%s must be %s, not %s%s", p->file, p->list ? p->list : "",
        p->name ? " \"" : "", p->name ? p->name : "",
        p->name       ? "\": "
            : p->list ? ": "
                      : "",
        key, want, kl_value_type_name(v), scalar && !strcmp(want, "a string") ? ": put it in quotes" : "");
}

static kl_status take_str(const place *p, const kl_value *v, const char *key, char **out, kl_err *err)
{
    const kl_value *x = kl_value_get(v, key);
    if (kl_value_type(x) == KL_NULL)
        return KL_OK;
    const char *s = kl_value_str(x);
    if (!s)
        return wrong_type(p, key, "a string", x, err);
    if (*s)
        *out = kl_strdup(s);
    return KL_OK;
}

static kl_status take_bool(const place *p, const kl_value *v, const char *key, bool *out, kl_err *err)
{
    const kl_value *x = kl_value_get(v, key);
    if (kl_value_type(x) == KL_NULL)
        return KL_OK;
    if (kl_value_type(x) != KL_BOOL)
        return wrong_type(p, key, "true or false", x, err);
    *out = kl_value_bool(x, false);
    return KL_OK;
}

/* "./a", "b/../a" and "a" below dir, cleaned as filepath.Join does. */
static char *join_path(const char *dir, const char *path)
{
    char *whole = *path == '/' ? kl_strdup(path) : kl_sprintf("%s/%s", dir, path);
    if (*path == '/')
        return whole;
    char *out = kl_alloc(strlen(whole) + 2);
    size_t n = 0;
    bool root = *whole == '/';
    for (char *rest = whole, *part; (part = strsep(&rest, "/"));) {
        if (!*part || !strcmp(part, "."))
            continue;
        if (!strcmp(part, "..")) {
            size_t end = n;
            while (end && out[end - 1] != '/')
                end--;
            bool up = n == 0 || !strcmp(out + end, "..");
            if (!up || root) {
                n = end ? end - 1 : 0;
                out[n] = '\0';
                continue;
            }
        }
        if (n || root)
            out[n++] = '/';
        strcpy(out + n, part);
        n += strlen(part);
    }
    if (!n)
        out[n++] = root ? '/' : '.';
    out[n] = '\0';
    kl_free(whole);
    return out;
}

static kl_status take_path(const place *p, const kl_value *v, const char *key, char **out, kl_err *err)
{
    kl_status st = take_str(p, v, key, out, err);
    if (!st && *out) {
        char *joined = join_path(p->dir, *out);
        kl_free(*out);
        *out = joined;
    }
    return st;
}

char *kl__base64_text(const char *s)
{
    kl_buf b = KL_BUF_INIT;
    if (!kl_base64_decode(s, strlen(s), &b, NULL) && strlen(kl_buf_str(&b)) == b.len)
        return kl_buf_take(&b);
    kl_buf_fini(&b);
    return NULL;
}

static kl_status take_data(const place *p, const kl_value *v, const char *key, char **out, kl_err *err)
{
    char *text = NULL;
    kl_status st = take_str(p, v, key, &text, err);
    if (!st && text) {
        *out = kl__base64_text(text);
        if (!*out)
            st = kl_fail(
                err, KL_ESYNTAX, "%s: %s \"%s\": %s is not base64 text", p->file, p->list, p->name, key);
        else if (!**out) {
            kl_free(*out);
            *out = NULL;
        }
    }
    kl_free(text);
    return st;
}

static kl_status take_list(const place *p, const kl_value *v, const char *key, char ***out, kl_err *err)
{
    const kl_value *x = kl_value_get(v, key);
    size_t n = kl_value_len(x);
    if (kl_value_type(x) == KL_NULL)
        return KL_OK;
    if (kl_value_type(x) != KL_ARRAY)
        return wrong_type(p, key, "a list", x, err);
    char **list = n ? kl_new_array(char *, n + 1) : NULL;
    *out = list;
    for (size_t i = 0; i < n; i++) {
        const char *s = kl_value_str(kl_value_item(x, i));
        if (!s)
            return wrong_type(p, key, "a list of strings", kl_value_item(x, i), err);
        list[i] = kl_strdup(s);
    }
    return KL_OK;
}

/* {"key": ["a", "b"]} as key, a, key, b. */
static kl_status take_extra(const place *p, const kl_value *v, char ***out, kl_err *err)
{
    const kl_value *x = kl_value_get(v, "as-user-extra");
    size_t n = 0;
    if (kl_value_type(x) == KL_NULL)
        return KL_OK;
    if (kl_value_type(x) != KL_OBJECT)
        return wrong_type(p, "as-user-extra", "a map of lists", x, err);
    for (size_t i = 0; i < kl_value_len(x); i++)
        n += kl_value_len(kl_value_member(x, i, NULL, NULL));
    char **list = n ? kl_new_array(char *, 2 * n + 1) : NULL;
    *out = list;
    n = 0;
    for (size_t i = 0; i < kl_value_len(x); i++) {
        const char *key;
        const kl_value *values = kl_value_member(x, i, &key, NULL);
        if (kl_value_type(values) != KL_ARRAY && kl_value_type(values) != KL_NULL)
            return wrong_type(p, "as-user-extra", "a map of lists", values, err);
        for (size_t k = 0; k < kl_value_len(values); k++) {
            const char *s = kl_value_str(kl_value_item(values, k));
            if (!s)
                return wrong_type(
                    p, "as-user-extra", "a map of lists of strings", kl_value_item(values, k), err);
            list[n++] = kl_strdup(key);
            list[n++] = kl_strdup(s);
        }
    }
    return KL_OK;
}

/* --- entries ------------------------------------------------------------------------------ */

static void free_list(char **list)
{
    for (char **s = list; s && *s; s++)
        kl_free(*s);
    kl_free(list);
}

static void cluster_free(void *entry)
{
    kl__kube_cluster *c = entry;
    kl_free(c->server);
    kl_free(c->tls_server_name);
    kl_free(c->proxy_url);
    kl_free(c->ca_file);
    kl_free(c->ca_data);
    kl_value_unref(c->exec_extension);
    kl_free(c);
}

static void user_free(void *entry)
{
    kl__kube_user *u = entry;
    kl_free(u->token);
    kl_free(u->token_file);
    kl_free(u->username);
    kl_free(u->password);
    kl_free(u->cert_file);
    kl_free(u->cert_data);
    kl_free(u->key_file);
    kl_free(u->key_data);
    kl_free(u->impersonate);
    kl_free(u->impersonate_uid);
    free_list(u->impersonate_groups);
    free_list(u->impersonate_extra);
    kl_value_unref(u->exec);
    kl_free(u->auth_provider);
    kl_value_unref(u->auth_provider_config);
    kl_free(u->file);
    kl_free(u);
}

static void context_free(void *entry)
{
    kl__kube_context *c = entry;
    kl_free(c->cluster);
    kl_free(c->user);
    kl_free(c->ns);
    kl_free(c);
}

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        kl_status try_ = (call);                                                                             \
        if (try_)                                                                                            \
            return try_;                                                                                     \
    } while (0)

/* A cluster's extension for credential plugins. */
static kl_status read_extension(const place *p, const kl_value *cluster, const kl_value **out, kl_err *err)
{
    const kl_value *list = kl_value_get(cluster, "extensions");
    if (kl_value_type(list) != KL_ARRAY && kl_value_type(list) != KL_NULL)
        return wrong_type(p, "extensions", "a list", list, err);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *name = kl_value_str_at(kl_value_item(list, i), "name", NULL);
        if (name && !strcmp(name, "client.authentication.k8s.io/exec") && !*out)
            *out = kl_value_ref(kl_value_get(kl_value_item(list, i), "extension"));
    }
    return KL_OK;
}

static kl_status read_cluster(const place *p, const kl_value *v, void *entry, kl_err *err)
{
    kl__kube_cluster *c = entry;
    TRY(take_str(p, v, "server", &c->server, err));
    TRY(take_str(p, v, "tls-server-name", &c->tls_server_name, err));
    TRY(take_bool(p, v, "insecure-skip-tls-verify", &c->insecure, err));
    TRY(take_path(p, v, "certificate-authority", &c->ca_file, err));
    TRY(take_data(p, v, "certificate-authority-data", &c->ca_data, err));
    TRY(take_str(p, v, "proxy-url", &c->proxy_url, err));
    TRY(take_bool(p, v, "disable-compression", &c->disable_compression, err));
    return read_extension(p, v, &c->exec_extension, err);
}

static kl_status read_context(const place *p, const kl_value *v, void *entry, kl_err *err)
{
    kl__kube_context *c = entry;
    TRY(take_str(p, v, "cluster", &c->cluster, err));
    TRY(take_str(p, v, "user", &c->user, err));
    return take_str(p, v, "namespace", &c->ns, err);
}

static kl_status check_exec_shape(const place *p, const kl_value *v, kl_err *err)
{
    char **args = NULL, *hint = NULL;
    bool provide = false;
    const kl_value *env = kl_value_get(v, "env");
    kl_status st = take_list(p, v, "args", &args, err);
    free_list(args);
    if (!st)
        st = take_str(p, v, "installHint", &hint, err);
    kl_free(hint);
    if (!st)
        st = take_bool(p, v, "provideClusterInfo", &provide, err);
    if (!st && kl_value_type(env) != KL_ARRAY && kl_value_type(env) != KL_NULL)
        st = wrong_type(p, "env", "a list", env, err);
    for (size_t i = 0; !st && i < kl_value_len(env); i++) {
        const kl_value *e = kl_value_item(env, i), *name = kl_value_get(e, "name"),
                       *value = kl_value_get(e, "value");
        if (kl_value_type(e) != KL_OBJECT)
            st = wrong_type(p, "each entry of env", "an object", e, err);
        else if (kl_value_type(name) != KL_STRING && kl_value_type(name) != KL_NULL)
            st = wrong_type(p, "env: name", "a string", name, err);
        else if (kl_value_type(value) != KL_STRING && kl_value_type(value) != KL_NULL)
            st = wrong_type(p, "env: value", "a string", value, err);
    }
    return st;
}

/* `exec` with its command resolved and, for v1beta1, its old default. */
static kl_status read_exec(const place *p, const kl_value *user, const kl_value **out, kl_err *err)
{
    const kl_value *v = kl_value_get(user, "exec");
    char *command = NULL, *version = NULL, *mode = NULL;
    if (kl_value_type(v) == KL_NULL)
        return KL_OK;
    if (kl_value_type(v) != KL_OBJECT)
        return wrong_type(p, "exec", "an object", v, err);
    kl_status st = take_str(p, v, "command", &command, err);
    if (!st)
        st = take_str(p, v, "apiVersion", &version, err);
    if (!st)
        st = take_str(p, v, "interactiveMode", &mode, err);
    if (!st)
        st = check_exec_shape(p, v, err);
    if (!st) {
        const kl_value *with = kl_value_ref(v), *next, *text;
        if (command && strchr(command, '/')) {
            char *joined = join_path(p->dir, command);
            text = kl_value_of_str(joined);
            next = kl_value_with(with, "command", text);
            kl_value_unref(text);
            kl_value_unref(with);
            with = next;
            kl_free(joined);
        }
        if (!mode && version && !strcmp(version, "client.authentication.k8s.io/v1beta1")) {
            text = kl_value_of_str("IfAvailable");
            next = kl_value_with(with, "interactiveMode", text);
            kl_value_unref(text);
            kl_value_unref(with);
            with = next;
        }
        *out = with;
    }
    kl_free(command);
    kl_free(version);
    kl_free(mode);
    return st;
}

static kl_status read_user(const place *p, const kl_value *v, void *entry, kl_err *err)
{
    kl__kube_user *u = entry;
    const kl_value *provider = kl_value_get(v, "auth-provider");
    u->file = kl_strdup(p->file);
    TRY(take_str(p, v, "token", &u->token, err));
    TRY(take_path(p, v, "tokenFile", &u->token_file, err));
    TRY(take_str(p, v, "username", &u->username, err));
    TRY(take_str(p, v, "password", &u->password, err));
    TRY(take_path(p, v, "client-certificate", &u->cert_file, err));
    TRY(take_data(p, v, "client-certificate-data", &u->cert_data, err));
    TRY(take_path(p, v, "client-key", &u->key_file, err));
    TRY(take_data(p, v, "client-key-data", &u->key_data, err));
    TRY(take_str(p, v, "as", &u->impersonate, err));
    TRY(take_str(p, v, "as-uid", &u->impersonate_uid, err));
    TRY(take_list(p, v, "as-groups", &u->impersonate_groups, err));
    TRY(take_extra(p, v, &u->impersonate_extra, err));
    TRY(read_exec(p, v, &u->exec, err));
    if (kl_value_type(provider) == KL_NULL)
        return KL_OK;
    if (kl_value_type(provider) != KL_OBJECT)
        return wrong_type(p, "auth-provider", "an object", provider, err);
    TRY(take_str(p, provider, "name", &u->auth_provider, err));
    if (!u->auth_provider)
        u->auth_provider = kl_strdup("");
    const kl_value *settings = kl_value_get(provider, "config");
    if (kl_value_type(settings) != KL_OBJECT && kl_value_type(settings) != KL_NULL)
        return wrong_type(p, "auth-provider: config", "a map of strings", settings, err);
    for (size_t i = 0; i < kl_value_len(settings); i++) {
        const kl_value *x = kl_value_member(settings, i, NULL, NULL);
        if (kl_value_type(x) != KL_STRING && kl_value_type(x) != KL_NULL)
            return wrong_type(p, "auth-provider: config", "a map of strings", x, err);
    }
    u->auth_provider_config = kl_value_ref(settings);
    return KL_OK;
}

/* --- one file ----------------------------------------------------------------------------- */

typedef struct section {
    const char *list, *member;
    size_t size;
    kl_status (*read)(const place *p, const kl_value *v, void *entry, kl_err *err);
    void (*free)(void *entry);
} section;

static const section sections[] = {
    {"clusters", "cluster", sizeof(kl__kube_cluster), read_cluster, cluster_free},
    {"users", "user", sizeof(kl__kube_user), read_user, user_free},
    {"contexts", "context", sizeof(kl__kube_context), read_context, context_free},
};

static kl_status read_entry(const section *s, place p, const kl_value *item, kl_map *into, kl_err *err)
{
    char *name = NULL;
    if (kl_value_type(item) != KL_OBJECT && kl_value_type(item) != KL_NULL)
        return wrong_type(&p, "each entry", "an object", item, err);
    TRY(take_str(&p, item, "name", &name, err));
    p.name = name = name ? name : kl_strdup("");
    const kl_value *v = kl_value_get(item, s->member);
    kl_status st = KL_OK;
    if (kl_value_type(v) != KL_OBJECT && kl_value_type(v) != KL_NULL)
        st = wrong_type(&p, s->member, "an object", v, err);
    else if (kl_map_has(into, name))
        st = kl_fail(err, KL_ESYNTAX, "%s: %s: the name \"%s\" occurs twice", p.file, s->list, name);
    if (!st) {
        void *entry = kl_zalloc(s->size);
        st = s->read(&p, v, entry, err);
        if (st)
            s->free(entry);
        else
            kl_map_set(into, name, entry);
    }
    kl_free(name);
    return st;
}

static kl_status read_section(const section *s, place p, const kl_value *root, kl_map *into, kl_err *err)
{
    const kl_value *list = kl_value_get(root, s->list);
    p.list = s->list;
    if (kl_value_type(list) != KL_ARRAY && kl_value_type(list) != KL_NULL) {
        p.list = NULL;
        return wrong_type(&p, s->list, "a list", list, err);
    }
    for (size_t i = 0; i < kl_value_len(list); i++)
        TRY(read_entry(s, p, kl_value_item(list, i), into, err));
    return KL_OK;
}

static kl_status check_type(const place *p, const kl_value *root, kl_err *err)
{
    char *version = NULL, *kind = NULL;
    if (kl_value_type(root) != KL_OBJECT)
        return kl_fail(err, KL_ESYNTAX,
            "%s: a kubeconfig is an object with clusters, users and contexts, this is %s", p->file,
            kl_value_type_name(root));
    kl_status st = take_str(p, root, "apiVersion", &version, err);
    if (!st)
        st = take_str(p, root, "kind", &kind, err);
    if (!st && ((version && strcmp(version, "v1")) || (kind && strcmp(kind, "Config"))))
        st = kl_fail(err, KL_ESYNTAX, "%s: this is a %s %s, not a kubeconfig (apiVersion: v1, kind: Config)",
            p->file, version ? version : "v1", kind ? kind : "Config");
    kl_free(version);
    kl_free(kind);
    return st;
}

static void kubeconfig_init(kl__kubeconfig *k)
{
    *k = (kl__kubeconfig){
        .clusters = kl_map_new(), .users = kl_map_new(), .contexts = kl_map_new(), .files = kl_strdup("")};
}

void kl__kubeconfig_fini(kl__kubeconfig *k)
{
    kl_map_free(k->clusters, cluster_free);
    kl_map_free(k->users, user_free);
    kl_map_free(k->contexts, context_free);
    kl_free(k->current_context);
    kl_free(k->files);
    *k = (kl__kubeconfig){0};
}

/* Only the first document counts, as in kubectl. */
static kl_status first_document(void *arg, const kl_value *v, kl_err *err)
{
    (void)err;
    *(const kl_value **)arg = v;
    return KL_EAGAIN;
}

kl_status kl__kubeconfig_parse(
    const char *name, const char *dir, const char *text, size_t n, kl__kubeconfig *out, kl_err *err)
{
    const kl_value *root = NULL;
    kl_status st = kl_yaml_each(name, text, n, first_document, &root, err);
    if (st && !root)
        return st;
    kl_err_fini(err);
    place p = {.file = name, .dir = dir};
    kl__kubeconfig k;
    kubeconfig_init(&k);
    st = root ? check_type(&p, root, err) : KL_OK;
    if (!st)
        st = take_str(&p, root, "current-context", &k.current_context, err);
    kl_map *into[] = {k.clusters, k.users, k.contexts};
    for (size_t i = 0; !st && i < 3; i++)
        st = read_section(&sections[i], p, root, into[i], err);
    kl_value_unref(root);
    if (st)
        kl__kubeconfig_fini(&k);
    else
        *out = k;
    return st;
}

/* --- several files ------------------------------------------------------------------------ */

static void merge_map(kl_map *to, kl_map *from)
{
    size_t it = 0;
    const char *name;
    void *entry;
    while (kl_map_next(from, &it, &name, &entry)) {
        if (kl_map_has(to, name))
            continue;
        kl_map_set(to, name, entry);
        kl_map_take(from, name);
    }
}

static void merge(kl__kubeconfig *to, kl__kubeconfig *from, const char *path)
{
    merge_map(to->clusters, from->clusters);
    merge_map(to->users, from->users);
    merge_map(to->contexts, from->contexts);
    if (!to->current_context) {
        to->current_context = from->current_context;
        from->current_context = NULL;
    }
    char *files = kl_sprintf("%s%s%s", to->files, *to->files ? ", " : "", path);
    kl_free(to->files);
    to->files = files;
    kl__kubeconfig_fini(from);
}

static char *directory_of(const char *path)
{
    char *absolute = *path == '/' ? kl_strdup(path) : NULL;
    if (!absolute) {
        char *here = realpath(".", NULL);
        absolute = join_path(here ? here : ".", path);
        free(here);
    }
    char *slash = strrchr(absolute, '/');
    if (slash == absolute)
        slash++;
    if (slash)
        *slash = '\0';
    return absolute;
}

static kl_status load_file(const char *path, bool must_exist, kl__kubeconfig *into, kl_err *err)
{
    kl_buf text;
    kl__kubeconfig one;
    if (access(path, F_OK) && errno == ENOENT)
        return must_exist ? kl_fail(err, KL_ENOTFOUND, "kubeconfig %s does not exist", path) : KL_OK;
    kl_buf_init(&text, FILE_MAX);
    kl_err why = KL_ERR_INIT;
    kl_status st = told(kl_file_read_given(path, "the file", &text, &why), path, &why, err);
    if (!st) {
        char *dir = directory_of(path);
        st = kl__kubeconfig_parse(path, dir, kl_buf_str(&text), text.len, &one, err);
        kl_free(dir);
        if (!st)
            merge(into, &one, path);
    }
    kl_buf_fini(&text);
    return st;
}

kl_status kl__kubeconfig_load(
    const char *const *paths, size_t n, bool must_exist, kl__kubeconfig *out, kl_err *err)
{
    kl__kubeconfig k;
    kl_status st = KL_OK;
    kubeconfig_init(&k);
    for (size_t i = 0; !st && i < n; i++) {
        bool again = false;
        for (size_t j = 0; j < i; j++)
            again = again || !strcmp(paths[i], paths[j]);
        if (*paths[i] && !again)
            st = load_file(paths[i], must_exist, &k, err);
    }
    if (st)
        kl__kubeconfig_fini(&k);
    else
        *out = k;
    return st;
}
