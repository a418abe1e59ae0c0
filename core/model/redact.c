/* redact.c - which members are secret, and their replacements. */
#include "model/redact.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/sha1.h"

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"
/* Half of SHA-1: collisions cannot be searched without the key. */
#define DIGEST_BYTES 10
#define STAND_IN "redacted-"
#define STAND_IN_BASE64 "cmVkYWN0ZWQt"

void kl_redaction_init(kl_redaction *r)
{
    if (getrandom(r->key, sizeof r->key, 0) != (ssize_t)sizeof r->key)
        kl_mem_die("getrandom");
}

bool kl_redacted(const char *text)
{
    size_t n = strlen(text), plain = sizeof STAND_IN - 1 + 2 * DIGEST_BYTES;
    return (n == plain && !strncmp(text, STAND_IN, sizeof STAND_IN - 1))
        || (n == (plain + 2) / 3 * 4 && !strncmp(text, STAND_IN_BASE64, sizeof STAND_IN_BASE64 - 1));
}

static char *stand_in(const kl_redaction *r, const char *text, size_t n)
{
    unsigned char digest[20];
    char hex[2 * DIGEST_BYTES + 1];
    kl_buf b = KL_BUF_INIT;
    kl_buf_add(&b, r->key, sizeof r->key);
    kl_buf_add(&b, text, n);
    kl_sha1(b.data, b.len, digest);
    kl_buf_fini(&b);
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return kl_sprintf(STAND_IN "%s", hex);
}

static const kl_value *taken(char *text)
{
    const kl_value *v = kl_value_of_str(text);
    kl_free(text);
    return v;
}

/* The digest of a text, or of the bytes in its base64. */
static const kl_value *redact_text(const kl_redaction *r, const kl_value *v, bool encoded)
{
    size_t n;
    const char *s = kl_value_strn(v, &n);
    kl_buf plain = KL_BUF_INIT;
    if (encoded && !kl_base64_decode(s, n, &plain, NULL)) {
        char *text = stand_in(r, kl_buf_str(&plain), plain.len),
             *base64 = kl_base64_encode(text, strlen(text));
        kl_free(text);
        kl_buf_fini(&plain);
        return taken(base64);
    }
    kl_buf_fini(&plain);
    return taken(stand_in(r, s, n));
}

/* Members whose text is a secret in most APIs. */
static bool sounds_secret(const char *name)
{
    static const char *const words[] = {"password", "passwd", "passphrase", "secret", "token", "apikey",
        "api_key", "api-key", "accesskey", "access_key", "privatekey", "private_key", "credential",
        "authorization", "signature", "cookie", "assertion", NULL};
    for (const char *const *w = words; *w; w++)
        if (strcasestr(name, *w))
            return true;
    return false;
}

/* What a walk replaces. */
typedef enum reach {
    NAMED_TEXTS, /* those texts whose name sounds secret, and what is below such a name */
    ALL_TEXTS,
    ALL_VALUES, /* also types that no Secret may have. A null stays: in a patch, it deletes */
    ALL_BASE64, /* likewise; texts are base64 */
} reach;

/* Redacts v at any depth. */
static const kl_value *redact_deep(const kl_redaction *r, const kl_value *v, reach all)
{
    kl_type t = kl_value_type(v);
    if (t == KL_STRING && all > NAMED_TEXTS)
        return redact_text(r, v, all == ALL_BASE64);
    if (t != KL_OBJECT && t != KL_ARRAY) {
        if (t == KL_STRING || t == KL_NULL || all < ALL_VALUES)
            return kl_value_ref(v);
        char *text = kl_value_to_json(v);
        const kl_value *number = taken(stand_in(r, text, strlen(text)));
        kl_free(text);
        return number;
    }
    kl_builder *b = kl_builder_new();
    if (t == KL_OBJECT)
        kl_build_object(b);
    else
        kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key = NULL;
        size_t n = 0;
        const kl_value *x = t == KL_OBJECT ? kl_value_member(v, i, &key, &n) : kl_value_item(v, i);
        bool named = all == NAMED_TEXTS && key && sounds_secret(key);
        const kl_value *y = redact_deep(r, x, named ? ALL_TEXTS : all);
        if (key)
            kl_build_keyn(b, key, n);
        kl_build_value(b, y);
        kl_value_unref(y);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* Whether a member of a Secret is shown; a patch has directives beside them ("$patch"). All others are
 * secret, so that a mistyped name ("dta") shows nothing. */
static bool is_open(const char *member, size_t n)
{
    static const char *const names[] = {"apiVersion", "kind", "metadata", "type", "immutable", NULL};
    for (const char *const *name = names; *name; name++)
        if (strlen(*name) == n && !memcmp(*name, member, n))
            return true;
    return n && *member == '$';
}

static reach reach_of(const char *member, size_t n)
{
    return n == 4 && !memcmp(member, "data", 4) ? ALL_BASE64 : ALL_VALUES;
}

/* Where `kubectl apply` keeps the whole Secret again. */
static const char *const APPLIED_PATH[] = {"metadata", "annotations", LAST_APPLIED, NULL};

/* v with the value at a path redacted, if there is one. */
static const kl_value *redact_below(const kl_redaction *r, const kl_value *v, const char *const *path)
{
    if (!*path)
        return redact_deep(r, v, ALL_VALUES);
    const kl_value *x = kl_value_get(v, *path);
    if (!x)
        return kl_value_ref(v);
    const kl_value *y = redact_below(r, x, path + 1), *out = kl_value_with(v, *path, y);
    kl_value_unref(y);
    return out;
}

static const kl_value *redact_secret(const kl_redaction *r, const kl_value *v)
{
    if (kl_value_type(v) != KL_OBJECT)
        return redact_deep(r, v, ALL_VALUES);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(v, i, &key, &n);
        const kl_value *y = is_open(key, n) ? kl_value_ref(x) : redact_deep(r, x, reach_of(key, n));
        kl_build_keyn(b, key, n);
        kl_build_value(b, y);
        kl_value_unref(y);
    }
    kl_build_end(b);
    const kl_value *open = kl_builder_done(b), *out = redact_below(r, open, APPLIED_PATH);
    kl_value_unref(open);
    return out;
}

static const kl_value *redact_token(const kl_redaction *r, const kl_value *v)
{
    const kl_value *token = kl_value_at(v, "status", "token", NULL);
    if (kl_value_type(token) != KL_STRING)
        return kl_value_ref(v);
    const kl_value *y = redact_text(r, token, false), *out = kl_value_with_at(v, y, "status", "token", NULL);
    kl_value_unref(y);
    return out;
}

/* --- JSON patches ------------------------------------------------------------------------- */

/* Redacts the value at a path of a Secret: the whole, a member or what is below one, an annotation. */
static const kl_value *redact_at(const kl_redaction *r, const char *path, const kl_value *x)
{
    size_t n = *path ? strcspn(path + 1, "/") : 0;
    if (!*path)
        return redact_secret(r, x);
    if (!is_open(path + 1, n))
        return redact_deep(r, x, reach_of(path + 1, n));
    if (!strncmp(path, "/metadata/annotations/", 22) && strstr(path, "last-applied-configuration"))
        return redact_deep(r, x, ALL_VALUES);
    if (!strcmp(path, "/metadata"))
        return redact_below(r, x, APPLIED_PATH + 1);
    if (!strcmp(path, "/metadata/annotations"))
        return redact_below(r, x, APPLIED_PATH + 2);
    return kl_value_ref(x);
}

static const kl_value *redact_step(const kl_redaction *r, const kl_value *step)
{
    const char *path = kl_value_str_at(step, "path", NULL);
    const kl_value *x = kl_value_get(step, "value");
    if (!path || !x)
        return kl_value_ref(step);
    const kl_value *y = redact_at(r, path, x), *out = kl_value_with(step, "value", y);
    kl_value_unref(y);
    return out;
}

/* --- which -------------------------------------------------------------------------------- */

static bool is_one_of(const char *s, const char *const *words)
{
    for (; s && *words; words++)
        if (!strcasecmp(s, *words))
            return true;
    return false;
}

bool kl_redacts_kind(const char *kind)
{
    static const char *const names[] = {"v1/Secret", "v1/Secrets", "Secret", "Secrets", "secrets.v1.", NULL};
    return is_one_of(kind, names);
}

static const kl_value *redact_each(const kl_redaction *r, const char *kind, const kl_value *list,
    const kl_value *(*step)(const kl_redaction *, const kl_value *))
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *x = kl_value_item(list, i), *y = step ? step(r, x) : kl_redact(r, kind, x);
        kl_build_value(b, y);
        kl_value_unref(y);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* --- requests to other servers ------------------------------------------------------------ */

/* Headers that do not identify the client. */
static bool is_harmless(const char *name)
{
    static const char *const names[] = {"accept", "accept-language", "cache-control", "content-length",
        "content-type", "date", "etag", "if-match", "if-none-match", "last-modified", "retry-after", NULL};
    for (const char *const *n = names; *n; n++)
        if (!strcasecmp(*n, name))
            return true;
    return false;
}

static const kl_value *redact_headers(const kl_redaction *r, const kl_value *headers)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(headers); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(headers, i, &key, &n),
                       *y = redact_deep(r, x, is_harmless(key) ? NAMED_TEXTS : ALL_TEXTS);
        kl_build_keyn(b, key, n);
        kl_build_value(b, y);
        kl_value_unref(y);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* A text may be JSON; any other text of a request counts as secret. */
static const kl_value *redact_body(const kl_redaction *r, const kl_value *text, bool asked)
{
    size_t n;
    const char *s = kl_value_strn(text, &n);
    const kl_value *json = NULL;
    if (kl_value_decode_last(s ? s : "", n, &json, NULL))
        return asked ? redact_text(r, text, false) : kl_value_ref(text);
    const kl_value *shown = redact_deep(r, json, NAMED_TEXTS);
    kl_buf b = KL_BUF_INIT;
    kl_value_encode(shown, &b);
    const kl_value *out = kl_value_equal(shown, json) ? kl_value_ref(text) : kl_value_of_strn(b.data, b.len);
    kl_buf_fini(&b);
    kl_value_unref(shown);
    kl_value_unref(json);
    return out;
}

/* Redacts the body of a request (core/client/web.h), or its answer. */
static const kl_value *redact_web(const kl_redaction *r, const kl_value *v, bool asked)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(v, i, &key, &n), *y;
        if (!strcmp(key, "headers"))
            y = redact_headers(r, x);
        else if (!strcmp(key, "text") || !strcmp(key, "body"))
            y = redact_body(r, x, asked);
        else
            y = redact_deep(r, x,
                !strcmp(key, "tls") || !strcmp(key, "url") || (asked && !strcmp(key, "base64"))
                    ? ALL_TEXTS
                    : NAMED_TEXTS);
        kl_build_keyn(b, key, n);
        kl_build_value(b, y);
        kl_value_unref(y);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* Whether v is the answer of another server: the `status` of API objects is no number. */
static bool is_web_answer(const kl_value *v)
{
    return kl_value_type(kl_value_get(v, "status")) == KL_INT
        && kl_value_type(kl_value_get(v, "headers")) == KL_OBJECT && !kl_value_get(v, "apiVersion");
}

const kl_value *kl_redact_text(const kl_redaction *r, const char *text)
{
    return taken(stand_in(r, text, strlen(text)));
}

const kl_value *kl_redact(const kl_redaction *r, const char *kind, const kl_value *v)
{
    if (kind && !strcmp(kind, "ctx.http"))
        return redact_web(r, v, true);
    if (is_web_answer(v))
        return redact_web(r, v, false);
    const char *says = kl_value_str_at(v, "kind", NULL), *api = kl_value_str_at(v, "apiVersion", NULL);
    const kl_value *items = kl_value_get(v, "items");
    if (kl_value_type(v) == KL_ARRAY)
        return kl_redacts_kind(kind) ? redact_each(r, kind, v, redact_step) : kl_value_ref(v);
    if (kl_value_type(items) == KL_ARRAY && says && strlen(says) >= 4
        && !strcmp(says + strlen(says) - 4, "List")) {
        const kl_value *y = redact_each(r, !strcmp(says, "SecretList") ? "v1/Secret" : kind, items, NULL),
                       *out = kl_value_with(v, "items", y);
        kl_value_unref(y);
        return out;
    }
    if (says && !strcmp(says, "TokenRequest"))
        return redact_token(r, v);
    if (says && api ? !strcmp(says, "Secret") && !strcmp(api, "v1") : kl_redacts_kind(kind))
        return redact_secret(r, v);
    return kl_value_ref(v);
}
