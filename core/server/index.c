/* index.c - "/": the list of all paths except those of objects. */
#include "server/rest.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "server/reply.h"

typedef struct paths {
    char **v;
    size_t n;
} paths;

static void KL_PRINTF(2, 3) add_path(paths *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *path = kl_vsprintf(fmt, ap);
    va_end(ap);
    p->v = kl_realloc(p->v, (p->n + 1) * sizeof *p->v);
    p->v[p->n++] = path;
}

static void add_probe(void *arg, const char *endpoint, const char *check)
{
    if (check)
        add_path(arg, "/%s/%s", endpoint, check);
    else
        add_path(arg, "/%s", endpoint);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void add_groups(paths *p, const kl__kinds *kinds)
{
    for (size_t i = 0; i < kl__kinds_len(kinds); i++) {
        const kl__kind *k = kl__kinds_at(kinds, i);
        if (!*k->group)
            continue;
        add_path(p, "/apis/%s", k->group);
        add_path(p, "/apis/%s/%s", k->group, k->version);
    }
}

static void reply_index(const kl__world *w, kl_httpd_request *http)
{
    static const char *const others[] = {"/.well-known/openid-configuration", "/api", "/api/v1", "/apis",
        "/apis/", "/metrics", "/metrics/slis", "/openapi/v2", "/openapi/v3", "/openapi/v3/",
        "/openid/v1/jwks", "/version"};
    paths p = {0};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        add_path(&p, "%s", others[i]);
    kl__health_each(add_probe, &p);
    add_groups(&p, w->kinds);
    qsort(p.v, p.n, sizeof *p.v, by_name);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_key(b, "paths");
    kl_build_array(b);
    for (size_t i = 0; i < p.n; i++)
        if (!i || strcmp(p.v[i], p.v[i - 1]))
            kl_build_str(b, p.v[i]);
    kl_build_end(b);
    kl_build_end(b);
    for (size_t i = 0; i < p.n; i++)
        kl_free(p.v[i]);
    kl_free(p.v);
    const kl_value *page = kl_builder_done(b);
    kl_buf text = KL_BUF_INIT, lines = KL_BUF_INIT;
    kl_value_encode(page, &text);
    kl_json_indent(kl_buf_str(&text), text.len, &lines);
    kl_value_unref(page);
    kl_buf_fini(&text);
    kl__reply_buf(http, 200, "application/json", NULL, &lines);
}

bool kl__index(kl_server *s, const char *path, kl_httpd_request *http)
{
    if (strcmp(path, "/") != 0 && strcmp(path, "/index.html") != 0)
        return false;
    reply_index(&s->world, http);
    return true;
}
