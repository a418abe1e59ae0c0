/* limits.c - see apiserver/pkg/server/config.go (requests), pkg/apis/core/validation (ConfigMaps, Secrets)
 * and apimachinery's api/validation/objectmeta.go (annotations). etcd's own limit, 1.5 MiB for an object,
 * is not kept. */
#include "schema/limits.h"

#include <string.h>

#define REQUEST_MAX (3u << 20)
#define DATA_MAX (1u << 20)
#define ANNOTATIONS_MAX (256u << 10)

kl_status kl__limits_body(size_t n, kl_err *err)
{
    return n > REQUEST_MAX ? kl__api_fail(
               err, 413, "RequestEntityTooLarge", NULL, "Request entity too large: limit is %u", REQUEST_MAX)
                           : KL_OK;
}

static size_t decoded(const char *s, size_t n)
{
    size_t padding = n > 1 && s[n - 2] == '=' ? 2 : n && s[n - 1] == '=';
    return n / 4 * 3 - (n ? padding : 0);
}

/* The bytes of a map's texts, and of its keys where these count, too. */
static size_t bytes_of(const kl_value *map, bool keys, bool base64)
{
    size_t sum = 0;
    for (size_t i = 0; i < kl_value_len(map); i++) {
        const char *key, *text;
        size_t nkey, n = 0;
        text = kl_value_strn(kl_value_member(map, i, &key, &nkey), &n);
        sum += (keys ? nkey : 0) + (!text ? 0 : base64 ? decoded(text, n) : n);
    }
    return sum;
}

static void check(kl__causes *causes, const char *field, size_t bytes, unsigned most)
{
    if (bytes > most)
        kl__cause_add(causes, "FieldValueTooLong", field, "Too long: may not be more than %u bytes", most);
}

void kl__limits_annotations(const char *field, const kl_value *annotations, kl__causes *causes)
{
    check(causes, field, bytes_of(annotations, true, false), ANNOTATIONS_MAX);
}

void kl__limits_validate(const kl__kind *k, const kl_value *o, kl__causes *causes)
{
    const kl_value *data = kl_value_get(o, "data");
    if (*k->group)
        return;
    if (!strcmp(k->plural, "configmaps"))
        check(causes, "[]",
            bytes_of(data, false, false) + bytes_of(kl_value_get(o, "binaryData"), false, true), DATA_MAX);
    else if (!strcmp(k->plural, "secrets"))
        check(causes, "data", bytes_of(data, false, true), DATA_MAX);
}
