/* yaml.c - any bytes as YAML: documents or an error, the same that libyaml alone gives; what was read is
 * written and reads back equal. */
#include <string.h>

#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "yaml/yaml_impl.h"

#define DOCUMENTS_MAX 64

typedef struct seen {
    const kl_value *v[DOCUMENTS_MAX];
    size_t n;
} seen;

static kl_status keep(void *arg, const kl_value *v, kl_err *err)
{
    seen *s = arg;
    (void)err;
    if (s->n == DOCUMENTS_MAX)
        kl_value_unref(v);
    else
        s->v[s->n++] = v;
    return KL_OK;
}

static void drop(seen *s)
{
    for (size_t i = 0; i < s->n; i++)
        kl_value_unref(s->v[i]);
}

typedef struct rest {
    const uint8_t *at;
    size_t left;
} rest;

static kl_status next_piece(void *from, char *piece, size_t room, size_t *got, kl_err *err)
{
    rest *r = from;
    (void)err;
    *got = r->left < 7 ? r->left : room < 7 ? room : 7;
    memcpy(piece, r->at, *got);
    r->at += *got;
    r->left -= *got;
    return KL_OK;
}

/* libyaml looks ahead for bytes that it does not take, as far as its buffer has them. */
static bool is_of_a_byte(const kl_err *err) { return strstr(kl_err_message(err), ": byte ") != NULL; }

/* Reads in parts, from memory or piece by piece, and whole. */
static void is_as_libyaml_reads(const uint8_t *data, size_t size, bool pieces)
{
    kl_err a = KL_ERR_INIT, b = KL_ERR_INIT;
    seen parts = {0}, whole = {0};
    rest r = {data, size};
    const kl_yaml_source source = {.next = next_piece, .from = &r};
    kl__yaml_text text = {.text = {NULL, (const char *)data}, .left = {0, size}};
    kl_status one = pieces ? kl_yaml_each_from("fuzz", &source, keep, &parts, &a)
                           : kl__yaml_parts("fuzz", (const char *)data, size, NULL, keep, &parts, &a);
    kl_status two = kl__yaml_libyaml("fuzz", &text, keep, &whole, &b);
    kl__yaml_forget_anchors(&text);
    CLAIM(one == two);
    CLAIM(is_of_a_byte(&a) || is_of_a_byte(&b) || !strcmp(kl_err_message(&a), kl_err_message(&b)));
    CLAIM(one || parts.n == whole.n);
    for (size_t i = 0; !one && i < parts.n; i++)
        CLAIM(kl_value_equal(parts.v[i], whole.v[i]));
    drop(&parts);
    drop(&whole);
    kl_err_fini(&a);
    kl_err_fini(&b);
}

static kl_status on_doc(void *arg, const kl_value *v, kl_err *err)
{
    (void)arg;
    (void)err;
    const kl_value *again = NULL;
    kl_buf text = KL_BUF_INIT;
    kl_buf_init(&text, 1 << 20); /* aliases written out may be large */
    if (!kl_yaml_encode(v, &text)) {
        CLAIM(!kl_yaml_decode("fuzz", kl_buf_str(&text), text.len, &again, NULL));
        CLAIM(kl_value_equal(v, again));
        kl_value_unref(again);
    }
    kl_buf_fini(&text);
    kl_value_unref(v);
    return KL_OK;
}

/* What an API server reads is written in Go's order, and reads back equal. */
static void as_go(const char *text, size_t n)
{
    const kl_value *v = NULL, *again = NULL;
    kl_err err = KL_ERR_INIT;
    kl_buf repeated = KL_BUF_INIT, out = KL_BUF_INIT;
    kl_buf_init(&out, 1 << 20);
    if (kl_yaml_decode_first(text, n, &repeated, &v, &err))
        CLAIM(*kl_err_message(&err));
    else if (!kl_yaml_encode_sorted(v, &out)) {
        CLAIM(!kl_yaml_decode_first(kl_buf_str(&out), out.len, &repeated, &again, NULL));
        CLAIM(kl_value_equal(v, again));
    }
    kl_value_unref(v);
    kl_value_unref(again);
    kl_buf_fini(&repeated);
    kl_buf_fini(&out);
    kl_err_fini(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kl_err err = KL_ERR_INIT;
    if (kl_yaml_each("fuzz", (const char *)data, size, on_doc, NULL, &err))
        CLAIM(*kl_err_message(&err));
    kl_err_fini(&err);
    as_go((const char *)data, size);
    is_as_libyaml_reads(data, size, true);
    is_as_libyaml_reads(data, size, false);
    size_t nodes, bytes;
    kl_value_memory(&nodes, &bytes);
    CLAIM(!nodes);
    return 0;
}
