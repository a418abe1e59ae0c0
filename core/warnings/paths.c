/* paths.c - paths within one volume that overlap: a file that takes the place of another one, or of its
 * directory. */
#include "warnings/warnings.h"

#include <string.h>

#include "base/mem.h"

#define PATHS_MAX 500 /* the paths of one volume that are compared with each other */

typedef struct path {
    const char *text;
    size_t n;                /* without slashes at the end */
    const char *kind, *name; /* where it comes from; name NULL: the kind alone; kind NULL: nothing is said */
} path;

typedef struct paths {
    path v[PATHS_MAX];
    size_t len;
} paths;

static void show(kl_buf *out, const path *p)
{
    kl_buf_printf(out, "\"%.*s\"", (int)p->n, p->text);
    if (p->kind && p->name)
        kl_buf_printf(out, " (%s \"%s\")", p->kind, p->name);
    else if (p->kind)
        kl_buf_printf(out, " (%s)", p->kind);
}

/* Whether a is b, or a directory above it. */
static bool leads_to(const path *a, const path *b)
{
    return a->n <= b->n && !memcmp(a->text, b->text, a->n) && (a->n == b->n || b->text[a->n] == '/');
}

/* Adds a path, and warns of each earlier one that overlaps with it. `of` says which volume that is. */
static void add(kl__causes *out, paths *all, path p, const char *of)
{
    p.n = strlen(p.text);
    while (p.n && p.text[p.n - 1] == '/')
        p.n--;
    for (size_t i = 0; p.n && i < all->len; i++) {
        const path *other = &all->v[i];
        if (!other->n || !(leads_to(&p, other) || leads_to(other, &p)))
            continue;
        if (kl__causes_full(out))
            return;
        kl_buf text = KL_BUF_INIT;
        show(&text, &p);
        kl_buf_puts(&text, " with ");
        show(&text, other);
        kl__cause_add(out, "Warning", "", "%s: overlapping paths: %s", of, kl_buf_str(&text));
        kl_buf_fini(&text);
    }
    if (all->len < PATHS_MAX)
        all->v[all->len++] = p;
}

static void add_items(kl__causes *out, paths *all, const kl_value *items, path from, const char *of)
{
    for (size_t i = 0; i < kl_value_len(items); i++) {
        from.text = kl__text(kl_value_item(items, i), "path");
        add(out, all, from, of);
    }
}

static void one_source(
    kl__causes *out, const char *volume, const kl_value *items, const char *kind, const char *name)
{
    if (!items)
        return;
    paths *all = kl_new(paths);
    char *of = name ? kl_sprintf("volume \"%s\" (%s \"%s\")", volume, kind, name)
                    : kl_sprintf("volume \"%s\" (%s)", volume, kind);
    add_items(out, all, items, (path){0}, of);
    kl_free(of);
    kl_free(all);
}

static void add_projection(kl__causes *out, paths *all, const kl_value *s, const char *of)
{
    static const char *const certificate[][2] = {{"certificateChainPath", "PodCertificate chain"},
        {"keyPath", "PodCertificate key"}, {"credentialBundlePath", "PodCertificate credential bundle"}};
    const kl_value *map = kl_value_get(s, "configMap"), *secret = kl_value_get(s, "secret"),
                   *token = kl_value_get(s, "serviceAccountToken"),
                   *bundle = kl_value_get(s, "clusterTrustBundle"), *pod = kl_value_get(s, "podCertificate");
    add_items(
        out, all, kl_value_get(map, "items"), (path){.kind = "ConfigMap", .name = kl__text(map, "name")}, of);
    add_items(out, all, kl_value_get(secret, "items"),
        (path){.kind = "Secret", .name = kl__text(secret, "name")}, of);
    add_items(out, all, kl_value_at(s, "downwardAPI", "items", NULL), (path){.kind = "DownwardAPI"}, of);
    if (token)
        add(out, all, (path){.text = kl__text(token, "path"), .kind = "ServiceAccountToken"}, of);
    if (bundle)
        add(out, all,
            (path){.text = kl__text(bundle, "path"),
                .kind = "ClusterTrustBundle",
                .name = kl__text(bundle, kl_value_get(bundle, "name") ? "name" : "signerName")},
            of);
    for (size_t i = 0; pod && i < sizeof certificate / sizeof *certificate; i++)
        if (*kl__text(pod, certificate[i][0]))
            add(out, all, (path){.text = kl__text(pod, certificate[i][0]), .kind = certificate[i][1]}, of);
}

static void projected(kl__causes *out, const char *volume, const kl_value *sources)
{
    paths *all = kl_new(paths);
    char *of = kl_sprintf("volume \"%s\" (Projected)", volume);
    for (size_t i = 0; i < kl_value_len(sources); i++) {
        const kl_value *s = kl_value_item(sources, i);
        if (!kl_value_len(s))
            kl__cause_add(out, "Warning", "", "%s has no sources provided", of);
        add_projection(out, all, s, of);
    }
    kl_free(of);
    kl_free(all);
}

void kl__warn_paths(kl__causes *out, const kl_value *volumes)
{
    for (size_t i = 0; i < kl_value_len(volumes); i++) {
        const kl_value *v = kl_value_item(volumes, i), *map = kl_value_get(v, "configMap"),
                       *secret = kl_value_get(v, "secret");
        const char *name = kl__text(v, "name");
        one_source(out, name, kl_value_get(map, "items"), "ConfigMap", kl__text(map, "name"));
        one_source(out, name, kl_value_get(secret, "items"), "Secret", kl__text(secret, "secretName"));
        one_source(out, name, kl_value_at(v, "downwardAPI", "items", NULL), "DownwardAPI", NULL);
        projected(out, name, kl_value_at(v, "projected", "sources", NULL));
    }
}
