/* gnostic.c - writes what the tables of the two forms say. Extensions (x-...) and defaults go as YAML text,
 * which JSON is. */
#include <string.h>

#include "base/mem.h"
#include "openapi/gnostic.h"

static void varint(kl_buf *out, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        kl_buf_putc(out, (char)(v | 0x80));
    kl_buf_putc(out, (char)v);
}

void kl__gnostic_bytes(kl_buf *out, unsigned number, const void *data, size_t n)
{
    varint(out, number << 3 | 2);
    varint(out, n);
    kl_buf_add(out, data, n);
}

static void text(kl_buf *out, unsigned number, const kl_value *v)
{
    size_t n;
    const char *s = kl_value_strn(v, &n);
    if (s)
        kl__gnostic_bytes(out, number, s, n);
}

static void yaml(kl_buf *out, unsigned number, const kl_value *v)
{
    kl_buf any = KL_BUF_INIT;
    char *json = kl_value_to_json(v);
    kl__gnostic_bytes(&any, 2, json, strlen(json));
    kl__gnostic_bytes(out, number, any.data, any.len);
    kl_free(json);
    kl_buf_fini(&any);
}

static void number(kl_buf *out, unsigned number, const kl_value *v)
{
    double x = kl_value_double(v, 0);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    varint(out, number << 3 | 1);
    for (int i = 0; i < 8; i++)
        kl_buf_putc(out, (char)(bits >> 8 * i));
}

static void whole(kl_buf *out, unsigned number, int64_t x)
{
    varint(out, number << 3 | 0);
    varint(out, (uint64_t)x);
}

/* Writes a scalar. gnostic has an empty message for an object or a list here. */
static void scalar(kl_buf *out, unsigned number_of, const kl_value *v)
{
    kl_buf inner = KL_BUF_INIT;
    kl_type type = kl_value_type(v);
    if (type == KL_BOOL)
        whole(&inner, 2, kl_value_bool(v, false));
    else if (type == KL_STRING)
        text(&inner, 3, v);
    else if (type == KL_INT || type == KL_UINT || type == KL_DOUBLE)
        number(&inner, 1, v);
    kl__gnostic_bytes(out, number_of, inner.data, inner.len);
    kl_buf_fini(&inner);
}

static void one(kl_buf *out, unsigned number, const kl__message *of, const kl_value *v)
{
    kl_buf inner = KL_BUF_INIT;
    kl__gnostic_fill(&inner, of, v);
    kl__gnostic_bytes(out, number, inner.data, inner.len);
    kl_buf_fini(&inner);
}

void kl__gnostic_named(
    kl_buf *out, unsigned number, const char *name, const kl__message *of, const kl_value *v)
{
    kl_buf inner = KL_BUF_INIT;
    kl__gnostic_bytes(&inner, 1, name, strlen(name));
    if (of)
        one(&inner, 2, of, v);
    else
        yaml(&inner, 2, v);
    kl__gnostic_bytes(out, number, inner.data, inner.len);
    kl_buf_fini(&inner);
}

static void field(kl_buf *out, const kl__member *m, const kl_value *v)
{
    kl_type type = kl_value_type(v);
    int64_t x;
    switch (m->how) {
    case TEXT: text(out, m->number, v); break;
    case TEXTS:
        for (size_t i = 0; i < kl_value_len(v); i++)
            text(out, m->number, kl_value_item(v, i));
        break;
    case NUMBER: number(out, m->number, v); break;
    case INTEGER:
        if (kl_value_int(v, &x))
            whole(out, m->number, x);
        break;
    case YES:
        if (type == KL_BOOL)
            whole(out, m->number, kl_value_bool(v, false));
        break;
    case SCALAR: scalar(out, m->number, v); break;
    case AS_YAML: yaml(out, m->number, v); break;
    case EACH_AS_YAML:
        for (size_t i = 0; i < kl_value_len(v); i++)
            yaml(out, m->number, kl_value_item(v, i));
        break;
    case ONE:
        /* a wrapper of a wrapper recurses; the wrapped value is an object except for `type` and booleans */
        if (m->key || type == KL_OBJECT)
            one(out, m->number, m->of, v);
        break;
    case EACH:
        for (size_t i = 0; i < kl_value_len(v); i++)
            one(out, m->number, m->of, kl_value_item(v, i));
        break;
    case NAMED:
        for (size_t i = 0; i < kl_value_len(v); i++) {
            const char *key;
            size_t n;
            const kl_value *x = kl_value_member(v, i, &key, &n);
            kl__gnostic_named(out, m->number, key, m->of, x);
        }
        break;
    }
}

void kl__gnostic_fill(kl_buf *out, const kl__message *of, const kl_value *v)
{
    for (size_t i = 0; i < of->len; i++) {
        const kl__member *m = &of->members[i];
        const char *in = m->in ? kl_value_str(kl_value_get(v, "in")) : NULL;
        const kl_value *x = m->key ? kl_value_get(v, m->key) : v;
        bool is_ref = m->when != KL_ANY && kl_value_get(x, "$ref");
        if (x && (!m->in || (in && !strcmp(in, m->in)))
            && (m->when == KL_ANY || is_ref == (m->when == KL_WITH_REF)))
            field(out, m, x);
    }
    for (size_t i = 0; of->extensions && i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(v, i, &key, &n);
        if (!strncmp(key, "x-", 2))
            kl__gnostic_named(out, of->extensions, key, NULL, x);
    }
}
