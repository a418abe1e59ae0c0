/* yaml.c - any bytes as YAML: documents or an error; what was read is written and reads back equal; what is
 * read without libyaml is what libyaml reads. */
#include <string.h>

#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "value/yaml.h"
#include "value/yaml_block.h"

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

typedef struct rest {
    const char *p;
    size_t n;
} rest;

static kl_status next_piece(void *from, char *piece, size_t room, size_t *got, kl_err *err)
{
    rest *r = from;
    (void)err;
    *got = r->n < room ? r->n : room;
    if (*got)
        memcpy(piece, r->p, *got);
    r->p += *got;
    r->n -= *got;
    return KL_OK;
}

static kl_status take(void *arg, const kl_value *v, kl_err *err)
{
    (void)err;
    kl__stack_push(arg, v);
    return KL_OK;
}

static void compare(const char *text, size_t n)
{
    kl__stack ours = {0}, theirs = {0};
    if (kl__yaml_block(text, n, &ours)) {
        rest r = {text, n};
        CLAIM(!kl_yaml_each_from("fuzz", &(kl_yaml_source){next_piece, &r}, take, &theirs, NULL));
        CLAIM(ours.len == theirs.len);
        for (size_t i = 0; i < ours.len; i++)
            CLAIM(kl_value_equal(ours.v[i], theirs.v[i]));
    }
    kl__stack_fini(&ours);
    kl__stack_fini(&theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kl_err err = KL_ERR_INIT;
    if (kl_yaml_each("fuzz", (const char *)data, size, on_doc, NULL, &err))
        CLAIM(*kl_err_message(&err));
    kl_err_fini(&err);
    compare((const char *)data, size);
    size_t nodes, bytes;
    kl_value_memory(&nodes, &bytes);
    CLAIM(!nodes);
    return 0;
}
