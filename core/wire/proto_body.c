/* proto_body.c - what stands around an object in protobuf: the envelope, a list, and finding a name
 * without decoding. */
#include "wire/proto_impl.h"

#include <stdlib.h>
#include "base/mem.h"

static const char magic[4] = {'k', '8', 's', '\0'};

/* --- kinds -------------------------------------------------------------------------------- */

static int compare(const char *a, size_t n, const char *b)
{
    int c = strncmp(a, b, n);
    return c ? c : b[n] ? -1 : 0;
}

const kl__proto_msg *kl__proto_find(const char *api_version, size_t an, const char *kind, size_t kn)
{
    size_t low = 0, high = kl__proto_count.kinds;
    if (!an || !kn)
        return NULL;
    while (low < high) {
        size_t mid = (low + high) / 2;
        const kl__proto_kind *k = &kl__proto_kinds[mid];
        int c = compare(api_version, an, k->api_version);
        c = c ? c : compare(kind, kn, k->kind);
        if (!c)
            return &kl__proto_msgs[k->msg];
        if (c < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

/* A client writes the options of a delete under the group of the object; they are the same in all groups. */
static const kl__proto_msg *options(const char *kind, size_t n)
{
    static const char name[] = "DeleteOptions";
    return n == sizeof name - 1 && !memcmp(kind, name, n) ? kl__proto_find("v1", 2, kind, n) : NULL;
}

bool kl_proto_has(const char *api_version, const char *kind)
{
    return api_version && kind && kl__proto_find(api_version, strlen(api_version), kind, strlen(kind));
}

bool kl_proto_is(const char *data, size_t n)
{
    return n >= sizeof magic && !memcmp(data, magic, sizeof magic);
}

/* --- the envelope ------------------------------------------------------------------------- */

kl_status kl__unknown_type(const char *p, size_t n, kl__unknown *out)
{
    const char *end = p + n;
    kl__field f;
    while (p < end) {
        p = kl__field_next(p, end, &f);
        if (!p || (f.number < 3 && f.wire != KL__WIRE_BYTES))
            return KL_ESYNTAX;
        if (f.number == 1) {
            out->api_version = f.s;
            out->api_version_n = f.n;
        } else if (f.number == 2) {
            out->kind = f.s;
            out->kind_n = f.n;
        }
    }
    return KL_OK;
}

kl_status kl__unknown_read(const char *data, size_t n, kl__unknown *out, kl_err *err)
{
    const char *p = data + sizeof magic, *end = data + n;
    kl__field f;
    *out = (kl__unknown){0};
    if (!kl_proto_is(data, n))
        return kl_fail(err, KL_ESYNTAX, "the protobuf does not begin with \"k8s\" and a zero byte");
    while (p < end) {
        const char *at = p;
        p = kl__field_next(p, end, &f);
        if (!p || (f.number <= 4 && f.wire != KL__WIRE_BYTES)
            || (f.number == 1 && kl__unknown_type(f.s, f.n, out)))
            return kl_fail(err, KL_ESYNTAX, "the protobuf's envelope is malformed or truncated at byte %zu",
                (size_t)(at - data));
        if (f.number == 2) {
            out->raw = f.s;
            out->raw_n = f.n;
        } else if (f.number == 3 && f.n) {
            return kl_fail(err, KL_ESYNTAX,
                "the protobuf's content is encoded as \"%.*s\", which was not requested",
                (int)(f.n < 40 ? f.n : 40), f.s);
        }
    }
    return KL_OK;
}

/* --- names -------------------------------------------------------------------------------- */

/* Finds the first field with this number, and its bytes as far as they are there. */
static bool enter(const char *p, size_t n, uint32_t number, const char **s, size_t *sn)
{
    const char *end = p + n;
    kl__field f;
    uint64_t tag, len;
    for (const char *next; p && p < end; p = next) {
        const char *q = kl__varint(p, end, &tag);
        if (q && tag == (number << 3 | KL__WIRE_BYTES)) {
            q = kl__varint(q, end, &len);
            if (!q)
                return false;
            *s = q;
            *sn = len < (uint64_t)(end - q) ? (size_t)len : (size_t)(end - q);
            return true;
        }
        next = kl__field_next(p, end, &f);
    }
    return false;
}

void kl__proto_name(
    const char *p, size_t n, const char **ns, size_t *nslen, const char **name, size_t *namelen)
{
    const char *meta;
    size_t meta_n;
    *ns = *name = NULL;
    *nslen = *namelen = 0;
    if (!enter(p, n, 1, &meta, &meta_n))
        return;
    if (!enter(meta, meta_n, 1, name, namelen))
        *name = NULL;
    if (!enter(meta, meta_n, 3, ns, nslen))
        *ns = NULL;
}

bool kl__proto_frame_object(const char *p, size_t n, const char **s, size_t *sn)
{
    if (!enter(p, n, 2, &p, &n) || !enter(p, n, 1, &p, &n) || !kl_proto_is(p, n))
        return false;
    return enter(p + sizeof magic, n - sizeof magic, 2, s, sn);
}

void kl__front_drop(kl__front *f)
{
    for (size_t i = 0; i < f->n; i++) {
        kl_value_unref(f->key[i]);
        kl_value_unref(f->value[i]);
    }
    f->n = 0;
}

/* --- a whole body ------------------------------------------------------------------------- */

static kl_status whole_list(kl__proto *d, const kl__proto_msg *m, const kl__unknown *u, const kl_value *kind,
    const kl_value *api_version, const kl_value **out, kl_err *err)
{
    kl_builder *b = kl_builder_new();
    kl__front front = {.key = {kl_value_of_str("kind"), kl_value_of_str("apiVersion")},
        .value = {kl_value_of_strn(u->kind, u->kind_n - 4), kl_value_ref(api_version)},
        .n = 2};
    bool typed = kl__proto_items_typed(u->kind, u->kind_n);
    const char *p = u->raw, *end = p + u->raw_n;
    const kl_value *meta = NULL, *before = NULL;
    kl_builder *items = kl_builder_new();
    d->many = true;
    kl_status st = KL_OK;
    kl__field f;
    size_t n = 0;
    kl_build_array(items);
    while (!st && p < end) {
        const char *at = p;
        const kl_value *v = NULL;
        p = kl__field_next(p, end, &f);
        if (!p || (f.number <= 2 && f.wire != KL__WIRE_BYTES))
            st = kl_fail(err, KL_ESYNTAX,
                "the protobuf list is malformed or truncated at byte %zu, after %zu items",
                (size_t)(at - u->raw), n);
        else if (f.number == 1) {
            kl_value_unref(meta);
            meta = NULL;
            st = kl__proto_message(
                d, &kl__proto_msgs[kl__proto_count.list_meta], f.s, f.n, NULL, NULL, &meta, err);
            if (st)
                kl_err_prefix(err, "the list's metadata");
        } else if (f.number == 2) {
            n++;
            st = kl__proto_message(d, m, f.s, f.n, before, typed ? &front : NULL, &v, err);
            if (st) {
                kl_err_prefix(err, "list item %zu", n);
            } else {
                kl_build_value(items, v);
                kl_value_unref(before);
                before = v;
            }
        }
    }
    kl_value_unref(before);
    kl__front_drop(&front);
    if (st) {
        kl_builder_free(b);
        kl_builder_free(items);
        kl_value_unref(meta);
        return st;
    }
    kl_build_end(items);
    const kl_value *list = kl_builder_done(items);
    kl_build_object(b);
    kl_build_kvalue(b, "kind", kind);
    kl_build_kvalue(b, "apiVersion", api_version);
    kl_build_key(b, "metadata");
    kl_build_value(b, meta ? meta : KL__EMPTY_OBJECT);
    kl_build_kvalue(b, "items", list);
    kl_build_end(b);
    kl_value_unref(meta);
    kl_value_unref(list);
    *out = kl_builder_done(b);
    return KL_OK;
}

kl_status kl__unknown_decode(
    kl__proto *d, const kl__unknown *u, const kl_value *guide, const kl_value **out, kl_err *err)
{
    const kl__proto_msg *m = kl__proto_find(u->api_version, u->api_version_n, u->kind, u->kind_n),
                        *item = NULL;
    if (!m && u->kind_n > 4 && !memcmp(u->kind + u->kind_n - 4, "List", 4))
        item = kl__proto_find(u->api_version, u->api_version_n, u->kind, u->kind_n - 4);
    if (!m && !item && u->api_version_n)
        m = options(u->kind, u->kind_n);
    if (!m && !item) {
        d->outdated = true;
        return kl_fail(err, KL_ESYNTAX, "the protobuf is of a kind without a table here: %.*s %.*s",
            (int)(u->api_version_n < 80 ? u->api_version_n : 80), u->api_version ? u->api_version : "",
            (int)(u->kind_n < 80 ? u->kind_n : 80), u->kind ? u->kind : "");
    }
    kl__front front = {.key = {kl_value_of_str("kind"), kl_value_of_str("apiVersion")},
        .value = {kl_value_of_strn(u->kind, u->kind_n), kl_value_of_strn(u->api_version, u->api_version_n)},
        .n = 2};
    kl_status st = item ? whole_list(d, item, u, front.value[0], front.value[1], out, err)
                        : kl__proto_message(d, m, u->raw ? u->raw : "", u->raw_n, guide, &front, out, err);
    kl__front_drop(&front);
    return st;
}

struct kl_proto_reader {
    kl__proto d;
};

kl_proto_reader *kl_proto_reader_new(void) { return kl_new(kl_proto_reader); }

void kl_proto_reader_free(kl_proto_reader *r)
{
    if (!r)
        return;
    kl__proto_fini(&r->d);
    kl_free(r);
}

kl_status kl_proto_read(kl_proto_reader *r, const char *data, size_t n, const kl_value *like,
    const kl_value **out, bool *outdated, kl_err *err)
{
    kl__unknown u;
    r->d.outdated = false;
    kl_status st = kl__unknown_read(data, n, &u, err);
    if (!st)
        st = kl__unknown_decode(&r->d, &u, like, out, err);
    if (outdated)
        *outdated = r->d.outdated;
    return st;
}

kl_status kl_proto_decode(const char *data, size_t n, const kl_value **out, bool *outdated, kl_err *err)
{
    kl_proto_reader r = {0};
    kl_status st = kl_proto_read(&r, data, n, NULL, out, outdated, err);
    kl__proto_fini(&r.d);
    return st;
}
