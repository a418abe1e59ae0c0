/* url.c - base + path + query.
 *
 * Everything is kept decoded until the end: the base's path is unescaped, joined with the parts, cleaned,
 * and escaped once. */
#include "http/url.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "model/names.h"
#include "model/resource.h"

/* scheme://user@host:port unchanged, and the path after it, decoded. */
static kl_status split_base(const char *base, kl_buf *origin, kl_buf *path, kl_err *err)
{
    const char *host = strstr(base, "://"), *end;

    if (!host || host == base || !host[3])
        return kl_fail(err, KL_EINVAL, "server \"%.300s\" is not a URL; write it as https://host:6443", base);
    end = host + 3 + strcspn(host + 3, "/?#");
    kl_buf_add(origin, base, (size_t)(end - base));
    return kl_url_unescape(end, strcspn(end, "?#"), false, path, err);
}

static void join(kl_buf *path, const char *part)
{
    if (!*part)
        return;
    if (path->len)
        kl_buf_putc(path, '/');
    kl_buf_puts(path, part);
}

/* Removes empty and "." elements, and ".." together with what it follows; a rooted path has nothing above
 * its root. In place. */
static void clean(kl_buf *path)
{
    char *in = path->data ? path->data : "", *out = in, *start;
    bool rooted = *in == '/';
    size_t stuck = 0; /* length of leading ".." elements that had nothing to remove */

    if (!path->len)
        return;
    start = rooted ? in + 1 : in;
    for (out = start, in = start; *in;) {
        size_t n = strcspn(in, "/");

        if (n == 2 && in[0] == '.' && in[1] == '.' && ((size_t)(out - start) > stuck || rooted)) {
            while ((size_t)(out - start) > stuck && *--out != '/')
                ;
        } else if (n && !(n == 1 && *in == '.')) {
            bool up = n == 2 && in[0] == '.' && in[1] == '.';

            if (out > start)
                *out++ = '/';
            memmove(out, in, n);
            out += n;
            if (up)
                stuck = (size_t)(out - start);
        }
        in += n + (in[n] == '/');
    }
    *out = '\0';
    path->len = (size_t)(out - path->data);
}

static kl_status write_url(
    const kl_buf *origin, const char *path, const kl_url_param *params, size_t nparams, kl_buf *out)
{
    kl_buf_puts(out, kl_buf_str(origin));
    if (*path && *path != '/')
        kl_buf_putc(out, '/');
    kl_url_escape_path(path, out);
    if (nparams) {
        kl_buf_putc(out, '?');
        kl_url_query(params, nparams, out);
    }
    return kl_buf_status(out);
}

static kl_status join_segment(kl_buf *path, const char *what, const char *s, kl_err *err)
{
    const char *why = kl_name_path_segment(s);

    if (why)
        return kl_fail(err, KL_EINVAL, "%s \"%.300s\" %s", what, s, why);
    join(path, s);
    return KL_OK;
}

static char *lower(const char *s)
{
    char *copy = kl_strdup(s), *c;

    for (c = copy; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c += 'a' - 'A';
    return copy;
}

static kl_status join_request(const kl_url_request *r, kl_buf *path, kl_err *err)
{
    char *resource = lower(r->resource);
    kl_status st = KL_OK;
    size_t i;

    join(path, r->group && *r->group ? "/apis" : "/api");
    join(path, r->group ? r->group : "");
    join(path, r->version);
    if (r->name && !*r->name)
        st = kl_fail(err, KL_EINVAL, "the name of a resource in %s is empty", resource);
    if (!st && r->ns && *r->ns) {
        join(path, "namespaces");
        st = join_segment(path, "namespace", r->ns, err);
    }
    if (!st)
        st = join_segment(path, "resource", resource, err);
    if (!st && r->name)
        st = join_segment(path, "name", r->name, err);
    for (i = 0; !st && r->subresource && r->subresource[i]; i++)
        st = join_segment(path, "subresource", r->subresource[i], err);
    for (i = 0; !st && r->suffix && r->suffix[i]; i++)
        join(path, r->suffix[i]);
    kl_free(resource);
    return st;
}

kl_status kl_url_build(const kl_url_request *r, kl_buf *out, kl_err *err)
{
    kl_buf origin = KL_BUF_INIT, path = KL_BUF_INIT;
    kl_status st;

    kl_buf_putc(&path, '/');
    st = split_base(r->base, &origin, &path, err);
    if (!st)
        st = join_request(r, &path, err);
    if (!st) {
        clean(&path);
        st = write_url(&origin, kl_buf_str(&path), r->params, r->nparams, out);
    }
    kl_buf_fini(&origin);
    kl_buf_fini(&path);
    return st;
}

static kl_status abspath(const char *base, const char *const *segments, size_t n, const kl_url_param *params,
    size_t nparams, kl_buf *out, kl_err *err)
{
    kl_buf origin = KL_BUF_INIT, path = KL_BUF_INIT;
    kl_status st = split_base(base, &origin, &path, err);
    bool below = path.len > 1;
    size_t i, last = n ? strlen(segments[n - 1]) : 0;

    if (!st) {
        for (i = 0; i < n; i++)
            join(&path, segments[i]);
        clean(&path);
        if (n == 1 && last && segments[0][last - 1] == '/' && (below || last > 1))
            kl_buf_putc(&path, '/');
        st = write_url(&origin, kl_buf_str(&path), params, nparams, out);
    }
    kl_buf_fini(&origin);
    kl_buf_fini(&path);
    return st;
}

kl_status kl_url_abspath(const char *base, const char *const *segments, size_t n, kl_buf *out, kl_err *err)
{
    return abspath(base, segments, n, NULL, 0, out, err);
}

/* Behind "scheme://host" if there is one. NULL for what is not a URL. */
static const char *after_host(const char *uri)
{
    size_t n = strspn(uri, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");

    if (n && uri[n] == ':' && ((*uri | 32) >= 'a' && (*uri | 32) <= 'z'))
        uri += n + 1;
    else if (uri[strcspn(uri, "/:?#")] == ':')
        return NULL;
    if (!strncmp(uri, "//", 2))
        uri += 2 + strcspn(uri + 2, "/?#");
    return uri;
}

typedef struct params {
    kl_url_param *v;
    size_t n;
} params;

/* A pair that does not decode is left out. */
static void add_pair(params *p, const char *s, size_t n)
{
    const char *eq = memchr(s, '=', n);
    size_t nkey = eq ? (size_t)(eq - s) : n, nvalue = eq ? n - nkey - 1 : 0;
    kl_buf key = KL_BUF_INIT, value = KL_BUF_INIT;

    if (n && !memchr(s, ';', n) && !kl_url_unescape(s, nkey, true, &key, NULL)
        && !kl_url_unescape(eq ? eq + 1 : "", nvalue, true, &value, NULL)) {
        p->v = kl_realloc(p->v, (p->n + 1) * sizeof *p->v);
        p->v[p->n++] = (kl_url_param){kl_buf_take(&key), kl_buf_take(&value)};
    }
    kl_buf_fini(&key);
    kl_buf_fini(&value);
}

kl_status kl_url_request_uri(const char *base, const char *uri, kl_buf *out, kl_err *err)
{
    const char *from = after_host(uri), *query, *end, *c;
    kl_buf path = KL_BUF_INIT;
    params p = {0};
    kl_status st;
    size_t i;

    for (c = uri; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127)
            return kl_fail(err, KL_ESYNTAX, "URL \"%.200s\" has a control character", uri);
    if (!from)
        return kl_fail(err, KL_ESYNTAX,
            "URL \"%.200s\" has a ':' before its first '/'; write a path such as /api/v1/pods", uri);
    end = from + strcspn(from, "#");
    query = memchr(from, '?', (size_t)(end - from));
    st = kl_url_unescape(from, (size_t)((query ? query : end) - from), false, &path, err);
    while (!st && query && query < end) {
        const char *s = query + 1, *amp = memchr(s, '&', (size_t)(end - s));

        query = amp ? amp : end;
        add_pair(&p, s, (size_t)(query - s));
    }
    if (!st) {
        const char *segment = kl_buf_str(&path);

        st = abspath(base, &segment, 1, p.v, p.n, out, err);
    }
    for (i = 0; i < p.n; i++) {
        kl_free((char *)p.v[i].key);
        kl_free((char *)p.v[i].value);
    }
    kl_free(p.v);
    kl_buf_fini(&path);
    return st;
}

/* Sorts by key, stably: the values of one key keep their order. */
void kl_url_query(const kl_url_param *params, size_t n, kl_buf *out)
{
    const kl_url_param **v = kl_new_array(const kl_url_param *, n + 1);
    size_t i, j;

    for (i = 0; i < n; i++) {
        for (j = i; j > 0 && strcmp(v[j - 1]->key, params[i].key) > 0; j--)
            v[j] = v[j - 1];
        v[j] = &params[i];
    }
    for (i = 0; i < n; i++) {
        kl_buf_puts(out, i ? "&" : "");
        kl_url_escape(v[i]->key, out);
        kl_buf_putc(out, '=');
        kl_url_escape(v[i]->value, out);
    }
    kl_free(v);
}

const char *kl_url_target(const char *url)
{
    const char *host = strstr(url, "://");
    const char *path = host ? host + 3 + strcspn(host + 3, "/?") : url;

    return *path ? path : "/";
}
