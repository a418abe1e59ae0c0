/* json.c - the only door to cJSON: an independent reading of what our decoder read. For tests and fuzzing. */
#include "value/json.h"

#include <math.h>
#include <string.h>
#include <cjson/cJSON.h>
#include "value/value.h"

#define CJSON_NUMBER_MAX 63             /* cJSON copies numbers into 64 bytes and drops the rest */

/* The longest run of number characters, and whether an escaped NUL occurs. */
static bool comparable(const char *text, size_t n)
{
    size_t run = 0;
    for (size_t i = 0; i < n; i++) {
        run = memchr("+-.eE0123456789", text[i], 15) ? run + 1 : 0;
        if (run > CJSON_NUMBER_MAX)
            return false;
    }
    return !memmem(text, n, "\\u0000", 6);
}

static bool same(const kl_value *v, const cJSON *c)
{
    double x;
    switch (kl_value_type(v)) {
    case KL_NULL: return cJSON_IsNull(c);
    case KL_BOOL: return kl_value_bool(v, false) ? cJSON_IsTrue(c) : cJSON_IsFalse(c);
    case KL_STRING: return cJSON_IsString(c) && !strcmp(c->valuestring, kl_value_str(v));
    case KL_INT: case KL_UINT: case KL_DOUBLE:
        x = kl_value_double(v, NAN);
        return cJSON_IsNumber(c) && c->valuedouble == x;
    case KL_ARRAY: {
        size_t i = 0;
        if (!cJSON_IsArray(c))
            return false;
        for (const cJSON *item = c->child; item; item = item->next)
            if (i == kl_value_len(v) || !same(kl_value_item(v, i++), item))
                return false;
        return i == kl_value_len(v);
    }
    case KL_OBJECT: {
        size_t i = 0;
        const char *key;
        if (!cJSON_IsObject(c))
            return false;
        for (const cJSON *item = c->child; item; item = item->next) {
            const kl_value *m = kl_value_member(v, i++, &key, NULL);
            if (!m || strcmp(key, item->string) || !same(m, item))
                return false;
        }
        return i == kl_value_len(v);
    }
    }
    return false;
}

kl_json_verdict kl_json_compare(const char *text, size_t n)
{
    const kl_value *v = NULL;
    if (kl_value_decode(text, n, &v, NULL))
        return KL_JSON_REFUSED;
    kl_json_verdict verdict = KL_JSON_INCOMPARABLE;
    if (comparable(text, n)) {
        cJSON *c = cJSON_ParseWithLength(text, n);
        verdict = c && same(v, c) ? KL_JSON_SAME : KL_JSON_DIFFERENT;
        cJSON_Delete(c);
    }
    kl_value_unref(v);
    return verdict;
}
