/* value_fuzz.c - any bytes: decode, and what was decoded survives encoding; cJSON reads the same. */
#include <stdint.h>
#include <stdlib.h>
#include "base/mem.h"
#include "model/json.h"
#include "model/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const kl_value *v = NULL, *again = NULL;
    kl_err err = KL_ERR_INIT;
    must(kl_json_compare((const char *)data, size) != KL_JSON_DIFFERENT);
    if (kl_value_decode((const char *)data, size, &v, &err)) {
        must(err.status == KL_ESYNTAX && err.message);
        kl_err_fini(&err);
        return 0;
    }
    kl_buf text = KL_BUF_INIT;
    must(!kl_value_encode(v, &text));
    must(!kl_value_decode(kl_buf_str(&text), text.len, &again, NULL));
    must(kl_value_equal(v, again));
    kl_buf_clear(&text);
    must(!kl_value_encode_pretty(v, &text));
    kl_value_unref(again);
    must(!kl_value_decode(kl_buf_str(&text), text.len, &again, NULL));
    must(kl_value_equal(v, again));
    kl_buf_fini(&text);
    kl_value_unref(v);
    kl_value_unref(again);
    size_t nodes, bytes;
    kl_value_memory(&nodes, &bytes);
    must(!nodes);
    return 0;
}
