/* data.c - ConfigMaps and Secrets: keys, required keys of a type, immutability. */
#include "check/forms.h"
#include "builtin/kinds.h"

#include <string.h>

#include "base/base64.h"
#include "base/mem.h"

static void check_keys(kl__causes *c, const kl_value *o, const char *which, const kl_value *binary)
{
    const kl_value *map = kl_value_get(o, which);
    const kl__place *in = KL_IN(NULL, which);
    for (size_t i = 0; i < kl_value_len(map); i++) {
        const char *key;
        size_t n;
        kl_value_member(map, i, &key, &n);
        kl__check_form(c, KL_KEYED(in, key, n), key, KL_CONFIG_KEY);
        if (kl_value_getn(binary, key, n))
            kl__say_invalid_text(c, KL_KEYED(in, key, n), key, "duplicate of key present in binaryData");
    }
}

static bool moved(const kl__write *w, const char *member)
{
    return !kl_value_equal(kl_value_get(w->old, member), kl_value_get(w->o, member));
}

static void check_immutable(const kl__write *w)
{
    static const char *const members[] = {"data", "binaryData"};
    static const char why[] = "field is immutable when `immutable` is set";
    if (!kl__true(w->old, "immutable"))
        return;
    if (!kl__true(w->o, "immutable"))
        kl__say_forbidden(w->causes, KL_IN(NULL, "immutable"), why);
    for (size_t i = 0; i < 2; i++)
        if (moved(w, members[i]))
            kl__say_forbidden(w->causes, KL_IN(NULL, members[i]), why);
}

/* Docker's file is a JSON object. The message is that of Go's decoder for the first mistake. */
static void check_json(kl__causes *c, const kl_value *data, const char *key)
{
    const kl_value *coded = kl_value_get(data, key), *v = NULL;
    const kl__place *at = KL_KEYED(KL_IN(NULL, "data"), key, strlen(key));
    size_t n;
    const char *text = kl_value_strn(coded, &n);
    kl_buf plain = KL_BUF_INIT;
    if (!text || kl_base64_decode(text, n, &plain, NULL) || !plain.len)
        kl__say_invalid_text(c, at, "<secret contents redacted>", "unexpected end of JSON input");
    else if (kl_value_decode_last(plain.data, plain.len, &v, NULL)) {
        unsigned char first = (unsigned char)plain.data[0];
        if (strchr("{[\"-0123456789tfn \t\n\r", first) && first)
            kl__say_invalid_text(c, at, "<secret contents redacted>", "unexpected end of JSON input");
        else
            kl__say_invalid_text(c, at, "<secret contents redacted>",
                first > 0x20 && first < 0x7f ? "invalid character '%c' looking for beginning of value"
                                             : "invalid character '\\x%02x' looking for beginning of value",
                first);
    } else if (kl_value_type(v) != KL_OBJECT && kl_value_type(v) != KL_NULL)
        kl__say_invalid_text(c, at, "<secret contents redacted>",
            "json: cannot unmarshal %s into Go value of type map[string]interface {}",
            kl_value_type(v) == KL_ARRAY        ? "array"
                : kl_value_type(v) == KL_STRING ? "string"
                : kl_value_type(v) == KL_BOOL   ? "bool"
                                                : "number");
    kl_value_unref(v);
    kl_buf_fini(&plain);
}

/* Required keys of a Secret's type. */
static void check_type(const kl__write *w)
{
    static const struct {
        const char *type, *keys[2];
    } needs[] = {
        {"kubernetes.io/dockercfg", {".dockercfg"}},
        {"kubernetes.io/dockerconfigjson", {".dockerconfigjson"}},
        {"kubernetes.io/ssh-auth", {"ssh-privatekey"}},
        {"kubernetes.io/tls", {"tls.crt", "tls.key"}},
    };
    static const char account[] = "kubernetes.io/service-account.name";
    const char *type = kl__text(w->o, "type");
    const kl_value *data = kl_value_get(w->o, "data");
    const kl__place *in = KL_IN(NULL, "data");
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        for (size_t k = 0; k < 2 && needs[i].keys[k] && !strcmp(type, needs[i].type); k++) {
            const char *key = needs[i].keys[k];
            if (!kl_value_get(data, key))
                kl__say_required(w->causes, KL_KEYED(in, key, strlen(key)), "");
            else if (*key == '.')
                check_json(w->causes, data, key);
        }
    if (!strcmp(type, "kubernetes.io/basic-auth") && !kl_value_get(data, "username")
        && !kl_value_get(data, "password")) {
        kl__say_required(w->causes, KL_KEYED(in, "username", 8), "");
        kl__say_required(w->causes, KL_KEYED(in, "password", 8), "");
    }
    if (!strcmp(type, "kubernetes.io/service-account-token")
        && !*kl__text(kl_value_at(w->o, "metadata", "annotations", NULL), account))
        kl__say_required(w->causes,
            KL_KEYED(KL_IN(KL_IN(NULL, "metadata"), "annotations"), account, sizeof account - 1), "");
}

void kl__check_data(const kl__write *w)
{
    bool secret = !strcmp(w->kind->plural, "secrets");
    if (w->old && secret && moved(w, "type"))
        kl__say_invalid(w->causes, KL_IN(NULL, "type"), kl_value_get(w->o, "type"), "field is immutable");
    if (w->old)
        check_immutable(w);
    check_keys(w->causes, w->o, "data", kl_value_get(w->o, "binaryData"));
    check_keys(w->causes, w->o, "binaryData", NULL);
    if (secret)
        check_type(w);
}
