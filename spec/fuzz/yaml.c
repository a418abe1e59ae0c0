/* yaml.c - any bytes as YAML: documents or an error; what was read is written and reads back equal. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "value/yaml.h"

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
    size_t nodes, bytes;
    kl_value_memory(&nodes, &bytes);
    CLAIM(!nodes);
    return 0;
}
