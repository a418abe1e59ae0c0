/* projection.c - a tree of keys: at each level the members that are kept whole, cut further, or left out. */
#include "value/projection.h"

#include <stdatomic.h>
#include <string.h>
#include "base/mem.h"
#include "value/path.h"

struct kl__cut {
    char *key;
    size_t len;
    bool whole; /* kept with all that is below; has no kids */
    bool rest;  /* members that are no kid are kept */
    bool gone;  /* left out */
    kl__cut *kids;
    size_t n;
};

struct kl_projection {
    _Atomic int rc;
    kl__cut root;
    kl__cut frame, in_frame; /* around the root; in_frame borrows its kids */
};

static kl__cut *kid(const kl__cut *c, const char *key, size_t len)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->kids[i].len == len && !memcmp(c->kids[i].key, key, len))
            return &c->kids[i];
    return NULL;
}

static kl__cut *kid_made(kl__cut *c, const char *key, size_t len)
{
    kl__cut *k = kid(c, key, len);
    if (k)
        return k;
    c->kids = kl_realloc(c->kids, (c->n + 1) * sizeof *c->kids);
    k = &c->kids[c->n++];
    *k = (kl__cut){.key = kl_strndup(key, len), .len = len};
    return k;
}

static void cut_fini(kl__cut *c)
{
    for (size_t i = 0; i < c->n; i++)
        cut_fini(&c->kids[i]);
    kl_free(c->kids);
    kl_free(c->key);
}

static void keep_whole(kl__cut *c)
{
    char *key = c->key;
    c->key = NULL;
    size_t len = c->len;
    cut_fini(c);
    *c = (kl__cut){.key = key, .len = len, .whole = true};
}

static kl_status add(kl__cut *c, const char *path, kl_err *err)
{
    kl_path *p;
    kl_status st = kl_path_parse(path, &p, err);
    if (st)
        return st;
    for (size_t i = 0, n = kl_path_len(p); i < n && !c->whole; i++) {
        size_t len, index;
        const char *key = kl_path_step(p, i, &len, &index);
        if (!key) {
            kl_path_free(p);
            return kl_fail(err, KL_EINVAL,
                "field \"%s\": an index cannot be selected alone; without it the path means every item of "
                "the list",
                path);
        }
        c = kid_made(c, key, len);
    }
    keep_whole(c);
    kl_path_free(p);
    return KL_OK;
}

static kl_projection *made(void)
{
    kl_projection *p = kl_new(kl_projection);
    atomic_init(&p->rc, 1);
    return p;
}

static kl_projection *framed(kl_projection *p)
{
    p->in_frame = p->root;
    p->in_frame.key = "object";
    p->in_frame.len = 6;
    p->frame = (kl__cut){.rest = true, .kids = &p->in_frame, .n = 1};
    return p;
}

static const char *const always[] = {
    "apiVersion",
    "kind",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.generation",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.finalizers",
    "metadata.ownerReferences",
    "metadata.labels",
};

kl_status kl_projection_new(const char *const *paths, size_t n, kl_projection **out, kl_err *err)
{
    kl_projection *p = made();
    kl_status st = KL_OK;
    for (size_t i = 0; !st && i < sizeof always / sizeof *always; i++)
        st = add(&p->root, always[i], err);
    for (size_t i = 0; !st && i < n; i++)
        st = add(&p->root, paths[i], err);
    if (st)
        kl_projection_unref(p);
    else
        *out = framed(p);
    return st;
}

kl_projection *kl_projection_without_managed_fields(void)
{
    kl_projection *p = made();
    p->root.rest = true;
    kl__cut *metadata = kid_made(&p->root, "metadata", 8);
    metadata->rest = true;
    kid_made(metadata, "managedFields", 13)->gone = true;
    return framed(p);
}

kl_projection *kl_projection_ref(kl_projection *p)
{
    if (p)
        atomic_fetch_add_explicit(&p->rc, 1, memory_order_relaxed);
    return p;
}

void kl_projection_unref(kl_projection *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->rc, 1, memory_order_acq_rel) != 1)
        return;
    cut_fini(&p->root);
    kl_free(p);
}

static bool cut_equal(const kl__cut *a, const kl__cut *b)
{
    if (a->whole != b->whole || a->rest != b->rest || a->gone != b->gone || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        const kl__cut *other = kid(b, a->kids[i].key, a->kids[i].len);
        if (!other || !cut_equal(&a->kids[i], other))
            return false;
    }
    return true;
}

bool kl_projection_equal(const kl_projection *a, const kl_projection *b)
{
    return a == b || (a && b && cut_equal(&a->root, &b->root));
}

bool kl__cut_keeps(const kl__cut *c, const char *key, size_t n, const kl__cut **below)
{
    const kl__cut *k = kid(c, key, n);
    *below = k && !k->whole ? k : NULL;
    return k ? !k->gone : c->rest;
}

const kl__cut *kl__cut_items(const kl__cut *c) { return c && c->rest ? NULL : c; }

const kl__cut *kl__projection_root(const kl_projection *p) { return p ? &p->root : NULL; }

const kl__cut *kl__projection_frame(const kl_projection *p) { return p ? &p->frame : NULL; }

bool kl_projection_keeps(const kl_projection *p, const char *const *keys, size_t n)
{
    const kl__cut *c = kl__projection_root(p);
    for (size_t i = 0; c && i < n; i++)
        if (!kl__cut_keeps(c, keys[i], strlen(keys[i]), &c))
            return false;
    return true;
}

const kl_projection *kl_projection_of_errors(const kl_projection *p)
{
    return kl_projection_keeps(p, (const char *const[]){"code"}, 1) ? p : NULL;
}

static bool covers(const kl__cut *c, const kl_value *v)
{
    const kl__cut *below;
    if (!c)
        return true;
    if (kl_value_type(v) == KL_ARRAY) {
        c = kl__cut_items(c);
        for (size_t i = 0; c && i < kl_value_len(v); i++)
            if (!covers(c, kl_value_item(v, i)))
                return false;
        return true;
    }
    for (size_t i = 0; kl_value_type(v) == KL_OBJECT && i < kl_value_len(v); i++) {
        size_t n;
        const char *key;
        const kl_value *member = kl_value_member(v, i, &key, &n);
        if (!kl__cut_keeps(c, key, n, &below) || !covers(below, member))
            return false;
    }
    return true;
}

bool kl_projection_covers(const kl_projection *p, const kl_value *v)
{
    return covers(kl__projection_root(p), v);
}

static char *cut_list(const kl__cut *c, const kl_value *v, const char *path)
{
    const kl__cut *below;
    char *found = NULL;
    if (c && kl_value_type(v) == KL_ARRAY)
        return kl__cut_items(c) ? kl_strdup(path) : NULL;
    for (size_t i = 0; !found && c && kl_value_type(v) == KL_OBJECT && i < kl_value_len(v); i++) {
        size_t n;
        const char *key;
        const kl_value *member = kl_value_member(v, i, &key, &n);
        if (!kl__cut_keeps(c, key, n, &below))
            continue;
        char *at = kl_sprintf("%s%s%.*s", path, *path ? "." : "", (int)n, key);
        found = cut_list(below, member, at);
        kl_free(at);
    }
    return found;
}

char *kl_projection_cut_list(const kl_projection *p, const kl_value *patch)
{
    return cut_list(kl__projection_root(p), patch, "");
}
