/* object.c - a Kubernetes object is a value with metadata: its common fields, and its key. */
#include "model/object.h"

#include <string.h>
#include "base/base64.h"
#include "base/mem.h"
#include "value/edited.h"

static const kl_value *metadata(const kl_value *o, const char *key)
{
    return kl_value_get(kl_value_get(o, "metadata"), key);
}

/* Strings of metadata read as absent when empty: Go leaves them out or writes "". */
static const char *text(const kl_value *v)
{
    const char *s = kl_value_str(v);
    return s && *s ? s : NULL;
}

const char *kl_object_api_version(const kl_value *o) { return text(kl_value_get(o, "apiVersion")); }

const char *kl_object_kind(const kl_value *o) { return text(kl_value_get(o, "kind")); }

const char *kl_object_name(const kl_value *o) { return text(metadata(o, "name")); }

const char *kl_object_namespace(const kl_value *o) { return text(metadata(o, "namespace")); }

const char *kl_object_uid(const kl_value *o) { return text(metadata(o, "uid")); }

const char *kl_object_rv(const kl_value *o) { return text(metadata(o, "resourceVersion")); }

int64_t kl_object_generation(const kl_value *o)
{
    int64_t g;
    return kl_value_int(metadata(o, "generation"), &g) ? g : 0;
}

bool kl_object_deleting(const kl_value *o) { return text(metadata(o, "deletionTimestamp")) != NULL; }

const kl_value *kl_object_label(const kl_value *o, const char *name)
{
    return kl_value_get(metadata(o, "labels"), name);
}

const kl_value *kl_object_annotation(const kl_value *o, const char *name)
{
    return kl_value_get(metadata(o, "annotations"), name);
}

bool kl_object_has_finalizer(const kl_value *o, const char *name)
{
    return kl_value_has_str(metadata(o, "finalizers"), name);
}

const kl_value *kl_object_controller(const kl_value *o)
{
    const kl_value *all = metadata(o, "ownerReferences");
    for (size_t i = 0; i < kl_value_len(all); i++) {
        const kl_value *ref = kl_value_item(all, i);
        if (kl_value_bool(kl_value_get(ref, "controller"), false))
            return ref;
    }
    return NULL;
}

char *kl_object_key(const kl_value *o)
{
    const char *name = kl_object_name(o);
    return name ? kl_key_join(kl_object_namespace(o), name) : NULL;
}

char *kl_key_join(const char *ns, const char *name)
{
    if (!ns || !*ns)
        return kl_strdup(name);
    size_t a = strlen(ns), b = strlen(name) + 1;
    char *key = kl_alloc(a + 1 + b);
    memcpy(key, ns, a);
    key[a] = '/';
    memcpy(key + a + 1, name, b);
    return key;
}

void kl_key_split(const char *key, size_t *nslen, const char **name)
{
    const char *slash = strchr(key, '/');
    if (nslen)
        *nslen = slash ? (size_t)(slash - key) : 0;
    if (name)
        *name = slash ? slash + 1 : key;
}

/* Digits without leading zeros; NULL when s is not a number. */
static const char *rv_digits(const char *s, size_t *n)
{
    if (!s || !*s || strspn(s, "0123456789") != strlen(s))
        return NULL;
    while (s[0] == '0' && s[1])
        s++;
    *n = strlen(s);
    return s;
}

int kl_rv_compare(const char *a, const char *b, bool *ok)
{
    size_t na = 0, nb = 0;
    a = rv_digits(a, &na);
    b = rv_digits(b, &nb);
    if (ok)
        *ok = a && b;
    if (!a || !b)
        return 0;
    return na != nb ? (na < nb ? -1 : 1) : strcmp(a, b);
}

uint64_t kl_rv_number(const char *rv)
{
    uint64_t n = 0;
    if (!rv || !*rv)
        return 0;
    for (; *rv >= '0' && *rv <= '9'; rv++)
        if (__builtin_mul_overflow(n, 10u, &n) || __builtin_add_overflow(n, (uint64_t)(*rv - '0'), &n))
            return 0;
    return *rv ? 0 : n;
}

const kl_value *kl_object_with_type(const kl_value *o, const char *api_version, const char *kind)
{
    const char *version = kl_object_api_version(o), *name = kl_object_kind(o);
    if (version && name)
        return kl_value_ref(o);
    return kl_object_as(o, version ? version : api_version, name ? name : kind);
}

const kl_value *kl_object_as(const kl_value *o, const char *api_version, const char *kind)
{
    if (kl_value_type(o) != KL_OBJECT)
        return kl_value_ref(o);
    kl_builder *b = kl_builder_new(); /* the type first, as people write it */
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", api_version);
    kl_build_kstr(b, "kind", kind);
    const char *key;
    size_t n;
    const kl_value *v;
    for (size_t i = 0; (v = kl_value_member(o, i, &key, &n)); i++)
        if ((n != 10 || memcmp(key, "apiVersion", 10)) && (n != 4 || memcmp(key, "kind", 4))) {
            kl_build_keyn(b, key, n);
            kl_build_value(b, v);
        }
    kl_build_end(b);
    return kl_builder_done(b);
}

const kl_value *kl_secret_data(const kl_value *secret)
{
    const kl_value *texts = kl_value_get(secret, "stringData");
    kl_edited data = {.base = kl_value_get(secret, "data")};
    for (size_t i = 0; i < kl_value_len(texts); i++) {
        const char *key;
        size_t n;
        const char *text = kl_value_strn(kl_value_member(texts, i, &key, NULL), &n);
        if (!text)
            continue;
        char *bytes = kl_base64_encode(text, n);
        const kl_value *v = kl_value_of_str(bytes);
        kl_edited_put(&data, key, v);
        kl_value_unref(v);
        kl_free(bytes);
    }
    return data.len ? kl_edited_done(&data) : NULL;
}
