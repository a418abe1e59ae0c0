/* json.c - the only door to cJSON: conversions both ways, and an independent reading of what our decoder
 * read. */
#include "value/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"

#define CJSON_NUMBER_MAX 63 /* cJSON copies numbers into 64 bytes and drops the rest */

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
    case KL_INT:
    case KL_UINT:
    case KL_DOUBLE: x = kl_value_double(v, NAN); return cJSON_IsNumber(c) && c->valuedouble == x;
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

/* --- conversions -------------------------------------------------------------------------- */

/* The place of a conversion: a chain on the C stack, which KL_CJSON_DEPTH_MAX bounds. */
typedef struct place {
    const struct place *above;
    const char *key; /* NULL: an item, or the root */
    size_t index;
    int depth;
} place;

static void write_place(const place *p, kl_buf *out)
{
    if (!p->above)
        return;
    write_place(p->above, out);
    if (p->key)
        kl_buf_printf(out, "%s%s", out->len ? "." : "", p->key);
    else
        kl_buf_printf(out, "[%zu]", p->index + 1);
}

static kl_status refuse(const place *p, const char *why, kl_err *err)
{
    kl_buf where = KL_BUF_INIT;
    write_place(p, &where);
    kl_status st = kl_fail(err, KL_EINVAL, "%s%s%s", kl_buf_str(&where), where.len ? ": " : "", why);
    kl_buf_fini(&where);
    return st;
}

static const place *below(const place *p, place *out, const char *key, size_t index)
{
    *out = (place){.above = p, .key = key, .index = index, .depth = p->depth + 1};
    return out;
}

/* Doubles hold every whole number up to here. */
#define EXACT_MAX ((int64_t)1 << 53)

static cJSON *number_to(const kl_value *v)
{
    char digits[32];
    if (kl_value_type(v) == KL_DOUBLE)
        return cJSON_CreateNumber(kl_value_double(v, 0));
    int64_t i = 0;
    bool is_int = kl_value_int(v, &i);
    if (is_int && i >= -EXACT_MAX && i <= EXACT_MAX)
        return cJSON_CreateNumber((double)i);
    if (is_int)
        snprintf(digits, sizeof digits, "%" PRId64, i);
    else
        snprintf(digits, sizeof digits, "%" PRIu64, kl_value_uint(v));
    return cJSON_CreateRaw(digits);
}

static cJSON *to(const kl_value *v, const place *p, kl_err *err);

/* Takes child, which may be NULL: then it has failed already. */
static bool adopt(cJSON *parent, const char *key, cJSON *child)
{
    return child && (key ? cJSON_AddItemToObject(parent, key, child) : cJSON_AddItemToArray(parent, child));
}

static cJSON *container_to(const kl_value *v, const place *p, kl_err *err)
{
    bool object = kl_value_type(v) == KL_OBJECT;
    cJSON *c = object ? cJSON_CreateObject() : cJSON_CreateArray();
    bool good = c != NULL;
    for (size_t i = 0; good && i < kl_value_len(v); i++) {
        const char *key = NULL;
        size_t len = 0;
        place at;
        const kl_value *m = object ? kl_value_member(v, i, &key, &len) : kl_value_item(v, i);
        below(p, &at, key, i);
        good = !key || strlen(key) == len;
        if (!good)
            (void)refuse(&at, "cJSON cannot hold a key with a NUL inside", err);
        else
            good = adopt(c, key, to(m, &at, err));
    }
    if (!good)
        cJSON_Delete(c);
    return good ? c : NULL;
}

static cJSON *to(const kl_value *v, const place *p, kl_err *err)
{
    if (p->depth > KL_CJSON_DEPTH_MAX) {
        (void)refuse(p, "the value is too deep for cJSON", err);
        return NULL;
    }
    switch (kl_value_type(v)) {
    case KL_NULL: return cJSON_CreateNull();
    case KL_BOOL: return cJSON_CreateBool(kl_value_bool(v, false));
    case KL_INT:
    case KL_UINT:
    case KL_DOUBLE: return number_to(v);
    case KL_STRING:
        if (strlen(kl_value_str(v)) == kl_value_len(v))
            return cJSON_CreateString(kl_value_str(v));
        (void)refuse(p, "cJSON cannot hold a string with a NUL inside", err);
        return NULL;
    case KL_ARRAY:
    case KL_OBJECT: return container_to(v, p, err);
    }
    return NULL;
}

kl_status kl_value_to_cjson(const kl_value *v, cJSON **out, kl_err *err)
{
    *out = to(v, &(place){.depth = 0}, err);
    return *out ? KL_OK : KL_EINVAL;
}

static kl_status from(const cJSON *c, kl_builder *b, const place *p, kl_err *err);

static kl_status object_from(const cJSON *c, kl_builder *b, const place *p, kl_err *err)
{
    kl_map *seen = kl_map_new();
    kl_status st = KL_OK;
    kl_build_object(b);
    for (const cJSON *m = c->child; m && !st; m = m->next) {
        place at;
        below(p, &at, m->string, 0);
        if (!m->string || kl_map_get(seen, m->string)) {
            st = refuse(&at, m->string ? "the key appears twice" : "a member has no key", err);
        } else {
            kl_map_set(seen, m->string, seen);
            kl_build_key(b, m->string);
            st = from(m, b, &at, err);
        }
    }
    kl_build_end(b);
    kl_map_free(seen, NULL);
    return st;
}

static kl_status array_from(const cJSON *c, kl_builder *b, const place *p, kl_err *err)
{
    kl_status st = KL_OK;
    size_t i = 0;
    kl_build_array(b);
    for (const cJSON *m = c->child; m && !st; m = m->next) {
        place at;
        st = from(m, b, below(p, &at, NULL, i++), err);
    }
    kl_build_end(b);
    return st;
}

static kl_status raw_from(const cJSON *c, kl_builder *b, const place *p, kl_err *err)
{
    const kl_value *v = NULL;
    if (!c->valuestring || kl_value_decode(c->valuestring, strlen(c->valuestring), &v, NULL))
        return refuse(p, "a cJSON_Raw item is not JSON", err);
    kl_build_value(b, v);
    kl_value_unref(v);
    return KL_OK;
}

static kl_status number_from(double x, kl_builder *b, const place *p, kl_err *err)
{
    if (!isfinite(x))
        return refuse(p, "JSON has no NaN and no infinity", err);
    if (x == floor(x) && fabs(x) <= (double)EXACT_MAX)
        kl_build_int(b, (int64_t)x);
    else
        kl_build_double(b, x);
    return KL_OK;
}

static kl_status from(const cJSON *c, kl_builder *b, const place *p, kl_err *err)
{
    if (p->depth > KL_CJSON_DEPTH_MAX)
        return refuse(p, "the tree is too deep", err);
    if (cJSON_IsObject(c))
        return object_from(c, b, p, err);
    if (cJSON_IsArray(c))
        return array_from(c, b, p, err);
    if (cJSON_IsRaw(c))
        return raw_from(c, b, p, err);
    if (cJSON_IsNumber(c))
        return number_from(c->valuedouble, b, p, err);
    if (cJSON_IsString(c) && c->valuestring)
        kl_build_str(b, c->valuestring);
    else if (cJSON_IsBool(c))
        kl_build_bool(b, cJSON_IsTrue(c));
    else if (cJSON_IsNull(c))
        kl_build_null(b);
    else
        return refuse(p, "the item is not valid", err);
    return KL_OK;
}

kl_status kl_value_from_cjson(const cJSON *tree, const kl_value **out, kl_err *err)
{
    kl_builder *b = kl_builder_new();
    kl_status st = from(tree, b, &(place){.depth = 0}, err);
    if (st)
        kl_builder_free(b);
    else
        *out = kl_builder_done(b);
    return st;
}
