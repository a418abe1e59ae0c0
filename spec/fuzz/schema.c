/* schema.c - schemas from anywhere: the first byte says what the rest is.
 *   even: bytes from a disk. They are refused, or hold together: every check of a value ends, and what it
 *   makes fits.
 *   odd: an OpenAPI document and, behind a zero byte, a value. A schema says itself again byte by byte; a
 *   checked value passes again. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "model/schema.h"

static const char sample[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"K\",\"metadata\":{\"labels\":{\"a\":{}},\"finalizers\":{}},\"spec\":{"
    "\"n\":1.5,\"l\":[{},[1,{\"x\":null}]],\"\":0,\"$patch\":true}}";

static const kl_value *decode(const char *text, size_t n)
{
    const kl_value *v = NULL;
    return kl_value_decode(text, n, &v, NULL) ? NULL : v;
}

/* Strict and lenient, twice: the second time nothing is left to do. */
static void check(const kl_schema *s, const kl_value *v)
{
    const kl_value *out, *again;
    kl_err err = KL_ERR_INIT;
    for (int use = 0; use < 2 && v; use++) {
        out = again = NULL;
        kl_schema_question q = {
            .group = "", .version = "v1", .kind = "K", .use = use ? KL_SCHEMA_PATCH : KL_SCHEMA_OBJECT};
        kl_status st = kl_schema_check(s, &q, v, &out, NULL);
        CLAIM(st == KL_OK || st == KL_ENOTFOUND);
        if (st)
            continue;
        CLAIM(kl_schema_check(s, &q, out, &again, NULL) == KL_OK && kl_value_equal(out, again));
        kl_value_unref(again);
        kl_value_unref(out);
        out = NULL;
        q.strict = true;
        st = kl_schema_check(s, &q, v, &out, &err);
        CLAIM(st ? st == KL_EINVAL && *kl_err_message(&err) && !out : out != NULL);
        kl_value_unref(out);
        kl_err_fini(&err);
    }
}

static void loaded(const char *bytes, size_t n, const kl_value *v)
{
    kl_schema *s = NULL;
    if (kl_schema_load(bytes, n, &s, NULL))
        return;
    (void)kl_schema_has(s, "apps", "v1", "Deployment");
    check(s, v);
    kl_schema_unref(s);
}

static void read(const char *text, size_t n, const kl_value *v)
{
    const kl_value *document = decode(text, n);
    kl_schema *s = NULL, *again = NULL;
    if (document && !kl_schema_read(document, &s, NULL)) {
        size_t len, len2;
        const void *bytes = kl_schema_bytes(s, &len);
        CLAIM(kl_schema_load(bytes, len, &again, NULL) == KL_OK);
        CLAIM(!memcmp(kl_schema_bytes(again, &len2), bytes, len) && len2 == len);
        check(s, v);
    }
    kl_schema_unref(again);
    kl_schema_unref(s);
    kl_value_unref(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const char *text = (const char *)data + 1, *zero = memchr(text, 0, size - 1);
    if (data[0] % 2) {
        size_t n = zero ? (size_t)(zero - text) : size - 1;
        const kl_value *v = zero ? decode(zero + 1, size - 2 - n) : decode(sample, sizeof sample - 1);
        read(text, n, v);
        kl_value_unref(v);
    } else {
        const kl_value *v = decode(sample, sizeof sample - 1);
        loaded(text, size - 1, v);
        kl_value_unref(v);
    }
    return 0;
}
