/* resource.c - kinds as people write them, resources as the server serves them. */
#include "model/resource.h"
#include <string.h>
#include "base/mem.h"
#include "model/names.h"

static bool looks_like_version(const char *s) { return s[0] == 'v' && s[1] >= '1' && s[1] <= '9'; }

static bool looks_like_kind(const char *s, size_t n)
{
    return n > 0 && s[0] >= 'A' && s[0] <= 'Z' && !memchr(s, '.', n);
}

/* "Pod", "v1/Pod", "apps/Deployment", "apps/v1/Deployment". Of two parts, the first is a version when it
 * looks like one. */
kl_status kl_gvk_parse(const char *text, kl_gvk *out, kl_err *err)
{
    const char *last = strrchr(text, '/'), *kind = last ? last + 1 : text;
    const char *slash = last ? memchr(text, '/', (size_t)(last - text)) : NULL;
    size_t nfirst = slash ? (size_t)(slash - text) : last ? (size_t)(last - text) : 0;

    if (!looks_like_kind(kind, strlen(kind)) || (last && !nfirst)
        || (slash && (slash + 1 == last || memchr(slash + 1, '/', (size_t)(last - slash - 1)))))
        return kl_fail(err, KL_EINVAL,
            "\"%.200s\" names no kind; write \"v1/Pod\", \"apps/v1/Deployment\" or \"apps/Deployment\" (a "
            "kind begins with a capital)",
            text);
    out->kind = kl_strdup(kind);
    if (slash) {
        out->group = kl_strndup(text, nfirst);
        out->version = kl_strndup(slash + 1, (size_t)(last - slash - 1));
    } else if (looks_like_version(text) && last) {
        out->group = kl_strdup("");
        out->version = kl_strndup(text, nfirst);
    } else {
        out->group = kl_strndup(text, nfirst);
        out->version = kl_strdup("");
    }
    return KL_OK;
}

void kl_gvk_copy(kl_gvk *to, const kl_gvk *from)
{
    to->group = kl_strdup(from->group);
    to->version = kl_strdup(from->version);
    to->kind = kl_strdup(from->kind);
}

void kl_gvk_fini(kl_gvk *g)
{
    kl_free(g->group);
    kl_free(g->version);
    kl_free(g->kind);
    *g = (kl_gvk){0};
}

char *kl_api_version(const char *group, const char *version)
{
    if (!group || !*group)
        return kl_strdup(version ? version : "");
    return version && *version ? kl_sprintf("%s/%s", group, version) : kl_strdup(group);
}

char *kl_gvk_text(const char *group, const char *version, const char *kind)
{
    char *api = kl_api_version(group, version),
         *text = *api ? kl_sprintf("%s/%s", api, kind) : kl_strdup(kind);

    kl_free(api);
    return text;
}

void kl_api_version_split(const char *api_version, char **group, char **version)
{
    const char *slash = strchr(api_version, '/');

    *group = slash ? kl_strndup(api_version, (size_t)(slash - api_version)) : kl_strdup("");
    *version = kl_strdup(slash ? slash + 1 : api_version);
}

static void free_list(char **v)
{
    size_t i;

    for (i = 0; v && v[i]; i++)
        kl_free(v[i]);
    kl_free(v);
}

static char **copy_list(char *const *v)
{
    size_t n = 0, i;
    char **c;

    while (v && v[n])
        n++;
    c = kl_new_array(char *, n + 1);
    for (i = 0; i < n; i++)
        c[i] = kl_strdup(v[i]);
    return c;
}

void kl_resource_fini(kl_resource *r)
{
    kl_free(r->group);
    kl_free(r->version);
    kl_free(r->kind);
    kl_free(r->plural);
    kl_free(r->singular);
    free_list(r->short_names);
    free_list(r->categories);
    free_list(r->verbs);
    free_list(r->subresources);
    *r = (kl_resource){0};
}

void kl_resource_copy(kl_resource *to, const kl_resource *from)
{
    to->group = kl_strdup(from->group);
    to->version = kl_strdup(from->version);
    to->kind = kl_strdup(from->kind);
    to->plural = kl_strdup(from->plural);
    to->singular = kl_strdup(from->singular);
    to->short_names = copy_list(from->short_names);
    to->categories = copy_list(from->categories);
    to->verbs = copy_list(from->verbs);
    to->subresources = copy_list(from->subresources);
    to->namespaced = from->namespaced;
}

static bool has(char *const *v, const char *word)
{
    size_t i;

    for (i = 0; v && v[i]; i++)
        if (!strcmp(v[i], word))
            return true;
    return false;
}

bool kl_resource_has_verb(const kl_resource *r, const char *verb) { return has(r->verbs, verb); }

bool kl_resource_has_subresource(const kl_resource *r, const char *sub) { return has(r->subresources, sub); }

char *kl_resource_display(const kl_resource *r)
{
    return r->group && *r->group ? kl_sprintf("%s.%s", r->plural, r->group) : kl_strdup(r->plural);
}

static void escape(const char *s, const char *kept, kl_buf *out)
{
    static const char hex[] = "0123456789ABCDEF";

    kl_buf_puts(out, "");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr(kept, c)) {
            kl_buf_putc(out, *s);
        } else {
            kl_buf_putc(out, '%');
            kl_buf_putc(out, hex[c >> 4]);
            kl_buf_putc(out, hex[c & 15]);
        }
    }
}

void kl_url_escape(const char *s, kl_buf *out)
{
    const char *space;

    while ((space = strchr(s, ' '))) {
        char *part = kl_strndup(s, (size_t)(space - s));

        escape(part, "-_.~", out);
        kl_buf_putc(out, '+');
        kl_free(part);
        s = space + 1;
    }
    escape(s, "-_.~", out);
}

void kl_url_escape_path(const char *s, kl_buf *out) { escape(s, "-_.~$&+,/:;=@", out); }

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0'
        : c >= 'a' && c <= 'f'  ? c - 'a' + 10
        : c >= 'A' && c <= 'F'  ? c - 'A' + 10
                                : -1;
}

kl_status kl_url_unescape(const char *s, size_t n, bool query, kl_buf *out, kl_err *err)
{
    size_t i;

    kl_buf_puts(out, "");
    for (i = 0; i < n; i++) {
        int high = i + 2 < n ? hex_digit(s[i + 1]) : -1, low = high >= 0 ? hex_digit(s[i + 2]) : -1;

        if (s[i] != '%') {
            kl_buf_putc(out, query && s[i] == '+' ? ' ' : s[i]);
        } else if (low < 0) {
            return kl_fail(err, KL_ESYNTAX,
                "URL \"%.*s\" has a '%%' that two hexadecimal digits do not follow", (int)(n < 200 ? n : 200),
                s);
        } else {
            kl_buf_putc(out, (char)(high << 4 | low));
            i += 2;
        }
    }
    return kl_buf_status(out);
}

static kl_status add_segment(const char *what, const char *s, kl_buf *out, kl_err *err)
{
    const char *why = kl_name_path_segment(s);

    if (why)
        return kl_fail(err, KL_EINVAL, "%s \"%.300s\" %s", what, s, why);
    kl_buf_putc(out, '/');
    kl_url_escape_path(s, out);
    return KL_OK;
}

kl_status kl_resource_path(
    const kl_resource *r, const char *ns, const char *name, const char *sub, kl_buf *out, kl_err *err)
{
    kl_status st = KL_OK;

    if (name && !*name)
        return kl_fail(err, KL_EINVAL, "the name of a %s is empty", r->kind ? r->kind : r->plural);
    kl_buf_puts(out, r->group && *r->group ? "/apis/" : "/api/");
    if (r->group && *r->group) {
        kl_url_escape_path(r->group, out);
        kl_buf_putc(out, '/');
    }
    kl_url_escape_path(r->version, out);
    if (ns && *ns) {
        kl_buf_puts(out, "/namespaces");
        st = add_segment("namespace", ns, out, err);
    }
    if (!st)
        st = add_segment("resource", r->plural, out, err);
    if (!st && name)
        st = add_segment("name", name, out, err);
    while (!st && sub && *sub) {
        const char *slash = strchr(sub, '/');
        char *part = kl_strndup(sub, slash ? (size_t)(slash - sub) : strlen(sub));

        st = add_segment("subresource", part, out, err);
        kl_free(part);
        sub = slash ? slash + 1 : "";
    }
    return st ? st : kl_buf_status(out);
}
