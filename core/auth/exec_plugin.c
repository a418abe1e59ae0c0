/* exec_plugin.c - runs programs that print credentials.
 *
 *   config, its cluster --KUBERNETES_EXEC_INFO--> program --stdout--> ExecCredential --> token, or certificate and key
 *
 * The program's stdout is secret: no part of it gets into a message, not even through a parser's error. Its
 * stderr is meant for users: messages quote it, without words that look like a token or a key. */
#include "auth/exec_plugin.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base64.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/time.h"
#include "value/value.h"
#include "yaml/yaml.h"
#include "auth/auth.h"
#include "auth/kubeconfig.h"

#define TIME_MAX KL_MINUTES(5)    /* a person may have to log in with a browser meanwhile */
#define OUT_MAX ((size_t)1 << 20) /* a certificate chain and a key are a few KB */
#define ERR_MAX ((size_t)4 << 10)
#define TOLD_MAX 600 /* bytes of stderr in a message */
#define CA_MAX ((size_t)4 << 20)
#define SECRET_MIN 64 /* a word this long may be a secret, unless it begins with "/" */

static kl_status fail(const kl_config *c, kl_err *err, const char *fmt, ...) KL_PRINTF(3, 4);
static kl_status fail(const kl_config *c, kl_err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_fail(err, KL_EAUTH, "the credential plugin \"%s\" %s", c->exec_command ? c->exec_command : "", text);
    kl_free(text);
    return KL_EAUTH;
}

kl_status kl__exec_plugin_check(const kl_config *c, kl_err *err)
{
    const char *version = kl_value_str_at(c->exec, "apiVersion", NULL);
    if (version
        && (!strcmp(version, "client.authentication.k8s.io/v1")
            || !strcmp(version, "client.authentication.k8s.io/v1beta1")))
        return KL_OK;
    return fail(c, err,
        "is configured with the apiVersion \"%s\": it must be client.authentication.k8s.io/v1 or "
        "client.authentication.k8s.io/v1beta1 (update the plugin and the kubeconfig)",
        version ? version : "");
}

/* --- what it is told ---------------------------------------------------------------------- */

static void build_ca(kl_builder *b, const kl_config *c)
{
    kl_buf pem;
    kl_buf_init(&pem, CA_MAX);
    if (c->ca_data)
        kl_buf_puts(&pem, c->ca_data);
    else if (c->ca_file && kl__file_read(c->ca_file, &pem, NULL))
        kl_buf_clear(&pem);
    if (pem.len) {
        char *text = kl_base64_encode(pem.data, pem.len);
        kl_build_kstr(b, "certificate-authority-data", text);
        kl_free(text);
    }
    kl_buf_fini(&pem);
}

static void build_flag(kl_builder *b, const char *key, bool on)
{
    if (!on)
        return;
    kl_build_key(b, key);
    kl_build_bool(b, true);
}

char *kl__exec_plugin_info(const kl_config *c, bool interactive)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "ExecCredential");
    kl_build_kstr(b, "apiVersion", kl_value_str_at(c->exec, "apiVersion", NULL));
    kl_build_key(b, "spec");
    kl_build_object(b);
    if (kl_value_bool(kl_value_get(c->exec, "provideClusterInfo"), false)) {
        kl_build_key(b, "cluster");
        kl_build_object(b);
        kl_build_kstr(b, "server", c->server);
        kl_build_kstr(b, "tls-server-name", c->tls_server_name);
        build_flag(b, "insecure-skip-tls-verify", c->insecure);
        build_ca(b, c);
        kl_build_kstr(b, "proxy-url", c->proxy_url && *c->proxy_url ? c->proxy_url : NULL);
        build_flag(b, "disable-compression", c->disable_compression);
        kl_build_key(b, "config");
        if (c->exec_cluster)
            kl_build_value(b, c->exec_cluster);
        else
            kl_build_null(b);
        kl_build_end(b);
    }
    kl_build_key(b, "interactive");
    kl_build_bool(b, interactive);
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    char *text = kl_value_to_json(v);
    kl_value_unref(v);
    return text;
}

/* A NULL-terminated list that owns its strings. */
typedef struct strings {
    char **v;
    size_t n;
} strings;

static void add(strings *s, char *text)
{
    s->v = kl_realloc(s->v, (s->n + 2) * sizeof *s->v);
    s->v[s->n++] = text;
    s->v[s->n] = NULL;
}

static void strings_free(strings *s)
{
    for (size_t i = 0; i < s->n; i++)
        kl_free(s->v[i]);
    kl_free(s->v);
}

/* Sets NAME=value; the last value counts, as in Go. */
static void put(strings *s, const char *name, const char *value)
{
    size_t n = strlen(name);
    char *line = kl_sprintf("%s=%s", name, value);
    for (size_t i = 0; i < s->n; i++)
        if (!strncmp(s->v[i], name, n) && s->v[i][n] == '=') {
            kl_free(s->v[i]);
            s->v[i] = line;
            return;
        }
    add(s, line);
}

static strings environment_of(const kl_config *c, const char *info)
{
    strings s = {0};
    for (char **e = environ; e && *e; e++)
        add(&s, kl_strdup(*e));
    const kl_value *env = kl_value_get(c->exec, "env");
    for (size_t i = 0; i < kl_value_len(env); i++) {
        const char *name = kl_value_str_at(kl_value_item(env, i), "name", NULL),
                   *value = kl_value_str_at(kl_value_item(env, i), "value", NULL);
        if (name)
            put(&s, name, value ? value : "");
    }
    put(&s, "KUBERNETES_EXEC_INFO", info);
    return s;
}

static strings arguments_of(const kl_config *c)
{
    strings s = {0};
    const kl_value *args = kl_value_get(c->exec, "args");
    add(&s, kl_strdup(c->exec_command));
    for (size_t i = 0; i < kl_value_len(args); i++)
        add(&s, kl_strdup(kl_value_str(kl_value_item(args, i)) ? kl_value_str(kl_value_item(args, i)) : ""));
    return s;
}

static kl_status choose_terminal(const kl_config *c, bool *out, kl_err *err)
{
    const char *mode = kl_value_str_at(c->exec, "interactiveMode", NULL);
    bool there = kl_child_terminal();
    mode = mode ? mode : "IfAvailable";
    if (!strcmp(mode, "Always") && !there)
        return fail(
            c, err, "cannot prompt: its interactiveMode is Always, but standard input is not a terminal");
    *out = there && strcmp(mode, "Never");
    return KL_OK;
}

/* --- what it says ------------------------------------------------------------------------- */

static bool is_secret(const char *word, size_t n)
{
    if (n > 8 && !memcmp(word, "eyJ", 3)) /* a JWT, or base64 of JSON */
        return true;
    return n >= SECRET_MIN && *word != '/' && *word != '.' && *word != '~';
}

/* stderr for people: one line, bounded, without what may be a secret. */
static void tell(kl_buf *out, const char *text, size_t n)
{
    if (n > TOLD_MAX) {
        text += n - TOLD_MAX;
        n = TOLD_MAX;
        kl_buf_puts(out, "...");
        while (n && !isspace((unsigned char)*text)) { /* whole words only: half a word may be half a secret */
            text++;
            n--;
        }
    }
    bool gap = false, pem = false, pem_ends = false, hiding = false;
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && (unsigned char)text[end] > ' ')
            end++;
        if (end == i) {
            gap = true;
            pem = pem && !(pem_ends && text[i] == '\n');
            i++;
            continue;
        }
        if (end - i > 5 && !memcmp(text + i, "-----", 5)) {
            pem_ends = pem && memmem(text + i, end - i, "END", 3);
            pem = true;
        }
        bool hidden = pem || is_secret(text + i, end - i);
        if (gap && out->len && !(hidden && hiding))
            kl_buf_putc(out, ' ');
        if (hidden && !hiding)
            kl_buf_puts(out, "***");
        for (size_t k = i; !hidden && k < end; k++)
            kl_buf_putc(out, text[k] == 0x7f ? '?' : text[k]);
        hiding = hidden;
        gap = false;
        i = end;
    }
}

static kl_status fail_exit(const kl_config *c, const kl_child_result *r, kl_err *err)
{
    kl_buf said = KL_BUF_INIT;
    tell(&said, kl_buf_str(&r->err), r->err.len);
    kl_status st = r->signal
        ? fail(c, err, "was killed by signal %d%s%s", r->signal, said.len ? ": " : "", kl_buf_str(&said))
        : fail(c, err, "failed with exit code %d%s%s", r->code, said.len ? ": " : "", kl_buf_str(&said));
    kl_buf_fini(&said);
    return st;
}

static kl_status fail_run(
    const kl_config *c, kl_status st, const kl_child_result *r, const kl_err *why, kl_err *err)
{
    const char *hint = kl_value_str_at(c->exec, "installHint", NULL);
    kl_buf said = KL_BUF_INIT;
    if (st == KL_ECANCELLED)
        return kl_fail(err, st, "%s", kl_err_message(why));
    tell(&said, kl_buf_str(&r->err), r->err.len);
    if (st == KL_ENOTFOUND)
        fail(c, err, "is not installed: %s%s%s", kl_err_message(why), hint && *hint ? "; " : "",
            hint ? hint : "");
    else
        fail(c, err, "gave no credentials: %s%s%s", kl_err_message(why), said.len ? "; it said: " : "",
            kl_buf_str(&said));
    kl_buf_fini(&said);
    return KL_EAUTH;
}

void kl__exec_credential_fini(kl__exec_credential *c)
{
    if (c->token)
        explicit_bzero(c->token, strlen(c->token));
    if (c->key)
        explicit_bzero(c->key, strlen(c->key));
    kl_free(c->token);
    kl_free(c->cert);
    kl_free(c->key);
    *c = (kl__exec_credential){0};
}

/* A present string; "" counts as absent, another type is a mistake. */
static kl_status take(const kl_value *status, const char *key, char **out, kl_err *err)
{
    const kl_value *v = kl_value_get(status, key);
    const char *s = kl_value_str(v);
    if (kl_value_type(v) != KL_NULL && !s)
        return kl_fail(err, KL_ESYNTAX, "status.%s must be a string, not %s", key, kl_value_type_name(v));
    if (s && strlen(s) != kl_value_len(v))
        return kl_fail(err, KL_ESYNTAX, "status.%s has a NUL in it", key);
    if (s && *s)
        *out = kl_strdup(s);
    return KL_OK;
}

static kl_status take_expiration(const kl_value *status, kl__exec_credential *out, kl_err *err)
{
    char *text = NULL;
    int64_t sec = 0;
    int32_t nsec = 0;
    kl_status st = take(status, "expirationTimestamp", &text, err);
    if (!st && text) {
        if (kl_time_parse(text, &sec, &nsec, NULL))
            st = kl_fail(
                err, KL_ESYNTAX, "status.expirationTimestamp is not a time such as 2030-01-31T12:00:00Z");
        out->expires = !st && sec != KL_TIME_ZERO_SEC;
        int64_t last = KL_NEVER / KL_SECONDS(1) - 1;
        out->expiration = sec > last ? KL_NEVER : sec < -last ? -KL_NEVER : KL_SECONDS(sec) + nsec;
    }
    kl_free(text);
    return st;
}

static kl_status read_credential(const kl_value *v, const char *version, kl__exec_credential *x, kl_err *err)
{
    const char *kind = kl_value_str_at(v, "kind", NULL), *api = kl_value_str_at(v, "apiVersion", NULL);
    const kl_value *status = kl_value_get(v, "status");
    if (kl_value_type(v) != KL_OBJECT || !kind || strcmp(kind, "ExecCredential"))
        return kl_fail(err, KL_ESYNTAX, "it is not an ExecCredential (expected kind, apiVersion and status)");
    if (!api || strcmp(api, version))
        return kl_fail(err, KL_ESYNTAX, "apiVersion %s is configured, but the plugin answered with %s",
            version, api && strlen(api) < SECRET_MIN ? api : "another");
    if (kl_value_type(status) == KL_NULL)
        return kl_fail(err, KL_ESYNTAX, "it has no status");
    if (kl_value_type(status) != KL_OBJECT)
        return kl_fail(err, KL_ESYNTAX, "status must be an object, not %s", kl_value_type_name(status));
    kl_status st = take(status, "token", &x->token, err);
    if (!st)
        st = take(status, "clientCertificateData", &x->cert, err);
    if (!st)
        st = take(status, "clientKeyData", &x->key, err);
    if (!st)
        st = take_expiration(status, x, err);
    if (!st && !x->token && !x->cert && !x->key)
        st = kl_fail(
            err, KL_ESYNTAX, "status has neither a token nor clientCertificateData and clientKeyData");
    if (!st && !x->cert != !x->key)
        st = kl_fail(err, KL_ESYNTAX, "status has only one of clientCertificateData and clientKeyData");
    if (!st && x->token && !kl__auth_is_token(x->token))
        st = kl_fail(err, KL_ESYNTAX, "status.token has blanks or control characters in it");
    return st;
}

kl_status kl__exec_plugin_parse(
    const char *text, size_t n, const char *version, kl__exec_credential *out, kl_err *err)
{
    const kl_value *v = NULL;
    kl__exec_credential x = {0};
    /* JSON is YAML; the parser's message may quote a secret */
    if (kl_yaml_decode("stdout", text, n, &v, NULL))
        return kl_fail(err, KL_ESYNTAX, "it is neither JSON nor YAML (%zu bytes)", n);
    kl_status st = read_credential(v, version, &x, err);
    kl_value_unref(v);
    if (st)
        kl__exec_credential_fini(&x);
    else
        *out = x;
    return st;
}

/* --- a run -------------------------------------------------------------------------------- */

kl_status kl__exec_plugin_run(
    const kl_config *c, kl_child *child, kl_time timeout, kl__exec_credential *out, kl_err *err)
{
    bool terminal = false;
    kl_status st = choose_terminal(c, &terminal, err);
    if (st)
        return st;
    char *info = kl__exec_plugin_info(c, terminal);
    strings env = environment_of(c, info), args = arguments_of(c);
    kl_child_order order = {.program = c->exec_command,
        .argv = (const char *const *)args.v,
        .env = (const char *const *)env.v,
        .terminal = terminal,
        .timeout = timeout > 0 ? timeout : TIME_MAX,
        .out_max = OUT_MAX,
        .err_max = ERR_MAX};
    kl_child_result r;
    kl_err why = KL_ERR_INIT;
    kl_time started = kl_clock_now(kl_clock_real());
    st = kl_child_run(child, &order, &r, &why);
    if (st)
        st = fail_run(c, st, &r, &why, err);
    else if (r.code || r.signal)
        st = fail_exit(c, &r, err);
    else if (kl__exec_plugin_parse(
                 kl_buf_str(&r.out), r.out.len, kl_value_str_at(c->exec, "apiVersion", NULL), out, &why))
        st = fail(c, err, "printed no usable credential: %s", kl_err_message(&why));
    else
        kl_debug("a credential plugin has run", "command=%s took_ms=%lld", kl_log_quoted(c->exec_command),
            (long long)((kl_clock_now(kl_clock_real()) - started) / KL_MILLISECONDS(1)));
    if (r.out.data)
        explicit_bzero(r.out.data, r.out.len);
    kl_buf_fini(&r.out);
    kl_buf_fini(&r.err);
    kl_err_fini(&why);
    strings_free(&env);
    strings_free(&args);
    kl_free(info);
    return st;
}
