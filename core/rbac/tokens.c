/* tokens.c - users out of a file of tokens, and the tokens that the server issued. */
#include "rbac/tokens.h"

#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/x509_rsa.h"

#define AUTHENTICATED "system:authenticated"
/* The maximum number of tokens that have not expired: each further one makes the server forget another. */
#define ISSUED_MAX 10000

static void user_free(void *p) { kl_value_unref(p); }

void kl__tokens_free(kl_map *tokens) { kl_map_free(tokens, user_free); }

const kl_value *kl__user_new(const char *name, const char *uid, const char *groups)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "username", name);
    kl_build_kstr(b, "uid", uid && *uid ? uid : NULL);
    kl_build_key(b, "groups");
    kl_build_array(b);
    for (const char *p = groups; p && *p;) {
        size_t n = strcspn(p, ",");
        kl_build_strn(b, p, n);
        p += n + (p[n] == ',');
    }
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* The next field of a line, with or without quotes. Writes NULs into the text. */
static char *field(char **rest)
{
    char *s = *rest, *end;
    if (*s == '"') {
        end = strchr(++s, '"');
        end = end ? end : s + strlen(s);
        *rest = end + (*end == '"');
        *rest += **rest == ',';
    } else {
        end = s + strcspn(s, ",");
        *rest = end + (*end == ',');
    }
    *end = '\0';
    return s;
}

static kl_status take_line(kl_map *tokens, const char *path, int number, char *line, kl_err *err)
{
    line[strcspn(line, "\r")] = '\0';
    if (!*line || *line == '#')
        return KL_OK;
    char *rest = line, *token = field(&rest), *name = field(&rest), *uid = field(&rest),
         *groups = field(&rest);
    if (!*token || !*name)
        return kl_fail(err, KL_ESYNTAX, "%s:%d: a line is token,user,uid,\"group,group\"", path, number);
    bool there = false;
    for (const char *p = groups; *p && !there; p += strcspn(p, ","), p += *p == ',')
        there = strcspn(p, ",") == sizeof AUTHENTICATED - 1
            && !strncmp(p, AUTHENTICATED, sizeof AUTHENTICATED - 1);
    char *all = there ? kl_strdup(groups) : kl_sprintf("%s%s%s", groups, *groups ? "," : "", AUTHENTICATED);
    void *old = kl_map_set(tokens, token, (void *)(uintptr_t)kl__user_new(name, uid, all));
    kl_free(all);
    user_free(old);
    return KL_OK;
}

kl_status kl__tokens_read(const char *path, kl_map **out, kl_err *err)
{
    kl_buf text = KL_BUF_INIT;
    kl_status st = kl_file_read_given(path, "a file of tokens", &text, err);
    kl_map *tokens = kl_map_new();
    char *line = text.len ? text.data : NULL, *end = line ? line + text.len : NULL;
    for (int number = 1; !st && line && line < end; number++) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        char *own = kl_strndup(line, (size_t)((next ? next : end) - line));
        st = take_line(tokens, path, number, own, err);
        kl_free(own);
        line = next ? next + 1 : end;
    }
    kl_buf_fini(&text);
    if (st)
        kl__tokens_free(tokens);
    else
        *out = tokens;
    return st;
}

/* ------------------------------------------------------------------ issued tokens */

/* Base64 for URLs, without padding. */
static void put_base64(kl_buf *b, const char *s, size_t n)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const unsigned char *p = (const unsigned char *)s;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0)
            | (i + 2 < n ? p[i + 2] : 0);
        for (size_t j = 0; j < 4 && i + j <= n; j++)
            kl_buf_putc(b, letters[v >> (18 - 6 * j) & 63]);
    }
}

typedef struct waiter {
    void (*ready)(void *arg);
    void *arg;
} waiter;

struct kl__issuer {
    kl_mutex mu;
    kl_rsa *key;                  /* once there, it stays, as what follows */
    kl_buf id, modulus, exponent; /* as base64 for URLs */
    kl_thread *maker;             /* NULL: nobody has waited */
    waiter *waiting;
    size_t n;
    bool stopped;
};

kl__issuer *kl__issuer_new(void)
{
    kl__issuer *i = kl_new(kl__issuer);
    kl_mutex_init(&i->mu);
    return i;
}

void kl__issuer_free(kl__issuer *i)
{
    if (!i)
        return;
    kl__issuer_stop(i);
    kl_rsa_free(i->key);
    kl_buf_fini(&i->id);
    kl_buf_fini(&i->modulus);
    kl_buf_fini(&i->exponent);
    kl_mutex_fini(&i->mu);
    kl_free(i);
}

static bool has_key(kl__issuer *i)
{
    kl_lock(&i->mu);
    bool has = i->key;
    kl_unlock(&i->mu);
    return has;
}

/* Makes the key at its first use. Of two that are made at a time the first one counts. */
static void make_key(kl__issuer *i)
{
    kl_buf modulus = KL_BUF_INIT, exponent = KL_BUF_INIT, digest = KL_BUF_INIT;
    if (has_key(i))
        return;
    kl_rsa *key = kl_rsa_new(), *other = key;
    kl_rsa_public(key, &modulus, &exponent, &digest);
    kl_lock(&i->mu);
    if (!i->key) {
        put_base64(&i->id, kl_buf_str(&digest), digest.len);
        put_base64(&i->modulus, kl_buf_str(&modulus), modulus.len);
        put_base64(&i->exponent, kl_buf_str(&exponent), exponent.len);
        i->key = key;
        other = NULL;
    }
    kl_unlock(&i->mu);
    kl_rsa_free(other);
    kl_buf_fini(&modulus);
    kl_buf_fini(&exponent);
    kl_buf_fini(&digest);
}

/* Who comes when the key is there does not wait. */
static void maker_main(void *arg)
{
    kl__issuer *i = arg;
    make_key(i);
    kl_lock(&i->mu);
    waiter *waiting = i->waiting;
    size_t n = i->n;
    i->waiting = NULL;
    i->n = 0;
    kl_unlock(&i->mu);
    for (size_t k = 0; k < n; k++)
        waiting[k].ready(waiting[k].arg);
    kl_free(waiting);
}

bool kl__issuer_await(kl__issuer *i, void (*ready)(void *arg), void *arg)
{
    kl_lock(&i->mu);
    bool waits = !i->key && !i->stopped;
    if (waits) {
        i->waiting = kl_realloc(i->waiting, (i->n + 1) * sizeof *i->waiting);
        i->waiting[i->n++] = (waiter){ready, arg};
        if (!i->maker)
            i->maker = kl_thread_start("kl-rsa", maker_main, i);
    }
    kl_unlock(&i->mu);
    return !waits;
}

void kl__issuer_stop(kl__issuer *i)
{
    kl_lock(&i->mu);
    kl_thread *maker = i->maker;
    i->maker = NULL;
    i->stopped = true;
    kl_unlock(&i->mu);
    kl_thread_join(maker);
}

char *kl__token_new(kl__issuer *i, const kl_value *claims)
{
    kl_buf head = KL_BUF_INIT, body = KL_BUF_INIT, signature = KL_BUF_INIT, token = KL_BUF_INIT;
    make_key(i);
    kl_buf_printf(&head, "{\"alg\":\"RS256\",\"kid\":\"%s\"}", kl_buf_str(&i->id));
    kl_value_encode(claims, &body);
    put_base64(&token, kl_buf_str(&head), head.len);
    kl_buf_putc(&token, '.');
    put_base64(&token, kl_buf_str(&body), body.len);
    kl_rsa_sign(i->key, token.data, token.len, &signature);
    kl_buf_putc(&token, '.');
    put_base64(&token, kl_buf_str(&signature), signature.len);
    kl_buf_fini(&head);
    kl_buf_fini(&body);
    kl_buf_fini(&signature);
    return kl_buf_take(&token);
}

void kl__issuer_keys(kl__issuer *i, kl_buf *out)
{
    make_key(i);
    kl_buf_printf(out,
        "{\"keys\":[{\"use\":\"sig\",\"kty\":\"RSA\",\"kid\":\"%s\",\"alg\":\"RS256\",\"n\":\"%s\","
        "\"e\":\"%s\"}]}",
        kl_buf_str(&i->id), kl_buf_str(&i->modulus), kl_buf_str(&i->exponent));
}

static bool expired(const kl_value *claims, kl_time wall)
{
    return wall >= KL_SECONDS(kl_value_int_at(claims, 0, "exp", NULL));
}

void kl__issued_add(kl_map *issued, kl_time wall, const char *token, const kl_value *claims)
{
    const char *key;
    void *v;
    size_t it = 0;
    while (kl_map_next(issued, &it, &key, &v))
        if (expired(v, wall))
            user_free(kl_map_take(issued, key));
    it = 0;
    if (kl_map_len(issued) >= ISSUED_MAX && kl_map_next(issued, &it, &key, &v))
        user_free(kl_map_take(issued, key));
    user_free(kl_map_set(issued, token, (void *)(uintptr_t)kl_value_ref(claims)));
}

const kl_value *kl__issued_claims(const kl_map *issued, kl_time wall, const char *token)
{
    const kl_value *claims = kl_map_get(issued, token);
    return claims && !expired(claims, wall) ? claims : NULL;
}
