/* stream_laws.h - what must hold for any bytes that are fed to a stream, however they are cut. For the
 * fuzzer and for the suite alike. Each function returns NULL, or the law that was broken. */
#ifndef KL_SPEC_STREAM_LAWS_H
#define KL_SPEC_STREAM_LAWS_H

#include "wire/stream.h"
#include "support/json_laws.h"
#include "support/random_value.h"

typedef struct heard {
    const kl_value **objects;
    char **types;
    size_t n, room;
    const kl_value *envelope;
    kl_status status;
    kl_err err;
} heard;

/* The same to the last digit and in the same order. A stream keeps containers with new strings out of the
 * table, so equal ones may be two nodes. */
static inline bool same_text(const kl_value *a, const kl_value *b)
{
    if (a == b)
        return true;
    char *x = kl_value_to_json(a), *y = kl_value_to_json(b);
    bool same = kl_value_type(a) == kl_value_type(b) && !strcmp(x, y) && kl_value_equal(a, b);
    kl_free(x);
    kl_free(y);
    return same;
}

static inline kl_status hear_event(void *arg, const char *type, const kl_value *v, kl_err *err)
{
    (void)err;
    heard *h = arg;
    if (h->n == h->room) {
        h->room = h->room * 2 + 8;
        h->objects = kl_realloc(h->objects, h->room * sizeof *h->objects);
        h->types = kl_realloc(h->types, h->room * sizeof *h->types);
    }
    h->objects[h->n] = v;
    h->types[h->n++] = kl_strdup(type);
    return KL_OK;
}

static inline kl_status hear_item(void *arg, const kl_value *v, kl_err *err)
{
    return hear_event(arg, NULL, v, err);
}

static inline void forget(heard *h)
{
    for (size_t i = 0; i < h->n; i++) {
        kl_value_unref(h->objects[i]);
        kl_free(h->types[i]);
    }
    kl_free(h->objects);
    kl_free(h->types);
    kl_value_unref(h->envelope);
    kl_err_fini(&h->err);
    *h = (heard){0};
}

typedef struct cutting {
    bool list, drop;
    size_t max;
    const char *api_version, *kind; /* put in front of items that carry neither */
    kl_projection *keep;
    const heard *known; /* what an owner says it knows, whatever the name: any of these, or nothing */
    size_t step;        /* pieces of this size; 0: one piece */
    size_t first;       /* the size of the first piece when not 0 */
    rng *random;        /* pieces of random sizes instead */
} cutting;

typedef struct listener {
    heard h;
    const heard *known;
    rng r;
} listener;

static inline kl_status listen_item(void *arg, const kl_value *v, kl_err *err)
{
    return hear_item(&((listener *)arg)->h, v, err);
}

static inline kl_status listen_event(void *arg, const char *type, const kl_value *v, kl_err *err)
{
    return hear_event(&((listener *)arg)->h, type, v, err);
}

/* An owner that answers with something it once heard, right or wrong: it may cost time and nothing else. */
static inline const kl_value *listen_known(
    void *arg, const char *ns, size_t nslen, const char *name, size_t namelen)
{
    listener *l = arg;
    if (!memchr(name, name[0], namelen) || (nslen && !memchr(ns, ns[0], nslen)))
        return NULL; /* reads both ends: they lie in the text */
    return l->known->n && rng_below(&l->r, 4)
        ? kl_value_ref(l->known->objects[rng_below(&l->r, (uint32_t)l->known->n)])
        : NULL;
}

/* Each piece lies in an allocation of its own, which is gone after the call: a read beyond or after it is
 * caught. */
static inline heard feed(const char *text, size_t n, cutting c)
{
    listener l = {.known = c.known, .r = rng_of(n)};
    kl_stream_handler handler = {.item = listen_item,
        .event = listen_event,
        .arg = &l,
        .max_object = c.max,
        .drop_managed_fields = c.drop,
        .keep = c.keep,
        .api_version = c.api_version,
        .kind = c.kind,
        .known = c.known ? listen_known : NULL};
    heard h = {0};
    kl_stream *s = c.list ? kl_stream_list_new(&handler) : kl_stream_watch_new(&handler);
    for (size_t at = 0, len; at < n && !h.status; at += len) {
        len = c.random       ? rng_below(c.random, rng_below(c.random, 3) ? 9 : 400)
            : !at && c.first ? c.first
            : c.step         ? c.step
                             : n;
        len = len < n - at ? len : n - at; /* random ones may be empty */
        char *piece = exact_copy(text + at, len);
        h.status = kl_stream_feed(s, piece, len, &h.err);
        kl_free(piece);
    }
    if (!h.status)
        h.status = kl_stream_finish(s, &h.envelope, &h.err);
    kl_stream_free(s);
    h.objects = l.h.objects;
    h.types = l.h.types;
    h.n = l.h.n;
    return h;
}

/* A message without the excerpt of the text that it shows, which ends with the piece. */
static inline char *without_excerpt(const kl_err *err)
{
    char *message = kl_strdup(kl_err_message(err)), *open = strchr(message, '`'),
         *close = strrchr(message, '`');
    if (open && close > open)
        memmove(open, close, strlen(close) + 1);
    return message;
}

/* Two ways to feed the same bytes heard the same. Of an object that is too big, its name may be known in
 * one way only. */
static inline const char *law_of_cuts(const heard *a, const heard *b)
{
    LAW(a->status == b->status);
    LAW(a->n == b->n);
    for (size_t i = 0; i < a->n; i++) {
        LAW(same_text(a->objects[i], b->objects[i]));
        LAW(!a->types[i] == !b->types[i] && (!a->types[i] || !strcmp(a->types[i], b->types[i])));
    }
    LAW(a->envelope == b->envelope);
    if (a->status == KL_ETOOBIG) {
        LAW(strstr(kl_err_message(&a->err), "--max-object-bytes")
            && strstr(kl_err_message(&b->err), "--max-object-bytes"));
    } else if (a->status) {
        LAW(a->status == KL_ESYNTAX && a->err.status == KL_ESYNTAX && b->err.status == KL_ESYNTAX);
        char *x = without_excerpt(&a->err), *y = without_excerpt(&b->err);
        bool same = *x && !strcmp(x, y);
        kl_free(x);
        kl_free(y);
        LAW(same);
    }
    return NULL;
}

static inline const char *laws_of_cuts(const char *text, size_t n, cutting c, rng *r)
{
    heard whole = feed(text, n, c);
    const char *broken = NULL;
    static const size_t steps[] = {1, 7, 64};
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !broken; i++) {
        c.step = steps[i];
        heard cut = feed(text, n, c);
        broken = law_of_cuts(&whole, &cut);
        forget(&cut);
    }
    c.random = r;
    for (int i = 0; i < 2 && !broken; i++) {
        heard cut = feed(text, n, c);
        broken = law_of_cuts(&whole, &cut);
        forget(&cut);
    }
    forget(&whole);
    return broken;
}

/* --- against the whole document ----------------------------------------------------------- */

/* What a list must give, when its text as a whole is the document v. */
static inline const char *law_of_a_list(const kl_value *v, const heard *h)
{
    const kl_value *items = kl_value_get(v, "items");
    bool good = kl_value_type(v) == KL_OBJECT
        && (!items || kl_value_type(items) == KL_NULL || kl_value_type(items) == KL_ARRAY);
    for (size_t i = 0; good && i < kl_value_len(items); i++)
        good = kl_value_type(kl_value_item(items, i)) == KL_OBJECT;
    LAW(good == !h->status);
    if (!good)
        return NULL;
    LAW(h->n == kl_value_len(items));
    for (size_t i = 0; i < h->n; i++)
        LAW(same_text(h->objects[i], kl_value_item(items, i)));
    const kl_value *envelope = kl_value_with(v, "items", NULL);
    bool same = envelope == h->envelope;
    kl_value_unref(envelope);
    LAW(same);
    return NULL;
}

static inline const char *law_of_a_frame(const kl_value *v, const heard *h)
{
    const char *type = kl_value_str_at(v, "type", NULL);
    const kl_value *object = kl_value_get(v, "object");
    bool good = type && object && kl_value_type(object) == KL_OBJECT;
    LAW(good == !h->status);
    LAW(!good || (h->n == 1 && same_text(h->objects[0], object) && !strcmp(h->types[0], type)));
    return NULL;
}

/* The same stream without managedFields: every object lost that member and nothing else. */
static inline const char *law_of_dropping(const heard *kept, const heard *dropped)
{
    LAW(!dropped->status && dropped->n == kept->n);
    LAW(kept->envelope == dropped->envelope);
    for (size_t i = 0; i < kept->n; i++) {
        const kl_value *want = kl_value_with_at(kept->objects[i], NULL, "metadata", "managedFields", NULL);
        bool same = same_text(want, dropped->objects[i]);
        kl_value_unref(want);
        LAW(same);
    }
    return NULL;
}

/* --- what is put in front, what is left out, what is known -------------------------------- */

static inline const kl_value *with_type_in_front(const kl_value *v)
{
    if (kl_value_get(v, "apiVersion") || kl_value_get(v, "kind"))
        return kl_value_ref(v);
    const char *key;
    size_t n;
    const kl_value *m;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", "v1");
    kl_build_kstr(b, "kind", "Pod");
    for (size_t i = 0; (m = kl_value_member(v, i, &key, &n)); i++) {
        kl_build_keyn(b, key, n);
        kl_build_value(b, m);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static inline const char *law_of_filling(const heard *plain, const heard *filled)
{
    LAW(plain->status == filled->status && plain->n == filled->n && plain->envelope == filled->envelope);
    for (size_t i = 0; i < plain->n; i++) {
        const kl_value *want = with_type_in_front(plain->objects[i]);
        bool same = same_text(want, filled->objects[i]);
        kl_value_unref(want);
        LAW(same);
    }
    return NULL;
}

/* The paths of the projection that is tried, as keys from the root: what projection.h promises, and four
 * more. */
static const char *const kept_always[] = {
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
static const char *const kept_more[] = {"spec.a", "spec.containers.image", "status", "m1.a.b"};

/* Whether the path (keys with dots) lies on the way to a kept one (1), or at or below one (2), or neither
 * (0). */
static inline int kept_at(const char *path)
{
    int on_the_way = 0;
    for (size_t i = 0; i < 17; i++) {
        const char *keep = i < 13 ? kept_always[i] : kept_more[i - 13];
        size_t n = strlen(path), k = strlen(keep);
        if (!strncmp(path, keep, k) && (path[k] == '\0' || path[k] == '.'))
            return 2;
        on_the_way |= n < k && !strncmp(path, keep, n) && keep[n] == '.';
    }
    return on_the_way;
}

/* v as the projection would have it, by walking what was decoded whole. Keys with dots or NUL are no part
 * of any path. */
static inline const kl_value *cut_out(const kl_value *v, const char *path)
{
    const char *key;
    size_t n;
    const kl_value *m;
    if (kl_value_type(v) != KL_OBJECT && kl_value_type(v) != KL_ARRAY)
        return kl_value_ref(v);
    kl_builder *b = kl_builder_new();
    bool object = kl_value_type(v) == KL_OBJECT;
    (object ? kl_build_object : kl_build_array)(b);
    for (size_t i = 0; (m = object ? kl_value_member(v, i, &key, &n) : kl_value_item(v, i)); i++) {
        bool odd = object && (strlen(key) != n || strchr(key, '.') || !n);
        char *below = !object ? kl_strdup(path)
            : odd             ? kl_strdup("?")
            : *path           ? kl_sprintf("%s.%s", path, key)
                              : kl_strdup(key);
        int kept = object ? kept_at(below) : 1;
        if (kept) {
            const kl_value *x = kept == 2 ? kl_value_ref(m) : cut_out(m, below);
            if (object)
                kl_build_keyn(b, key, n);
            kl_build_value(b, x);
            kl_value_unref(x);
        }
        kl_free(below);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

static inline const char *law_of_projection(const heard *whole, const heard *cut)
{
    LAW(!cut->status && cut->n == whole->n && cut->envelope == whole->envelope);
    for (size_t i = 0; i < whole->n; i++) {
        /* its Status stays whole */
        bool error = whole->types && whole->types[i] && !strcmp(whole->types[i], "ERROR");
        const kl_value *want = error ? kl_value_ref(whole->objects[i]) : cut_out(whole->objects[i], "");
        bool same = same_text(want, cut->objects[i]);
        kl_value_unref(want);
        LAW(same);
    }
    return NULL;
}

static inline const char *laws_of_options(const char *text, size_t n, bool list, const heard *plain, rng *r)
{
    kl_projection *keep = NULL;
    const char *broken = NULL;
    if (kl_projection_new(kept_more, 4, &keep, NULL))
        return "the projection is well-formed";
    const cutting options[] = {{.list = list, .api_version = "v1", .kind = "Pod"},
        {.list = list, .keep = keep}, {.list = list, .known = plain}};
    for (size_t i = 0; i < 3 && !broken; i++) {
        cutting c = options[i];
        heard whole = feed(text, n, c);
        if (i == 0 && list)
            broken = law_of_filling(plain, &whole);
        else if (i == 1 && !plain->status)
            broken = law_of_projection(plain, &whole);
        else if (i == 2)
            broken = law_of_cuts(plain, &whole);
        forget(&whole);
        if (!broken)
            broken = laws_of_cuts(text, n, c, r);
    }
    kl_projection_unref(keep);
    return broken;
}

static inline const char *laws_of_a_stream(const char *text, size_t n, bool list, uint64_t seed)
{
    rng r = rng_of(seed);
    size_t nodes, left, bytes;
    kl_value_memory(&nodes, &bytes);
    const kl_value *v = NULL;
    heard kept = feed(text, n, (cutting){.list = list}),
          dropped = feed(text, n, (cutting){.list = list, .drop = true});
    const char *broken = NULL;

    bool one = !kl_value_decode(text, n, &v, NULL);
    if (one)
        broken = list ? law_of_a_list(v, &kept) : law_of_a_frame(v, &kept);
    /* What passed as a list is a document, though its items may be as deep as one on their own. */
    else if (list && !kept.status && !strict_accepts(text, n, KL_VALUE_DEPTH_MAX + 2, false))
        broken = "a list that is not JSON was refused";
    if (!broken && !kept.status)
        broken = law_of_dropping(&kept, &dropped);
    if (!broken)
        broken = laws_of_options(text, n, list, &kept, &r);
    kl_value_unref(v);
    forget(&kept);
    forget(&dropped);

    for (int drop = 0; drop < 2 && !broken; drop++) {
        broken = laws_of_cuts(text, n, (cutting){.list = list, .drop = drop}, &r);
        if (!broken)
            broken = laws_of_cuts(text, n,
                (cutting){.list = list, .drop = drop, .max = 1 + rng_below(&r, (uint32_t)n + 20)}, &r);
    }
    kl_value_memory(&left, &bytes);
    LAW(broken || left == nodes);
    return broken;
}

#endif
