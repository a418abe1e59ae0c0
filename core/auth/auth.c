/* auth.c - header lines that say who we are. Tokens and passwords never reach a log or a message. */
#include "auth/auth.h"

#include <ctype.h>
#include <string.h>
#include "base/base64.h"
#include "base/buf.h"
#include "base/mem.h"
#include "auth/kubeconfig.h"

#define TOKEN_MAX ((size_t)1 << 20)

bool kl__auth_is_token(const char *token)
{
    for (; *token; token++)
        if ((unsigned char)*token <= ' ' || *token == 0x7f)
            return false;
    return true;
}

kl_status kl__auth_token_file(const char *path, char **out, kl_err *err)
{
    kl_err why = KL_ERR_INIT;
    kl_buf b;
    kl_buf_init(&b, TOKEN_MAX);
    kl_status got = kl__file_read(path, &b, &why);
    const char *s = kl_buf_str(&b);
    size_t n = strlen(s);
    while (n && isspace((unsigned char)*s)) {
        s++;
        n--;
    }
    while (n && isspace((unsigned char)s[n - 1]))
        n--;
    char *token = kl_strndup(s, n);
    kl_status st = KL_OK;
    if (got)
        st = kl_fail(err, KL_EAUTH, "token file %s", kl_err_message(&why));
    else if (!kl__auth_is_token(token))
        st = kl_fail(err, KL_EAUTH,
            "token file %s does not hold a token: expected one line of text without blanks", path);
    else if (!n)
        st = kl_fail(err, KL_EAUTH, "token file %s is empty", path);
    else
        *out = token;
    if (st)
        kl_free(token);
    kl_buf_fini(&b);
    kl_err_fini(&why);
    return st;
}

static char *percent_encode(const char *s)
{
    kl_buf b = KL_BUF_INIT;
    for (; *s; s++)
        if (isalnum((unsigned char)*s) || strchr("!#$&'*+-.^_`|~", *s)) /* RFC 7230 token characters */
            kl_buf_putc(&b, (char)tolower((unsigned char)*s));
        else
            kl_buf_printf(&b, "%%%02X", (unsigned char)*s);
    return kl_buf_take(&b);
}

char **kl__auth_impersonation(const kl_config *c)
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

void kl__auth_lines_free(char **lines)
{
    for (char **l = lines; l && *l; l++)
        kl_free(*l);
    kl_free(lines);
}

char *kl__auth_bearer(const char *token) { return kl_sprintf("Authorization: Bearer %s", token); }

char *kl__auth_basic(const char *user, const char *password)
{
    char *plain = kl_sprintf("%s:%s", user ? user : "", password ? password : "");
    char *text = kl_base64_encode(plain, strlen(plain)), *line = kl_sprintf("Authorization: Basic %s", text);
    kl_free(plain);
    kl_free(text);
    return line;
}

char *kl__auth_describe(const kl_config *c)
{
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
    if (c->exec)
        return kl_sprintf("the credentials that \"%s\" gives", c->exec_command ? c->exec_command : "");
    if (c->auth_provider)
        return kl_sprintf("the token of the auth-provider %s", c->auth_provider);
    return kl_strdup("no credentials");
}
