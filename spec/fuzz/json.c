/* json.c - any bytes: they decode or they are refused with a message; what was decoded says itself again. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "model/value.h"

/* Decodes text that must be good, and encodes it again. The value is the caller's. */
static const kl_value *round_trip(const kl_buf *text, kl_buf *again)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    CLAIM(kl_value_decode(text->data, text->len, &v, &err) == KL_OK);
    kl_buf_init(again, 0);
    CLAIM(kl_value_encode(v, again) == KL_OK);
    return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    if (kl_value_decode((const char *)data, size, &v, &err)) {
        CLAIM(*kl_err_message(&err));
        kl_err_fini(&err);
        return 0;
    }
    kl_buf once, twice, thrice;
    kl_buf_init(&once, 0);
    CLAIM(kl_value_encode(v, &once) == KL_OK);
    const kl_value *second = round_trip(&once, &twice), *third = round_trip(&twice, &thrice);
    CLAIM(kl_value_equal(second, third));
    /* Doubles are written as Go does: -0.0 is "-0" and 1844674407084070.8e2 a row of digits, and both read as integers. */
    if (!memchr(data, '.', size) && !memchr(data, 'e', size) && !memchr(data, 'E', size))
        CLAIM(kl_value_equal(v, second));
    CLAIM(twice.len == thrice.len && !memcmp(twice.data, thrice.data, twice.len));
    kl_buf_fini(&once);
    kl_buf_fini(&twice);
    kl_buf_fini(&thrice);
    kl_value_unref(v);
    kl_value_unref(second);
    kl_value_unref(third);
    return 0;
}
