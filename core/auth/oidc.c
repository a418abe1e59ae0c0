/* oidc.c - refreshes id tokens.
 *
 *   id token good for 10 s --> use it
 *   otherwise  issuer/.well-known/openid-configuration --token_endpoint--> POST refresh_token --> new id token --> kubeconfig
 *
 * The client's id and secret go into a Basic header first and, if the provider refuses that, into the form,
 * like in golang.org/x/oauth2. Requests run on an http thread; this code waits for each. */
#include "auth/oidc.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "value/value.h"
#include "auth/auth.h"
#include "auth/kubeconfig.h"
#include "auth/persist.h"
#include "http/proxy.h"

#define LEEWAY KL_SECONDS(10) /* a token this close to its expiry is not sent (client-go's value) */
#define REQUEST_TIME KL_SECONDS(30)
#define ANSWER_MAX ((size_t)1 << 20)
#define CA_MAX ((size_t)4 << 20)
#define LOCK_TRIES 10 /* while another program writes the kubeconfig */
#define LOCK_REST KL_MILLISECONDS(100)

struct kl__oidc {
    const kl_config *config;
    kl_clock *clock;
    kl_http *http;
    char *id_token, *refresh_token; /* as they are now */
    char *token_url;                /* once discovered */
    kl_mutex mu;                    /* of what follows */
    kl_cond ended;
    bool stopped;
    uint64_t request; /* id of the running request, or 0 */
};

static const char *setting(const kl_config *c, const char *key)
{
    const char *s = kl_value_str_at(c->auth_provider_config, key, NULL);
    return s && *s ? s : NULL;
}

kl_status kl__oidc_check(const kl_config *c, kl_err *err)
{
    const char *where = c->source ? c->source : "the configuration", *name = c->auth_provider;
    if (!strcmp(name, "gcp") || !strcmp(name, "azure"))
        return kl_fail(err, KL_EAUTH,
            "%s: the auth-provider \"%s\" was removed from Kubernetes: use an exec plugin instead (%s)",
            where, name,
            *name == 'g' ? "gke-gcloud-auth-plugin" : "kubelogin, `kubelogin convert-kubeconfig`");
    if (strcmp(name, "oidc"))
        return kl_fail(err, KL_EAUTH,
            "%s: there is no auth-provider \"%s\", only \"oidc\"; use an exec plugin otherwise", where, name);
    if (!setting(c, "idp-issuer-url") || !setting(c, "client-id"))
        return kl_fail(err, KL_EAUTH, "%s: the auth-provider oidc needs %s in its config", where,
            setting(c, "client-id") ? "idp-issuer-url" : "client-id");
    return KL_OK;
}

kl__oidc *kl__oidc_new(const kl_config *config, kl_clock *clock, kl_http *http)
{
    kl__oidc *o = kl_new(kl__oidc);
    o->config = config;
    o->clock = clock;
    o->http = http;
    o->id_token = kl_strdup(setting(config, "id-token"));
    o->refresh_token = kl_strdup(setting(config, "refresh-token"));
    kl_mutex_init(&o->mu);
    kl_cond_init(&o->ended);
    return o;
}

void kl__oidc_free(kl__oidc *o)
{
    if (!o)
        return;
    kl_free(o->id_token);
    kl_free(o->refresh_token);
    kl_free(o->token_url);
    kl_cond_fini(&o->ended);
    kl_mutex_fini(&o->mu);
    kl_free(o);
}

void kl__oidc_stop(kl__oidc *o)
{
    kl_lock(&o->mu);
    o->stopped = true;
    kl_cond_broadcast(&o->ended);
    uint64_t id = o->request;
    kl_unlock(&o->mu);
    if (id)
        kl_http_cancel(o->http, id);
}

/* --- tokens ------------------------------------------------------------------------------- */

static int digit_of(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A'
        : c >= 'a' && c <= 'z'  ? c - 'a' + 26
        : c >= '0' && c <= '9'  ? c - '0' + 52
        : c == '-'              ? 62
        : c == '_'              ? 63
                                : -1;
}

/* Base64 with the URL alphabet and no padding. False: it is invalid. */
static bool decode_url64(const char *s, size_t n, kl_buf *out)
{
    unsigned v = 0;
    for (size_t i = 0; i < n; i++) {
        int d = digit_of(s[i]);
        if (d < 0)
            return false;
        v = v << 6 | (unsigned)d;
        if (i % 4)
            kl_buf_putc(out, (char)(v >> (6 - 2 * (i % 4)) & 255));
    }
    return n % 4 != 1;
}

kl_status kl__jwt_expiry(const char *token, kl_time *out, kl_err *err)
{
    const char *first = strchr(token, '.'), *second = first ? strchr(first + 1, '.') : NULL;
    kl_buf text = KL_BUF_INIT;
    const kl_value *claims = NULL;
    if (!second || strchr(second + 1, '.'))
        return kl_fail(err, KL_ESYNTAX, "it is not a JWT (three parts with dots between them)");
    bool bad = !decode_url64(first + 1, (size_t)(second - first - 1), &text)
        || kl_value_decode_last(kl_buf_str(&text), text.len, &claims, NULL);
    kl_buf_fini(&text);
    int64_t sec = 0;
    const kl_value *exp = kl_value_get(claims, "exp");
    if (!bad && !kl_value_int(exp, &sec))
        sec = (int64_t)kl_value_double(exp, 0);
    bad = bad || kl_value_type(claims) != KL_OBJECT
        || (kl_value_type(exp) != KL_NULL && kl_value_type(exp) != KL_INT && kl_value_type(exp) != KL_DOUBLE);
    kl_value_unref(claims);
    if (bad)
        return kl_fail(err, KL_ESYNTAX, "its claims cannot be read");
    *out = sec < 0 ? 0 : sec > KL_NEVER / KL_SECONDS(1) - 1 ? KL_NEVER : KL_SECONDS(sec);
    return KL_OK;
}

static kl_status no_token(const kl__oidc *o, kl_err *err, const char *why)
{
    return kl_fail(
        err, KL_EAUTH, "no token from the OIDC issuer %s: %s", setting(o->config, "idp-issuer-url"), why);
}

/* Reports that there is no token; the message in *err becomes the reason. */
static kl_status retell(const kl__oidc *o, kl_err *err)
{
    char *why = kl_strdup(kl_err_message(err));
    kl_status st = no_token(o, err, why);
    kl_free(why);
    return st;
}

/* --- one request, waited for -------------------------------------------------------------- */

typedef struct fetch {
    kl__oidc *o;
    bool done;
    kl_status st;
    int code;
    kl_buf body;
    kl_err err;
} fetch;

static kl_status on_data(void *arg, const char *data, size_t n, kl_err *err)
{
    fetch *f = arg;
    return kl_buf_add(&f->body, data, n)
        ? kl_fail(err, KL_ETOOBIG, "the answer is larger than %zu KiB", ANSWER_MAX >> 10)
        : KL_OK;
}

static void on_done(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    fetch *f = arg;
    (void)sent;
    kl_lock(&f->o->mu);
    f->st = st;
    f->code = code;
    kl_err_move(&f->err, err);
    f->done = true;
    f->o->request = 0;
    kl_cond_broadcast(&f->o->ended);
    kl_unlock(&f->o->mu);
}

static kl_status read_ca(const kl_config *c, kl_buf *pem, kl_err *err)
{
    const char *data = setting(c, "idp-certificate-authority-data"),
               *file = setting(c, "idp-certificate-authority");
    if (data) {
        char *text = kl__base64_text(data);
        if (!text)
            return kl_fail(err, KL_EAUTH, "idp-certificate-authority-data is not base64 text");
        kl_buf_puts(pem, text);
        kl_free(text);
        return KL_OK;
    }
    if (!file || !kl__file_read(file, pem, err))
        return KL_OK;
    kl_err_prefix(err, "idp-certificate-authority");
    return KL_EAUTH;
}

/* A GET, or with `form` a POST; `line` is a header or NULL. The answer's JSON, or NULL when it is not JSON;
 * its code. */
static kl_status ask(kl__oidc *o, const char *url, const char *line, const char *form, const kl_value **out,
    int *code, kl_err *err)
{
    fetch f = {.o = o};
    kl_buf ca;
    kl_buf_init(&ca, CA_MAX);
    kl_buf_init(&f.body, ANSWER_MAX);
    char *proxy = kl__proxy_for(NULL, url);
    const char *headers[] = {"Accept: application/json",
        form ? "Content-Type: application/x-www-form-urlencoded" : line, form ? line : NULL, NULL};
    kl_status st = read_ca(o->config, &ca, err);
    if (!st) {
        kl_lock(&o->mu);
        if (!o->stopped)
            o->request = kl_http_submit(o->http,
                &(kl_http_request){.method = form ? "POST" : "GET",
                    .url = url,
                    .headers = headers,
                    .body = form,
                    .body_len = form ? strlen(form) : 0,
                    .proxy = proxy,
                    .tls = {.ca_pem = ca.len ? ca.data : NULL,
                        .ca_file = setting(o->config, "idp-certificate-authority")},
                    .total_timeout = REQUEST_TIME,
                    .on_data = on_data,
                    .on_done = on_done,
                    .arg = &f});
        if (!o->request)
            st = kl_fail(err, KL_ECANCELLED, "the client is closed");
        while (!st && !f.done)
            kl_cond_wait(&o->ended, &o->mu); /* the request has a timeout */
        kl_unlock(&o->mu);
    }
    if (!st && f.st) {
        st = f.st;
        kl_err_move(err, &f.err);
    }
    *out = NULL;
    *code = f.code;
    if (!st && kl_value_decode_last(kl_buf_str(&f.body), f.body.len, out, NULL))
        *out = NULL;
    if (f.body.data)
        explicit_bzero(f.body.data, f.body.len);
    kl_err_fini(&f.err);
    kl_buf_fini(&f.body);
    kl_buf_fini(&ca);
    kl_free(proxy);
    return st;
}

/* --- refreshing --------------------------------------------------------------------------- */

static void form_value(kl_buf *b, const char *s)
{
    for (; *s; s++)
        if (isalnum((unsigned char)*s) || strchr("-_.~", *s))
            kl_buf_putc(b, *s);
        else
            kl_buf_printf(b, "%%%02X", (unsigned char)*s);
}

static void form_add(kl_buf *b, const char *key, const char *value)
{
    if (!value)
        return;
    kl_buf_printf(b, "%s%s=", b->len ? "&" : "", key);
    form_value(b, value);
}

static kl_status discover(kl__oidc *o, kl_err *err)
{
    const char *issuer = setting(o->config, "idp-issuer-url");
    size_t n = strlen(issuer);
    char *url = kl_sprintf(
             "%.*s/.well-known/openid-configuration", (int)(n && issuer[n - 1] == '/' ? n - 1 : n), issuer),
         why[128];
    const kl_value *v = NULL;
    int code = 0;
    kl_status st = ask(o, url, NULL, NULL, &v, &code, err);
    const char *endpoint = kl_value_str_at(v, "token_endpoint", NULL);
    if (st && st != KL_ECANCELLED)
        st = retell(o, err);
    else if (!st && code != 200) {
        snprintf(why, sizeof why, "its /.well-known/openid-configuration returned HTTP %d", code);
        st = no_token(o, err, why);
    } else if (!st && (!endpoint || !*endpoint))
        st = no_token(o, err, "its /.well-known/openid-configuration names no token_endpoint");
    else if (!st)
        o->token_url = kl_strdup(endpoint);
    kl_value_unref(v);
    kl_free(url);
    return st;
}

/* Sends the client's id in a header, then, if refused, in the form. */
static kl_status refresh(kl__oidc *o, const kl_value **out, int *code, kl_err *err)
{
    const char *id = setting(o->config, "client-id"), *secret = setting(o->config, "client-secret");
    kl_buf user = KL_BUF_INIT, password = KL_BUF_INIT, form = KL_BUF_INIT;
    form_value(&user, id);
    form_value(&password, secret ? secret : "");
    form_add(&form, "grant_type", "refresh_token");
    form_add(&form, "refresh_token", o->refresh_token);
    char *line = kl__auth_basic(kl_buf_str(&user), kl_buf_str(&password));
    kl_status st = ask(o, o->token_url, line, kl_buf_str(&form), out, code, err);
    if (!st && *code >= 400 && *code < 500) {
        kl_value_unref(*out);
        form_add(&form, "client_id", id);
        form_add(&form, "client_secret", secret);
        st = ask(o, o->token_url, NULL, kl_buf_str(&form), out, code, err);
    }
    explicit_bzero(line, strlen(line));
    if (form.data)
        explicit_bzero(form.data, form.len);
    kl_free(line);
    kl_buf_fini(&user);
    kl_buf_fini(&password);
    kl_buf_fini(&form);
    return st;
}

/* error and error_description are meant for people; they are cut and cleaned all the same. */
static kl_status refused_refresh(const kl__oidc *o, const kl_value *v, int code, kl_err *err)
{
    const char *error = kl_value_str_at(v, "error", NULL),
               *story = kl_value_str_at(v, "error_description", NULL);
    char *why = kl_sprintf("the refresh returned HTTP %d%s%.80s%s%.200s; log in again", code,
        error ? ": " : "", error ? error : "", story ? ": " : "", story ? story : "");
    for (char *p = why; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = ' ';
    kl_status st = no_token(o, err, why);
    kl_free(why);
    return st;
}

static void take_string(char **to, const char *s)
{
    char *copy = kl_strdup(s);
    if (*to)
        explicit_bzero(*to, strlen(*to));
    kl_free(*to);
    *to = copy;
}

/* Waits; false when stopped meanwhile. */
static bool rest(kl__oidc *o, kl_time time)
{
    kl_time until = kl_clock_now(kl_clock_real()) + time;
    kl_lock(&o->mu);
    while (!o->stopped && kl_cond_wait_until(&o->ended, &o->mu, until))
        continue;
    bool go_on = !o->stopped;
    kl_unlock(&o->mu);
    return go_on;
}

static void keep(kl__oidc *o)
{
    kl_err err = KL_ERR_INIT;
    const kl__persist_entry entries[] = {{"id-token", o->id_token}, {"refresh-token", o->refresh_token}};
    if (!o->config->user || !o->config->user_file)
        return;
    kl_status st = kl__persist_auth_provider(o->config->user_file, o->config->user, entries, 2, &err);
    for (int i = 1; i < LOCK_TRIES && st == KL_EAGAIN && rest(o, LOCK_REST); i++)
        st = kl__persist_auth_provider(o->config->user_file, o->config->user, entries, 2, &err);
    if (st)
        kl_warn("refreshed tokens could not be written into the kubeconfig", "file=%s error=%s",
            kl_log_quoted(o->config->user_file), kl_log_quoted(kl_err_message(&err)));
    kl_err_fini(&err);
}

static kl_status take_tokens(kl__oidc *o, const kl_value *v, kl_time *expiry, kl_err *err)
{
    const char *id = kl_value_str_at(v, "id_token", NULL), *next = kl_value_str_at(v, "refresh_token", NULL);
    if (!id || !*id)
        return no_token(o, err,
            "it answered the refresh without an id_token: the login did not request the scope \"openid\", or "
            "the issuer does not support it");
    kl_err why = KL_ERR_INIT;
    if (!kl__auth_is_token(id) || kl__jwt_expiry(id, expiry, &why)) {
        char *text = kl_sprintf("the id_token is unusable: %s", kl_err_message(&why));
        no_token(o, err, text);
        kl_free(text);
        kl_err_fini(&why);
        return KL_EAUTH;
    }
    take_string(&o->id_token, id);
    if (next && *next)
        take_string(&o->refresh_token, next);
    keep(o);
    return KL_OK;
}

/* Reads the file again: another program, or another client of ours, may have refreshed the token. A refresh
 * token may be valid for one use only. */
static void read_again(kl__oidc *o)
{
    const char *file = o->config->user_file;
    kl__kubeconfig k;
    kl_time ours = 0, theirs = 0;
    if (!file || !o->config->user || kl__kubeconfig_load(&file, 1, true, &k, NULL))
        return;
    const kl__kube_user *u = kl_map_get(k.users, o->config->user);
    const char *id = u ? kl_value_str_at(u->auth_provider_config, "id-token", NULL) : NULL,
               *next = u ? kl_value_str_at(u->auth_provider_config, "refresh-token", NULL) : NULL;
    bool newer = id && kl__auth_is_token(id) && !kl__jwt_expiry(id, &theirs, NULL)
        && (!o->id_token || kl__jwt_expiry(o->id_token, &ours, NULL) || theirs > ours);
    if (newer) {
        take_string(&o->id_token, id);
        if (next && *next)
            take_string(&o->refresh_token, next);
    }
    kl__kubeconfig_fini(&k);
}

static bool is_good(const kl__oidc *o, kl_time *expiry)
{
    return o->id_token && !kl__jwt_expiry(o->id_token, expiry, NULL)
        && kl_clock_wall(o->clock) + LEEWAY < *expiry;
}

kl_status kl__oidc_token(kl__oidc *o, bool refused, char **token, kl_time *until, kl_err *err)
{
    kl_time expiry = 0;
    kl_err why = KL_ERR_INIT;
    const kl_value *v = NULL;
    int code = 0;
    if (o->id_token && kl__jwt_expiry(o->id_token, &expiry, &why)) {
        kl_fail(err, KL_EAUTH, "%s: the auth-provider's id-token is unusable: %s", o->config->source,
            kl_err_message(&why));
        kl_err_fini(&why);
        return KL_EAUTH;
    }
    bool good = is_good(o, &expiry);
    if (!good || refused) {
        char *before = kl_strdup(o->id_token);
        read_again(o);
        good = is_good(o, &expiry);
        refused = refused && before && o->id_token && !strcmp(before, o->id_token);
        kl_free(before);
    }
    if (!good && !o->refresh_token)
        return no_token(o, err,
            o->id_token ? "the id-token has expired and there is no refresh-token; log in again"
                        : "there is neither an id-token nor a refresh-token; log in first");
    kl_status st = KL_OK;
    if (!good || (refused && o->refresh_token)) {
        st = o->token_url ? KL_OK : discover(o, err);
        if (!st && (st = refresh(o, &v, &code, err)) && st != KL_ECANCELLED)
            st = retell(o, err);
        if (!st)
            st = code >= 200 && code < 300 ? take_tokens(o, v, &expiry, err)
                                           : refused_refresh(o, v, code, err);
        kl_value_unref(v);
    }
    if (!st) {
        *token = kl_strdup(o->id_token);
        *until = expiry - LEEWAY;
    }
    return st;
}
