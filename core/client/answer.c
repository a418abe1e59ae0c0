/* answer.c - interprets an HTTP answer of the API server.
 *
 * The reason of a Status decides, the HTTP code only where the reason is missing or unknown, as in client-go.
 * A proxy's HTML or an empty body becomes our own Status by code. Advice is added: the RBAC rule for a 403 of
 * the authorizer, the credentials in use for a 401. */
#include "client/answer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/mem.h"
#include "wire/proto.h"

#define BODY_SHOWN 2048 /* bytes shown of a body that is not a Status, as in client-go */
#define GARBAGE_SHOWN 80
#define REDIRECT_SHOWN 200
#define RETRY_AFTER_MAX KL_SECONDS(24 * 3600)

static const struct {
    const char *reason;
    kl_status st;
} reasons[] = {
    {"Unauthorized", KL_EAUTH},
    {"Forbidden", KL_EFORBIDDEN},
    {"NotFound", KL_ENOTFOUND},
    {"AlreadyExists", KL_EEXISTS},
    {"Conflict", KL_ECONFLICT},
    {"Gone", KL_EGONE},
    {"Expired", KL_EGONE},
    {"Invalid", KL_EREJECTED},
    {"BadRequest", KL_EREJECTED},
    {"MethodNotAllowed", KL_EREJECTED},
    {"NotAcceptable", KL_EREJECTED},
    {"RequestEntityTooLarge", KL_EREJECTED},
    {"UnsupportedMediaType", KL_EREJECTED},
    {"TooManyRequests", KL_ETHROTTLED},
    {"ServerTimeout", KL_ESERVER},
    {"Timeout", KL_ESERVER},
    {"InternalError", KL_ESERVER},
    {"ServiceUnavailable", KL_ESERVER},
};

/* The meaning of a code without a Status. */
static const struct {
    int code;
    const char *reason, *message;
} codes[] = {
    {400, "BadRequest", "the server rejected the request as malformed"},
    {401, "Unauthorized", "the server has asked for credentials"},
    {403, "Forbidden", "the server does not allow access to this resource"},
    {404, "NotFound", "the server could not find the requested resource"},
    {405, "MethodNotAllowed", "the server does not allow this method on the requested resource"},
    {406, "NotAcceptable", "the server was unable to answer in an accepted media type"},
    {409, "Conflict", "the server reported a conflict"},
    {410, "Gone", "the requested state is gone"},
    {413, "RequestEntityTooLarge", "the request is too large for the server"},
    {415, "UnsupportedMediaType", "the server does not know the media type of the request"},
    {422, "Invalid", "the server rejected the request because it is invalid"},
    {429, "TooManyRequests", "the server has received too many requests and asks to try again later"},
    {500, "InternalError", "an error on the server prevented the request from succeeding"},
    {503, "ServiceUnavailable", "the server is currently unable to handle the request"},
    {504, "Timeout", "the server was unable to answer in time"},
};

static kl_status status_of(const char *reason, int code)
{
    for (size_t i = 0; reason && i < sizeof reasons / sizeof *reasons; i++)
        if (!strcmp(reason, reasons[i].reason))
            return reasons[i].st;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (code == codes[i].code)
            return status_of(codes[i].reason, 0);
    return code >= 400 && code < 500 ? KL_EREJECTED : KL_ESERVER;
}

static const char *url_path(const char *url)
{
    const char *host = strstr(url, "://");
    const char *path = strchr(host ? host + 3 : url, '/');
    return path ? path : "/";
}

/* Advice for the user, after the server's message. */
static char *advice(
    const kl__request *q, kl_status st, const char *message, bool is_status, const char *credentials)
{
    /* The authorizer's words are `User "x" cannot list resource "pods"`; quota and admission also answer
     * 403. */
    if (st == KL_EFORBIDDEN && q->grant && (!is_status || strstr(message, " cannot ")))
        return kl_sprintf("; the missing RBAC rule: %s", q->grant);
    if (st == KL_EAUTH)
        return kl_sprintf("; sent: %s: is it meant for this cluster, and still valid?",
            credentials ? credentials : "no credentials");
    if (st == KL_ECONFLICT && !strncmp(message, "Apply failed with", 17))
        return kl_strdup("; take the fields with force, or leave them out");
    return kl_strdup("");
}

/* What an answer says; reason and details may be NULL. */
struct verdict {
    int code;
    const char *reason, *message;
    const kl_value *details;
    kl_time retry_after;
    bool is_status;
};

static kl_status fail(const kl__request *q, const struct verdict *v, const char *credentials, kl_err *err)
{
    kl_status st = status_of(v->reason, v->code);
    char *more = advice(q, st, v->message, v->is_status, credentials);
    kl_fail(err, st, "%s: %s%s", q->what, v->message, more);
    kl_free(more);
    if (!err)
        return st;
    err->http_code = v->code;
    err->retry_after_ns = v->retry_after > 0 ? v->retry_after : 0;
    err->reason = kl_strdup(v->reason);
    err->details = v->details ? kl_value_to_json(v->details) : NULL;
    return st;
}

static kl_status fail_with(const kl__request *q, const kl__answer *a, const kl_value *status, kl_err *err)
{
    const char *reason = kl_value_str_at(status, "reason", NULL),
               *message = kl_value_str_at(status, "message", NULL);
    const kl_value *details = kl_value_get(status, "details");
    int64_t own = kl_value_int_at(status, a->code, "code", NULL);
    int code = own >= 100 && own < 600 ? (int)own : a->code;
    int64_t after = kl_value_int_at(details, 0, "retryAfterSeconds", NULL);
    kl_time retry_after = a->retry_after;
    if (retry_after <= 0 && after > 0 && after < RETRY_AFTER_MAX / KL_SECONDS(1))
        retry_after = KL_SECONDS(after);
    if (reason && !*reason)
        reason = NULL;
    /* The continue token for an expired list is outside of the details. */
    const kl_value *next = kl_value_at(status, "metadata", "continue", NULL);
    const kl_value *whole = kl_value_len(next) ? kl_value_with(details, "continue", next)
                                               : kl_value_ref(details);
    char unknown[32];
    snprintf(unknown, sizeof unknown, "HTTP %d", code);
    struct verdict v = {.code = code,
        .reason = reason,
        .message = message && *message ? message
            : reason                   ? reason
                                       : unknown,
        .details = whole,
        .retry_after = retry_after,
        .is_status = true};
    kl_status st = fail(q, &v, a->credentials, err);
    kl_value_unref(whole);
    return st;
}

kl_status kl__answer_fail_status(const kl__request *q, int code, const kl_value *status, kl_err *err)
{
    return fail_with(q, &(kl__answer){.code = code}, status, err);
}

/* The body on one line, printable, cut. */
static char *shown(const char *body, size_t n, size_t max)
{
    kl_buf b = KL_BUF_INIT;
    size_t end = n < max ? n : max;
    while (end < n && end && ((unsigned char)body[end] & 0xc0) == 0x80)
        end--; /* not in the middle of a character */
    while (end && isspace((unsigned char)body[end - 1]))
        end--;
    for (size_t i = 0; i < end; i++)
        kl_buf_putc(&b, (unsigned char)body[i] < ' ' || body[i] == 0x7f ? ' ' : body[i]);
    kl_buf_puts(&b, "");
    return kl_buf_take(&b);
}

/* The answer of Go's HTTP server, and so of an API server, for an unknown path. All other failures of an API
 * server have a Status. */
static bool is_plain_404(const char *body, size_t n)
{
    static const char words[] = "404 page not found";
    size_t len = sizeof words - 1;
    return n >= len && !memcmp(body, words, len) && (n == len || (n == len + 1 && body[len] == '\n'));
}

/* A 404 that is not an API server's: a load balancer without a backend, a route that is missing. It says
 * nothing about objects or kinds, so the error gets no code. */
static kl_status fail_page(const kl__request *q, const kl__answer *a, kl_err *err)
{
    char *text = shown(a->body, a->n, GARBAGE_SHOWN);
    kl_fail(err, KL_ESERVER,
        "%s: the answer to %s %s is HTTP 404 without a Status%s%s%s: it did not come from an API server; is "
        "there a proxy or load balancer before it?",
        q->what, q->method, q->url, *text ? ", it begins \"" : "", text, *text ? "\"" : "");
    kl_free(text);
    if (err)
        err->retry_after_ns = a->retry_after > 0 ? a->retry_after : 0;
    return KL_ESERVER;
}

static kl_status fail_by_code(const kl__request *q, const kl__answer *a, kl_err *err)
{
    int code = a->code;
    if (code == 404 && q->shape != KL__ANY && !is_plain_404(a->body, a->n))
        return fail_page(q, a, err);
    const char *reason = code >= 500 ? "InternalError" : NULL, *message = NULL;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code) {
            reason = codes[i].reason;
            message = codes[i].message;
        }
    if (code == 409 && q->wants_object)
        reason = "AlreadyExists";
    char other[64];
    snprintf(other, sizeof other, "the server answered with HTTP %d", code);
    char *text = shown(a->body, a->n, BODY_SHOWN);
    char *whole = kl_sprintf(
        "%s (%s %s)%s%s", message ? message : other, q->method, url_path(q->url), *text ? ": " : "", text);
    struct verdict v = {.code = code, .reason = reason, .message = whole, .retry_after = a->retry_after};
    kl_status st = fail(q, &v, a->credentials, err);
    kl_free(whole);
    kl_free(text);
    return st;
}

kl_status kl__answer_fail(const kl__request *q, const kl__answer *a, kl_err *err)
{
    const kl_value *v = NULL;
    if (kl_proto_is(a->body, a->n) ? kl_proto_decode(a->body, a->n, &v, NULL, NULL)
                                   : a->n && *a->body == '{' && kl_value_decode(a->body, a->n, &v, NULL))
        v = NULL;
    const char *kind = kl_value_str_at(v, "kind", NULL);
    kl_status st = kind && !strcmp(kind, "Status") ? fail_with(q, a, v, err) : fail_by_code(q, a, err);
    kl_value_unref(v);
    return st;
}

kl_status kl__answer_garbage(
    const kl__request *q, const char *body, size_t n, const kl_err *story, kl_err *err)
{
    char *text = shown(body, q->in_protobuf ? 0 : n, GARBAGE_SHOWN);
    kl_fail(err, KL_ESERVER, "%s: the answer to %s %s is not the %s it should be: %s%s%s%s%s", q->what,
        q->method, q->url, q->in_protobuf ? "protobuf" : "JSON", kl_err_message(story),
        *text ? "; it begins \"" : "", text, *text ? "\"" : "",
        *text == '<' ? ", an HTML page: is there a proxy or a login page before the API server?" : "");
    kl_free(text);
    return KL_ESERVER;
}

static bool is_text(const kl_value *v) { return !v || kl_value_type(v) == KL_STRING; }

/* Whether v is an object whose name and namespace, if present, are strings. */
static bool is_item(const kl_value *v)
{
    const kl_value *m = kl_value_get(v, "metadata");
    return kl_value_type(v) == KL_OBJECT && (!m || kl_value_type(m) == KL_OBJECT)
        && is_text(kl_value_get(m, "name")) && is_text(kl_value_get(m, "namespace"));
}

/* The position of the first invalid item, counted from 1; 0: all items are valid. */
static size_t stray(const kl_value *items)
{
    for (size_t i = 0, n = kl_value_len(items); i < n; i++)
        if (!is_item(kl_value_item(items, i)))
            return i + 1;
    return 0;
}

kl_status kl__answer_check(const kl__request *q, const kl_value *v, kl_err *err)
{
    const char *kind = kl_value_str_at(v, "kind", NULL);
    const kl_value *items = kl_value_get(v, q->shape == KL__TABLE ? "rows" : "items");
    kl_type type = kl_value_type(items);
    if (q->shape == KL__ANY)
        return KL_OK;
    if (!v)
        return kl_fail(err, KL_ESERVER, "%s: the answer to %s %s is empty", q->what, q->method, q->url);
    if (!kind || !*kind)
        return kl_fail(err, KL_ESERVER,
            "%s: the answer to %s %s is not a Kubernetes object: it has no kind; is there a proxy before the "
            "API server?",
            q->what, q->method, q->url);
    /* An empty list of Go may have null as items, and the envelope of a streamed list may have none. */
    size_t n = strlen(kind);
    bool list = items ? type == KL_ARRAY || type == KL_NULL
                      : q->shape == KL__LIST && n > 4 && !strcmp(kind + n - 4, "List");
    if (q->shape != KL__OBJECT && !list)
        return kl_fail(err, KL_ESERVER, "%s: the answer to %s %s is not a list: a %s without %s", q->what,
            q->method, q->url, kind, q->shape == KL__TABLE ? "rows" : "items");
    size_t at = q->shape != KL__OBJECT && type == KL_ARRAY ? stray(items) : 0;
    if (at)
        return kl_fail(err, KL_ESERVER,
            "%s: the answer to %s %s is not a list of objects: number %zu of %zu is not one", q->what,
            q->method, q->url, at, kl_value_len(items));
    return KL_OK;
}

kl_status kl__answer_redirect(const kl__request *q, int code, const char *location, kl_err *err)
{
    const char *host = location ? strstr(location, "://") : NULL;
    size_t start = host ? (size_t)(host + 3 - location) : 0, end = location ? strcspn(location, "?#") : 0;
    const char *at = host ? memchr(host + 3, '@', strcspn(host + 3, "/?#")) : NULL;
    if (at)
        start = (size_t)(at + 1 - location);
    char *to = location ? shown(location + start, end > start ? end - start : 0, REDIRECT_SHOWN)
                        : kl_strdup("");
    kl_fail(err, KL_ESERVER,
        "%s: the server redirects %s %s (HTTP %d)%s%s: redirects are not followed; use the API server's own "
        "address",
        q->what, q->method, q->url, code, *to ? " to " : "", to);
    kl_free(to);
    if (err)
        err->http_code = code;
    return KL_ESERVER;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" in seconds since the epoch, or -1. */
static int64_t http_date(const char *s)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm tm = {0};
    char month[4] = "";
    if (sscanf(s, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &tm.tm_mday, month, &tm.tm_year, &tm.tm_hour,
            &tm.tm_min, &tm.tm_sec)
        != 6)
        return -1;
    const char *m = strlen(month) == 3 ? strstr(months, month) : NULL;
    if (!m || (m - months) % 3 || tm.tm_year < 1970)
        return -1;
    tm.tm_mon = (int)(m - months) / 3;
    tm.tm_year -= 1900;
    return timegm(&tm);
}

kl_time kl__retry_after(const char *header, kl_time wall)
{
    if (!header || !*header)
        return -1;
    char *end;
    long long n = strtoll(header, &end, 10);
    kl_time after;
    if (isdigit((unsigned char)*header) && !*end)
        after = kl_seconds_within(n, RETRY_AFTER_MAX);
    else {
        int64_t at = http_date(header);
        if (at < 0)
            return -1;
        after = kl_seconds_within(at - wall / KL_SECONDS(1), RETRY_AFTER_MAX);
    }
    return after;
}

char *kl__warning_text(const char *header)
{
    if (strncmp(header, "299 ", 4))
        return NULL;
    const char *s = strchr(header, '"');
    if (!s)
        return NULL;
    kl_buf b = KL_BUF_INIT;
    for (s++; *s && *s != '"'; s++) {
        if (*s == '\\' && s[1])
            s++;
        kl_buf_putc(&b, (unsigned char)*s < ' ' ? ' ' : *s);
    }
    if (!b.len) {
        kl_buf_fini(&b);
        return NULL;
    }
    return kl_buf_take(&b);
}
