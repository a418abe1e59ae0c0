/* auth.c - the headers that say who we are.
 *
 * A token file rotates under us (service account tokens live for an hour): its content counts for 50 s, and a 401 has it
 * read again at once. The file is read under the lock: it is small and local, and one reader is enough. Tokens never
 * reach a log or a message. */
#include "net/auth.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/buf.h"
#include "base/mem.h"
#include "base/sync.h"

#define TOKEN_FRESH KL_SECONDS(50)          /* client-go: a period of 60 s less a leeway of 10 s */
#define TOKEN_MAX ((size_t)1 << 20)

struct kl__auth {
    const kl_config *config;
    kl_clock *clock;
    char **impersonation;
    kl_mutex mu;                            /* of what follows */
    char *file_token;                       /* last good content of the token file, or NULL */
    kl_time read_at;
};

static kl_status read_token(const char *path, char **out, kl_err *err)
{
    char chunk[4096];
    kl_buf b;
    kl_buf_init(&b, TOKEN_MAX);
    FILE *f = fopen(path, "re");
    if (!f)
        return kl_fail(err, KL_EAUTH, "token file %s cannot be read: %s", path, strerror(errno));
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        kl_buf_add(&b, chunk, n);
    bool bad = ferror(f) || kl_buf_status(&b);
    fclose(f);
    const char *s = kl_buf_str(&b);
    size_t n = strlen(s);
    while (n && isspace((unsigned char)*s)) {
        s++;
        n--;
    }
    while (n && isspace((unsigned char)s[n - 1]))
        n--;
    for (size_t i = 0; i < n; i++)
        bad = bad || (unsigned char)s[i] <= ' ' || s[i] == 0x7f;
    kl_status st = KL_OK;
    if (bad)
        st = kl_fail(err, KL_EAUTH, "token file %s does not hold a token: one line of text without blanks is expected", path);
    else if (!n)
        st = kl_fail(err, KL_EAUTH, "token file %s is empty", path);
    else
        *out = kl_strndup(s, n);
    kl_buf_fini(&b);
    return st;
}

static kl_status refresh_locked(kl__auth *a, kl_err *err)
{
    char *token = NULL;
    kl_status st = read_token(a->config->token_file, &token, err);
    a->read_at = kl_clock_now(a->clock);
    if (st)
        return st;
    kl_free(a->file_token);
    a->file_token = token;
    return KL_OK;
}

static char *percent_encode(const char *s)
{
    kl_buf b = KL_BUF_INIT;
    for (; *s; s++)
        if (isalnum((unsigned char)*s) || strchr("!#$&'*+-.^_`|~", *s))     /* RFC 7230 token characters */
            kl_buf_putc(&b, (char)tolower((unsigned char)*s));
        else
            kl_buf_printf(&b, "%%%02X", (unsigned char)*s);
    return kl_buf_take(&b);
}

static char **impersonation_lines(const kl_config *c)
{
    size_t n = 3;
    for (char **g = c->impersonate_groups; g && *g; g++)
        n++;
    for (char **e = c->impersonate_extra; e && *e; e += 2)
        n++;
    char **lines = kl_new_array(char *, n);
    n = 0;
    if (!c->impersonate)
        return lines;
    lines[n++] = kl_sprintf("Impersonate-User: %s", c->impersonate);
    if (c->impersonate_uid)
        lines[n++] = kl_sprintf("Impersonate-Uid: %s", c->impersonate_uid);
    for (char **g = c->impersonate_groups; g && *g; g++)
        lines[n++] = kl_sprintf("Impersonate-Group: %s", *g);
    for (char **e = c->impersonate_extra; e && *e; e += 2) {
        char *key = percent_encode(e[0]);
        lines[n++] = kl_sprintf("Impersonate-Extra-%s: %s", key, e[1]);
        kl_free(key);
    }
    return lines;
}

kl__auth *kl__auth_new(const kl_config *config, kl_clock *clock)
{
    kl__auth *a = kl_new(kl__auth);
    a->config = config;
    a->clock = clock;
    a->impersonation = impersonation_lines(config);
    kl_mutex_init(&a->mu);
    return a;
}

void kl__auth_free(kl__auth *a)
{
    if (!a)
        return;
    for (char **l = a->impersonation; *l; l++)
        kl_free(*l);
    kl_free(a->impersonation);
    kl_free(a->file_token);
    kl_mutex_fini(&a->mu);
    kl_free(a);
}

static char *basic_header(const char *user, const char *password)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *plain = kl_sprintf("%s:%s", user ? user : "", password ? password : "");
    size_t n = strlen(plain);
    kl_buf b = KL_BUF_INIT;
    kl_buf_puts(&b, "Authorization: Basic ");
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)(unsigned char)plain[i] << 16;
        v |= i + 1 < n ? (unsigned)(unsigned char)plain[i + 1] << 8 : 0;
        v |= i + 2 < n ? (unsigned)(unsigned char)plain[i + 2] : 0;
        kl_buf_putc(&b, digits[v >> 18]);
        kl_buf_putc(&b, digits[v >> 12 & 63]);
        kl_buf_putc(&b, i + 1 < n ? digits[v >> 6 & 63] : '=');
        kl_buf_putc(&b, i + 2 < n ? digits[v & 63] : '=');
    }
    kl_free(plain);
    return kl_buf_take(&b);
}

kl_status kl__auth_header(kl__auth *a, char **out, kl_err *err)
{
    const kl_config *c = a->config;
    char *token = NULL;
    kl_status st = KL_OK;
    if (c->token_file) {
        kl_err story = KL_ERR_INIT;
        kl_lock(&a->mu);
        if (!a->file_token || kl_clock_now(a->clock) - a->read_at >= TOKEN_FRESH)
            st = refresh_locked(a, &story);
        token = kl_strdup(a->file_token ? a->file_token : c->token);
        kl_unlock(&a->mu);
        if (token)
            st = KL_OK;                     /* also the last good one, or the inline one */
        else
            kl_err_move(err, &story);
        kl_err_fini(&story);
    } else
        token = kl_strdup(c->token);
    if (st)
        return st;
    if (token)
        *out = kl_sprintf("Authorization: Bearer %s", token);
    else if (c->username || c->password)
        *out = basic_header(c->username, c->password);
    else
        *out = NULL;
    kl_free(token);
    return KL_OK;
}

bool kl__auth_renewed(kl__auth *a, const char *used)
{
    if (!a->config->token_file)
        return false;
    kl_err story = KL_ERR_INIT;
    kl_lock(&a->mu);
    kl_status st = refresh_locked(a, &story);
    kl_unlock(&a->mu);
    kl_err_fini(&story);
    char *now = NULL;
    if (st || kl__auth_header(a, &now, NULL))
        return false;
    bool other = now && (!used || strcmp(now, used));
    kl_free(now);
    return other;
}

const char *const *kl__auth_impersonation(const kl__auth *a)
{
    return (const char *const *)a->impersonation;
}

char *kl__auth_describe(const kl__auth *a)
{
    const kl_config *c = a->config;
    if (c->token_file)
        return kl_sprintf("the token in %s", c->token_file);
    if (c->token)
        return kl_strdup("the token of the configuration");
    if (c->username || c->password)
        return kl_sprintf("user name \"%s\" and password", c->username ? c->username : "");
    if (c->cert_file && !c->cert_data)
        return kl_sprintf("the client certificate %s", c->cert_file);
    if (c->cert_data)
        return kl_strdup("the client certificate of the configuration");
    return kl_strdup("no credentials");
}
