/* web_words.c - a request of a script and its answer as values: checks before it is sent, and the result of
 * an answer. */
#include "client/web_impl.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/mem.h"
#include "http/reach.h"

#define STORY_MAX 300 /* of an answer's body, in an error */

/* --- what is asked ------------------------------------------------------------------------ */

char *const kl_web_anywhere[] = {NULL};

static kl_status check_method(const char *m, kl_err *err)
{
    size_t n = m ? strlen(m) : 0;
    if (!n || n > 20 || strspn(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != n)
        return kl_fail(err, KL_EINVAL, "a method is a word in capitals, such as \"POST\"");
    if (!strcmp(m, "CONNECT") || !strcmp(m, "TRACE"))
        return kl_fail(err, KL_EINVAL, "%s is not a request that a script may make", m);
    return KL_OK;
}

/* Headers that a script must not set: those of the connection, and Host, which would select another
 * server. */
static bool is_ours(const char *name)
{
    static const char *const names[] = {"host", "connection", "content-length", "transfer-encoding", "expect",
        "upgrade", "te", "trailer", "keep-alive", "http2-settings", NULL};
    for (const char *const *n = names; *n; n++)
        if (!strcasecmp(*n, name))
            return true;
    return !strncasecmp(name, "proxy-", 6);
}

static kl_status check_header(const char *name, size_t n, const kl_value *v, kl_err *err)
{
    size_t len;
    const char *text = kl_value_strn(v, &len);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !memchr("!#$%&'*+-.^_`|~", name[i], 15))
            return kl_fail(
                err, KL_EINVAL, "a header's name must consist of letters, digits and -, got \"%s\"", name);
    if (!n || strlen(name) != n)
        return kl_fail(err, KL_EINVAL, "a header needs a name");
    if (is_ours(name))
        return kl_fail(err, KL_EINVAL, "the header %s cannot be set by a script", name);
    if (!text)
        return kl_fail(err, KL_EINVAL, "the header %s must be a string", name);
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
            return kl_fail(err, KL_EINVAL, "the header %s has a control character in it", name);
    return KL_OK;
}

static kl_status check_headers(const kl_value *headers, kl_err *err)
{
    size_t lines = 0;
    for (size_t i = 0; i < kl_value_len(headers); i++) {
        const char *name;
        size_t n;
        const kl_value *v = kl_value_member(headers, i, &name, &n);
        bool list = kl_value_type(v) == KL_ARRAY;
        for (size_t k = 0; k < (list ? kl_value_len(v) : 1); k++, lines++) {
            kl_status st = check_header(name, n, list ? kl_value_item(v, k) : v, err);
            if (st)
                return st;
        }
    }
    return lines <= KL__WEB_HEADERS - 4
        ? KL_OK
        : kl_fail(err, KL_EINVAL, "a request has %d headers at most", KL__WEB_HEADERS - 4);
}

/* The name goes into a URL for libcurl, where anything beyond a name could select another server. */
static kl_status check_tls(const kl_value *tls, kl_err *err)
{
    const char *name = kl_value_str_at(tls, "server_name", NULL);
    if (!name || !*name || kl_reach_is_server(name))
        return KL_OK;
    return kl_fail(err, KL_EINVAL, "tls.server_name is the name of a server, such as \"dns.example.com\"");
}

/* The length of scheme, name and port of a URL. */
static int server_length(const char *url)
{
    size_t scheme = strcspn(url, ":") + 3;
    return (int)(scheme + strcspn(url + scheme, "/?"));
}

kl_status kl__web_check_url(char *const *rules, const char *url, const char **rule, kl_err *err)
{
    kl_reach at;
    kl_status st = kl_reach_parse(url ? url : "", &at, err);
    const char *found = st ? NULL : kl_reach_rule(rules, &at);
    if (!st && !found && rules != kl_web_anywhere)
        st = kl_fail(err, KL_EFORBIDDEN,
            "%.*s is not in `http` of this controller; add http = { \"%.*s\" } to its table, and run it with "
            "--allow-http",
            server_length(url), url, server_length(url), url);
    if (rule)
        *rule = found;
    return st;
}

static const char *proxy_of(const kl_op *op) { return kl_value_str_at(op->body, "proxy", NULL); }

char *kl_web_shown(const kl_op *op) { return kl_reach_shown(op->name ? op->name : ""); }

kl_status kl_web_check(const kl_op *op, kl_err *err)
{
    const char *proxy = proxy_of(op);
    char *url = kl_web_shown(op);
    kl_status st = check_method(op->subresource, err);
    if (!st)
        st = kl__web_check_url(op->http, op->name, NULL, err);
    if (!st && proxy && *proxy && (st = kl__web_check_url(op->http, proxy, NULL, err)))
        kl_err_prefix(err, "proxy");
    if (!st)
        st = check_headers(kl_value_get(op->body, "headers"), err);
    if (!st)
        st = check_tls(kl_value_get(op->body, "tls"), err);
    if (st)
        kl_err_prefix(err, "%s %s", op->subresource ? op->subresource : "request", url);
    kl_free(url);
    return st;
}

bool kl_web_streams(const kl_op *op)
{
    return op->verb == KL_HTTP && kl_value_bool(kl_value_get(op->body, "stream"), false);
}

bool kl_web_of_stream(const kl_op *op)
{
    return op->verb == KL_HTTP && (kl_value_get(op->body, "read") || kl_value_get(op->body, "close"));
}

bool kl_web_reads(const kl_op *op)
{
    const char *rule = NULL;
    if (kl_web_of_stream(op))
        return true;
    return !kl__web_check_url(op->http, op->name, &rule, NULL) && kl_reach_reads(rule, op->subresource);
}

const kl_value *kl_web_unsent(void)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kint(b, "status", 204);
    kl_build_key(b, "headers");
    kl_build_object(b);
    kl_build_end(b);
    kl_build_kstr(b, "body", "");
    kl_build_key(b, "dry_run");
    kl_build_bool(b, true);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* --- what is answered --------------------------------------------------------------------- */

bool kl__web_expects(const kl_value *order, int code)
{
    const kl_value *list = kl_value_get(order, "expect");
    int64_t n;
    for (size_t i = 0; i < kl_value_len(list); i++)
        if (kl_value_int(kl_value_item(list, i), &n) && n == code)
            return true;
    return (code >= 200 && code < 300) || code == 304;
}

/* 409 is not a Kubernetes conflict, which would be retried at once without an error. */
static kl_status status_of(int code)
{
    switch (code) {
    case 401: return KL_EAUTH;
    case 403: return KL_EFORBIDDEN;
    case 404: return KL_ENOTFOUND;
    case 410: return KL_EGONE;
    case 429: return KL_ETHROTTLED;
    default: return code >= 400 && code < 500 ? KL_EREJECTED : KL_ESERVER;
    }
}

static void hide(char *text, const char *secret, size_t n)
{
    for (char *at = text; n >= 4 && (at = strstr(at, secret)); at += n)
        memset(at, '*', n);
}

static void hide_header(char *text, const char *s)
{
    const char *word = s ? strchr(s, ' ') : NULL;
    if (s)
        hide(text, s, strlen(s));
    if (word)
        hide(text, word + 1, strlen(word + 1));
}

/* Hides request headers, which servers often echo, in `text`. `text` NULL: returns the length of the
 * longest. */
static size_t hide_headers(char *text, const kl_value *headers)
{
    size_t most = 0;
    for (size_t i = 0; i < kl_value_len(headers); i++) {
        const char *name;
        size_t n;
        const kl_value *v = kl_value_member(headers, i, &name, &n);
        bool list = kl_value_type(v) == KL_ARRAY;
        for (size_t k = 0; k < (list ? kl_value_len(v) : 1); k++) {
            const char *s = kl_value_strn(list ? kl_value_item(v, k) : v, &n);
            if (s && n > most)
                most = n;
            if (text)
                hide_header(text, s);
        }
    }
    return most;
}

/* The beginning of a body, for an error; "" when it is not valid text. Hides headers completely, even one
 * that is cut at the end of the beginning. Caller frees. */
static char *story_of(const kl_op *op, const char *body, size_t n)
{
    const kl_value *headers = kl_value_get(op->body, "headers");
    size_t most = STORY_MAX + hide_headers(NULL, headers), end = STORY_MAX;
    char *story = kl_strndup(body ? body : "", n < most ? n : most);
    (void)hide_headers(story, headers);
    if (strlen(story) > end) {
        while (end && ((unsigned char)story[end] & 0xc0) == 0x80)
            end--;
        story[end] = '\0';
    }
    if (!kl_utf8_valid(story, strlen(story)))
        *story = '\0';
    return story;
}

static kl_status fail_by_code(const kl_op *op, int code, const char *body, size_t n, kl_err *err)
{
    char *url = kl_web_shown(op), *story = story_of(op, body, n);
    kl_status st = kl_fail(err, status_of(code), "%s %s: the answer is %d%s%s%s", op->subresource, url, code,
        code >= 300 && code < 400
            ? ", which leads elsewhere: redirects = 3 follows it as far as `http` allows"
            : "",
        *story ? ": " : "", story);
    if (err)
        err->http_code = code;
    kl_free(url);
    kl_free(story);
    return st;
}

static bool is_json(const kl_value *headers)
{
    const char *type = kl_value_str_at(headers, "content-type", NULL);
    size_t n = type ? strcspn(type, "; ") : 0;
    return (n == 16 && !strncasecmp(type, "application/json", n))
        || (n > 5 && !strncasecmp(type + n - 5, "+json", 5));
}

void kl__web_build_body(kl_builder *b, const char *body, size_t n)
{
    if (kl_utf8_valid(body, n)) {
        kl_build_key(b, "body");
        kl_build_strn(b, body, n);
        return;
    }
    char *text = kl_base64_encode(body, n);
    kl_build_kstr(b, "base64", text);
    kl_free(text);
}

kl_status kl__web_answer(const kl_op *op, int status, const kl_value *headers, const char *body, size_t len,
    const kl_value **out, kl_err *err)
{
    const kl_value *json = NULL;
    if (!kl__web_expects(op->body, status))
        return fail_by_code(op, status, body, len, err);
    bool raw = kl_value_bool(kl_value_get(op->body, "raw"), false);
    if (len && !raw && is_json(headers) && kl_value_decode_last(body, len, &json, err)) {
        char *url = kl_web_shown(op);
        kl_err_prefix(err, "%s %s: the answer claims to be JSON but is not", op->subresource, url);
        kl_free(url);
        if (err)
            err->status = KL_ESERVER;
        return KL_ESERVER;
    }
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kint(b, "status", status);
    kl_build_key(b, "headers");
    if (headers)
        kl_build_value(b, headers);
    else {
        kl_build_object(b);
        kl_build_end(b);
    }
    if (json)
        kl_build_kvalue(b, "json", json);
    else
        kl__web_build_body(b, body ? body : "", len);
    kl_build_end(b);
    kl_value_unref(json);
    *out = kl_builder_done(b);
    return KL_OK;
}
